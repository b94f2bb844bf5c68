"""The selection benchmark runs, and nobody spends more than the budget."""

import json
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from benchmarks import search_tasks, selection, selection_lcbench, selection_lcdb, selection_search, tuners
from benchmarks.recorded_fits import Records
from benchmarks.selection_lcbench import FOUND_OUT, OURS, TableDesk, best_rivals, tables
from benchmarks.selection_lcdb import (
    CHOOSING,
    EXACT,
    MORE,
    REPORTED,
    SplitDesk,
    losses,
    problem_of,
    verdicts,
)
from benchmarks.selection_rules import asha, bracket, compared, halving, hyperband, interval, played, random_search
from mfbandit import MFTopTwo

CAR, CMC, WIND = 21, 23, 847


@pytest.mark.parametrize("look", [0.01, 0.25, 1, 2])
@pytest.mark.parametrize(
    "rule",
    [
        partial(halving, 2),
        partial(halving, 4),
        partial(bracket, 3),
        partial(asha, 3),
        partial(hyperband, 3),
        random_search,
    ],
)
def test_halving_keeps_to_its_budget_and_uses_it(rule, look):
    problem = problem_of(CAR)
    budget = max(look * problem.arms * problem.fidelities.costs[-1], problem.fidelities.costs[0])
    desk = SplitDesk(CAR, 0, paired=False, budget=budget)
    assert 0 <= rule(desk, budget) < problem.arms
    assert desk.spent <= budget * (1 + 1e-9)


def test_a_look_too_many_is_refused():
    desk = SplitDesk(CMC, 0, paired=False, budget=problem_of(CMC).fidelities.costs[0])
    desk.look(0, 0)
    with pytest.raises(RuntimeError, match="no rule may spend more than its budget"):
        desk.look(0, 0)


def test_paired_looks_are_at_the_same_split():
    """Both recorded at all splits of cmc: their i-th rewards are of one split."""
    desk = SplitDesk(CMC, 3, paired=True, budget=1e9)
    results = selection_lcdb.results_of(CMC)[3]
    order = desk._order.tolist()
    seen = []
    for arm in (0, 1):
        scores, splits = results[order[arm]]
        rewards = [desk.reward(arm, 3, i) for i in range(len(scores))]
        by_split = dict(zip(splits.tolist(), scores.tolist(), strict=True))
        places = np.random.default_rng([3, 1, 3]).permutation(256)
        assert rewards == [by_split[split] for split in sorted(by_split, key=lambda split: places[split])]
        seen.append(sorted(by_split))
    assert seen[0] == seen[1]


def test_all_rules_see_the_same_rewards():
    one, two = (SplitDesk(CMC, 5, paired=False, budget=1e9) for _ in range(2))
    assert [one.reward(2, 1, i) for i in range(100)] == [two.reward(2, 1, i) for i in range(100)]


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
    bad = {"1": [0.005, 0.009, 0.0, 0.02], "2": [0.006, 0.0108, 0.015, 0.024]}
    assert compared(good, halved)[0] == pytest.approx([0.5, -0.0055, -0.006, -0.005])
    assert verdicts({"halving": halved, "MFTopTwo": good}) == []
    assert verdicts({"halving": halved, "MFTopTwo": bad}) == [
        "MFTopTwo at 0.5 Kλ_M: 0.90 of successive halving's mean loss, above 0.65",
        "MFTopTwo at 1 Kλ_M: difference to successive halving up to 30.0e-4, not below 0",
        "MFTopTwo at 2 Kλ_M: 2.00 of successive halving's mean loss, above 1.0",
    ]


@pytest.mark.slow
@pytest.mark.no_cover
def test_a_smoke_run(tmp_path, capsys):
    assert selection.main(["lcdb", "--quick", "--out", str(tmp_path / "new" / "replay.json")]) == 0
    result = json.loads((tmp_path / "new" / "replay.json").read_text())
    assert set(result["choosing"]).isdisjoint(result["reported"])
    assert "| MFTopTwo |" in capsys.readouterr().out


