import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

import joblib
import numpy as np
import pytest

from mfbandit import (
    MFUCB,
    UCB,
    Bounded,
    Fidelities,
    Gaussian,
    Problem,
    Replay,
    SubGaussian,
    misleading_problem,
    paper_problem,
    regret,
    simulate,
)
from mfbandit.simulation import simulator as runs
from tests.simulation.test_heap_ucb import engine_plays
from tests.support.problems import SubExponential

PROBLEM = paper_problem(3, seed=1)


def same(one, other):
    return (
        one.regret.tobytes() == other.regret.tobytes()
        and one.plays.tobytes() == other.plays.tobytes()
        and one.steps.tolist() == other.steps.tolist()
        and one.spent.tolist() == other.spent.tolist()
    )


@dataclass(frozen=True)
class Slow(MFUCB):
    """MF-UCB as a policy of a user's own: the engine does not know it."""


class TestSameResults:
    def test_for_any_number_of_workers(self):
        sims = [simulate(PROBLEM, MFUCB(), capital=2e4, runs=7, seed=5, workers=n) for n in (1, 2, 3)]
        assert same(sims[0], sims[1])
        assert same(sims[0], sims[2])

    def test_under_joblibs_processes(self):
        here = simulate(PROBLEM, MFUCB(), capital=2e4, runs=3, seed=5, workers=1)
        with joblib.parallel_config("loky", n_jobs=2):
            there = simulate(PROBLEM, MFUCB(), capital=2e4, runs=3, seed=5)
        assert same(here, there)

    def test_under_joblibs_threads(self):
        here = simulate(PROBLEM, MFUCB(), capital=2e4, runs=3, seed=5, workers=1)
        with joblib.parallel_config("threading", n_jobs=2):
            assert same(here, simulate(PROBLEM, MFUCB(), capital=2e4, runs=3, seed=5))

    def test_under_a_backend_that_gives_all_results_at_once(self):
        here = simulate(PROBLEM, MFUCB(), capital=2e4, runs=2, seed=5, workers=1)
        with joblib.parallel_config("sequential"):
            assert same(here, simulate(PROBLEM, MFUCB(), capital=2e4, runs=2, seed=5))

    def test_in_a_new_process(self):
        code = (
            "import mfbandit as m; s = m.simulate(m.paper_problem(3, seed=1), m.MFUCB(), capital=2e4, runs=2, seed=5);"
            "print(s.regret.tobytes().hex())"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == simulate(PROBLEM, MFUCB(), capital=2e4, runs=2, seed=5).regret.tobytes().hex()

    @pytest.mark.parametrize(
        "problem", [paper_problem(3, seed=1), misleading_problem(6)], ids=["Bernoulli", "Gaussian"]
    )
    def test_in_the_engine_and_in_python(self, problem):
        capital = 300 * problem.fidelities.costs[-1]
        fast, slow = (simulate(problem, policy, capital=capital, runs=2, seed=5) for policy in (MFUCB(), Slow()))
        assert same(fast, slow)

    def test_run_i_depends_on_the_seed_and_on_i_alone(self):
        few, many = (simulate(PROBLEM, UCB(), capital=5000, runs=n, seed=5) for n in (2, 4))
        assert few.regret.tolist() == many.regret[:2].tolist()
        assert (many.regret[0] != many.regret[1]).any()
        root = np.random.SeedSequence(5)
        for _ in range(2):  # a sequence of the user's own is not used up
            assert same(few, simulate(PROBLEM, UCB(), capital=5000, runs=2, seed=root))
        assert root.n_children_spawned == 0

    def test_policies_with_the_same_seed_see_the_same_chance_at_first(self):
        one, other = (simulate(PROBLEM, MFUCB(rho=rho), capital=200, runs=2, seed=5, keep_plays=True) for rho in (1, 2))
        assert same(one, other)  # the first pass over the arms is the same for every rho


class TestRegretOnTheGrid:
    def test_equals_regret_of_the_plays(self):
        # The run's plays, made again by the engine, and accounted for by the function for histories.
        seed = np.random.SeedSequence(5, spawn_key=(0,))
        sim = simulate(PROBLEM, MFUCB(rho=0.1), capital=9_999.5, runs=1, seed=5, grid=37)
        plays = engine_plays(PROBLEM, MFUCB(rho=0.1), int(sim.steps[0]) + 1, seed)
        expected = regret(PROBLEM, plays[:, 0], plays[:, 1], sim.capital)
        assert sim.regret[0].tolist() == expected.tolist()
        assert sim.plays.sum() == sim.steps[0]

    def test_capitals_of_ones_own(self):
        sim = simulate(PROBLEM, UCB(), capital=500, grid=[10, 99.5, 400])
        assert sim.capital.tolist() == [10, 99.5, 400, 500]
        every = simulate(PROBLEM, UCB(), capital=500, grid=50)
        assert sim.regret[0, 2] == every.regret[0, 39]

    def test_unused_capital_is_full_regret(self):
        sim = simulate(PROBLEM, UCB(), capital=19, grid=[5, 19])
        assert sim.regret[0, 0] == pytest.approx(5 * 0.9)
        assert sim.spent[0] == 10
        assert sim.steps[0] == 1

    def test_accounts(self):
        sims = {name: simulate(PROBLEM, MFUCB(), capital=4000, account=name) for name in ("paper", "top", "harmless")}
        final = {name: sim.regret[0, -1] for name, sim in sims.items()}
        assert final["harmless"] < final["paper"] < final["top"] == pytest.approx(4000 * 0.9)


def test_plays_of_every_run():
    sim = simulate(PROBLEM, UCB(), capital=5000, runs=3, keep_plays=True)
    assert sim.run_plays is not None
    assert sim.run_plays.shape == (3, 2, 200)
    assert sim.run_plays.mean(axis=0).tolist() == sim.plays.tolist()
    assert sim.run_plays.sum(axis=(1, 2)).tolist() == sim.steps.tolist() == [500] * 3
    assert not sim.run_plays[:, 0].any()


def test_a_psi_of_ones_own_runs_in_python():
    problem = Problem([[0.1, 0.2], [0.2, 0.1]], Fidelities([1, 10], [0.3, 0], SubExponential()), Gaussian(0.1))
    assert simulate(problem, MFUCB(), capital=200).plays.sum() > 0


def test_mfucb_beats_ucb_and_loses_where_it_is_misled():
    # Fixed seeds; the ratios are about 0.4 and 2.3, far from 1.
    for problem, better in ((PROBLEM, MFUCB()), (misleading_problem(), UCB())):
        capital = 200 * problem.arms * problem.fidelities.costs[-1]
        final = {
            type(p).__name__: simulate(problem, p, capital=capital, runs=10).regret[:, -1].mean()
            for p in (UCB(), MFUCB())
        }
        assert min(final, key=lambda name: final[name]) == type(better).__name__


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"capital": 0.5}, "capital must pay for the first play, which costs 1 with MFUCB, got 0.5"),
            ({"capital": None}, "capital must be a number, got None"),
            ({"runs": 0}, "runs must be at least 1, got 0"),
            ({"runs": 1.5}, "runs must be a whole number, got 1.5"),
            ({"workers": 0}, "workers must be at least 1, got 0"),
            ({"seed": "x"}, "seed must be a whole number, got 'x'"),
            ({"grid": 0}, "grid must have at least 1 point, got 0"),
            ({"grid": [5, 1]}, r"grid must be increasing capitals above 0, got \[5, 1\]"),
            ({"grid": []}, "grid must be increasing capitals above 0"),
            ({"seed": -1}, "seed must not be negative, got -1"),
            ({"grid": "abc"}, "grid must be increasing capitals above 0, got 'abc'"),
            ({"grid": [1e9]}, r"grid must not go beyond the capital 100, got 1,000,000,000"),
            ({"account": "mine"}, "account must be one of"),
        ],
    )
    def test_bad_input(self, options, message):
        with pytest.raises(ValueError, match=message):
            simulate(PROBLEM, MFUCB(), **({"capital": 100} | options))

    def test_no_problem(self):
        with pytest.raises(ValueError, match="problem must be a Problem, got 3"):
            simulate(3, MFUCB(), capital=100)  # type: ignore[arg-type]

    def test_a_policys_class(self):
        with pytest.raises(ValueError, match="policy must be an object with choose, index and recommend"):
            simulate(PROBLEM, MFUCB, capital=100)  # type: ignore[arg-type]

    @pytest.mark.parametrize("workers", [1, 2])
    def test_a_policy_that_chooses_what_is_not_there(self, workers):
        class Wild(UCB):
            def choose(self, stats, _fidelities):
                return (0, 0) if stats.time < 50 else (200, 0)

        with pytest.raises(ValueError, match="Wild chose arm 200 at fidelity 0"):
            simulate(PROBLEM, Wild(), capital=100, runs=4, workers=workers)

    @pytest.mark.parametrize("policy", [UCB(), MFUCB(), Slow()], ids=str)
    def test_a_table_that_runs_dry(self, policy):
        past = Replay([[[0.5, 0.6]] * 2, [[0.5, 0.6]] * 2], replace=False)
        fid = Fidelities([1, 10], [0.3, 0], Bounded())
        level = 1 if isinstance(policy, UCB) else 0
        with pytest.raises(RuntimeError, match=f"exhausted: arm 0 has 2 recorded rewards at fidelity {level}"):
            simulate(Problem(past.means, fid, past), policy, capital=1000)

    def test_biases_that_are_not_known(self):
        problem = Problem([[0.1], [0.1]], Fidelities([1, 2], concentration=SubGaussian(1)), Gaussian(1))
        assert simulate(problem, UCB(), capital=100).steps[0] == 50
        with pytest.raises(ValueError, match="biases are needed here"):
            simulate(problem, MFUCB(), capital=100)


