"""Ask and tell: events, the state that they fold to, and the experiment in memory."""

from mfbandit.experiment.checks import check_is_policy, checked_capital, checked_choice
from mfbandit.experiment.codec import (
    CODES,
    COLUMNS,
    WITH_TEXT,
    Packed,
    PackedLog,
    Record,
    from_row,
    pack,
    to_row,
    unpack,
)
from mfbandit.experiment.confidence_answer import Confidence
from mfbandit.experiment.decisions import until_sure
from mfbandit.experiment.events import (
    FIELDS,
    ArmAdded,
    ArmReinstated,
    ArmRestored,
    ArmRetired,
    ArmSetAside,
    Asked,
    BiasesWidened,
    BiasRefuted,
    Decided,
    Event,
    Expired,
    Failed,
    LeasesExtended,
    Noted,
    Opened,
    Renewed,
    StopSet,
    Told,
    Unchanged,
    from_record,
    to_record,
)
from mfbandit.experiment.experiment import Experiment
from mfbandit.experiment.headline import Headline, conflicting
from mfbandit.experiment.history import History, NextResults
from mfbandit.experiment.incarnations import Incarnations, play_id
from mfbandit.experiment.intervals import bounds_of
from mfbandit.experiment.play_table import PlayTable
from mfbandit.experiment.protocol import AnyExperiment, PastResult, Result, Status, plays_until_exhausted
from mfbandit.experiment.serialization import (
    FORMAT,
    fidelities_from_record,
    fidelities_record,
    policy_from_record,
    policy_record,
)
from mfbandit.experiment.state import State
from mfbandit.experiment.status import status_of
from mfbandit.experiment.stopping import Sure, checked_stop, decision_text, stop_from_record, stop_record
from mfbandit.experiment.trend import ConfidenceTrend, TrendPoint

__all__ = [
    "CODES",
    "COLUMNS",
    "FIELDS",
    "FORMAT",
    "WITH_TEXT",
    "AnyExperiment",
    "ArmAdded",
    "ArmReinstated",
    "ArmRestored",
    "ArmRetired",
    "ArmSetAside",
    "Asked",
    "BiasRefuted",
    "BiasesWidened",
    "Confidence",
    "ConfidenceTrend",
    "Decided",
    "Event",
    "Experiment",
    "Expired",
    "Failed",
    "Headline",
    "History",
    "Incarnations",
    "LeasesExtended",
    "NextResults",
    "Noted",
    "Opened",
    "Packed",
    "PackedLog",
    "PastResult",
    "PlayTable",
    "Record",
    "Renewed",
    "Result",
    "State",
    "Status",
    "StopSet",
    "Sure",
    "Told",
    "TrendPoint",
    "Unchanged",
    "bounds_of",
    "check_is_policy",
    "checked_capital",
    "checked_choice",
    "checked_stop",
    "conflicting",
    "decision_text",
    "fidelities_from_record",
    "fidelities_record",
    "from_record",
    "from_row",
    "pack",
    "play_id",
    "plays_until_exhausted",
    "policy_from_record",
    "policy_record",
    "status_of",
    "stop_from_record",
    "stop_record",
    "to_record",
    "to_row",
    "unpack",
    "until_sure",
]
