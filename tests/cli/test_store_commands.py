"""Commands for live experiments as people and machines call them: on a file, and on a service."""

import csv
import io
import json
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from mfbandit import Store
from mfbandit.cli.main import app
from tests.support import commands
from tests.support.commands import call, done, told
from tests.support.services import served

COMMANDS = ["create", "list", "ask", "tell", "fail", "renew", "status", "pause", "resume", "add", "retire", "restore",
            "capital", "policy", "note", "export", "import", "delete"]  # fmt: skip
TOML = """
[experiment]
arms = ["ad-a", "ad-b", "ad-c"]
capital = 100
lease = 600

[fidelities]
costs = [1, 10]
biases = [0.1, 0]
range = [0, 1]

[[policies]]
name = "MFUCB"
rho = 1
"""


def refused(result, code, *said):
    """One line on standard error, nothing else, no traceback."""
    commands.refused(result, *said, code=code)


@pytest.fixture
def toml(tmp_path):
    path = tmp_path / "ads.toml"
    path.write_text(TOML)
    return path


@pytest.fixture
def file(tmp_path, toml):
    """A store with an experiment ``ads``."""
    path = tmp_path / "ads.db"
    done("experiment", "create", path, "ads", toml)
    return path


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with served(tmp_path_factory.mktemp("served") / "ads.db") as service:
        yield service


@pytest.fixture(params=["file", "service"])
def place(request, tmp_path, toml):
    """A store with an experiment ``ads``, as a file and as an address."""
    if request.param == "file":
        where = tmp_path / "ads.db"
    else:
        where = request.getfixturevalue("service").url
        if "ads" in told("experiment", "list", where):
            done("experiment", "delete", where, "ads", "--confirm", "ads")
    done("experiment", "create", where, "ads", toml)
    return where


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command):
    shown = done("experiment", command, "--help")
    assert f"Example: mfbandit experiment {command}" in shown
    assert ("--json" in shown) == (command != "export")


@pytest.mark.parametrize(
    "command", [["token", "create"], ["token", "list"], ["token", "revoke"], ["serve"], ["doctor"]]
)
def test_so_have_the_others(command):
    assert f"Example: mfbandit {' '.join(command)}" in done(*command, "--help")


