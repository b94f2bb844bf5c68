"""The compiled engine: UCB and MF-UCB over millions of plays, play for play as the plain formula has it.

A scan over all K·M bounds at each step is the whole cost of a simulation, and hardly any of it is needed. Between
its plays an arm's index B_k(t) = min over m of (X̄ + ζ_m) + u·b, with u = sqrt(log t), only grows with t. So its
index at a later time, its *key*, bounds it from above until then. Arms are kept in a heap by their keys at the end
of a block of steps; a step searches the heap from the root and leaves out every branch whose key is below the best
index found, which takes little more than one evaluation. At the end of a block all keys are made anew; the block's
length follows what that costs, and what the looks cost that fresher keys would have saved. With many arms even one
look at each of them now and then is too much, so most *sleep*: a list has only those whose index can reach a
threshold by a certain time, a tenth of all, a second list a tenth of these, and so on, and the last list is in the
heap. A list is good until its time has come or the best index falls below its threshold; no sleeper can be the best
before that. Rewards of 0 and 1 make many arms exactly equal; such *twins* stand behind one another in the heap, and
only the first is looked at. All comparisons are of numbers made by the floating-point expression of
``core/bounds.py``, in which rounding keeps the order: a key is a bound to the last bit, and no tolerance is needed
anywhere. Where noise is far smaller than the learner was told, thousands of arms stay nearly equal, none of them
twins, and a step has to look at many. (Left out: filing each sleeper by the moment at which it could first matter.
In an earlier trial that was about twice as fast at a million arms; it takes epsilons and many more lines.)

Arrays over arms and fidelities have shape (K, M) here: what is known of one arm lies together.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mfbandit._internal.imports import needed_for
from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import limit
from mfbandit.policies import MFUCB, UCB, Policy
from mfbandit.problems import Account as AccountName
from mfbandit.problems import Bernoulli, Gaussian, Problem, Replay, pseudo_rewards

with needed_for("simulate", "sim"):
    from numba import njit

Recorded = tuple[FloatArray, IntArray, IntArray]
SmallArray = NDArray[np.uint32]
Generator = np.random.Generator

GAUSSIAN, BERNOULLI, REPLAY, REPLAY_IN_ORDER = range(4)
RUNNING, SPENT, RAN_DRY, TOO_LOW, AT_LIMIT = range(5)
NOBODY = -1
NEVER = 2**62
HEAP_ARMS = 2048  # with no more arms than this all are awake, and twins are not worth their while
FEWER = 10  # each list of arms that are more awake is this much shorter
CHILDREN = 4  # of a node in the heap
NEARLY = 1 - 1e-9

OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
# Arrays belong to whoever called ``run_on``: only functions that make some of their own count references to them. In
# the others, at each step, that would take a third of the time.
BORROWING = OPTIONS | {"_nrt": False}
counting = njit(**OPTIONS)
compiled = njit(**BORROWING)
# A call that hands over a few arrays costs as much as an evaluation: what runs at each step is copied into its caller.
inlined = njit(**BORROWING, forceinline=True)


class Truth(NamedTuple):
    """What rewards are drawn from, and what plays cost in regret."""

    kind: int
    means: FloatArray  # (K, M)
    sigmas: FloatArray  # (M,)
    losses: FloatArray  # (K, M): cost times (best mean - pseudo-reward) of one play
    table: FloatArray  # all recorded rewards, one arm and fidelity after the other
    starts: IntArray  # (K, M): where in the table those of an arm and fidelity begin
    lengths: IntArray  # (K, M): how many there are


class Rule(NamedTuple):
    """What the learner knows, in the form in which the index needs it."""

    costs: FloatArray  # (M,)
    biases: FloatArray  # (M,)
    scales: FloatArray  # (M,): sigma * sqrt(2 rho), so that the slope is scale / sqrt(T)
    gammas: FloatArray  # (M - 1,)


class Arms(NamedTuple):
    """What was learned. The bound of fidelity m is the line level + u * slope in u = sqrt(log t)."""

    counts: IntArray  # (K, M)
    sums: FloatArray  # (K, M)
    levels: FloatArray  # (K, M): mean + bias; infinite without a result
    slopes: FloatArray  # (K, M): scale / sqrt(T); infinite without a result
    tally: IntArray  # (M,): plays at each fidelity, over all arms


class Queue(NamedTuple):
    """Who is looked at: the heap, the twins behind those in it, and the lists of arms that are more and more awake."""

    keys: FloatArray  # of the heap
    nodes: SmallArray  # the arm at each place of the heap
    stack: SmallArray  # places still to be searched
    twins: IntArray  # (K,): the next arm with the very same lines, or NOBODY
    tails: IntArray  # (K,): the last of those, while they are being linked
    slots: IntArray  # hash table of arms by their lines; one slot where twins do not matter
    lists: SmallArray  # (L, K): the first has all arms, the last those in the heap
    numbers: IntArray  # (L,): arms in each list
    thresholds: FloatArray  # (L,): no arm outside the list has an index that reaches this ...
    wake_at: IntArray  # (L,): ... up to this time
    woken_at: IntArray  # (L,): when the list was made
    naps: FloatArray  # (L,): how long it was meant to last
    bounds: FloatArray  # (K,): each arm's index when the second list's time is over


class Clock(NamedTuple):
    """Where a run stands between two stretches of it."""

    t: int  # the next play's
    lost: float  # sum of losses so far
    recorded: int  # capitals whose regret is known
    status: int
    size: int  # of the heap
    block: float  # steps for which keys are made
    block_end: int  # the time of the present keys
    extra: int  # looks beyond the first of each step in this block
    arm: int  # the play that could not be made, where a table ran dry
    fidelity: int


class Account(NamedTuple):
    """The capitals at which regret is recorded."""

    capitals: FloatArray  # (G,), increasing
    limits: FloatArray  # (G,): the same with room for rounding
    regret: FloatArray  # (G,): written as the run passes them
    best_mean: float


class State(NamedTuple):
    """All that changes in a run."""

    arms: Arms
    queue: Queue
    clock: Clock
    account: Account


# From a problem to arrays


def supports(problem: Problem, policy: Policy) -> bool:
    """Whether the engine can run this policy here: UCB and MF-UCB, where all noise is sub-Gaussian or bounded.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> supports(paper_problem(1), MFUCB())
    True
    """
    if not isinstance(policy, UCB | MFUCB) or type(policy) not in (UCB, MFUCB) or policy.kl:
        return False
    if problem.fidelities.concentration is None:
        return False
    used = problem.fidelities.top if type(policy) is UCB else problem.fidelities
    return used.scales is not None


def prepare(problem: Problem, policy: UCB | MFUCB, account: AccountName) -> tuple[Truth, Rule]:
    """What all runs share. UCB sees the highest fidelity alone, and is MF-UCB there.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> truth, rule = prepare(paper_problem(3), UCB(), "paper")
    >>> truth.means.shape, rule.costs.tolist()
    ((200, 1), [10.0])
    """
    top = type(policy) is UCB
    used = problem.fidelities.top if top else problem.fidelities
    rows = slice(-1, None) if top else slice(None)
    scales = np.asarray(used.scales)[:, 0] * math.sqrt(2 * policy.rho)
    gammas = np.array(used.gammas, dtype=np.float64)
    rule = Rule(np.array(used.costs), np.array(used.known_biases), scales, gammas)
    return prepare_truth(problem, rows, account), rule


def prepare_truth(problem: Problem, rows: slice | list[int], account: AccountName) -> Truth:
    """The rewards and losses of these fidelities.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> prepare_truth(paper_problem(3), slice(None), "paper").means.shape
    (200, 2)
    """
    costs = np.array(problem.fidelities.costs)[rows]
    losses = costs[:, None] * (problem.best_mean - pseudo_rewards(problem, account)[rows])
    kind, sigmas, (table, starts, lengths) = _rewards(problem, rows)
    return Truth(kind, _by_arm(problem.means[rows]), sigmas, _by_arm(losses), table, _by_arm(starts), _by_arm(lengths))


def _by_arm(table: NDArray[Any]) -> NDArray[Any]:
    # Always a copy: a read-only array is another type to Numba, and all would be compiled a second time.
    return np.array(table.T, order="C")


def _rewards(
    problem: Problem, rows: slice | list[int]
) -> tuple[int, FloatArray, tuple[FloatArray, IntArray, IntArray]]:
    rewards = problem.rewards
    no_table = (np.zeros(0), np.zeros((0, 0), dtype=np.int64), np.zeros((0, 0), dtype=np.int64))
    if isinstance(rewards, Gaussian):
        return GAUSSIAN, np.array(rewards.sigmas(len(problem.fidelities))[rows]), no_table
    if isinstance(rewards, Bernoulli):
        return BERNOULLI, np.zeros(0), no_table
    return REPLAY if rewards.replace else REPLAY_IN_ORDER, np.zeros(0), _one_table(rewards, rows)


def _one_table(rewards: Replay, rows: slice | list[int]) -> tuple[FloatArray, IntArray, IntArray]:
    table = np.concatenate([np.asarray(cell, dtype=np.float64) for row in rewards.samples for cell in row])
    ends = np.cumsum(rewards.lengths.ravel()).reshape(rewards.lengths.shape)
    return table, (ends - rewards.lengths)[rows], rewards.lengths[rows]


def begin(truth: Truth, capitals: FloatArray, best_mean: float, heap_arms: int = HEAP_ARMS) -> State:
    """A run before its first play.

    Args:
        truth: what all runs share.
        capitals: where regret is recorded, increasing; the run ends at the last; shape (G,).
        best_mean: μ*.
        heap_arms: with more arms than this some sleep, and twins are looked for.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> truth, rule = prepare(paper_problem(3), UCB(), "paper")
    >>> begin(truth, np.array([100.0]), 0.9).clock.t
    1
    """
    k, m = truth.means.shape
    arms = Arms(
        np.zeros((k, m), dtype=np.int64),
        np.zeros((k, m)),
        np.full((k, m), np.inf),
        np.full((k, m), np.inf),
        np.zeros(m, dtype=np.int64),
    )
    account = Account(capitals, limit(capitals), np.zeros(len(capitals)), best_mean)
    ties = truth.kind != GAUSSIAN or bool((truth.sigmas == 0).any())
    return State(
        arms,
        _queue(k, heap_arms, twins=k > heap_arms and ties),
        Clock(1, 0.0, 0, RUNNING, 0, 16.0, 1, 0, 0, 0),
        account,
    )


def _queue(k: int, heap_arms: int, *, twins: bool) -> Queue:
    n = 1 + max(0, math.ceil(math.log(k / heap_arms, FEWER)))
    lists = np.zeros((n, k + 1), dtype=np.uint32)
    lists[0, :k] = np.arange(k)
    room = k + 2 * CHILDREN
    return Queue(
        keys=np.full(room, -np.inf),
        nodes=np.zeros(room, dtype=np.uint32),
        stack=np.zeros(room, dtype=np.uint32),
        twins=np.full(k, NOBODY, dtype=np.int64),
        tails=np.full(k, NOBODY, dtype=np.int64),
        slots=np.full(2 ** math.ceil(math.log2(2 * k)) if twins else 1, NOBODY, dtype=np.int64),
        lists=lists,
        numbers=np.full(n, k, dtype=np.int64),
        thresholds=np.full(n, -np.inf),
        wake_at=np.array([NEVER] + [0] * (n - 1), dtype=np.int64),
        woken_at=np.full(n, k, dtype=np.int64),
        naps=k / 8 / FEWER ** np.arange(n, dtype=np.float64),
        bounds=np.zeros(k),
    )


def advance(truth: Truth, rule: Rule, state: State, rng: Generator, steps: int, trace: IntArray | None = None) -> State:
    """Up to ``steps`` more plays, without Python's lock; fewer where the capital is spent or a table runs dry.

    Args:
        truth: what all runs share.
        rule: what all runs share.
        state: where the run stands; its arrays are written to.
        rng: where chance comes from, one draw a play as in :meth:`~mfbandit.Problem.draw`.
        steps: how many plays at most.
        trace: (n, 2) integers; the first n plays of the run are written here as (arm, fidelity).

    >>> from mfbandit.problems.builtin import paper_problem
    >>> problem = paper_problem(3)
    >>> truth, rule = prepare(problem, MFUCB(), "paper")
    >>> state = begin(truth, np.array([1000.0]), problem.best_mean)
    >>> state = advance(truth, rule, state, np.random.default_rng(0), steps=10_000)
    >>> state.clock.status == SPENT, int(state.arms.tally.sum())
    (True, 1000)
    """
    plays = np.zeros((0, 2), dtype=np.int64) if trace is None else trace
    return state._replace(clock=Clock(*run_on(truth, rule, state, rng, steps, plays)))


# The kernels


@inlined
def index(levels: FloatArray, slopes: FloatArray, arm: int, u: float) -> float:
    """B_k(t), eq. 3: the smallest of the arm's lines at u."""
    best = np.inf
    for m in range(levels.shape[1]):
        best = min(best, levels[arm, m] + u * slopes[arm, m])
    return best


