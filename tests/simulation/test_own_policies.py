"""Policies of one's own, compiled: the plays of their own functions in Python, and clear words where they are wrong."""

import math
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mfbandit as mfb
from mfbandit.core.keyed_draws import keyed_normal, keyed_uniform
from mfbandit.errors import InvalidArgument
from mfbandit.policies.compiled import cells_of, clock_of
from mfbandit.simulation.engines.binding import compiled_function
from mfbandit.simulation.engines.registry import engine_for
from mfbandit.simulation.plain import plain_run
from tests.support.effort import examples


def variance_of(cells, m, mean):
    return max(cells.squares[m] / cells.counts[m] - mean * mean, 0.0)


def ucbv_index(cells, clock, parameters):
    if cells.counts[-1] == 0:
        return math.inf
    mean, n = cells.sums[-1] / cells.counts[-1], cells.plays[-1]
    level = parameters[0] * clock.log_t
    return mean + math.sqrt(2.0 * variance_of(cells, -1, mean) * level / n) + 3.0 * level / n


@dataclass(frozen=True)
class UCBV(mfb.IndexPolicy):
    """UCB-V of Audibert, Munos and Szepesvari, at the highest fidelity."""

    rho: float = 1.2
    lazy: bool = True

    def compiled(self, _fidelities):
        return mfb.CompiledIndex(ucbv_index, parameters=(self.rho,), rises_with="log t" if self.lazy else None)


def tightest(cells, clock, parameters):
    biases, scale = parameters
    best = math.inf
    for m in range(len(cells.plays)):
        if cells.counts[m] > 0:
            width = scale * math.sqrt(4.0 * clock.log_t / cells.plays[m])
            best = min(best, cells.sums[m] / cells.counts[m] + biases[m] + width)
    return best


def least_seen(cells, _clock, _parameters):
    chosen = 0
    for m in range(len(cells.plays)):
        if cells.plays[m] < cells.plays[chosen] * 0.3:
            chosen = m
    return chosen


@dataclass(frozen=True)
class Tightest(mfb.IndexPolicy):
    """A policy with a fidelity of its own; its index rises with log t."""

    def compiled(self, fidelities):
        return mfb.CompiledIndex(tightest, least_seen, (fidelities.known_biases, 0.3), "log t")


def by_capital(cells, clock, _parameters):
    if cells.counts[0] == 0:
        return 2.0  # finite: the heap begins at once
    return cells.sums[0] / cells.counts[0] + math.sqrt(math.log(1.0 + clock.spent) / cells.plays[0])


@dataclass(frozen=True)
class ByCapital(mfb.IndexPolicy):
    """A policy whose index rises with the capital spent, at the lowest fidelity."""

    def compiled(self, _fidelities):
        return mfb.CompiledIndex(by_capital, lowest, rises_with="capital")


def lowest(_cells, _clock, _parameters):
    return 0


def twice_first(cells, clock, _parameters):
    n = cells.plays[-1]
    return cells.sums[-1] / n + math.sqrt(clock.log_t / n) if n >= 2 else math.inf


@dataclass(frozen=True)
class TwiceFirst(mfb.IndexPolicy):
    """A policy that plays each arm twice first."""

    def compiled(self, _fidelities):
        return mfb.CompiledIndex(twice_first, rises_with="log t")


def dropping(cells, clock, _parameters):
    n = cells.plays[-1]
    if n == 0:
        return math.inf
    mean = cells.sums[-1] / n
    return mean + math.sqrt(clock.log_t / n) if n <= 3 or mean > 0.5 else -math.inf


@dataclass(frozen=True)
class Dropping(mfb.IndexPolicy):
    """A policy that gives up arms whose mean is low; in the end perhaps all."""

    lazy: bool = True

    def compiled(self, _fidelities):
        return mfb.CompiledIndex(dropping, rises_with="log t" if self.lazy else None)


def sampled(table, clock, parameters, _state):
    best, chosen = -math.inf, 0
    for k in range(clock.arms):
        n = table.plays[k, -1]
        mean = table.sums[k, -1] / max(table.counts[k, -1], 1)
        value = mean + keyed_normal(parameters[0], clock.t, k) / math.sqrt(n + 1)
        if value > best:
            best, chosen = value, k
    return chosen, len(table.counts[0]) - 1


