"""What a policy that can be compiled must keep: the same plays both ways, and an index that rises as declared."""

import math
from collections.abc import Iterator

import numpy as np

from mfbandit.core import Bounded, Fidelities, Stats, SubGaussian
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import checked_choice
from mfbandit.policies import ArmCells, Clock, Compilable, CompiledIndex, Policy
from mfbandit.policies.compiled import cells_of
from mfbandit.problems import Bernoulli, Gaussian, Problem
from mfbandit.simulation.engines.interface import begin_run
from mfbandit.simulation.engines.registry import engine_for
from mfbandit.simulation.plain import told
from mfbandit.testing.contract import require

COMPARED_PLAYS = 300
TIMES = (1, 2, 3, 5, 10, 100, 10_000, 10**9)
CAPITALS = (0.0, 0.5, 1.0, 7.0, 1e3, 1e9)


def check_compiled(policy: Policy) -> None:
    """Check that a policy makes the same plays compiled and in Python, on normal and 0/1 rewards."""
    for problem in _problems():
        engine = engine_for(problem, policy)
        if engine is None:
            continue
        run = begin_run(engine, problem, policy, np.array([math.inf]), traced=COMPARED_PLAYS)
        try:
            run.advance(np.random.default_rng(0), COMPARED_PLAYS)
        except InvalidArgument as error:
            require(False, f"{error} ({_described(problem)})")
        compiled = [(int(arm), int(m)) for arm, m in run.plays()]
        for t, (ours, plain) in enumerate(zip(compiled, _plain_plays(problem, policy), strict=False), start=1):
            require(
                ours == plain,
                f"compiled must make the plays of choose; play {t} is {ours} compiled and {plain} by choose "
                f"({_described(problem)})",
            )


def check_rise(policy: Compilable, stats: Stats, fidelities: Fidelities) -> None:
    """Check that the index of each arm never falls with what it is declared to rise with, and depends on that alone."""
    rule = policy.compiled(fidelities)
    if not isinstance(rule, CompiledIndex) or rule.rises_with is None:
        return
    for arm in range(len(stats.active)):
        cells, arms = cells_of(stats.told, arm), len(stats.active)
        before = -math.inf
        for now, (alone, whole) in _clocks(rule, arms):
            value, same = _value(rule, cells, alone), _value(rule, cells, whole)
            require(
                value == same,
                f"index must depend on the clock by {rule.rises_with} alone, as rises_with says, got {same} "
                f"and {value} for the same {rule.rises_with}",
            )
            require(
                value >= before,
                f"index must only rise with {rule.rises_with}, as rises_with says, got {before}, then {value} at {now}",
            )
            before = value


def _clocks(rule: CompiledIndex, arms: int) -> Iterator[tuple[float, tuple[Clock, Clock]]]:
    """Clocks in order, each as the engine has it and with the other numbers as well."""
    if rule.rises_with == "capital":
        for spent in CAPITALS:
            yield spent, (Clock(-1, math.nan, spent, arms), Clock(7, math.log(7), spent, arms))
    else:
        for t in TIMES:
            yield t, (Clock(t, math.log(t), math.nan, arms), Clock(t, math.log(t), 7.0, arms))


def _value(rule: CompiledIndex, cells: ArmCells, clock: Clock) -> float:
    return float(rule.index(cells, clock, rule.parameters))


def _plain_plays(problem: Problem, policy: Policy) -> Iterator[tuple[int, int]]:
    stats, rng = Stats.empty(len(problem.fidelities), problem.arms), np.random.default_rng(0)
    while True:
        arm, m = checked_choice(policy, stats.read_only(), problem.fidelities)
        yield arm, m
        reward = problem.draw(arm, m, rng, earlier=int(stats.counts[m, arm]))
        stats = told(stats, policy, problem.fidelities, arm, m, reward)


def _problems() -> Iterator[Problem]:
    rng = np.random.default_rng(1)
    for fidelities in (1, 3):
        costs = (3.0 ** np.arange(fidelities)).tolist()
        biases = [0.2 / 2**m for m in range(fidelities - 1)] + [0.0]
        for arms in (1, 2, 7):
            top = rng.uniform(0.3, 0.7, arms)
            means = top + np.array(biases)[:, None] * rng.uniform(-1, 1, (fidelities, arms))
            yield Problem(means, Fidelities(costs, biases, SubGaussian(0.3)), Gaussian(0.3))
            yield Problem(means, Fidelities(costs, biases, Bounded(0, 1)), Bernoulli())


def _described(problem: Problem) -> str:
    kind = "normal" if isinstance(problem.rewards, Gaussian) else "0/1"
    return f"{problem.arms} arms, {len(problem.fidelities)} fidelities, {kind} rewards"
