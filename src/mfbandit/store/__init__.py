"""Experiments that survive crashes, in SQLite or PostgreSQL."""

from mfbandit.store.database import without_password
from mfbandit.store.doctor import examine
from mfbandit.store.durable_experiment import DurableExperiment
from mfbandit.store.exports import as_past_results, import_keys, jsonl, log_record, plays_csv, read_results
from mfbandit.store.recent import RecentActivity
from mfbandit.store.sessions import Sessions
from mfbandit.store.store import Store, check_definition, check_name

__all__ = [
    "DurableExperiment",
    "RecentActivity",
    "Sessions",
    "Store",
    "as_past_results",
    "check_definition",
    "check_name",
    "examine",
    "import_keys",
    "jsonl",
    "log_record",
    "plays_csv",
    "read_results",
    "without_password",
]
