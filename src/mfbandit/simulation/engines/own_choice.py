"""The engine for policies of one's own that are no index: they look at everything, and may keep a state."""

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from mfbandit.policies import Policy
from mfbandit.policies.compiled import AllCells, Clock, CompiledChoice, Parameters
from mfbandit.problems import Problem
from mfbandit.simulation.engines.binding import NOT_COMPILED, Function, bind, compiled_function
from mfbandit.simulation.engines.interface import RunState
from mfbandit.simulation.engines.kernels import Generator, affordable, make_play
from mfbandit.simulation.engines.own_plays import (
    NO_SUCH_ARM,
    NO_SUCH_FIDELITY,
    Learned,
    cannot_compile,
    check_stopped,
    clock_now,
    learn,
    nothing_learned,
    stop,
)
from mfbandit.simulation.engines.truth import Truth


class ChoiceState(NamedTuple):
    """What was learned, and what the policy keeps: a tuple of arrays."""

    learned: Learned
    own: Any


def choose_of(_table: AllCells, _clock: Clock, _parameters: Parameters, _own: Parameters) -> tuple[int, int]:
    """The policy's choice."""
    return 0, 0


def learn_of(
    _table: AllCells, _clock: Clock, _parameters: Parameters, _own: Parameters, _arm: int, _m: int, _reward: float
) -> None:
    """What the policy does with a result; nothing, if it keeps nothing."""


def choice_on(
    truth: Truth, parameters: Parameters, state: ChoiceState, run: RunState, rng: Generator, steps: int
) -> None:
    """Make up to ``steps`` more plays; a template for ``binding.py``."""
    learned, arms = state.learned, len(state.learned.counts)
    table = AllCells(learned.counts, learned.counts, learned.sums, learned.squares)
    for _ in range(steps):
        arm, m = choose_of(table, clock_now(run, arms), parameters, state.own)
        if arm < 0 or arm >= arms or m < 0 or m >= len(truth.costs):
            stop(run, arm, m, NO_SUCH_FIDELITY if 0 <= arm < arms else NO_SUCH_ARM)
            return
        if not affordable(truth, run, arm, m):
            return
        reward = make_play(truth, run, arm, m, rng)
        learn(learned, arm, m, reward)
        learn_of(table, clock_now(run, arms), parameters, state.own, arm, m, reward)


@dataclass(frozen=True)
class OwnChoiceEngine:
    """The engine for one policy's functions; :class:`interface.Engine` says what its methods are for.

    >>> def round_robin(table, clock, parameters, state): return (clock.t - 1) % clock.arms, 0
    >>> OwnChoiceEngine(CompiledChoice(round_robin)).functions
    {'arm': 'choose (round_robin)', 'fidelity': 'choose (round_robin)'}
    """

    rule: CompiledChoice

    @property
    def functions(self) -> dict[str, str]:
        """What the functions are called in messages."""
        return dict.fromkeys(("arm", "fidelity"), f"choose ({self.rule.choose.__name__})")

    def supports(self, _problem: Problem, _policy: Policy) -> bool:
        """Any problem will do."""
        return True

    def used(self, problem: Problem, _policy: Policy) -> list[int]:
        """All fidelities."""
        return list(range(len(problem.fidelities)))

    def prepare(self, _problem: Problem, _policy: Policy, _capital: float) -> Parameters:
        """The policy's own parameters."""
        return self.rule.parameters

    def begin(self, _truth: Truth, run: RunState) -> ChoiceState:
        """Nothing is learned; the policy begins with a state of its own."""
        arms, fidelities = run.counts.shape
        own = () if self.rule.begin is None else tuple(self.rule.begin(arms, fidelities, self.rule.parameters))
        return ChoiceState(nothing_learned(run), own)

    def run_on(
        self, truth: Truth, parameters: Parameters, state: ChoiceState, run: RunState, rng: Generator, steps: int
    ) -> None:
        """Make up to ``steps`` more plays; an error names the function that is at fault."""
        try:
            _kernel(self.rule.choose, self.rule.learn)(truth, parameters, state, run, rng, steps)
        except NOT_COMPILED as error:
            raise cannot_compile(self._to_try(state, run), error) from None
        check_stopped(run, self.functions)

    def _to_try(self, state: ChoiceState, run: RunState) -> dict[str, tuple[Function, tuple[Any, ...]]]:
        known = nothing_learned(run)
        table, clock = (
            AllCells(known.counts, known.counts, known.sums, known.squares),
            Clock(1, 0.0, 0.0, len(run.counts)),
        )
        arguments = (table, clock, self.rule.parameters, state.own)
        tried: dict[str, tuple[Function, tuple[Any, ...]]] = {"choose": (self.rule.choose, arguments)}
        if self.rule.learn is not None:
            tried["learn"] = (self.rule.learn, (*arguments, 0, 0, 0.0))
        return tried


@cache
def _kernel(choose: Function, learn_result: Function | None) -> Function:
    """The kernel of these functions: once in a process, and from the disk in the next."""
    return bind(
        choice_on,
        choose_of=compiled_function(choose),
        learn_of=compiled_function(learn_of if learn_result is None else learn_result),
    )
