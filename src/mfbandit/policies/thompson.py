"""Thompson: play the arm that is the best in a draw from what is believed, at the highest fidelity alone."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mfbandit._internal.typing import FloatArray
from mfbandit._internal.validation import whole
from mfbandit.core import Bounded, Fidelities, Stats, SubGaussian, has_range, lower_bounds, most_promising, safest
from mfbandit.core.keyed_arrays import betas_of, normals_of
from mfbandit.core.keyed_draws import beta_of, normal_of, stream
from mfbandit.errors import InvalidArgument
from mfbandit.policies.compiled import AllCells, Clock, CompiledChoice

CAUTION = 2.0  # ρ of the lower bounds by which an arm is recommended
DRAWS_OF_AN_ARM = 64  # numbers of the stream


@dataclass(frozen=True)
class Thompson:
    r"""Thompson sampling: draw each arm's mean from its posterior, and play the largest, always at fidelity M.

    For rewards in a range [a, b] (:class:`~mfbandit.Rate`, :class:`~mfbandit.Bounded`), with S = Σ(r − a)/(b − a) of n
    observations, the draw is a + (b − a)·Beta(1 + S, 1 + n − S). For :class:`~mfbandit.SubGaussian` noise of scale σ it
    is N(X̄, σ²/n). Each arm is played once first. It needs no biases and ignores results at lower fidelities.

    Draws come from the seed and the time t = 1 + results + pending plays
    (:mod:`~mfbandit.core.keyed_draws`). So plays are a function of the log. ``simulate`` runs it compiled. A pending
    play changes no posterior: nothing is known of it yet. Workers that ask at the same time spread over the arms as
    their draws differ.

    Args:
        seed: of the draws, a whole number of at least 0.

    >>> from mfbandit import Rate
    >>> stats = Stats.empty(fidelities=1, arms=2)
    >>> stats.counts[0], stats.sums[0] = 1000, [20.0, 40.0]
    >>> Thompson().choose(stats, Fidelities([1], concentration=Rate()))
    (1, 0)

    References:
        Thompson, On the Likelihood that One Unknown Probability Exceeds Another, Biometrika 1933.
        Agrawal, Goyal, Further Optimal Regret Bounds for Thompson Sampling, AISTATS 2013.
    """

    uses_biases: ClassVar[bool] = False

    seed: int = 0

    def __post_init__(self) -> None:
        if whole("seed", self.seed) < 0:
            raise InvalidArgument(f"seed must be at least 0, got {self.seed}")
        object.__setattr__(self, "seed", int(self.seed))

    def choose(self, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
        """Choose the arm with the largest draw, at the highest fidelity."""
        return most_promising(self.index(stats, fidelities), stats.top), len(fidelities) - 1

    def index(self, stats: Stats, fidelities: Fidelities) -> FloatArray:
        """Draw the arms' means; infinite for arms without a result, −∞ for those that take no part; shape (K,)."""
        counts, sums, noise = stats.counts[-1], stats.sums[-1], _noise(fidelities)
        key, numbers = stream(self.seed, stats.time), DRAWS_OF_AN_ARM * np.arange(len(counts))
        seen = np.maximum(counts, 1)
        if isinstance(noise, SubGaussian):
            drawn = sums / seen + noise.scale / np.sqrt(seen) * normals_of(key, numbers)
        else:
            span = noise.high - noise.low
            ones = ((sums - noise.low * counts) / span).clip(0.0, counts)
            drawn = noise.low + span * betas_of(key, numbers, 1.0 + ones, 1.0 + (counts - ones))
        return np.where(stats.active, np.where(counts > 0, drawn, np.inf), -np.inf)

    def compiled(self, fidelities: Fidelities) -> CompiledChoice:
        """Describe the same draws by functions of numbers."""
        noise, seed = _noise(fidelities), self.seed % 2**64
        words = (seed & 0xFFFFFFFF, seed >> 32)  # a whole seed may be too large for a compiled number
        if isinstance(noise, SubGaussian):
            return CompiledChoice(_largest_normal, parameters=(*words, float(noise.scale)))
        return CompiledChoice(_largest_beta, parameters=(*words, float(noise.low), float(noise.high - noise.low)))

    def recommend(self, stats: Stats, fidelities: Fidelities) -> int:
        """Return the active arm with the highest lower bound, that of UCB at ρ = 2."""
        return safest(lower_bounds(stats.top, fidelities.top, CAUTION)[0], stats)


def _noise(fidelities: Fidelities) -> SubGaussian | Bounded:
    noise = fidelities.tails[-1]
    if has_range(noise) or type(noise) is SubGaussian:
        return noise
    raise InvalidArgument(f"Thompson must have Rate, Bounded or SubGaussian noise, got {noise!r}")


def _largest_normal(
    table: AllCells, clock: Clock, parameters: tuple[int, int, float], _state: object
) -> tuple[int, int]:
    """Compiled: the first arm without a result, or the one with the largest N(X̄, σ²/n)."""
    low, high, scale = parameters
    key, top = stream(low + (high << 32), clock.t), table.counts.shape[1] - 1
    best, largest = 0, -math.inf
    for arm in range(clock.arms):
        n = table.counts[arm, top]
        if n == 0:
            return arm, top
        mean, deviation = table.sums[arm, top] / n, scale / math.sqrt(n)
        drawn = mean + deviation * normal_of(key, DRAWS_OF_AN_ARM * arm)
        if drawn > largest:
            best, largest = arm, drawn
    return best, top


def _largest_beta(
    table: AllCells, clock: Clock, parameters: tuple[int, int, float, float], _state: object
) -> tuple[int, int]:
    """Compiled: the first arm without a result, or the one with the largest a + (b − a)·Beta(1 + S, 1 + n − S)."""
    low_word, high_word, low, span = parameters
    key, top = stream(low_word + (high_word << 32), clock.t), table.counts.shape[1] - 1
    best, largest = 0, -math.inf
    for arm in range(clock.arms):
        n = table.counts[arm, top]
        if n == 0:
            return arm, top
        ones = min(max((table.sums[arm, top] - low * n) / span, 0.0), float(n))
        drawn = low + span * beta_of(key, DRAWS_OF_AN_ARM * arm, 1.0 + ones, 1.0 + (n - ones))
        if drawn > largest:
            best, largest = arm, drawn
    return best, top
