"""Experiments do not wait for each other: each has a lock of its own, and the writer's is held for moments."""

import random
import threading
import time

import pytest

from mfbandit import MFUCB, Store, StoreUnavailable
from mfbandit.experiment import Experiment
from mfbandit.experiment.events import Asked, Told
from mfbandit.store import log_reader, logged_experiment, writer
from tests.support.stores import FID, make, play_some, seen

HELD_SECONDS = 300.0  # what is made to wait does so for as long, unless it is let go


class Held:
    """A policy whose next choice waits until it is let go."""

    def __init__(self, monkeypatch):
        self.waiting, self.go_on, choose = threading.Event(), threading.Event(), MFUCB.choose

        def slow(policy, stats, fidelities):
            if policy.rho == 7:
                self.waiting.set()
                self.go_on.wait(timeout=HELD_SECONDS)
            return choose(policy, stats, fidelities)

        monkeypatch.setattr(MFUCB, "choose", slow)


def in_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.fixture
def short_wait():
    """What must not wait is done long before this."""
    return 100.0


def test_a_long_ask_holds_up_its_own_experiment_alone(tmp_path, monkeypatch, short_wait):
    with Store(tmp_path / "store.db") as store:
        busy, other = make(store, "busy"), make(store, "other")
        busy.set_policy(MFUCB(rho=7))
        held = Held(monkeypatch)
        asking = in_thread(busy.ask)
        held.waiting.wait(timeout=HELD_SECONDS)
        done = in_thread(lambda: [play_some(other, 5), other.status(), make(store, "third").ask(), store.list()])
        done.join(timeout=short_wait)
        assert not done.is_alive()
        store.delete("other", confirm="other")
        assert asking.is_alive()
        held.go_on.set()
        asking.join(timeout=HELD_SECONDS)
        assert busy.pending_count == 1


def slow_reading(monkeypatch, name):
    """Let whoever reads that experiment's log wait: (set when somebody does, to be set to let them go on)."""
    waiting, go_on, read = threading.Event(), threading.Event(), log_reader.read_all

    def slow(connection, of):
        if of.name == name:
            waiting.set()
            go_on.wait(timeout=HELD_SECONDS)
        return read(connection, of)

    monkeypatch.setattr(logged_experiment, "read_all", slow)
    return waiting, go_on


def test_opening_one_does_not_hold_up_opening_another(tmp_path, monkeypatch, short_wait):
    with Store(tmp_path / "store.db") as store:
        make(store, "long")
        make(store, "other")
    with Store(tmp_path / "store.db") as store:
        waiting, go_on = slow_reading(monkeypatch, "long")
        found = []
        opening = [in_thread(lambda: found.append(store.open("long"))) for _ in range(2)]
        waiting.wait(timeout=HELD_SECONDS)
        done = in_thread(lambda: [play_some(store.open("other"), 5), make(store, "new")])
        done.join(timeout=short_wait)
        assert not done.is_alive()
        go_on.set()
        for thread in opening:
            thread.join(timeout=HELD_SECONDS)
        assert found[0] is found[1]


def test_reading_again_after_a_failure_holds_up_one_experiment_alone(tmp_path, monkeypatch, short_wait):
    with Store(tmp_path / "store.db") as store:
        long, other = make(store, "long"), make(store, "other")
        with monkeypatch.context() as patch:
            patch.setattr(writer, "_append_all", lambda *_: _refuse())
            with pytest.raises(StoreUnavailable):
                long.note("not kept")
        waiting, go_on = slow_reading(monkeypatch, "long")
        reading = in_thread(long.status)
        waiting.wait(timeout=HELD_SECONDS)
        done = in_thread(lambda: play_some(other, 5))
        done.join(timeout=short_wait)
        assert not done.is_alive()
        go_on.set()
        reading.join(timeout=HELD_SECONDS)


def _refuse():
    raise StoreUnavailable("no space left")


def test_work_that_stands_on_a_failed_group_is_refused(tmp_path, monkeypatch):
    """The group fails while a verb is at work on a state that had it: its events must not follow what is not there."""
    with Store(tmp_path / "store.db") as store:
        experiment, other = make(store), make(store, "other")
        experiment.set_policy(MFUCB(rho=7))
        experiment.tell_many([])
        held, errors = Held(monkeypatch), []

        def ask():
            try:
                experiment.ask()
            except StoreUnavailable as error:
                errors.append(str(error))

        asking = in_thread(ask)
        held.waiting.wait(timeout=HELD_SECONDS)
        with monkeypatch.context() as patch:
            patch.setattr(writer, "_append_all", lambda *_: _refuse())
            with pytest.raises(StoreUnavailable, match="no space left"):
                other.note("fails")
        held.go_on.set()
        asking.join(timeout=HELD_SECONDS)
        assert errors == [f"{store.name}: a write before this one failed, and this one was not made: try again"]
        assert experiment.pending_count == 0
        assert experiment.ask().arm == 0
        assert [type(event) for event in experiment.log].count(Asked) == 1


@pytest.mark.parametrize("seed", range(3))
def test_many_threads_on_many_experiments_while_commits_fail(place, monkeypatch, seed):
    """What was acknowledged is in the log once, and memory is what the log leads to, to the last bit."""
    rng, inner = random.Random(seed), writer._append_all

    def unreliable(connection, appends):
        inner(connection, appends)
        if rng.random() < 0.15:
            raise StoreUnavailable("a fault")

    kept: dict[str, list[str]] = {f"e{i}": [] for i in range(4)}
    with Store(place) as store:
        for name in kept:
            make(store, name, arms=6)
        monkeypatch.setattr(writer, "_append_all", unreliable)

        def work(name, number):
            for turn in range(15):
                key = f"{number}-{turn}"
                play = _until_kept(lambda key=key: store.open(name).ask(request_key=key))
                _until_kept(lambda play=play, turn=turn: store.open(name).tell(play, turn % 5 / 5))
                kept[name].append(play.id)

        threads = [in_thread(lambda n=name, i=i: work(n, i)) for name in kept for i in range(3)]
        for thread in threads:
            thread.join(timeout=HELD_SECONDS)
        monkeypatch.undo()
        assert {name: len(ids) for name, ids in kept.items()} == dict.fromkeys(kept, 45)
        states = {name: seen(store.open(name)) for name in kept}
        for name, ids in kept.items():
            experiment = store.open(name)
            told = [event.play for event in experiment.log if isinstance(event, Told)]
            assert sorted(told) == sorted(int(play.rpartition("-")[2]) for play in ids)
            assert seen(Experiment.from_json(experiment.to_json())) == states[name]
    with Store(place) as store:
        assert {name: seen(store.open(name)) for name in kept} == states


def _until_kept(verb):
    end = time.monotonic() + HELD_SECONDS
    while True:
        try:
            return verb()
        except StoreUnavailable:
            assert time.monotonic() < end
            time.sleep(0.001)


def test_plays_are_those_of_memory_whoever_else_is_at_work(tmp_path):
    with Store(tmp_path / "store.db") as store:
        one = make(store, "one")
        noise = in_thread(lambda: play_some(make(store, "two"), 50))
        plain = Experiment(MFUCB(rho=0.5), arms=list(one.arms), fidelities=FID)
        for turn in range(50):
            play, same = one.ask(), plain.ask()
            assert (play.arm, play.fidelity) == (same.arm, same.fidelity)
            one.tell(play, turn % 3 / 3)
            plain.tell(same, turn % 3 / 3)
        noise.join(timeout=HELD_SECONDS)
