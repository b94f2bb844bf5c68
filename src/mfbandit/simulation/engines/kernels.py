"""Compiled pieces that every engine is made of: draws, payment, and the account of regret.

Where a kernel calls others at each step, a play takes three of these lines::

    if not affordable(truth, run, arm, m):
        return
    reward = make_play(truth, run, arm, m, rng)
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from mfbandit._internal.imports import needed_for
from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.simulation.engines.interface import DECIDED, RAN_DRY, RUNNING, SPENT, RunState
from mfbandit.simulation.engines.truth import BERNOULLI, GAUSSIAN, REPLAY, REPLAY_IN_ORDER, Truth

with needed_for("simulate", "sim"):
    from numba import njit

Generator = np.random.Generator
NEARLY = 1 - 1e-9  # a share of a limit: up to there no rounding of a sum of costs can matter

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
# Arrays belong to whoever called ``run_on``: only functions that make some of their own count references to them. In
# the others, at each step, that would take a third of the time.
_BORROWING = _OPTIONS | {"_nrt": False}
counting = njit(**_OPTIONS)
compiled = njit(**_BORROWING)
# A call that hands over a few arrays costs as much as an evaluation: what runs at each step is copied into its caller.
inlined = njit(**_BORROWING, forceinline=True)


def compiled_with(function: Callable[..., Any], **others: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of another room, whose source is shared, with the functions that it calls compiled as well.

    >>> from mfbandit.core import estimate
    >>> centre = compiled_with(estimate.centre, log_mills_ratio=compiled(estimate.log_mills_ratio))
    >>> one, zero = np.ones(1), np.zeros(1)
    >>> float(centre(one, 0.25 * one, one, zero)) == estimate.centre([1.0], [0.25], [1.0], [0.0])
    True
    """
    if not isinstance(function, FunctionType):
        raise TypeError(f"function must be one written in Python, got {function!r}")
    names = {**function.__globals__, **others}
    bound: Callable[..., Any] = compiled(FunctionType(function.__code__, names, function.__name__))
    return bound


@inlined
def draw(truth: Truth, arm: int, m: int, earlier: int, rng: Generator) -> float:
    """Draw one reward, by the same draws and operations as Problem.draw."""
    if truth.kind == GAUSSIAN:
        reward = truth.means[arm, m] + truth.sigmas[m] * rng.standard_normal()
    elif truth.kind == BERNOULLI:
        reward = 1.0 if rng.random() < truth.means[arm, m] else 0.0
    elif truth.kind == REPLAY:
        reward = truth.table[truth.starts[arm, m] + int(rng.random() * truth.lengths[arm, m])]
    else:
        reward = truth.table[truth.starts[arm, m] + int(earlier)]
    return reward


@inlined
def no_reward_left(truth: Truth, arm: int, m: int, earlier: int) -> bool:
    """Whether a table that is replayed in order has run dry."""
    return truth.kind == REPLAY_IN_ORDER and earlier >= truth.lengths[arm, m]


@compiled
def largest(values: FloatArray) -> int:
    """Where the largest value is, the lowest number among ties."""
    first = 0
    for k in range(len(values)):
        if values[k] > values[first]:
            first = k
    return first


@njit(**_BORROWING, fastmath={"nnan", "nsz"})
def highest(values: FloatArray) -> float:
    """The largest of values without NaN, in eight chains of comparisons that a processor makes at once."""
    a = b = c = d = e = f = g = h = -np.inf
    whole = len(values) // 8 * 8
    for k in range(0, whole, 8):
        a, b, c, d = max(a, values[k]), max(b, values[k + 1]), max(c, values[k + 2]), max(d, values[k + 3])
        e, f, g, h = max(e, values[k + 4]), max(f, values[k + 5]), max(g, values[k + 6]), max(h, values[k + 7])
    best = max(max(max(a, b), max(c, d)), max(max(e, f), max(g, h)))
    for k in range(whole, len(values)):
        best = max(best, values[k])
    return best


@compiled
def total_cost(costs: FloatArray, tally: IntArray, m: int) -> tuple[float, float]:
    """Capital spent, and with one more play at m; by the same sum as core.spending."""
    spent, after = 0.0, 0.0
    for i in range(len(costs)):
        spent += costs[i] * tally[i]
        after += costs[i] * (tally[i] + (1 if i == m else 0))
    return spent, after


@inlined
def spent_on(costs: FloatArray, tally: IntArray) -> float:
    """Capital spent; by the same sum as core.spending."""
    spent = 0.0
    for m in range(len(costs)):
        spent += costs[m] * tally[m]
    return spent


@compiled
def record(truth: Truth, run: RunState, m: int) -> None:
    """Write down the regret at every capital into which one more play at m does not fit."""
    spent, after = total_cost(truth.costs, run.tally, m)
    at = run.recorded[0]
    while at < len(run.limits) and after > run.limits[at]:
        run.regret[at] = (run.capitals[at] - spent) * run.best_mean + run.lost[0]  # eq. 1
        at += 1
    run.recorded[0] = at


@inlined
def affordable(truth: Truth, run: RunState, arm: int, m: int) -> bool:
    """Whether this play can be made; if not, the status says what is in the way."""
    at = run.recorded[0]
    if at == len(run.limits) or run.spent[0] + truth.costs[m] >= run.limits[at] * NEARLY:
        record(truth, run, m)
    if run.recorded[0] == len(run.limits):
        run.status[0] = SPENT
    elif no_reward_left(truth, arm, m, run.counts[arm, m]):
        run.status[0] = RAN_DRY
    run.arm[0], run.fidelity[0] = arm, m
    return run.status[0] == RUNNING


@inlined
def decide(run: RunState, arm: int) -> None:
    """End the run: the policy answers with this arm."""
    run.answer[0], run.status[0] = arm, DECIDED


@inlined
def make_play(truth: Truth, run: RunState, arm: int, m: int, rng: Generator) -> float:
    """Draw the reward of a play, pay for it and count it; afterwards ``t`` is the next play's."""
    reward = draw(truth, arm, m, run.counts[arm, m], rng)
    t = run.t[0]
    if t <= len(run.trace):
        run.trace[t - 1, 0], run.trace[t - 1, 1] = arm, m
    run.t[0] = t + 1
    run.counts[arm, m] += 1
    run.tally[m] += 1
    run.spent[0] = spent_on(truth.costs, run.tally)
    run.lost[0] += truth.losses[arm, m]
    return reward
