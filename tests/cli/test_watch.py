"""Watching and comparing from the command line, in a terminal and elsewhere, on a store and at a service."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from itertools import islice

import pytest

import mfbandit as mfb
from mfbandit.cli.watch import line_of, looks
from tests.support.commands import call, done, refused, strict, told
from tests.support.services import Service, served
from tests.support.stores import make, play_some

FID = mfb.Fidelities([1, 10], [0.1, 0], mfb.Bounded(0, 1))
ROWS, COLUMNS = 40, 100
PATIENCE_SECONDS = 60


@pytest.fixture
def path(tmp_path):
    """A store with an experiment whose capital is spent: nothing more will happen."""
    with mfb.Store(tmp_path / "ads.db") as store:
        ads = store.create("ads", mfb.MFUCB(), arms=["red", "green", "7"], fidelities=FID, capital=200)
        with mfb.acting_as("crew 7"):
            for play in ads.plays():
                ads.tell(play, float(play.arm == 1))
    return str(tmp_path / "ads.db")


class Terminal:
    """A command in a terminal of its own; what it draws can be read."""

    def __init__(self, *words, rows=ROWS, **environment):
        own, other = pty.openpty()
        size = {"LINES": str(rows), "COLUMNS": str(COLUMNS), "TERM": "xterm", **environment}
        command = [sys.executable, "-m", "mfbandit", *map(str, words)]
        self.process = subprocess.Popen(
            command, stdin=other, stdout=other, stderr=other, env=os.environ | size, start_new_session=True
        )
        os.close(other)
        self._own, self.seen = own, ""

    def read_until(self, *said):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not all(words in self.seen for words in said):
            assert time.monotonic() < deadline, self.seen
            if not self._read():
                break
        assert all(words in self.seen for words in said), self.seen

    def _read(self):
        if not select.select([self._own], [], [], 0.2)[0]:
            return True
        try:
            self.seen += os.read(self._own, 65536).decode(errors="replace")
        except OSError:  # it has ended, and everything was read
            return False
        return True

    def ended(self):
        while self._read():
            pass
        os.close(self._own)
        return self.process.wait(PATIENCE_SECONDS)


class TestWatch:
    def test_one_that_has_ended_is_a_line(self, path):
        line = done("experiment", "watch", path, "ads")
        assert line.count("\n") == 1
        assert "exhausted, spent 2" in line
        assert "best green. " in line
        assert "sure that green is the best" in line

    def test_for_programs_it_is_an_object_with_the_confidence(self, path):
        found = strict(done("experiment", "watch", path, "ads", "--json"))
        assert (found["state"], found["best_label"], found["trouble"]) == ("exhausted", "green", None)
        assert found["confidence"]["label"] == "green"

    def test_at_a_service_it_says_the_same(self, path):
        with served(path) as service:
            remote = strict(done("experiment", "watch", service.url, "ads", "--json"))
        local = strict(done("experiment", "watch", path, "ads", "--json"))
        assert {**remote, "at": 0} == {**local, "at": 0}

    def test_what_another_process_writes_is_seen(self, tmp_path):
        path = tmp_path / "store.db"
        with mfb.Store(path) as store, mfb.Store(path, read_only=True) as reader:
            experiment = make(store)

            def meanwhile(_):
                if experiment.events < 10:
                    play_some(experiment, 2)

            found = list(islice(looks(reader.open("exp"), 3, 1.0, meanwhile), 6))
        assert [sum(look.status["results"]) for look in found[:3]] == [0, 2, 4]
        assert found[-1].status == found[-2].status
        assert found[0].confidence is None
        assert "best" not in line_of(found[0])
        assert found[-1].arms.startswith("The recommended arm")

    def test_an_outage_is_said_and_ends(self, tmp_path):
        path = tmp_path / "store.db"
        with mfb.Store(path) as store:
            play_some(make(store), 3)
        services = [Service(path)]
        with mfb.connect(services[0].url) as remote:
            experiment = remote.open("exp").with_patience(1.0)
            steps = iter(
                [
                    services[-1].stop,
                    lambda: services.append(Service(path, options=["--port", services[0].url.rpartition(":")[2]])),
                    lambda: None,
                ]
            )
            found = list(islice(looks(experiment, 0, 1.0, lambda _: next(steps)()), 4))
        services[-1].stop()
        assert [bool(look.trouble) for look in found] == [False, True, False, False]
        assert found[1].status == found[0].status
        assert found[1].trouble in line_of(found[1])

    def test_in_a_terminal_it_is_a_view_that_ctrl_c_ends(self, tmp_path):
        path = tmp_path / "store.db"
        with mfb.Store(path) as store:
            play_some(make(store, arms=["x" * 64, "b", "c"]), 30)
        screen = Terminal("experiment", "watch", path, "exp", "--every", "0.2")
        screen.read_until("experiment   exp (running)", "The recommended arm", "░", "Ctrl-C ends the view")
        screen.process.send_signal(signal.SIGINT)
        assert screen.ended() == 0
        assert "Traceback" not in screen.seen
        assert "Error" not in screen.seen

    def test_in_a_terminal_the_last_look_stays_when_it_has_ended(self, path):
        screen = Terminal("experiment", "watch", path, "ads", rows=24)
        screen.read_until("ads (exhausted)", "green", "nothing more will happen by itself")
        assert screen.ended() == 0

    def test_an_unknown_one_is_refused(self, path):
        refused(call("experiment", "watch", path, "none"), "Experiment not found: 'none'")


class TestCompare:
    def test_by_names_and_by_indices(self, path):
        text = done("experiment", "compare", path, "ads", "green", "red")
        assert " sure that green is better than red (valid whenever you look)" in text
        assert "The two arms (confidence bounds):" in text
        assert text.count("\ngreen ") == text.count("\nred ") == 2
        by_name = told("experiment", "compare", path, "ads", "green", "red")
        assert told("experiment", "compare", path, "ads", "1", "0") == by_name
        assert by_name["better"] == 1
        assert -1 <= by_name["low"] <= by_name["high"] <= 1

    def test_a_name_that_is_a_number_is_the_name(self, path):
        assert told("experiment", "compare", path, "ads", "7", "0")["first"] == 2

    def test_at_a_service_it_is_the_same(self, path):
        words = ("ads", "green", "7", "--level", "0.8")
        with served(path) as service:
            remote = told("experiment", "compare", service.url, *words)
        assert remote == told("experiment", "compare", path, *words)

    @pytest.mark.parametrize("pair", [("green", "green"), ("green", "1"), ("green", "blue"), ("green", "3")])
    def test_two_arms_are_needed(self, path, pair):
        refused(call("experiment", "compare", path, "ads", *pair), "arm")

    def test_the_level_lies_between_0_and_1(self, path):
        refused(call("experiment", "compare", path, "ads", "green", "red", "--level", "95"), "level must lie strictly")


class TestLog:
    def test_the_latest_events_and_who_asked_for_them(self, path):
        events = told("experiment", "log", path, "ads", "--limit", "2")
        assert [one["event"] for one in events] == ["Asked", "Told"]
        lines = done("experiment", "log", path, "ads", "--limit", "2").splitlines()
        assert len(lines) == 3
        assert "  crew 7  Told play=" in lines[-1]

    def test_a_page_says_how_to_go_on(self, path):
        pages, after = [], 0
        while True:
            lines = done("experiment", "log", path, "ads", "--after", after, "--limit", "30").splitlines()
            pages += lines[1:31]
            if " more: --after " not in lines[-1]:
                break
            after = int(lines[-1].rpartition(" ")[2])
        with mfb.Store(path, read_only=True) as store:
            assert len(pages) == store.open("ads").events
        assert done("experiment", "log", path, "ads", "--after", "999999") == "no events\n"

    def test_at_a_service_it_is_the_same(self, path):
        with served(path) as service:
            remote = done("experiment", "log", service.url, "ads")
        assert remote == done("experiment", "log", path, "ads")


class TestLongListings:
    @pytest.fixture
    def many(self, tmp_path):
        with mfb.Store(tmp_path / "many.db") as store:
            for number in range(30):
                make(store, f"e{number}")
        return tmp_path / "many.db"

    @pytest.mark.parametrize(("rows", "paged"), [(20, True), (40, False)])
    def test_page_in_a_terminal_that_they_are_too_long_for(self, many, rows, paged):
        screen = Terminal("experiment", "list", many, rows=rows, PAGER="sed s/^/paged:/")
        assert screen.ended() == 0
        assert screen.seen.count("paged:e") == 30 * paged
        assert "e29" in screen.seen

    def test_are_whole_elsewhere(self, many):
        assert done("experiment", "list", many).splitlines() == [f"e{number}" for number in range(30)]


@pytest.mark.parametrize(
    ("words", "due"), [("mfbandit experiment wa", "watch"), ("mfbandit expe", "experiment"), ("mfbandit serv", "serve")]
)
def test_shells_complete_commands(words, due):
    asked = {"_MFBANDIT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    script = os.path.join(os.path.dirname(sys.executable), "mfbandit")
    found = subprocess.run([script], env=os.environ | asked, capture_output=True, text=True, check=False).stdout
    assert due in found.split()
