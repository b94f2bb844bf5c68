"""Means that have changed: how that is found after a result, and how it is told."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mfbandit._internal.formatting import plain
from mfbandit._internal.limits import MAX_ARMS_NAMED
from mfbandit.core import Stats
from mfbandit.experiment.change_points import Cell
from mfbandit.experiment.events import DriftFound, Told
from mfbandit.experiment.state import State


@dataclass(frozen=True)
class Drift:
    """The mean of an arm at a fidelity that has changed. Printed, it is said in words.

    Args:
        arm: its index.
        label: its name.
        fidelity: the index of the fidelity.
        name: the display name of the fidelity.
        since: how many observations of the arm at the fidelity there had been when it most likely changed.
        results: how many results of all arms there had been then.
        before: the mean of the observations before, in units of reward.
        after: that of all since.

    >>> print(Drift(0, "ad-a", 1, "week", since=2100, results=4000, before=0.07, after=0.01))
    ad-a has changed at fidelity week: 0.07 on average in its first 2,100 observations, 0.01 since.
    """

    arm: int
    label: str
    fidelity: int
    name: str
    since: int
    results: int
    before: float
    after: float

    @property
    def sentence(self) -> str:
        """What has changed, for people."""
        averages = f"{plain(self.before, 3)} on average in its first {self.since:,} observations"
        return f"{self.label} has changed at fidelity {self.name}: {averages}, {plain(self.after, 3)} since."

    def __str__(self) -> str:
        return self.sentence


def drift_found(state: State, event: Told) -> DriftFound | None:
    """The change of a mean that a result makes certain, if it is not known; nearly always None, without a look.

    Args:
        state: after the result.
        event: the result.
    """
    cell, state.changes.next = state.changes.next, None
    if cell is None or state.fidelities.concentration is None or cell in state.drifted:
        return None
    (fidelity, arm), stats = cell, state.told_stats
    if state.plays[event.play] != (arm, fidelity):  # a look that was due before it was read from a log
        return None
    share = state.roster.share(arm) / len(state.fidelities)
    found = state.changes.found(cell, state.fidelities.tails[fidelity], stats, share)
    if found is None:
        return None
    number, total, results, _ = found.mark
    rest = float(stats.sums[cell]) - total
    return DriftFound(fidelity, arm, number, results, total / number, rest / (int(stats.counts[cell]) - number))


def is_suspected(state: State, cells: Iterable[Cell]) -> bool:
    """Whether a change of one of these means may be why their results do not fit together."""
    tails = state.fidelities.tails
    return any(state.changes.suspected(cell, tails[cell[0]], state.told_stats) for cell in cells)


def drifts_of(state: State) -> tuple[Drift, ...]:
    """All means that have changed, by fidelity and arm, with their means as they are now."""
    stats, names, labels = state.told_stats, state.fidelities.labels, state.labels
    found = []
    for cell, event in sorted(state.drifted.items()):
        count, total = int(stats.counts[cell]), float(stats.sums[cell])
        after = (total - event.since * event.before) / (count - event.since)
        fidelity, arm = cell
        known = names[fidelity], event.since, event.results, event.before, after
        found.append(Drift(arm, labels[arm], fidelity, *known))
    return tuple(found)


def drift_warnings(state: State) -> list[str]:
    """One sentence for each arm that takes part and has changed, with what to do.

    >>> from mfbandit import UCB, Bounded, Experiment, Fidelities
    >>> exp = Experiment(UCB(), arms=["a", "b"], fidelities=Fidelities([1], concentration=Bounded()))
    >>> _ = exp.add_results([("a", 0, 1.0, None)] * 40 + [("a", 0, 0.0, None)] * 40)
    >>> drift_warnings(exp.folded)
    ['a has changed at fidelity 0: 1 on average in its first 35 observations, 0.111 since; `forget` begins it anew']
    """
    active = state.told_stats.active
    found = [one for one in drifts_of(state) if active[one.arm] and not state.fades]
    texts = [f"{one.sentence.rstrip('.')}; `forget` begins it anew" for one in found[:MAX_ARMS_NAMED]]
    more = len(found) - MAX_ARMS_NAMED
    return [*texts, f"{more:,} more means have changed; `drift` lists them"] if more > 0 else texts


def without_drifted(stats: Stats, drifted: Iterable[Cell]) -> Stats:
    """Statistics without the results of means that have changed; the same ones if there are none.

    >>> stats = Stats.empty(2, 1)
    >>> stats.counts[:] = 5
    >>> without_drifted(stats, [(0, 0)]).counts.tolist()
    [[0], [5]]
    """
    cells = list(drifted)
    if not cells:
        return stats
    copy = stats.copy()
    for array in (copy.counts, copy.sums, copy.squares, copy.extra, copy.unseen):
        if array is not None:
            array[tuple(zip(*cells, strict=True))] = 0
    return copy


def drift_record(found: Drift) -> dict[str, Any]:
    """A change ready for JSON, with its sentence.

    >>> drift_record(Drift(0, "a", 0, "0", 8, 8, 0.5, 0.25))["since"]
    8
    """
    return {**asdict(found), "sentence": found.sentence}


def drift_from_record(record: Mapping[str, Any]) -> Drift:
    """The change that :func:`drift_record` wrote.

    >>> found = Drift(0, "a", 0, "0", 8, 8, 0.5, 0.25)
    >>> drift_from_record(drift_record(found)) == found
    True
    """
    return Drift(**{name: value for name, value in record.items() if name != "sentence"})