@dataclass(frozen=True)
class Sampled:
    """A policy that draws; its plain form in NumPy's shapes."""

    seed: int = 3

    def compiled(self, _fidelities):
        return mfb.CompiledChoice(sampled, parameters=(self.seed,))

    def index(self, stats, _fidelities):
        t = stats.time
        values = []
        for k in range(len(stats.active)):
            cells = cells_of(stats, k)
            mean = cells.sums[-1] / max(cells.counts[-1], 1)
            values.append(mean + keyed_normal(self.seed, t, k) / math.sqrt(cells.plays[-1] + 1))
        return np.where(stats.active, values, -np.inf)

    def choose(self, stats, fidelities):
        return int(self.index(stats, fidelities).argmax()), len(fidelities) - 1

    def recommend(self, stats, _fidelities):
        return int(np.where(stats.active & stats.counts.any(axis=0), stats.sums[-1], -np.inf).argmax())


def begin_turns(arms, _fidelities, _parameters):
    return (np.zeros(arms), np.zeros(1, dtype=np.int64))


def whose_turn(_table, _clock, _parameters, state):
    return state[1][0], 0


def next_turn(_table, clock, _parameters, state, arm, _fidelity, reward):
    state[0][arm] += reward
    if state[0][arm] > 0.5 * clock.t / clock.arms:
        state[1][0] = arm
    else:
        state[1][0] = (arm + 1) % clock.arms


@dataclass(frozen=True)
class Turns:
    """A policy with a state: it stays with an arm while its rewards add up fast enough."""

    def compiled(self, _fidelities):
        return mfb.CompiledChoice(whose_turn, begin_turns, next_turn)

    def remember(self, stats, fidelities):
        _, at = stats.memory if stats.memory is not None else (np.zeros(len(stats.active)), 0)
        new = stats.sums.sum(axis=0)
        stays = new[at] > 0.5 * clock_of(stats.told, fidelities).t / len(new)
        return new, at if stays else (at + 1) % len(new)

    def choose(self, stats, _fidelities):
        at = 0 if stats.memory is None else stats.memory[1]
        return (at if stats.active[at] else int(stats.active.argmax())), 0

    def index(self, stats, _fidelities):
        return np.where(stats.active, 0.0, -np.inf)

    def recommend(self, stats, _fidelities):
        return int((stats.active & stats.counts.any(axis=0)).argmax())


POLICIES = [
    UCBV(),
    UCBV(lazy=False),
    Tightest(),
    ByCapital(),
    TwiceFirst(),
    Dropping(),
    Dropping(lazy=False),
    Sampled(),
    Turns(),
]


def problem_of(seed, arms, fidelities, bernoulli):
    rng = np.random.default_rng(seed)
    biases = [0.2 / 2**m for m in range(fidelities - 1)] + [0.0]
    means = rng.uniform(0.3, 0.7, arms).round(1) + np.array(biases)[:, None] * rng.integers(-1, 2, (fidelities, arms))
    noise = mfb.Bounded(0, 1) if bernoulli else mfb.SubGaussian(0.3)
    fid = mfb.Fidelities((3.0 ** np.arange(fidelities)).tolist(), biases, noise)
    return mfb.Problem(means, fid, mfb.Bernoulli() if bernoulli else mfb.Gaussian(0.3))


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@settings(max_examples=examples(20), deadline=None)
@given(seed=st.integers(0, 10**6), arms=st.integers(1, 12), fidelities=st.integers(1, 3), bernoulli=st.booleans())
def test_compiled_runs_are_plain_runs(policy, seed, arms, fidelities, bernoulli):
    problem = problem_of(seed, arms, fidelities, bernoulli)
    capital = 150 * problem.fidelities.costs[-1]
    ours = mfb.simulate(problem, policy, capital=capital, seed=seed, grid=40, keep_plays=True)
    child = np.random.SeedSequence(seed, spawn_key=(0,))
    capitals = np.linspace(0, capital, 41)[1:]
    plain = plain_run(problem, policy, capitals, "paper", np.random.default_rng(child), lambda _: None)
    assert ours.run_plays is not None
    assert np.array_equal(ours.run_plays[0], plain.plays)
    assert np.array_equal(ours.regret[0], plain.regret)


