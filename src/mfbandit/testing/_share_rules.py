"""Rules for shares: which arms get at least so many of the plays at the highest fidelity, and the lift."""

from functools import partial

from mfbandit.core import Fidelities, SubGaussian
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import NO_SHARES, PastResult, Shares
from mfbandit.policies import UCB
from mfbandit.testing._contract_examples import ARMS, MakeExperiment, choice
from mfbandit.testing.contract import require, require_equal, require_error

TOP_ALONE = Fidelities([1], concentration=SubGaussian(0.2))
REWARDS = {"a": 0.1, "b": 0.9, "c": 0.2, "d": 0.3}


def shares_are_kept(make: MakeExperiment) -> None:
    """The control and every active arm get their shares of the plays; what makes no sense is refused."""
    experiment = make(UCB(rho=0.1), ARMS, TOP_ALONE, None)
    require_equal("shares unless they are set", experiment.shares, NO_SHARES)
    for bad in (
        {"control": "a", "control_share": 0.9, "least_share": 0.05},
        {"control": "nobody", "control_share": 0.1},
        {"control_share": 0.1},
        {"control": "a", "control_share": -0.1},
        {"least_share": 0.3},
    ):
        rule = f"shares must be refused: {bad}"
        require_error(InvalidArgument, partial(experiment.set_shares, **bad), rule)
    require_equal("shares after a refused change", experiment.shares, NO_SHARES)
    experiment.set_shares(control="a", control_share=0.25, least_share=0.05)
    require_equal("shares", experiment.shares, Shares(0, 0.25, 0.05))
    labels = []
    for _ in range(100):
        play = experiment.ask()
        experiment.tell(play, REWARDS[play.label])
        labels.append(play.label)
    for start in range(80):
        stretch = labels[start : start + 20]
        require(stretch.count("a") >= 5, "any 20 plays must have 5 of the control with a share of 0.25")
        require(all(label in stretch for label in "cd"), "any 20 plays must have one of an arm with a share of 0.05")
    require_error(InvalidArgument, lambda: experiment.retire_arm("a"), "the control must not be retired")
    experiment.set_shares()
    require_equal("shares that are taken back", experiment.shares, NO_SHARES)
    experiment.retire_arm("a")
    require_error(InvalidArgument, lambda: experiment.set_shares(control="a"), "a retired arm must not be the control")


def a_lost_play_is_owed_again(make: MakeExperiment) -> None:
    """A play of the control that fails is made up for at once, also with other plays pending."""
    experiment = make(UCB(rho=0.1), ARMS, TOP_ALONE, None)
    past: list[PastResult] = [(arm, 0, reward, None) for arm, reward in REWARDS.items()]
    experiment.add_results(past)
    experiment.set_shares(control="a", control_share=0.5)
    plays = experiment.ask(4)
    require_equal("plays of the control among four", [play.label for play in plays].count("a"), 2)
    experiment.fail(next(play for play in plays if play.label == "a"))
    require_equal("the play after one of the control has failed", choice(experiment.ask())[0], 0)


def the_control_is_compared_with(make: MakeExperiment) -> None:
    """The lift says by how much the best arm is above the control; the status has it."""
    experiment = make(UCB(), ARMS, TOP_ALONE, None)
    require(
        experiment.lift() is None and experiment.status()["lift"] is None, "there must be no lift without a control"
    )
    experiment.set_shares(control="d")
    past: list[PastResult] = [(arm, 0, reward, None) for arm, reward in REWARDS.items() for _ in range(30)]
    experiment.add_results(past)
    lift, expected = experiment.lift(), experiment.difference("b", "d")
    require(lift is not None, "there must be a lift with a control and results")
    if lift is not None:
        ends = lift.arm, lift.control, lift.low, lift.high
        require_equal("the lift of the best arm over the control", ends, (1, 3, expected.low, expected.high))
        said = experiment.status()["lift"]
        require_equal("the lift in the status", said and said["sentence"], lift.sentence)
    require_equal("the control in the status", experiment.status()["control_label"], "d")
