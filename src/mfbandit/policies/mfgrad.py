"""MF-GRAD: follow the gradient of the evidence per cost; a baseline from the literature."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit._internal.validation import flag
from mfbandit.core import Fidelities, Stats, safest
from mfbandit.errors import InvalidArgument
from mfbandit.policies.gaussian_chain import total
from mfbandit.policies.identification import checked_delta, known_scales, latest_means

CONSTANT_RATE = 0.25  # α of the rate "constant"
LARGEST_STEP = 1e100  # of a gradient: its sums stay finite where rewards are huge
MOST_BEHIND = 600.0  # exp(−600): a share that is ever so small stays above 0


@dataclass(frozen=True, eq=False)
class MFGradMemory:
    """What MFGrad remembers; arrays of shape (M, K).

    Args:
        steps: s, the number of gradients added up.
        gradients: g, their sum.
        shares: exp(α(g − max g)), proportional to ω, the shares of the cost.
        aims: A, how many plays each cell should have had.
    """

    steps: int
    gradients: FloatArray
    shares: FloatArray
    aims: FloatArray


class Duel(NamedTuple):
    """Where the maximum over i of the minimum over a of f_ia lies."""

    value: float  # f_ia
    arm: int  # i
    rival: int  # a
    mean: float  # η_i
    rival_mean: float  # η_a


@dataclass(frozen=True)
class MFGrad:
    r"""Track the cost shares that make the evidence grow fastest: a policy that answers when there is enough of it.

    With weights W_mk of arms and fidelities, and r_mk(η) = (|η − X̄_mk| − ζ_m)₊,

        D_k(η) = Σ_m W_mk r_mk(η)²/(2σ_m²)    f_ia(W) = min{D_i(η_i) + D_a(η_a) : η_a ≥ η_i}    F(W) = max_i min_a f_ia

    is the evidence for the arm i that the maximum is about. Play each arm at each fidelity once. Then

    1. answer i if F(n) ≥ β = log(K/δ) + M log(log t + 1), where n are the plays and t is their number,
    2. with the shares ω_mk of the cost, take i, a, η_i and η_a from F(ω/λ), and add to g, for all m,

           C (X̄_mi − ζ_m − η_i)₊²/(2σ_m² λ_m) at (m, i),    C (η_a − X̄_ma − ζ_m)₊²/(2σ_m² λ_m) at (m, a),

       C = 1/Σ(ω/λ); without ( )₊ at the highest fidelity. From now on ω is proportional to exp(αg),
    3. add (1 − γ)π + γ/(KM) to A, where π is proportional to ω/λ and γ = 1/(4√t); play where A − n is largest.

    Reference: Poiani, Degenne, Kaufmann, Metelli and Restelli, *Optimal Multi-Fidelity Best-Arm Identification*,
    NeurIPS 2024. The rate and β are those of its authors' experiments (riccardopoiani/adv-mf-bai): α = ¼, and a
    practical threshold. ``rate="decreasing"`` takes α = 1/√(s + 1) at the s-th step, which theory asks for, and
    ``proved=True`` takes β = log(K/δ) + 2M log(log(K/δ) + 1) + 12M log(log t + 3) + 2M.

    Known faults:

    - The practical threshold has no proof. The proved one needs five to eleven times the cost.
    - The constant rate is greedy: shares are settled early, so that some runs are very long. The decreasing one, of the
      theorem, costs 14 to 32 % more on average.
    - Where an arm's results contradict its biases, F counts that as evidence, even for the arm.
    - It never ends if two arms are equally good.

    The error δ is for a fixed set of arms. Pending plays count in n for step 3. New arms are first played once at each
    fidelity; the gradient waits for these results.

    Args:
        delta: δ, how often the answer may be wrong, in (0, 1).
        rate: "constant" or "decreasing".
        proved: whether to answer by the proved threshold.

    >>> from mfbandit.core import SubGaussian
    >>> fid = Fidelities([1, 10], [0.1, 0], SubGaussian(0.1))
    >>> MFGrad().choose(Stats.empty(fidelities=2, arms=3), fid)
    (0, 0)
    """

    delta: float = 0.05
    rate: str = "constant"
    proved: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", checked_delta(self.delta))
        if self.rate not in ("constant", "decreasing"):
            raise InvalidArgument(f"rate must be 'constant' or 'decreasing', got {self.rate!r}")
        flag("proved", self.proved)

    def remember(self, stats: Stats, fidelities: Fidelities) -> MFGradMemory | None:
        """Take a step along the gradient, once every active arm has a result at every fidelity."""
        known_scales(fidelities, "MFGrad")
        known, _ = _widened(stats), fidelities.known_biases  # an error where something is missing
        arms = np.flatnonzero(stats.active)
        if len(arms) < 2 or not (stats.counts[:, arms] > 0).all():  # noqa: PLR2004 - a duel
            return known
        if known is None:
            nothing = np.zeros(stats.counts.shape)
            known = MFGradMemory(0, nothing, np.ones(nothing.shape), stats.results - np.ones(nothing.shape))
        return self._step(known, stats, fidelities, arms)

    def choose(self, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
        """Choose where plays are furthest behind their aim; first, what was never played."""
        plays = np.where(stats.active, stats.plays, np.iinfo(np.int64).max)
        memory = self._memory(stats, fidelities)
        if memory is None or plays.min() == 0:  # arm by arm, each from the lowest fidelity up
            return divmod(int(plays.T.argmin()), len(plays))
        behind = np.where(stats.active, memory.aims - stats.plays, -np.inf)
        m, arm = divmod(int(behind.argmax()), len(stats.active))
        return arm, m

    def decision(self, stats: Stats, fidelities: Fidelities) -> int | None:
        """Return the arm that the evidence is for if there is enough of it, or None."""
        arms = np.flatnonzero(stats.active)
        if len(arms) == 1:
            return int(arms[0]) if stats.counts[:, arms[0]].any() else None
        if not (stats.counts[:, arms] > 0).all():
            return None
        duel = _evidence(stats, fidelities, arms)
        scale, enough = known_scales(fidelities, "MFGrad")[-1], self.threshold(stats.counts.shape, stats.told.time - 1)
        return int(arms[duel.arm]) if duel.value / (scale * scale) >= enough else None

    def threshold(self, shape: tuple[int, ...], time: int) -> float:
        """Compute β, the evidence that is enough for an answer.

        Args:
            shape: (M, K).
            time: t, the number of plays, at least 1.

        >>> round(MFGrad(0.05).threshold((2, 5), 1000), 1), round(MFGrad(0.05, proved=True).threshold((2, 5), 1000), 1)
        (8.7, 70.5)
        """
        number, level, repeated = shape[0], math.log(shape[1] / self.delta), math.log(time)
        if self.proved:
            most = 2.0 * number * math.log(level + 1.0) + 12.0 * number * math.log(repeated + 3.0)
            return level + most + 2.0 * number
        return level + number * math.log(repeated + 1.0)

    def index(self, stats: Stats, fidelities: Fidelities) -> FloatArray:
        """Compute where D_k is smallest for the plays, in units of reward; infinite for arms without a result.

        For arms that have not been played at every fidelity it is the mean at the highest one; shape (K,).
        """
        index = np.where(stats.counts.any(axis=0), latest_means(stats), np.inf)
        arms = np.flatnonzero((stats.counts > 0).all(axis=0))
        if len(arms):
            low, high = _ends(stats, fidelities, arms)
            index[arms] = _own_minima(low, high, _weights(stats.counts[:, arms], fidelities))[0]
        return index

    def recommend(self, stats: Stats, fidelities: Fidelities) -> int:
        """Return the arm that the evidence is for; the best mean before each arm was played at every fidelity."""
        arms = np.flatnonzero(stats.active)
        if len(arms) > 1 and (stats.counts[:, arms] > 0).all():
            return int(arms[_evidence(stats, fidelities, arms).arm])
        return safest(latest_means(stats), stats)

    def _memory(self, stats: Stats, fidelities: Fidelities) -> MFGradMemory | None:
        return _widened(stats) or self.remember(stats, fidelities)

    def _step(self, known: MFGradMemory, stats: Stats, fidelities: Fidelities, arms: IntArray) -> MFGradMemory:
        """Step 2, and what step 3 adds to the aims."""
        low, high = _ends(stats, fidelities, arms)
        costs, scales = np.array(fidelities.costs)[:, None], known_scales(fidelities, "MFGrad")
        shares = known.shares[:, arms]
        duel = strongest(low, high, _weights(shares / costs, fidelities))
        price = _sum(shares) / _sum(shares / costs)  # C, for shares of any sum
        gradients, top = known.gradients.copy(), len(costs) - 1
        for m, (cost, scale) in enumerate(zip(fidelities.costs, scales, strict=True)):
            for place, gap in (
                (duel.arm, float(low[m, duel.arm]) - duel.mean),
                (duel.rival, duel.rival_mean - float(high[m, duel.rival])),
            ):
                if gap > 0 or m == top:
                    step = price * (gap * gap / (2.0 * scale * scale * cost))
                    gradients[m, arms[place]] += min(step, LARGEST_STEP)
        steps, number = known.steps + 1, shares.size
        rate = CONSTANT_RATE if self.rate == "constant" else 1.0 / math.sqrt(steps + 1.0)
        shares = _exponentials(gradients[:, arms], rate)
        speed = shares / costs
        forced = 1.0 / (4.0 * math.sqrt(int(stats.results.sum()) + 1.0))  # γ
        aims, kept = known.aims.copy(), known.shares.copy()
        aims[:, arms] += (1.0 - forced) * (speed / _sum(speed)) + forced / number
        kept[:, arms] = shares
        return MFGradMemory(steps, gradients, kept, aims)


def _widened(stats: Stats) -> MFGradMemory | None:
    """The memory, with room for arms that were added since; they begin with the largest of all shares."""
    known = stats.memory
    if not isinstance(known, MFGradMemory):
        return None
    new = stats.counts.shape[1] - known.aims.shape[1]
    if new == 0:
        return known
    room = (len(known.aims), new)
    return MFGradMemory(
        known.steps,
        np.hstack([known.gradients, np.full(room, known.gradients.max())]),
        np.hstack([known.shares, np.ones(room)]),
        np.hstack([known.aims, np.zeros(room)]),
    )


def _ends(stats: Stats, fidelities: Fidelities, arms: IntArray) -> tuple[FloatArray, FloatArray]:
    """X̄ − ζ and X̄ + ζ of some arms, all of them with results; shape (M, A) each."""
    means, biases = stats.sums[:, arms] / stats.counts[:, arms], np.array(fidelities.known_biases)[:, None]
    return means - biases, means + biases


def _weights(weights: FloatArray | IntArray, fidelities: Fidelities) -> FloatArray:
    """W σ_M²/σ_m²; shape (M, A). In these units nothing overflows where σ is tiny."""
    scales = known_scales(fidelities, "MFGrad")
    relative = [(scales[-1] / scale) * (scales[-1] / scale) for scale in scales]
    result: FloatArray = weights * np.array(relative)[:, None]
    return result


def _sum(values: FloatArray) -> float:
    """The sum in the order of the engine: arm by arm."""
    return total(values.T.ravel())


def _exponentials(gradients: FloatArray, rate: float) -> FloatArray:
    """exp(α(g − max g)), never 0. By one number at a time: np.exp differs from math.exp, which the engine has."""
    exponents = np.maximum(rate * (gradients - gradients.max()), -MOST_BEHIND)
    return np.array([math.exp(value) for value in exponents.ravel().tolist()]).reshape(gradients.shape)


def _evidence(stats: Stats, fidelities: Fidelities, arms: IntArray) -> Duel:
    """F of the results, in units of 1/σ_M²."""
    low, high = _ends(stats, fidelities, arms)
    return strongest(low, high, _weights(stats.counts[:, arms], fidelities))


def strongest(low: FloatArray, high: FloatArray, weights: FloatArray) -> Duel:
    """Find F = max over i of min over a of f_ia, the lowest i and a among ties.

    For each i a bound on its minimum is f_ia of one arm a that is better: a sum of two numbers that are known. Arms are
    looked at from the largest bound down, until no bound is above the maximum so far. They are few.

    Args:
        low: X̄ − ζ; shape (M, K), K ≥ 2.
        high: X̄ + ζ; shape (M, K).
        weights: W/σ², all positive, or a multiple of it, of which the value is one, too; shape (M, K).

    >>> ends = np.array([[0.25, 0.75]])
    >>> strongest(ends, ends, np.array([[16.0, 16.0]]))  # two arms, 0.25 from where they meet
    Duel(value=1.0, arm=1, rival=0, mean=0.5, rival_mean=0.5)
    """
    means, own = _own_minima(low, high, weights)
    first = int(means.argmax())
    calm = int(np.where(own == own.min(), means, -np.inf).argmax())
    bounds = own + np.where(means <= means[calm], own[calm], own[first])
    bounds[calm], bounds[first] = own[calm] + own[first], np.inf
    best: Duel | None = None
    while True:
        arm = int(bounds.argmax())
        if best is not None and bounds[arm] < best.value:
            return best
        if bounds[arm] == -np.inf:
            return best if best is not None else _weakest_point(arm, low, high, weights, means, own)
        found = _weakest_point(arm, low, high, weights, means, own)
        if best is None or found.value > best.value or (found.value == best.value and arm < best.arm):
            best = found
        bounds[arm] = -np.inf


def _weakest_point(
    arm: int, low: FloatArray, high: FloatArray, weights: FloatArray, means: FloatArray, own: FloatArray
) -> Duel:
    """Find the minimum over a of f_ia, and where it lies."""
    values, meetings = own[arm] + own, means.copy()
    below = np.flatnonzero(means < means[arm])
    if len(below):
        ends = low[:, below], high[:, below], weights[:, below]
        mine = low[:, arm, None], high[:, arm, None], weights[:, arm, None]
        points = np.concatenate([np.broadcast_to(end, ends[0].shape) for end in mine[:2]] + [*ends[:2]])
        meeting = _root(points, _slopes(_slopes(np.zeros(points.shape), points, *mine), points, *ends))
        values[below] = _distance(meeting, *mine) + _distance(meeting, *ends)
        meetings[below] = meeting
    values[arm] = np.inf
    rival = int(values.argmin())
    met = means[rival] < means[arm]
    mean = meetings[rival] if met else means[arm]
    return Duel(float(values[rival]), arm, rival, float(mean), float(meetings[rival]))


def _own_minima(low: FloatArray, high: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where D_k is smallest, and its value there; shape (K,) each."""
    points = np.concatenate([low, high])
    means = _root(points, _slopes(np.zeros(points.shape), points, low, high, weights))
    return means, _distance(means, low, high, weights)


