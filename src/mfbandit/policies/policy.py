"""The interface of a policy."""

from typing import Protocol, runtime_checkable

from mfbandit._internal.typing import FloatArray
from mfbandit.core import Fidelities, Stats


@runtime_checkable
class Policy(Protocol):
    """A rule that chooses the next play: a pure function of the results and the fidelities.

    A policy is a frozen dataclass whose fields are its parameters. It never sees a :class:`~mfbandit.Problem` and
    does not change its arguments. :func:`~mfbandit.check_policy` checks your own policy against this contract.

    >>> from mfbandit.policies import UCB
    >>> isinstance(UCB(), Policy)
    True
    """

    def choose(self, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
        """Choose the arm and fidelity to play next; ``stats`` includes pending plays."""
        ...

    def index(self, stats: Stats, fidelities: Fidelities) -> FloatArray:
        """Compute each arm's index, the higher the more promising; shape (K,), never NaN."""
        ...

    def recommend(self, stats: Stats, fidelities: Fidelities) -> int:
        """Return the arm to use if no more plays were made; called only if an active arm has a result."""
        ...


@runtime_checkable
class HasIntervals(Protocol):
    """A policy that knows by itself where an arm's mean lies, such as one with a posterior.

    Its intervals are shown where confidence bounds cannot be had: the noise or the biases are not known.
    """

    def intervals(self, stats: Stats, fidelities: Fidelities) -> tuple[FloatArray, FloatArray]:
        """Compute the ends of a 95 % interval for each arm's mean at the highest fidelity.

        Returns:
            Lower and upper ends, shape (K,) each; −∞ and ∞ where nothing is known.
        """
        ...


@runtime_checkable
class Decides(Protocol):
    """A policy that looks for the best arm, and says when it has found it.

    ``simulate`` ends a run, and an experiment without a rule of its own stops, once the policy has decided.
    """

    def decision(self, stats: Stats, fidelities: Fidelities) -> int | None:
        """Return the arm that the policy answers with, by its own rule; None while it goes on.

        It is called after each result. The arm is active and has a result. Pending plays do not count.
        """
        ...


def decision(policy: Policy, stats: Stats, fidelities: Fidelities) -> int | None:
    """Return the arm that a policy has decided for; None if it goes on, or never decides.

    Args:
        policy: any policy.
        stats: results, shape (M, K).
        fidelities: the M fidelities.

    >>> from mfbandit.policies import UCB
    >>> decision(UCB(), Stats.empty(fidelities=1, arms=2), Fidelities([1])) is None
    True
    """
    return policy.decision(stats, fidelities) if isinstance(policy, Decides) else None


def uses_biases(policy: Policy) -> bool:
    """Tell whether a policy relies on the assumed biases; one of your own does, unless it says otherwise.

    A class says so by an attribute ``uses_biases: ClassVar[bool] = False``. An experiment then does not test after each
    result whether they hold, and warns of none.

    >>> from mfbandit.policies import MFUCB, UCB
    >>> uses_biases(MFUCB()), uses_biases(UCB())
    (True, False)
    """
    return bool(getattr(policy, "uses_biases", True))


@runtime_checkable
class Remembers(Protocol):
    """A policy with a memory, such as a fitted model.

    After each result ``remember`` is called with the new statistics. Their ``memory`` is what the last call returned,
    None at first. Replaying the log must give the same memory. ``choose`` finds it in ``stats.memory``, and must also
    work if that is None.
    """

    def remember(self, stats: Stats, fidelities: Fidelities) -> object:
        """Return the memory after the newest result."""
        ...