@inlined
def fidelity(slopes: FloatArray, gammas: FloatArray, arm: int, u: float) -> int:
    """Step 2 of Algorithm 1: the first fidelity whose width is at least gamma; without a play it is infinite."""
    m = 0
    while m < len(gammas) and u * slopes[arm, m] < gammas[m]:
        m += 1
    return m


@inlined
def draw(truth: Truth, arm: int, m: int, earlier: int, rng: Generator) -> float:
    """One reward, by the same draws and operations as Problem.draw."""
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
def learn(
    counts: IntArray,
    sums: FloatArray,
    levels: FloatArray,
    slopes: FloatArray,
    biases: FloatArray,
    scales: FloatArray,
    arm: int,
    m: int,
    reward: float,
) -> None:
    """Take in a reward: the line of this arm and fidelity moves."""
    count = counts[arm, m] + 1
    total = sums[arm, m] + reward
    counts[arm, m] = count
    sums[arm, m] = total
    levels[arm, m] = total / count + biases[m]
    slopes[arm, m] = scales[m] / math.sqrt(count)


@inlined
def sift_down(keys: FloatArray, nodes: SmallArray, place: int, size: int) -> None:
    """Let the node at a place sink to where its key belongs.

    Keys behind the heap's end are minus infinity, so that every node may be asked for four children; and the largest
    of them is found without branches, whose outcome no processor could foresee.
    """
    key, arm = keys[place], nodes[place]
    child = CHILDREN * place + 1
    while child < size:
        left, right = max(keys[child], keys[child + 1]), max(keys[child + 2], keys[child + 3])
        largest = max(left, right)
        if largest <= key:
            break
        of_left = child + (keys[child + 1] > keys[child])
        of_right = child + 2 + (keys[child + 3] > keys[child + 2])
        child = of_right if right > left else of_left
        keys[place], nodes[place] = largest, nodes[child]
        place = child
        child = CHILDREN * place + 1
    keys[place], nodes[place] = key, arm


