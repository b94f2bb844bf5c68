"""Many observations of one play: counts of successes, or the mean of a batch."""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from mfbandit._internal.limits import MAX_BLOCK_LENGTH, MAX_WEIGHT
from mfbandit._internal.validation import LARGEST_NUMBER, number, shown, whole
from mfbandit.errors import InvalidArgument


class Observed(NamedTuple):
    """What observations add to the statistics.

    Args:
        number: n, how many there are.
        total: their sum.
        squares: the sum of their squares.
        unseen: how many of them say nothing about the spread, as they were told by their mean alone.
    """

    number: int
    total: float
    squares: float
    unseen: int


@dataclass(frozen=True, slots=True, repr=False)
class Counts:
    """So many successes in so many trials: observations of 0 and 1, in place of a reward.

    Args:
        successes: how many were 1, such as clicks.
        trials: how many there were, such as impressions.
        block: the day, hour or machine they are of; what it does to all arms alike is taken out. None is none.

    >>> Counts(37, 1000).reward
    0.037
    >>> Counts(37, 20)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: successes must lie in 0 to trials, which are 20, got 37
    """

    successes: int
    trials: int
    block: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "trials", _checked_weight("trials", self.trials))
        object.__setattr__(self, "successes", _checked_whole("successes", self.successes))
        if not 0 <= self.successes <= self.trials:
            rule = f"lie in 0 to trials, which are {self.trials}"
            raise InvalidArgument(f"successes must {rule}, got {shown(self.successes)}")
        checked_block(self.block)

    def __repr__(self) -> str:
        return f"Counts(successes={self.successes}, trials={self.trials}{_block_text(self.block)})"

    @property
    def reward(self) -> float:
        """The share of successes."""
        return self.successes / self.trials

    @property
    def weight(self) -> int:
        """The number of trials."""
        return self.trials

    @property
    def sd(self) -> None:
        """None: counts say all about their spread."""
        return


@dataclass(frozen=True, slots=True, repr=False)
class Batch:
    """The mean of so many observations, in place of a reward.

    Args:
        reward: the mean, in units of reward.
        weight: n, how many observations there are.
        sd: their sample standard deviation (with n − 1, as pandas, R and SQL's STDDEV have it), in units of reward;
            None where it is not known.
        block: the day, hour or machine they are of; what it does to all arms alike is taken out. None is none.

    >>> Batch(0.43, weight=20, sd=0.1)
    Batch(reward=0.43, weight=20, sd=0.1)
    >>> Batch(0.43, weight=0)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: weight must be from 1 to 1000000000000, got 0
    """

    reward: float
    weight: int
    sd: float | None = None
    block: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "reward", number("reward", self.reward))
        object.__setattr__(self, "weight", _checked_weight("weight", self.weight))
        if self.sd is not None:
            object.__setattr__(self, "sd", _checked_sd(self.sd, self.weight))
        largest = math.sqrt(self.weight) * max(abs(self.reward), self.sd or 0.0)
        if largest > LARGEST_NUMBER:  # the sum of squares must stay finite
            what = "sqrt(weight) times reward and sd"
            raise InvalidArgument(f"{what} must be at most {LARGEST_NUMBER:g} in size, got {largest:g}")
        checked_block(self.block)

    def __repr__(self) -> str:
        return f"Batch(reward={self.reward}, weight={self.weight}, sd={self.sd}{_block_text(self.block)})"

    @property
    def successes(self) -> None:
        """None: these are no counts."""
        return


Reward: TypeAlias = float | Counts | Batch
"""What was observed: a number, counts, or the mean of a batch."""


def observed(
    reward: Reward | None = None,
    *,
    successes: int | None = None,
    trials: int | None = None,
    weight: int | None = None,
    sd: float | None = None,
    block: str | None = None,
) -> Reward:
    """Return what was observed, from the arguments of ``tell``: a reward, successes and trials, or a mean and a weight.

    A single reward with a block is a batch of one.

    >>> observed(successes=37, trials=1000), observed(0.43, weight=20), observed(0.43)
    (Counts(successes=37, trials=1000), Batch(reward=0.43, weight=20, sd=None), 0.43)
    >>> observed(0.43, successes=37, trials=1000)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: reward must be left out where successes are given, got 0.43
    >>> observed(0.43, block="2026-11-16")
    Batch(reward=0.43, weight=1, sd=None, block='2026-11-16')
    """
    given = _observed(reward, successes, trials, weight, sd)
    return given if block is None else _in_block(given, checked_block(block))