def test_help_names_all_of_them_and_loads_nothing_heavy():
    code = (
        "import sys; from mfbandit.cli.main import app\n"
        "try: app(['experiment', '--help'])\nfinally: print(*sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert all(f"  {command} " in shown for command in COMMANDS)
    assert not {"numpy", "httpx", "fastapi"} & set(shown.split())


class TestOnFileAndService:
    def test_list(self, place):
        assert "ads" in done("experiment", "list", place).split()
        assert "ads" in told("experiment", "list", place)

    def test_ask_and_tell(self, place):
        plays = told("experiment", "ask", place, "ads", "-n", 2)
        assert [play["label"] for play in plays] == ["ad-a", "ad-b"]
        assert plays[0].keys() == {"id", "arm", "label", "fidelity", "cost"}
        play = plays[0]["id"]
        assert done("experiment", "tell", place, "ads", play, 0.5) == f"{play}: 0.5\n"
        assert told("experiment", "tell", place, "ads", play, 0.5) == {"play": play, "reward": 0.5}
        refused(call("experiment", "tell", place, "ads", play, 0.75), 2, play, "reward 0.5 at cost", "got reward 0.75")
        refused(
            call("experiment", "tell", place, "ads", "nobody-0", 1), 2, "'nobody-0' was not asked from this experiment"
        )
        refused(call("experiment", "tell", place, "ads", plays[1]["id"], "nan"), 2, "reward must be finite, got nan")
        refused(call("experiment", "tell", place, "ads", plays[1]["id"], 43), 2, "reward must lie in 0 to 1", "got 43")
        done("experiment", "tell", place, "ads", plays[1]["id"], 1, "--cost", 0.25)
        assert told("experiment", "status", place, "ads")["spent"] == 1.25

    def test_a_reward_that_is_no_number(self, place):
        play = told("experiment", "ask", place, "ads")[0]["id"]
        wrong: tuple[tuple[list[object], str], ...] = (
            (["much"], "it must be a number, got 'much'"),
            (
                ["--clicks", 3, "--impressions", 10],
                "there is no option --clicks; clicks of impressions are --successes",
            ),
        )
        for words, said in wrong:
            result = call("experiment", "tell", place, "ads", play, *words)
            assert (result.exit_code, result.stdout) == (2, "")
            assert said in result.stderr

    def test_ask_and_status_name_fidelities(self, tmp_path, toml):
        toml.write_text(TOML.replace("[fidelities]", '[fidelities]\nnames = ["an hour", "a day"]'))
        place = tmp_path / "named.db"
        done("experiment", "create", place, "ads", toml)
        assert "  an hour  " in done("experiment", "ask", place, "ads")
        assert "results      0 at an hour, 0 at a day\n" in done("experiment", "status", place, "ads")

    def test_ask_for_people(self, place):
        head, *lines = done("experiment", "ask", place, "ads", "-n", 2, "--lease", 60).splitlines()
        assert head.split() == ["play", "arm", "fidelity", "cost"]
        assert [line.split()[1:] for line in lines] == [["ad-a", "0", "1"], ["ad-b", "0", "1"]]

    def test_ask_again_with_a_key(self, place):
        first = told("experiment", "ask", place, "ads", "--key", "k", "-n", 2)
        assert told("experiment", "ask", place, "ads", "--key", "k", "-n", 2) == first
        refused(call("experiment", "ask", place, "ads", "-n", 0), 2, "n")
        refused(call("experiment", "ask", place, "ads", "--lease", 0), 2, "lease must be positive")

    def test_ask_when_there_is_no_capital_left(self, place):
        assert len(told("experiment", "ask", place, "ads", "-n", 500)) == 100
        refused(call("experiment", "ask", place, "ads"), 1, "only 0 of the capital 100 is left")

    def test_fail_and_renew(self, place):
        one, two = (play["id"] for play in told("experiment", "ask", place, "ads", "-n", 2))
        assert done("experiment", "fail", place, "ads", one, "--cost", 0.5) == f"{one}: failed\n"
        assert told("experiment", "fail", place, "ads", one, "--cost", 0.5) == {"play": one, "failed": True}
        assert done("experiment", "renew", place, "ads", two).startswith(f"{two}: leased until 2")
        due = told("experiment", "renew", place, "ads", two, "--lease", 5000)["due"]
        assert abs(due - time.time() - 5000) < 60
        refused(call("experiment", "renew", place, "ads", one), 2, "pending play can be renewed, got Failed")

    def test_status(self, place):
        shown = done("experiment", "status", place, "ads")
        assert "ads (running)" in shown
        assert "0 spent (0.0%), 0 reserved, of 100" in shown
        assert "no result yet" in shown
        for play in told("experiment", "ask", place, "ads", "-n", 3):
            done("experiment", "tell", place, "ads", play["id"], play["arm"] / 2)
        shown = done("experiment", "status", place, "ads", "--top", 1)
        assert "ad-c (arm 2)" in shown
        assert shown.count("ad-c") == 4  # best so far, how sure, and its two rows
        assert "ad-a" not in shown
        record = told("experiment", "status", place, "ads")
        assert (record["results"], record["best_label"], record["lease"]) == ([3, 0], "ad-c", 600)

    def test_pause_and_resume(self, place):
        assert done("experiment", "pause", place, "ads") == "ads: paused\n"
        refused(call("experiment", "ask", place, "ads"), 1, "The experiment is paused")
        assert told("experiment", "resume", place, "ads") == {"name": "ads", "done": "resume"}
        told("experiment", "ask", place, "ads")

    def test_arms(self, place):
        assert done("experiment", "add", place, "ads", "ad-z") == "ads: ad-z is arm 3\n"
        assert told("experiment", "add", place, "ads", "7") == {"arm": 4, "label": "7"}
        refused(call("experiment", "add", place, "ads", "7"), 2, "different names, got '7' twice")
        done("experiment", "retire", place, "ads", "7")  # the label
        done("experiment", "retire", place, "ads", "0")  # the index
        assert told("experiment", "status", place, "ads")["retired"] == [0, 4]
        refused(call("experiment", "retire", place, "ads", "9"), 2, "arm must lie in 0 to 4, got 9")
        refused(call("experiment", "retire", place, "ads", "ad-q"), 2, "the name of an arm, got 'ad-q'")
        for _ in range(3):
            (play,) = told("experiment", "ask", place, "ads")
            done("experiment", "fail", place, "ads", play["id"])
        said = f"WARNING: {play['label']} was set aside after 3 failures in a row; `restore_arm` brings it back"
        assert done("experiment", "status", place, "ads").splitlines()[0] == said
        assert done("experiment", "restore", place, "ads", play["label"]) == f"ads: {play['label']} takes part again\n"
        refused(call("experiment", "restore", place, "ads", play["label"]), 2, "which was not")
        done("experiment", "restore", place, "ads", "0")
        assert told("experiment", "status", place, "ads")["retired"] == [4]

    def test_policy(self, place):
        assert done("experiment", "policy", place, "ads") == "ads: MFUCB(rho=1.0)\n"
        assert done("experiment", "policy", place, "ads", "MFUCB", "--rho", 0.5, "--kl") == (
            "ads: MFUCB(rho=0.5, kl=True)\n"
        )
        assert told("experiment", "policy", place, "ads", "UCB", "--rho=3", "--kl", "false") == {
            "name": "UCB",
            "rho": 3.0,
            "kl": False,
        }
        assert told("experiment", "policy", place, "ads")["name"] == "UCB"
        assert told("experiment", "status", place, "ads")["policy"] == {"name": "UCB", "rho": 3.0, "kl": False}

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["Nobody"], "policy name must be one of"),
            (["MFUCB", "--rhoo", 1], "did you mean rho?"),
            (["MFUCB", "--rho", -1], "rho must be positive"),
            (["MFUCB", "--rho", "much"], "policy rho must be a finite number, got 'much'"),
            (["MFUCB", "--rho", "inf"], "policy rho must be a finite number, got inf"),
            (["MFUCB", 1], "must be given as --field value, got '1'"),
            (["MFTopTwo"], "needs the key capital"),
        ],
    )
    def test_a_policy_that_there_is_not(self, place, words, said):
        refused(call("experiment", "policy", place, "ads", *words), 2, said)
        assert told("experiment", "policy", place, "ads")["name"] == "MFUCB"

    def test_the_capital_of_a_policy_follows_if_it_was_the_same(self, place):
        done("experiment", "policy", place, "ads", "MFTopTwo", "--capital", 100)
        assert done("experiment", "capital", place, "ads", 200) == "ads: capital 200; of MFTopTwo, too\n"
        assert told("experiment", "policy", place, "ads")["capital"] == 200
        done("experiment", "policy", place, "ads", "MFTopTwo", "--capital", 50)
        said = "ads: capital 300; MFTopTwo keeps its own, 50: `experiment policy` changes it\n"
        assert done("experiment", "capital", place, "ads", 300) == said
        assert told("experiment", "capital", place, "ads", "unlimited") == {"capital": None, "policy_capital": 50}

    def test_capital(self, place):
        assert done("experiment", "capital", place, "ads", "2e3") == "ads: capital 2,000\n"
        assert told("experiment", "capital", place, "ads", "unlimited") == {"capital": None}
        for wrong in ("lots", "nan", "inf", "0", "1e999"):
            refused(call("experiment", "capital", place, "ads", wrong), 2)

    def test_notes(self, place):
        assert done("experiment", "note", place, "ads", "hello, wörld") == "ads: noted\n"
        assert done("experiment", "note", place, "ads", "a new picture", "--arm", "1") == "ads: noted\n"
        assert "hello, w" in done("experiment", "export", place, "ads", "--format", "jsonl")
        refused(call("experiment", "note", place, "ads", " "), 2, "must not be empty")

    def test_delete_wants_the_name_again(self, place):
        refused(
            call("experiment", "delete", place, "ads", "--confirm", "ad"),
            2,
            "To delete 'ads', pass --confirm ads",
            "got 'ad'",
        )
        unanswered = call("experiment", "delete", place, "ads", text="")
        assert (unanswered.exit_code, unanswered.stderr) == (130, "\nError: interrupted\n")
        result = call("experiment", "delete", place, "ads", text="no\n")
        assert result.exit_code == 2
        assert "got 'no'" in result.stderr
        assert "ads" in told("experiment", "list", place)
        result = call("experiment", "delete", place, "ads", text="ads\n")
        assert result.exit_code == 0
        assert "everything that was learned. Its name again" in result.output
        assert "ads" not in told("experiment", "list", place)
        refused(call("experiment", "delete", place, "ads", "--confirm", "ads"), 2, "'ads'")

    def test_one_that_is_not_there(self, place):
        for command in ("ask", "status", "pause", "export"):
            refused(call("experiment", command, place, "no-such"), 2, "Experiment not found: 'no-such'", "ads")

    @pytest.mark.parametrize("kind", ["csv", "jsonl"])
    def test_what_was_exported_can_be_imported(self, place, toml, tmp_path, kind):
        plays = told("experiment", "ask", place, "ads", "-n", 4)
        for play in plays[:3]:
            done("experiment", "tell", place, "ads", play["id"], play["arm"] / 2)
        out, other = tmp_path / f"out.{kind}", tmp_path / "other.db"
        done("experiment", "create", other, "new", toml)
        lines = 5 if kind == "csv" else 8
        assert done("experiment", "export", place, "ads", "--out", out) == f"{lines} lines in {out}\n"
        assert out.read_text() == done("experiment", "export", place, "ads", "--format", kind)
        for said in ("3 new results from {}", "0 new results from {}, 3 were there already"):  # the same file again
            assert done("experiment", "import", other, "new", out) == f"new: {said.format(out)}\n"
        record = told("experiment", "status", other, "new")
        assert (record["results"], record["spent"]) == ([3, 0], 3)