@inlined
def sift_up(keys: FloatArray, nodes: SmallArray, place: int) -> None:
    """Let the node at a place rise to where its key belongs."""
    key, arm = keys[place], nodes[place]
    while place > 0:
        parent = (place - 1) // CHILDREN
        if keys[parent] >= key:
            break
        keys[place], nodes[place] = keys[parent], nodes[parent]
        place = parent
    keys[place], nodes[place] = key, arm


@compiled
def search(
    keys: FloatArray,
    nodes: SmallArray,
    size: int,
    stack: SmallArray,
    levels: FloatArray,
    slopes: FloatArray,
    u: float,
    best: float,
) -> tuple[int, float, int]:
    """The place of the arm with the largest index, the lowest number among ties; its index; looks beyond the root.

    ``best`` is the index of the root, which has been looked at.
    """
    place, best_arm, looks, top, node = 0, nodes[0], 0, 0, 0
    while True:
        for child in range(CHILDREN * node + 1, min(CHILDREN * node + 1 + CHILDREN, size)):
            if keys[child] >= best:
                stack[top] = child
                top += 1
        while top > 0 and keys[stack[top - 1]] < best:
            top -= 1
        if top == 0:
            return place, best, looks
        top -= 1
        node = stack[top]
        looks += 1
        arm = nodes[node]
        value = index(levels, slopes, arm, u)
        if value > best or (value == best and arm < best_arm):
            place, best, best_arm = node, value, arm


