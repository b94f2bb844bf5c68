"""The conditions of the bounds; each function returns the conditions that do not hold, as text."""

import math

import numpy as np
from numpy.typing import ArrayLike

from mfbandit._internal.formatting import plain
from mfbandit._internal.typing import FloatArray
from mfbandit.core import QUADRATIC, Fidelities
from mfbandit.errors import InvalidArgument
from mfbandit.problems import TOLERANCE, Bernoulli, Gaussian, Problem, Replay


def check_conditions(what: str, broken: list[str], unproven: bool) -> tuple[str, ...]:
    """Return unmet conditions as caveats if ``unproven``; else raise an error that names them.

    >>> check_conditions("Lemma 10", ["rho above 4, got 2"], unproven=False)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: Lemma 10 needs rho above 4, got 2 (unproven=True computes it
        anyway, with a caveat)
    >>> check_conditions("Lemma 10", ["rho above 4, got 2"], unproven=True)
    ('Lemma 10 needs rho above 4, got 2',)
    """
    if broken and not unproven:
        raise InvalidArgument(f"{what} needs {'; and '.join(broken)} (unproven=True computes it anyway, with a caveat)")
    return tuple(f"{what} needs {condition}" for condition in broken)


def unmet_rho(rho: float, above: float) -> list[str]:
    """Check that ρ is large enough.

    >>> unmet_rho(2.0, above=4)
    ['rho above 4, got rho=2']
    """
    return [] if rho > above else [f"rho above {above:g}, got rho={rho:g}"]


def unmet_model(problem: Problem) -> list[str]:
    """Check that the problem keeps to its fidelities' biases (Section 2) and noise (eq. 2).

    >>> from mfbandit.core.concentration import SubGaussian
    >>> known = Fidelities(costs=[1], concentration=SubGaussian(0.1))
    >>> unmet_model(Problem([[0.5]], known, Gaussian(0.1)))
    []
    >>> unmet_model(Problem([[0.5]], known, Gaussian(0.3)))
    ['noise within the concentration (eq. 2), got a scale of 0.3 at fidelity 0, whose concentration has 0.1']
    """
    return [*_biases(problem), *_noise(problem)]


def _biases(problem: Problem) -> list[str]:
    off = np.abs(problem.means[-1] - problem.means) - np.array(problem.fidelities.known_biases)[:, None]
    if not (off > TOLERANCE).any():
        return []
    m, k = (int(i) for i in np.unravel_index(off.argmax(), off.shape))
    return [
        f"means within their biases, got a misspecified problem: arm {k} at fidelity {m} exceeds "
        f"its bias of {plain(problem.fidelities.known_biases[m], 4)} by {off[m, k]:.4g}"
    ]


def _noise(problem: Problem) -> list[str]:
    if isinstance(problem.rewards, Replay) and not problem.rewards.replace:
        return ["independent rewards (eq. 2), got a table replayed in order"]
    tails = zip(problem.fidelities.labels, problem.fidelities.tails, noise_scales(problem).tolist(), strict=True)
    for name, tail, scale in tails:
        # Another psi, also in a subclass, cannot be compared.
        known = tail.scale if type(tail) in QUADRATIC else math.inf  # type: ignore[attr-defined]
        if scale > known * (1 + TOLERANCE):
            got = f"a scale of {scale:.4g} at fidelity {name}, whose concentration has {known:.4g}"
            return [f"noise within the concentration (eq. 2), got {got}"]
    return []


def noise_scales(problem: Problem) -> FloatArray:
    """Return a sub-Gaussian scale of the rewards; shape (M,), in units of reward.

    For Gaussian rewards it is the standard deviation, for bounded ones half the range (Hoeffding).

    >>> from mfbandit.problems.builtin import paper_problem
    >>> noise_scales(paper_problem(3)).tolist()
    [0.5, 0.5]
    """
    fidelities = len(problem.fidelities)
    match problem.rewards:
        case Gaussian() as rewards:
            return rewards.sigmas(fidelities)
        case Bernoulli():
            return np.full(fidelities, 0.5)
        case Replay() as table:
            return np.array([max(np.ptp(np.asarray(cell)) for cell in row) / 2 for row in table.samples])


def unmet_bernoulli(problem: Problem) -> list[str]:
    """Check the conditions of Theorem 4 and Lemma 11.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> unmet_bernoulli(paper_problem(1))
    ['Bernoulli rewards, got Gaussian']
    """
    broken = []
    if not isinstance(problem.rewards, Bernoulli):
        broken.append(f"Bernoulli rewards, got {type(problem.rewards).__name__}")
    if isinstance(problem.rewards, Bernoulli) and not 1 / 2 < problem.best_mean < 1:
        broken.append(f"a best mean in (1/2, 1), got {problem.best_mean:.4g}")
    if not problem.fidelities.known_biases[0] < 1 / 2:
        broken.append(f"biases below 1/2, got {plain(problem.fidelities.known_biases[0], 4)} at fidelity 0")
    return broken


def unmet_decay(fidelities: Fidelities) -> list[str]:
    """Check Assumption 1.

    >>> from mfbandit.core.concentration import SubGaussian
    >>> unmet_decay(Fidelities([1, 2, 4, 8], [0.3, 0.29, 0.28, 0], SubGaussian(1.0)))
    ['biases that decay fast enough (Assumption 1), got (0.3, 0.29, 0.28, 0.0)']
    """
    left, right = fidelities.decay_sides
    slow = any(low > high for low, high in zip(left, right, strict=True))
    return [f"biases that decay fast enough (Assumption 1), got {fidelities.known_biases}"] if slow else []


def unmet_quadratic(fidelities: Fidelities) -> list[str]:
    """Check that ψ(x) is a multiple of x², which the proof of Theorem 4 uses.

    >>> from mfbandit.core.concentration import SubGaussian
    >>> unmet_quadratic(Fidelities([1], concentration=SubGaussian(1.0)))
    []
    """
    return [] if fidelities.scales is not None else ["a psi that is a multiple of x²"]


def as_capitals(given: ArrayLike) -> FloatArray:
    """Return Λ as an array; refuse values that are not positive and finite.

    >>> as_capitals(-1)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: capital must be positive and finite, got -1
    """
    try:
        array: FloatArray = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(f"capital must be numbers, got {given!r}") from None
    if isinstance(given, str | None) or not (np.isfinite(array) & (array > 0)).all():
        raise InvalidArgument(f"capital must be positive and finite, got {given!r}")
    return array
