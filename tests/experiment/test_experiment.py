import json
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfbandit import (
    MFUCB,
    UCB,
    Bounded,
    CapitalExhausted,
    Conflict,
    Experiment,
    Fidelities,
    NoActiveArms,
    NoResults,
    Play,
    SubGaussian,
    UnknownPlay,
    check_experiment,
)
from mfbandit.experiment.events import ArmRestored, ArmSetAside, Opened
from tests.support.effort import examples
from tests.support.oracle import next_by_hand
from tests.support.problems import SubExponential
from tests.support.strategies import problems

FID = Fidelities([1, 10], [0.2, 0], SubGaussian(0.1))


def make(arms=3, capital=None, policy=None, fidelities=FID):
    return Experiment(policy or MFUCB(), arms=arms, fidelities=fidelities, capital=capital)


def test_keeps_the_contract():
    check_experiment(lambda policy, arms, fid, capital: Experiment(policy, arms=arms, fidelities=fid, capital=capital))


def test_keeps_the_contract_after_every_reload():
    class Forgetful:
        """Written to JSON and read again before each call."""

        def __init__(self, policy, arms, fid, capital):
            self._text = Experiment(policy, arms=arms, fidelities=fid, capital=capital).to_json()

        def __getattr__(self, name):
            if isinstance(getattr(Experiment, name), property):
                return getattr(Experiment.from_json(self._text), name)

            def call(*args, **kwargs):
                experiment = Experiment.from_json(self._text)
                try:
                    result = getattr(experiment, name)(*args, **kwargs)
                    return self if result is experiment else result
                finally:
                    self._text = experiment.to_json()

            return call

    check_experiment(Forgetful)


class TestAskingAhead:
    def test_64_asks_touch_64_arms(self):
        assert [play.arm for play in make(arms=100).ask(64)] == list(range(64))

    def test_more_asks_than_arms_share_evenly(self):
        counts = np.bincount([play.arm for play in make(arms=5).ask(20)])
        assert counts.tolist() == [4] * 5

    def test_one_slow_first_play_does_not_draw_the_other_workers(self):
        experiment = make(arms=4)
        slow, *quick = experiment.ask(4)
        for play in quick:
            experiment.tell(play, 0.1 * play.arm)
        for _ in range(50):
            play = experiment.ask()
            assert play.arm != slow.arm
            experiment.tell(play, 0.1 * play.arm)

    def test_asking_n_at_once_is_asking_n_times(self):
        one, many = make(arms=3), make(arms=3)
        for experiment in (one, many):
            for play in experiment.ask(3):
                experiment.tell(play, 0.3 * play.arm)
        singly = [one.ask() for _ in range(10)]
        assert [(p.arm, p.fidelity) for p in singly] == [(p.arm, p.fidelity) for p in many.ask(10)]

    def test_pending_plays_move_the_fidelity_rule_on(self):
        experiment = make(arms=1)
        fidelities = [play.fidelity for play in experiment.ask(300)]
        assert fidelities[0] == 0
        assert fidelities[-1] == 1

    @settings(max_examples=examples(25))
    @given(problems(max_arms=6, max_fidelities=3), st.integers(0, 2**32), st.sampled_from([UCB, MFUCB]))
    def test_capital_is_never_overspent_by_asks(self, problem, seed, kind):
        rng = np.random.default_rng(seed)
        capital = float(problem.fidelities.costs[-1] * rng.uniform(1, 40))
        experiment = make(problem.arms, capital, kind(), problem.fidelities)
        waiting: list[Play] = []
        for _ in range(200):
            assert experiment.spent + experiment.reserved <= capital * (1 + 1e-9)
            try:
                waiting += experiment.ask(int(rng.integers(1, 5)))
            except CapitalExhausted:
                if not waiting:
                    break
            except NoActiveArms:
                experiment.restore_arm(experiment.set_aside[0])
            for _ in range(int(rng.integers(0, 5))):
                if waiting:
                    play = waiting.pop(int(rng.integers(len(waiting))))
                    if rng.random() < 0.2:
                        experiment.fail(play)
                    else:
                        experiment.tell(play, float(np.clip(problem.draw(play.arm, play.fidelity, rng), -1, 2)))
        assert experiment.pending == tuple(sorted(waiting, key=lambda play: int(play.id.split("-")[1])))