@compiled
def same_lines(levels: FloatArray, slopes: FloatArray, one: int, other: int) -> bool:
    """Whether two arms have equal indices now and for as long as neither is played."""
    for m in range(levels.shape[1]):
        if levels[one, m] != levels[other, m] or slopes[one, m] != slopes[other, m]:
            return False
    return True


@compiled
def hashed(counts: IntArray, sum_bits: IntArray, arm: int) -> int:
    """A number that arms with equal counts and sums share, and hardly any others."""
    mixed = 0
    for m in range(counts.shape[1]):
        mixed = (mixed ^ (int(counts[arm, m]) << 1) ^ int(sum_bits[arm, m])) * 1181783497276652981
        mixed ^= mixed >> 32
    return mixed


@compiled
def stands_behind(
    twins: IntArray,
    tails: IntArray,
    slots: IntArray,
    counts: IntArray,
    sum_bits: IntArray,
    levels: FloatArray,
    slopes: FloatArray,
    arm: int,
    mask: int,
) -> bool:
    """Link an arm behind an earlier one with the same lines; False if there is none, and it comes first itself."""
    slot = hashed(counts, sum_bits, arm) & mask
    twins[arm] = NOBODY
    while slots[slot] != NOBODY:
        first = slots[slot]
        if same_lines(levels, slopes, first, arm):
            twins[tails[first]] = arm
            tails[first] = arm
            return True
        slot = (slot + 1) & mask
    slots[slot] = arm
    tails[arm] = arm
    return False