@pytest.mark.parametrize("policy", [UCBV(), Sampled()], ids=repr)
def test_the_contract_holds(policy):
    mfb.check_policy(policy)


def test_one_with_few_looks_and_one_with_all_make_the_same_plays_with_many_arms():
    problem = mfb.paper_problem(1, seed=0)
    sims = [mfb.simulate(problem, UCBV(lazy=lazy), capital=3e6, seed=2) for lazy in (True, False)]
    assert np.array_equal(sims[0].plays, sims[1].plays)
    assert np.array_equal(sims[0].regret, sims[1].regret)


@pytest.mark.only_cover
def test_the_same_without_compiling():
    """The kernels as plain Python make the same plays; this is also how their lines are counted as covered."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--no-cov",
        "-p",
        "no:cacheprovider",
        "-k",
        "are_plain_runs",
        __file__,
    ]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "MFBANDIT_THOROUGH": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


# What is wrong


def falling(cells, clock, _parameters):
    return -clock.log_t if cells.plays[-1] else math.inf


def by_both(cells, clock, _parameters):
    return clock.log_t + clock.spent if cells.plays[-1] else math.inf


def not_a_number(cells, _clock, _parameters):
    return math.nan if cells.plays[-1] > 1 else -1.0 * cells.plays[-1]


def stays_with_the_first(others):
    def index(cells, clock, _parameters):
        n = cells.plays[-1]
        return others(clock) if n == 1 else 100.0 * n if n else math.inf

    return index


def no_number_later(clock):
    return math.nan if clock.t > 40 else 50.0


def lower_later(clock):
    return 50.0 - clock.log_t


unseen_nan = stays_with_the_first(no_number_later)
unseen_fall = stays_with_the_first(lower_later)


def too_high(cells, _clock, _parameters):
    return 7 if cells.plays.sum() else 0


def with_text(cells, _clock, _parameters):
    return float(f"{cells.plays[-1]:.1f}".zfill(3))


def other_plays(cells, _clock, _parameters):
    return -1.0 * cells.plays.sum()


@dataclass(frozen=True)
class Wrong(mfb.IndexPolicy):
    """A policy made of any functions."""

    functions: mfb.CompiledIndex

    def compiled(self, _fidelities):
        return self.functions


@dataclass(frozen=True)
class Different(UCBV):
    """A policy whose plain form differs from its compiled one."""

    def choose(self, stats, fidelities):
        arm, m = super().choose(stats, fidelities)
        return (arm if stats.time < 9 else int(np.flatnonzero(stats.active)[-1])), m


@pytest.mark.parametrize(
    ("functions", "said"),
    [
        (mfb.CompiledIndex(falling, rises_with="log t"), r"index \(falling\) must only rise .* arm \d+ fell at t = "),
        (mfb.CompiledIndex(by_both, rises_with="log t"), r"index \(by_both\) must be a number or infinite, got NaN"),
        (mfb.CompiledIndex(not_a_number), r"index \(not_a_number\) must be a number or infinite, got NaN for arm 0"),
        (
            mfb.CompiledIndex(unseen_nan, rises_with="log t"),
            r"index \(index\) must be a number or infinite, got NaN",
        ),
        (mfb.CompiledIndex(unseen_fall, rises_with="log t"), r"index \(index\) must only rise .* arm \d+ fell at t = "),
        (mfb.CompiledIndex(other_plays, too_high), r"fidelity \(too_high\) must return a fidelity from 0 to 1, got 7"),
        (mfb.CompiledIndex(with_text), r"index \(with_text\) must be a function that Numba can compile: "),
    ],
)
def test_faults_are_named_with_the_function(functions, said):
    policy, problem = Wrong(functions), problem_of(0, 5, 2, bernoulli=False)
    with pytest.raises(InvalidArgument, match=said):
        mfb.simulate(problem, policy, capital=1000)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (Wrong(mfb.CompiledIndex(falling, rises_with="log t")), "index must only rise with log t, as rises_with says"),
        (Wrong(mfb.CompiledIndex(by_both, rises_with="log t")), "index must depend on the clock by log t alone"),
        (Different(), "compiled must make the plays of choose; play 10 is"),
        (Wrong(mfb.CompiledIndex(with_text)), "must be a function that Numba can compile"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_contract_finds_what_is_wrong(policy, said):
    with pytest.raises(mfb.ContractBroken, match=said):
        mfb.check_policy(policy)


def made(kind: Any, *arguments: Any, **named: Any) -> object:
    """Whatever their types."""
    return kind(*arguments, **named)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: made(mfb.CompiledIndex, "index"), "index must be a function, got 'index'"),
        (lambda: made(mfb.CompiledIndex, ucbv_index, 3), "fidelity must be a function, got 3"),
        (lambda: made(mfb.CompiledIndex, ucbv_index, rises_with="t"), 'rises_with must be "log t", "capital" or None'),
        (lambda: mfb.CompiledIndex(ucbv_index, parameters=("a",)), "parameters must be numbers and sequences"),
        (lambda: made(mfb.CompiledIndex, ucbv_index, parameters=[1]), "parameters must be a tuple"),
        (lambda: made(mfb.CompiledChoice, None), "choose must be a function, got None"),
    ],
)
def test_wrong_descriptions(make, said):
    with pytest.raises(InvalidArgument, match=said):
        make()


def test_compiled_must_return_one_of_two_things():
    class Neither(UCBV):
        def compiled(self, _fidelities):
            return 3

    with pytest.raises(InvalidArgument, match="must return a CompiledIndex or a CompiledChoice, got 3"):
        engine_for(mfb.paper_problem(3), Neither())


# Keeping what was compiled

SCRIPT = """
import math, sys
from dataclasses import dataclass
import mfbandit as mfb
def helper(x): return {factor} * x
def index(cells, clock, parameters):
    n = cells.plays[-1]
    return cells.sums[-1] / n + helper(math.sqrt(clock.log_t / n)) if n else math.inf
