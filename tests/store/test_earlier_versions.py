"""Stores and experiments that earlier versions wrote open, are the same, and go on the same; see tests/data."""

import json
import random
import shutil
import sqlite3
from pathlib import Path

import pytest

import mfbandit as mfb
from mfbandit.store import examine, jsonl, plays_csv

FOLDERS = sorted(path.parent for path in (Path(__file__).parents[1] / "data").glob("*/store.db"))
FOLLOWING = 30  # plays that each version noted down


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def folder(request, tmp_path):
    """A copy of what a version wrote."""
    return Path(shutil.copytree(request.param, tmp_path / "written"))


@pytest.fixture
def expected(folder):
    return json.loads((folder / "expected.json").read_text())


@pytest.fixture
def store(folder, expected):
    with mfb.Store(folder / "store.db", clock=lambda: expected["now"]) as store:
        yield store


def seen(experiment):
    """What can be read of an experiment, as plain JSON."""
    stats = experiment.stats
    return {
        "arms": list(experiment.arms),
        "policy": repr(experiment.policy),
        "capital": experiment.capital,
        "biases": list(experiment.fidelities.biases),
        "spent": experiment.spent,
        "reserved": experiment.reserved,
        "counts": stats.counts.tolist(),
        "sums": stats.sums.tolist(),
        "squares": stats.squares.tolist(),
        "pending": [[play.id, play.arm, play.fidelity, play.cost] for play in experiment.pending],
        "retired": list(experiment.retired),
        "set_aside": list(experiment.set_aside),
        "state": experiment.state,
        "best": experiment.policy.recommend(stats, experiment.fidelities),  # best() may know better
        "upper": experiment.bounds().upper.tolist(),
    }


def seen_in_store(experiment):
    refuted = [[m, arm, needed] for (m, arm), needed in sorted(experiment.refuted.items())]
    return {**seen(experiment), "events": experiment.events, "leases": experiment.leases, "refuted": refuted}


def next_plays(experiment):
    rng, plays = random.Random(4), []
    for _ in range(FOLLOWING):
        play = experiment.ask()
        plays.append([play.arm, play.fidelity])
        experiment.tell(play, round(min(max(rng.gauss(0.5 + 0.02 * play.arm, 0.1), 0.0), 1.0), 3))
    return plays


def test_there_is_something_to_open():
    assert "0.1.0.dev0" in {folder.name for folder in FOLDERS}


def test_the_experiments_are_the_same(store, expected):
    assert set(store.list()) == set(expected["store"])
    for name, told in expected["store"].items():
        assert seen_in_store(store.open(name)) == told["seen"]


def test_they_go_on_with_the_same_plays_and_take_late_results(store, expected):
    for name, told in expected["store"].items():
        experiment = store.open(name)
        if told["late"]:
            experiment.tell(told["late"], 0.75)
        assert next_plays(experiment) == told["next"]
        afterwards = told["afterwards"]
        # One more event: that it was opened for writing.
        assert seen_in_store(experiment) == {**afterwards, "events": afterwards["events"] + 1}


def test_a_request_key_gives_the_plays_of_its_first_request(store, expected):
    for name, told in expected["store"].items():
        experiment = store.open(name)
        before = experiment.events
        assert [play.id for play in experiment.ask(9, request_key=told["key"])] == told["keyed"]
        assert experiment.events == before


def test_a_result_that_is_kept_is_not_replaced(store, expected):
    experiment = store.open("ads")
    first = expected["store"]["ads"]["keyed"][0]
    experiment.tell(first, 0.625)
    with pytest.raises(mfb.Conflict):
        experiment.tell(first, 0.5)


def test_tokens_are_known(store, expected):
    for scope, text in expected["tokens"].items():
        token = store.token(text)
        assert token is not None
        assert token.scope == scope
    assert len(store.tokens()) == len(expected["tokens"])


def test_exports_are_the_same_to_the_byte(store, expected):
    for name, told in expected["store"].items():
        experiment = store.open(name)
        assert list(jsonl(experiment.records())) == told["log"]
        assert list(plays_csv(experiment.records(), name, experiment.arms)) == told["csv"]


def test_doctor_finds_nothing_wrong(folder):
    findings = examine(str(folder / "store.db"))
    assert [str(finding) for finding in findings if finding.mark == "wrong"] == []
    assert any("ads" in str(finding) for finding in findings)


def test_opened_for_reading_alone_nothing_changes(folder, expected):
    before = (folder / "store.db").read_bytes()
    with mfb.Store(folder / "store.db", read_only=True, clock=lambda: expected["now"]) as store:
        for name, told in expected["store"].items():
            experiment = store.open(name)
            assert seen_in_store(experiment) == told["seen"]
            assert list(jsonl(experiment.records())) == told["log"]
            with pytest.raises(mfb.NotAllowed):
                experiment.ask()
    assert (folder / "store.db").read_bytes() == before


def test_without_its_snapshots_the_log_alone_says_the_same(folder, expected):
    with sqlite3.connect(folder / "store.db") as database:
        assert database.execute("SELECT count(*) FROM mfbandit_snapshots").fetchone()[0] > 1
        database.execute("DELETE FROM mfbandit_snapshots")
    database.close()
    with mfb.Store(folder / "store.db", clock=lambda: expected["now"]) as store:
        for name, told in expected["store"].items():
            assert seen_in_store(store.open(name)) == told["seen"]


def test_the_json_of_an_experiment_is_the_same_and_goes_on(folder, expected):
    told = expected["json"]
    experiment = mfb.Experiment.from_json((folder / "experiment.json").read_text())
    assert seen(experiment) == told["seen"]
    assert experiment.to_json() == (folder / "experiment.json").read_text().rstrip("\n")
    assert next_plays(experiment) == told["next"]
    assert seen(experiment) == told["afterwards"]
