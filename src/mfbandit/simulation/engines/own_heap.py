"""A look at few arms for each play, as a template for ``binding.py``: for an index that only rises between plays.

The heap is that of ``heap_ucb.py``. An arm's key is its index at the end of a block of plays or of capital, plus a
little, as rounding need not keep the order to the last bit. An index above its key did not only rise.
"""

import math
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.policies.compiled import Clock, Parameters
from mfbandit.simulation.engines.heap import (
    FIRST_BLOCK,
    Heap,
    empty_heap,
    heapify,
    next_block,
    search,
    sift_down,
    sift_up,
)
from mfbandit.simulation.engines.interface import RUNNING, RunState
from mfbandit.simulation.engines.kernels import Generator, inlined
from mfbandit.simulation.engines.lazy_scan import key_of
from mfbandit.simulation.engines.own_plays import (
    FELL,
    NOT_A_NUMBER,
    Learned,
    nothing_learned,
    play_arm,
    stop,
    value_of,
)
from mfbandit.simulation.engines.truth import Truth


class RisingState(NamedTuple):
    """What was learned, the heap, and where its block stands; arrays of one number each but for the first two."""

    learned: Learned
    heap: Heap
    end: FloatArray  # of the block, in plays or capital
    length: FloatArray  # of the block, in plays
    extra: IntArray  # looks beyond the first of each step in this block
    compared: IntArray  # t at which all indices were last compared with their keys; again when t has doubled


def no_heap(run: RunState) -> RisingState:
    """The state before the first play: no block.

    >>> from mfbandit import UCB, paper_problem
    >>> from mfbandit.simulation.engines import heap_ucb
    >>> from mfbandit.simulation.engines.interface import begin_run
    >>> no_heap(begin_run(heap_ucb, paper_problem(3), UCB(), np.ones(1)).run).length.tolist()
    [16.0]
    """
    learned, one, none = nothing_learned(run), np.ones(1), np.zeros(1, np.int64)
    return RisingState(learned, empty_heap(len(run.counts)), -np.inf * one, FIRST_BLOCK * one, none, none.copy())


def rises_with_capital() -> bool:
    """Whether the index rises with the capital spent; else it rises with log t."""
    return False


def clock_at(now: float, arms: int) -> Clock:
    """The clock at this t or capital; what the index may not depend on is not a number, or negative."""
    if rises_with_capital():
        return Clock(-1, math.nan, now, arms)
    return Clock(int(now), math.log(now), math.nan, arms)


def time_of(run: RunState) -> float:
    """What the index rises with: t of the next play, or the capital spent."""
    return run.spent[0] if rises_with_capital() else float(run.t[0])


@inlined
def reason(value: float, key: float) -> int:
    """Why an index is not at most its key."""
    return NOT_A_NUMBER if math.isnan(value) or math.isnan(key) else FELL


def begin_block(truth: Truth, parameters: Parameters, state: RisingState, run: RunState) -> None:
    """Make all keys anew; a block is longer where that costs more than the looks that it saves."""
    arms, t = len(state.learned.counts), run.t[0]
    length = next_block(state.length[0], arms, state.extra[0], arms, t)
    cost = run.spent[0] / (t - 1) if t > 1 else truth.costs[-1]
    end = run.spent[0] + length * cost if rises_with_capital() else float(t + int(length))
    state.length[0], state.end[0], state.extra[0] = length, end, 0
    then, wrong = clock_at(end, arms), False
    for k in range(arms):
        key = key_of(value_of(state.learned, parameters, k, then))
        state.heap.keys[k], state.heap.nodes[k] = key, k
        wrong |= key != key  # noqa: PLR0124 - NaN alone is not itself
    if wrong or t >= 2 * state.compared[0]:
        state.compared[0] = t
        compare(parameters, state, run)
    heapify(state.heap.keys, state.heap.nodes, arms)


def compare(parameters: Parameters, state: RisingState, run: RunState) -> None:
    """Stop if an arm's index is above its key, or one of them is not a number; keys are in the arms' order."""
    arms, keys = len(state.learned.counts), state.heap.keys
    now = clock_at(time_of(run), arms)
    for k in range(arms):
        value = value_of(state.learned, parameters, k, now)
        if not value <= keys[k]:
            stop(run, k, 0, reason(value, keys[k]))
            return


def first_pass(
    truth: Truth, parameters: Parameters, state: RisingState, run: RunState, rng: Generator, stop_at: int
) -> None:
    """Play arms by number as long as the next one's index is infinite and no other's; then the heap begins."""
    arms, done = len(state.learned.counts), False
    while not done and run.t[0] < stop_at:
        arm, now = run.t[0] - 1, clock_at(time_of(run), arms)
        if run.t[0] > arms or value_of(state.learned, parameters, arm, now) != np.inf:
            break
        if not play_arm(truth, parameters, state.learned, run, rng, arm, now):
            return
        then = run.spent[0] + arms * truth.costs[-1] if rises_with_capital() else 2.0 * arms
        done = not value_of(state.learned, parameters, arm, clock_at(then, arms)) < np.inf
    if done or run.t[0] < stop_at:
        begin_block(truth, parameters, state, run)


def rise_on(
    truth: Truth, parameters: Parameters, state: RisingState, run: RunState, rng: Generator, steps: int
) -> None:
    """Make up to ``steps`` more plays."""
    learned, tree, end, extra = state.learned, state.heap, state.end, state.extra
    keys, nodes, arms, stop_at = tree.keys, tree.nodes, len(learned.counts), run.t[0] + steps
    if end[0] == -np.inf:
        first_pass(truth, parameters, state, run, rng, stop_at)
    then = clock_at(max(end[0], 1.0), arms)  # there may be no block yet
    while run.t[0] < stop_at and run.status[0] == RUNNING:
        if time_of(run) > end[0]:
            begin_block(truth, parameters, state, run)
            then = clock_at(end[0], arms)
            if run.status[0] != RUNNING:
                return
        clock = clock_at(time_of(run), arms)
        place, best = 0, value_of(learned, parameters, nodes[0], clock)
        if max(max(keys[1], keys[2]), max(keys[3], keys[4])) >= best:
            place, best, looks = search(keys, nodes, arms, tree.stack, learned, parameters, clock, best)
            extra[0] += looks
        arm = nodes[place]
        if not keys[place] >= best:
            stop(run, arm, 0, reason(best, keys[place]))
            return
        if not play_arm(truth, parameters, learned, run, rng, arm, clock):
            return
        key = key_of(value_of(learned, parameters, arm, then))
        if math.isnan(key):
            stop(run, arm, 0, NOT_A_NUMBER)
            return
        sinks = key <= keys[place]
        keys[place] = key
        if sinks:
            sift_down(keys, nodes, place, arms)
        else:
            sift_up(keys, nodes, place)
