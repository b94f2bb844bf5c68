"""Rules for what changes an experiment while it goes on: arms, pauses, capital, policy and biases."""

from functools import partial

from mfbandit.core import Fidelities
from mfbandit.errors import CapitalExhausted, ExperimentDecided, ExperimentPaused, InvalidArgument, NoActiveArms
from mfbandit.experiment import PastResult, Sure
from mfbandit.policies import MFUCB, UCB
from mfbandit.testing._contract_examples import (
    ARMS,
    FIDELITIES,
    MakeExperiment,
    make_both,
    make_usual,
    require_same_plays,
)
from mfbandit.testing.contract import require, require_equal, require_error


def failing_arms_are_set_aside(make: MakeExperiment) -> None:
    """Three failures of an arm in a row set it aside until it is restored."""
    experiment = make_usual(make)
    for _ in range(3):
        experiment.fail(experiment.ask())
    require(experiment.ask().arm == 1, "three failures of an arm in a row must set it aside")
    require_equal("set_aside", experiment.set_aside, (0,))
    experiment.restore_arm(0)
    require(experiment.ask().arm == 0, "an arm that was set aside must come back when restored")
    require_equal("set_aside after restore_arm", experiment.set_aside, ())
    require_error(InvalidArgument, lambda: experiment.restore_arm("b"), "only an arm set aside must be restored")


def a_result_brings_an_arm_back(make: MakeExperiment) -> None:
    """A result of an arm that was set aside lets it take part again."""
    experiment = make(MFUCB(), ["a"], FIDELITIES, None)
    *failed, pending = experiment.ask(4)
    experiment.fail_many(failed)
    require_equal("set_aside after three failures", experiment.set_aside, (0,))
    warned = any("a was set aside" in text for text in experiment.status()["warnings"])
    require(warned, "status must warn of an arm that is set aside")
    experiment.tell(pending, 0.5)
    require_equal("set_aside after a result", experiment.set_aside, ())


def arms_come_and_go(make: MakeExperiment) -> None:
    """A new arm has the next index; a retired one keeps its own and takes late results."""
    experiment = make(MFUCB(), ["a"], FIDELITIES, None)
    late = experiment.ask()
    require_error(InvalidArgument, lambda: experiment.retire_arm(0), "the last arm must not be retired")
    require(experiment.add_arm("b") == 1, "a new arm must get the next index")
    require_error(InvalidArgument, lambda: experiment.add_arm("b"), "two arms must not have the same name")
    experiment.retire_arm("a")
    experiment.retire_arm(0)
    require_equal("retired", experiment.retired, (0,))
    require_equal("arms", tuple(experiment.arms), ("a", "b"))
    play = experiment.ask()
    require((play.arm, play.label) == (1, "b"), "a retired arm must not be asked for")
    experiment.tell(late, 9.0)
    experiment.tell(play, 0.5)
    require(experiment.best() == 1, "a retired arm must not be recommended")
    experiment.restore_arm("a")
    require_equal("retired after restore_arm", experiment.retired, ())
    require(experiment.best() == 0, "a retired arm must come back when restored")


def state_is_what_ask_does(make: MakeExperiment) -> None:
    """The state says whether ask gives a play, and if not, why."""
    experiment = make(MFUCB(), ["a"], FIDELITIES, 1.0)
    require_equal("state", experiment.state, "running")
    play = experiment.ask()
    require_equal("state of a spent capital", experiment.state, "exhausted")
    require_error(CapitalExhausted, experiment.ask, "ask must raise CapitalExhausted when the capital is spent")
    experiment.fail(play)
    require_equal("state after a play has failed", experiment.state, "running")
    for _ in range(2):
        experiment.fail(experiment.ask())
    require_equal("state with all arms set aside", experiment.state, "no active arms")
    require_error(NoActiveArms, experiment.ask, "ask must raise NoActiveArms when every arm is set aside")
    experiment.restore_arm("a")
    require_equal("state after restore_arm", experiment.state, "running")


def a_paused_one_hands_out_nothing(make: MakeExperiment) -> None:
    """A paused experiment hands out no plays and still takes results."""
    experiment = make_usual(make)
    first, second = experiment.ask(2)
    experiment.pause()
    experiment.pause()
    require(experiment.paused and experiment.state == "paused", "a paused experiment must say so")
    require_error(ExperimentPaused, experiment.ask, "a paused experiment must hand out no plays")
    experiment.tell(first, 0.5)
    experiment.fail(second)
    require(experiment.spent == 1.0, "a paused experiment must still take results")
    experiment.resume()
    experiment.resume()
    require(not experiment.paused and experiment.state == "running", "a resumed experiment must say so")
    experiment.tell(experiment.ask(), 0.5)


