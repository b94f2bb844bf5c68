"""Contracts that a policy or a kind of experiment of your own can be checked against."""

import math
from collections.abc import Callable, Iterator
from typing import Protocol, overload

import numpy as np

from mfbandit.core import Fidelities, Play, Stats, SubGaussian
from mfbandit.errors import CapitalExhausted, Conflict, NoResults, UnknownPlay
from mfbandit.experiment import Experiment
from mfbandit.policies import MFUCB, UCB, Policy


class ContractBroken(AssertionError):
    """A policy or an experiment does something that its users must be able to rule out."""


class AskTell(Protocol):
    """What every kind of experiment offers, in memory or not."""

    @property
    def spent(self) -> float:
        """The cost of all settled plays."""
        ...

    @overload
    def ask(self) -> Play: ...
    @overload
    def ask(self, n: int) -> list[Play]: ...
    def ask(self, n: int | None = None) -> Play | list[Play]:
        """The next play, or the next n."""
        ...

    def tell(self, play: Play, reward: float, cost: float | None = None) -> None:
        """Take in a result."""
        ...

    def fail(self, play: Play, cost: float = 0.0) -> None:
        """Give a play up."""
        ...

    def best(self) -> int:
        """The recommended arm."""
        ...

    def add_arm(self, label: str) -> int:
        """A new arm."""
        ...

    def retire_arm(self, arm: int) -> None:
        """Stop asking for an arm."""
        ...

    def restore_arm(self, arm: int) -> None:
        """Bring back an arm that was set aside."""
        ...


MakeExperiment = Callable[[Policy, list[str], Fidelities, float | None], AskTell]


def check_policy(policy: Policy) -> None:
    """Check the contract of a policy in sixty situations; raise :class:`ContractBroken` if it is broken.

    The policy must choose an active arm and a fidelity in range, and do so again for the same statistics;
    leave what it is given unchanged; give an index of shape (K,) without NaN; recommend an active arm that
    has a result. Situations have 1 to 5 fidelities, 1 to 7 arms, pending plays, retired arms, equal rewards.

    >>> from mfbandit import MFUCB
    >>> check_policy(MFUCB(rho=2))
    """
    for stats, fidelities in _situations():
        before = stats.copy()
        _check_choice(policy, stats, fidelities)
        _check_index(policy, stats, fidelities)
        if stats.counts[-1, stats.active].any():
            _check_recommendation(policy, stats, fidelities)
        _same(before, stats, policy)


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
    if not (0 <= arm < len(stats.active) and 0 <= fidelity < len(fidelities)):
        raise ContractBroken(
            f"choose must return an arm below {len(stats.active)} and a fidelity below {len(fidelities)}, got {choice}"
        )
    if not stats.active[arm]:
        raise ContractBroken(f"choose must return an active arm, got {arm} with active = {stats.active.tolist()}")
    again = policy.choose(stats.copy(), fidelities)
    if tuple(again) != tuple(choice):
        raise ContractBroken(f"choose must return the same for the same statistics, got {choice}, then {again}")


def _check_index(policy: Policy, stats: Stats, fidelities: Fidelities) -> None:
    index = np.asarray(policy.index(stats, fidelities))
    if index.shape != stats.active.shape:
        raise ContractBroken(f"index must have shape {stats.active.shape}, got {index.shape}")
    if np.isnan(index).any():
        raise ContractBroken(f"index must not be NaN, got {index.tolist()}")


def _check_recommendation(policy: Policy, stats: Stats, fidelities: Fidelities) -> None:
    arm = policy.recommend(stats, fidelities)
    if not (0 <= arm < len(stats.active) and stats.active[arm] and stats.counts[:, arm].any()):
        raise ContractBroken(
            f"recommend must return an active arm with a result, got {arm} with active = {stats.active.tolist()} "
            f"and results {stats.counts.sum(axis=0).tolist()}"
        )


def _same(before: Stats, after: Stats, policy: Policy) -> None:
    for name in ("counts", "sums", "squares", "pending", "active"):
        if not np.array_equal(getattr(before, name), getattr(after, name)):
            raise ContractBroken(f"a policy must not change the statistics, and {policy} changed {name}")


