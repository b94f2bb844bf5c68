"""Experiments that survive crashes, in SQLite or PostgreSQL."""

from mfbandit.store.doctor import examine
from mfbandit.store.durable_experiment import DurableExperiment
from mfbandit.store.exports import jsonl, log_record, past_results, plays_csv, request_keys, settled_arms
from mfbandit.store.recent import Recently
from mfbandit.store.status import leading, readable_status
from mfbandit.store.store import Store, check_definition, check_name

__all__ = [
    "DurableExperiment",
    "Recently",
    "Store",
    "check_definition",
    "check_name",
    "examine",
    "jsonl",
    "leading",
    "log_record",
    "past_results",
    "plays_csv",
    "readable_status",
    "request_keys",
    "settled_arms",
]
