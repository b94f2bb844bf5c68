"""Logs that can have happened, with every kind of event: for whatever folds them."""

from dataclasses import dataclass, field

from hypothesis import strategies as st

from mfbandit import MFUCB, UCB, Batch, Counts, Fidelities, MFBayes, SubGaussian, Sure
from mfbandit.experiment.codec import Record
from mfbandit.experiment.events import (
    ArmAdded,
    ArmForgotten,
    ArmNoted,
    ArmReinstated,
    ArmRestored,
    ArmRetired,
    ArmSetAside,
    Asked,
    BiasesSet,
    BiasesWidened,
    BiasRefuted,
    CapitalSet,
    Decided,
    DriftFound,
    Event,
    Expired,
    Failed,
    FidelitiesSet,
    LeasesExtended,
    Noted,
    Opened,
    Paused,
    PolicySet,
    Renewed,
    Resumed,
    SharesSet,
    StopSet,
    TimePassed,
    Told,
    Unchanged,
    told,
)
from mfbandit.experiment.log_check import check_possible
from mfbandit.experiment.serialization import fidelities_record, policy_record
from mfbandit.experiment.state import State
from mfbandit.experiment.stopping import stop_record
from mfbandit.store.import_ids import import_mark

FIDELITIES = Fidelities([0.1, 1], [0.1, 0], SubGaussian(0.2))
OTHERS = [
    FIDELITIES,
    Fidelities([0.2, 1.5], [0.1, 0], SubGaussian(0.3)),
    Fidelities([0.1, 1], [0.3, 0], SubGaussian(0.2)),
]
POLICIES = [MFUCB(), UCB(rho=1.0), MFBayes()]
ARMS = ["a", "b", "c", "d"]
COSTS = [0.1, 1.0, 0.7, 1 / 3]
BLOCKS = [None, None, "monday", "sunday"]
REWARDS = [0.1, 1 / 3, 1.0, -2.5]
SHARES = [
    None,
    {"control": 1, "control_share": 0.3, "least_share": 0.0},
    {"control": 0, "control_share": 0.2, "least_share": 0.01},
    {"control": None, "control_share": 0.0, "least_share": 0.005},
]
KINDS = (
    *["ask"] * 5,
    *["tell"] * 5,
    *["fail", "expire", "renew", "late tell", "late fail", "import", "add", "retire", "set aside", "restore"],
    *["restore", "restore", "reinstate", "extend"],
    *["pause", "capital", "policy", "note", "refute", "biases", "fidelities", "open", "unchanged"],
    *["stop", "decide", "shares", "drift", "forget", "time"],
)


def begun(policy=POLICIES[0]) -> State:
    return State(policy, FIDELITIES, ARMS, 1e6)


@dataclass
class Written:
    """A log that is being written: the state so far, and the records."""

    state: State
    records: list[Record] = field(default_factory=list)
    late: list[int] = field(default_factory=list)  # expired plays without a late result

    def add(self, event: Event, *, time: float, due: float | None = None, request: str | None = None) -> None:
        check_possible(self.state, event)
        self.state.apply(event)
        self.records.append(Record(len(self.records) + 1, time, event, due, request))


@st.composite
def logs(draw, policy=POLICIES[0], steps=40) -> list[Record]:
    """Every kind of event in any order that can happen; some requests have keys, and most plays leases."""
    log, time = Written(begun(policy)), 1000.0
    for step in range(draw(st.integers(0, steps))):
        time += draw(st.sampled_from([0.0, 0.5, 40.0, 5000.0]))
        kind = draw(st.sampled_from(KINDS))
        if kind == "open":
            _opening(log, time)
        elif kind == "unchanged":
            log.add(Unchanged(), time=time, request=f"key-{step}\t0a1b2c3d")
        else:
            _one_step(draw, log, kind, f"key-{step}", time)
    return log.records


def _opening(log: Written, time: float) -> None:
    log.add(Opened(f"{len(log.records):06x}"), time=time)


def _told(draw, play: int, reward: float, cost: float) -> Told:
    """A result: one observation, or many."""
    given = draw(st.sampled_from([reward, reward, *many_of(reward), *many_of(reward, draw(st.sampled_from(BLOCKS)))]))
    return told(play, given, cost)


def many_of(reward: float, block: str | None = None) -> list[Counts | Batch]:
    """Results of many observations, or of one where they are in a block."""
    more: list[Counts | Batch] = [] if block is None else [Batch(reward, 1, None, block), Counts(1, 1, block)]
    return [
        *more,
        Counts(37, 1000, block),
        Counts(1, 3, block),
        Batch(reward, 7, None, block),
        Batch(reward, 3, 0.1, block),
    ]


def _import(draw, log: Written, active: list[int], request: str | None, time: float) -> None:
    state = log.state
    reward, cost = draw(st.sampled_from(REWARDS)), draw(st.sampled_from(COSTS))
    for _ in range(draw(st.integers(1, 3))):
        play, arm = len(state.plays), draw(st.sampled_from(active))
        log.add(Asked(play, arm, draw(st.integers(0, 1))), time=time, request=request)
        name = draw(st.sampled_from([None, f"row-{play}"]))
        mark, text = (None, request) if name is None else (import_mark(name), f"\t{name}")
        log.add(_told(draw, play, reward, cost), time=time, due=mark, request=text)
        if draw(st.booleans()):
            _refute(draw, log, arm, time, request)


