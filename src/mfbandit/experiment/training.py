"""Which play goes on from which earlier one, where plays resume: a function of the log."""

from collections.abc import Iterable, Iterator

from mfbandit.core import Stats


class Training:
    """Keeps ``states`` and ``resumed`` of statistics, and from which fidelity each play went on.

    A result leaves a state. A play that is asked for takes the state of its arm at the highest fidelity below its own.
    If it fails or expires, the state is there again. An arm that is retired or set aside has no states any more, nor
    has one that begins anew.

    >>> stats, training = Stats.empty(fidelities=2, arms=1).with_states(), Training()
    >>> training.asked(0, arm=0, fidelity=0, stats=stats)
    >>> training.told(0, arm=0, fidelity=0, stats=stats, late=False)
    >>> training.asked(1, arm=0, fidelity=1, stats=stats)
    >>> training.starts, stats.states.tolist(), stats.resumed.tolist()
    ({1: 0}, [[0], [0]], [[1], [0]])
    """

    def __init__(self) -> None:
        self.starts: dict[int, int] = {}  # fidelities, by the numbers of the plays that went on from there

    def asked(self, play: int, arm: int, fidelity: int, stats: Stats) -> None:
        """A play takes the best state that there is."""
        start = stats.start(arm, fidelity)
        if start is not None:
            self.starts[play] = start
            _add(stats, start, arm, states=-1, resumed=1)

    def told(self, play: int, arm: int, fidelity: int, stats: Stats, *, late: bool) -> None:
        """A result leaves a state, unless its arm is out; a late one went on from a state that others may have now."""
        _add(stats, fidelity, arm, states=int(stats.active[arm]), resumed=0)
        start = self.starts.get(play)
        if late and start is not None:
            _add(stats, start, arm, states=0, resumed=1)

    def lost(self, play: int, arm: int, stats: Stats) -> None:
        """A play failed or expired: what it went on from is there again, unless its arm is out."""
        start = self.starts.get(play)
        if start is not None:
            _add(stats, start, arm, states=int(stats.active[arm]), resumed=-1)

    def dropped(self, arm: int, stats: Stats) -> None:
        """An arm is out: what was kept of it is dropped."""
        if stats.states is not None:
            stats.states[:, arm] = 0

    def forgotten(self, arm: int, stats: Stats, pending: Iterable[int]) -> None:
        """An arm begins anew; its pending plays are all that is left."""
        self.dropped(arm, stats)
        if stats.resumed is not None:
            stats.resumed[:, arm] = 0
            for start in self.pending_starts(pending):
                stats.resumed[start, arm] += 1

    def pending_starts(self, pending: Iterable[int]) -> Iterator[int]:
        """Return the fidelities that these plays went on from; plays that began anew are left out."""
        return (self.starts[play] for play in pending if play in self.starts)


def _add(stats: Stats, fidelity: int, arm: int, *, states: int, resumed: int) -> None:
    if stats.states is not None and stats.resumed is not None:
        stats.states[fidelity, arm] += states
        stats.resumed[fidelity, arm] += resumed
