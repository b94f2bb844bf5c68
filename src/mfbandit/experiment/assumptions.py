"""What fidelities say about rewards, worked out once instead of after each result."""

import math
from dataclasses import dataclass

from mfbandit._internal.formatting import plain
from mfbandit.core import Batch, Bounded, Counts, Fidelities, needed_bias, scales
from mfbandit.errors import InvalidArgument
from mfbandit.experiment.drift_answer import is_suspected
from mfbandit.experiment.state import State

SLACK = 1e-6  # by which a standard deviation may be too large, as it was rounded


@dataclass(frozen=True)
class Assumptions:
    """Ranges of rewards, and biases that results can refute.

    Args:
        ranges: the lowest and highest reward of each fidelity; None where there is no limit.
        biases: ζ_1, …, ζ_{M−1}; empty where they are not known.
        scales: σ of each fidelity, None where biases cannot be tested.

    >>> Assumptions.of(Fidelities(costs=[1, 10], biases=[0.1, 0], concentration=Bounded(0, 1))).biases
    (0.1,)
    """

    ranges: tuple[tuple[float, float] | None, ...]
    biases: tuple[float, ...]
    scales: tuple[float, ...] | None

    @classmethod
    def of(cls, fidelities: Fidelities) -> "Assumptions":
        """Work out what fidelities say.

        >>> Assumptions.of(Fidelities(costs=[1])).ranges
        (None,)
        """
        biases = () if fidelities.biases is None else tuple(fidelities.biases[:-1])
        tails = [None] * len(fidelities) if fidelities.concentration is None else list(fidelities.tails)
        ranges = tuple((tail.low, tail.high) if isinstance(tail, Bounded) else None for tail in tails)
        return cls(ranges, biases, scales(fidelities) if biases else None)

    def check_reward(self, reward: float, fidelity: int) -> None:
        """Refuse a reward outside its fidelity's range: one percentage among shares would stay in the log for good.

        >>> Assumptions.of(Fidelities(costs=[1], concentration=Bounded(0, 1))).check_reward(43.0, 0)
        Traceback (most recent call last):
        mfbandit.errors.InvalidArgument: reward must lie in 0 to 1, as the fidelities say, got 43.0
        """
        bounds = self.ranges[fidelity]
        if bounds is not None and not bounds[0] <= reward <= bounds[1]:
            raise InvalidArgument(
                f"reward must lie in {plain(bounds[0])} to {plain(bounds[1])}, as the fidelities say, got {reward}"
            )

    def check_observations(self, reward: Counts | Batch, fidelity: int) -> None:
        """Refuse observations outside their fidelity's range, or a spread that no rewards within it have.

        >>> known = Assumptions.of(Fidelities(costs=[1], concentration=Bounded(0, 1)))
        >>> known.check_observations(Batch(0.5, weight=10, sd=3.0), 0)
        Traceback (most recent call last):
        mfbandit.errors.InvalidArgument: sd must be at most 0.527046 for 10 rewards in 0 to 1 of mean 0.5, got 3.0
        """
        if isinstance(reward, Counts):
            for value in (1.0,) * (reward.successes > 0) + (0.0,) * (reward.successes < reward.trials):
                self.check_reward(value, fidelity)
            return
        self.check_reward(reward.reward, fidelity)
        bounds = self.ranges[fidelity]
        if bounds is None or not reward.sd:
            return
        (low, high), n = bounds, reward.weight
        # The variance is largest where all rewards are at the ends: (X̄ − low)(high − X̄), with n − 1 in place of n.
        most = math.sqrt((reward.reward - low) * (high - reward.reward) * n / (n - 1))
        if reward.sd > most * (1 + SLACK):
            span = f"{n} rewards in {plain(low)} to {plain(high)} of mean {plain(reward.reward)}"
            raise InvalidArgument(f"sd must be at most {most:g} for {span}, got {reward.sd}")

    def refuted_by(self, play: int, state: State) -> list[tuple[int, int, float]]:
        """The biases that the result of a play refutes for the first time: (fidelity, arm, needed bias)."""
        if self.scales is None:
            return []
        arm, fidelity = state.plays[play]
        top, found = len(self.biases), []
        for low in range(top) if fidelity == top else (fidelity,):
            # Nearly always the means are nearer than the bias: nothing more to be worked out after each result.
            if state.difference(low, arm) > self.biases[low] and self._is_open(state, low, arm):
                needed = _needed(state, low, arm)
                if needed > self.biases[low] and not is_suspected(state, ((low, arm), (top, arm))):
                    found.append((low, arm, needed))
        return found

    def _is_open(self, state: State, low: int, arm: int) -> bool:
        """Whether results of an arm may refute a bias: it is not refuted yet, and no mean is known to have changed."""
        stale = state.stale
        changed = stale and ((low, arm) in stale or (len(self.biases), arm) in stale)
        return not changed and (low, arm) not in state.refuted


def _needed(state: State, low: int, arm: int) -> float:
    stats = state.bias_stats
    both = stats.counts[low, arm] and stats.counts[-1, arm]
    return needed_bias(stats, low, arm, state.fidelities) if both else 0.0
