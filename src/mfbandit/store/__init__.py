"""Experiments that survive crashes, in SQLite or PostgreSQL."""

from mfbandit.store.actor import acting_as
from mfbandit.store.database import without_password
from mfbandit.store.definition import check_definition, check_name
from mfbandit.store.doctor import examine
from mfbandit.store.durable_experiment import DurableExperiment
from mfbandit.store.exports import as_past_results, import_keys, jsonl, log_record, plays_csv, read_results
from mfbandit.store.figures import Figures
from mfbandit.store.fleet import Fleet, ServiceRecord, owners_of
from mfbandit.store.group_watch import DatabaseOutage, GroupWatch
from mfbandit.store.membership import ServiceEntry
from mfbandit.store.recent import RecentActivity
from mfbandit.store.sessions import Sessions
from mfbandit.store.store import Store

__all__ = [
    "DatabaseOutage",
    "DurableExperiment",
    "Figures",
    "Fleet",
    "GroupWatch",
    "RecentActivity",
    "ServiceEntry",
    "ServiceRecord",
    "Sessions",
    "Store",
    "acting_as",
    "as_past_results",
    "check_definition",
    "check_name",
    "examine",
    "import_keys",
    "jsonl",
    "log_record",
    "owners_of",
    "plays_csv",
    "read_results",
    "without_password",
]