def _slopes(
    slopes: FloatArray, points: FloatArray, low: FloatArray, high: FloatArray, weights: FloatArray
) -> FloatArray:
    """Add the derivative of D at each point to slopes; shape (P, K)."""
    for bottom, top, weight in zip(low, high, weights, strict=True):
        slopes = slopes + weight * (np.maximum(points - top, 0.0) - np.maximum(bottom - points, 0.0))
    return slopes


def _root(points: FloatArray, slopes: FloatArray) -> FloatArray:
    """Where the slope, linear between the points and increasing, is 0; shape (K,)."""
    below, above = slopes <= 0, slopes >= 0
    start, end = np.where(below, points, -np.inf).max(axis=0), np.where(above, points, np.inf).min(axis=0)
    fall, rise = np.where(below, slopes, -np.inf).max(axis=0), np.where(above, slopes, np.inf).min(axis=0)
    with np.errstate(invalid="ignore"):
        root: FloatArray = np.where(fall == 0, start, start - fall * (end - start) / (rise - fall))
    return root


def _distance(at: FloatArray, low: FloatArray, high: FloatArray, weights: FloatArray) -> FloatArray:
    """D at one point for each arm; shape (K,)."""
    result = np.zeros(len(at))
    for bottom, top, weight in zip(low, high, weights, strict=True):
        gap = np.maximum(at - top, 0.0) - np.maximum(bottom - at, 0.0)
        result = result + 0.5 * weight * gap * gap
    return result