class TestCreate:
    def test_says_what_it_made(self, tmp_path, toml):
        shown = done("experiment", "create", tmp_path / "a.db", "ads", toml)
        assert shown.startswith("ads: 3 arms, MFUCB(rho=1.0), in ")
        made = told("experiment", "create", tmp_path / "a.db", "more", toml, "--capital", 50)
        assert made.keys() == {"name", "id"}
        assert told("experiment", "status", tmp_path / "a.db", "more")["capital"] == 50
        refused(call("experiment", "create", tmp_path / "a.db", "ads", toml), 2, "Experiment 'ads' already exists")

    def test_from_a_problem(self, tmp_path):
        (tmp_path / "p.toml").write_text("[problem]\npaper = 3\n")
        done("experiment", "create", tmp_path / "a.db", "ads", tmp_path / "p.toml")
        record = told("experiment", "status", tmp_path / "a.db", "ads")
        assert (record["arms"], record["capital"], record["policy"]["name"]) == (200, None, "MFAuto")

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ('arms = ["ad-a", "ad-b", "ad-c"]', "", "[experiment] needs the key arms"),
            ('arms = ["ad-a", "ad-b", "ad-c"]', "arms = 0", "arms"),
            ('arms = ["ad-a", "ad-b", "ad-c"]', "arms = 1.5", "[experiment] arms must be"),
            ('"ad-b"', '"ad-a"', "different names, got 'ad-a' twice"),
            ("capital = 100", "capital = -1", "capital"),
            ("capital = 100", 'capital = "1"', "[experiment] capital must be a finite number, got '1'"),
            ("capital = 100", "captial = 100", "no key captial; did you mean capital?"),
            ("lease = 600", "lease = -1", "lease must be positive"),
            ("costs = [1, 10]", "", "[fidelities] needs the key costs"),
            ("costs = [1, 10]", "costs = [10, 1]", "costs"),
            ('"MFUCB"', '"Magic"', "got 'Magic'"),
            ("rho = 1", "rho = 0", "rho must be positive"),
            ("[experiment]", "[experimant]", "did you mean experiment?"),
            ("[experiment]", "[experiment", "must be TOML"),
        ],
    )
    def test_mistakes_are_named_and_nothing_is_made(self, tmp_path, old, new, said):
        (tmp_path / "a.toml").write_text(TOML.replace(old, new))
        refused(call("experiment", "create", tmp_path / "a.db", "ads", tmp_path / "a.toml"), 2, said)
        if (tmp_path / "a.db").exists():
            assert told("experiment", "list", tmp_path / "a.db") == []

    @pytest.mark.parametrize("name", ["", "a b", "../a", "-x", "x" * 65, "é"])
    def test_names_that_are_none(self, tmp_path, toml, name):
        refused(call("experiment", "create", "--", tmp_path / "a.db", name, toml), 2, "name must be 1 to 64 letters")

    def test_places_that_are_none(self, tmp_path, toml):
        refused(call("experiment", "create", tmp_path / "no" / "a.db", "ads", toml), 2, "Folder not found")
        refused(call("experiment", "create", tmp_path, "ads", toml), 1, "is a folder, not a store file")
        refused(call("experiment", "create", "mysql://h/d", "ads", toml), 2, "a file or a postgresql:// address")
        refused(
            call("experiment", "create", tmp_path / "a.db", "ads", tmp_path / "no.toml"),
            2,
            f"File not found: {tmp_path / 'no.toml'}",
        )


