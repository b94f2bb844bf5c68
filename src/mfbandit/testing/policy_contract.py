"""The contract of a policy."""

from collections.abc import Iterator

import numpy as np

from mfbandit.core import Fidelities, Stats, SubGaussian
from mfbandit.policies import Compilable, Policy
from mfbandit.testing._compiled_rules import check_compiled, check_rise
from mfbandit.testing.contract import require


def check_policy(policy: Policy) -> None:
    """Check the contract of a policy in sixty situations; raise :class:`ContractBroken` if it is broken.

    The policy must choose an active arm and a fidelity in range, and do so again for the same statistics. It must
    leave what it is given unchanged, give an index of shape (K,) without NaN, and recommend an active arm that has a
    result. Situations have 1 to 5 fidelities, 1 to 7 arms, pending plays, retired arms, equal rewards.

    A policy with ``compiled`` is also run compiled and in Python, with the same draws: plays must be the same. An
    index that is declared to rise must do so.

    >>> from mfbandit import MFUCB
    >>> check_policy(MFUCB(rho=2))
    """
    for stats, fidelities in _situations():
        before = stats.copy()
        _check_choice(policy, stats, fidelities)
        _check_index(policy, stats, fidelities)
        if stats.counts[-1, stats.active].any():
            _check_recommendation(policy, stats, fidelities)
        _check_unchanged(before, stats, policy)
        if isinstance(policy, Compilable):
            check_rise(policy, stats, fidelities)
    if isinstance(policy, Compilable):
        check_compiled(policy)


def _situations() -> Iterator[tuple[Stats, Fidelities]]:
    rng = np.random.default_rng(0)
    for m in range(1, 6):
        costs = 3.0 ** np.arange(m)
        biases = [*(0.5 ** np.arange(1, m)).tolist(), 0.0]
        fidelities = Fidelities(costs.tolist(), biases, SubGaussian(0.3))
        for k in (1, 2, 7):
            yield Stats.empty(m, k), fidelities
            for plays in (1, k * m, 20 * k * m):
                yield _played(m, k, plays, rng), fidelities


def _played(m: int, k: int, plays: int, rng: np.random.Generator) -> Stats:
    stats = Stats.empty(m, k)
    at = rng.integers(m, size=plays), rng.integers(k, size=plays)
    rewards = rng.integers(0, 2, size=plays).astype(np.float64)
    np.add.at(stats.counts, at, 1)
    np.add.at(stats.sums, at, rewards)
    np.add.at(stats.squares, at, rewards)
    stats.pending[:] = rng.integers(0, 2, size=(m, k))
    stats.active[:] = rng.random(k) < 0.7
    stats.active[rng.integers(k)] = True
    return stats


def _check_choice(policy: Policy, stats: Stats, fidelities: Fidelities) -> None:
    choice = policy.choose(stats, fidelities)
    arm, fidelity = choice
    require(
        0 <= arm < len(stats.active) and 0 <= fidelity < len(fidelities),
        f"choose must return an arm below {len(stats.active)} and a fidelity below {len(fidelities)}, got {choice}",
    )
    require(
        bool(stats.active[arm]),
        f"choose must return an active arm, got {arm} with active = {stats.active.tolist()}",
    )
    again = policy.choose(stats.copy(), fidelities)
    require(
        tuple(again) == tuple(choice),
        f"choose must return the same for the same statistics, got {choice}, then {again}",
    )


def _check_index(policy: Policy, stats: Stats, fidelities: Fidelities) -> None:
    index = np.asarray(policy.index(stats, fidelities))
    require(index.shape == stats.active.shape, f"index must have shape {stats.active.shape}, got {index.shape}")
    require(not np.isnan(index).any(), f"index must not be NaN, got {index.tolist()}")


def _check_recommendation(policy: Policy, stats: Stats, fidelities: Fidelities) -> None:
    arm = policy.recommend(stats, fidelities)
    require(
        bool(0 <= arm < len(stats.active) and stats.active[arm] and stats.counts[:, arm].any()),
        f"recommend must return an active arm with a result, got {arm} with active = {stats.active.tolist()} "
        f"and results {stats.counts.sum(axis=0).tolist()}",
    )


def _check_unchanged(before: Stats, after: Stats, policy: Policy) -> None:
    for name in ("counts", "sums", "squares", "pending", "active"):
        require(
            np.array_equal(getattr(before, name), getattr(after, name)),
            f"a policy must not change the statistics, and {policy} changed {name}",
        )
