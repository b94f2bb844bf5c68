"""MFAuto: one policy to leave alone, whatever is known of biases and noise."""

import itertools
import math
from dataclasses import dataclass, field, replace

import numpy as np

from mfbandit._internal.typing import BoolArray, FloatArray
from mfbandit.core import Fidelities, Stats, safest
from mfbandit.errors import InvalidArgument
from mfbandit.policies.auto_beliefs import Beliefs
from mfbandit.policies.exploration import total_spent
from mfbandit.policies.gaussian_chain import INTERVAL_DEVIATIONS, GaussianChain, total
from mfbandit.policies.kept_arms import KeptArms
from mfbandit.policies.opening import fewest_plays, opening_arm, ready_to_fit
from mfbandit.policies.robust_chain import ChainModel, first_chain, refit_chain

GUARDS = ("light", "strict", "off")
LIGHT_GUARD, STRICT_GUARD = 3.0, 2.0  # factors of the number of guard plays
TESTED = 2.0  # factor of the number of arms to test at the highest fidelity, where lower ones tell nothing
DOUBTFUL = 0.6  # share of what is not known, from which lower fidelities tell nothing
ALL_TESTED = 2.0  # all arms are tested when so many times K plays of each could have been paid
CHEAPER = 2.0  # a fidelity is used if it is at least so many times cheaper than the highest
SECOND_LOOKS = 5  # arms that are played twice at first, where the noise is learned
FIRST_EM_STEPS = 5  # for the first fit; a later fit makes one
REFIT_GROWTH = 1.01  # the chain is refitted when the capital spent has grown by this factor
STEP_SHARE = 0.5  # prior guess of a step's deviation, as a share of the arms' spread, where biases are learned
GUESS_WEIGHT = 2.0  # of that guess, in arms


@dataclass(frozen=True, eq=False)
class MFAutoMemory(GaussianChain):
    """What MFAuto remembers: the fitted chain and a few counts.

    Args:
        spent: the capital spent when the chain was fitted.
        tops: the number of results at the highest fidelity.
        guarded: guard plays that were made.
        owed: guard plays to make next.
        doubt: how little lower fidelities tell of the highest, from 0 to 1 (:func:`doubt_of`).
        tested: how many arms should have a result at the highest fidelity.
        kept: what follows for each arm, kept between plays; a new one for each fit.
    """

    spent: float
    tops: int
    guarded: int
    owed: int
    doubt: float
    tested: int
    kept: KeptArms = field(default_factory=KeptArms)


