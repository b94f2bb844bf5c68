"""Claims about the best arm of one experiment, asked for again and again: only what changed is computed anew."""

import threading
from dataclasses import dataclass, field

import numpy as np

from mfbandit._internal.typing import BoolArray, FloatArray, IntArray
from mfbandit.core.confidence import Claim, Prices, Roster, against, claim_of, rivals_of
from mfbandit.core.fidelities import Fidelities
from mfbandit.core.stats import Stats

LEVELS_KEPT = 4  # those that a rule for stopping, a dashboard and a person ask for


@dataclass(frozen=True, eq=False)
class Known:
    """What speaks against each rival of one arm, and the results that it was computed from.

    Args:
        about: fidelities, arm, roster, which fidelities count: where one differs, nothing can be used again.
        counts: n_mk, the number of results; shape (M, K).
        sums: of their rewards; shape (M, K).
        costs: of each arm a, as :func:`~mfbandit.core.confidence.against` gives them; NaN where it was not computed;
            shape (K,).
        ahead: by how much each may be better; shape (K,).
    """

    about: tuple[Fidelities, int, Roster, tuple[bool, ...]]
    counts: IntArray
    sums: FloatArray
    costs: FloatArray
    ahead: FloatArray


@dataclass(eq=False)
class KeptClaims:
    """Computes :func:`~mfbandit.core.confidence` again and again, to the last bit as if nothing was kept.

    A result of a rival changes what speaks against that rival alone; one of the arm that the claim is about changes
    everything. Many threads may ask.
    """

    _known: dict[float, Known] = field(default_factory=dict)  # by level, the one used last at the end
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __reduce__(self) -> "tuple[type[KeptClaims], tuple[()]]":
        """Copies and pickles begin with nothing kept: it can be computed again, and a lock is nobody else's."""
        return KeptClaims, ()

    def confidence(
        self, stats: Stats, fidelities: Fidelities, arm: int, roster: Roster, counted: BoolArray, level: float
    ) -> Claim:
        """Say how sure it is that an arm is the best of all active ones.

        >>> from mfbandit import Bounded
        >>> from mfbandit.core import confidence
        >>> stats, fid = Stats.empty(fidelities=1, arms=2), Fidelities([1], concentration=Bounded())
        >>> stats.counts[:], stats.sums[:] = 100, [[20.0, 60.0]]
        >>> asked = stats, fid, 1, Roster(2), np.array([True]), 0.95
        >>> KeptClaims().confidence(*asked) == confidence(*asked)
        True
        """
        others = rivals_of(arm, stats)
        prices = roster.log_prices(arm, others)
        about = fidelities, arm, roster, tuple(counted.tolist())
        with self._lock:
            known = self._known.pop(level, None)
        costs, ahead = _reusable(known, about, stats)
        new = np.isnan(costs[others])
        price = Prices(prices[new], level)
        costs[others[new]], ahead[others[new]] = against(stats, fidelities, arm, others[new], price, counted)
        with self._lock:
            self._known[level] = Known(about, stats.counts.copy(), stats.sums.copy(), costs, ahead)
            while len(self._known) > LEVELS_KEPT:
                del self._known[next(iter(self._known))]
        return claim_of(arm, others, costs[others] - prices, ahead[others], counted)


def _reusable(
    known: Known | None, about: tuple[Fidelities, int, Roster, tuple[bool, ...]], stats: Stats
) -> tuple[FloatArray, FloatArray]:
    """Copies of what is known of each arm, NaN where it has to be computed; shape (K,) each."""
    arms = stats.counts.shape[1]
    costs, ahead = np.full(arms, np.nan), np.zeros(arms)
    if known is None or known.about != about:
        return costs, ahead
    same = known.counts.shape[1]
    equal = ((stats.counts[:, :same] == known.counts) & (stats.sums[:, :same] == known.sums)).all(axis=0)
    if not equal[about[1]]:
        return costs, ahead
    costs[:same], ahead[:same] = np.where(equal, known.costs, np.nan), known.ahead
    return costs, ahead