class TestOrderOfTelling:
    @settings(max_examples=examples(25))
    @given(problems(max_arms=8, max_fidelities=3), st.integers(0, 2**32))
    def test_any_order_gives_the_same_statistics(self, problem, seed):
        rng = np.random.default_rng(seed)
        experiments = [make(problem.arms, None, MFUCB(), problem.fidelities) for _ in range(2)]
        plays = [experiment.ask(20) for experiment in experiments]
        # Rewards whose sums are exact in any order, so that nothing but the order differs.
        rewards = rng.integers(0, 5, 20) / 4
        for i in range(20):
            experiments[0].tell(plays[0][i], float(rewards[i]))
        for i in rng.permutation(20).tolist():
            experiments[1].tell(plays[1][i], float(rewards[i]))
        ahead = [[(play.arm, play.fidelity) for play in experiment.ask(10)] for experiment in experiments]
        assert ahead[0] == ahead[1]
        assert experiments[0].spent == experiments[1].spent

    def test_results_by_id(self):
        experiment = make()
        experiment.tell(experiment.ask().id, 0.5)
        assert experiment.stats.sums[0, 0] == 0.5


class TestResume:
    @settings(max_examples=examples(25))
    @given(problems(max_arms=8, max_fidelities=3), st.integers(0, 2**32), st.integers(0, 60))
    def test_stopping_anywhere_changes_no_later_play(self, problem, seed, stop):
        def run(stopping):
            rng = np.random.default_rng(seed)
            experiment = make(problem.arms, None, MFUCB(), problem.fidelities)
            waiting: list[Play] = []
            seen = []
            for i in range(60):
                if stopping and i == stop:
                    experiment = Experiment.from_json(experiment.to_json())
                waiting += experiment.ask(int(rng.integers(1, 3)))
                seen += [(play.arm, play.fidelity) for play in waiting[-2:]]
                play = waiting.pop(int(rng.integers(len(waiting))))
                reward = float(rng.random())
                if rng.random() < 0.1:
                    experiment.fail(play, cost=0.5)
                else:
                    experiment.tell(play, reward, cost=play.cost * rng.choice([1.0, 0.3]))
                if i % 20 == 7:
                    experiment.add_arm(f"new {i}")
                if i % 20 == 11:
                    experiment.retire_arm(f"new {i - 4}")
            log = [event for event in experiment.log if not isinstance(event, Opened)]
            return seen, experiment.spent, log

        assert run(stopping=True) == run(stopping=False)

    def test_a_policy_and_a_psi_of_ones_own(self):
        class Mine(UCB):
            pass

        fid = Fidelities([1, 10], [0.2, 0], SubExponential())
        experiment = make(policy=Mine(), fidelities=fid)
        experiment.tell(experiment.ask(), 0.5)
        text = experiment.to_json()
        with pytest.raises(ValueError, match="one of your own has to be passed in"):
            Experiment.from_json(text)
        again = Experiment.from_json(text, policy=Mine(), fidelities=fid)
        assert again.ask().arm == 1

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("{", "an experiment's JSON cannot be read"),
            ("[]", "an experiment's JSON must have ['arms', 'capital'"),
            ('{"format": 1}', "an experiment's JSON must have ['arms', 'capital'"),
        ],
    )
    def test_unreadable(self, text, message):
        with pytest.raises(ValueError, match=re.escape(message)):
            Experiment.from_json(text)

    def test_another_format(self):
        record = json.loads(make().to_json()) | {"format": 99}
        with pytest.raises(ValueError, match="must have format 1, got 99"):
            Experiment.from_json(json.dumps(record))

    @pytest.mark.parametrize(
        ("key", "value", "message"),
        [
            ("log", None, "must have a list as log, got None"),
            ("log", ["x"], "event must be one of .* got 'x'"),
            ("log", [{"event": [1]}], "event must be one of"),
            ("log", [{"event": "Asked", "play": 0.0, "arm": 0, "fidelity": 0}], "does not fit together"),
            ("log", [{"event": "ArmRestored", "arm": 0}], "does not fit together"),
            ("policy", "MFUCB", "must have a dict as policy"),
            ("policy", {"name": "MFUCB", "rho": "2"}, "rho must be a number, got '2'"),
            ("fidelities", {}, "fidelities must have costs"),
            ("capital", "50", "capital must be a number, got '50'"),
            ("id", 7, "must have a str as id, got 7"),
            ("arms", 3, "must have a list as arms"),
        ],
    )
    def test_damaged(self, key, value, message):
        record = json.loads(make().to_json()) | {key: value}
        with pytest.raises(ValueError, match=message):
            Experiment.from_json(json.dumps(record))

    def test_other_fidelities_than_were_saved(self):
        with pytest.raises(ValueError, match=r"fidelities must have the saved costs, got \[2.0, 20.0\]"):
            Experiment.from_json(make().to_json(), fidelities=Fidelities([2, 20], [0.2, 0], SubGaussian(1)))

    def test_numpy_numbers_can_be_saved(self):
        numbers, names = [np.float64(1), np.float64(2)], np.array(["a", "b"]).tolist()
        fid = Fidelities(numbers, np.array([0.5, 0]).tolist(), SubGaussian(np.float64(1)), names)
        experiment = make(policy=MFUCB(rho=np.float64(2)), fidelities=fid, capital=np.float64(9))
        assert Experiment.from_json(experiment.to_json()).fidelities == fid

    def test_a_log_that_does_not_fit_together(self):
        record = json.loads(make().to_json())
        record["log"] = [{"event": "Told", "play": 0, "reward": 0.5, "cost": 1.0}]
        with pytest.raises(ValueError, match="the log does not fit together"):
            Experiment.from_json(json.dumps(record))


