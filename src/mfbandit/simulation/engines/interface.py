"""What a compiled engine is, and the one driver that makes runs with any of them.

An engine is a module of kernels with the five functions of :class:`Engine`; ``registry.py`` has one line for each. The
engine chooses plays and learns from rewards. Everything else is the driver's: draws, the clock, the account of regret
on the grid of capitals, progress and interrupts. Nothing here imports numba.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from mfbandit._internal.progress import Tick
from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import limit
from mfbandit.errors import ReplayExhausted
from mfbandit.policies import Policy
from mfbandit.problems import Account, Problem, replay_exhausted
from mfbandit.simulation.engines.truth import Truth, prepare_truth
from mfbandit.simulation.results import UNDECIDED, Run, regret_after_decision

STRETCH_SECONDS = 0.1  # kernels run about this long between two looks at progress and interrupts ...
SHORTEST_STRETCH_PLAYS, LONGEST_STRETCH_PLAYS = 100, 50_000  # ... and so many plays: they may suddenly become slow

# Why kernels returned: so many plays were asked for, no capital, no recorded reward, the policy has its answer.
RUNNING, SPENT, RAN_DRY, DECIDED = range(4)

Rule = TypeVar("Rule")
State = TypeVar("State")
PolicyT_contra = TypeVar("PolicyT_contra", contravariant=True)


class RunState(NamedTuple):
    """Where a run stands, in arrays that kernels write to; a single number is an array of one."""

    counts: IntArray  # (K, R): plays of each arm at each fidelity that the policy plays
    tally: IntArray  # (R,): plays at each fidelity, over all arms
    t: IntArray  # (1,): number of the next play, from 1
    status: IntArray  # (1,): RUNNING, SPENT, RAN_DRY or DECIDED
    answer: IntArray  # (1,): the arm that the policy decided for, or UNDECIDED
    arm: IntArray  # (1,): of the last play, or of the one that could not be made
    fidelity: IntArray  # (1,): the same
    spent: FloatArray  # (1,): capital
    lost: FloatArray  # (1,): sum of losses
    recorded: IntArray  # (1,): how many capitals have their regret
    capitals: FloatArray  # (G,): at which regret is recorded, increasing
    limits: FloatArray  # (G,): the same with room for rounding
    regret: FloatArray  # (G,)
    best_mean: float
    trace: IntArray  # (n, 2): the first n plays, as arm and fidelity


class Engine(Protocol[PolicyT_contra, Rule, State]):
    """The functions that a module of kernels must have; ``Rule`` and ``State`` are named tuples of its own."""

    def supports(self, problem: Problem, policy: PolicyT_contra, /) -> bool:
        """Whether the engine can run this policy on this problem."""
        ...

    def used(self, problem: Problem, policy: PolicyT_contra, /) -> list[int]:
        """The fidelities that the policy plays, increasing; kernels number these from 0."""
        ...

    def prepare(self, problem: Problem, policy: PolicyT_contra, capital: float, /) -> Rule:
        """What the policy knows, as arrays; an error if so much capital is more than its numbers can hold."""
        ...

    def begin(self, truth: Truth, run: RunState, /) -> State:
        """What the engine keeps beside the run's state, before the first play."""
        ...

    def run_on(
        self, truth: Truth, rule: Rule, state: State, run: RunState, rng: np.random.Generator, steps: int, /
    ) -> None:
        """Make up to ``steps`` more plays, compiled; stop early with a status other than RUNNING.

        A policy that decides sets DECIDED and ``answer`` after the result that it needed (:func:`kernels.decide`).
        """
        ...


@dataclass(frozen=True, eq=False)
class EngineRun(Generic[Rule, State]):
    """One run by an engine: made by :func:`begin_run`, and ended when it is no longer running.

    Args:
        engine: the kernels.
        rows: the problem's fidelities that the policy plays; R of them.
        truth: what rewards are drawn from.
        rule: what the policy knows.
        state: what the engine keeps beside.
        run: where the run stands.
    """

    engine: Engine[Any, Rule, State]
    rows: list[int]
    truth: Truth
    rule: Rule
    state: State
    run: RunState

    @property
    def running(self) -> bool:
        """Whether another play may be possible."""
        return bool(self.run.status[0] == RUNNING)

    @property
    def spent(self) -> float:
        """The capital spent so far."""
        return float(self.run.spent[0])

    def advance(self, rng: np.random.Generator, steps: int) -> None:
        """Make up to ``steps`` more plays, without Python's lock; fewer where the capital is spent.

        :func:`begin_run` has an example.

        Args:
            rng: where chance comes from, one draw a play as in :meth:`~mfbandit.Problem.draw`.
            steps: how many plays at most.

        Raises:
            ReplayExhausted: a table that is replayed in order has no reward left.
        """
        self.engine.run_on(self.truth, self.rule, self.state, self.run, rng, steps)
        if self.run.status[0] == RAN_DRY:
            arm, m = int(self.run.arm[0]), int(self.run.fidelity[0])
            raise ReplayExhausted(replay_exhausted(arm, self.rows[m], int(self.truth.lengths[arm, m])))

    def plays(self) -> IntArray:
        """The plays that were traced, as (arm, fidelity of the problem); shape (n, 2)."""
        made = self.run.trace[: int(self.run.t[0]) - 1]
        return np.stack([made[:, 0], np.array(self.rows)[made[:, 1]]], axis=1)

    def result(self, problem: Problem) -> Run:
        """Regret, plays, cost and answer of a run that has ended.

        Args:
            problem: the hidden truth.
        """
        counts = np.zeros((len(problem.fidelities), len(self.run.counts)), dtype=np.int64)
        counts[self.rows] = self.run.counts.T
        regret, answer, at = self.run.regret, int(self.run.answer[0]), int(self.run.recorded[0])
        if self.run.status[0] == DECIDED:
            left, lost = self.run.capitals[at:], float(self.run.lost[0])
            regret[at:] = regret_after_decision(problem, answer, left, self.spent, lost)
        return Run(regret, counts, int(self.run.tally.sum()), self.spent, answer)


