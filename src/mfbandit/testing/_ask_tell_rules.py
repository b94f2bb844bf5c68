"""Rules for asking, telling and failing."""

import math
from functools import partial

from mfbandit.core import Play
from mfbandit.errors import CapitalExhausted, Conflict, InvalidArgument, NoResults, UnknownPlay
from mfbandit.experiment import AnyExperiment, Result
from mfbandit.policies import MFUCB, UCB
from mfbandit.testing._contract_examples import (
    ARMS,
    FIDELITIES,
    MakeExperiment,
    choice,
    make_both,
    make_usual,
    reward_of,
)
from mfbandit.testing.contract import require, require_equal, require_error


def plays_are_the_policys(make: MakeExperiment) -> None:
    """One play at a time, the plays are those that the policy chooses."""
    for policy in (UCB(), MFUCB()):
        ours, right = make_both(make, policy)
        for i in range(60):
            play, expected = ours.ask(), right.ask()
            seen, due = choice(play), choice(expected)
            require(seen == due, f"play {i} of {policy} must be {due}, got {seen}")
            ours.tell(play, reward_of(play, i))
            right.tell(expected, reward_of(expected, i))
        require(math.isclose(ours.spent, right.spent), f"spent must be {right.spent}, got {ours.spent}")
        require_equal("best", ours.best(), right.best())