def _one_step(draw, log: Written, kind: str, key: str, time: float) -> None:  # noqa: PLR0912, PLR0915 - every kind
    state = log.state
    active = [arm for arm in range(len(state.labels)) if state.stats.active[arm]]
    request = draw(st.sampled_from([None, key, f"{key}\t0a1b2c3d"]))  # of an earlier version, and of this one
    due = draw(st.sampled_from([None, time + 60, time + 3600]))
    pending = list(state.pending)
    reward, cost = draw(st.sampled_from(REWARDS)), draw(st.sampled_from(COSTS))
    if kind == "ask" and active:
        for _ in range(draw(st.integers(1, 3))):
            arm, fidelity = draw(st.sampled_from(active)), draw(st.integers(0, 1))
            log.add(Asked(len(state.plays), arm, fidelity), time=time, due=due, request=request)
    elif kind == "import" and active:
        _import(draw, log, active, request, time)
    elif kind in ("tell", "fail", "expire", "renew") and pending:
        play = draw(st.sampled_from(pending))
        events: dict[str, Event] = {
            "tell": _told(draw, play, reward, cost),
            "fail": Failed(play, cost),
            "expire": Expired(play),
            "renew": Renewed(play),
        }
        log.add(events[kind], time=time, due=due if kind == "renew" else None, request=request)
        log.late += [play] if kind == "expire" else []
    elif kind in ("late tell", "late fail") and log.late:
        play = log.late.pop(draw(st.integers(0, len(log.late) - 1)))
        event = _told(draw, play, reward, cost) if kind == "late tell" else Failed(play, cost)
        log.add(event, time=time)
    elif kind == "add":
        log.add(ArmAdded(f"new-{len(state.labels)}"), time=time, request=request)
    elif kind == "retire" and len(state.retired) + 1 < len(state.labels):
        log.add(ArmRetired(draw(st.integers(0, len(state.labels) - 1))), time=time) if active else None
    elif kind == "set aside" and len(active) > 1:
        log.add(ArmSetAside(draw(st.sampled_from(active))), time=time)
    elif kind == "restore" and state.aside:
        log.add(ArmRestored(draw(st.sampled_from(sorted(state.aside)))), time=time, request=request)
    elif kind == "reinstate" and state.retired:
        log.add(ArmReinstated(draw(st.sampled_from(sorted(state.retired)))), time=time, request=request)
    elif kind == "extend":
        log.add(LeasesExtended(draw(st.sampled_from([7200.0, 0.1, -3600.0]))), time=time)
    elif kind == "pause":
        log.add(Resumed() if state.paused else Paused(), time=time, request=request)
    elif kind == "capital":
        log.add(CapitalSet(draw(st.sampled_from([None, 1e6, 2e6]))), time=time, request=request)
    elif kind == "policy":
        log.add(PolicySet(policy_record(draw(st.sampled_from(POLICIES)))), time=time)
    elif kind == "note":
        text, arm = draw(st.sampled_from(["", "hello", "ζ"])), draw(st.integers(-1, len(state.labels) - 1))
        log.add(Noted(text) if arm < 0 else ArmNoted(arm, text), time=time, request=request)
    elif kind == "refute":
        log.add(BiasRefuted(0, draw(st.integers(0, len(state.labels) - 1)), 0.5), time=time)
    elif kind == "biases":
        log.add(BiasesSet([draw(st.sampled_from([0.1, 0.3])), 0.0]), time=time)
    elif kind == "shares":
        log.add(SharesSet(draw(st.sampled_from(SHARES))), time=time, request=request)
    elif kind == "time":
        log.add(TimePassed(time), time=time, request=request)
    elif kind in ("drift", "forget"):
        _begin_anew(draw, log, kind, request, time)
    elif kind in ("stop", "decide"):
        _stop(draw, log, kind, request, time)
    elif kind == "fidelities":
        log.add(FidelitiesSet(fidelities_record(draw(st.sampled_from(OTHERS)))), time=time)


def _begin_anew(draw, log: Written, kind: str, request: str | None, time: float) -> None:
    if kind == "forget":
        log.add(ArmForgotten(draw(st.integers(0, len(log.state.labels) - 1))), time=time, request=request)
        return
    counts = log.state.told_stats.counts
    cells = [(m, arm) for m in range(2) for arm in range(len(log.state.labels)) if counts[m, arm] > 1]
    if cells:
        fidelity, arm = draw(st.sampled_from(cells))
        log.add(DriftFound(fidelity, arm, 1, 0, 0.5, 0.25), time=time, request=request)


def _stop(draw, log: Written, kind: str, request: str | None, time: float) -> None:
    if kind == "stop":
        rule = draw(st.sampled_from([None, Sure(0.9), Sure(0.95, tolerance=0.1, estimates=True)]))
        log.add(StopSet(stop_record(rule)), time=time, request=request)
    elif log.state.decided is None:
        level, kind = draw(st.sampled_from([(0.97, "valid"), (None, "policy")]))
        arm = draw(st.integers(0, len(log.state.labels) - 1))
        log.add(Decided(arm, level, level and 0.02, 0.1, kind), time=time, request=request)


def _refute(draw, log: Written, arm: int, time: float, request: str | None) -> None:
    log.add(BiasRefuted(0, arm, 0.5), time=time, request=request)
    if draw(st.booleans()):
        log.add(BiasesWidened([0.6, 0.0]), time=time, request=request)
