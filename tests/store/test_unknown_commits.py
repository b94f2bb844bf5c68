"""Commits that fail: whether they were kept is unknown, until the state is read again from the disk."""

import subprocess
import sys
import threading

import pytest

from mfbandit import OutcomeUnknown, Store, StoreUnavailable
from mfbandit.experiment.events import Asked, Noted, Opened, Told
from mfbandit.service.problem_details import error_of, problem_of
from tests.support.stores import make, play_some, seen


class FailingCommits:
    """A connection whose commits fail, before they are made or after."""

    def __init__(self, inner, *, kept):
        self._inner, self._kept = inner, kept

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def run(self, sql, values=()):
        if sql == "COMMIT":
            if self._kept:
                self._inner.run(sql)
            raise StoreUnavailable("the disk does not answer")
        return self._inner.run(sql, values)


def break_commits(store, monkeypatch, *, kept):
    monkeypatch.setattr(store.writer(), "_connection", FailingCommits(store.writer()._connection, kept=kept))


class TestCommitsThatFail:
    def test_the_answer_says_that_it_is_unknown(self, place, monkeypatch):
        with Store(place) as store:
            experiment = make(store)
            break_commits(store, monkeypatch, kept=False)
            with pytest.raises(OutcomeUnknown, match="the disk does not answer; whether this was kept is unknown"):
                experiment.note("hello")
            with pytest.raises(OutcomeUnknown, match="read the state again, or repeat the request with the same key"):
                make(store, "another")

    def test_what_was_kept_all_the_same_is_found_and_told_to_repetitions(self, place, monkeypatch):
        with Store(place) as store:
            experiment = make(store)
            play = experiment.ask()
            with monkeypatch.context() as patch:
                break_commits(store, patch, kept=True)
                with pytest.raises(OutcomeUnknown):
                    experiment.tell(play, 0.5)
                assert experiment.spent == 1
                with pytest.raises(OutcomeUnknown):
                    experiment.ask(2, request_key="k")
                assert experiment.pending_count == 2
                experiment.tell(play, 0.5)  # needs no write: it is known to be kept
                again = experiment.ask(2, request_key="k")
            assert list(experiment.pending) == again
            kinds = [type(event) for event in experiment.log if not isinstance(event, Opened)]
            assert kinds == [Asked, Told, Asked, Asked]
            experiment.tell(again[0], 0.5)
            after = seen(experiment)
        with Store(place) as store:
            assert seen(store.open("exp")) == after

    def test_what_was_not_kept_is_gone_and_can_be_repeated(self, place, monkeypatch):
        with Store(place) as store:
            experiment = make(store)
            play_some(experiment, 3)
            play, before = experiment.ask(), seen(experiment)
            with monkeypatch.context() as patch:
                break_commits(store, patch, kept=False)
                with pytest.raises(OutcomeUnknown):
                    experiment.tell(play, 0.5)
            assert seen(experiment) == before
            experiment.tell(play, 0.5)
            after = seen(experiment)
        with Store(place) as store:
            assert seen(store.open("exp")) == after

    def test_an_experiment_that_may_have_been_made_is_made_once(self, place, monkeypatch):
        with Store(place) as store:
            with monkeypatch.context() as patch:
                break_commits(store, patch, kept=True)
                with pytest.raises(OutcomeUnknown):
                    make(store, request_key="k")
            assert make(store, request_key="k").name == "exp"
            assert store.list() == ("exp",)


def test_a_failure_before_the_commit_keeps_nothing_and_says_no_more(tmp_path, monkeypatch):
    with Store(tmp_path / "store.db") as store:
        experiment = make(store)

        def full(*_):
            raise StoreUnavailable("no space left")

        monkeypatch.setattr("mfbandit.store.writer._append_all", full)
        with pytest.raises(StoreUnavailable, match="no space left") as caught:
            experiment.note("hello")
        assert not isinstance(caught.value, OutcomeUnknown)
        monkeypatch.undo()
        assert experiment.log == ()


def test_a_file_that_may_not_grow_fails_at_the_commit(tmp_path):
    """A real fault: the operating system refuses what the commit writes to the write-ahead log."""
    code = (
        "import resource, sys\n"
        "from mfbandit import OutcomeUnknown, Store\n"
        "from tests.support.stores import make\n"
        "with Store(sys.argv[1]) as store:\n"
        "    experiment = make(store)\n"
        "    play = experiment.ask()\n"
        "    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))\n"
        "    try: experiment.tell(play, 0.5)\n"
        "    except OutcomeUnknown as error: print(error)\n"
        "    print(experiment.spent)\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))\n"
        "    experiment.tell(play, 0.5)\n"
        "    print(experiment.spent)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "store.db")]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    said, *spent = ended.stdout.splitlines()
    assert "whether this was kept is unknown" in said
    assert spent == ["0.0", "1.0"]


def test_those_who_wait_for_the_same_thing_are_told_the_same(tmp_path, monkeypatch):
    with Store(tmp_path / "store.db") as store:
        experiment = make(store)
        play = experiment.ask()
        go_on, at_work, errors = threading.Event(), threading.Event(), []
        inner = store.writer()._connection

        class Slow(FailingCommits):
            def run(self, sql, values=()):
                if sql == "COMMIT":
                    at_work.set()
                    go_on.wait(timeout=30)
                return super().run(sql, values)

        def tell():
            try:
                experiment.tell(play, 0.5)
            except StoreUnavailable as error:
                errors.append(type(error))

        monkeypatch.setattr(store.writer(), "_connection", Slow(inner, kept=True))
        threads = [threading.Thread(target=tell) for _ in range(3)]
        threads[0].start()
        at_work.wait(timeout=30)
        for thread in threads[1:]:
            thread.start()
        threads[1].join(timeout=0.1)
        go_on.set()
        for thread in threads:
            thread.join(timeout=30)
        assert errors == [OutcomeUnknown] * 3
        monkeypatch.undo()
        experiment.tell(play, 0.5)
        assert sum(isinstance(event, Told) for event in experiment.log) == 1


def test_over_http_it_is_a_problem_of_its_own():
    problem = problem_of(OutcomeUnknown("the disk does not answer"))
    assert problem is not None
    assert (problem.kind, problem.status, problem.headers) == ("outcome-unknown", 503, {"retry-after": "1"})
    assert isinstance(error_of(problem.record), OutcomeUnknown)
    assert isinstance(error_of(problem.record), StoreUnavailable)


def test_a_note_behind_a_failed_commit_can_be_written_again(tmp_path, monkeypatch):
    with Store(tmp_path / "store.db") as store:
        experiment = make(store)
        with monkeypatch.context() as patch:
            break_commits(store, patch, kept=True)
            with pytest.raises(OutcomeUnknown):
                experiment.note("once", request_key="k")
        experiment.note("once", request_key="k")
        assert experiment.log == (Noted("once"),)
