"""Experiments that survive crashes, in SQLite or PostgreSQL."""

from mfbandit.store.doctor import examine
from mfbandit.store.durable_experiment import LONGEST_KEY, DurableExperiment, Recently
from mfbandit.store.exports import arms_as_indices, import_keys, jsonl, log_record, plays_csv, read_results
from mfbandit.store.store import LEASE, Store, check_definition, check_name

__all__ = [
    "LEASE",
    "LONGEST_KEY",
    "DurableExperiment",
    "Recently",
    "Store",
    "arms_as_indices",
    "check_definition",
    "check_name",
    "examine",
    "import_keys",
    "jsonl",
    "log_record",
    "plays_csv",
    "read_results",
]
