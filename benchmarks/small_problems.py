"""Random small problems in eight families, for the worst cases of policies."""

import numpy as np

import mfbandit as mfb

FAMILIES = (
    "a true chain",
    "the best arm looks worst below",
    "two populations",
    "no correlation",
    "heavy-tailed steps",
    "useless low fidelities",
    "reversed order",
    "a needle",
)
SEED = 2026
CENTRE, SPREAD = 0.5, 0.15  # of the arms' means at the highest fidelity


def small_problem(number: int) -> mfb.Problem:
    """Make a problem of 2 to 30 arms, with 2 to 4 fidelities; every eighth is of the same family.

    Biases are the true ones: the largest distance of a mean from that of the highest fidelity. Three in ten have 0/1
    rewards, the others Gaussian noise of 0.02 to 0.5.
    """
    rng = np.random.default_rng([SEED, number])
    arms, fidelities = int(rng.integers(2, 31)), int(rng.integers(2, 5))
    costs = np.cumprod(np.r_[1.0, rng.uniform(2, 10, fidelities - 1)])
    sigma = float(np.exp(rng.uniform(np.log(0.02), np.log(0.5))))
    means = _means(FAMILIES[number % len(FAMILIES)], arms, fidelities, rng)
    rates = rng.random() < 0.3
    if rates:
        low, high = float(means.min()), float(means.max())
        means = 0.05 + (means - low) * (0.9 / max(high - low, 0.9))
    biases = _biases(means)
    if rates:
        return mfb.Problem(means, mfb.Fidelities(costs.tolist(), biases, mfb.Bounded(0, 1)), mfb.Bernoulli())
    return mfb.Problem(means, mfb.Fidelities(costs.tolist(), biases, mfb.SubGaussian(sigma)), mfb.Gaussian(sigma))


def _means(family: str, arms: int, fidelities: int, rng: np.random.Generator) -> np.ndarray:
    truth = rng.normal(CENTRE, SPREAD, arms)
    step = SPREAD * float(np.exp(rng.uniform(np.log(0.1), np.log(2))))
    if family == "a needle":
        truth = rng.normal(0.4, 0.03, arms)
        low = truth + rng.normal(0, 0.03, (fidelities - 1, arms))
        truth[int(rng.integers(arms))] = 0.8
        return np.vstack([low, truth])
    if family == "no correlation":
        return np.vstack([rng.normal(CENTRE, SPREAD, (fidelities - 1, arms)), truth])
    if family == "useless low fidelities":
        return np.vstack([rng.normal(CENTRE, 0.005, (fidelities - 1, arms)), truth])
    if family == "reversed order":
        slopes = np.linspace(1, 0.3, fidelities - 1)[:, None]
        return np.vstack([truth.mean() - slopes * (truth - truth.mean()), truth])
    means = [truth]
    for _ in range(fidelities - 1):
        if family == "heavy-tailed steps":
            away = step * rng.standard_t(1.5, arms).clip(-20, 20)
        elif family == "two populations":
            side = np.where(np.arange(arms) < arms / 2, 0.3, -0.3)
            away = side * rng.uniform(0.2, 1) / (fidelities - 1) + rng.normal(0, 0.03, arms)
        else:
            away = rng.normal(0, step, arms) + rng.normal(0, 0.1)
        means.insert(0, means[0] + away)
    if family == "the best arm looks worst below":
        best = int(truth.argmax())
        for row in means[:-1]:
            row[best] = row.min() - 0.05
    return np.array(means)


def _biases(means: np.ndarray) -> list[float]:
    """Return the smallest biases that hold, and decrease."""
    biases = [0.0]
    for away in np.abs(means[:-1] - means[-1]).max(axis=1)[::-1]:
        biases.insert(0, max(float(away) * 1.001, biases[0] * 1.01, 1e-3))
    return biases