@compiled
def fill_heap(queue: Queue, arms: Arms, u_end: float) -> int:
    """Put the arms that are awake into the heap, by their index at the block's end; how many places they take."""
    keys, nodes, twins, tails, slots = queue.keys, queue.nodes, queue.twins, queue.tails, queue.slots
    counts, sum_bits, levels, slopes = arms.counts, arms.sums.view(np.int64), arms.levels, arms.slopes
    awake, with_twins = queue.lists[-1, : queue.numbers[-1]], len(slots) > 1
    mask = 1
    if with_twins:
        while mask < 2 * len(awake):
            mask *= 2
        slots[:mask] = NOBODY
    size = 0
    for arm in awake:
        if with_twins and stands_behind(twins, tails, slots, counts, sum_bits, levels, slopes, arm, mask - 1):
            continue
        keys[size], nodes[size] = index(levels, slopes, arm, u_end), arm
        size += 1
    keys[size : size + CHILDREN] = -np.inf
    for place in range((size + CHILDREN - 2) // CHILDREN - 1, -1, -1):
        sift_down(keys, nodes, place, size)
    return size


@inlined
def refile(
    keys: FloatArray, nodes: SmallArray, twins: IntArray, place: int, size: int, key: float, with_twins: bool
) -> int:
    """Find the place of the arm just played; its first twin, if any, inherits the old place. The heap's new size."""
    arm = nodes[place]
    if with_twins and twins[arm] != NOBODY:
        nodes[place] = twins[arm]
        twins[arm] = NOBODY
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


@counting
def choose_threshold(source: SmallArray, levels: FloatArray, slopes: FloatArray, u: float, u_wake: float) -> float:
    """An index that about one in ``FEWER`` of these arms will reach by u_wake, by a sample of at most 256 of them.

    Never above an index of now: among equal arms all might have one and the same, and the best would sleep too.
    """
    step = (len(source) - 1) // 256 + 1
    sample = np.empty((len(source) - 1) // step + 1)
    highest = -np.inf
    for i in range(len(sample)):
        sample[i] = index(levels, slopes, source[i * step], u_wake)
        highest = max(highest, index(levels, slopes, source[i * step], u))
    sample.sort()
    return min(sample[len(sample) - 1 - len(sample) // FEWER], highest)


@counting
def rouse(queue: Queue, arms: Arms, first: int, t: int) -> None:
    """Make the lists anew from the first that is no longer valid.

    A list that comes out empty says that the one before it is not valid either: all in there have fallen below its
    threshold. The first made of all arms is never empty.
    """
    i = first
    while i < len(queue.numbers):
        make_list(queue, arms, i, t)
        i += 1 if queue.numbers[i] > 0 else -1


@counting
def make_list(queue: Queue, arms: Arms, i: int, t: int) -> None:
    """Make one list from the one before it, to last twice as long as the last one did."""
    levels, slopes, bounds = arms.levels, arms.slopes, queue.bounds
    lasted = 2.0 * (t - queue.woken_at[i])
    queue.naps[i] = min(max(lasted, queue.naps[i] / 4, 1.0), queue.naps[i] * 4)
    queue.woken_at[i] = t
    queue.wake_at[i] = min(t + int(queue.naps[i]), queue.wake_at[i - 1])
    u, u_wake = math.sqrt(math.log(t)), math.sqrt(math.log(queue.wake_at[i]))
    source = queue.lists[i - 1, : queue.numbers[i - 1]]
    threshold = max(choose_threshold(source, levels, slopes, u, u_wake), queue.thresholds[i - 1])
    queue.thresholds[i] = threshold
    if i == 1:
        bound_all(bounds, levels, slopes, u_wake)
    queue.numbers[i] = select(source, queue.lists[i], bounds, levels, slopes, u_wake, threshold)


@compiled
def bound_all(bounds: FloatArray, levels: FloatArray, slopes: FloatArray, u_wake: float) -> None:
    """Every arm's index at u_wake."""
    for arm in range(len(bounds)):
        bounds[arm] = index(levels, slopes, arm, u_wake)


@compiled
def select(
    source: SmallArray,
    chosen: SmallArray,
    bounds: FloatArray,
    levels: FloatArray,
    slopes: FloatArray,
    u_wake: float,
    threshold: float,
) -> int:
    """Write down the arms whose index reaches the threshold by u_wake; how many there are.

    Most are left out by one number, their bound, since lines lie far apart in memory. Neither loop has a branch.
    """
    number = 0
    for arm in source:
        chosen[number] = arm
        number += bounds[arm] >= threshold
    within, number = number, 0
    for i in range(within):
        arm = chosen[i]
        chosen[number] = arm
        number += index(levels, slopes, arm, u_wake) >= threshold
    return number


@compiled
def first_invalid(queue: Queue, t: int, best: float) -> int:
    """The first list whose time has come or whose threshold is above the best index; their number if all are valid."""
    for i in range(len(queue.numbers)):
        if t > queue.wake_at[i] or best < queue.thresholds[i]:
            return i
    return len(queue.numbers)


@compiled
def next_block(block: float, awake: int, extra: int, n_arms: int, t: int) -> float:
    """The length of the next block: longer where new keys cost more than the looks that they would have saved."""
    factor = math.sqrt((7.0 * awake + 60.0) / (16.0 * extra + 1.0))
    longest = max(n_arms / 8, t / 1000) + 16
    return min(block * min(max(factor, 0.5), 2.0), longest)


@compiled
def total_cost(costs: FloatArray, tally: IntArray, m: int) -> tuple[float, float]:
    """Capital spent, and with one more play at m; by the same sum as capital.spending."""
    spent, after = 0.0, 0.0
    for i in range(len(costs)):
        spent += costs[i] * tally[i]
        after += costs[i] * (tally[i] + (1 if i == m else 0))
    return spent, after


@compiled
def play_first(
    truth: Truth,
    rule: Rule,
    arms: Arms,
    t: int,
    end: int,
    near: float,
    checked: int,
    lost: float,
    rng: Generator,
    trace: IntArray,
) -> tuple[int, float, int]:
    """The first pass: an arm without a result has an infinite index, so all are played once, by number."""
    counts, sums, levels, slopes = arms.counts, arms.sums, arms.levels, arms.slopes
    rough, _ = total_cost(rule.costs, arms.tally, 0)
    while t <= end:
        if rough + rule.costs[0] >= near and t != checked:
            return t, lost, AT_LIMIT
        arm = t - 1
        learn(counts, sums, levels, slopes, rule.biases, rule.scales, arm, 0, draw(truth, arm, 0, 0, rng))
        arms.tally[0] += 1
        rough += rule.costs[0]
        lost += truth.losses[arm, 0]
        if t <= len(trace):
            trace[t - 1, 0], trace[t - 1, 1] = arm, 0
        t += 1
    return t, lost, RUNNING


@compiled
def play_block(
    truth: Truth,
    rule: Rule,
    arms: Arms,
    queue: Queue,
    t: int,
    end: int,
    size: int,
    u_end: float,
    near: float,
    checked: int,
    lost: float,
    rng: Generator,
    trace: IntArray,
) -> tuple[int, int, float, int, int, int, float, int]:
    """Play up to and including time ``end``, unless something is in the way: all that changed, and what it was.

    The sum of costs is only kept up roughly, to tell when a limit is near; then ``record`` makes it exactly.
    """
    costs, biases, scales, gammas = rule.costs, rule.biases, rule.scales, rule.gammas
    counts, sums, levels, slopes, tally = arms.counts, arms.sums, arms.levels, arms.slopes, arms.tally
    keys, nodes, stack, twins, bounds = queue.keys, queue.nodes, queue.stack, queue.twins, queue.bounds
    sleepers, with_twins, threshold = len(queue.numbers) > 1, len(queue.slots) > 1, queue.thresholds[-1]
    u_far = math.sqrt(math.log(queue.wake_at[min(1, len(queue.numbers) - 1)]))
    rough, _ = total_cost(costs, tally, 0)
    extra, arm, m, best, status = 0, 0, 0, np.inf, RUNNING
    while t <= end:
        u = math.sqrt(math.log(t))
        place, best = 0, index(levels, slopes, nodes[0], u)
        if max(max(keys[1], keys[2]), max(keys[3], keys[4])) >= best:
            place, best, looks = search(keys, nodes, size, stack, levels, slopes, u, best)
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
        if truth.kind == REPLAY_IN_ORDER and earlier >= truth.lengths[arm, m]:
            status = RAN_DRY
            break
        learn(counts, sums, levels, slopes, biases, scales, arm, m, draw(truth, arm, m, earlier, rng))
        tally[m] += 1
        rough += costs[m]
        lost += truth.losses[arm, m]
        if t <= len(trace):
            trace[t - 1, 0], trace[t - 1, 1] = arm, m
        if sleepers:
            bounds[arm] = index(levels, slopes, arm, u_far)
        size = refile(keys, nodes, twins, place, size, index(levels, slopes, arm, u_end), with_twins)
        t += 1
    return t, size, lost, extra, arm, m, best, status


@compiled
def record(account: Account, rule: Rule, arms: Arms, m: int, recorded: int, lost: float) -> int:
    """Write down the regret at every capital into which a play at m does not fit; how many are written now."""
    spent, after = total_cost(rule.costs, arms.tally, m)
    while recorded < len(account.limits) and after > account.limits[recorded]:
        account.regret[recorded] = (account.capitals[recorded] - spent) * account.best_mean + lost  # eq. 1
        recorded += 1
    return recorded


@counting
def run_on(
    truth: Truth, rule: Rule, state: State, rng: Generator, steps: int, trace: IntArray
) -> tuple[int, float, int, int, int, float, int, int, int, int]:
    """The work of ``advance``: the fields of the clock afterwards.

    They are a plain tuple because making a named one runs Python code, and a Ctrl-C that comes in just then would
    find nobody to take it.
    """
    arms, queue, account = state.arms, state.queue, state.account
    t, lost, recorded, status, size, block, block_end, extra, arm, m = state.clock
    n_arms, n_lists, stop = len(arms.counts), len(queue.numbers), t + steps
    checked, best = 0, np.inf
    while t < stop and status == RUNNING:
        near = account.limits[recorded] * NEARLY
        if t <= n_arms:
            end, m = min(n_arms, stop - 1), 0
            t, lost, status = play_first(truth, rule, arms, t, end, near, checked, lost, rng, trace)
        else:
            invalid = first_invalid(queue, t, best)
            if invalid < n_lists:
                rouse(queue, arms, invalid, t)
                block_end = 0
            if t > block_end:
                block = next_block(block, queue.numbers[-1], extra, n_arms, t)
                block_end, extra = min(t + int(block), queue.wake_at[-1]), 0
                size = fill_heap(queue, arms, math.sqrt(math.log(block_end)))
            u_end, end = math.sqrt(math.log(block_end)), min(block_end, stop - 1)
            t, size, lost, looks, arm, m, best, status = play_block(
                truth, rule, arms, queue, t, end, size, u_end, near, checked, lost, rng, trace
            )
            extra += looks
        if status == AT_LIMIT:
            recorded = record(account, rule, arms, m, recorded, lost)
            status = SPENT if recorded == len(account.limits) else RUNNING
            checked = t
        elif status == TOO_LOW:
            status = RUNNING
            continue
        best = np.inf
    return t, lost, recorded, status, size, block, block_end, extra, arm, m