class TestLCBench:
    def test_halves_are_apart(self):
        assert len(selection_lcbench.CHOOSING) + len(selection_lcbench.REPORTED) == 17
        assert set(selection_lcbench.CHOOSING).isdisjoint(selection_lcbench.REPORTED)

    @pytest.mark.parametrize("rule", [partial(asha, 2), partial(hyperband, 2), partial(bracket, 2), random_search])
    def test_rivals_find_the_best_arm_if_fidelities_agree(self, rule):
        means = np.tile(np.arange(8) / 10, (3, 1))
        desk = TableDesk(means, np.array([1.0, 2.0, 4.0]), 0, 200.0)
        assert desk.loss(rule(desk, 200.0)) == 0

    def test_asha_promotes_the_best_half(self):
        """Eight arms at the lowest, the better four at the next, the better two at the highest."""
        means = np.tile(np.arange(8) / 10, (3, 1))
        desk = TableDesk(means, np.array([1.0, 2.0, 4.0]), 0, 8 + 4 * 2 + 2 * 4)
        assert desk.loss(asha(2, desk, 24)) == 0
        assert desk.stats.counts.sum(axis=1).tolist()[0] <= 8
        assert desk.spent <= 24

    @pytest.mark.parametrize(
        "rule",
        [partial(asha, 2), partial(hyperband, 2), partial(bracket, 2), partial(halving, 2), partial(played, MFTopTwo)],
    )
    @pytest.mark.parametrize("budget", [9.0, 20.0])
    def test_where_looks_resume_they_cost_the_difference(self, rule, budget):
        means, costs = np.tile(np.arange(8) / 10, (3, 1)), np.array([1.0, 2.0, 4.0])
        desk = TableDesk(means, costs, 0, budget, resume=True)
        rule(desk, budget)
        stats: Any = desk.stats
        assert desk.spent == (stats.counts - stats.resumed).sum(axis=1) @ costs
        assert desk.spent <= budget
        assert (stats.resumed + stats.states == stats.counts).all()
        assert stats.resumed.any()

    def test_verdicts(self):
        rivals, ours = {"1": [0.02, 0.01, 0.01, 0.01, 0.0]}, {"1": [0.02, 0.008, 0.008, 0.006, 0.0005]}
        table = {"ASHA, η = 3": rivals, OURS: ours, FOUND_OUT: {"1": [0.02, 0.008, 0.008, 0.02, 0.0005]}}
        assert best_rivals(table)[0].loss == 0.02
        assert selection_lcbench.verdicts(table, {300: [1.0, 2.0], 10_000: [21.0, 30.0]}) == [
            "0.1 Kλ_M: 80e-4, above 75e-4 (ASHA, η = 3)",
            "0.25 Kλ_M: 200e-4 undeclared, 60e-4 declared",
            "a decision among 10000 arms takes 21.0 ms",
        ]

    def test_the_tables(self):
        means, costs = next(iter(tables(selection_lcbench.DATA).values()))
        assert means.shape == (5, 300)
        assert 0 < means.min() < means.max() < 1
        assert (np.diff(costs) > 0).all()

    @pytest.mark.slow
    @pytest.mark.no_cover
    @pytest.mark.parametrize("resumed", [[], ["--resume"]])
    def test_a_smoke_run(self, tmp_path, capsys, resumed):
        out = tmp_path / "new" / "lcbench.json"
        assert selection.main(["lcbench", "--quick", *resumed, "--out", str(out)]) == 0
        assert "| MFTopTwo |" in capsys.readouterr().out
        assert json.loads(out.read_text())["looks"] == ([0.05, 0.1] if resumed else list(selection_lcbench.LOOKS))


class TestSearch:
    TREES = search_tasks.Family(
        lambda depth, leaf: DecisionTreeClassifier(max_depth=depth, min_samples_leaf=leaf, random_state=0),
        {"max_depth": (1, 4), "min_samples_leaf": (1, 5, 20)},
    )
    BAYES = search_tasks.Family(lambda smoothing: GaussianNB(var_smoothing=smoothing), {"var_smoothing": (1e-9, 1.0)})

    def task(self, seed):
        x, y = make_classification(80, 5, random_state=0)
        cv = StratifiedKFold(5, shuffle=True, random_state=seed)
        return search_tasks.Task(x, y, (self.TREES, self.BAYES), cv)

    def test_tasks_are_reported_that_nothing_was_chosen_on(self):
        assert set(search_tasks.DEVELOPED_ON).isdisjoint(search_tasks.REPORTED)
        assert len(search_tasks.REPORTED) >= 12

    def test_a_place_in_the_grid(self):
        places = [tuners._place((self.TREES, self.BAYES), 0, (i, j)) for i in (0, 1) for j in (0, 1, 2)]
        assert [*places, tuners._place((self.TREES, self.BAYES), 1, (1,))] == [0, 1, 2, 3, 4, 5, 7]
        assert self.TREES.all()[places[4]].get_params()["min_samples_leaf"] == 5

    def test_every_search_chooses_and_fits_are_made_once(self, tmp_path, monkeypatch):
        monkeypatch.setitem(selection_search.TASKS, "small", self.task)
        searches = [name for name in selection_search.installed() if name != selection_search.SMAC]  # which is slow
        rows = selection_search.measured(("small", 0, tmp_path, searches))
        assert [row["search"] for row in rows] == searches
        assert all(0 <= row["chosen"] < 8 for row in rows)
        costs = {row["search"]: row["cost"] for row in rows}
        assert costs["GridSearchCV"] == 40
        assert costs["MFSearchCV"] <= 10
        assert costs["MFSearchCV, grid's capital"] <= 40
        monkeypatch.setattr(Records, "_fitted", None)
        again = selection_search.measured(("small", 0, tmp_path, searches))
        assert [row["chosen"] for row in again] == [row["chosen"] for row in rows]
        found = selection_search.judged(again)
        assert found["rows"][0]["loss"] == 0
        assert "| small |" in selection_search.markdown(found)

    @pytest.mark.parametrize(("task", "covers"), [("series", [True, False]), ("iris", [False, True])])
    def test_an_interval_is_about_the_data_of_the_search(self, task, covers):
        """Each seed has another piece of a series, and other splits of all other data."""
        grids = [
            {"task": task, "seed": seed, "search": "GridSearchCV", "chosen": 1, "means": [0.0, 0.5, 0.5 + seed / 5]}
            for seed in (0, 1)
        ]
        ours = {"task": task, "search": "MFSearchCV", "chosen": 2, "early": False}
        rows = [ours | {"seed": 0, "low": 0.4, "high": 0.55}, ours | {"seed": 1, "low": 0.55, "high": 0.65}]
        found = selection_search.judged(grids + rows)["rows"]
        assert [row["covers"] for row in found if "covers" in row] == covers

    def test_bars(self):
        def row(search, loss, **more):
            return {"task": "series", "search": search, "loss": loss} | more

        ours = {"covers": True, "width": 2.0, "early": True}
        rows = [row("GridSearchCV", 0.0), row("HalvingGridSearchCV", 0.5), row("MFSearchCV", 0.45, **ours)]
        assert selection_search.bars(rows) == [
            "mean loss 0.450, above 0.6 of HalvingGridSearchCV's 0.500",
            "series: loses 0.45 of the spread",
            "MFSearchCV, series: best_interval_ is 2.0 spreads wide",
            "MFSearchCV: 1 of 1 runs stopped early and were wrong",
        ]