class TestFiles:
    def test_a_store_that_is_not_there(self, tmp_path):
        for command in ("list", "ask", "status", "delete"):
            words = [tmp_path / "no.db", *(["ads"] if command != "list" else [])]
            more = ["--confirm", "ads"] if command == "delete" else []
            refused(
                call("experiment", command, *words, *more),
                2,
                "Store not found: ",
                "no.db",
                "`mfbandit experiment create` makes one",
            )
        assert not (tmp_path / "no.db").exists()

    def test_a_file_that_is_no_store(self, tmp_path):
        (tmp_path / "a.txt").write_text("hello " * 1000)
        refused(call("experiment", "list", tmp_path / "a.txt"), 1, "a.txt", "is no SQLite database")
        (tmp_path / "empty.db").touch()
        refused(call("experiment", "list", tmp_path / "empty.db"), 1, "empty.db is no mfbandit store")

    def test_no_experiments_yet(self, tmp_path):
        Store(tmp_path / "a.db").close()
        assert done("experiment", "list", tmp_path / "a.db") == "no experiments yet\n"
        assert told("experiment", "list", tmp_path / "a.db") == []

    def test_whoever_holds_a_store_is_named_and_reading_goes_on(self, file):
        with served(file) as service:
            for words in (["ask", file, "ads"], ["pause", file, "ads"], ["delete", file, "ads", "--confirm", "ads"]):
                result = call("experiment", *words)
                refused(result, 1, "open for writing elsewhere: by mfbandit serve", f"process {service.process.pid} on")
            done("experiment", "ask", service.url, "ads")
            assert "1 play\n" in done("experiment", "status", file, "ads")
            assert "pending" in done("experiment", "export", file, "ads")
            assert done("experiment", "list", file) == "ads\n"

    def test_exports_go_where_they_are_told(self, file, tmp_path):
        (play,) = told("experiment", "ask", file, "ads")
        (row,) = csv.DictReader(io.StringIO(done("experiment", "export", file, "ads")))
        assert (row["play"], row["label"], row["outcome"], row["reward"]) == (play["id"], "ad-a", "pending", "")
        out = tmp_path / "o.jsonl"
        out.write_text("old")
        done("experiment", "export", file, "ads", "--out", out)
        assert [json.loads(line)["event"] for line in out.read_text().splitlines()] == ["Opened", "Asked"]
        assert not list(tmp_path.glob(".*"))
        refused(call("experiment", "export", file, "ads", "--format", "xls"), 2, "csv or jsonl, got 'xls'")
        refused(call("experiment", "export", file, "ads", "--out", tmp_path / "o.xls"), 2, "csv or jsonl, got 'xls'")
        refused(call("experiment", "export", file, "ads", "--out", tmp_path / "no" / "o.csv"), 2, "can be written")

    @pytest.mark.parametrize(
        ("name", "text", "said"),
        [
            ("a.csv", "", "header must name arm, fidelity and reward"),
            ("a.csv", "arm,reward\nad-a,1\n", "header must name arm, fidelity and reward"),
            ("a.csv", "arm;fidelity;reward\nad-a;0;1\n", "with commas between, got 'arm;fidelity;reward'"),
            ("a.csv", "arm,fidelity,reward\nad-a,0,0,5\n", "line 2: must have 3 values, as the header has, got more"),
            ("a.csv", "arm,fidelity,reward\nad-a,0,1\nad-q,0,1\n", "line 3: arm must be a name or an index"),
            ("a.csv", "arm,fidelity,reward\nad-a,2,1\n", "line 2: fidelity must be a name or lie in 0 to 1, got '2'"),
            ("a.csv", "arm,fidelity,reward\nad-a,0,x\n", "line 2: reward must be a number, got 'x'"),
            ("a.csv", "arm,fidelity,reward\nad-a,0\n", "line 2: reward must be a number, got None"),
            ("a.csv", "arm,fidelity,reward\nad-a,0,nan\n", "reward must be finite, got nan"),
            ("a.csv", "arm,fidelity,reward,cost\nad-a,0,1,-1\n", "cost must not be negative, got -1"),
            ("a.jsonl", '{"arm": 0, "fidelity": 0, "reward": 1}\n{', "line 2: must be JSON"),
            ("a.jsonl", "[1]\n", "line 1: must be an object"),
            ("a.jsonl", '{"arm": 0, "fidelity": 0, "reward": 1' + "0" * 400 + "}\n", "reward must be a number"),
            ("a.jsonl", '{"event": "Told", "play": [1], "reward": 1}\n', "arm must be a name or an index, got None"),
            ("a.csv", "arm,fidelity,reward\n" + "9" * 5000 + ",0,1\n", "arm must be a name or an index below 3"),
            ("a.jsonl", '{"arm": 3, "fidelity": 0, "reward": 1}\n', "index below 3, got 3"),
            ("a.txt", "arm,fidelity,reward\n", "csv or jsonl, got 'txt'"),
        ],
    )  # fmt: skip
    def test_imports_that_make_no_sense_change_nothing(self, file, tmp_path, name, text, said):
        (tmp_path / name).write_text(text)
        refused(call("experiment", "import", file, "ads", tmp_path / name), 2, said)
        assert told("experiment", "status", file, "ads")["events"] == 0

    def test_imports_with_costs(self, file, tmp_path):
        (tmp_path / "a.csv").write_text("arm,fidelity,reward,cost\nad-a,0,1,0.25\n1,1,0.5,\n")
        assert told("experiment", "import", file, "ads", tmp_path / "a.csv") == {"results": 2, "new": 2}
        assert told("experiment", "status", file, "ads")["spent"] == 10.25
        (tmp_path / "b.csv").write_text("arm,fidelity,reward\nad-a,0,1\n")
        done("experiment", "import", file, "ads", tmp_path / "b.csv", "--cost", 0)
        assert told("experiment", "status", file, "ads")["spent"] == 10.25

    def test_imports_as_spreadsheets_write_them(self, file, tmp_path):
        (tmp_path / "a.csv").write_bytes(
            b"\xef\xbb\xbfarm, fidelity ,reward\r\nad-a,0,1\r\n\r\n,,\r\nad-b,0,0.5\r\n,,\r\n"
        )
        assert told("experiment", "import", file, "ads", tmp_path / "a.csv") == {"results": 2, "new": 2}

    def test_a_file_of_thousands_is_imported_in_parts(self, file, tmp_path):
        rows = "".join(f"ad-{'abc'[i % 3]},0,{i % 2}\n" for i in range(2500))
        (tmp_path / "a.csv").write_text("arm,fidelity,reward\n" + rows)
        done("experiment", "capital", file, "ads", "unlimited")
        done("experiment", "import", file, "ads", tmp_path / "a.csv")
        assert told("experiment", "status", file, "ads")["results"] == [2500, 0]


