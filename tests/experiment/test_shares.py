"""Shares of plays at the highest fidelity, in every kind of experiment: under asks, tells, failures and expiries."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mfbandit as mfb
from mfbandit.experiment import Asked, Expired, Failed, SharesSet, Told
from tests.support.effort import examples
from tests.support.services import served

FID = mfb.Fidelities([1, 10], [0.1, 0], mfb.SubGaussian(0.2))
ALONE = mfb.Fidelities([1], concentration=mfb.SubGaussian(0.2))
ARMS = ["a", "b", "c"]
MEANS = {"a": 0.2, "b": 0.8, "c": 0.4}


@pytest.fixture(params=["memory", "store", "service"])
def make(request, tmp_path):
    """Makes an experiment of each kind."""
    if request.param == "memory":
        yield lambda fidelities=ALONE, **more: mfb.Experiment(mfb.UCB(), arms=ARMS, fidelities=fidelities, **more)
    elif request.param == "store":
        with mfb.Store(tmp_path / "a.db") as store:
            yield lambda fidelities=ALONE, **more: store.create(
                "ads", mfb.UCB(), arms=ARMS, fidelities=fidelities, **more
            )
    else:
        with served(tmp_path / "a.db") as service, mfb.connect(service.url) as store:
            yield lambda fidelities=ALONE, **more: store.create(
                "ads", mfb.UCB(), arms=ARMS, fidelities=fidelities, **more
            )


class Model:
    """What each arm is owed by the events of a log, in exact fractions."""

    def __init__(self, shares: dict[int, Fraction]) -> None:
        self.shares, self.owed = shares, dict.fromkeys(shares, Fraction(0))
        self.arms: dict[int, int] = {}
        self.expired: set[int] = set()
        self.given: list[int] = []

    def add(self, event, top: int) -> None:
        match event:
            case Asked(play, arm, fidelity) if fidelity == top:
                self.arms[play] = arm
                before = {one: owed + self.shares[one] for one, owed in self.owed.items()}
                self.owed = {one: max(Fraction(0), owed - (one == arm)) for one, owed in before.items()}
                late = [one for one, owed in self.owed.items() if owed >= 1]
                assert not late or before.get(arm, 0) >= 1, f"{arm} got the play, {late} should have"
                self.given.append(play)
            case Failed(play) | Expired(play) if play in self.arms:
                if play in self.expired:
                    self.expired.discard(play)
                else:
                    if self.arms[play] in self.owed:
                        self.owed[self.arms[play]] += 1
                    self.given.remove(play)
                    if isinstance(event, Expired):
                        self.expired.add(play)
            case Told(play) if play in self.expired:
                self.expired.discard(play)
                self.given = sorted([*self.given, play])


def any_shares(draw) -> tuple[int | None, list[Fraction]]:
    """The control, and the share of each arm."""
    arms = draw(st.integers(1, 5))
    control = draw(st.sampled_from([None, arms - 1]))
    first = draw(st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(1, 3), Fraction(1, 2)]))
    least = draw(st.sampled_from([Fraction(0), Fraction(1, 100), Fraction(1, 8), Fraction(1, 2 * arms)]))
    first = Fraction(0) if control is None else max(first, least)
    least = least if first + (arms - (control is not None)) * least <= 1 else Fraction(0)
    return control, [first if arm == control else least for arm in range(arms)]


def disturbed(data, exp: mfb.Experiment) -> mfb.Experiment:
    """Asks, tells, failures, expiries, late results and copies, in any order."""
    rng, expired = np.random.default_rng(data.draw(st.integers(0, 99))), list[mfb.Play]()
    for _ in range(data.draw(st.integers(0, 40))):
        verb = data.draw(st.sampled_from(["ask", "ask", "tell", "tell", "fail", "expire", "late", "json"]))
        if exp.set_aside:  # then its share begins anew once it is restored
            break
        if verb == "ask":
            exp.ask(data.draw(st.integers(1, 8)))
        elif verb == "late" and expired:
            exp.tell(expired.pop(), 0.5)
        elif verb == "json":
            exp = mfb.Experiment.from_json(exp.to_json())
        elif verb in ("tell", "fail", "expire") and exp.pending:
            play = data.draw(st.sampled_from(exp.pending))
            if verb == "tell":
                exp.tell(play, rng.normal(0.2 * play.arm, 0.2))
            elif verb == "fail":
                exp.fail(play)
            else:
                exp.expire(exp.number(play))
                expired.append(play)
    return exp


@given(st.data())
@settings(max_examples=examples(120))
def test_shares_hold_under_random_asks_tells_failures_and_expiries(data):
    control, shares = any_shares(data.draw)
    policy = data.draw(st.sampled_from([mfb.UCB(rho=0.2), mfb.MFUCB(rho=0.2)]))
    fidelities = data.draw(st.sampled_from([ALONE, FID]))
    top, first = len(fidelities) - 1, 0.0 if control is None else float(shares[control])
    least = float(shares[0]) if len(shares) > 1 or control is None else 0.0
    exp = mfb.Experiment(
        policy, arms=len(shares), fidelities=fidelities, control=control, control_share=first, least_share=least
    )
    exp, model = disturbed(data, exp), Model({arm: share for arm, share in enumerate(shares) if share})
    for event in exp.log:
        model.add(event, top)
    rebuilt = mfb.Experiment.from_json(exp.to_json())
    if exp.set_aside:
        return
    for _ in range(200):  # what was lost is made up for
        if all(owed < 1 for owed in model.owed.values()):
            break
        number = len(exp.log)
        exp.tell(exp.ask(), 0.0)
        for event in exp.log[number:]:
            model.add(event, top)
        rebuilt.tell(rebuilt.ask(), 0.0)
    assert sum(shares) == 1 or max(model.owed.values(), default=0) < 1
    for arm, owed in model.owed.items():  # so that every stretch up to now has its share of the plays that are left
        missing = Fraction(0)
        for play in reversed(model.given):
            missing += shares[arm] - (model.arms[play] == arm)
            assert missing <= owed
    assert [play.arm for play in rebuilt.ask(20)] == [play.arm for play in exp.ask(20)]


class TestEverywhere:
    def test_a_control_keeps_its_share_with_many_workers(self, make):
        experiment = make(control="a", control_share=0.1)
        labels, pending = list[str](), experiment.ask(6)
        while len(labels) < 150:
            play = pending.pop(0)
            experiment.tell(play, MEANS[play.label])
            labels.append(play.label)
            pending += experiment.ask(1)
        assert all(labels[start : start + 10].count("a") >= 1 for start in range(140))
        assert experiment.best() == 1

    def test_the_lift_is_the_difference_to_the_control(self, make):
        experiment = make(control="a", control_share=0.1)
        assert experiment.lift() is None
        experiment.add_results([(arm, 0, mean, None) for arm, mean in MEANS.items() for _ in range(30)])
        lift, found = experiment.lift(), experiment.difference("b", "a")
        assert (lift.label, lift.control_label, lift.low, lift.high) == ("b", "a", found.low, found.high)
        assert lift.estimate == pytest.approx(0.6)
        assert lift.relative == (found.low / lift.control_mean, found.high / lift.control_mean)
        assert experiment.lift(0.5).low > lift.low
        status = experiment.status()
        assert status["shares"] == {"control": 0, "control_share": 0.1, "least_share": 0.0}
        assert (status["control_label"], status["lift"]["sentence"]) == ("a", lift.sentence)

    def test_what_makes_no_sense_is_refused_and_changes_nothing(self, make):
        experiment = make(control="a", control_share=0.5, least_share=0.25)
        events = len(experiment.log)
        with pytest.raises(
            ValueError, match=r"shares must sum to at most 1, got 1.25: 0.5 for the control and 0.25 for"
        ):
            experiment.add_arm("d")
        with pytest.raises(ValueError, match="arm must not be the control to be retired, got 'a'; set_shares names"):
            experiment.retire_arm("a")
        for bad, words in (
            ({"control": "z"}, "control must be the name of an arm, got 'z'"),
            ({"control": 7}, "control must lie in 0 to 2, got 7"),
            ({"control_share": 0.5}, "control_share must come with a control, got 0.5 and none"),
            ({"least_share": 0.5}, "shares must sum to at most 1, got 1.5: 0.5 for each of 3 other arms"),
            ({"control": "a", "control_share": math.nan}, "control_share must be"),
            ({"control": "a", "control_share": -0.1}, "control_share must be 0, or 1e-06 to 1, got -0.1"),
        ):
            with pytest.raises(ValueError, match=words):
                experiment.set_shares(**bad)
        assert (experiment.shares, len(experiment.log)) == (mfb.Shares(0, 0.5, 0.25), events)
        experiment.retire_arm("c")
        experiment.add_arm("d")
        with pytest.raises(ValueError, match=r"shares must sum to at most 1, got 1.25"):
            experiment.restore_arm("c")
        assert experiment.retired == (2,)


class TestOnDisk:
    def test_plays_are_the_same_after_a_restart(self, tmp_path):
        plain = mfb.Experiment(mfb.UCB(), arms=ARMS, fidelities=ALONE, control="c", control_share=0.3)
        for part in range(4):
            with mfb.Store(tmp_path / "a.db") as store:
                if part == 0:
                    store.create("ads", mfb.UCB(), arms=ARMS, fidelities=ALONE, control="c", control_share=0.3)
                stored = store.open("ads")
                for _ in range(7):
                    for ours, right in zip(stored.ask(3), plain.ask(3), strict=True):
                        assert ours.arm == right.arm
                        if right.arm == 2:
                            stored.fail(ours)
                            plain.fail(right)
                            plain.restore_arm(2) if plain.set_aside else None
                            stored.restore_arm(2) if stored.set_aside else None
                        else:
                            stored.tell(ours, MEANS[right.label])
                            plain.tell(right, MEANS[right.label])
                if part == 1:
                    stored.set_shares(control="a", control_share=0.2, least_share=0.1, request_key="k")
                    plain.set_shares(control="a", control_share=0.2, least_share=0.1)
                if part > 1:
                    stored.set_shares(control="a", control_share=0.2, least_share=0.1, request_key="k")
                    with pytest.raises(mfb.Conflict):
                        stored.set_shares(control="a", control_share=0.3, request_key="k")
                assert stored.shares == plain.shares

    def test_expired_leases_are_owed_again(self, tmp_path):
        now = [1000.0]
        with mfb.Store(tmp_path / "a.db", clock=lambda: now[0]) as store:
            experiment = store.create(
                "ads", mfb.UCB(), arms=ARMS, fidelities=ALONE, control="a", control_share=0.5, lease=60
            )
            assert [play.label for play in experiment.ask(4)].count("a") >= 2
            now[0] += 100
            assert [play.label for play in experiment.ask(4)].count("a") >= 2

    def test_json_without_shares_is_as_it_was(self):
        plain = mfb.Experiment(mfb.UCB(), arms=ARMS, fidelities=ALONE)
        assert "shares" not in json.loads(plain.to_json())


def test_results_from_elsewhere_are_no_part_of_any_share():
    exp = mfb.Experiment(mfb.UCB(), arms=ARMS, fidelities=ALONE, control="a", control_share=0.1)
    exp.add_results([("b", 0, 0.8, None)] * 500 + [("c", 0, 0.1, None)] * 5 + [("a", 0, 0.1, None)] * 5)
    assert isinstance(exp.log[-1], SharesSet)
    assert [play.label for play in exp.ask(20)].count("a") == 2


def test_choices_at_lower_fidelities_are_the_policys():
    free = mfb.Experiment(mfb.MFUCB(), arms=ARMS, fidelities=FID)
    bound = mfb.Experiment(mfb.MFUCB(), arms=ARMS, fidelities=FID, control="c", control_share=0.5)
    for _ in range(3):
        one, other = free.ask(), bound.ask()
        assert (one.arm, one.fidelity, one.fidelity) == (other.arm, other.fidelity, 0)
        free.tell(one, MEANS[one.label])
        bound.tell(other, MEANS[other.label])


def test_a_rate_is_said_in_percentage_points():
    exp = mfb.Experiment(
        mfb.UCB(), arms=["a", "b"], fidelities=mfb.Fidelities([1], concentration=mfb.Rate()), control=0
    )
    exp.add_results([("a", 0, mfb.Counts(400, 10_000), None), ("b", 0, mfb.Counts(200, 10_000), None)])
    assert str(exp.lift()).startswith("b is below the control a by 0.764 to 3.28 percentage points (observed -2), ")
    assert "19 % to 82 % of its observed rate, at 95 %" in str(exp.lift())
    exp.set_shares(control=1)
    assert str(exp.lift()).startswith("a is above the control b by 0.764 to 3.28 percentage points (observed 2), ")


def test_a_lift_that_may_be_either_way():
    fid = mfb.Fidelities([1], concentration=mfb.Rate())
    exp = mfb.Experiment(mfb.UCB(), arms=["a", "b"], fidelities=fid, control="a")
    exp.add_results([("a", 0, mfb.Counts(35, 1000), None), ("b", 0, mfb.Counts(40, 1000), None)])
    assert str(exp.lift()).startswith("b minus the control a is -")


def test_the_lift_without_known_noise_is_an_estimate_or_withheld():
    exp = mfb.Experiment(mfb.MFBayes(), arms=["a", "b"], fidelities=mfb.Fidelities([1]), control="a")
    exp.add_results([("a", 0, 0.1, None), ("b", 0, 0.5, None)])
    assert str(exp.lift()).startswith("b against the control a: nothing can be said, as the noise is not known")
    rng = np.random.default_rng(0)
    exp.add_results([(arm, 0, float(rng.normal(arm, 0.1)), None) for arm in (0, 1) for _ in range(30)])
    lift = exp.lift()
    assert lift is not None
    assert lift.kind == "estimate"
    assert "an estimate: the scale of the noise is learned" in str(exp.lift())
