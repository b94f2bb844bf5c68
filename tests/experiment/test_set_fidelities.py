"""An experiment whose fidelities are set later is in the state of one that began with them."""

import json
from dataclasses import dataclass, fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfbandit import (
    MFUCB,
    UCB,
    CapitalExhausted,
    Experiment,
    Fidelities,
    MFAda,
    MFBayes,
    MFTopTwo,
    NoActiveArms,
    SubGaussian,
)
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import fidelities_record
from mfbandit.experiment.events import BiasRefuted, FidelitiesSet, Opened
from tests.support.effort import examples

FIRST = Fidelities([1, 5, 25], [0.3, 0.1, 0], SubGaussian(1.0))
BETTER = Fidelities([2, 3, 30], [0.2, 0.05, 0], [SubGaussian(scale) for scale in (0.1, 0.2, 0.05)])
POLICIES = [UCB(), MFUCB(rho=0.2), MFAda(), MFBayes(), MFBayes(safeguard=0.2), MFTopTwo(600), MFTopTwo(100)]


def make_plays(experiment, steps, rng):
    """Ask ahead, tell, fail, and change which arms take part."""
    for step in steps:
        try:
            play = experiment.ask()
        except (CapitalExhausted, NoActiveArms):
            return
        if step == "fail":
            experiment.fail(play)
        elif step != "later":
            experiment.tell(play, round(0.2 * play.arm + rng.normal(scale=0.1), 3))
        if step == "add":
            experiment.add_arm(f"new {len(experiment.arms)}")
        elif step == "retire" and experiment.stats.active.sum() > 1:
            experiment.retire_arm(play.arm)
        elif step == "restore" and experiment.set_aside:
            experiment.restore_arm(experiment.set_aside[0])


def begun_better(experiment):
    """The same log in an experiment that began with the better fidelities."""
    record = json.loads(experiment.to_json())
    record["fidelities"] = fidelities_record(BETTER)
    record["log"] = [event for event in record["log"] if event["event"] != "FidelitiesSet"]
    return Experiment.from_json(json.dumps(record))


def made(play):
    """A play without its id, which copies give out anew."""
    return play.arm, play.fidelity, play.cost


def same(one, other):
    """Whether two statistics or two memories of a policy are equal, field by field and to the last bit."""
    if one is None or other is None:
        return one is other
    names = [field.name for field in fields(one) if field.name != "memory"]
    return type(one) is type(other) and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@given(
    policy=st.sampled_from(POLICIES),
    steps=st.lists(st.sampled_from(["tell"] * 6 + ["later", "fail", "fail", "add", "retire", "restore"]), max_size=60),
    more=st.integers(0, 8),
    seed=st.integers(0, 99),
)
@settings(max_examples=examples(150), deadline=None)
def test_it_is_the_state_of_an_experiment_that_began_with_them(policy, steps, more, seed):
    ours = Experiment(policy, arms=4, fidelities=FIRST)
    make_plays(ours, steps, np.random.default_rng(seed))
    ours.set_fidelities(BETTER)
    others = begun_better(ours), Experiment.from_json(ours.to_json())
    rngs = [np.random.default_rng(seed) for _ in (ours, *others)]
    for experiment, rng in zip((ours, *others), rngs, strict=True):
        make_plays(experiment, ["tell"] * more, rng)
    for other in others:
        assert other.fidelities == ours.fidelities == BETTER
        assert [event for event in other.log if not isinstance(event, FidelitiesSet | BiasRefuted | Opened)] == [
            event for event in ours.log if not isinstance(event, FidelitiesSet | BiasRefuted | Opened)
        ]
        assert same(other.stats, ours.stats)
        assert same(other.stats.memory, ours.stats.memory)
        assert other.spent == pytest.approx(ours.spent)
        assert other.reserved == ours.reserved
        assert [made(play) for play in other.pending] == [made(play) for play in ours.pending]


def test_what_was_paid_stays_paid():
    experiment = Experiment(UCB(), arms=2, fidelities=Fidelities([10], concentration=SubGaussian(1)), capital=100)
    done, pending = experiment.ask(2)
    experiment.tell(done, 0.5)
    experiment.set_fidelities(Fidelities([15], concentration=SubGaussian(1)))
    assert (experiment.spent, experiment.reserved) == (10, 15)
    experiment.tell(pending, 0.5)
    assert experiment.spent == 25


@dataclass(frozen=True)
class Own:
    """A concentration of one's own, with a field that JSON has no type for."""

    scales: tuple[float, ...] = (0.5, 1.0)
    nu = 1.0

    def psi(self, deviation):
        return deviation**2 / (2 * self.scales[0] ** 2)

    def psi_inv(self, rate):
        return self.scales[0] * (2 * rate) ** 0.5


class TestOwnConcentrations:
    def test_are_kept_and_found_again(self):
        fidelities = Fidelities([1, 10], [0.1, 0], [Own(), Own()])
        experiment = Experiment(MFUCB(), arms=2, fidelities=fidelities)
        experiment.set_fidelities(Fidelities([2, 10], [0.1, 0], [Own(), Own()]))
        again = Experiment.from_json(experiment.to_json(), fidelities=fidelities)
        assert again.fidelities == experiment.fidelities
        assert again.log == experiment.log

    def test_new_ones_are_refused(self):
        experiment = Experiment(MFUCB(), arms=2, fidelities=Fidelities([1, 10], [0.1, 0], [Own(), Own()]))
        with pytest.raises(InvalidArgument, match="concentration"):
            experiment.set_fidelities(Fidelities([1, 10], [0.1, 0], [Own((3.0,)), Own((3.0,))]))
        assert experiment.log == ()


@pytest.mark.parametrize("wrong", [None, 5, [1, 2]])
def test_what_is_no_fidelities(wrong):
    experiment = Experiment(MFUCB(), arms=2, fidelities=FIRST)
    with pytest.raises(InvalidArgument, match="fidelities must be a Fidelities, got"):
        experiment.set_fidelities(wrong)
