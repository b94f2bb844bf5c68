"""The engine for UCB and MF-UCB over millions of plays, play for play as the plain formula has it.

A scan over all K·M bounds at each step is the whole cost of a simulation, and hardly any of it is needed. An arm's
index is B_k(t) = min over m of (X̄ + ζ_m) + u·b, with u = sqrt(log t). Between its plays it only grows with t. So the
index at a later time, its *key*, bounds it from above until then.

- ``heap.py``: arms are kept in a heap by their keys at the end of a block of steps. A step searches the heap from the
  root and leaves out every branch whose key is below the best index found: little more than one evaluation. At the
  end of a block all keys are made anew. The block's length follows what that costs, and what the looks cost that
  fresher keys would have saved.
- ``sleeping.py``: with many arms even one look at each of them now and then is too much, so most sleep.
- ``twins.py``: rewards of 0 and 1 make many arms exactly equal, and only the first of these is looked at.
- ``lines.py``: all comparisons are of numbers made by the floating-point expression of ``core/bounds.py``, in which
  rounding keeps the order. A key is a bound to the last bit, and no tolerance is needed anywhere.

Where noise is far smaller than the learner was told, thousands of arms stay nearly equal and none are twins. Then a
step has to look at many. (Left out: filing each sleeper by the moment at which it could first matter. In an earlier
trial that was about twice as fast at a million arms; it takes epsilons and many more lines.)
"""

import math
from typing import NamedTuple, TypeAlias

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.policies import MFUCB, UCB
from mfbandit.problems import Problem
from mfbandit.simulation.engines.heap import (
    CHILDREN,
    FIRST_BLOCK,
    Heap,
    SmallArray,
    empty_heap,
    heapify,
    next_block,
    search,
    sift_down,
    sift_up,
)
from mfbandit.simulation.engines.interface import RAN_DRY, RUNNING, SPENT, RunState
from mfbandit.simulation.engines.kernels import (
    NEARLY,
    Generator,
    compiled,
    counting,
    draw,
    inlined,
    no_reward_left,
    record,
    total_cost,
)
from mfbandit.simulation.engines.lines import LineRule, Lines, fidelity, index, learn, no_lines
from mfbandit.simulation.engines.sleeping import Sleepers, all_awake, first_invalid, rouse
from mfbandit.simulation.engines.truth import GAUSSIAN, Truth
from mfbandit.simulation.engines.twins import NOBODY, Twins, clear_slots, no_twins, stands_behind
from mfbandit.simulation.engines.ucb_fidelities import known, used

__all__ = ["begin", "prepare", "run_on", "supports", "used"]

MadePlays: TypeAlias = tuple[IntArray, IntArray, IntArray]  # counts, tally and trace of a run

TOO_LOW, AT_LIMIT = 10, 11  # why a block was left early, beside what a run's status can be
HEAP_ARMS = 2048  # with no more arms than this all are awake, and twins are not worth their while


class Blocks(NamedTuple):
    """Where the blocks of steps stand between two calls; arrays of one number each."""

    length: FloatArray  # plays for which keys are made
    end: IntArray  # the time of the present keys
    extra: IntArray  # looks beyond the first of each step in this block
    size: IntArray  # of the heap


class HeapState(NamedTuple):
    """What the engine keeps beside the run's state."""

    lines: Lines
    heap: Heap
    twins: Twins
    sleepers: Sleepers
    blocks: Blocks


def supports(problem: Problem, policy: UCB | MFUCB) -> bool:
    """Whether all noise that the policy sees is sub-Gaussian or bounded, and its bounds are not by divergence.

    >>> from mfbandit.problems import paper_problem
    >>> supports(paper_problem(1), MFUCB()), supports(paper_problem(3), MFUCB(kl=True))
    (True, False)
    """
    if policy.kl or problem.fidelities.concentration is None:
        return False
    return known(problem, policy).scales is not None


def prepare(problem: Problem, policy: UCB | MFUCB, _capital: float) -> LineRule:
    """What the learner knows, as arrays.

    >>> from mfbandit.problems import paper_problem
    >>> prepare(paper_problem(3), UCB(), 1e6).biases.tolist()
    [0.0]
    """
    fidelities = known(problem, policy)
    scales = np.asarray(fidelities.scales)[:, 0] * math.sqrt(2 * policy.rho)
    return LineRule(np.array(fidelities.known_biases), scales, np.array(fidelities.gammas, dtype=np.float64))


