"""Rewards as people write them: a click rate in per cent, anything else as it is, with as many digits as are known."""

import math
from dataclasses import dataclass

from mfbandit._internal.formatting import plain
from mfbandit.core import Fidelities

MOST_DECIMALS = 8


@dataclass(frozen=True)
class RewardUnit:
    """The unit of rewards.

    Args:
        factor: what a reward is multiplied by.
        suffix: what follows a mean.
        gap_suffix: what follows a difference of two means.
        least: the smallest mean that is possible.
        most: the largest one.

    >>> clicks = RewardUnit(100.0, " %", " points")
    >>> clicks.estimate(0.038, 0.044), clicks.value(0.0412), clicks.gap(-0.005), clicks.gap(0.01)
    ('4.1 % ± 0.3', '4.12 %', '-0.5 points', '1 point')
    """

    factor: float = 1.0
    suffix: str = ""
    gap_suffix: str = ""
    least: float = -math.inf
    most: float = math.inf

    @classmethod
    def of(cls, fidelities: Fidelities) -> "RewardUnit":
        """Return the unit of what the fidelities observe: per cent for rates.

        >>> from mfbandit import Rate
        >>> RewardUnit.of(Fidelities([1], concentration=Rate())).suffix
        ' %'
        """
        are_rates = fidelities.concentration is not None and fidelities.top.are_rates
        return cls(100.0, " %", " points", 0.0, 1.0) if are_rates else cls()

    def value(self, mean: float, digits: int = 3) -> str:
        """Format a mean; a dash where it is not known."""
        return f"{plain(self.factor * mean, digits)}{self.suffix}" if math.isfinite(mean) else "-"

    def gap(self, difference: float, digits: int = 3) -> str:
        """Format a difference of two means; "any amount" where it has no bound."""
        if not math.isfinite(difference):
            return "any amount"
        number = plain(self.factor * difference, digits)
        return number + (self.gap_suffix.removesuffix("s") if number == "1" else self.gap_suffix)

    def estimate(self, low: float, high: float) -> str:
        """Format an interval as its middle and half its width; a dash where it has no ends.

        >>> [RewardUnit().estimate(*ends) for ends in ((0.4291, 0.4333), (-math.inf, 1.0), (2.0, 1.0))]
        ['0.431 ± 0.002', '-', 'contradictory']
        """
        if not (math.isfinite(low) and math.isfinite(high)):
            return "-"
        if low > high:
            return "contradictory"
        middle, half = self.factor * (low + high) / 2, self.factor * (high - low) / 2
        places = decimals(half)
        return f"{middle:,.{places}f}{self.suffix} ± {half:,.{places}f}"

    def possible(self, low: float, high: float) -> tuple[float, float]:
        """Return the part of an interval in which a mean can lie.

        >>> RewardUnit(least=0.0, most=1.0).possible(-0.2, 0.5)
        (0.0, 0.5)
        """
        return max(low, self.least), min(high, self.most)

    def interval(self, low: float, high: float) -> str:
        """Format an interval by its ends.

        >>> RewardUnit(100.0, " %").interval(0.03811, 0.04402)
        '3.81 to 4.40 %'
        """
        if not (math.isfinite(low) and math.isfinite(high)) or low > high:
            return ""
        low, high = self.possible(low, high)
        places = decimals(self.factor * (high - low) / 2) + 1
        return f"{self.factor * low:,.{places}f} to {self.factor * high:,.{places}f}{self.suffix}"


def decimals(half: float) -> int:
    """Return how many decimals a number has that is known up to so much: one digit of that, two if it begins with 1.

    >>> [decimals(half) for half in (0.3, 0.0021, 0.13, 12.0, 0.0)]
    [1, 3, 2, 0, 8]
    """
    if half <= 0:
        return MOST_DECIMALS
    leading = math.floor(math.log10(half))
    digits = 2 if half < 2 * 10.0**leading else 1
    return min(MOST_DECIMALS, max(0, digits - 1 - leading))
