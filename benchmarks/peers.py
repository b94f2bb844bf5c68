"""The package's rules beside those of other packages: plays a second, and regret, on the same problems in one run.

    pip install -e '.[peers]'
    python benchmarks/peers.py [--out FILE.json] [--runs 20] [--plays 2000]

UCB1, KL-UCB and Thompson sampling on 0/1 rewards, by mfbandit, pymab, river, MABWiser and SMPyBandits: those that are
installed. Contenders take turns, run by run; seconds are of this process, with the draws of rewards. Each package makes
its runs in the way that is the fastest it offers: ``simulate`` here, ``Experiment`` in pymab, a loop of pull and update
elsewhere. Arms with the same index may be told apart by chance in one package and by order in another, and each has its
own constant: the table says which. Rules for finding the best arm with confidence are in ``identification.py``; their
authors' scripts are in no package registry.
"""

import argparse
import contextlib
import io
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

import mfbandit as mfb
from mfbandit._internal.formatting import columns, readable
from mfbandit._internal.typing import FloatArray, IntArray

Run = Callable[[FloatArray, int, int], IntArray]  # means, plays, seed -> how often each arm was played
Contenders = dict[tuple[str, str], Run]  # by rule and package

PACKAGES = ("pymab", "river", "mabwiser", "SMPyBandits")
PROBLEMS = {"10 arms": np.linspace(0.1, 0.9, 10), "200 arms": np.linspace(0.1, 0.9, 200)}
SEED = 20261119


def ours(policy: mfb.Policy) -> Run:
    """A run of ``simulate``; every play costs 1."""
    fidelities = mfb.Fidelities([1.0], concentration=mfb.Bounded())

    def run(means: FloatArray, plays: int, seed: int) -> IntArray:
        problem = mfb.Problem(means[None], fidelities, mfb.Bernoulli())
        made = mfb.simulate(problem, policy, capital=plays, seed=seed, grid=1, workers=1, progress=False)
        return made.plays[0].round().astype(np.int64)

    return run


def by(update: Callable[..., object], arm: int) -> Callable[[float], object]:
    """What is called with the reward of an arm."""
    return lambda reward: update(arm, reward)


def looped(play: Callable[[int, int], Iterator[tuple[int, Callable[[float], object]]]]) -> Run:
    """A run of a package without a simulator: it names an arm, and is told the reward."""

    def run(means: FloatArray, plays: int, seed: int) -> IntArray:
        rng, counts, chances = np.random.default_rng(seed), np.zeros(len(means), dtype=np.int64), means.tolist()
        steps = play(len(means), seed)
        for _ in range(plays):
            arm, tell = next(steps)
            counts[arm] += 1
            tell(float(rng.random() < chances[arm]))
        return counts

    return run


def pymab_rules() -> Contenders:
    """Pymab's rules, in its own experiment; c of KL-UCB must be positive, and all others have 0."""
    import pymab
    from pymab.policies import BernoulliThompsonSamplingPolicy, KLUCBPolicy, UCBPolicy

    def rule(make: Callable[[int], Any]) -> Run:
        def run(means: FloatArray, plays: int, seed: int) -> IntArray:
            made = pymab.Experiment(
                environment=pymab.BanditEnvironment(means=means, reward_model=pymab.BernoulliReward()),
                policies={"rule": make(len(means))},
                config=pymab.ExperimentConfig(horizon=plays, n_replicates=1, seed=seed),
            ).run()
            counts: IntArray = np.bincount(made.actions.ravel(), minlength=len(means))
            return counts

        return run

    return {
        ("UCB1", "pymab"): rule(lambda arms: UCBPolicy(n_arms=arms)),
        ("KL-UCB", "pymab"): rule(lambda arms: KLUCBPolicy(n_arms=arms, c=1e-9)),
        ("Thompson", "pymab"): rule(lambda arms: BernoulliThompsonSamplingPolicy(n_arms=arms)),
    }


def river_rules() -> Contenders:
    """River's rules."""
    from river import bandit, proba

    def rule(make: Callable[[int], Any]) -> Run:
        def steps(arms: int, seed: int) -> Iterator[tuple[int, Callable[[float], object]]]:
            policy, choices = make(seed), range(arms)
            while True:
                arm = policy.pull(choices)
                yield arm, by(policy.update, arm)

        return looped(steps)

    return {
        ("UCB1", "river"): rule(lambda seed: bandit.UCB(delta=1, seed=seed)),
        ("Thompson", "river"): rule(lambda seed: bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=seed)),
    }


