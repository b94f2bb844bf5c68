"""Stopping on the command line: [stop] of a TOML file, ``experiment stop``, ``work --until-sure``."""

import pytest

from mfbandit import Store, Sure
from mfbandit.cli.config import Config
from tests.support.commands import call, done, refused, told

TOML = """
[experiment]
arms = ["good", "bad"]

[fidelities]
costs = [1]
scale = 0.1

[[policies]]
name = "UCB"

[stop]
level = 0.95
tolerance = 0.01
"""
LAB = "def dig(play):\n    return {'good': 0.9, 'bad': 0.2}[play.label]\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "a.toml").write_text(TOML)
    (tmp_path / "stop_lab.py").write_text(LAB)
    return tmp_path


class TestToml:
    def test_a_rule(self, folder):
        assert Config("a.toml").experiment()["stop"] == Sure(0.95, tolerance=0.01)
        (folder / "b.toml").write_text(TOML.partition("[stop]")[0])
        assert "stop" not in Config("b.toml").experiment()
        (folder / "b.toml").write_text(TOML.partition("level")[0])
        assert Config("b.toml").experiment()["stop"] == Sure()

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("level = 95", "level must lie strictly between 0 and 1, got 95"),
            ('level = "95 %"', "level must be a finite number, got '95 %'"),
            ("tolerance = -1", "tolerance must be at least 0, got -1"),
            ("estimates = 1", "estimates must be true or false, got 1"),
            ("levl = 0.9", "levl"),
        ],
    )
    def test_wrong_ones(self, folder, line, said):
        (folder / "b.toml").write_text(TOML.partition("level")[0] + line)
        refused(call("experiment", "create", "a.db", "ads", "b.toml"), "b.toml: [stop]", said)


@pytest.mark.usefixtures("folder")
class TestCommands:
    def test_the_capital_is_spent_before(self):
        done("experiment", "create", "a.db", "ads", "a.toml", "--capital", 1)
        assert "not reached" not in done("experiment", "status", "a.db", "ads")
        told("work", "a.db", "ads", "stop_lab:dig")
        said = (
            "not reached  The capital was spent before that. Raise it; the policy MFSure is made to get there soon.\n"
        )
        assert said in done("experiment", "status", "a.db", "ads")

    def test_an_experiment_is_decided_and_goes_on(self):
        done("experiment", "create", "a.db", "ads", "a.toml")
        rule = "95 % sure that no other arm is better by more than 0.01"
        assert done("experiment", "stop", "a.db", "ads") == f"ads: {rule}\n"
        assert f"stops when   {rule}\n" in done("experiment", "status", "a.db", "ads")
        assert told("work", "a.db", "ads", "stop_lab:dig")["ended"] == "the experiment is decided"
        status = done("experiment", "status", "a.db", "ads")
        assert "experiment   ads (decided)\n" in status
        assert "decided      no other is better than good (arm 0) by more than 0.01, " in status
        refused(call("experiment", "ask", "a.db", "ads"), "The experiment is decided: no other is better", code=1)
        assert done("experiment", "stop", "a.db", "ads", "never") == "ads: no rule for stopping\n"
        done("experiment", "ask", "a.db", "ads")
        found = told("experiment", "stop", "a.db", "ads", "0.9", "--request-key", "k")
        assert (found["stop"]["level"], found["decided"]["arm"]) == (0.9, 0)
        assert "; good (arm 0) is the best, " in done("experiment", "stop", "a.db", "ads")

    def test_wrong_input(self):
        done("experiment", "create", "a.db", "ads", "a.toml")
        refused(call("experiment", "stop", "a.db", "ads", "95"), "level must lie strictly between 0 and 1, got 95")
        refused(call("experiment", "stop", "a.db", "ads", "soon"), "level must be a number, got 'soon'")
        bad = call("experiment", "stop", "a.db", "ads", "0.9", "--tolerance", "-1")
        refused(bad, "tolerance must be at least 0, got -1")
        refused(call("experiment", "stop", "a.db", "bads"), "bads")
        work = "work", "a.db", "ads", "stop_lab:dig"
        refused(call(*work, "--until-sure", "1"), "level must lie strictly between 0 and 1, got 1")
        refused(call(*work, "--tolerance", "0.1"), "--tolerance must be given with --until-sure, got 0.1 alone")


def test_work_until_sure(folder):
    (folder / "b.toml").write_text(TOML.partition("[stop]")[0].replace('"UCB"', '"MFSure"\ndelta = 1e-9'))
    done("experiment", "create", "a.db", "ads", "b.toml")
    assert told("work", "a.db", "ads", "stop_lab:dig", "--until-sure", "0.9")["ended"].startswith("it is sure enough")
    first = told("experiment", "status", "a.db", "ads")
    assert (first["state"], first["stop"], first["decided"]) == ("running", None, None)
    told("work", "a.db", "ads", "stop_lab:dig", "--until-sure", "0.9999")
    assert told("experiment", "status", "a.db", "ads")["spent"] > first["spent"]
    with Store("a.db", read_only=True) as store:
        assert store.open("ads").is_sure(Sure(0.9999))