class TestFailing:
    def test_an_arm_that_always_fails_is_set_aside_after_three(self):
        experiment = make(arms=3)
        failed = 0
        for _ in range(40):
            play = experiment.ask()
            if play.arm == 1:
                experiment.fail(play)
                failed += 1
            else:
                experiment.tell(play, 0.5)
        assert failed == 3
        assert experiment.set_aside == (1,)
        assert ArmSetAside(1) in experiment.log
        experiment.restore_arm(1)
        assert experiment.set_aside == ()
        assert experiment.ask().arm == 1
        assert experiment.log[-2] == ArmRestored(1)

    def test_a_result_between_starts_the_count_again(self):
        experiment = make(arms=1)
        for _ in range(5):
            experiment.fail(experiment.ask())
            experiment.fail(experiment.ask())
            experiment.tell(experiment.ask(), 0.5)
        assert experiment.set_aside == ()

    def test_failures_beyond_the_third_set_aside_once(self):
        experiment = make(arms=1)
        for play in experiment.ask(5):
            experiment.fail(play)
        assert experiment.log.count(ArmSetAside(0)) == 1

    def test_when_every_arm_is_set_aside(self):
        experiment = make(arms=1)
        for play in experiment.ask(3):
            experiment.fail(play)
        with pytest.raises(NoActiveArms, match="0 retired, 1 set aside after 3 failures in a row"):
            experiment.ask()
        with pytest.raises(NoResults, match="There is no result"):
            experiment.best()

    def test_a_failure_may_cost_something(self):
        experiment = make(capital=20)
        experiment.fail(experiment.ask(), cost=4.5)
        assert (experiment.spent, experiment.reserved) == (4.5, 0)

    def test_a_second_and_different_outcome_is_refused(self):
        experiment = make()
        failed, told = experiment.ask(2)
        experiment.fail(failed)
        experiment.fail(failed)
        with pytest.raises(Conflict, match=r"already has the outcome failed at cost 0\.0; got reward 0\.5 at"):
            experiment.tell(failed, 0.5)
        experiment.tell(told, 0.5)
        experiment.tell(told, 0.5)
        with pytest.raises(Conflict, match=r"already has the outcome reward 0\.5 at cost 1\.0; got reward 0\.6"):
            experiment.tell(told, 0.6)
        with pytest.raises(Conflict):
            experiment.tell(told, 0.5, cost=3)
        assert experiment.stats.counts.sum() == 1


