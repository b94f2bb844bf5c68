r"""An anytime-valid test of whether a mean has changed: recent results of one arm at one fidelity against earlier ones.

A *mark* is a place in the sequence of results: those before it are n₀ of sum S₀, those after it n₁ of sum S₁. Let the
mean be μ all along. Then the results before and after bet against μ, each by a mixture martingale:

    E(μ) = E₀(μ)·E₁(μ),   which is at most 1 on average at every time.

As μ is not known, the smallest E(μ) over all μ is taken. It is large if no single mean explains both parts. For
sub-Gaussian rewards of scale σ with priors worth ρ₀ and ρ₁ plays it is, with D the difference of the two means,

    log E = D²/(2σ²((n₀+ρ₀)/n₀² + (n₁+ρ₁)/n₁²)) − ½ log((n₀+ρ₀)/ρ₀) − ½ log((n₁+ρ₁)/ρ₁),

and for rewards in a range, scaled to [0, 1], with B the Beta function, p the mean of all n and H its entropy,

    log E = Σ over both parts of log(B(S+½, n−S+½)/B(½, ½)) + n·H(p).

Marks are on a fixed geometric grid, so that a cell has few of them. The mark of number j has a prior weight
w_j = 1/((j+1)(j+2)). As they add up to 1, Σ_j w_j E_j is at most 1 on average, too. By Ville's inequality it ever
reaches 1/δ with a probability of at most δ. All arms and fidelities share 1 %, however often one looks.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from mfbandit._internal.limits import MAX_WEIGHT
from mfbandit.core.concentration import Bounded, Concentration, SubGaussian, has_range

ALPHA = 0.01  # the largest share of experiments in which a change is found though there is none
SUSPICION = math.log(20)  # of one cell: from here on, a change may be why results do not fit together
FIRST_MARK = 8  # observations: fewer say hardly anything about a mean
RATIO = 1.25  # from one mark to the next
SHARPNESS = 8.0  # n₀/ρ₀: the number before a mark is known, so that the prior fits it
PRIOR = 3.0  # ρ₁, in plays: small, as a change should be found soon
LARGEST_MARK = 1000 * MAX_WEIGHT
CHECKED_BITS = 3  # of a count: it is looked at when these change, so each time that it has grown by some 20 %


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
    """The observations at which marks are set: from 8 on, each about a quarter larger than the one before.

    >>> grid()[:6], len(grid())
    ((8, 10, 13, 17, 22, 28), 146)
    """
    found = [FIRST_MARK]
    while found[-1] < LARGEST_MARK:
        found.append(math.ceil(found[-1] * RATIO))
    return tuple(found)


def is_checked(before: int, number: int) -> bool:
    """Tell whether a cell is looked at when its observations become this many.

    >>> [n for n in range(9, 40) if is_checked(n - 1, n)]
    [10, 12, 14, 16, 20, 24, 28, 32]
    """
    shift = max(0, number.bit_length() - CHECKED_BITS)
    return number >> shift != before >> shift


def next_check(number: int) -> int:
    """The next number of observations at which a cell is looked at.

    >>> [next_check(n) for n in (9, 10, 15, 16, 30)]
    [10, 12, 16, 20, 32]
    """
    shift = max(0, number.bit_length() - CHECKED_BITS)
    return ((number >> shift) + 1) << shift


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
    (10.4, 100)
    >>> round(change(SubGaussian(0.5), marks, 200, 100.0).evidence, 1)
    -3.9
    """
    numbers = _which_may_reach(least, tail, marks, number, total) if is_tested(tail) else []
    if not numbers:
        return None
    weighted = [_evidence(tail, mark, number, total) - _log_prices()[mark.place] for mark in numbers]
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
    mean, alone, prices = total / number, least - math.log(max(1, len(marks))), _log_prices()
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
def _log_prices() -> tuple[float, ...]:
    """log(1/w_j) of the marks."""
    return tuple(math.log((j + 1) * (j + 2)) for j in range(len(grid())))


def _evidence(tail: Concentration, mark: ChangeMark, number: int, total: float) -> float:
    after, rest = number - mark.number, total - mark.total
    if isinstance(tail, Bounded):
        return _of_range(tail, (mark.number, mark.total), (after, rest))
    scale: float = tail.scale  # type: ignore[attr-defined]
    prior = grid()[mark.place] / SHARPNESS  # of the grid, so that it does not depend on results
    variance = (mark.number + prior) / mark.number**2 + (after + PRIOR) / after**2
    difference = (rest / after - mark.total / mark.number) / scale
    price = 0.5 * math.log((mark.number + prior) / prior * (after + PRIOR) / PRIOR)
    return 0.5 * difference * difference / variance - price


def _of_range(span: Bounded, before: tuple[int, float], after: tuple[int, float]) -> float:
    width = span.high - span.low
    parts = [(n, min(max((s - n * span.low) / width, 0.0), float(n))) for n, s in (before, after)]
    number, hits = sum(n for n, _ in parts), sum(s for _, s in parts)
    misses = number - hits
    entropy = -sum(one * math.log(one / number) for one in (hits, misses) if one > 0)
    return entropy + sum(_log_beta(s + 0.5, n - s + 0.5) - math.log(math.pi) for n, s in parts)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