def check_experiment(make: MakeExperiment) -> None:
    """Check the contract of a kind of experiment; raise :class:`ContractBroken` if it is broken.

    Args:
        make: makes a fresh experiment from a policy, names of arms, fidelities and capital.

    >>> from mfbandit import Experiment
    >>> check_experiment(lambda policy, arms, fidelities, capital: Experiment(
    ...     policy, arms=arms, fidelities=fidelities, capital=capital))
    """
    for check in (
        _plays_as_the_policy_says,
        _plays_ahead_as_the_policy_says,
        _takes_results_in_any_order,
        _takes_a_result_once,
        _refuses_strangers,
        _keeps_to_the_capital,
        _forgets_failed_plays,
        _sets_failing_arms_aside,
        _lets_arms_come_and_go,
        _recommends_only_from_results,
    ):
        check(make)


_FIDELITIES = Fidelities(costs=[1, 5, 25], biases=[0.3, 0.1, 0], concentration=SubGaussian(0.2))
_ARMS = ["a", "b", "c", "d"]


def _reward(play: Play, i: int) -> float:
    """A reward that depends on nothing but the play and how many came before it; ties are common."""
    return round(0.2 * play.arm + 0.1 * math.sin(7.0 * i + play.fidelity), 1)


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise ContractBroken(rule)


def _refuses(error: type[Exception], call: Callable[[], object], rule: str) -> None:
    try:
        call()
    except error:
        return
    raise ContractBroken(rule)


def _plays_as_the_policy_says(make: MakeExperiment) -> None:
    for policy in (UCB(), MFUCB()):
        ours = make(policy, _ARMS, _FIDELITIES, None)
        plain = Experiment(policy, arms=_ARMS, fidelities=_FIDELITIES)
        for i in range(60):
            play, expected = ours.ask(), plain.ask()
            seen, due = (play.arm, play.fidelity, play.label), (expected.arm, expected.fidelity, expected.label)
            _require(seen == due, f"play {i} of {policy} must be {due}, got {seen}")
            ours.tell(play, _reward(play, i))
            plain.tell(expected, _reward(expected, i))
        _require(math.isclose(ours.spent, plain.spent), f"spent must be {plain.spent}, got {ours.spent}")
        _require(ours.best() == plain.best(), f"best must be {plain.best()}, got {ours.best()}")


