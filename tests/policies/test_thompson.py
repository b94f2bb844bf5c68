"""Thompson: its draws by the rule written out, from the seed and the time; plays are a function of the log."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mfbandit as mfb
from mfbandit.core.keyed_draws import beta_of, normal_of, stream
from mfbandit.simulation.engines.interface import compiled_run
from mfbandit.simulation.engines.registry import engine_for
from mfbandit.simulation.plain import plain_run
from mfbandit.testing import check_policy
from tests.support.contracts import assert_resumes_at_any_point
from tests.support.effort import examples

NOISES = [mfb.Rate(), mfb.Bounded(-1, 3), mfb.SubGaussian(0.2)]


def drawn_by_hand(stats, noise, seed):
    """A number an arm, in the order of arms."""
    key, found = stream(seed, stats.time), []
    for arm in range(len(stats.active)):
        n, total = int(stats.counts[-1, arm]), float(stats.sums[-1, arm])
        if isinstance(noise, mfb.SubGaussian):
            value = total / max(n, 1) + noise.scale / math.sqrt(max(n, 1)) * normal_of(key, 64 * arm)
        else:
            ones = min(max((total - noise.low * n) / (noise.high - noise.low), 0.0), n)
            value = noise.low + (noise.high - noise.low) * beta_of(key, 64 * arm, 1 + ones, 1 + (n - ones))
        found.append(value if n else math.inf)
        found[-1] = found[-1] if stats.active[arm] else -math.inf
    return found


@given(st.integers(1, 6), st.integers(1, 2), st.sampled_from(NOISES), st.integers(0, 9), st.data())
@settings(max_examples=examples(100))
def test_it_plays_the_largest_draw(arms, fidelities, noise, seed, data):
    costs, biases = [1.0, 10.0][:fidelities], [0.5, 0.0][-fidelities:]
    fid = mfb.Fidelities(costs, biases, noise)
    stats = mfb.Stats.empty(fidelities, arms)
    low, high = (0.0, 1.0) if isinstance(noise, mfb.SubGaussian) else (noise.low, noise.high)
    for _ in range(data.draw(st.integers(0, 30))):
        at = data.draw(st.integers(0, fidelities - 1)), data.draw(st.integers(0, arms - 1))
        reward = low + (high - low) * data.draw(st.sampled_from([0.0, 0.3, 1.0]))
        stats.counts[at] += 1
        stats.sums[at] += reward
        stats.squares[at] += reward * reward
    stats.pending[-1] = data.draw(st.lists(st.integers(0, 2), min_size=arms, max_size=arms))
    stats.active[data.draw(st.integers(0, arms - 1))] = arms == 1
    policy = mfb.Thompson(seed=seed)
    expected = drawn_by_hand(stats, noise, seed)
    assert policy.index(stats, fid).tolist() == expected
    arm, fidelity = policy.choose(stats, fid)
    assert fidelity == fidelities - 1
    finite = [value for value in expected if math.isfinite(value)]
    untouched = [k for k in range(arms) if expected[k] == math.inf and not stats.pending[-1, k]]
    if untouched:
        assert arm == untouched[0]
    elif finite:
        assert expected[arm] == max(finite)


class TestContract:
    def test_any_situation(self):
        check_policy(mfb.Thompson())

    @pytest.mark.parametrize("batch", [1, 5])
    def test_resumes_at_any_point(self, batch):
        problem = mfb.paper_problem(3, seed=0)
        exp = mfb.Experiment(mfb.Thompson(seed=3), arms=5, fidelities=problem.fidelities)
        assert_resumes_at_any_point(exp, problem, batch)

    def test_plays_are_the_same_in_a_store(self, tmp_path):
        fid = mfb.Fidelities([1], concentration=mfb.Rate())
        plain = mfb.Experiment(mfb.Thompson(seed=7), arms=4, fidelities=fid)
        rng = np.random.default_rng(0)
        for part in range(3):
            with mfb.Store(tmp_path / "a.db") as store:
                if not part:
                    store.create("ads", mfb.Thompson(seed=7), arms=4, fidelities=fid)
                stored = store.open("ads")
                assert stored.policy == mfb.Thompson(seed=7)
                for _ in range(8):
                    for ours, right in zip(stored.ask(2), plain.ask(2), strict=True):
                        assert ours.arm == right.arm
                        clicks = mfb.Counts(int(rng.binomial(50, 0.1 * right.arm + 0.1)), 50)
                        stored.tell(ours, clicks)
                        plain.tell(right, clicks)

    @pytest.mark.parametrize("seed", [0, 2**40 + 3, 2**64 - 1, 2**64 + 5])
    @pytest.mark.parametrize("number", [2, 3])
    def test_compiled_it_makes_the_same_plays(self, number, seed):
        truth, policy = mfb.paper_problem(number, seed=2), mfb.Thompson(seed=seed)
        capitals = np.array([1500 * truth.fidelities.costs[-1]])
        engine = engine_for(truth, policy)
        assert engine is not None

        def tick(_):
            """Nobody looks at the progress."""

        runs = [
            plain_run(truth, policy, capitals, "paper", np.random.default_rng(1), tick),
            compiled_run(engine, truth, policy, capitals, "paper", np.random.default_rng(1), tick),
        ]
        assert runs[0].plays.tolist() == runs[1].plays.tolist()
        assert runs[0].regret.tolist() == runs[1].regret.tolist()

    def test_simulate_and_another_seed(self):
        truth = mfb.paper_problem(3, seed=1)
        one = [mfb.simulate(truth, mfb.Thompson(seed=seed), capital=3000, seed=4).regret[0, -1] for seed in (0, 0, 1)]
        assert one[0] == one[1] != one[2]


class TestPending:
    def test_they_change_no_posterior_and_workers_spread(self):
        fid = mfb.Fidelities([1], concentration=mfb.Rate())
        exp = mfb.Experiment(mfb.Thompson(), arms=6, fidelities=fid)
        exp.add_results([(arm, 0, mfb.Counts(4, 100), None) for arm in range(6)])
        assert len({play.arm for play in exp.ask(30)}) == 6

    def test_many_pending_first_plays_are_of_different_arms(self):
        exp = mfb.Experiment(mfb.Thompson(), arms=4, fidelities=mfb.Fidelities([1], concentration=mfb.Rate()))
        assert sorted(play.arm for play in exp.ask(8)) == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_it_finds_the_best_arm(noise):
    fid = mfb.Fidelities([1], concentration=noise)
    exp, rng = mfb.Experiment(mfb.Thompson(), arms=5, fidelities=fid, capital=1500), np.random.default_rng(0)
    for play in exp.plays():
        click, measured = float(rng.random() < 0.2 + 0.1 * play.arm), rng.normal(0.1 * play.arm, 0.2)
        exp.tell(play, measured if isinstance(noise, mfb.SubGaussian) else click)
    assert exp.best() == 4
    assert exp.stats.counts[0].argmax() == 4


def test_what_makes_no_sense_is_refused():
    wrong: list[Any] = [-1, 0.5, "1"]
    for bad in wrong:
        with pytest.raises(ValueError, match="seed must"):
            mfb.Thompson(seed=bad)
    with pytest.raises(ValueError, match="a concentration is needed here"):
        mfb.Experiment(mfb.Thompson(), arms=2, fidelities=mfb.Fidelities([1]))
