r"""An anytime-valid test of whether a mean has changed: recent results of one arm at one fidelity against earlier ones.

A *mark* is a place in the sequence of results: those before it are n₀ of sum S₀, those after it n₁ of sum S₁. Let the
mean be μ all along. Then the results before and after bet against μ, each by a mixture martingale:

    E(μ) = E₀(μ)·E₁(μ),   which is at most 1 on average at every time.

As μ is not known, the smallest E(μ) over all μ is taken. It is large if no single mean explains both parts. For
sub-Gaussian rewards of scale σ with priors worth ρ₀ and ρ₁ plays it is, with D the difference of the two means,

    log E = D²/(2σ²((n₀+ρ₀)/n₀² + (n₁+ρ₁)/n₁²)) − ½ log((n₀+ρ₀)/ρ₀) − ½ log((n₁+ρ₁)/ρ₁).

For rewards in a range, scaled to [0, 1], both are Beta mixtures of Bernoulli likelihood ratios. The prior of the first
is centred on μ itself and worth c = ρ₀ observations. That of the second is one half Beta(½, ½) and one half
Beta(a, b), centred on what was seen before the mark, p, and worth 1/min(p, 1 − p) observations: spread as widely as p
is large. With B the Beta function, and h(a, b) = B(a+S₁, b+n₁−S₁)/B(a, b),

    log E(μ) = log(B(cμ+S₀, c(1−μ)+n₀−S₀)/B(cμ, c(1−μ))) + log(½h(½, ½) + ½h(a, b)) − S log μ − (n−S) log(1−μ).

That is convex in μ, so that its smallest value is found by golden section.

Marks are on a fixed geometric grid, so that a cell has few of them. The mark of number j out of J has a prior weight
w_j = ½/((j+1)(j+2)) + ½/J. As they add up to less than 1, Σ_j w_j E_j is at most 1 on average, too. By Ville's
inequality it ever reaches 1/δ with a probability of at most δ. All arms and fidelities share 1 %, however often one
looks.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from mfbandit._internal.limits import MAX_WEIGHT
from mfbandit.core.concentration import Bounded, Concentration, SubGaussian, has_range

ALPHA = 0.01  # the largest share of experiments in which a change is found though there is none
SUSPICION = math.log(20)  # of one cell: from here on, a change may be why results do not fit together
FIRST_MARK = 8  # observations: fewer say hardly anything about a mean
RATIO, LATER_RATIO = 1.25, 1.1  # from one mark to the next, below so MANY observations and beyond
SHARPNESS = 8.0  # n₀/ρ₀: the number before a mark is known, so that the prior fits it
PRIOR = 3.0  # ρ₁, in plays: small, as a change should be found soon
LARGEST_MARK = 1000 * MAX_WEIGHT
CHECKED_BITS = 3  # of a count: it is looked at when these change, so each time that it has grown by some 20 %
MANY, MORE_BITS = 64, 6  # from so many observations on, looks cost little beside them: each time by some 2 %
GOLDEN = (math.sqrt(5) - 1) / 2
STEPS = 70  # of the golden section: down to the last digit
SMALLEST_MEAN = 1e-15


class ChangeMark(NamedTuple):
    """Where a change may have been.

    Args:
        number: n₀, the observations of the cell before it.
        total: S₀, their sum.
        results: how many results of all arms there were by then.
        place: on the grid, from 0.
    """

    number: int
    total: float
    results: int
    place: int


class Change(NamedTuple):
    """How much speaks for a change, and where it was most likely.

    Args:
        evidence: log Σ_j w_j E_j.
        mark: the one that most speaks for it.
    """

    evidence: float
    mark: ChangeMark


@cache
def grid() -> tuple[int, ...]:
    """The observations at which marks are set: from 8 on, each a quarter more than the one before; from 64 on, a tenth.

    >>> grid()[:12], len(grid())
    ((8, 10, 13, 17, 22, 28, 35, 44, 55, 69, 76, 84), 328)
    """
    found = [FIRST_MARK]
    while found[-1] < LARGEST_MARK:
        found.append(math.ceil(found[-1] * (RATIO if found[-1] < MANY else LATER_RATIO)))
    return tuple(found)


def is_checked(before: int, number: int) -> bool:
    """Tell whether a cell is looked at when its observations become this many.

    >>> [n for n in range(9, 70) if is_checked(n - 1, n)]
    [10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 66, 68]
    """
    shift = _digits_left_out(number)
    return number >> shift != before >> shift


def next_check(number: int) -> int:
    """The next number of observations at which a cell is looked at.

    >>> [next_check(n) for n in (9, 10, 15, 16, 30, 63, 64)]
    [10, 12, 16, 20, 32, 64, 66]
    """
    shift = _digits_left_out(number)
    return ((number >> shift) + 1) << shift


def _digits_left_out(number: int) -> int:
    return max(0, number.bit_length() - (CHECKED_BITS if number < MANY else MORE_BITS))


def is_tested(tail: Concentration) -> bool:
    """Tell whether changes can be found with this noise.

    >>> is_tested(SubGaussian(0.2)), is_tested(Bounded())
    (True, True)
    """
    return type(tail) is SubGaussian or has_range(tail)


def change(
    tail: Concentration, marks: Sequence[ChangeMark], number: int, total: float, least: float = -math.inf
) -> Change | None:
    """Weigh what speaks for a change of one arm's mean at one fidelity; None where that cannot be said.

    Args:
        tail: the noise of the fidelity.
        marks: those of the cell.
        number: n, all observations.
        total: S, their sum.
        least: the evidence that matters; marks that cannot have so much are left out.

    >>> marks = [ChangeMark(8, 4.0, 8, place(8)), ChangeMark(100, 50.0, 100, place(100))]
    >>> found = change(Bounded(), marks, 200, 60.0)
    >>> round(found.evidence, 1), found.mark.number
    (10.2, 100)
    >>> round(change(SubGaussian(0.5), marks, 200, 100.0).evidence, 1)
    -4.5
    """
    near = _which_may_reach(least, tail, marks, number, total) if is_tested(tail) else []
    prices, alone = log_prices(), least - math.log(max(1, len(marks)))
    found = [(mark, _evidence(tail, mark, number, total, alone + prices[mark.place])) for mark in near]
    numbers = [mark for mark, evidence in found if evidence > -math.inf]
    if not numbers:
        return None
    weighted = [evidence - prices[mark.place] for mark, evidence in found if evidence > -math.inf]
    largest = max(weighted)
    evidence = largest + math.log(sum(math.exp(one - largest) for one in weighted))
    return Change(evidence, numbers[weighted.index(largest)])


def _which_may_reach(
    least: float, tail: Concentration, marks: Sequence[ChangeMark], number: int, total: float
) -> list[ChangeMark]:
    """The marks that may have so much evidence: by D²n₀n₁/(nc), no less than log E, which takes no logarithms.

    Here c is 2σ², or p(1 − p) for rewards in [0, 1], as kl(q, p) ≤ (q − p)²/(p(1 − p)).
    """
    if least == -math.inf:
        return [mark for mark in marks if mark.number < number]
    if isinstance(tail, Bounded):
        spread = max(total / number - tail.low, 0.0) * max(tail.high - total / number, 0.0)
    else:
        spread = 2 * tail.scale**2  # type: ignore[attr-defined]
    # D²n₀n₁/n is (S₀ − n₀X̄)²n/(n₀n₁). If all of J marks have less than 1/J of what is needed, so do they together.
    mean, alone, prices = total / number, least - math.log(max(1, len(marks))), log_prices()
    return [
        mark
        for mark in marks
        if mark[0] < number
        and (mark[1] - mark[0] * mean) ** 2 * number
        >= (alone + prices[mark[3]]) * spread * mark[0] * (number - mark[0])
    ]


def needed(weight: float) -> float:
    """The evidence from which a change is said to be found.

    Args:
        weight: the share of the cell in the error that all cells have together.

    >>> round(needed(0.01), 3)
    9.21
    """
    return -math.log(ALPHA * weight)


def place(number: int) -> int:
    """The place on the grid of the last mark that is due at so many observations; −1 before the first.

    >>> place(7), place(8), place(12)
    (-1, 0, 1)
    """
    return bisect_right(grid(), number) - 1


@cache
def log_prices() -> tuple[float, ...]:
    """log(1/w_j) of the marks.

    >>> round(sum(math.exp(-price) for price in log_prices()), 3)
    0.998
    """
    marks = len(grid())
    return tuple(-math.log(0.5 / ((j + 1) * (j + 2)) + 0.5 / marks) for j in range(marks))


def _evidence(tail: Concentration, mark: ChangeMark, number: int, total: float, least: float) -> float:
    """Weigh one mark: log E; −∞ if that is nothing, or clearly less than what matters."""
    after, rest = number - mark.number, total - mark.total
    prior = grid()[mark.place] / SHARPNESS  # of the grid, so that it does not depend on results
    if isinstance(tail, Bounded):
        parts = _scaled(tail, mark.number, mark.total), _scaled(tail, after, rest)
        return _of_range(*parts, prior, least)
    scale: float = tail.scale  # type: ignore[attr-defined]
    variance = (mark.number + prior) / mark.number**2 + (after + PRIOR) / after**2
    difference = (rest / after - mark.total / mark.number) / scale
    price = 0.5 * math.log((mark.number + prior) / prior * (after + PRIOR) / PRIOR)
    return 0.5 * difference * difference / variance - price


def _scaled(span: Bounded, number: int, total: float) -> tuple[float, float]:
    """Sums of rewards scaled to [0, 1], and of what they lack to 1."""
    hits = min(max((total - number * span.low) / (span.high - span.low), 0.0), float(number))
    return hits, number - hits


def _of_range(before: tuple[float, float], after: tuple[float, float], prior: float, least: float) -> float:
    hits, misses = before[0] + after[0], before[1] + after[1]
    if 0 < hits < 1 or 0 < misses < 1:  # not convex there; and such sums are no evidence
        return -math.inf
    seen = (before[0] + 0.5) / (before[0] + before[1] + 1)
    worth = 1 / min(seen, 1 - seen)
    wide, near = _log_mixture(0.5, 0.5, *after), _log_mixture(worth * seen, worth * (1 - seen), *after)
    constant = max(wide, near) + math.log1p(math.exp(-abs(wide - near))) - math.log(2)
    constant += math.lgamma(prior) - math.lgamma(prior + before[0] + before[1])

    def at(mean: float) -> float:
        x, y = prior * mean, prior * (1 - mean)
        mixed = math.lgamma(x + before[0]) - math.lgamma(x) + math.lgamma(y + before[1]) - math.lgamma(y)
        return constant + mixed - hits * math.log(mean) - misses * math.log1p(-mean)

    low, high = SMALLEST_MEAN, 1 - SMALLEST_MEAN
    if at(min(max(hits / (hits + misses), low), high)) < least:
        return -math.inf
    return _smallest(at, low, high)


def _smallest(function: Callable[[float], float], low: float, high: float) -> float:
    """The smallest value of a convex function, by golden section."""
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(STEPS):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = function(right)
    return min(at_left, at_right)


def _log_mixture(a: float, b: float, hits: float, misses: float) -> float:
    return _log_beta(a + hits, b + misses) - _log_beta(a, b)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