@dataclass(frozen=True)
class MFAuto:
    r"""A policy with nothing to set: it uses ζ and the noise where they are told, and learns them where not.

    All arms share a Gaussian chain (:mod:`~mfbandit.policies.robust_chain`), which is fitted to all results. It says
    where the mean μ^(M)_k of each arm is, and how much a play at each fidelity would tell. Fidelities that cost more
    than half of the highest are not used. It has no proof; ``docs/measured/mfauto.md`` says how it does.

    1. Play each arm once at the lowest fidelity. If the noise is not told, play the five best ones once more.
    2. f_k = log(1 + S/H_k), as in :mod:`~mfbandit.policies.exploration`. If biases are learned,
       U_k = E μ^(M)_k + sd·sqrt(2 f_k). If they are told, a step's variance is guessed as (ζ_m² + ζ_{m+1}²)/3, sd has
       the factor of Student's t for f_k with 8(1 + T^(M)_k) degrees, and U_k is at most the bound by each fidelity,
       sup{y : T·d(X̄, y) ≤ f_k} + ζ_m. Play the arm with the largest U_k.
    3. If biases are learned, play the leader, which has the largest E μ^(M), at the highest fidelity. Play others, and
       with told biases the leader too, where a play reduces Var μ^(M)_k most per cost. With told biases, play where
       the bounds rule the arm out, if that costs less than 0.3 of what the posterior needs at the highest fidelity.
    4. The guard plays an arm at the highest fidelity now and then, whatever the chain says: first those that never
       were, by E μ^(M); then the one with the largest upper bound there. So an arm that only looks bad below is found.

    Args:
        guard: how often step 4 is done when S is worth r plays of every arm at the highest fidelity. ``"light"``:
            3·sqrt(r/K) plays, and more while arms are untested there, if lower fidelities tell little of it
            (:func:`arms_to_test`). It costs little. ``"strict"``: 2·sqrt(r·K) plays; the worst cases are better, and
            usual ones are worse. ``"off"``: never.

    >>> MFAuto().choose(Stats.empty(fidelities=2, arms=3), Fidelities(costs=[1, 10]))
    (0, 0)
    """

    guard: str = "light"

    def __post_init__(self) -> None:
        if self.guard not in GUARDS:
            raise InvalidArgument(f"guard must be 'light', 'strict' or 'off', got {self.guard!r}")

    def remember(self, stats: Stats, fidelities: Fidelities) -> MFAutoMemory | None:
        """Update the memory after a result; refit the chain if the capital spent has grown enough.

        ``stats`` already counts the result; ``stats.memory`` is from before it.
        """
        memory = stats.memory if isinstance(stats.memory, MFAutoMemory) else None
        told = stats.told
        spent, tops = total_spent(told.results, fidelities), int(told.results[-1].sum())
        if memory is None:
            return self._first(told, fidelities, spent, tops)
        guarded = memory.guarded + min(memory.owed, max(0, tops - memory.tops))
        owed = max(0, self._guard_plays(told, fidelities, spent) - guarded)
        memory = replace(memory, tops=tops, guarded=guarded, owed=owed)
        if spent >= REFIT_GROWTH * memory.spent:
            model = chain_model(fidelities)
            memory = refit_chain(replace(memory, spent=spent, kept=KeptArms()), model, told)
            memory = _looked_up(memory, model, told, fidelities)
        return replace(memory, tested=self._arms_to_test(told, fidelities, spent, memory.doubt))

    def choose(self, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
        """Choose the arm with the largest index and its fidelity, or what the guard plays."""
        model = chain_model(fidelities)
        lowest, highest = model.rows[0], model.rows[-1]
        memory = self._memory(stats, fidelities)
        first = opening_arm(stats, lowest, _second_looks(fidelities), fitted=memory is not None)
        if first is not None:
            return first, lowest
        beliefs = None if memory is None else Beliefs(memory, memory.kept, model, stats, fidelities)
        if memory is None or beliefs is None or not beliefs.seen.any():
            return fewest_plays(stats, lowest), lowest
        if memory.owed > int(stats.pending[-1].sum()):
            return _guarded(beliefs, stats), highest
        untested = _untested(beliefs, stats, memory.tested)
        if untested is not None:
            return untested, highest
        arm, upper = beliefs.most_promising()
        leader = beliefs.leader
        if beliefs.biases is None and arm == leader:
            return arm, highest
        row = None if arm == leader else beliefs.by_bounds(arm, upper)
        return arm, model.rows[beliefs.most_informative(arm) if row is None else row]

    def index(self, stats: Stats, fidelities: Fidelities) -> FloatArray:
        """Compute U_k, in units of reward; infinite for arms without a result; shape (K,)."""
        memory = self._memory(stats, fidelities)
        seen: BoolArray = stats.counts.sum(axis=0) > 0
        if memory is None:
            return np.where(seen, stats.means.max(axis=0, initial=-np.inf, where=stats.counts > 0), np.inf)
        beliefs = Beliefs(memory, memory.kept, chain_model(fidelities), stats, fidelities)
        return np.array([beliefs.index(k) if seen[k] else math.inf for k in range(len(seen))])

    def recommend(self, stats: Stats, fidelities: Fidelities) -> int:
        """Return the active arm with the highest E μ^(M)_k."""
        memory = self._memory(stats, fidelities)
        seen = stats.counts.any(axis=0)
        if memory is None:
            return safest(np.where(seen, self.index(stats, fidelities), -np.inf), stats)
        values = Beliefs(memory, memory.kept, chain_model(fidelities), stats.told, fidelities).values
        return safest(np.where(seen, values, -np.inf), stats)

    def intervals(self, stats: Stats, fidelities: Fidelities) -> tuple[FloatArray, FloatArray]:
        """Compute the ends of 95 % posterior intervals for μ^(M)_k; nothing is known before the first fit.

        An estimate of how sure it is widens them by half (:mod:`~mfbandit.experiment.posterior_claim`).

        >>> stats = Stats.empty(fidelities=1, arms=2)
        >>> MFAuto().intervals(stats, Fidelities(costs=[1]))[0].tolist()
        [-inf, -inf]
        """
        memory = self._memory(stats, fidelities)
        if memory is None:
            return np.full(len(stats.active), -np.inf), np.full(len(stats.active), np.inf)
        beliefs = Beliefs(memory, memory.kept, chain_model(fidelities), stats.told, fidelities)
        seen: BoolArray = stats.counts.sum(axis=0) > 0
        half = np.where(seen, INTERVAL_DEVIATIONS * beliefs.deviations, np.inf)
        return beliefs.values - half, beliefs.values + half

    def _memory(self, stats: Stats, fidelities: Fidelities) -> MFAutoMemory | None:
        # A caller may pass stats without a memory: then it is computed from the results.
        return stats.memory if isinstance(stats.memory, MFAutoMemory) else self.remember(stats, fidelities)

    def _first(self, told: Stats, fidelities: Fidelities, spent: float, tops: int) -> MFAutoMemory | None:
        model = chain_model(fidelities)
        if not ready_to_fit(told, model.rows[0], _second_looks(fidelities)):
            return None
        steps, noise = np.zeros(len(model.rows) - 1), np.zeros(len(model.rows))
        owed = self._guard_plays(told, fidelities, spent)
        empty = MFAutoMemory(0.0, 0.0, steps, steps, steps, noise, spent, tops, 0, owed, 0.0, 0)
        memory = _looked_up(first_chain(empty, model, told, FIRST_EM_STEPS), model, told, fidelities)
        return replace(memory, tested=self._arms_to_test(told, fidelities, spent, memory.doubt))

    def _guard_plays(self, told: Stats, fidelities: Fidelities, spent: float) -> int:
        return guard_plays(GUARDS.index(self.guard), _active_arms(told), spent / fidelities.costs[-1])

    def _arms_to_test(self, told: Stats, fidelities: Fidelities, spent: float, doubt: float) -> int:
        return arms_to_test(GUARDS.index(self.guard), _active_arms(told), spent / fidelities.costs[-1], doubt)


def guard_plays(guard: int, arms: int, spent: float) -> int:
    """Compute how many guard plays there should have been.

    Args:
        guard: the position in ``GUARDS``.
        arms: K.
        spent: S/λ_M.

    >>> guard_plays(0, 100, 10_000.0), guard_plays(1, 100, 10_000.0), guard_plays(2, 100, 10_000.0)
    (3, 200, 0)
    """
    looks = spent / arms
    if guard == 0:
        return int(LIGHT_GUARD * math.sqrt(looks / arms))
    return int(STRICT_GUARD * math.sqrt(looks * arms)) if guard == 1 else 0


def arms_to_test(guard: int, arms: int, spent: float, doubt: float) -> int:
    """Compute how many arms the light guard wants to have a result at the highest fidelity.

    Where lower fidelities tell little, a round of tests is worth its cost, and comes early. Else it comes late, when it
    costs a small share of the capital: r = S/(Kλ_M) is then 2K.

    Args:
        guard: the position in ``GUARDS``.
        arms: K.
        spent: S/λ_M.
        doubt: of the newest fit (:func:`doubt_of`).

    >>> [arms_to_test(0, 100, 900.0, doubt) for doubt in (0.1, 0.3, 0.9)], arms_to_test(0, 100, 20_000.0, 0.1)
    ([0, 7, 60], 100)
    """
    if guard != 0:
        return 0
    looks = spent / arms
    blind, late = min(doubt / DOUBTFUL, 1.0), min(looks / (ALL_TESTED * arms), 1.0)
    early = TESTED * (blind * blind * blind) * math.sqrt(looks * arms)
    return int(min(early + late * late * arms, 1.0 * arms))


def doubt_of(values: FloatArray, deviations: FloatArray) -> float:
    """Compute how little lower fidelities tell of the highest.

    That is what is not known of an untested arm, as a share of that and of what makes arms differ.

    Args:
        values: E μ^(M) of all arms that were played.
        deviations: of μ^(M), for those that were never played at the highest fidelity.

    >>> doubt_of(np.array([0.0, 2.0]), np.array([1.0])), doubt_of(np.array([0.0, 2.0]), np.array([]))
    (0.5, 0.0)
    """
    with np.errstate(over="ignore"):
        off = values - total(values) / len(values)
        spread = total(off * off) / len(values)
        unsure = total(deviations * deviations) / max(len(deviations), 1)
    return unsure / (unsure + spread) if 0.0 < unsure + spread < math.inf else 0.0


def used_fidelities(fidelities: Fidelities) -> list[int]:
    """Return the fidelities that are at least twice as cheap as the highest, and the highest.

    >>> used_fidelities(Fidelities(costs=[1, 6, 10]))
    [0, 2]
    """
    top = len(fidelities) - 1
    return [m for m in range(top) if CHEAPER * fidelities.costs[m] <= fidelities.costs[top]] + [top]


def chain_model(fidelities: Fidelities) -> ChainModel:
    """Say what of the chain is told: the noise, and by biases how large steps may be.

    >>> from mfbandit.core import SubGaussian
    >>> chain_model(Fidelities([1, 10], [0.3, 0], SubGaussian(0.1))).guesses.round(6).tolist()
    [0.03]
    """
    rows = used_fidelities(fidelities)
    tails = None if fidelities.concentration is None else tuple(fidelities.tails[m] for m in rows)
    guesses = None
    if fidelities.biases is not None:
        biases = [fidelities.known_biases[m] for m in rows]
        guesses = np.array([(low * low + high * high) / 3 for low, high in itertools.pairwise(biases)])
    return ChainModel(rows, tails, guesses, STEP_SHARE, GUESS_WEIGHT, robust=guesses is None)


def _looked_up(memory: MFAutoMemory, model: ChainModel, told: Stats, fidelities: Fidelities) -> MFAutoMemory:
    """Compute what follows for all arms now, so that the next ask need not wait for it; and the doubt."""
    beliefs = Beliefs(memory, memory.kept, model, told, fidelities)
    untested = beliefs.seen & (told.counts[-1] == 0)
    if not beliefs.seen.any():
        return replace(memory, doubt=0.0)
    return replace(memory, doubt=doubt_of(beliefs.values[beliefs.seen], beliefs.deviations[untested]))


def _second_looks(fidelities: Fidelities) -> int:
    return SECOND_LOOKS if fidelities.concentration is None else 0


def _active_arms(told: Stats) -> int:
    return max(1, int(told.active.sum()))


def _allowed(beliefs: Beliefs) -> BoolArray:
    """Return the arms that the told biases do not rule out; all if they rule out every one."""
    seen: BoolArray = beliefs.seen
    if beliefs.biases is None:
        return seen
    allowed: BoolArray = seen & (beliefs.highs >= float(beliefs.lows[seen].max()))
    return allowed if allowed.any() else seen


def _untested(beliefs: Beliefs, stats: Stats, due: int) -> int | None:
    """Return the best arm never played at the highest fidelity, if fewer than are due were."""
    tested = stats.active & (stats.observations[-1] > 0)
    if tested.sum() >= due:
        return None
    untested = _allowed(beliefs) & ~tested
    return int(np.where(untested, beliefs.values, -np.inf).argmax()) if untested.any() else None


def _guarded(beliefs: Beliefs, stats: Stats) -> int:
    """Return the arm that the guard plays, not one that the told biases rule out."""
    plays, results = stats.observations[-1], stats.counts[-1]
    effort = math.sqrt(2.0 * math.log(int(plays.sum()) + 2.0))
    allowed = _allowed(beliefs)
    untested = allowed & (plays == 0)
    if untested.any():
        return int(np.where(untested, beliefs.values, -np.inf).argmax())
    tested = allowed & (results > 0)
    if not tested.any():
        return int(np.where(allowed, plays, np.iinfo(np.int64).max).argmin())
    upper = np.where(tested, stats.sums[-1] / np.maximum(results, 1) + effort * beliefs.top_deviations(), -np.inf)
    return int(upper.argmax())