@dataclass(frozen=True)
class Mine(mfb.IndexPolicy):
    def compiled(self, fidelities): return mfb.CompiledIndex(index, rises_with="log t")
sim = mfb.simulate(mfb.paper_problem(3), Mine(), capital=3e4)
from mfbandit.simulation.engines.own_index import _kernel
kernel = _kernel(index, None, "log t")
print(sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values()), sim.regret[0, -1])
"""


@pytest.mark.slow
def test_a_second_process_does_not_compile_and_a_changed_helper_does(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    def run(factor):
        script = SCRIPT.format(factor=factor)
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        hits, misses, regret = done.stdout.split()
        return int(hits), int(misses), regret

    first, again, other = run(1.0), run(1.0), run(0.5)
    assert first[:2] == other[:2] == (0, 1)
    assert again[:2] == (1, 0)
    assert first[2] == again[2] != other[2]


def test_without_a_folder_to_write_to_everything_works(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(blocked))
    sim = mfb.simulate(problem_of(1, 3, 1, bernoulli=True), Wrong(mfb.CompiledIndex(other_plays)), capital=30)
    assert sim.steps[0] == 30


# Draws


@given(seed=st.integers(0, 2**63 - 1), t=st.integers(1, 2**40), number=st.integers(0, 10**6))
def test_keyed_draws_are_the_same_compiled(seed, t, number):
    assert compiled_function(keyed_uniform)(seed, t, number) == keyed_uniform(seed, t, number) < 1


def test_keyed_draws_look_like_draws():
    drawn = np.array([[keyed_normal(5, t, k) for k in range(40)] for t in range(1, 401)])  # tolerance: 4 deviations
    assert abs(drawn.mean()) < 4 / math.sqrt(drawn.size)
    assert abs(drawn.var() - 1) < 4 * math.sqrt(2 / drawn.size)
    for shifted in (drawn[1:] * drawn[:-1], drawn[:, 1:] * drawn[:, :-1]):
        assert abs(shifted.mean()) < 4 / math.sqrt(shifted.size)
