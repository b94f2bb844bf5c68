"""What is known before the first play: costs, bias bounds and noise of each fidelity."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from mfbandit._internal.formatting import plain
from mfbandit._internal.typing import FloatArray
from mfbandit._internal.validation import CALCULABLE, LARGEST_NUMBER, SMALLEST_NUMBER, flag, shown
from mfbandit.core.concentration import Bounded, Concentration, Rate, SubGaussian
from mfbandit.errors import InvalidArgument

MAX_COST_RATIO = 0.5  # of a fidelity to the next: above it, the fidelity saves little
MAX_BIAS_RATIO = 0.8  # of a fidelity to the one below: above it, the fidelity is little better


@dataclass(frozen=True)
class Fidelities:
    r"""The M fidelities, from cheap and biased to expensive and unbiased.

    A play of arm k at fidelity m costs λ_m and gives a reward with mean μ^(m)_k. That mean lies within ζ_m of the mean
    at the highest fidelity: |μ^(M)_k − μ^(m)_k| ≤ ζ_m.

    Args:
        costs: λ_1 < … < λ_M, all positive, in units of capital; shape (M,).
        biases: ζ_1 > … > ζ_M = 0, in units of reward; shape (M,). None if they are not known.
        concentration: the noise, one for all fidelities or one for each. None if it is not known.
        names: display names; by default the indices from 0.
        resume: whether a play goes on from an earlier one of its arm at a lower fidelity m', as the training of a
            model does: it costs λ_m − λ_m' then. An experiment reserves and settles such costs.

    >>> ads = Fidelities(costs=[1, 10, 60], biases=[0.2, 0.1, 0], concentration=Bounded(),
    ...                  names=["a minute", "ten minutes", "an hour"])
    >>> len(ads)
    3
    >>> [round(gamma, 4) for gamma in ads.gammas]
    [0.0632, 0.0408]
    >>> ads.advice()
    ()
    """

    costs: Sequence[float]
    biases: Sequence[float] | None = None
    concentration: Concentration | Sequence[Concentration] | None = None
    names: Sequence[str] | None = None
    resume: bool = False

    def __post_init__(self) -> None:
        flag("resume", self.resume)
        costs = _costs(self.costs)
        n = len(costs)
        _set(self, "costs", costs)
        # A single fidelity is the highest one, so its bias is 0.
        given = (0.0,) if self.biases is None and n == 1 else self.biases
        _set(self, "biases", None if given is None else _biases(given, n))
        _set(self, "concentration", _concentrations(self.concentration, n))
        _set(self, "names", _names(self.names, n))

    def __len__(self) -> int:
        return len(self.costs)

    @cached_property
    def known_biases(self) -> tuple[float, ...]:
        """ζ_1, …, ζ_M; an error if they are not known.

        >>> Fidelities(costs=[1, 10], biases=[0.2, 0]).known_biases
        (0.2, 0.0)
        """
        if self.biases is None:
            raise InvalidArgument(
                "biases are needed here: for each fidelity, how far an arm's mean may lie from its mean at "
                "the highest fidelity; got None (the policy MFAuto needs none)"
            )
        return tuple(self.biases)

    @cached_property
    def tails(self) -> tuple[Concentration, ...]:
        """The concentration of each fidelity, shape (M,); an error if it is not known.

        >>> Fidelities(costs=[1, 10], concentration=SubGaussian(0.2)).tails
        (SubGaussian(scale=0.2), SubGaussian(scale=0.2))
        """
        tails = _concentrations(self.concentration, len(self))
        if tails is None:
            raise InvalidArgument(
                "a concentration is needed here, such as SubGaussian(scale) or Bounded(low, high); got None "
                "(the policy MFAuto needs none)"
            )
        return tails

    @property
    def labels(self) -> tuple[str, ...]:
        """The display names of the fidelities, shape (M,).

        >>> Fidelities(costs=[1, 10]).labels
        ('0', '1')
        """
        return _names(self.names, len(self))

    @cached_property
    def scales(self) -> FloatArray | None:
        """σ of each fidelity, shape (M, 1), if all are sub-Gaussian or bounded; else None.

        With these, ψ⁻¹(y) is σ·sqrt(2y), so that widths of all arms are one array expression.

        >>> Fidelities(costs=[1, 10], concentration=Bounded(0, 1)).scales.tolist()
        [[0.5], [0.5]]
        """
        # Not isinstance: a subclass may define another psi.
        scales = [tail.scale for tail in self.tails if type(tail) in (SubGaussian, Bounded)]  # type: ignore[attr-defined]
        return np.array(scales)[:, None] if len(scales) == len(self) else None

    @cached_property
    def are_rates(self) -> bool:
        """Whether rewards of all fidelities are rates, whose bounds follow the Bernoulli divergence.

        >>> Fidelities(costs=[1, 10], concentration=Rate()).are_rates
        True
        """
        return self.concentration is not None and all(type(tail) is Rate for tail in self.tails)

    @cached_property
    def gammas(self) -> tuple[float, ...]:
        r"""γ_m = ψ_m⁻¹((λ_m / λ_{m+1}) ψ_m(ζ_m)) for m < M, in units of reward (eq. 4); shape (M − 1,).

        Once the width at fidelity m is below γ_m, MF-UCB plays the arm at the next fidelity.

        >>> fid = Fidelities(costs=[1, 4], biases=[0.2, 0], concentration=SubGaussian(1.0))
        >>> [round(gamma, 12) for gamma in fid.gammas]  # 0.2 * sqrt(1 / 4)
        [0.1]
        """
        below = zip(self._cost_ratios, self.tails[:-1], self.known_biases[:-1], strict=True)
        return tuple(tail.psi_inv(ratio * tail.psi(bias)) for ratio, tail, bias in below)

    @cached_property
    def bias_column(self) -> FloatArray:
        """ζ as an array of shape (M, 1), to be added to (M, K) arrays; infinite where ζ is not known.

        >>> Fidelities(costs=[1, 10], biases=[0.2, 0]).bias_column.tolist()
        [[0.2], [0.0]]
        >>> Fidelities(costs=[1, 10]).bias_column.tolist()
        [[inf], [0.0]]
        """
        unknown = (math.inf,) * (len(self) - 1) + (0.0,)
        return np.array(unknown if self.biases is None else self.biases)[:, None]

    @cached_property
    def top(self) -> "Fidelities":
        """The highest fidelity alone.

        >>> Fidelities(costs=[1, 10], biases=[0.2, 0], concentration=Bounded()).top.costs
        (10.0,)
        """
        return self.only([len(self) - 1])

    def only(self, kept: Sequence[int]) -> "Fidelities":
        """Select some of the fidelities, the highest among them.

        Args:
            kept: their indices, increasing.

        >>> Fidelities(costs=[1, 5, 10], biases=[0.2, 0.1, 0]).only([0, 2]).costs
        (1.0, 10.0)
        """
        if not kept or kept[-1] != len(self) - 1:
            raise InvalidArgument(f"kept must end in the highest fidelity, {len(self) - 1}, got {list(kept)}")
        biases = None if self.biases is None else [self.biases[m] for m in kept]
        tails = None if self.concentration is None else [self.tails[m] for m in kept]
        return Fidelities([self.costs[m] for m in kept], biases, tails, [self.labels[m] for m in kept])

    def advice(self) -> tuple[str, ...]:
        """Return a sentence for each fidelity that can help little; empty if there is none.

        A sentence names a fidelity that is not much cheaper than the next one, or not much better than the one below.
        Others name a bias as wide as the range of the rewards, or biases that decay too slowly for Assumption 1.

        >>> slow = Fidelities([1, 9, 10], [0.3, 0.2, 0], SubGaussian(1.0))
        >>> print(slow.advice()[0])
        Fidelity 1 costs 0.9 times as much as fidelity 2: it saves little. Consider leaving it out.
        """
        return (*self._little_cheaper(), *self._little_better(), *self._too_wide(), *self._decay())

    @cached_property
    def decay_sides(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        r"""Σ_{i≤m} 1/ψ(ζ_i) and 1/ψ(ζ_{m+1}) for each m < M: by Assumption 1 the first is at most the second.

        >>> Fidelities(costs=[1, 4], biases=[0.5, 0], concentration=SubGaussian(0.5)).decay_sides
        ((2.0,), (inf,))
        """
        rates = [tail.psi(bias) for bias, tail in zip(self.known_biases, self.tails, strict=True)]
        each = [1 / rate if rate > 0 else math.inf for rate in rates]
        return tuple(accumulate(each[:-1])), tuple(each[1:])

    @property
    def _cost_ratios(self) -> list[float]:
        return [low / high for low, high in pairwise(self.costs)]

    def _little_cheaper(self) -> list[str]:
        return [
            f"Fidelity {m} costs {plain(ratio, 3)} times as much as fidelity {m + 1}: it saves little. "
            "Consider leaving it out."
            for m, ratio in enumerate(self._cost_ratios)
            if ratio > MAX_COST_RATIO
        ]

    def _little_better(self) -> list[str]:
        biases = self.biases or ()
        ratios = [high / low for low, high in pairwise(biases)]
        return [
            f"Fidelity {m + 1} has {plain(ratio, 3)} times the bias of fidelity {m}: little better, for "
            f"{plain(self.costs[m + 1] / self.costs[m], 3)} times the cost. Consider leaving it out."
            for m, ratio in enumerate(ratios)
            if ratio > MAX_BIAS_RATIO
        ]

    def _too_wide(self) -> list[str]:
        if self.biases is None or self.concentration is None:
            return []
        return [
            f"The bias of fidelity {m}, {plain(bias, 3)}, is as wide as the range of the rewards, "
            f"{plain(tail.high - tail.low, 3)}: its results say nothing about the highest fidelity."
            for m, (bias, tail) in enumerate(zip(self.biases, self.tails, strict=True))
            if isinstance(tail, Bounded) and bias >= tail.high - tail.low
        ]

    def _decay(self) -> list[str]:
        if self.biases is None or self.concentration is None:
            return []
        return [
            f"The biases decay too slowly at fidelity {m} (Assumption 1): the sum of 1/psi(bias) over "
            f"fidelities 0 to {m - 1} is {plain(left, 4)}, more than 1/psi(bias) = {plain(right, 4)} of "
            f"fidelity {m}. MF-UCB still works, but may gain less over UCB."
            for m, (left, right) in enumerate(zip(*self.decay_sides, strict=True), start=1)
            if left > right
        ]


def _set(record: object, field: str, value: object) -> None:
    object.__setattr__(record, field, value)


def _costs(given: Sequence[float]) -> tuple[float, ...]:
    costs = _floats("costs", given)
    if not costs:
        raise InvalidArgument("costs must have at least one value, got []")
    if not all(math.isfinite(cost) and cost > 0 for cost in costs):
        raise InvalidArgument(f"costs must be positive and finite, got {list(costs)}")
    if not all(SMALLEST_NUMBER <= cost <= LARGEST_NUMBER for cost in costs):
        raise InvalidArgument(f"costs must be {CALCULABLE}, got {list(costs)}")
    if not _strictly_increasing(costs):
        raise InvalidArgument(f"costs must be strictly increasing, got {list(costs)}")
    return costs


def _biases(given: Sequence[float], n: int) -> tuple[float, ...]:
    biases = _floats("biases", given)
    if len(biases) != n:
        raise InvalidArgument(
            f"biases must have one value for each of the {n} costs, got {len(biases)}: {list(biases)}"
        )
    if not all(math.isfinite(bias) for bias in biases):
        raise InvalidArgument(f"biases must be finite, got {list(biases)}")
    if biases[-1] != 0:
        raise InvalidArgument(f"biases must end in 0, the bias of the highest fidelity, got {list(biases)}")
    if not _strictly_increasing(biases[::-1]):
        raise InvalidArgument(f"biases must be strictly decreasing, got {list(biases)}")
    if biases[0] > LARGEST_NUMBER:
        raise InvalidArgument(f"biases must be at most {LARGEST_NUMBER:g}, got {list(biases)}")
    return biases


def _concentrations(given: Concentration | Sequence[Concentration] | None, n: int) -> tuple[Concentration, ...] | None:
    if given is None:
        return None
    if isinstance(given, Concentration) and not isinstance(given, type):
        return (given,) * n
    each = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str | bytes) else (given,)
    for tail in each:
        if isinstance(tail, type) or not isinstance(tail, Concentration):
            got = f"the class {tail.__name__} itself" if isinstance(tail, type) else repr(tail)
            raise InvalidArgument(
                "concentration must be Bounded(low, high), SubGaussian(scale) or an object with nu, psi and "
                f"psi_inv, got {got}"
            )
    if len(each) != n:
        raise InvalidArgument(f"concentration must be one for all or one for each of the {n} costs, got {len(each)}")
    return each


def _names(given: Sequence[str] | None, n: int) -> tuple[str, ...]:
    names = tuple(str(name) for name in (range(n) if given is None else given))
    if len(names) != n:
        raise InvalidArgument(f"names must have one value for each of the {n} costs, got {len(names)}: {list(names)}")
    return names


def _floats(what: str, given: Sequence[float]) -> tuple[float, ...]:
    try:
        if isinstance(given, str):
            raise TypeError
        return tuple(float(value) for value in given)
    except (TypeError, ValueError):
        raise InvalidArgument(f"{what} must be a sequence of numbers, got {given!r}") from None
    except OverflowError:  # a whole number of hundreds of digits
        values = ", ".join(shown(value) for value in given)
        raise InvalidArgument(f"{what} must be at most {plain(LARGEST_NUMBER)}, got [{values}]") from None


def _strictly_increasing(values: Sequence[float]) -> bool:
    return all(low < high for low, high in pairwise(values))