class TestCapital:
    def test_a_pending_play_reserves_its_cost(self):
        experiment = make(capital=2)
        experiment.ask(2)
        with pytest.raises(
            CapitalExhausted, match=r"The next play costs 1 \(fidelity 0\), and only 0 of the capital 2 is left"
        ):
            experiment.ask()

    def test_a_cheaper_play_makes_room_and_a_dearer_one_is_still_taken(self):
        experiment = make(capital=2)
        first, second = experiment.ask(2)
        experiment.tell(first, 0.5, cost=0)
        third = experiment.ask()
        experiment.tell(second, 0.5, cost=50)
        experiment.tell(third, 0.5)
        assert experiment.spent == 51
        with pytest.raises(CapitalExhausted):
            experiment.ask()

    def test_costs_that_miss_the_capital_by_rounding_fit(self):
        experiment = make(capital=0.3, policy=UCB(), fidelities=Fidelities([0.1], concentration=Bounded()))
        assert len(experiment.ask(10)) == 3

    @pytest.mark.parametrize(("policy", "cost"), [(MFUCB(), 1), (UCB(), 10)])
    @pytest.mark.parametrize("capital", [0, 0.5, -3])
    def test_too_small_for_one_play(self, policy, cost, capital):
        message = f"capital must pay for the first play, which costs {cost} with .*UCB, got {capital}"
        with pytest.raises(ValueError, match=message):
            make(capital=capital, policy=policy)

    @pytest.mark.parametrize(("capital", "rule"), [(math.nan, "finite"), (math.inf, "finite"), ("9", "a number")])
    def test_must_be_a_number(self, capital, rule):
        with pytest.raises(ValueError, match=f"capital must be {rule}, got"):
            make(capital=capital)

    def test_one_play_that_misses_it_by_rounding(self):
        fid = Fidelities([0.1 * 3], concentration=Bounded())
        assert make(capital=0.3, policy=UCB(), fidelities=fid).ask().cost == 0.1 * 3

    def test_what_was_told_is_what_was_spent(self):
        experiment = make(capital=5000, policy=UCB(), fidelities=Fidelities([1000], concentration=Bounded()))
        experiment.tell(experiment.ask(), 0.5, cost=0.1)
        assert experiment.spent == 0.1
        experiment.ask()
        assert experiment.reserved == 1000

    def test_a_failing_policy_says_so_at_creation(self):
        with pytest.raises(ValueError, match="biases are needed here"):
            make(fidelities=Fidelities([1, 2], concentration=Bounded()))


class TestArms:
    def test_a_new_arm_is_tried_first(self):
        experiment = make(arms=["a", "b"])
        for play in experiment.ask(2):
            experiment.tell(play, 0.5)
        assert experiment.add_arm("c") == 2
        assert experiment.ask().label == "c"
        assert experiment.arms == ("a", "b", "c")

    def test_a_retired_arm_takes_late_results_and_nothing_else(self):
        experiment = make(arms=["a", "b"])
        late, other = experiment.ask(2)
        experiment.retire_arm(0)
        experiment.retire_arm(0)
        experiment.tell(late, 100.0)
        with pytest.raises(NoResults):
            experiment.best()
        experiment.tell(other, 0.1)
        assert experiment.best() == 1
        assert {play.arm for play in experiment.ask(20)} == {1}
        assert experiment.retired == (0,)
        assert experiment.stats.counts[0, 0] == 1

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: make(arms=0), "arms must be at least one, got 0"),
            (lambda: make(arms=[]), "arms must be at least one, got []"),
            (lambda: make(arms=["a", "a"]), "arms must have different names, got 'a' twice"),
            (lambda: make(arms=["a", ""]), "arms must be named by text that is not empty, got ''"),
            (lambda: make(arms=[1, 2]), "arms must be named by text that is not empty, got 1"),
            (lambda: make(arms=["a"]).add_arm("a"), "arms must have different names, got 'a' twice"),
            (lambda: make(arms=["a"]).retire_arm(0), "arm must not be the last one to be retired, got arm 0 ('a')"),
            (lambda: make(arms=3).retire_arm(3), "arm must lie in 0 to 2, got 3"),
            (lambda: make(arms=3).retire_arm(-1), "arm must lie in 0 to 2, got -1"),
            (lambda: make(arms=3).retire_arm(1.7), "arm must be a whole number, got 1.7"),
            (lambda: make(arms=3.0), "arms must be a whole number, got 3.0"),
            (lambda: make(arms="abc"), "arms must be a whole number, got 'abc'"),
            (lambda: make(policy=MFUCB), "policy must be an object with choose, index and recommend, got <class"),
            (lambda: make(fidelities=[1, 10]), "fidelities must be a Fidelities, got [1, 10]"),
            (lambda: make().ask(2.5), "n must be a whole number, got 2.5"),
            (lambda: make().bounds(rho=-1), "rho must be positive and finite, got -1"),
            (lambda: make(arms=3).retire_arm("x"), "arm must be the name of an arm, got 'x'"),
            (lambda: make(arms=3).restore_arm(0), "arm must be one that was retired or set aside, got arm 0"),
        ],
    )
    def test_bad_input(self, call, message):
        with pytest.raises(ValueError, match=re.escape(message)):
            call()


