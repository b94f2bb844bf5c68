"""What the rules for experiments are checked with: arms, fidelities, rewards, and the experiment in memory."""

import math
from collections.abc import Callable
from typing import TypeAlias

from mfbandit.core import Fidelities, Play, SubGaussian
from mfbandit.experiment import AnyExperiment, Experiment
from mfbandit.policies import MFUCB, Policy
from mfbandit.testing.contract import require

MakeExperiment: TypeAlias = Callable[[Policy, list[str], Fidelities, float | None], AnyExperiment]
"""Makes a new experiment from a policy, names of arms, fidelities and capital."""

FIDELITIES = Fidelities(costs=[1, 5, 25], biases=[0.3, 0.1, 0], concentration=SubGaussian(0.2))
ARMS = ["a", "b", "c", "d"]


def make_usual(make: MakeExperiment, capital: float | None = None) -> AnyExperiment:
    """Make an experiment of MF-UCB with four arms and three fidelities."""
    return make(MFUCB(), ARMS, FIDELITIES, capital)


def make_both(make: MakeExperiment, policy: Policy | None = None) -> tuple[AnyExperiment, Experiment]:
    """Make an experiment of the kind that is checked, and the same one in memory, which says what is right."""
    rule = policy or MFUCB()
    return make(rule, ARMS, FIDELITIES, None), Experiment(rule, arms=ARMS, fidelities=FIDELITIES)


def reward_of(play: Play, i: int) -> float:
    """Return a reward that depends on nothing but the play and how many came before it; ties are common."""
    return round(0.2 * play.arm + 0.1 * math.sin(7.0 * i + play.fidelity), 1)


def choice(play: Play) -> tuple[int, int, str]:
    """Return what a policy chose."""
    return play.arm, play.fidelity, play.label


def require_same_plays(ours: AnyExperiment, right: Experiment, plays: int, when: str) -> None:
    """Require that the next plays, told one after the other, are those of the experiment in memory."""
    for i in range(plays):
        play, expected = ours.ask(), right.ask()
        require(choice(play) == choice(expected), f"{when}, play {i} must be {choice(expected)}, got {choice(play)}")
        ours.tell(play, reward_of(play, i))
        right.tell(expected, reward_of(expected, i))