def test_threads_stop_even_if_the_error_is_kept(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(runs._Gather, "add", interrupted)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt) as kept:
        simulate(PROBLEM, MFUCB(), capital=1e6, runs=50, workers=2)
    assert threading.active_count() == before
    assert kept.value is not None


def test_unused_capital_is_shown_as_done(capsys):
    for policy in (UCB(), Slow()):
        simulate(PROBLEM, policy, capital=19, progress=True)
        assert "100%" in capsys.readouterr().err


def test_progress(capsys):
    simulate(PROBLEM, UCB(), capital=5000, runs=2, progress=True)
    shown = capsys.readouterr()
    assert "UCB, 2 runs" in shown.err
    assert "100%" in shown.err
    assert not shown.out
    with joblib.parallel_config("sequential"):
        simulate(PROBLEM, UCB(), capital=5000, runs=1, progress=True)
    assert "UCB, 1 run " in capsys.readouterr().err


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_stops_it(workers):
    code = (
        "import mfbandit as m; p = m.paper_problem(1);"
        "m.simulate(p, m.MFUCB(), capital=1e5);"
        "print('ready', flush=True);"
        f"m.simulate(p, m.MFUCB(), capital=1e12, runs=4, workers={workers})"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "ready"
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)  # a tenth of a second is usual; without the interrupt, an hour
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors


@pytest.mark.parametrize("policy", [MFUCB(), Slow()], ids=str)
def test_progress_can_be_ones_own(policy):
    shares: list[float] = []
    simulate(PROBLEM, policy, capital=3000, runs=3, progress=shares.append)
    assert sum(shares) == pytest.approx(1)
    assert min(shares) >= 0