def _plays_ahead_as_the_policy_says(make: MakeExperiment) -> None:
    """Two plays ahead of every result, told from the middle, some failed; arms come, go and are set aside."""
    policy = MFUCB(rho=0.5)
    ours, plain = make(policy, _ARMS, _FIDELITIES, None), Experiment(policy, arms=_ARMS, fidelities=_FIDELITIES)
    waiting: list[tuple[Play, Play]] = []
    for i in range(60):
        waiting += zip(ours.ask(2), plain.ask(2), strict=True)
        for play, expected in waiting[-2:]:
            seen, due = (play.arm, play.fidelity, play.label), (expected.arm, expected.fidelity, expected.label)
            _require(seen == due, f"with plays pending, play {i} of the policy must be {due}, got {seen}")
        play, expected = waiting.pop(len(waiting) // 2)
        # Rewards differ by powers of two: no two results can be mistaken for one another, and sums are exact.
        reward = (play.arm + 1) / 4 + 2.0 ** -(2 + i % 20)
        _settle(ours, play, i, reward)
        _settle(plain, expected, i, reward)
    _require(ours.spent == plain.spent, f"spent must be {plain.spent}, got {ours.spent}")
    _require(ours.best() == plain.best(), f"best must be {plain.best()}, got {ours.best()}")


def _settle(experiment: AskTell, play: Play, i: int, reward: float) -> None:
    if i % 9 == 4 or i in (1, 2, 3):
        experiment.fail(play)
    else:
        experiment.tell(play, reward)
    if i == 20:
        experiment.add_arm("late")
    if i == 40:
        experiment.retire_arm(0)


def _takes_results_in_any_order(make: MakeExperiment) -> None:
    forward, backward = (make(MFUCB(), _ARMS, _FIDELITIES, None) for _ in range(2))
    ahead, behind = forward.ask(8), backward.ask(8)
    _require(len({play.arm for play in ahead[: len(_ARMS)]}) == len(_ARMS), "the first plays must be of different arms")
    for play in ahead:
        forward.tell(play, 0.5)
    for play in reversed(behind):
        backward.tell(play, 0.5)
    nexts = [(play.arm, play.fidelity) for play in (forward.ask(), backward.ask())]
    _require(nexts[0] == nexts[1], "the order of telling must not matter to the next play")


def _takes_a_result_once(make: MakeExperiment) -> None:
    experiment = make(MFUCB(), _ARMS, _FIDELITIES, None)
    play = experiment.ask()
    experiment.tell(play, 0.5)
    experiment.tell(play, 0.5)
    _require(experiment.spent == play.cost, "the same result told twice must count once")
    _refuses(Conflict, lambda: experiment.tell(play, 0.6), "another result for the same play must be a Conflict")
    _refuses(Conflict, lambda: experiment.fail(play), "failing a play that has a result must be a Conflict")
    _require(experiment.spent == play.cost, "a refused result must change nothing")


def _refuses_strangers(make: MakeExperiment) -> None:
    experiment, other = (make(MFUCB(), _ARMS, _FIDELITIES, None) for _ in range(2))
    play, stranger = experiment.ask(), other.ask()
    unknown = Play("no-such-play", 0, 0, 1.0, "a")
    for foreign in (stranger, unknown):
        _refuses(UnknownPlay, lambda it=foreign: experiment.tell(it, 0.5), "a play not asked here must be refused")  # type: ignore[misc]
    for bad in (math.nan, math.inf, -math.inf):
        _refuses(ValueError, lambda it=bad: experiment.tell(play, it), "a reward must be finite")  # type: ignore[misc]
    _refuses(ValueError, lambda: experiment.tell(play, 0.5, cost=-1.0), "a cost must not be negative")
    _require(experiment.spent == 0, "a refused result must change nothing")
    experiment.tell(play, 0.5)


def _keeps_to_the_capital(make: MakeExperiment) -> None:
    experiment = make(MFUCB(), _ARMS, _FIDELITIES, 3.0)
    plays = experiment.ask(10)
    _require(len(plays) == 3, "ask(n) must return the plays that fit into the capital")
    _refuses(CapitalExhausted, experiment.ask, "a pending play must reserve its cost")
    experiment.fail(plays[0])
    experiment.tell(plays[1], 0.5, cost=0.5)
    experiment.tell(experiment.ask(), 0.5)
    _require(experiment.spent == 1.5, "a result must be settled at its real cost")
    _refuses(ValueError, lambda: make(MFUCB(), _ARMS, _FIDELITIES, 0.5), "capital must pay for one play")


def _forgets_failed_plays(make: MakeExperiment) -> None:
    experiment, untouched = (make(MFUCB(), _ARMS, _FIDELITIES, None) for _ in range(2))
    play = experiment.ask()
    experiment.fail(play)
    experiment.fail(play)
    _refuses(Conflict, lambda: experiment.tell(play, 0.5), "a result after a failure must be a Conflict")
    nexts = [(play.arm, play.fidelity) for play in (experiment.ask(), untouched.ask())]
    _require(nexts[0] == nexts[1], "a failed play must leave no trace in the statistics")


def _sets_failing_arms_aside(make: MakeExperiment) -> None:
    experiment = make(MFUCB(), _ARMS, _FIDELITIES, None)
    for _ in range(3):
        experiment.fail(experiment.ask())
    _require(experiment.ask().arm == 1, "three failures of an arm in a row must set it aside")
    experiment.restore_arm(0)
    _require(experiment.ask().arm == 0, "an arm that was set aside must come back when restored")


def _lets_arms_come_and_go(make: MakeExperiment) -> None:
    experiment = make(MFUCB(), ["a"], _FIDELITIES, None)
    late = experiment.ask()
    _refuses(ValueError, lambda: experiment.retire_arm(0), "the last arm must not be retired")
    _require(experiment.add_arm("b") == 1, "a new arm must get the next index")
    experiment.retire_arm(0)
    play = experiment.ask()
    _require((play.arm, play.label) == (1, "b"), "a retired arm must not be asked for")
    experiment.tell(late, 9.0)
    experiment.tell(play, 0.5)
    _require(experiment.best() == 1, "a retired arm must not be recommended")


def _recommends_only_from_results(make: MakeExperiment) -> None:
    experiment = make(MFUCB(), _ARMS, _FIDELITIES, None)
    _refuses(NoResults, experiment.best, "best must raise NoResults before any result")
    play = experiment.ask()
    experiment.tell(play, 0.5)
    _require(experiment.best() == play.arm, "best must be an arm with a result")
