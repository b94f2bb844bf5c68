"""Shares on the command line: [experiment] of a TOML file, ``create`` and ``experiment shares``, ``status``."""

import json

import pytest

from mfbandit import Shares, Store
from mfbandit.cli.config import Config
from tests.support.commands import call, done, refused

TOML = """
[experiment]
arms = ["old", "new", "other"]
control = "old"
control_share = 0.1
least_share = 0.01

[fidelities]
costs = [1]
rewards = "rate"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.toml").write_text(TOML)
    return tmp_path


def test_in_a_file_and_as_options(folder):
    described = Config("a.toml").experiment()
    assert (described["control"], described["control_share"], described["least_share"]) == ("old", 0.1, 0.01)
    done("experiment", "create", "a.db", "ads", "a.toml", "--control", "new", "--control-share", "0.2")
    with Store(folder / "a.db") as store:
        assert store.open("ads").shares == Shares(1, 0.2, 0.01)
    options = ("--least-share", "0.6")
    refused(call("experiment", "create", "a.db", "more", "a.toml", *options), "shares must sum to at most 1")


@pytest.mark.usefixtures("folder")
def test_shown_set_and_taken_back():
    done("experiment", "create", "a.db", "ads", "a.toml")
    words = "ads: old is the control, with at least 10 % of the plays, every active arm at least 1 %\n"
    assert done("experiment", "shares", "a.db", "ads") == words
    assert done("experiment", "shares", "a.db", "ads", "--control", "new") == "ads: new is the control\n"
    refused(call("experiment", "shares", "a.db", "ads", "--control-share", "0.1"), "must come with a control")
    refused(call("experiment", "shares", "a.db", "ads", "--control", "nobody"), "must be the name of an arm")
    refused(call("experiment", "retire", "a.db", "ads", "new"), "must not be the control")
    assert done("experiment", "shares", "a.db", "ads", "--none") == "ads: no control and no shares\n"
    known = json.loads(done("experiment", "shares", "a.db", "ads", "--json"))
    assert known == {"control": None, "control_share": 0.0, "least_share": 0.0}


def test_the_status_has_the_lift(folder):
    done("experiment", "create", "a.db", "ads", "a.toml")
    (folder / "past.csv").write_text("arm,fidelity,successes,trials\nold,0,200,10000\nnew,0,400,10000\nother,0,1,100\n")
    done("experiment", "import", "a.db", "ads", "past.csv")
    said = done("experiment", "status", "a.db", "ads")
    assert "lift         new is above the control old by 0." in said
    assert "percentage points (observed 2)" in said
    assert "control      old is the control, with at least 10 % of the plays" in said
    record = json.loads(done("experiment", "status", "a.db", "ads", "--json"))
    assert record["lift"]["label"] == "new"
    assert record["lift"]["sentence"] in said