def begin_run(
    engine: Engine[Any, Rule, State],
    problem: Problem,
    policy: Policy,
    capitals: FloatArray,
    account: Account = "paper",
    *,
    traced: int = 0,
) -> EngineRun[Rule, State]:
    """Prepare a run before its first play.

    Args:
        engine: kernels that support this problem and policy.
        problem: the hidden truth.
        policy: the policy.
        capitals: where regret is recorded, increasing; the run ends at the last; shape (G,).
        account: what a play earns, see :func:`~mfbandit.pseudo_rewards`.
        traced: how many plays to keep, the first ones of the run.

    >>> from mfbandit import MFUCB, paper_problem
    >>> from mfbandit.simulation.engines import heap_ucb
    >>> started = begin_run(heap_ucb, paper_problem(3), MFUCB(), np.array([1000.0]), traced=3)
    >>> started.advance(np.random.default_rng(0), steps=10_000)
    >>> started.running, started.spent, started.plays().tolist()
    (False, 1000.0, [[0, 0], [1, 0], [2, 0]])
    """
    rows = engine.used(problem, policy)
    truth = prepare_truth(problem, rows, account)
    rule = engine.prepare(problem, policy, float(capitals[-1]))
    run = _run_state(problem, rows, capitals, traced)
    return EngineRun(engine, rows, truth, rule, engine.begin(truth, run), run)


def _run_state(problem: Problem, rows: Sequence[int], capitals: FloatArray, traced: int) -> RunState:
    def one(value: int) -> IntArray:
        return np.array([value], dtype=np.int64)

    return RunState(
        counts=np.zeros((problem.arms, len(rows)), dtype=np.int64),
        tally=np.zeros(len(rows), dtype=np.int64),
        t=one(1),
        status=one(RUNNING),
        answer=one(UNDECIDED),
        arm=one(0),
        fidelity=one(0),
        spent=np.zeros(1),
        lost=np.zeros(1),
        recorded=one(0),
        capitals=capitals,
        limits=limit(capitals),
        regret=np.zeros(len(capitals)),
        best_mean=problem.best_mean,
        trace=np.zeros((traced, 2), dtype=np.int64),
    )


def compiled_run(
    engine: Engine[Any, Rule, State],
    problem: Problem,
    policy: Policy,
    capitals: FloatArray,
    account: Account,
    rng: np.random.Generator,
    tick: Tick,
) -> Run:
    """Make one run with an engine: the plays of the plain formula, many times faster.

    Args:
        engine: kernels that support this problem and policy.
        problem: the hidden truth.
        policy: the policy.
        capitals: where regret is recorded, increasing; the run ends at the last; shape (G,).
        account: what a play earns, see :func:`~mfbandit.pseudo_rewards`.
        rng: where chance comes from.
        tick: called now and then with the share of the capital spent since the last call; may raise to stop.

    >>> from mfbandit import MFUCB, paper_problem
    >>> from mfbandit.simulation.engines import heap_ucb
    >>> rng, capitals = np.random.default_rng(0), np.array([500.0, 1000.0])
    >>> compiled_run(heap_ucb, paper_problem(3), MFUCB(), capitals, "paper", rng, lambda _: None).steps
    1000
    """
    started = begin_run(engine, problem, policy, capitals, account)
    spent, steps = 0.0, SHORTEST_STRETCH_PLAYS
    while started.running:
        began = time.perf_counter()
        started.advance(rng, steps)
        steps = _next_stretch(steps, time.perf_counter() - began)
        tick((started.spent - spent) / capitals[-1])
        spent = started.spent
    tick(1 - spent / capitals[-1])
    return started.result(problem)


def _next_stretch(steps: int, seconds: float) -> int:
    """How many plays to make before the next look at the clock; results do not depend on it."""
    factor = min(max(STRETCH_SECONDS / max(seconds, 1e-6), 0.1), 4)
    return int(min(max(steps * factor, SHORTEST_STRETCH_PLAYS), LONGEST_STRETCH_PLAYS))
