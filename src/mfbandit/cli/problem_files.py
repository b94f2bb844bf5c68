"""Problems written as TOML files that every command reads."""

from collections.abc import Sequence

from mfbandit.core import Bounded, Fidelities, SubGaussian
from mfbandit.errors import InvalidArgument
from mfbandit.problems import (
    Bernoulli,
    Gaussian,
    Problem,
    Replay,
    learning_curve_names,
    learning_curve_problem,
    misleading_problem,
    paper_problem,
)

FULL_LOOKS = 40  # at every arm: the capital of the problem


def described(name: str, seed: int = 0) -> str:
    """Describe a ready problem as a file that every command reads.

    Args:
        name: 1 to 4, misleading, or a data set of learning curves.
        seed: for means that are drawn.

    >>> print(described("cmc").splitlines()[2])
    learning_curve = "cmc"
    """
    if name in ("1", "2", "3", "4"):
        problem, title = paper_problem(int(name), seed), f"The paper's problem {name}, with seed {seed}."
    elif name == "misleading":
        problem, title = misleading_problem(), "Low fidelities rank the arms in the wrong order."
    elif name in learning_curve_names():
        problem, title = learning_curve_problem(name), f"Which learner is best on the data set {name}?"
    else:
        raise InvalidArgument(
            f"name must be 1, 2, 3, 4, misleading or one of {', '.join(learning_curve_names())}, got {name!r}"
        )
    table = f'[problem]\nlearning_curve = "{name}"' if isinstance(problem.rewards, Replay) else as_toml(problem)
    capital = f"capital = {FULL_LOOKS * problem.arms * problem.fidelities.costs[-1]!r}  # forty full looks at every arm"
    policies = [f'\n[[policies]]\nname = "{policy}"\nrho = 2' for policy in ("MFUCB", "UCB")]
    jobs = [f"\n[simulate]\n{capital}\nruns = 20\nseed = 1", f"\n[theory]\n{capital}\nrho = 5", f"\n[plan]\n{capital}"]
    return "\n".join([f"# {title}", table, *policies, *jobs])


def as_toml(problem: Problem) -> str:
    """Write a problem with Gaussian or Bernoulli rewards as a file that :class:`Config` reads back to the last digit.

    >>> from mfbandit.problems.builtin import misleading_problem
    >>> print(as_toml(misleading_problem(arms=2)).splitlines()[1])
    rewards = "gaussian"
    """
    rewards, fidelities = problem.rewards, problem.fidelities
    lines = ["[problem]"]
    if isinstance(rewards, Gaussian):
        lines += ['rewards = "gaussian"', f"sigma = {_toml(rewards.sigma)}"]
    elif isinstance(rewards, Bernoulli):
        lines += ['rewards = "bernoulli"']
    else:
        raise InvalidArgument("problem must have Gaussian or Bernoulli rewards to be written out, got replayed ones")
    lines += ["means = [  # a row for each fidelity, a column for each arm"]
    lines += [f"    {_toml(row)}," for row in problem.means.tolist()]
    lines += [
        "]",
        "",
        "[fidelities]",
        f"costs = {_toml(fidelities.costs)}",
        f"biases = {_toml(fidelities.known_biases)}",
    ]
    return "\n".join([*lines, _toml_noise(fidelities)])


def _toml_noise(fidelities: Fidelities) -> str:
    tails = fidelities.tails
    if fidelities.are_rates:
        return 'rewards = "rate"'
    if all(isinstance(tail, Bounded) for tail in tails) and len(set(tails)) == 1:
        return f"range = {_toml([tails[0].low, tails[0].high])}"  # type: ignore[attr-defined]
    if all(isinstance(tail, SubGaussian) for tail in tails):
        scales = [tail.scale for tail in tails]  # type: ignore[attr-defined]
        return f"scale = {_toml(scales[0] if len(set(scales)) == 1 else scales)}"
    raise InvalidArgument(f"noise must be sub-Gaussian or one range to be written out, got {tails}")


def _toml(value: "float | Sequence[float]") -> str:
    if isinstance(value, Sequence):
        return f"[{', '.join(_toml(item) for item in value)}]"
    return repr(float(value))