class TestBadResults:
    @pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf])
    def test_rewards_must_be_finite(self, reward):
        experiment = make()
        play = experiment.ask()
        with pytest.raises(ValueError, match=f"reward must be finite, got {reward}"):
            experiment.tell(play, reward)
        assert experiment.pending == (play,)

    @pytest.mark.parametrize(
        ("cost", "message"), [(-1, "cost must not be negative, got -1"), (math.nan, "cost must be finite, got nan")]
    )
    def test_costs_must_make_sense(self, cost, message):
        experiment = make()
        play = experiment.ask()
        for verb in (lambda: experiment.tell(play, 0.5, cost=cost), lambda: experiment.fail(play, cost=cost)):
            with pytest.raises(ValueError, match=message):
                verb()
        assert experiment.spent == 0

    @pytest.mark.parametrize("reward", ["0.5", None, 10**400, 1e200, [1]])
    def test_rewards_must_be_numbers_whose_squares_are_finite(self, reward):
        experiment = make()
        play = experiment.ask()
        with pytest.raises(ValueError, match=r"reward must be (a number|at most 1e\+150 in size), got"):
            experiment.tell(play, reward)
        assert experiment.pending == (play,)

    def test_a_play_that_a_copy_asked_for(self):
        experiment = make()
        copy = Experiment.from_json(experiment.to_json())
        experiment.retire_arm(0)
        play, other = experiment.ask(), copy.ask()
        assert play.id != other.id
        with pytest.raises(UnknownPlay):
            experiment.tell(other, 99.0)
        experiment.tell(play, 0.5)

    def test_unknown_plays(self):
        experiment, other = make(), make()
        stranger = other.ask()
        own = experiment.ask()
        for play in (stranger, "x", "", own.id + "1", own.id.replace("-0", "--1"), own.id.replace("-0", "-²")):
            with pytest.raises(UnknownPlay, match="was not asked from this experiment"):
                experiment.tell(play, 0.5)
        assert not experiment.stats.counts.any()

    def test_at_least_one_ask(self):
        with pytest.raises(ValueError, match="n must be at least 1, got 0"):
            make().ask(0)

    @pytest.mark.parametrize("choice", [(0.5, 0), (7, 0), (0, 7)])
    def test_a_policy_that_chooses_nonsense_at_first(self, choice):
        class Wild(UCB):
            def choose(self, *_):
                return choice

        with pytest.raises(ValueError, match=r"must be a whole number|Wild chose arm"):
            make(policy=Wild())

    def test_a_psi_inv_that_gives_no_width(self):
        class Odd(SubExponential):
            def psi_inv(self, y):
                return math.nan if y > 0 else 0.0

        experiment = make(policy=UCB(), fidelities=Fidelities([1], concentration=Odd()))
        experiment.tell(experiment.ask(), 0.5)
        with pytest.raises(ValueError, match="psi_inv of Odd must give a width of at least 0, got nan"):
            experiment.ask()

    @pytest.mark.parametrize("choice", [(3, 0), (-1, 0), (0, 2), (0, -1)])
    def test_a_policy_that_chooses_what_is_not_there(self, choice):
        class Wild(UCB):
            def choose(self, stats, _fidelities):
                return (0, 0) if stats.time == 1 else choice

        experiment = make(policy=Wild())
        experiment.ask()
        with pytest.raises(ValueError, match=re.escape(f"Wild chose arm {choice[0]} at fidelity {choice[1]}")):
            experiment.ask()