class TestTokens:
    def test_made_listed_and_revoked(self, tmp_path):
        path = tmp_path / "a.db"
        text = done("token", "create", path, "--name", "ci", "--scope", "read").strip()
        assert text.startswith("mfb_")
        other = told("token", "create", path)
        assert (other["name"], other["scope"]) == ("token", "write")
        assert other["id"] == told("token", "list", path)[1]["id"]
        shown = done("token", "list", path)
        assert text not in shown
        assert "ci" in shown
        assert [one["scope"] for one in told("token", "list", path)] == ["read", "write"]
        assert done("token", "revoke", path, text.split("_")[1]) == f"{text.split('_')[1]}: revoked\n"
        refused(call("token", "revoke", path, text.split("_")[1]), 2, "Token not found")
        refused(call("token", "create", path, "--scope", "root"), 2, "one of read, write, admin, got 'root'")

    def test_a_service_with_tokens_wants_one(self, file):
        token = done("token", "create", file, "--scope", "admin").strip()
        with served(file) as service:
            assert "1 token;" in service.greeting.replace(")", ";")
            refused(call("experiment", "list", service.url), 1, "a token is needed", "set $MFBANDIT_TOKEN")
            wrong = call("experiment", "list", service.url, "--token", "x")
            refused(wrong, 1, "not one of this store's", "$MFBANDIT_TOKEN")
            refused(call("experiment", "ask", service.url, "ads"), 1, "set $MFBANDIT_TOKEN")
            assert done("experiment", "list", service.url, "--token", token) == "ads\n"
            result = CliRunner().invoke(app, ["token", "list", service.url], env={"MFBANDIT_TOKEN": token})
            assert "admin" in result.stdout


