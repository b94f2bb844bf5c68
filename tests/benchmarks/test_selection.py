"""The selection benchmark runs, and nobody spends more than the budget."""

import json
from functools import partial

import numpy as np
import pytest

from benchmarks import selection, selection_replay
from benchmarks.selection_replay import (
    CHOOSING,
    EXACT,
    MORE,
    REPORTED,
    Desk,
    bracket,
    compared,
    halving,
    interval,
    losses,
    problem_of,
    verdicts,
)

CAR, CMC, WIND = 21, 23, 847


@pytest.mark.parametrize("look", [0.01, 0.25, 1, 2])
@pytest.mark.parametrize("rule", [partial(halving, 2), partial(halving, 4), partial(bracket, 3)])
def test_halving_keeps_to_its_budget_and_uses_it(rule, look):
    problem = problem_of(CAR)
    budget = max(look * problem.arms * problem.fidelities.costs[-1], problem.fidelities.costs[0])
    desk = Desk(CAR, 0, paired=False, budget=budget)
    assert 0 <= rule(desk, budget) < problem.arms
    assert desk.spent <= budget * (1 + 1e-9)


def test_a_look_too_many_is_refused():
    desk = Desk(CMC, 0, paired=False, budget=problem_of(CMC).fidelities.costs[0])
    desk.look(0, 0)
    with pytest.raises(RuntimeError, match="no rule may spend more than its budget"):
        desk.look(0, 0)


def test_paired_looks_are_at_the_same_split():
    """Both recorded at all splits of cmc: their i-th rewards are of one split."""
    desk = Desk(CMC, 3, paired=True, budget=1e9)
    results = selection_replay.results_of(CMC)[3]
    order = desk._order.tolist()
    seen = []
    for arm in (0, 1):
        scores, splits = results[order[arm]]
        rewards = [desk._reward(arm, 3, i) for i in range(len(scores))]
        by_split = dict(zip(splits.tolist(), scores.tolist(), strict=True))
        places = np.random.default_rng([3, 1, 3]).permutation(256)
        assert rewards == [by_split[split] for split in sorted(by_split, key=lambda split: places[split])]
        seen.append(sorted(by_split))
    assert seen[0] == seen[1]


def test_all_rules_see_the_same_rewards():
    one, two = (Desk(CMC, 5, paired=False, budget=1e9) for _ in range(2))
    assert [one._reward(2, 1, i) for i in range(100)] == [two._reward(2, 1, i) for i in range(100)]


def test_losses_have_a_place_for_each_budget_data_set_and_seed():
    lost = losses(partial(halving, 2), [CMC, WIND], 3)
    assert lost.shape == (2, 4)
    assert (lost >= 0).all()
    one = losses(partial(halving, 2), [WIND], 3)
    assert (one[0] == lost[1]).all()


@pytest.mark.parametrize("number", MORE.names.values())
def test_every_further_data_set_is_a_problem(number):
    problem = problem_of(number)
    assert 10 <= problem.arms <= 20
    sizes = [int(name.split()[0]) for name in problem.fidelities.names or ()]
    for size, part in zip(sizes, (64, 16, 4, 1), strict=True):
        assert 0.5 <= size * part / sizes[-1] <= 1.5


def test_halves_are_apart_and_cover_all():
    assert set(CHOOSING).isdisjoint(REPORTED)
    assert set(CHOOSING) | set(REPORTED) == set(EXACT) | set(MORE.names.values())
    assert len(CHOOSING) + len(REPORTED) == 64 + 38


def test_interval_and_verdicts():
    assert interval(np.array([1.0, 1.0])) == [1.0, 1.0, 1.0]
    halved = {"1": [0.01] * 4, "2": [0.012] * 4}
    good = {"1": [0.005] * 4, "2": [0.006] * 4}
    bad = {"1": [0.005, 0.009, 0.0, 1.0], "2": [0.006, 0.0108, 0.015, 1.0]}
    assert compared(good, halved)[0] == pytest.approx([0.5, -0.0055, -0.006, -0.005])
    assert verdicts({"halving": halved, "MFTopTwo": good}) == []
    assert verdicts({"halving": halved, "MFTopTwo": bad}) == [
        "MFTopTwo at 0.5 Kλ_M: 0.90 of successive halving's mean loss, above 0.75",
        "MFTopTwo at 1 Kλ_M: difference to successive halving up to 30.0e-4, not below 0",
    ]


@pytest.mark.slow
@pytest.mark.no_cover
def test_a_smoke_run(tmp_path, capsys):
    assert selection.main(["replay", "--quick", "--out", str(tmp_path / "new" / "replay.json")]) == 0
    result = json.loads((tmp_path / "new" / "replay.json").read_text())
    assert set(result["choosing"]).isdisjoint(result["reported"])
    assert "| MFTopTwo |" in capsys.readouterr().out