def _observed(
    reward: Reward | None, successes: int | None, trials: int | None, weight: int | None, sd: float | None
) -> Reward:
    if successes is not None or trials is not None:
        return _counts(successes, trials, reward=reward, weight=weight, sd=sd)
    if reward is None:
        raise InvalidArgument("reward must be a number, got None; successes and trials may stand in its place")
    if weight is None and sd is None:
        return reward
    if isinstance(reward, Counts | Batch):
        raise InvalidArgument(f"weight and sd must be left out where reward has its own, got {reward}")
    if weight is None:
        raise InvalidArgument(f"weight must be given where sd is, got sd {shown(sd)} alone")
    return Batch(reward, weight, sd)


def checked_block(block: str | None) -> str | None:
    """Return the name of a block, or an error if it is none.

    >>> checked_block("2026-11-16")
    '2026-11-16'
    >>> checked_block("")
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: block must be text of 1 to 100 printable characters, not all of them spaces, got ''
    """
    if block is None:
        return None
    fits = isinstance(block, str) and 0 < len(block) <= MAX_BLOCK_LENGTH and block.isprintable()
    if not fits or not block.strip():
        rule = f"text of 1 to {MAX_BLOCK_LENGTH} printable characters, not all of them spaces"
        raise InvalidArgument(f"block must be {rule}, got {shown(block)}")
    return block


def _in_block(given: Reward, block: str | None) -> Reward:
    if not isinstance(given, Counts | Batch):
        return Batch(given, 1, None, block)
    if given.block is not None and given.block != block:
        raise InvalidArgument(f"block must be that of the reward, which is {given.block!r}, got {block!r}")
    return replace(given, block=block)


def _block_text(block: str | None) -> str:
    return "" if block is None else f", block={block!r}"


def _counts(successes: int | None, trials: int | None, **others: object) -> Counts:
    if successes is None or trials is None:
        raise InvalidArgument(f"successes and trials must be given together, got {successes} and {trials}")
    for name, value in others.items():
        if value is not None:
            raise InvalidArgument(f"{name} must be left out where successes are given, got {shown(value)}")
    return Counts(successes, trials)


def summed(reward: float, weight: int, sd: float | None, successes: int | None) -> Observed:
    """Sum up observations.

    Counts are whole numbers, so that their sums are exact: those of the same zeros and ones, one by one. The sum of
    squares of a batch is n·X̄² + (n − 1)·sd². Without sd it is n·X̄²: X̄ counts as one observation of variance σ²/n.

    >>> summed(0.037, 1000, None, successes=37)
    Observed(number=1000, total=37.0, squares=37.0, unseen=0)
    >>> summed(0.5, 4, None, None)
    Observed(number=4, total=2.0, squares=1.0, unseen=3)
    """
    if successes is not None:
        return Observed(weight, float(successes), float(successes), 0)
    total = weight * reward
    if sd is None:
        return Observed(weight, total, total * reward, weight - 1)
    return Observed(weight, total, total * reward + (weight - 1) * sd * sd, 0)


def _checked_whole(what: str, value: object) -> int:
    if isinstance(value, bool):
        raise InvalidArgument(f"{what} must be a whole number, got {value}")
    return whole(what, value)


def _checked_weight(what: str, value: object) -> int:
    weight = _checked_whole(what, value)
    if not 1 <= weight <= MAX_WEIGHT:
        raise InvalidArgument(f"{what} must be from 1 to {MAX_WEIGHT}, got {shown(weight)}")
    return weight


def _checked_sd(value: object, weight: int) -> float:
    sd = number("sd", value)
    if sd < 0:
        raise InvalidArgument(f"sd must not be negative, got {shown(value)}")
    if weight == 1 and sd > 0:
        raise InvalidArgument(f"sd must be 0 or left out where weight is 1, got {shown(value)}")
    return sd
