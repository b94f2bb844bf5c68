"""The benchmark of delayed results, at tiny sizes: that it measures what it says."""

from collections import defaultdict

import numpy as np
import pytest

import mfbandit as mfb
from benchmarks.delayed import (
    ALONE,
    DURATIONS,
    RULE,
    TEAMS,
    Blind,
    Case,
    Team,
    as_it_costs,
    asked_again,
    equally_long,
    measured,
    rewards,
    simulated,
    small_problem,
    verdicts,
)

CAPITAL = 300.0
TINY = Case("tiny", small_problem, (0.2, 0.6), 1)


def seen(plays):
    return [(play.arm, play.fidelity) for play in plays]


def run(team, duration=equally_long):
    return simulated(small_problem(1), team, duration, seed=1, capital=CAPITAL)


@pytest.mark.parametrize("duration", DURATIONS.values())
def test_one_worker_makes_the_plays_of_the_plain_loop(duration):
    problem = small_problem(1)
    draw = rewards(problem, seed=1)
    experiment = mfb.Experiment(mfb.MFUCB(), arms=problem.arms, fidelities=problem.fidelities, capital=CAPITAL)
    for play in experiment.plays():
        experiment.tell(play, draw(play))
    history = experiment.history
    assert seen(run(ALONE, duration)) == list(zip(history.arms, history.fidelities, strict=True))


@pytest.mark.parametrize("duration", DURATIONS.values())
@pytest.mark.parametrize("workers", [1, 4, 19, 64])
def test_untouched_arms_come_first(workers, duration):
    plays = run(Team("", workers), duration)
    assert [play.arm for play in plays[:20]] == list(range(20))
    assert asked_again(plays, arms=20) == 0


def test_without_pending_plays_an_untouched_arm_is_asked_for_again():
    plays = run(Team("", 8, Blind()))
    assert [play.arm for play in plays[:9]] == [0] * 8 + [1]
    assert asked_again(plays, arms=20) >= 7


def test_equally_long_plays_are_told_in_order_and_one_team_late():
    """By hand: each ask knows all results but those of the last W − 1 plays."""
    problem, workers = small_problem(1), 5
    draw = rewards(problem, seed=1)
    experiment = mfb.Experiment(mfb.MFUCB(), arms=problem.arms, fidelities=problem.fidelities, capital=CAPITAL)
    waiting, asked = [], []
    for play in experiment.plays():
        asked.append(play)
        waiting.append((play, draw(play)))
        if len(waiting) == workers:
            experiment.tell(*waiting.pop(0))
    assert seen(run(Team("", workers))) == seen(asked)


def test_results_overtake_each_other_where_plays_take_as_long_as_they_cost():
    assert seen(run(Team("", 16))) != seen(run(Team("", 16), as_it_costs))


def test_the_nth_reward_of_an_arm_is_the_same_in_whatever_order_plays_are_asked():
    problem = small_problem(1)
    plays = [mfb.Play("", arm, fidelity, 1.0, "") for arm, fidelity in [(3, 0), (3, 2), (5, 0)] * 20]
    forward, backward = rewards(problem, seed=1), rewards(problem, seed=1)
    there, back = defaultdict(list), defaultdict(list)
    for play, other in zip(plays, reversed(plays), strict=True):
        there[play.arm, play.fidelity].append(forward(play))
        back[other.arm, other.fidelity].append(backward(other))
    assert there == back


def test_a_smaller_capital_is_the_beginning_of_the_same_run():
    team = Team("", 7)
    less = simulated(small_problem(1), team, as_it_costs, seed=1, capital=CAPITAL / 2)
    assert seen(less) == seen(run(team, as_it_costs))[: len(less)]


def test_regrets_are_finite_and_nothing_is_wrong():
    result = measured(TINY, runs=2)
    assert np.isfinite([list(by_team.values()) for by_team in result["regret"].values()]).all()
    assert result["ratio"].keys() == DURATIONS.keys()
    assert list(result["ratio"]["equally long"]) == [team.name for team in TEAMS]
    assert verdicts({"tiny": result}) == []


def test_a_wrong_order_of_asking_is_reported():
    result = measured(TINY, runs=1)
    result["asked again"]["equally long"]["16 workers"] = 3
    assert verdicts({"tiny": result}) == ["16 workers: an arm was asked for again 3 times while others were untouched"]


def test_teams_ask_the_papers_policy():
    assert mfb.MFUCB(rho=2) == RULE