class TestServe:
    def test_ctrl_c_ends_it(self, tmp_path):
        with served(tmp_path / "a.db") as service:
            assert service.greeting.startswith(f"mfbandit serves {tmp_path / 'a.db'} at http://127.0.0.1:")
            service.process.send_signal(signal.SIGINT)
            _, said = service.process.communicate(timeout=30)
            assert (service.process.returncode, said) == (0, "")

    def test_another_ctrl_c_does_no_harm(self, tmp_path):
        with served(tmp_path / "a.db") as service:
            service.process.send_signal(signal.SIGINT)
            time.sleep(0.02)  # two at once would be one
            service.process.send_signal(signal.SIGINT)
            _, said = service.process.communicate(timeout=30)
            assert (service.process.returncode, said) == (0, "")

    def test_on_another_address_of_this_machine(self, file):
        with served(file, host="127.0.0.2") as service:
            assert service.url.startswith("http://127.0.0.2:")
            assert done("experiment", "list", service.url) == "ads\n"

    def test_starts_that_are_refused(self, tmp_path):
        refused(call("serve", tmp_path / "a.db", "--host", "0.0.0.0"), 1, "has no token")  # noqa: S104
        refused(call("serve", tmp_path / "no" / "a.db"), 2, "Folder not found")
        assert call("serve", tmp_path / "a.db", "--port", 65536).exit_code == 2
        assert call("serve").exit_code == 2

    def test_a_service_that_is_not_there(self, monkeypatch):
        monkeypatch.setattr("mfbandit.service.transport.MAX_PAUSE_SECONDS", 100.0)
        monkeypatch.setattr("mfbandit.service.transport.FIRST_PAUSE_SECONDS", 100.0)
        refused(call("experiment", "list", "http://127.0.0.1:1"), 1, "http://127.0.0.1:1 cannot be reached")


