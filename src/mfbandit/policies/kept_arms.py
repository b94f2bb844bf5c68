"""What follows from the results for each arm, kept between plays: a play changes one arm, and the others stay.

Nothing here decides anything: what is kept is compared with the results, and computed anew where they differ.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import Concentration, Fidelities, Stats, SubGaussian
from mfbandit.policies.divergence_bounds import mean_deviations
from mfbandit.policies.exploration import overlaps, roots
from mfbandit.policies.gaussian_chain import GaussianChain
from mfbandit.policies.robust_chain import ChainModel, Filtered, filter_chain, pending_variances

FAR = 2.0  # deviations of a mean that are plausible
FEW = 16  # arms that changed, up to which the others are kept


@dataclass(frozen=True, eq=False)
class KeptBeliefs:
    """What is believed of K arms.

    Args:
        counts: results that it follows from, shape (R, K).
        sums: of these, shape (R, K).
        values: E μ^(M)_k, within what biases allow where they are told; shape (K,).
        variances: Var μ^(M)_k, shape (K,).
        lows: the least plausible mean, by two deviations and the biases; shape (K,).
        highs: the largest one, shape (K,).
    """

    counts: IntArray
    sums: FloatArray
    values: FloatArray
    variances: FloatArray
    lows: FloatArray
    highs: FloatArray

    def with_arms(self, arms: IntArray, part: "KeptBeliefs") -> "KeptBeliefs":
        """Return a copy in which these arms are as in ``part``."""
        names = ("counts", "sums", "values", "variances", "lows", "highs")
        copies = {name: getattr(self, name).copy() for name in names}
        for name, array in copies.items():
            array[..., arms] = getattr(part, name)
        return replace(self, **copies)


class KeptArms:
    """The newest tables; one for each fit of the chain."""

    def __init__(self) -> None:
        self._table: KeptBeliefs | None = None
        self._levels: tuple[IntArray, IntArray, IntArray] | None = None

    def table(self, chain: GaussianChain, model: ChainModel, stats: Stats, biases: list[float] | None) -> KeptBeliefs:
        """Return what is believed of all arms, with the pending plays.

        Args:
            chain: the fitted parameters, always the same.
            model: what is told and assumed.
            stats: results and pending plays.
            biases: of the used fidelities, if they are told.
        """
        counts, sums, old = stats.counts[model.rows], stats.sums[model.rows], self._table
        if old is None or old.counts.shape != counts.shape:
            changed = np.arange(counts.shape[1])
        else:
            changed = np.flatnonzero(((old.counts != counts) | (old.sums != sums)).any(axis=0))
        if old is None or len(changed) > FEW:
            self._table = table = believe(chain, model, counts, sums, counts, biases)
        elif len(changed):
            some = believe(chain, model, counts[:, changed], sums[:, changed], counts[:, changed], biases)
            self._table = table = old.with_arms(changed, some)
        else:
            table = old
        if not stats.pending.any():
            return table
        waiting = np.flatnonzero(stats.pending.any(axis=0))
        looks = stats.observations[model.rows][:, waiting]
        return table.with_arms(waiting, believe(chain, model, counts[:, waiting], sums[:, waiting], looks, biases))

    def levels(self, plays: IntArray, fidelities: Fidelities) -> tuple[IntArray, IntArray]:
        """Return roots and overlaps (:mod:`~mfbandit.policies.exploration`), shape (K,) each; ``plays`` is (M, K)."""
        old = self._levels
        changed = None
        if old is not None and old[0].shape == plays.shape:
            changed = np.flatnonzero((old[0] != plays).any(axis=0))
        if old is None or changed is None or len(changed) > FEW:
            root = roots(plays, fidelities)
            overlap = overlaps(root)
        elif not len(changed):
            return old[1], old[2]
        else:
            root, overlap = old[1].copy(), old[2].copy()
            for k, after in zip(changed.tolist(), roots(plays[:, changed], fidelities).tolist(), strict=True):
                overlap += np.minimum(root, after) - np.minimum(root, root[k])
                root[k] = after
                overlap[k] = np.minimum(root, after).sum()
        self._levels = plays.copy(), root, overlap
        return root, overlap


def believe(
    chain: GaussianChain,
    model: ChainModel,
    counts: IntArray,
    sums: FloatArray,
    looks: IntArray,
    biases: list[float] | None,
) -> KeptBeliefs:
    """Compute what is believed of some arms; ``looks`` are the results and those that pending plays will bring."""
    filtered, variances, _ = filter_arms(chain, model, counts, sums, looks)
    low, high = plausible(tails_of(chain, model), counts, sums, looks, biases)
    values = filtered.means[-1]
    if biases is not None:
        inside = np.minimum(np.maximum(values, low), high)
        empty = low > high
        middle = (np.where(empty, low, 0.0) + np.where(empty, high, 0.0)) / 2  # elsewhere both may be infinite
        values = np.where(empty, middle, inside)
    return KeptBeliefs(counts, sums, values, variances[-1], low, high)


def filter_arms(
    chain: GaussianChain, model: ChainModel, counts: IntArray, sums: FloatArray, looks: IntArray
) -> tuple[Filtered, FloatArray, FloatArray]:
    """Filter some arms; also filtered and predicted variances with the pending plays, shape (R, K) each."""
    filtered = filter_chain(chain, model, counts, sums)
    if looks is counts or (looks == counts).all():
        return filtered, filtered.variances, filtered.wide
    return filtered, *pending_variances(chain, filtered, looks)


def tails_of(chain: GaussianChain, model: ChainModel) -> tuple[Concentration, ...]:
    """Return the tails that are told; where the noise is learned, Gaussian ones with this noise.

    >>> one = np.zeros(0)
    >>> chain = GaussianChain(0.0, 1.0, one, one, one, np.array([0.25]))
    >>> tails_of(chain, ChainModel([0], None, None, 0.5, 2, robust=True))
    (SubGaussian(scale=0.5),)
    """
    return model.tails or tuple(SubGaussian(math.sqrt(noise)) for noise in chain.noise.tolist())


def plausible(
    tails: tuple[Concentration, ...], counts: IntArray, sums: FloatArray, looks: IntArray, biases: list[float] | None
) -> tuple[FloatArray, FloatArray]:
    """Compute the ends of the means that two deviations and the biases allow; shape (K,) each.

    >>> told, sums = np.array([[4]]), np.array([[2.0]])
    >>> [end.tolist() for end in plausible((SubGaussian(0.5),), told, sums, told, None)]
    [[0.0], [1.0]]
    """
    low, high = np.full(counts.shape[1], -np.inf), np.full(counts.shape[1], np.inf)
    for r, tail in enumerate(tails):
        k = np.flatnonzero(counts[r] > 0)
        means, bias = sums[r, k] / counts[r, k], 0.0 if biases is None else biases[r]
        off = FAR * mean_deviations(tail, means, looks[r, k])
        low[k] = np.maximum(low[k], means - bias - off)
        high[k] = np.minimum(high[k], means + bias + off)
    return low, high