def plays_ahead_are_the_policys(make: MakeExperiment) -> None:
    """Two plays ahead of every result, told from the middle, some failed; arms come, go and are set aside."""
    ours, right = make_both(make, MFUCB(rho=0.5))
    waiting: list[tuple[Play, Play]] = []
    for i in range(60):
        waiting += zip(ours.ask(2), right.ask(2), strict=True)
        for play, expected in waiting[-2:]:
            seen, due = choice(play), choice(expected)
            require(seen == due, f"with plays pending, play {i} of the policy must be {due}, got {seen}")
        play, expected = waiting.pop(len(waiting) // 2)
        # Rewards differ by powers of two: no two results can be mistaken for one another, and sums are exact.
        reward = (play.arm + 1) / 4 + 2.0 ** -(2 + i % 20)
        _settle(ours, play, i, reward)
        _settle(right, expected, i, reward)
    require_equal("spent", ours.spent, right.spent)
    require_equal("best", ours.best(), right.best())


def _settle(experiment: AnyExperiment, play: Play, i: int, reward: float) -> None:
    if i % 9 == 4 or i in (1, 2, 3):
        experiment.fail(play)
    else:
        experiment.tell(play, reward)
    if i == 20:
        experiment.add_arm("late")
    if i == 40:
        experiment.retire_arm(0)


def results_come_in_any_order(make: MakeExperiment) -> None:
    """The order of telling does not matter."""
    forward, backward = (make_usual(make) for _ in range(2))
    ahead, behind = forward.ask(8), backward.ask(8)
    require(len({play.arm for play in ahead[: len(ARMS)]}) == len(ARMS), "the first plays must be of different arms")
    for play in ahead:
        forward.tell(play, 0.5)
    for play in reversed(behind):
        backward.tell(play, 0.5)
    require(choice(forward.ask()) == choice(backward.ask()), "the order of telling must not matter to the next play")


def results_count_once(make: MakeExperiment) -> None:
    """The same result again changes nothing; another one is a conflict."""
    experiment = make_usual(make)
    play = experiment.ask()
    experiment.tell(play, 0.5)
    experiment.tell(play.id, 0.5)
    require(experiment.spent == play.cost, "the same result told twice must count once")
    require_error(Conflict, lambda: experiment.tell(play, 0.6), "another result for the same play must be a Conflict")
    require_error(Conflict, lambda: experiment.fail(play), "failing a play that has a result must be a Conflict")
    require(experiment.spent == play.cost, "a refused result must change nothing")


def bad_results_are_refused(make: MakeExperiment) -> None:
    """Plays of others, rewards that are not finite and negative costs are refused."""
    experiment, other = (make_usual(make) for _ in range(2))
    play, foreign = experiment.ask(), other.ask()
    for unknown in (foreign, Play("no-such-play", 0, 0, 1.0, "a")):
        require_error(UnknownPlay, partial(experiment.tell, unknown, 0.5), "a play not asked here must be refused")
    for bad in (math.nan, math.inf, -math.inf):
        require_error(InvalidArgument, partial(experiment.tell, play, bad), "a reward must be finite")
    require_error(InvalidArgument, lambda: experiment.tell(play, 0.5, cost=-1.0), "a cost must not be negative")
    require(experiment.spent == 0, "a refused result must change nothing")
    experiment.tell(play, 0.5)


def many_results_are_told_or_none(make: MakeExperiment) -> None:
    """If one of many results is refused, none is kept."""
    experiment, other = (make_usual(make) for _ in range(2))
    settled, first, second = experiment.ask(3)
    experiment.tell(settled, 0.5)
    rule = "tell_many must keep no result if one is refused"
    refused: list[tuple[type[Exception], Result]] = [
        (InvalidArgument, (second, math.nan, None)),
        (InvalidArgument, (second, 0.5, -1.0)),
        (UnknownPlay, (other.ask(), 0.5, None)),
        (Conflict, (settled, 0.6, None)),
        (Conflict, (first, 0.6, None)),
    ]
    for error, bad in refused:
        require_error(error, partial(experiment.tell_many, [(first, 0.5, None), bad]), rule)
        require([play.id for play in experiment.pending] == [first.id, second.id], rule)
    experiment.tell_many([(first, 0.5, None), (settled, 0.5, None), (second.id, 0.7, 0.25)])
    require_equal("spent after tell_many", experiment.spent, 2.25)
    require_equal("pending after tell_many", experiment.pending, ())


def many_plays_are_failed_or_none(make: MakeExperiment) -> None:
    """If the failure of one of many plays is refused, none is failed."""
    experiment, other = (make_usual(make) for _ in range(2))
    settled, first, second = experiment.ask(3)
    experiment.tell(settled, 0.5)
    rule = "fail_many must fail no play if one is refused"
    require_error(Conflict, lambda: experiment.fail_many([first, settled]), rule)
    require_error(UnknownPlay, lambda: experiment.fail_many([first, other.ask()]), rule)
    require([play.id for play in experiment.pending] == [first.id, second.id], rule)
    experiment.fail_many([first, second.id], cost=0.5)
    require_equal("spent after fail_many", experiment.spent, 2.0)
    require_equal("pending after fail_many", experiment.pending, ())


def capital_is_kept_to(make: MakeExperiment) -> None:
    """A pending play reserves its cost; a settled one costs what it really cost."""
    experiment = make_usual(make, 3.0)
    plays = experiment.ask(10)
    require(len(plays) == 3, "ask(n) must return the plays that fit into the capital")
    require_error(CapitalExhausted, experiment.ask, "a pending play must reserve its cost")
    experiment.fail(plays[0])
    experiment.tell(plays[1], 0.5, cost=0.5)
    experiment.tell(experiment.ask(), 0.5)
    require(experiment.spent == 1.5, "a result must be settled at its real cost")
    require_equal("the number of plays() that still fit", len(list(experiment.plays())), 0)
    require_error(InvalidArgument, lambda: make(MFUCB(), ARMS, FIDELITIES, 0.5), "capital must pay for one play")


def failed_plays_leave_no_trace(make: MakeExperiment) -> None:
    """A failed play counts for nothing, and takes no result any more."""
    experiment, untouched = (make_usual(make) for _ in range(2))
    play = experiment.ask()
    experiment.fail(play)
    experiment.fail(play)
    require_error(Conflict, lambda: experiment.tell(play, 0.5), "a result after a failure must be a Conflict")
    require(choice(experiment.ask()) == choice(untouched.ask()), "a failed play must leave no trace in the statistics")


def best_needs_a_result(make: MakeExperiment) -> None:
    """Only an arm with a result is recommended."""
    experiment = make_usual(make)
    require_error(NoResults, experiment.best, "best must raise NoResults before any result")
    play = experiment.ask()
    experiment.tell(play, 0.5)
    require(experiment.best() == play.arm, "best must be an arm with a result")


def renewal_is_for_pending_plays(make: MakeExperiment) -> None:
    """A pending play can be renewed, a settled one is a conflict."""
    experiment, other = (make_usual(make) for _ in range(2))
    settled, first, second = experiment.ask(3)
    experiment.tell(settled, 0.5)
    due = experiment.renew(first)
    rule = "renew must return when the lease ends, or None where plays have no leases"
    require(due is None if experiment.lease is None else isinstance(due, float), rule)
    renewed = experiment.renew_many([first, second.id])
    require_equal("the plays that renew_many answers for", set(renewed), {first.id, second.id})
    require_error(Conflict, lambda: experiment.renew(settled), "renewing a settled play must be a Conflict")
    require_error(Conflict, lambda: experiment.renew_many([first, settled]), "renew_many must be all or none")
    require_error(UnknownPlay, lambda: experiment.renew(other.ask()), "a play not asked here must not be renewed")
    experiment.tell(first, 0.5)


def keys_and_leases_are_for_shared_ones(make: MakeExperiment) -> None:
    """Where others can use an experiment, a request key gives the same plays again and plays can have leases."""
    experiment = make_usual(make)
    require(experiment.shared or not experiment.remote, "others must be able to use an experiment at a service")
    if not experiment.shared:
        rule = "an experiment that nobody else can use must refuse request keys and leases"
        require_error(InvalidArgument, lambda: experiment.ask(2, request_key="key-1"), rule)
        require_error(InvalidArgument, lambda: experiment.ask(2, lease=60.0), rule)
        return
    plays = experiment.ask(2, request_key="key-1", lease=60.0)
    again = experiment.ask(2, request_key="key-1", lease=60.0)
    require([play.id for play in again] == [play.id for play in plays], "the same request key must give the same plays")
    require_equal("the number of pending plays", len(experiment.pending), 2)
    require(isinstance(experiment.renew(plays[0], 60.0), float), "the lease of a play must end at some time")


def a_hurried_one_is_the_same(make: MakeExperiment) -> None:
    """An experiment for a caller in a hurry is the same experiment."""
    experiment = make_usual(make)
    hurried = experiment.with_patience(5.0)
    hurried.tell(hurried.ask(), 0.5)
    require(experiment.spent == hurried.spent == 1.0, "with_patience must give the same experiment")
    require_error(InvalidArgument, lambda: experiment.with_patience(0.0), "patience must be positive")
