"""What everyone else does at each step: look at every arm. In four speeds, each exactly Algorithm 1.

All take arrays of shape (M, K) and write the first plays to ``trace`` (n, 2) as (arm, fidelity).
"""

import math

import numpy as np
from numba import njit

import mfbandit as mfb
from mfbandit._internal.typing import FloatArray, IntArray

# No NaN and no difference between zeros: enough for LLVM to use SIMD in min and max; sums are not reordered.
TUNED = {"nnan", "nsz"}


@njit(cache=True, nogil=True, error_model="numpy")
def reward(mean: float, sigma: float, bernoulli: bool, rng: np.random.Generator) -> float:
    """One reward by the same draw as Problem.draw."""
    if bernoulli:
        return 1.0 if rng.random() < mean else 0.0
    return mean + sigma * rng.standard_normal()


@njit(cache=True, nogil=True, error_model="numpy", fastmath=TUNED)
def fill(levels: FloatArray, slopes: FloatArray, indices: FloatArray, u: float) -> None:
    """The index of every arm, whole rows at a time."""
    for k in range(len(indices)):
        indices[k] = levels[0, k] + u * slopes[0, k]
    for m in range(1, len(levels)):
        for k in range(len(indices)):
            indices[k] = min(indices[k], levels[m, k] + u * slopes[m, k])


@njit(cache=True, nogil=True, error_model="numpy", fastmath=TUNED)
def highest(values: FloatArray) -> float:
    """The maximum."""
    best = -np.inf
    for value in values:
        best = max(best, value)
    return best


@njit(cache=True, nogil=True, error_model="numpy", fastmath=TUNED)
def highest_in_lanes(values: FloatArray) -> float:
    """The maximum in eight lanes by hand: LLVM leaves one chain of comparisons as it is, and makes SIMD of these."""
    a = b = c = d = e = f = g = h = -np.inf
    whole = len(values) // 8 * 8
    for k in range(0, whole, 8):
        a, b, c, d = max(a, values[k]), max(b, values[k + 1]), max(c, values[k + 2]), max(d, values[k + 3])
        e, f, g, h = max(e, values[k + 4]), max(f, values[k + 5]), max(g, values[k + 6]), max(h, values[k + 7])
    best = max(max(max(a, b), max(c, d)), max(max(e, f), max(g, h)))
    for k in range(whole, len(values)):
        best = max(best, values[k])
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def tuned_scan(
    means: FloatArray,
    sigma: float,
    bernoulli: bool,
    biases: FloatArray,
    scales: FloatArray,
    gammas: FloatArray,
    n: int,
    rng: np.random.Generator,
    trace: IntArray,
    lanes: bool = False,
) -> IntArray:
    """A scan with cached mean + bias and scale / sqrt(T), M x K layout, row by row; faster still in eight lanes."""
    counts, sums = np.zeros(means.shape, np.int64), np.zeros(means.shape)
    levels, slopes = np.full(means.shape, np.inf), np.zeros(means.shape)
    indices = np.empty(means.shape[1])
    for t in range(1, n + 1):
        u = math.sqrt(math.log(t))
        arm = t - 1
        if t > means.shape[1]:
            fill(levels, slopes, indices, u)
            best = highest_in_lanes(indices) if lanes else highest(indices)
            arm = 0
            while indices[arm] != best:  # the lowest number among ties
                arm += 1
        m = 0
        while m < len(gammas) and counts[m, arm] > 0 and u * slopes[m, arm] < gammas[m]:
            m += 1
        counts[m, arm] += 1
        sums[m, arm] += reward(means[m, arm], sigma, bernoulli, rng)
        levels[m, arm] = sums[m, arm] / counts[m, arm] + biases[m]
        slopes[m, arm] = scales[m] / math.sqrt(counts[m, arm])
        if t <= len(trace):
            trace[t - 1, 0], trace[t - 1, 1] = arm, m
    return counts


@njit(cache=True, nogil=True, error_model="numpy")
def plain_scan(
    means: FloatArray,
    sigma: float,
    bernoulli: bool,
    biases: FloatArray,
    scales: FloatArray,
    gammas: FloatArray,
    n: int,
    rng: np.random.Generator,
    trace: IntArray,
) -> IntArray:
    """The loops of the paper, compiled: every bound from counts and sums at every step."""
    n_fidelities, n_arms = means.shape
    counts, sums = np.zeros(means.shape, np.int64), np.zeros(means.shape)
    for t in range(1, n + 1):
        u = math.sqrt(math.log(t))
        best, arm = -np.inf, 0
        for k in range(n_arms):
            index = np.inf
            for m in range(n_fidelities):
                if counts[m, k] > 0:
                    width = u * (scales[m] / math.sqrt(counts[m, k]))
                    index = min(index, (sums[m, k] / counts[m, k] + biases[m]) + width)
            if index > best:
                best, arm = index, k
        m = 0
        while m < len(gammas) and counts[m, arm] > 0 and u * (scales[m] / math.sqrt(counts[m, arm])) < gammas[m]:
            m += 1
        counts[m, arm] += 1
        sums[m, arm] += reward(means[m, arm], sigma, bernoulli, rng)
        if t <= len(trace):
            trace[t - 1, 0], trace[t - 1, 1] = arm, m
    return counts


def numpy_loop(problem: mfb.Problem, rho: float, n: int, rng: np.random.Generator) -> None:
    """MF-UCB as one would write it in NumPy, one step after the other."""
    fid = problem.fidelities
    biases, scales = fid.bias_column, np.asarray(fid.scales) * math.sqrt(2 * rho)
    counts, sums = np.zeros(problem.means.shape), np.zeros(problem.means.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        for t in range(1, n + 1):
            widths = math.sqrt(math.log(t)) * (scales / np.sqrt(counts))
            bounds = (sums / counts + biases) + widths
            bounds[counts == 0] = np.inf
            arm = int(bounds.min(axis=0).argmax())
            wide = np.flatnonzero((counts[:-1, arm] == 0) | (widths[:-1, arm] >= fid.gammas))
            m = int(wide[0]) if wide.size else len(fid) - 1
            counts[m, arm] += 1
            sums[m, arm] += problem.draw(arm, m, rng)


def scan_arguments(
    problem: mfb.Problem, policy: mfb.UCB | mfb.MFUCB
) -> tuple[FloatArray, float, bool, FloatArray, FloatArray, FloatArray]:
    """A Gaussian or Bernoulli problem as the first arguments of the two scans."""
    top = isinstance(policy, mfb.UCB)
    fid = problem.fidelities.top if top else problem.fidelities
    means = np.ascontiguousarray(problem.means[-1:] if top else problem.means)
    bernoulli = isinstance(problem.rewards, mfb.Bernoulli)
    sigma = float(problem.rewards.sigmas(1)[0]) if isinstance(problem.rewards, mfb.Gaussian) else 0.0
    scales = np.asarray(fid.scales)[:, 0] * math.sqrt(2 * policy.rho)
    return means, sigma, bernoulli, np.array(fid.known_biases), scales, np.array(fid.gammas, dtype=np.float64)
