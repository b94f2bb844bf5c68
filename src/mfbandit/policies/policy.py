"""What every policy offers."""

from typing import Protocol, runtime_checkable

from mfbandit._internal.typing import FloatArray
from mfbandit.core import Fidelities, Stats


@runtime_checkable
class Policy(Protocol):
    """A rule for the next play: a pure function of what was learned and what is known beforehand.

    A policy is a frozen dataclass whose fields are its parameters. It never sees a
    :class:`~mfbandit.Problem` and changes nothing it is given. :func:`~mfbandit.check_policy` checks the
    contract for a policy of your own.

    >>> from mfbandit.policies import UCB
    >>> isinstance(UCB(), Policy)
    True
    """

    def choose(self, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
        """The arm and fidelity to play next, with whatever is pending taken into account."""
        ...

    def index(self, stats: Stats, fidelities: Fidelities) -> FloatArray:
        """How promising each arm is, shape (K,), never NaN."""
        ...

    def recommend(self, stats: Stats, fidelities: Fidelities) -> int:
        """The arm to use if nothing more could be tried; called only once an active arm has a result."""
        ...


@runtime_checkable
class Remembers(Protocol):
    """A policy that keeps something it worked out, such as a fitted model; a function of the log all the same.

    After each result ``remember`` is called with what is known now, and with ``stats.memory`` as it returned it last
    time (None at first). Whoever replays the log gets the same memory. ``choose`` finds it in ``stats.memory``, and has
    to do without if that is None.
    """

    def remember(self, stats: Stats, fidelities: Fidelities) -> object:
        """The memory after the newest result."""
        ...
