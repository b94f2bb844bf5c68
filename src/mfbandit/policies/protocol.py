"""What every policy offers."""

from typing import Protocol, runtime_checkable

from mfbandit.arrays import FloatArray
from mfbandit.fidelities import Fidelities
from mfbandit.stats import Stats


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
