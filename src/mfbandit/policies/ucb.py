"""UCB: upper confidence bounds at the highest fidelity alone."""

from dataclasses import dataclass
from typing import ClassVar

from mfbandit._internal.typing import FloatArray
from mfbandit._internal.validation import flag, positive
from mfbandit.core import Fidelities, Stats, kl_upper_bounds, lower_bounds, most_promising, safest, upper_bounds


@dataclass(frozen=True)
class UCB:
    r"""UCB: play the arm with the largest B^(M)_k(t), always at fidelity M.

    B^(M)_k(t) = X̄ + ψ_M⁻¹(ρ log t / T^(M)_k): eq. 3 for one fidelity. It needs no biases and ignores results at lower
    fidelities.

    Args:
        rho: exploration parameter ρ > 0; the paper's simulations use 2.
        kl: compute bounds with the Bernoulli divergence (KL-UCB); for :class:`~mfbandit.Bounded` rewards only.

    >>> from mfbandit.core.concentration import SubGaussian
    >>> fid = Fidelities(costs=[1, 10], biases=[0.2, 0], concentration=SubGaussian(0.1))
    >>> stats = Stats.empty(fidelities=2, arms=3)
    >>> UCB(rho=2).choose(stats, fid)
    (0, 1)

    References:
        Garivier, Cappé, The KL-UCB Algorithm for Bounded Stochastic Bandits and Beyond, COLT 2011.
        Auer, Using Confidence Bounds for Exploitation-Exploration Trade-offs, JMLR 2003.
    """

    uses_biases: ClassVar[bool] = False

    rho: float = 2.0
    kl: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", positive("rho", self.rho))
        object.__setattr__(self, "kl", flag("kl", self.kl))

    def __repr__(self) -> str:
        return f"UCB(rho={self.rho}{', kl=True' * self.kl})"

    def choose(self, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
        """Choose the arm with the largest index, at the highest fidelity."""
        arm = most_promising(self.index(stats, fidelities), stats.top)
        return arm, len(fidelities) - 1

    def index(self, stats: Stats, fidelities: Fidelities) -> FloatArray:
        """Compute B^(M)_k(t); shape (K,), in units of reward."""
        bounds: FloatArray = (kl_upper_bounds if self.kl else upper_bounds)(stats.top, fidelities.top, self.rho)[0]
        return bounds

    def recommend(self, stats: Stats, fidelities: Fidelities) -> int:
        """Return the active arm with the highest lower bound X̄ − ψ_M⁻¹(ρ log t / T) at the highest fidelity."""
        return safest(lower_bounds(stats.top, fidelities.top, self.rho)[0], stats)