class TestDoctor:
    def test_of_this_machine(self):
        assert "SQLite: " in done("doctor")

    def test_of_a_good_store(self, file):
        told("experiment", "ask", file, "ads", "-n", 3)
        shown = done("doctor", file)
        assert "good   experiment ads: 4 events, each as it was written" in shown
        assert "wrong" not in [one["mark"] for one in told("doctor", file)]

    def test_of_a_store_in_use(self, file):
        with served(file):
            assert "experiment ads: 0 events" in done("doctor", file)

    def test_of_a_log_that_was_changed(self, file):
        told("experiment", "ask", file, "ads", "-n", 3)
        connection = sqlite3.connect(file)
        connection.execute("UPDATE mfbandit_log SET arm = 2 WHERE seq = 1")
        connection.commit()
        connection.close()
        result = call("doctor", file)
        assert result.exit_code == 1
        assert "wrong  experiment ads" in result.stdout
        assert result.stderr == ""

    def test_of_what_is_no_store(self, tmp_path):
        (tmp_path / "a.txt").write_text("hello " * 1000)
        for path in (tmp_path / "a.txt", tmp_path / "no.db", tmp_path / "no" / "a.db"):
            result = call("doctor", path)
            assert result.exit_code == 1
            assert "wrong" in result.stdout
            assert "Traceback" not in result.output


