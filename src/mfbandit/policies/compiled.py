"""What a policy brings so that ``simulate`` can run it compiled: plain functions of numbers, which Numba compiles.

Nothing here imports numba. The engines that make runs of these are ``simulation/engines/own_index.py`` and
``simulation/engines/own_choice.py``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, get_args, runtime_checkable

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import Fidelities, Stats, most_promising, safest
from mfbandit.errors import InvalidArgument

Rise: TypeAlias = Literal["log t", "capital"]
Parameters: TypeAlias = tuple[Any, ...]


class ArmCells(NamedTuple):
    """What is known of one arm at each fidelity; arrays of shape (M,).

    Args:
        counts: T^(m)_k, the number of results.
        plays: the same with pending plays; in ``simulate`` nothing is pending.
        sums: of rewards.
        squares: sums of their squares.
    """

    counts: IntArray
    plays: IntArray
    sums: FloatArray
    squares: FloatArray


class AllCells(NamedTuple):
    """What is known of all arms: the fields of :class:`ArmCells`, as arrays of shape (K, M)."""

    counts: IntArray
    plays: IntArray
    sums: FloatArray
    squares: FloatArray


class Clock(NamedTuple):
    """When a play is chosen.

    Args:
        t: the number of the play, from 1.
        log_t: its logarithm, by ``math.log``.
        spent: the capital spent so far.
        arms: K.
    """

    t: int
    log_t: float
    spent: float
    arms: int


@dataclass(frozen=True)
class CompiledIndex:
    """A policy that plays the arm with the largest index, as functions that Numba compiles.

    Ties go to the lowest arm. The functions may call others of their modules: those are compiled as well.

    Args:
        index: ``index(cells, clock, parameters)``, the index of an arm with these :class:`ArmCells` at this
            :class:`Clock`; a number, ∞ included, never NaN.
        fidelity: ``fidelity(cells, clock, parameters)``, where the chosen arm is played, from 0; the highest if None.
        parameters: what the functions need to know beside: a tuple of numbers and of sequences of numbers, which
            become arrays.
        rises_with: say so if the index of an arm never falls between its own plays, and depends on the clock by one
            number alone: "log t" (then ``clock.t`` and ``clock.log_t``) or "capital" (then ``clock.spent``). A step
            then looks at a few arms instead of all.

    >>> def ucb(cells, clock, parameters):
    ...     n = cells.plays[-1]
    ...     return cells.sums[-1] / n + math.sqrt(parameters[0] * clock.log_t / n) if n else math.inf
    >>> CompiledIndex(ucb, parameters=(2.0,), rises_with="log t").rises_with
    'log t'
    """

    index: Callable[[ArmCells, Clock, Any], float]
    fidelity: Callable[[ArmCells, Clock, Any], int] | None = None
    parameters: Parameters = ()
    rises_with: Rise | None = None

    def __post_init__(self) -> None:
        check_function("index", self.index)
        if self.fidelity is not None:
            check_function("fidelity", self.fidelity)
        if self.rises_with is not None and self.rises_with not in get_args(Rise):
            raise InvalidArgument(f'rises_with must be "log t", "capital" or None, got {self.rises_with!r}')
        object.__setattr__(self, "parameters", as_parameters(self.parameters))


@dataclass(frozen=True)
class CompiledChoice:
    """A policy that is no index, as functions that Numba compiles.

    Args:
        choose: ``choose(table, clock, parameters, state)``, the next play as (arm, fidelity).
        begin: ``begin(arms, fidelities, parameters)``, the state before the first play: a tuple of arrays, made in
            Python. None if there is no state.
        learn: ``learn(table, clock, parameters, state, arm, fidelity, reward)``, called after each result to change
            the state; the table has the result already, and the clock is that of the next play.
        parameters: as for :class:`CompiledIndex`.

    >>> def round_robin(table, clock, parameters, state):
    ...     return (clock.t - 1) % clock.arms, 0
    >>> CompiledChoice(round_robin).parameters
    ()
    """

    choose: Callable[[AllCells, Clock, Any, Any], tuple[int, int]]
    begin: Callable[[int, int, Any], Parameters] | None = None
    learn: Callable[[AllCells, Clock, Any, Any, int, int, float], None] | None = None
    parameters: Parameters = ()

    def __post_init__(self) -> None:
        check_function("choose", self.choose)
        for name in ("begin", "learn"):
            if getattr(self, name) is not None:
                check_function(name, getattr(self, name))
        object.__setattr__(self, "parameters", as_parameters(self.parameters))


@runtime_checkable
class Compilable(Protocol):
    """A policy that ``simulate`` can compile."""

    def compiled(self, fidelities: Fidelities) -> CompiledIndex | CompiledChoice:
        """Describe the policy by functions of numbers; the same plays as by ``choose``, to the last bit."""
        ...


def check_function(name: str, function: object) -> None:
    """Check that something can be called.

    >>> check_function("index", 3)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: index must be a function, got 3
    """
    if not callable(function):
        raise InvalidArgument(f"{name} must be a function, got {function!r}")


def as_parameters(values: Parameters) -> Parameters:
    """Return parameters as Numba takes them: numbers as they are, sequences as arrays of float64.

    >>> as_parameters((2, 0.5, [1, 10]))
    (2, 0.5, array([ 1., 10.]))
    """
    if not isinstance(values, tuple):
        raise InvalidArgument(f"parameters must be a tuple of numbers and sequences of numbers, got {values!r}")
    return tuple(_parameter(value) for value in values)


def _parameter(value: object) -> bool | int | float | FloatArray:
    if isinstance(value, bool | int | float):
        return value
    try:
        array = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        array = np.zeros(0)
    if not array.ndim and not isinstance(value, np.floating | np.integer):
        raise InvalidArgument(f"parameters must be numbers and sequences of numbers, got {value!r}")
    if isinstance(value, str | bytes) or (array.ndim and not array.size):
        raise InvalidArgument(f"parameters must be numbers and sequences of numbers, got {value!r}")
    return array if array.ndim else float(array)


class IndexPolicy:
    """A base for policies of your own that are an index: write ``compiled``, and have the other methods.

    Experiments then choose plays by the same functions in Python, pending plays included. ``recommend`` returns the
    arm with the largest mean at the highest fidelity that has a result of an active arm.

    >>> from dataclasses import dataclass
    >>> import mfbandit as mfb
    >>> def explore_then_index(cells, clock, parameters):
    ...     n = cells.plays[-1]
    ...     return cells.sums[-1] / n + parameters[0] / math.sqrt(n) if n else math.inf
    >>> @dataclass(frozen=True)
    ... class Confident(mfb.IndexPolicy):
    ...     width: float = 1.0
    ...     def compiled(self, fidelities):
    ...         return mfb.CompiledIndex(explore_then_index, parameters=(self.width,), rises_with="log t")
    >>> exp = mfb.Experiment(Confident(), arms=3, fidelities=mfb.Fidelities([1.0]))
    >>> [play.arm for play in exp.ask(3)]
    [0, 1, 2]
    """

    def compiled(self, fidelities: Fidelities) -> CompiledIndex:
        """Describe the policy by functions of numbers."""
        raise NotImplementedError(f"{type(self).__name__} must have a method compiled(fidelities)")

    def index(self, stats: Stats, fidelities: Fidelities) -> FloatArray:
        """Compute the index of each arm; shape (K,)."""
        rule, now = self.compiled(fidelities), clock_of(stats, fidelities)
        values = [float(rule.index(cells_of(stats, k), now, rule.parameters)) for k in range(len(stats.active))]
        return np.where(stats.active, np.array(values), -np.inf)

    def choose(self, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
        """Choose the arm with the largest index, and its fidelity."""
        rule = self.compiled(fidelities)
        arm = most_promising(self.index(stats, fidelities), stats)
        if rule.fidelity is None:
            return arm, len(fidelities) - 1
        return arm, int(rule.fidelity(cells_of(stats, arm), clock_of(stats, fidelities), rule.parameters))

    def recommend(self, stats: Stats, _fidelities: Fidelities) -> int:
        """Return the arm with the largest mean at the highest fidelity with a result."""
        m = int(np.flatnonzero(stats.counts[:, stats.active].any(axis=1))[-1])
        return safest(np.where(stats.counts[m] > 0, stats.means[m], -np.inf), stats)


def cells_of(stats: Stats, arm: int) -> ArmCells:
    """Return what is known of an arm.

    >>> cells_of(Stats.empty(fidelities=2, arms=3), 1).counts.tolist()
    [0, 0]
    """
    return ArmCells(stats.counts[:, arm], stats.observations[:, arm], stats.sums[:, arm], stats.squares[:, arm])


def clock_of(stats: Stats, fidelities: Fidelities) -> Clock:
    """Return the clock at which the next play is chosen.

    >>> clock_of(Stats.empty(fidelities=2, arms=3), Fidelities([1, 10]))
    Clock(t=1, log_t=0.0, spent=0.0, arms=3)
    """
    spent = 0.0
    for cost, plays in zip(fidelities.costs, stats.plays.sum(axis=1).tolist(), strict=True):  # in the engines' order
        spent += cost * plays
    return Clock(stats.time, math.log(stats.time), spent, len(stats.active))
