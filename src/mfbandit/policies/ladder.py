"""A ladder: how many arms are looked at once at which fidelity, before the best of them are compared at length."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from mfbandit.core import limit

LAST_PLAY_SHARE = 0.12  # of the capital: what a play of the last stage may cost
ALL_ARMS_SHARE = 0.5  # of the capital: what a first look at all arms may cost
SOME_ARMS_SHARE = 0.35  # of the capital: what it may cost where it reaches some arms only
MIDDLE_SHARE = 0.65  # of what the first stage leaves
LAST_SHARE = 0.4  # of what is left then; the rest is for comparing a few, which only noise makes necessary
RESUMED_ALL_SHARE = 0.6  # where plays resume: of the capital, what a first look at all arms may cost
RESUMED_SOME_SHARE = 0.55  # what it may cost where it reaches some arms only
FURTHER_SHARE = 0.6  # of what is left, for each next stage
SCREEN_RATIO = 3.0  # how much cheaper a look must be that decides about one at a higher fidelity
REPEATS = 3  # plays that find out whether results repeat themselves
MANY_ARMS = 30  # in the first stage, from which those are worth their cost


class Stage(NamedTuple):
    """One look at each of a number of arms, all at one fidelity.

    Args:
        fidelity: index of the fidelity.
        arms: how many arms.
    """

    fidelity: int
    arms: int


def ladder(
    costs: Sequence[float],
    kept: Sequence[int],
    arms: int,
    capital: float,
    *,
    share: float,
    deterministic: bool | None,
    repeats: bool,
) -> tuple[Stage, ...]:
    r"""Plan the stages: each looks at the best arms of the one before, at a higher fidelity.

    With the capital C, the last stage is at the highest fidelity with λ ≤ 0.12·C, the first one at the highest
    with K·λ ≤ C/2, and one between at about the geometric mean of their costs. Where not even the lowest
    fidelity pays for all arms, as many take part as 0.35·C pays for.

    Two cases are different. Where the first stage would leave out arms and is not three times cheaper than a sweep, the
    sweep is better (:func:`sweep`). Where the first stage is not below the last, it is the only one.

    Args:
        costs: λ_m of all fidelities.
        kept: the fidelities in use, increasing.
        arms: K.
        capital: C.
        share: the share of C that a single stage may cost if it does not reach all arms.
        deterministic: whether results have no noise; None if that is not known.
        repeats: whether a few plays of the first stage are made twice.

    >>> def plan(arms: int, capital: float) -> list[tuple[int, int]]:
    ...     options = {"share": 0.75, "deterministic": True, "repeats": False}
    ...     return [tuple(stage) for stage in ladder([1, 4, 16], [0, 1, 2], arms, capital, **options)]
    >>> plan(arms=300, capital=300)
    [(0, 105), (1, 31), (2, 4)]
    >>> plan(arms=10, capital=1600)
    [(2, 10)]
    """
    most = limit(capital)
    last = max((m for m in kept if costs[m] <= LAST_PLAY_SHARE * most), default=kept[0])
    first = max((m for m in kept if arms * costs[m] <= ALL_ARMS_SHARE * most), default=kept[0])
    alone = sweep(costs, kept, arms, capital, share)
    reaches_all = arms * costs[first] <= ALL_ARMS_SHARE * most
    if not reaches_all and first < alone.fidelity and SCREEN_RATIO * costs[first] > costs[alone.fidelity]:
        return (alone,)
    if first >= last:
        affordable = arms if arms * costs[first] <= most else int(share * most / costs[first])
        return (Stage(first, max(1, affordable)),)
    return _stages(costs, kept, arms, most, first, last, deterministic=deterministic, repeats=repeats)


def sweep(costs: Sequence[float], kept: Sequence[int], arms: int, capital: float, share: float) -> Stage:
    """Return the best single stage below the highest fidelity: the most arms, as far as lower ones are worth less.

    With n = min(K, ⌊share·C/λ_m⌋) and j kept fidelities between m and the highest, it is the one with the largest
    n/(1 + j), the highest fidelity among ties.

    >>> sweep([0.2, 0.41, 1], [0, 1, 2], arms=20, capital=5, share=0.75)  # the lowest pays for 18, worth 9
    Stage(fidelity=1, arms=9)
    """
    most = limit(share * capital)
    best, chosen = 0.0, Stage(kept[0], 1)
    for j, m in enumerate(reversed(kept[:-1] or kept)):
        n = arms if arms * costs[m] <= most else int(most / costs[m])
        if n / (1 + j) > best:
            best, chosen = n / (1 + j), Stage(m, n)
    return chosen


def _stages(
    costs: Sequence[float],
    kept: Sequence[int],
    arms: int,
    capital: float,
    first: int,
    last: int,
    *,
    deterministic: bool | None,
    repeats: bool,
) -> tuple[Stage, ...]:
    """Return the stages at the first fidelity, one between if there is any, and the last."""
    middle = _between(costs, kept, first, last)
    share = SOME_ARMS_SHARE
    if middle is None:  # its share goes to the two others, as they share the rest
        share = SOME_ARMS_SHARE / (SOME_ARMS_SHARE + (1 - SOME_ARMS_SHARE) * MIDDLE_SHARE)
    all_fit = arms * costs[first] <= ALL_ARMS_SHARE * capital
    n = arms if all_fit else min(arms, max(1, int(share * capital / costs[first])))
    stages, left = [Stage(first, n)], capital - n * costs[first]
    reserved = REPEATS * costs[first] if repeats and n >= MANY_ARMS else 0.0
    if middle is not None:
        n = min(n, int(min(MIDDLE_SHARE * left, left - 2 * costs[last] - reserved) / costs[middle]))
        if n >= 1:
            stages.append(Stage(middle, n))
            left -= n * costs[middle]
        n = stages[-1].arms
    n = min(n, _last_arms((left - reserved) / costs[last], deterministic=deterministic))
    return (*stages, Stage(last, n)) if n >= 1 else tuple(stages)


def _last_arms(plays: float, *, deterministic: bool | None) -> int:
    """Return how many arms reach the last stage if so many plays are left there."""
    return int(plays) if deterministic else min(int(plays), max(2, int(LAST_SHARE * plays)))


def resumed_ladder(
    costs: Sequence[float],
    kept: Sequence[int],
    arms: int,
    capital: float,
    *,
    deterministic: bool | None,
    repeats: bool,
) -> tuple[Stage, ...]:
    r"""Plan the stages where plays go on from earlier ones: at every fidelity, as those between cost nothing more.

    The first stage is at the lowest fidelity: with all arms if K·λ ≤ 0.6·C, else with as many as 0.55·C pays for. Each
    next one takes 0.6 of what is left, at λ_m − λ_{m−1} an arm. The last one is at the highest fidelity with
    λ ≤ 0.12·C; without noise it takes all that is left.

    Args:
        costs: λ_m of all fidelities.
        kept: the fidelities in use, increasing.
        arms: K.
        capital: C.
        deterministic: whether results have no noise; None if that is not known.
        repeats: whether a few plays of the first stage are made twice.

    >>> [tuple(one) for one in resumed_ladder([1, 4, 16], [0, 1, 2], 300, 400, deterministic=True, repeats=False)]
    [(0, 220), (1, 36), (2, 6)]
    """
    most, lowest = limit(capital), kept[0]
    n = arms if arms * costs[lowest] <= RESUMED_ALL_SHARE * most else int(RESUMED_SOME_SHARE * most / costs[lowest])
    n = min(arms, max(1, n))
    last = max((m for m in kept if costs[m] <= LAST_PLAY_SHARE * most), default=lowest)
    if arms * costs[kept[-1]] <= most:  # all could be trained to the end
        last = kept[-1]
    left = most - n * costs[lowest] - (REPEATS * costs[lowest] if repeats and n >= MANY_ARMS else 0.0)
    stages = [Stage(lowest, n)]
    for below, m in pairwise(m for m in kept if m <= last):
        plays = left / (costs[m] - costs[below])
        n = min(n, _last_arms(plays, deterministic=deterministic) if m == last else int(FURTHER_SHARE * plays))
        if n < 1:
            break
        stages.append(Stage(m, n))
        left -= n * (costs[m] - costs[below])
    return tuple(stages)


def _between(costs: Sequence[float], kept: Sequence[int], first: int, last: int) -> int | None:
    """Return the kept fidelity between two whose cost is nearest their geometric mean, None if there is none."""
    wanted = 0.5 * (math.log(costs[first]) + math.log(costs[last]))
    return min((m for m in kept if first < m < last), key=lambda m: abs(math.log(costs[m]) - wanted), default=None)