class TestLooking:
    def test_bounds_are_by_results_alone(self):
        experiment = make(arms=["a", "b"])
        first, _ = experiment.ask(2)
        experiment.tell(first, 0.5)
        table = experiment.bounds()
        width = 0.1 * math.sqrt(2 * 2 * math.log(2))
        assert table.plays[0].tolist() == [1, 0]
        assert table.widths[0, 0] == pytest.approx(width)
        assert table.upper[0, 0] == pytest.approx(0.5 + width + 0.2)
        assert table.lower[0, 0] == pytest.approx(0.5 - width - 0.2)
        assert experiment.bounds(rho=8).widths[0, 0] == pytest.approx(2 * width)

    def test_what_it_is_made_of(self):
        experiment = make(arms=np.int64(2), capital=7)
        assert (experiment.policy, experiment.fidelities, experiment.capital) == (MFUCB(), FID, 7.0)
        assert experiment.arms == ("0", "1")

    def test_says_what_it_is(self):
        assert (
            repr(make(capital=7))
            == "<Experiment MFUCB, 3 arms, 2 fidelities, 0 plays settled, 0 pending, spent 0 of 7.0>"
        )

    def test_stats_are_a_copy(self):
        experiment = make()
        before = experiment.stats
        experiment.tell(experiment.ask(), 0.5)
        assert not before.counts.any()

    def test_policies_cannot_write(self):
        class Vandal(UCB):
            def choose(self, stats, _fidelities):
                stats.counts[0, 0] += 1
                return 0, 0

        with pytest.raises(ValueError, match="read-only"):
            make(policy=Vandal())

    def test_history_is_in_the_order_of_telling(self):
        experiment = make()
        first, second = experiment.ask(2)
        experiment.tell(second, 0.2, cost=3)
        experiment.tell(first, 0.1)
        history = experiment.history
        assert history.arms.tolist() == [1, 0]
        assert history.rewards.tolist() == [0.2, 0.1]
        assert history.costs.tolist() == [3, 1]


@pytest.mark.no_cover
@settings(max_examples=examples(40))
@given(problems(max_arms=5, max_fidelities=3), st.integers(0, 2**32), st.sampled_from([0.02, 2.0]))
def test_plays_ahead_of_results_are_those_by_hand(problem, seed, rho):
    rng = np.random.default_rng(seed)
    fid = problem.fidelities
    experiment = make(problem.arms, None, MFUCB(rho=rho), fid)
    told: list[tuple[int, int, float]] = []
    waiting: list[Play] = []
    for i in range(60):
        active = experiment.stats.active
        if active.any():
            due = next_by_hand(told, [(p.arm, p.fidelity) for p in waiting], active, fid, rho)
            play = experiment.ask()
            assert (play.arm, play.fidelity) == due
            waiting.append(play)
        if rng.random() < 0.6 and waiting:
            play = waiting.pop(int(rng.integers(len(waiting))))
            if rng.random() < 0.25:
                experiment.fail(play)
            else:
                reward = float(rng.integers(0, 5)) / 4  # sums of these are exact in any order
                experiment.tell(play, reward)
                told.append((play.arm, play.fidelity, reward))
        if i % 15 == 4:
            experiment.add_arm(f"new {i}")
        if i % 15 == 9 and rng.random() < 0.5:
            experiment.retire_arm(f"new {i - 5}")
        if i % 10 == 8:
            for arm in experiment.set_aside:
                experiment.restore_arm(arm)
            experiment = Experiment.from_json(experiment.to_json())