class TestAudit:
    def test_biases_that_do_not_hold_are_told_and_changed(self, tmp_path):
        path = tmp_path / "a.db"
        (tmp_path / "a.toml").write_text(
            '[experiment]\narms = ["honest", "bait"]\n[fidelities]\ncosts = [1, 10]\nbiases = [0.1, 0]\nscale = 0.1\n'
        )
        done("experiment", "create", path, "ads", tmp_path / "a.toml")
        assert "fidelity" in done("experiment", "audit", path, "ads")
        (tmp_path / "a.csv").write_text("arm,fidelity,reward\n" + "bait,0,0.9\nbait,1,0.3\n" * 20)
        done("experiment", "import", path, "ads", tmp_path / "a.csv")
        assert done("experiment", "status", path, "ads").startswith(
            "WARNING: bias 0.1 of fidelity 0 is too small: bait"
        )
        found = told("experiment", "audit", path, "ads")
        assert found["alarm"]
        assert found["fidelities"][0]["refuting"] == [1]
        assert done("experiment", "biases", path, "ads", "0.7,0") == "ads: biases 0.7, 0\n"
        assert not told("experiment", "audit", path, "ads")["alarm"]
        refused(call("experiment", "biases", path, "ads", "0.7"), 2, "biases must")
        refused(call("experiment", "biases", path, "ads", "x,0"), 2, "a bias must be a number, got 'x'")


class TestConfidence:
    def test_it_says_how_sure_it_is_and_who_may_be_better(self, tmp_path):
        path = tmp_path / "a.db"
        (tmp_path / "a.toml").write_text(
            '[experiment]\narms = ["good", "near", "bad"]\n[fidelities]\ncosts = [1]\nscale = 0.1\n'
        )
        done("experiment", "create", path, "ads", tmp_path / "a.toml")
        refused(call("experiment", "confidence", path, "ads"), 1, "There is no result of an active arm yet")
        assert "confidence " not in done("experiment", "status", path, "ads")
        (tmp_path / "a.csv").write_text("arm,fidelity,reward\n" + "good,0,0.9\nnear,0,0.88\nbad,0,0.3\n" * 9)
        done("experiment", "import", path, "ads", tmp_path / "a.csv")
        found = told("experiment", "confidence", path, "ads", "--level", "0.9")
        assert (found["best"], found["label"], found["rivals"], found["at_level"]) == (0, "good", [1], 0.9)
        assert 0 < found["could_lose"] == found["could_be_ahead"][0] < 0.2
        text = done("experiment", "confidence", path, "ads", "--level", "0.9")
        assert text.startswith(f"{found['sentence']}\n- Noise is sub-Gaussian with a scale of at most 0.1.\n")
        assert "near" in text.splitlines()[-1]
        sentence = told("experiment", "confidence", path, "ads")["sentence"]
        assert f"confidence   {sentence}\n" in done("experiment", "status", path, "ads")
        refused(call("experiment", "confidence", path, "ads", "--level", "95"), 2, "level must lie strictly between")


@pytest.mark.parametrize("command", [["serve", "a.db"], ["demo"]])
def test_an_extra_that_is_missing_is_named(tmp_path, command):
    code = "import sys; sys.modules['uvicorn'] = None; from mfbandit.cli.main import app; app(sys.argv[1:])"
    ended = subprocess.run(
        [sys.executable, "-c", code, *command], check=False, capture_output=True, text=True, cwd=tmp_path
    )
    assert ended.returncode == 1
    assert ended.stderr == "Error: the service needs uvicorn: pip install 'mfbandit[service]'\n"
    assert not list(tmp_path.iterdir())


def test_a_client_without_its_extra_is_told(tmp_path):
    code = "import sys; sys.modules['httpx'] = None; from mfbandit.cli.main import app; app(sys.argv[1:])"
    words = ["experiment", "list", "http://127.0.0.1:9"]
    ended = subprocess.run(
        [sys.executable, "-c", code, *words], check=False, capture_output=True, text=True, cwd=tmp_path
    )
    assert (ended.returncode, "pip install 'mfbandit[service]'" in ended.stderr) == (1, True)
    assert "Traceback" not in ended.stderr
