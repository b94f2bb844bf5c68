"""A problem to simulate on: every arm's mean at every fidelity, and how rewards are drawn."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from mfbandit._internal.formatting import plain
from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import Fidelities
from mfbandit.errors import InvalidArgument, ReplayExhausted

TOLERANCE = 1e-9  # by which means, being sums and differences, may miss their bounds


@dataclass(frozen=True)
class Gaussian:
    """Normal rewards around the mean.

    Args:
        sigma: standard deviation, in units of reward; one for all fidelities or one for each.

    >>> Gaussian(0.2).sigmas(3).tolist()
    [0.2, 0.2, 0.2]
    """

    sigma: float | Sequence[float]

    def __post_init__(self) -> None:
        sigma = _numbers("sigma", self.sigma)
        if sigma.ndim > 1 or sigma.size == 0 or not (np.isfinite(sigma) & (sigma >= 0)).all():
            raise InvalidArgument(f"sigma must be finite and not negative, got {self.sigma}")
        object.__setattr__(self, "sigma", float(sigma) if sigma.ndim == 0 else tuple(sigma.tolist()))

    def sigmas(self, fidelities: int) -> FloatArray:
        """Return the standard deviation at each fidelity, shape (M,).

        >>> Gaussian([0.3, 0.1]).sigmas(2).tolist()
        [0.3, 0.1]
        """
        sigma = np.asarray(self.sigma, dtype=np.float64)
        if sigma.ndim == 1 and len(sigma) != fidelities:
            raise InvalidArgument(
                f"sigma must be one for all or one for each of the {fidelities} fidelities, got {self.sigma}"
            )
        return np.broadcast_to(sigma, (fidelities,))


@dataclass(frozen=True)
class Bernoulli:
    """Rewards 0 and 1; the mean is the probability of a 1.

    >>> Bernoulli()
    Bernoulli()
    """


@dataclass(frozen=True, eq=False)
class Replay:
    """Rewards taken from a table of recorded results.

    Args:
        samples: ``samples[m][k]`` are the recorded rewards of arm k at fidelity m, at least one each.
        replace: True draws from them at random with replacement. False gives each once, in the recorded order; a play
            beyond the last one raises :class:`~mfbandit.errors.ReplayExhausted`.

    >>> past = Replay([[[0.1, 0.3], [0.5]], [[0.2, 0.2], [0.6, 0.8]]])
    >>> past.means.round(3).tolist()
    [[0.2, 0.5], [0.2, 0.7]]
    """

    samples: Sequence[Sequence[ArrayLike]]
    replace: bool = True

    def __post_init__(self) -> None:
        table = tuple(tuple(_recorded(cell, m, k) for k, cell in enumerate(row)) for m, row in enumerate(self.samples))
        if not table or not table[0] or any(len(row) != len(table[0]) for row in table):
            raise InvalidArgument(
                "samples must have a row for each fidelity and, in each row, a list for each arm, "
                f"got rows of {[len(row) for row in table]} arms"
            )
        object.__setattr__(self, "samples", table)

    @cached_property
    def means(self) -> FloatArray:
        """The average of each list, shape (M, K); the means of a problem with these rewards."""
        return np.array([[np.asarray(cell, dtype=np.float64).mean() for cell in row] for row in self.samples])

    @cached_property
    def lengths(self) -> IntArray:
        """The number of recorded rewards, shape (M, K)."""
        return np.array([[len(np.asarray(cell)) for cell in row] for row in self.samples], dtype=np.int64)


Rewards: TypeAlias = Gaussian | Bernoulli | Replay


@dataclass(frozen=True, eq=False)
class Problem:
    r"""A bandit with known means, to simulate on. A policy sees only its ``fidelities``.

    Args:
        means: μ^(m)_k, in units of reward; shape (M, K).
        fidelities: what the policy knows; its biases must bound the means unless ``misspecified``.
        rewards: the distribution of rewards around their mean.
        misspecified: allow means that break the bias bounds, to study what happens then.

    >>> from mfbandit.core.concentration import SubGaussian
    >>> fid = Fidelities(costs=[1, 10], biases=[0.2, 0], concentration=SubGaussian(0.1))
    >>> problem = Problem([[0.5, 0.4], [0.4, 0.6]], fid, Gaussian(0.1))
    >>> problem
    <Problem of 2 arms, 2 fidelities, Gaussian rewards, best mean 0.6>
    >>> problem.best_mean, problem.optimal.tolist(), problem.gaps.round(3).tolist()
    (0.6, [1], [0.2, 0.0])
    >>> round(problem.draw(arm=1, fidelity=0, rng=np.random.default_rng(0)), 4)
    0.4126
    """

    means: FloatArray
    fidelities: Fidelities
    rewards: Rewards
    misspecified: bool

    def __init__(
        self, means: ArrayLike, fidelities: Fidelities, rewards: Rewards, *, misspecified: bool = False
    ) -> None:
        table = _numbers("means", means)
        table.flags.writeable = False
        _check_shape(table, fidelities)
        if fidelities.resume:
            raise InvalidArgument("fidelities of a problem must not resume: its plays do not depend on earlier ones")
        _check_rewards(table, rewards)
        if not misspecified:
            _check_biases(table, fidelities)
        # This __init__ turns lists into arrays, so that it sets the frozen fields itself.
        object.__setattr__(self, "means", table)
        object.__setattr__(self, "fidelities", fidelities)
        object.__setattr__(self, "rewards", rewards)
        object.__setattr__(self, "misspecified", misspecified)

    def __repr__(self) -> str:
        arms, levels, kind = f"{self.arms:,} arms", len(self.means), type(self.rewards).__name__
        fidelities = "1 fidelity" if levels == 1 else f"{levels} fidelities"
        return f"<Problem of {arms}, {fidelities}, {kind} rewards, best mean {self.best_mean:.4g}>"

    @property
    def arms(self) -> int:
        """K, the number of arms."""
        return int(self.means.shape[1])

    @cached_property
    def best_mean(self) -> float:
        """μ* = max_k μ^(M)_k."""
        return float(self.means[-1].max())

    @cached_property
    def optimal(self) -> IntArray:
        """The arms whose mean at the highest fidelity is μ*; shape (number of them,)."""
        return np.flatnonzero(self.means[-1] == self.best_mean)

    @cached_property
    def gaps(self) -> FloatArray:
        """μ* − μ^(M)_k, the regret per unit of capital spent on each arm; shape (K,)."""
        gaps: FloatArray = self.best_mean - self.means[-1]
        return gaps

    @cached_property
    def digest(self) -> str:
        """A hash of means, costs, biases and rewards, in twelve characters.

        >>> from mfbandit.core.concentration import Bounded
        >>> fid = Fidelities(costs=[1], concentration=Bounded())
        >>> one, same, other = (Problem([[mean]], fid, Bernoulli()).digest for mean in (0.5, 0.5, 0.6))
        >>> one == same, one == other
        (True, False)
        """
        rewards = "Replay" if isinstance(self.rewards, Replay) else repr(self.rewards)
        known = f"{self.means.shape} {self.fidelities.costs} {self.fidelities.biases} {rewards}"
        return hashlib.sha256(known.encode() + self.means.tobytes()).hexdigest()[:12]

    def draw(self, arm: int, fidelity: int, rng: np.random.Generator, earlier: int | None = None) -> float:
        """Draw a reward of ``arm`` at ``fidelity``.

        Args:
            arm: index of the arm.
            fidelity: index of the fidelity.
            rng: the source of randomness, used once a reward; not used by a table replayed in order.
            earlier: the number of earlier plays of this arm at this fidelity; only a table replayed in order needs it.

        >>> from mfbandit.core.concentration import Bounded
        >>> fid = Fidelities(costs=[1], concentration=Bounded())
        >>> past = Replay([[[0.25, 0.5], [1.0]]], replace=False)
        >>> Problem(past.means, fid, past).draw(0, 0, np.random.default_rng(0), earlier=1)
        0.5
        """
        mean = float(self.means[fidelity, arm])
        match self.rewards:
            case Gaussian():
                return mean + float(self._sigmas[fidelity]) * float(rng.standard_normal())
            case Bernoulli():
                return 1.0 if rng.random() < mean else 0.0
            case Replay() as table:
                return _replayed(table, arm, fidelity, rng, earlier)

    @cached_property
    def _sigmas(self) -> FloatArray:
        return self.rewards.sigmas(len(self.fidelities)) if isinstance(self.rewards, Gaussian) else np.zeros(0)


def _replayed(table: Replay, arm: int, fidelity: int, rng: np.random.Generator, earlier: int | None) -> float:
    cell = np.asarray(table.samples[fidelity][arm])
    if table.replace:
        return float(cell[int(rng.random() * len(cell))])
    if earlier is None:
        raise InvalidArgument(
            "earlier must be the number of earlier plays, as this table is replayed in order (replace=False), got None"
        )
    if earlier >= len(cell):
        raise ReplayExhausted(replay_exhausted(arm, fidelity, len(cell)))
    return float(cell[earlier])


def replay_exhausted(arm: int, fidelity: int, recorded: int) -> str:
    """Return the message for a table that has no reward left.

    >>> replay_exhausted(arm=3, fidelity=0, recorded=25)[:58]
    'Replay table exhausted: arm 3 has 25 recorded rewards at f'
    """
    return (
        f"Replay table exhausted: arm {arm} has {recorded} recorded rewards at fidelity {fidelity} and one "
        "more was asked for; use Replay(samples, replace=True), record more, or spend less capital"
    )


def _numbers(what: str, given: ArrayLike) -> FloatArray:
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(f"{what} must be numbers in a regular table, got {given!r}") from None


def _recorded(cell: ArrayLike, m: int, k: int) -> FloatArray:
    rewards = _numbers(f"samples of arm {k} at fidelity {m}", cell)
    if rewards.ndim != 1 or rewards.size == 0 or not np.isfinite(rewards).all():
        raise InvalidArgument(
            f"samples of arm {k} at fidelity {m} must be a list of at least one finite number, got {cell!r}"
        )
    return rewards


def _check_shape(means: FloatArray, fidelities: Fidelities) -> None:
    if not isinstance(fidelities, Fidelities):
        raise InvalidArgument(f"fidelities must be a Fidelities, got {fidelities!r}")
    if means.shape[:-1] != (len(fidelities),):
        raise InvalidArgument(f"means must have shape (M, K) with M = {len(fidelities)} fidelities, got {means.shape}")
    if means.shape[1] == 0:
        raise InvalidArgument(f"means must have at least one arm, got shape {means.shape}")
    if not np.isfinite(means).all():
        m, k = np.argwhere(~np.isfinite(means))[0]
        raise InvalidArgument(f"means must be finite, got {means[m, k]} for arm {k} at fidelity {m}")


def _check_rewards(means: FloatArray, rewards: Rewards) -> None:
    if isinstance(rewards, Gaussian):
        rewards.sigmas(len(means))
    elif isinstance(rewards, Bernoulli) and not ((means >= 0) & (means <= 1)).all():
        m, k = np.argwhere(~((means >= 0) & (means <= 1)))[0]
        raise InvalidArgument(f"Bernoulli means must lie in [0, 1], got {means[m, k]} for arm {k} at fidelity {m}")
    elif isinstance(rewards, Replay):
        _check_replay(means, rewards)
    elif not isinstance(rewards, Bernoulli):
        raise InvalidArgument(f"rewards must be Gaussian(sigma), Bernoulli() or Replay(samples), got {rewards!r}")


def _check_replay(means: FloatArray, rewards: Replay) -> None:
    if rewards.means.shape != means.shape:
        raise InvalidArgument(
            f"samples must match means of shape {means.shape}, got a table of shape {rewards.means.shape}"
        )
    wrong = np.abs(rewards.means - means) > TOLERANCE * np.maximum(1, np.abs(means))
    if wrong.any():
        m, k = (int(i) for i in np.argwhere(wrong)[0])
        raise InvalidArgument(
            f"means must be the averages of the samples (Replay.means), got {plain(means[m, k])} for arm {k} at "
            f"fidelity {m}, whose samples average {plain(rewards.means[m, k])}"
        )


def _check_biases(means: FloatArray, fidelities: Fidelities) -> None:
    if fidelities.biases is None:
        return
    bias = np.abs(means[-1] - means)
    broken = bias > fidelities.bias_column + TOLERANCE
    if broken.any():
        m, k = (int(i) for i in np.argwhere(broken)[0])
        raise InvalidArgument(
            f"means must lie within their biases of those at the highest fidelity, got {plain(means[m, k])} for arm "
            f"{k} at fidelity {m}, {plain(bias[m, k])} from {plain(means[-1, k])}, and a bias of "
            f"{plain(fidelities.known_biases[m])} (misspecified=True allows this)"
        )