def mabwiser_rules() -> Contenders:
    """MABWiser's rules; each arm must have a result before the first prediction."""
    from mabwiser.mab import MAB, LearningPolicy

    def rule(policy: Any) -> Run:  # noqa: ANN401 - a package without types
        def steps(arms: int, seed: int) -> Iterator[tuple[int, Callable[[float], object]]]:
            mab = MAB(list(range(arms)), policy, seed=seed)
            first: list[float] = []
            for arm in range(arms):
                yield arm, first.append
            mab.fit(list(range(arms)), first)
            while True:
                arm = mab.predict()
                yield arm, by(lambda arm, reward: mab.partial_fit([arm], [reward]), arm)

        return looped(steps)

    return {
        ("UCB1", "mabwiser"): rule(LearningPolicy.UCB1(alpha=1.0)),
        ("Thompson", "mabwiser"): rule(LearningPolicy.ThompsonSampling()),
    }


def smpybandits_rules() -> Contenders:
    """SMPyBandits' rules. It draws from global states, and uses a name of SciPy that newer ones have as betaincinv."""
    import scipy.special

    scipy.special.btdtri = getattr(scipy.special, "btdtri", scipy.special.betaincinv)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        from SMPyBandits.Policies import UCB, Thompson, klUCB

    def rule(make: Callable[[int], Any]) -> Run:
        def steps(arms: int, _seed: int) -> Iterator[tuple[int, Callable[[float], object]]]:
            policy = make(arms)
            policy.startGame()
            while True:
                arm = int(policy.choice())
                yield arm, by(policy.getReward, arm)

        return looped(steps)

    return {
        ("UCB1", "SMPyBandits"): rule(UCB),
        ("KL-UCB", "SMPyBandits"): rule(klUCB),
        ("Thompson", "SMPyBandits"): rule(Thompson),
    }


def contenders() -> Contenders:
    """All rules of this package and of those that are installed."""
    found: Contenders = {
        ("UCB1", "mfbandit"): ours(mfb.UCB(rho=4)),  # sqrt(4 log t/(2T)) is UCB1's width
        ("KL-UCB", "mfbandit"): ours(mfb.UCB(rho=1, kl=True)),
        ("Thompson", "mfbandit"): ours(mfb.Thompson()),
    }
    for make in (pymab_rules, river_rules, mabwiser_rules, smpybandits_rules):
        try:
            found |= make()
        except ImportError as error:
            print(f"left out: {error}", file=sys.stderr)
    return dict(sorted(found.items(), key=lambda item: (item[0][0] != "UCB1", item[0][0])))


def measured(means: FloatArray, plays: int, runs: int) -> list[dict[str, Any]]:
    """A row for each contender: plays a second (median of its runs), mean regret and its 95 % interval."""
    rules = contenders()
    seconds: dict[tuple[str, str], list[float]] = {name: [] for name in rules}
    regrets: dict[tuple[str, str], list[float]] = {name: [] for name in rules}
    for run in rules.values():
        run(means, len(means) + 10, SEED)  # compile
    for number in range(runs):
        for name, run in rules.items():
            np.random.seed(SEED + number)  # noqa: NPY002 - for the package that draws from the global state
            begun = time.process_time()
            counts = run(means, plays, SEED + number)
            seconds[name].append(time.process_time() - begun)
            regrets[name].append(float((counts * (means.max() - means)).sum()))
    return [
        {
            "rule": rule,
            "package": package,
            "plays a second": plays / float(np.median(seconds[rule, package])),
            "regret": float(np.mean(regrets[rule, package])),
            "±": 1.96 * float(np.std(regrets[rule, package], ddof=1)) / math.sqrt(runs),
        }
        for rule, package in rules
    ]


def shown(rows: list[dict[str, Any]]) -> str:
    """The rows as a table; how many times as fast mfbandit is, too."""
    fastest = {row["rule"]: row["plays a second"] for row in rows if row["package"] == "mfbandit"}
    lines = [["rule", "package", "plays a second", "mfbandit is faster by", "regret"]]
    for row in rows:
        ratio = fastest[row["rule"]] / row["plays a second"]
        speed = readable(float(f"{row['plays a second']:.3g}"))
        lines.append([row["rule"], row["package"], speed, f"{ratio:.3g}", f"{row['regret']:.1f} ± {row['±']:.1f}"])
    return "\n".join(columns(lines))


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--plays", type=int, default=2000, help="in each run")
    options = parser.parse_args()
    results: dict[str, Any] = {"versions": {"mfbandit": mfb.__version__}, "plays": options.plays, "runs": options.runs}
    for package in PACKAGES:
        with contextlib.suppress(ImportError):
            results["versions"][package] = version(package)
    for name, means in PROBLEMS.items():
        results[name] = measured(means, options.plays, options.runs)
        print(f"{name}, {options.plays:,} plays, {options.runs} runs\n{shown(results[name])}\n", flush=True)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
