"""Thompson: play the arm that is the best in a draw from what is believed, at the highest fidelity alone."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mfbandit._internal.typing import FloatArray
from mfbandit._internal.validation import whole
from mfbandit.core import Fidelities, Stats, SubGaussian, has_range, lower_bounds, most_promising, safest
from mfbandit.errors import InvalidArgument

CAUTION = 2.0  # ρ of the lower bounds by which an arm is recommended


@dataclass(frozen=True)
class Thompson:
    r"""Thompson sampling: draw each arm's mean from its posterior, and play the largest, always at fidelity M.

    For rewards in a range [a, b] (:class:`~mfbandit.Rate`, :class:`~mfbandit.Bounded`), with S = Σ(r − a)/(b − a) of n
    observations, the draw is a + (b − a)·Beta(1 + S, 1 + n − S). For :class:`~mfbandit.SubGaussian` noise of scale σ it
    is N(X̄, σ²/n). Each arm is played once first. It needs no biases and ignores results at lower fidelities.

    Draws come from the seed and the time t = 1 + results + pending plays. So plays are a function of the log. A pending
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
        counts, sums, noise = stats.counts[-1], stats.sums[-1], fidelities.tails[-1]
        rng, seen = np.random.default_rng([self.seed, stats.time]), np.maximum(counts, 1)
        if has_range(noise):
            span = noise.high - noise.low
            ones = ((sums - noise.low * counts) / span).clip(0.0, counts)
            drawn = noise.low + span * rng.beta(1.0 + ones, 1.0 + (counts - ones))
        elif type(noise) is SubGaussian:
            drawn = sums / seen + noise.scale / np.sqrt(seen) * rng.standard_normal(len(counts))
        else:
            raise InvalidArgument(f"Thompson must have Rate, Bounded or SubGaussian noise, got {noise!r}")
        return np.where(stats.active, np.where(counts > 0, drawn, np.inf), -np.inf)

    def recommend(self, stats: Stats, fidelities: Fidelities) -> int:
        """Return the active arm with the highest lower bound, that of UCB at ρ = 2."""
        return safest(lower_bounds(stats.top, fidelities.top, CAUTION)[0], stats)
