"""MF-UCB: the tightest upper confidence bound over all fidelities (the paper's Algorithm 1)."""

from dataclasses import dataclass

from mfbandit._internal.typing import FloatArray
from mfbandit._internal.validation import flag, positive
from mfbandit.core import (
    Fidelities,
    Stats,
    kl_upper_bounds,
    lower_bounds,
    most_promising,
    rate_width,
    safest,
    upper_bounds,
    width,
)


@dataclass(frozen=True)
class MFUCB:
    r"""MF-UCB: play the arm with the largest index B_k(t), at the cheapest fidelity that is still informative.

    1. B_k(t) = min over m of X̄ + ψ_m⁻¹(ρ log t / T^(m)_k) + ζ_m (eq. 3). Play the arm with the largest, the lowest
       index among ties.
    2. The fidelity is the first m whose width ψ_m⁻¹(ρ log t / T^(m)_k) is at least γ_m (eq. 4), else M.

    With one fidelity this is UCB.

    Args:
        rho: exploration parameter ρ > 0; the paper's simulations use 2, its theorems need more than 4.
        kl: compute step 1 with the Bernoulli divergence; for :class:`~mfbandit.Bounded` rewards only. Step 2 keeps
            its widths: KL widths are 0 at a mean of 1, and would leave every fidelity at once.

    >>> from mfbandit.core.concentration import SubGaussian
    >>> fid = Fidelities(costs=[1, 10], biases=[0.2, 0], concentration=SubGaussian(0.1))
    >>> stats = Stats.empty(fidelities=2, arms=3)
    >>> MFUCB(rho=2).choose(stats, fid)
    (0, 0)

    Reference:
        Kandasamy, Dasarathy, Schneider, Póczos, The Multi-fidelity Multi-armed Bandit, NIPS 2016.
    """

    rho: float = 2.0
    kl: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", positive("rho", self.rho))
        object.__setattr__(self, "kl", flag("kl", self.kl))

    def __repr__(self) -> str:
        return f"MFUCB(rho={self.rho}{', kl=True' * self.kl})"

    def choose(self, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
        """Choose the arm by step 1 and the fidelity by step 2."""
        arm = most_promising(self.index(stats, fidelities), stats)
        return arm, self._fidelity(arm, stats, fidelities)

    def index(self, stats: Stats, fidelities: Fidelities) -> FloatArray:
        """Compute B_k(t), the tightest upper bound on each arm's mean; shape (K,), in units of reward."""
        bounds: FloatArray = (kl_upper_bounds if self.kl else upper_bounds)(stats, fidelities, self.rho).min(axis=0)
        return bounds

    def recommend(self, stats: Stats, fidelities: Fidelities) -> int:
        """Return the active arm with the highest lower bound, max over m of X̄ − width − ζ_m."""
        return safest(lower_bounds(stats, fidelities, self.rho).max(axis=0), stats)

    def _fidelity(self, arm: int, stats: Stats, fidelities: Fidelities) -> int:
        number, rates = stats.observations[:, arm].tolist(), fidelities.are_rates
        for m, gamma in enumerate(fidelities.gammas):
            if rates:
                wide = rate_width(stats, arm, m, fidelities, self.rho)
            else:
                wide = width(number[m], m, stats.time, fidelities, self.rho)
            if wide >= gamma:
                return m
        return len(fidelities) - 1
