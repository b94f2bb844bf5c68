"""Every registered engine makes the plays of the plain path, and a new one takes a file and a line."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfbandit import (
    IISE,
    LUCB,
    MFUCB,
    UCB,
    Fidelities,
    Gaussian,
    MFAda,
    MFAuto,
    MFBayes,
    MFGrad,
    MFSure,
    MFTopTwo,
    Problem,
    Replay,
    SubGaussian,
    paper_problem,
    simulate,
)
from mfbandit.errors import MissingExtra, ReplayExhausted
from mfbandit.simulation import plain_run
from mfbandit.simulation.engines import registry
from mfbandit.simulation.engines.interface import Engine
from mfbandit.simulation.engines.registry import ENGINES, engine_for, one_run, runner_for
from tests.support import greedy_engine
from tests.support.effort import examples
from tests.support.engines import engine_plays, listed
from tests.support.oracle_policies import policy_plays
from tests.support.strategies import problems

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"

# Policies of each engine; one that is registered and has none here fails a test.
POLICIES: dict[str, list[Any]] = {
    "heap_ucb": [UCB(0.1), UCB(), MFUCB(0.1), MFUCB()],
    "iise": [IISE(0.01)],
    "kl_ucb": [UCB(0.5, kl=True), MFUCB(0.5, kl=True)],
    "lucb": [LUCB(0.9, 0.8), LUCB(0.9, 0.5, explore="B", guard=0.3)],
    "mfada": [MFAda()],
    "mfauto": [MFAuto(), MFAuto("strict")],
    "mfbayes": [MFBayes(), MFBayes(safeguard=0.2, kappa=1.0)],
    "mfgrad": [MFGrad(0.3, "decreasing")],
    "mfsure": [MFSure(), MFSure(tolerance=0.05)],
    "mftoptwo": [MFTopTwo(capital=60), MFTopTwo(capital=2000), MFTopTwo(capital=300, deterministic=True)],
}
PLAYS = {"iise": 80, "mfgrad": 80, "mftoptwo": 80}  # 200 of others: these are slow in Python, or make many cheap plays
CASES = [(name, policy) for name, policies in POLICIES.items() for policy in policies]

if TYPE_CHECKING:  # mypy sees to it that a module has all functions of an engine
    from mfbandit.simulation.engines import (
        heap_ucb,
        iise,
        kl_ucb,
        lucb,
        mfada,
        mfauto,
        mfbayes,
        mfgrad,
        mfsure,
        mftoptwo,
    )

    _ENGINES: tuple[
        Engine[UCB | MFUCB, Any, Any],
        Engine[IISE, Any, Any],
        Engine[UCB | MFUCB, Any, Any],
        Engine[LUCB, Any, Any],
        Engine[MFAda, Any, Any],
        Engine[MFAuto, Any, Any],
        Engine[MFBayes, Any, Any],
        Engine[MFGrad, Any, Any],
        Engine[MFSure, Any, Any],
        Engine[MFTopTwo, Any, Any],
        Engine[Any, Any, Any],
    ] = (heap_ucb, iise, kl_ucb, lucb, mfada, mfauto, mfbayes, mfgrad, mfsure, mftoptwo, greedy_engine)


@dataclass(frozen=True)
class Greedy:
    """Play the best mean at the highest fidelity."""

    def index(self, stats, _fidelities):
        means = np.where(stats.counts[-1] > 0, stats.top.means[0], np.inf)
        return np.where(stats.active, means, -np.inf)

    def choose(self, stats, fidelities):
        return int(self.index(stats, fidelities).argmax()), len(fidelities) - 1

    def recommend(self, stats, _fidelities):
        means = np.where(stats.active & (stats.counts[-1] > 0), stats.top.means[0], -np.inf)
        return int(means.argmax())


@pytest.fixture
def with_greedy(monkeypatch):
    monkeypatch.setattr(registry, "ENGINES", ENGINES | {"tests.support.greedy_engine": (Greedy,)})


def both_ways(problem, policy, capitals, account, seed):
    """One run by whatever the registry has for the policy, and one in Python."""
    ticks: list[float] = []
    chance = [np.random.default_rng(seed) for _ in range(2)]
    fast = runner_for(problem, policy)(problem, policy, capitals, account, chance[0], ticks.append)
    assert sum(ticks) == pytest.approx(1)
    return fast, plain_run(problem, policy, capitals, account, chance[1], lambda _: None)


def same(one, other):
    return (
        one.regret.tobytes() == other.regret.tobytes()
        and one.plays.tolist() == other.plays.tolist()
        and (one.steps, one.spent, one.answer) == (other.steps, other.spent, other.answer)
    )


def test_every_engine_is_tested_here_with_every_policy_of_its():
    assert {name.rsplit(".", 1)[-1] for name in ENGINES} == set(POLICIES)
    for name, registered in ENGINES.items():
        assert {type(policy) for policy in POLICIES[name.rsplit(".", 1)[-1]]} == set(registered)


@pytest.mark.parametrize(("name", "policy"), CASES, ids=str)
class TestSameAsThePlainPath:
    @given(problem=problems(max_arms=12), seed=st.integers(0, 2**32), stretch=st.sampled_from([1, 37, 10**9]))
    @settings(max_examples=examples(25))
    def test_plays(self, name, policy, problem, seed, stretch):
        engine = engine_for(problem, policy)
        if engine is None:  # bounds by divergence, where rewards lie in no range
            assert name == "kl_ucb"
            return
        assert engine is import_module(f"mfbandit.simulation.engines.{name}")
        n = PLAYS.get(name, 200)
        plays = engine_plays(problem, policy, n, seed, stretch=stretch)
        assert listed(plays) == policy_plays(problem, policy, n, seed)

    @given(
        problem=problems(max_arms=6, max_fidelities=3),
        account=st.sampled_from(["paper", "own", "top", "harmless"]),
        shares=st.lists(st.floats(0.01, 1.0), max_size=5, unique=True),
        seed=st.integers(0, 2**32),
    )
    @settings(max_examples=examples(25))
    def test_regret_plays_and_cost(self, name, policy, problem, account, shares, seed):
        if engine_for(problem, policy) is None:
            assert name == "kl_ucb"
            return
        capitals = (
            np.array([*sorted({*shares} - {1.0}), 1.0]) * problem.fidelities.costs[-1] * (PLAYS.get(name, 200) / 5)
        )
        fast, slow = both_ways(problem, policy, capitals, account, seed)
        assert same(fast, slow)


class TestNewEngine:
    """The file that CONTRIBUTING shows, and one line in the registry."""

    @given(problem=problems(max_arms=12, any_psi=True), seed=st.integers(0, 2**32))
    @settings(max_examples=examples(25))
    def test_makes_the_plays_of_its_policy(self, problem, seed):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(registry, "ENGINES", ENGINES | {"tests.support.greedy_engine": (Greedy,)})
            assert engine_for(problem, Greedy()) is greedy_engine
            assert listed(engine_plays(problem, Greedy(), 100, seed)) == policy_plays(problem, Greedy(), 100, seed)
            capitals = np.array([3.5, 30.0]) * problem.fidelities.costs[-1]
            assert same(*both_ways(problem, Greedy(), capitals, "paper", seed))

    @pytest.mark.usefixtures("with_greedy")
    def test_simulate_takes_it(self, monkeypatch):
        monkeypatch.setattr(registry, "FALL_BACK", None)
        assert simulate(paper_problem(3), Greedy(), capital=4000, runs=2, workers=1).steps.tolist() == [400, 400]

    @pytest.mark.usefixtures("with_greedy")
    def test_a_table_that_runs_dry_is_told_by_the_problems_fidelity(self):
        past = Replay([[[0.1, 0.2]] * 2, [[0.5, 0.6]] * 2], replace=False)
        problem = Problem(past.means, Fidelities([1, 10]), past)
        with pytest.raises(ReplayExhausted, match="arm 0 has 2 recorded rewards at fidelity 1"):
            simulate(problem, Greedy(), capital=1000)

    def test_contributing_shows_the_very_file(self):
        section = CONTRIBUTING.read_text().split("## Adding an engine: one file, one line")[1]
        shown = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)[0]
        assert shown == Path(greedy_engine.__file__).read_text()


class TestFallBack:
    def test_policies_without_an_engine(self):
        problem = Problem([[0.1, 0.2]], Fidelities([1], concentration=SubGaussian(0.1)), Gaussian(0.1))
        assert runner_for(problem, Greedy()) is plain_run
        assert one_run(problem, Greedy(), np.array([20.0]), "paper", np.random.SeedSequence(0)).steps == 20

    def test_numba_is_not_needed_where_no_engine_is(self):
        code = (
            "import sys, mfbandit as m\n"
            "class Mine(m.MFTopTwo): pass\n"
            "m.simulate(m.paper_problem(3), Mine(capital=3000), capital=3000)\n"
            "print('numba' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "False"

    def test_without_numba_the_error_names_the_extra(self, monkeypatch):
        for name in [name for name in sys.modules if name.startswith("mfbandit.simulation.engines.heap")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.delitem(sys.modules, "mfbandit.simulation.engines.kernels")
        monkeypatch.setitem(sys.modules, "numba", None)
        with pytest.raises(MissingExtra, match=r"simulate needs numba: pip install 'mfbandit\[sim\]'"):
            simulate(paper_problem(3), UCB(), capital=1000)


@pytest.mark.only_cover
def test_the_same_without_compiling():
    """The kernels as plain Python make the same plays; this is also how their lines are counted as covered."""
    # The other engines have longer tests of their own.
    chosen = "TestSameAsThePlainPath and (iise or lucb or mfauto or mfgrad or mfsure or mftoptwo)"
    command = [sys.executable, "-m", "pytest", "-q", "--no-cov", "-p", "no:cacheprovider", "-k", chosen, __file__]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