def begin(truth: Truth, run: RunState, heap_arms: int = HEAP_ARMS) -> HeapState:
    """The state before the first play: no lines, an empty heap, all arms awake.

    Args:
        truth: what rewards are drawn from.
        run: where the run stands.
        heap_arms: with more arms than this some sleep, and twins are looked for.

    >>> from mfbandit.problems import paper_problem
    >>> from mfbandit.simulation.engines import heap_ucb
    >>> from mfbandit.simulation.engines.interface import begin_run
    >>> begin_run(heap_ucb, paper_problem(3), UCB(), np.array([100.0])).state.sleepers.numbers.tolist()
    [200]
    """
    k, m = run.counts.shape
    ties = truth.kind != GAUSSIAN or bool((truth.sigmas == 0).any())
    return HeapState(
        no_lines(k, m),
        empty_heap(k),
        no_twins(k, wanted=k > heap_arms and ties),
        all_awake(k, heap_arms),
        Blocks(np.array([FIRST_BLOCK]), np.ones(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64)),
    )


# The kernels


@compiled
def fill_heap(heap: Heap, twins: Twins, sleepers: Sleepers, lines: Lines, counts: IntArray, u_end: float) -> int:
    """Put the arms that are awake into the heap, by their index at the block's end; how many places they take."""
    keys, nodes = heap.keys, heap.nodes
    sum_bits, intercepts, slopes = lines.sums.view(np.int64), lines.intercepts, lines.slopes
    awake, with_twins = sleepers.lists[-1, : sleepers.numbers[-1]], len(twins.slots) > 1
    mask = clear_slots(twins.slots, len(awake)) if with_twins else 0
    size = 0
    for arm in awake:
        if with_twins and stands_behind(twins, counts, sum_bits, intercepts, slopes, arm, mask):
            continue
        keys[size], nodes[size] = index(intercepts, slopes, arm, u_end), arm
        size += 1
    heapify(keys, nodes, size)
    return size


@inlined
def refile(
    keys: FloatArray, nodes: SmallArray, behind: IntArray, place: int, size: int, key: float, with_twins: bool
) -> int:
    """Find the place of the arm just played; its first twin, if any, inherits the old place. The heap's new size."""
    arm = nodes[place]
    if with_twins and behind[arm] != NOBODY:
        nodes[place] = behind[arm]
        behind[arm] = NOBODY
        keys[size], nodes[size] = key, arm
        keys[size + CHILDREN] = -np.inf
        sift_up(keys, nodes, size)
        size += 1
    elif key <= keys[place]:
        keys[place] = key
        sift_down(keys, nodes, place, size)
    else:
        keys[place] = key
        sift_up(keys, nodes, place)
    return size


@compiled
def play_first(
    truth: Truth,
    rule: LineRule,
    lines: Lines,
    made: MadePlays,
    t: int,
    end: int,
    near: float,
    checked: int,
    lost: float,
    rng: Generator,
) -> tuple[int, float, int]:
    """The first pass: an arm without a result has an infinite index, so all are played once, by number."""
    (counts, tally, trace), (sums, intercepts, slopes) = made, lines
    rough, _ = total_cost(truth.costs, tally, 0)
    while t <= end:
        if rough + truth.costs[0] >= near and t != checked:
            return t, lost, AT_LIMIT
        arm = t - 1
        learn(counts, sums, intercepts, slopes, rule.biases, rule.scales, arm, 0, draw(truth, arm, 0, 0, rng))
        tally[0] += 1
        rough += truth.costs[0]
        lost += truth.losses[arm, 0]
        if t <= len(trace):
            trace[t - 1, 0], trace[t - 1, 1] = arm, 0
        t += 1
    return t, lost, RUNNING


