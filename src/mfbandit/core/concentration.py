"""How fast sample means approach their expectation: the paper's ψ and ν (eq. 2)."""

import math
from dataclasses import dataclass, field
from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np

from mfbandit._internal.typing import FloatArray
from mfbandit._internal.validation import SMALLEST_NUMBER, number, positive
from mfbandit.core.divergence import kl
from mfbandit.errors import InvalidArgument


@runtime_checkable
class Concentration(Protocol):
    r"""A bound on the noise of one fidelity.

    The mean X̄ of ``s`` rewards with expectation μ satisfies, for every ε > 0 and on either side (eq. 2),

        P(X̄ − μ > ε) < ν · exp(−s ψ(ε)).

    ``psi`` is increasing with ``psi(0) == 0``, ``psi_inv`` is its inverse and ``nu`` is ν > 0. Each takes and returns
    one float. Any object with these three can be passed to :class:`~mfbandit.Fidelities`.

    Example: rewards with sub-exponential tails.

    >>> class SubExponential:
    ...     nu = 1.0
    ...     def psi(self, x: float) -> float:
    ...         return x * x / (2 + 2 * x)
    ...     def psi_inv(self, y: float) -> float:
    ...         return y + math.sqrt(y * y + 2 * y)
    >>> tail = SubExponential()
    >>> isinstance(tail, Concentration)
    True
    >>> round(tail.psi_inv(tail.psi(0.3)), 12)
    0.3
    """

    @property
    def nu(self) -> float:
        """ν, the factor in front of the exponential."""
        ...

    def psi(self, x: float, /) -> float:
        """Return ψ(x), the rate per reward at which a deviation of x becomes unlikely."""
        ...

    def psi_inv(self, y: float, /) -> float:
        """Return ψ⁻¹(y), the deviation whose rate is y."""
        ...


@dataclass(frozen=True)
class SubGaussian:
    r"""Sub-Gaussian rewards: ψ(x) = x² / (2σ²), ν = 1.

    Args:
        scale: σ > 0, in units of reward; for Gaussian rewards, their standard deviation.

    >>> noise = SubGaussian(0.2)
    >>> round(noise.psi(0.4), 12)
    2.0
    >>> round(noise.psi_inv(2.0), 12)
    0.4
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive("scale", self.scale))

    @property
    def nu(self) -> float:
        """ν = 1."""
        return 1.0

    def psi(self, x: float, /) -> float:
        """Return x² / (2σ²)."""
        return x * x / (2 * self.scale * self.scale)

    def psi_inv(self, y: float, /) -> float:
        """Return σ · sqrt(2y)."""
        return self.scale * math.sqrt(2 * y)


@dataclass(frozen=True)
class Bounded:
    r"""Rewards that lie in [low, high]: ψ(x) = 2x² / (high − low)², ν = 1 (Hoeffding).

    They are sub-Gaussian with ``scale`` σ = (high − low) / 2, whatever their distribution.

    Args:
        low: smallest possible reward.
        high: largest possible reward.

    >>> clicks = Bounded()
    >>> clicks.scale, clicks.psi(0.5)
    (0.5, 0.5)
    >>> clicks.psi_inv(0.5)
    0.5
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        low, high = number("low", self.low), number("high", self.high)
        if not low < high:
            raise InvalidArgument(f"low must be below high, got low={self.low}, high={self.high}")
        if high - low < 2 * SMALLEST_NUMBER:
            raise InvalidArgument(
                f"low must be at least {2 * SMALLEST_NUMBER:g} below high, got low={low}, high={high}"
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def scale(self) -> float:
        """σ of the sub-Gaussian tail: half the range."""
        return (self.high - self.low) / 2

    @property
    def nu(self) -> float:
        """ν = 1."""
        return 1.0

    def psi(self, x: float, /) -> float:
        """Return 2x² / (high − low)²."""
        return x * x / (2 * self.scale * self.scale)

    def psi_inv(self, y: float, /) -> float:
        """Return σ · sqrt(2y), with σ half the range."""
        return self.scale * math.sqrt(2 * y)


@dataclass(frozen=True)
class Rate(Bounded):
    r"""Rates, such as clicks per impression: observations of 0 and 1, or anything in [0, 1].

    No rewards in [0, 1] of mean p spread more than zeros and ones do. So bounds may follow the Bernoulli divergence
    kl(p, q), which is much larger than Hoeffding's 2(p − q)² where rates are low: at 4 % by a factor of six. The bounds
    of ``UCB`` and ``MFUCB``, ``MFAda``, evidence, the test of biases and ``plan`` do so for rates. ψ itself, which
    knows no p, is Hoeffding's.

    >>> Rate(), Rate().scale
    (Rate(), 0.5)
    """

    low: float = field(default=0.0, init=False, repr=False)
    high: float = field(default=1.0, init=False, repr=False)


QUADRATIC: tuple[type[Concentration], ...] = (SubGaussian, Bounded, Rate)  # those with ψ(x) = x²/(2σ²)


def has_range(tail: object) -> TypeGuard[Bounded]:
    """Tell whether rewards lie in a range, by the package's own concentrations.

    >>> has_range(Rate()), has_range(SubGaussian(0.5))
    (True, False)
    """
    return type(tail) in (Bounded, Rate)  # not isinstance: a subclass may define another psi


def divergences(means: FloatArray, deviations: FloatArray) -> FloatArray:
    """Compute the Bernoulli divergence kl(p, p + x) of arrays; infinite where p + x is 1 or more.

    >>> divergences(np.array([0.5, 0.5]), np.array([0.25, 0.5])).round(6).tolist()
    [0.143841, inf]
    """
    pairs = zip(means.ravel().tolist(), deviations.ravel().tolist(), strict=True)
    return np.array([kl(p, min(p + x, 1.0)) for p, x in pairs]).reshape(means.shape)


def rates(tail: Concentration, deviations: FloatArray) -> FloatArray:
    """Compute ψ of an array of deviations; the same shape, per reward.

    >>> rates(SubGaussian(0.5), np.array([[0.0, 1.0]])).tolist()
    [[0.0, 2.0]]
    """
    if type(tail) in QUADRATIC:
        scale = tail.scale  # type: ignore[attr-defined]
        result: FloatArray = deviations * deviations / (2 * scale * scale)
        return result
    return np.array([tail.psi(x) for x in deviations.ravel().tolist()]).reshape(deviations.shape)