def a_decided_one_goes_on_only_if_told_to(make: MakeExperiment) -> None:
    """An experiment that is sure enough hands out no plays, still takes results, and stays decided until set_stop."""
    ours, right = make_both(make)
    require(ours.stop is None and ours.decided is None, "there must be no rule for stopping unless one is set")
    pending, expected = ours.ask(), right.ask()
    past: list[PastResult] = [(arm, 2, 0.5 if arm == "a" else 0.1, None) for arm in ARMS for _ in range(20)]
    for experiment in (ours, right):
        experiment.set_stop(Sure(0.95))
        experiment.add_results(past)
    require(right.decided is not None, "the experiment in memory must be decided by these results")
    require_equal("stop", ours.stop, Sure(0.95))
    require(ours.is_sure(Sure(0.95)) and not ours.is_sure(Sure(1 - 1e-15)), "is_sure must be by its own rule")
    require_equal("decided", ours.decided, right.decided)
    require_equal("state of one that is decided", ours.state, "decided")
    require_error(ExperimentDecided, ours.ask, "ask must raise ExperimentDecided when the experiment is decided")
    ours.tell(pending, -9.0)
    right.tell(expected, -9.0)
    require_equal("decided after a late result", ours.decided, right.decided)
    for experiment in (ours, right):
        experiment.set_stop(None)
    require(ours.stop is None and ours.decided is None, "set_stop(None) must go on without a rule")
    require_same_plays(ours, right, 5, "after set_stop(None)")


def capital_can_change(make: MakeExperiment) -> None:
    """The capital can grow, shrink to what is committed, and become unlimited."""
    experiment = make_usual(make, 3.0)
    plays = experiment.ask(3)
    experiment.tell(plays[0], 0.5)
    rule = "capital must cover what is spent or reserved"
    require_error(InvalidArgument, lambda: experiment.set_capital(2.0), rule)
    require_equal("capital after a refused change", experiment.capital, 3.0)
    experiment.set_capital(5)
    require_equal("capital", experiment.capital, 5.0)
    require(len(experiment.ask(10)) == 2, "a larger capital must pay for more plays")
    experiment.set_capital(None)
    require(experiment.capital is None, "capital must become unlimited with None")
    require_equal("the number of plays without a limit", len(experiment.ask(10)), 10)


def policy_can_change(make: MakeExperiment) -> None:
    """Another policy goes on with all that was learned."""
    ours, right = make_both(make)
    require_same_plays(ours, right, 10, "before another policy is set")
    for experiment in (ours, right):
        experiment.set_policy(UCB(rho=0.3))
    require_equal("policy", ours.policy, UCB(rho=0.3))
    require_same_plays(ours, right, 10, "with another policy")


def biases_can_change(make: MakeExperiment) -> None:
    """Other biases are assumed from then on; what makes no sense is refused."""
    ours, right = make_both(make)
    require_same_plays(ours, right, 10, "before other biases are set")
    rule = "biases must decrease to 0, one for each fidelity"
    for bad in ([0.1, 0.3, 0.0], [0.3, 0.0]):
        require_error(InvalidArgument, partial(ours.set_biases, bad), rule)
    require_equal("fidelities after a refused change", ours.fidelities, FIDELITIES)
    for experiment in (ours, right):
        experiment.set_biases([0.05, 0.02, 0.0])
    expected = Fidelities(FIDELITIES.costs, [0.05, 0.02, 0.0], FIDELITIES.concentration)
    require_equal("fidelities", ours.fidelities, expected)
    require_same_plays(ours, right, 20, "with other biases")


def refuted_biases_put_the_best_arm_in_doubt(make: MakeExperiment) -> None:
    """A bias that results refute does not count for the best arm any more, which is said to be in doubt."""
    ours, right = make_both(make)
    past: list[PastResult] = [*[("a", 0, 0.9, None)] * 30, *[("a", 2, 0.1, None)] * 8, *[("b", 2, 0.3, None)] * 8]
    ours.add_results(past)
    right.add_results(past)
    require(bool(right.refuted) and right.best() == 1, "the experiment in memory must find this bias refuted")
    require_equal("best with a refuted bias", ours.best(), right.best())
    found, expected = ours.status(), right.status()
    for name in ("best", "doubt", "runner_up", "runner_up_label", "widen", "warnings"):
        require_equal(f"status: {name}", found.get(name), expected[name])
    require_equal("fidelities unless widen is on", ours.fidelities, FIDELITIES)
    require(not ours.widen, "biases must not be widened unless that is asked for")


def results_come_from_elsewhere(make: MakeExperiment) -> None:
    """Past results count as plays already made: all of them, or none if one is refused."""
    ours, right = make_both(make)
    past: list[PastResult] = [("a", 0, 0.25, None), (1, 2, 0.5, 0.0), ("c", 0, 0.5, 3)]
    rule = "add_results must keep no result if one is refused"
    for bad in (("a", 3, 0.5, None), ("nobody", 0, 0.5, None), ("a", 0, float("nan"), None)):
        require_error(InvalidArgument, partial(ours.add_results, [*past, bad]), rule)
        require(ours.spent == 0 and not ours.stats.counts.any(), rule)
    plays = ours.add_results(past)
    right.add_results(past)
    require_equal("the arms of past results", [play.arm for play in plays], [0, 1, 2])
    require_equal("spent after past results", ours.spent, right.spent)
    require_equal("results after add_results", ours.stats.counts.tolist(), right.stats.counts.tolist())
    require_same_plays(ours, right, 10, "after past results")