@compiled
def play_block(
    truth: Truth,
    rule: LineRule,
    state: HeapState,
    made: MadePlays,
    t: int,
    end: int,
    size: int,
    u_end: float,
    near: float,
    checked: int,
    lost: float,
    rng: Generator,
) -> tuple[int, int, float, int, int, int, float, int]:
    """Play up to and including time ``end``, unless something is in the way: all that changed, and what it was.

    The sum of costs is only kept up roughly, to tell when a limit is near; then ``record`` makes it exactly.
    """
    costs, (biases, scales, gammas), (counts, tally, trace) = truth.costs, rule, made
    (sums, intercepts, slopes), (keys, nodes, stack), sleepers = state.lines, state.heap, state.sleepers
    behind, with_twins = state.twins.behind, len(state.twins.slots) > 1
    some_sleep, bounds, threshold = len(sleepers.numbers) > 1, sleepers.bounds, sleepers.thresholds[-1]
    u_far = math.sqrt(math.log(sleepers.wake_at[min(1, len(sleepers.numbers) - 1)]))
    rough, _ = total_cost(costs, tally, 0)
    extra, arm, m, best, status = 0, 0, 0, np.inf, RUNNING
    while t <= end:
        u = math.sqrt(math.log(t))
        place, best = 0, index(intercepts, slopes, nodes[0], u)
        if max(max(keys[1], keys[2]), max(keys[3], keys[4])) >= best:
            place, best, looks = search(keys, nodes, size, stack, intercepts, slopes, u, best)
            extra += looks
        if best < threshold:
            status = TOO_LOW
            break
        arm = nodes[place]
        m = fidelity(slopes, gammas, arm, u)
        if rough + costs[m] >= near and t != checked:
            status = AT_LIMIT
            break
        earlier = counts[arm, m]
        if no_reward_left(truth, arm, m, earlier):
            status = RAN_DRY
            break
        learn(counts, sums, intercepts, slopes, biases, scales, arm, m, draw(truth, arm, m, earlier, rng))
        tally[m] += 1
        rough += costs[m]
        lost += truth.losses[arm, m]
        if t <= len(trace):
            trace[t - 1, 0], trace[t - 1, 1] = arm, m
        if some_sleep:
            bounds[arm] = index(intercepts, slopes, arm, u_far)
        size = refile(keys, nodes, behind, place, size, index(intercepts, slopes, arm, u_end), with_twins)
        t += 1
    return t, size, lost, extra, arm, m, best, status


@counting
def run_on(truth: Truth, rule: LineRule, state: HeapState, run: RunState, rng: Generator, steps: int) -> None:
    """Make up to ``steps`` more plays; what changes at each is kept in local variables, and written down at the end."""
    lines, heap, twins, sleepers, blocks = state
    counts, tally, made = run.counts, run.tally, (run.counts, run.tally, run.trace)
    block, block_end, extra, size = blocks.length[0], blocks.end[0], blocks.extra[0], blocks.size[0]
    t, lost, status, arm, m = run.t[0], run.lost[0], run.status[0], run.arm[0], run.fidelity[0]
    n_arms, n_lists, stop = len(counts), len(sleepers.numbers), t + steps
    checked, best = 0, np.inf
    while t < stop and status == RUNNING:
        near = run.limits[run.recorded[0]] * NEARLY
        if t <= n_arms:
            end, m = min(n_arms, stop - 1), 0
            t, lost, status = play_first(truth, rule, lines, made, t, end, near, checked, lost, rng)
        else:
            invalid = first_invalid(sleepers, t, best)
            if invalid < n_lists:
                rouse(sleepers, lines, invalid, t)
                block_end = 0
            if t > block_end:
                block = next_block(block, sleepers.numbers[-1], extra, n_arms, t)
                block_end, extra = min(t + int(block), sleepers.wake_at[-1]), 0
                size = fill_heap(heap, twins, sleepers, lines, counts, math.sqrt(math.log(block_end)))
            u_end, end = math.sqrt(math.log(block_end)), min(block_end, stop - 1)
            t, size, lost, looks, arm, m, best, status = play_block(
                truth, rule, state, made, t, end, size, u_end, near, checked, lost, rng
            )
            extra += looks
        if status == AT_LIMIT:
            run.lost[0] = lost
            record(truth, run, m)
            status = SPENT if run.recorded[0] == len(run.limits) else RUNNING
            checked = t
        elif status == TOO_LOW:
            status = RUNNING
            continue
        best = np.inf
    blocks.length[0], blocks.end[0], blocks.extra[0], blocks.size[0] = block, block_end, extra, size
    run.t[0], run.lost[0], run.status[0], run.arm[0], run.fidelity[0] = t, lost, status, arm, m
    run.spent[0], _ = total_cost(truth.costs, tally, 0)
