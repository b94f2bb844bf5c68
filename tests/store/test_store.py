"""Stores in a SQLite file and in PostgreSQL: what was acknowledged is there, whatever happens in between."""

import json
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfbandit import (
    MFUCB,
    Bounded,
    Conflict,
    Experiment,
    ExperimentPaused,
    Fidelities,
    Play,
    Store,
    StoreError,
    SubGaussian,
    UnknownExperiment,
    UnknownPlay,
    check_experiment,
)
from mfbandit.experiment import AnyExperiment
from mfbandit.experiment.events import (
    Asked,
    CapitalSet,
    Noted,
    Opened,
    Paused,
    Resumed,
    Told,
)
from mfbandit.store.sqlite import SQLite
from tests.support.effort import examples
from tests.support.objectives import play_number
from tests.support.stores import Clock, make, play_some


class TestContract:
    def test_stored_experiments_keep_it(self, place):
        made = 0

        def next_one(policy, arms, fidelities, capital):
            nonlocal made
            made += 1
            return store.create(f"e{made}", policy, arms=arms, fidelities=fidelities, capital=capital)

        with Store(place) as store:
            check_experiment(next_one)

    @pytest.mark.slow
    @pytest.mark.no_cover
    def test_also_when_closed_and_opened_before_every_call(self, tmp_path):
        """Whatever a stored experiment knows is on disk."""
        made = 0

        class Forgetful:
            def __init__(self, policy, arms, fidelities, capital):
                nonlocal made
                made += 1
                self.path, self.name = tmp_path / "store.db", f"e{made}"
                with Store(self.path) as store:
                    store.create(self.name, policy, arms=arms, fidelities=fidelities, capital=capital)

            def __getattr__(self, name):
                if isinstance(getattr(AnyExperiment, name), property):
                    with Store(self.path) as store:
                        return getattr(store.open(self.name), name)

                def call(*args, **options):
                    with Store(self.path) as store:
                        experiment = store.open(self.name)
                        result = getattr(experiment, name)(*args, **options)
                        result = list(result) if name == "plays" else result
                        return self if result is experiment else result

                return call

        check_experiment(Forgetful)


@settings(max_examples=examples(40))
@given(
    st.integers(1, 5),
    st.integers(1, 3),
    st.booleans(),
    st.lists(
        st.tuples(st.sampled_from(["ask", "ask", "ask", "tell", "tell", "fail", "reopen", "wait"]), st.integers(0, 99)),
        max_size=60,
    ),
)
def test_same_plays_as_in_memory(tmp_path_factory, arms, levels, bernoulli, steps):
    """Play by play, for the same results, through reopenings and leases that run out."""
    clock = Clock()
    path = tmp_path_factory.mktemp("same") / "store.db"
    fid = Fidelities(
        [3.0**m for m in range(levels)],
        [*[0.5**m for m in range(1, levels)], 0.0],
        Bounded(0, 1) if bernoulli else SubGaussian(0.3),
    )
    store = Store(path, clock=clock)
    ours, plain = make(store, arms=arms, fidelities=fid, lease=10), Experiment(MFUCB(0.5), arms=arms, fidelities=fid)
    waiting: list[tuple[Play, Play]] = []
    for verb, number in steps:
        clock.now += 21 if verb == "wait" else 1
        ours.expire()  # as the next ask would
        there = {play.id for play in ours.pending}
        for _, theirs in [pair for pair in waiting if pair[0].id not in there]:
            plain.expire(play_number(theirs))
        waiting = [pair for pair in waiting if pair[0].id in there]
        if verb == "reopen":
            store.close()
            store = Store(path, clock=clock)
            ours = store.open("exp")
        elif verb == "ask" or not (waiting or verb == "wait"):
            if plain.state != "running":
                break
            waiting.append((ours.ask(), plain.ask()))
            assert (waiting[-1][0].arm, waiting[-1][0].fidelity) == (waiting[-1][1].arm, waiting[-1][1].fidelity)
            ours.renew(waiting[-1][0], lease=1e6)
            ours.renew(waiting[-1][0])
        elif verb != "wait":
            play, theirs = waiting.pop(number % len(waiting))
            reward = float(number % 2) if bernoulli else number / 100
            for experiment, one in ((ours, play), (plain, theirs)):
                experiment.tell(one, reward) if verb == "tell" else experiment.fail(one)
    assert [getattr(ours.stats, x).tolist() for x in ("counts", "sums", "squares")] == [
        getattr(plain.stats, x).tolist() for x in ("counts", "sums", "squares")
    ]
    store.close()


class TestEvents:
    def test_pausing(self, place):
        with Store(place) as store:
            experiment = make(store)
            play = experiment.ask()
            experiment.pause()
            experiment.pause()
            with pytest.raises(ExperimentPaused, match="The experiment is paused"):
                experiment.ask()
            experiment.tell(play, 0.5)
            experiment.resume()
            experiment.resume()
            experiment.ask()
            assert [type(event) for event in experiment.log] == [Opened, Asked, Paused, Told, Resumed, Asked]

    def test_each_has_a_time(self, tmp_path, clock):
        with Store(tmp_path / "store.db", clock=clock) as store:
            experiment = make(store)
            experiment.note("first")
            clock.now += 5
            experiment.note("second")
            assert [(record.seq, record.time) for record in experiment.records()] == [(1, 1000.0), (2, 1005.0)]
            assert [record.seq for record in experiment.records(after=1)] == [2]
            assert [record.seq for record in experiment.page(0, 1)] == [1]

    def test_capital(self, place):
        with Store(place) as store:
            experiment = make(store, capital=2)
            experiment.ask(2)
            assert experiment.state == "exhausted"
            with pytest.raises(ValueError, match="capital must cover the 2 that is spent or reserved already, got 1"):
                experiment.set_capital(1)
            experiment.set_capital(3)
            experiment.set_capital(3)
            experiment.ask()
            experiment.set_capital(None)
            assert [event for event in experiment.log if isinstance(event, CapitalSet)] == [
                CapitalSet(3.0),
                CapitalSet(None),
            ]

    def test_results_from_elsewhere_are_taken_together_or_not_at_all(self, place):
        with Store(place) as store:
            experiment = make(store)
            for bad in [("x", 0, 0.5, None), ("a", 3, 0.5, None), ("a", 0, float("nan"), None), ("a", 0, 0.5, -1)]:
                with pytest.raises(ValueError, match=r"must"):
                    experiment.add_results([("a", 0, 0.5, None), bad])
            assert experiment.events == 0
            experiment.add_results([("b", 1, 0.5, None), ("b", 0, 0.5, 0.0)])
            assert (experiment.spent, experiment.results_at) == (5.0, [1, 1, 0])
            assert experiment.ask().label == "a"

    def test_many_results_are_taken_together_or_not_at_all(self, place):
        with Store(place) as store:
            experiment = make(store)
            one, two = experiment.ask(2)
            with pytest.raises(UnknownPlay):
                experiment.tell_many([(one, 0.5, None), ("nobody-0", 0.5, None)])
            with pytest.raises(Conflict, match="was told twice"):
                experiment.tell_many([(one, 0.5, None), (one, 0.6, None)])
            assert experiment.events == 3
            experiment.tell_many([(one, 0.5, None), (one, 0.5, None), (two, 0.25, 2.0)])
            assert experiment.spent == 3.0

    def test_what_is_handed_in_may_be_made_on_the_way(self, tmp_path):
        """Plays are asked for while results are collected: that must not wait for a disk that waits for it."""
        store = Store(tmp_path / "store.db")
        exp = make(store, capital=40)

        def work():
            exp.tell_many((play, 0.5, None) for play in exp.plays())
            exp.set_capital(None)
            exp.renew_many(exp.ask() for _ in range(2))
            exp.fail_many(exp.ask() for _ in range(2))
            exp.add_results((exp.ask().arm, 0, 0.5, 0.0) for _ in range(2))

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(timeout=30)
        assert not thread.is_alive()
        assert (len(exp.pending), len(exp.history.arms) > 2) == (4, True)
        store.close()

    def test_json_of_a_stored_experiment_goes_on_in_memory(self, tmp_path):
        with Store(tmp_path / "store.db") as store:
            experiment = make(store)
            play_some(experiment)
            copy = Experiment.from_json(experiment.to_json())
            assert json.loads(copy.to_json())["log"] == json.loads(experiment.to_json())["log"]
            assert (copy.ask().arm, copy.ask().fidelity) == (experiment.ask().arm, experiment.ask().fidelity)


class TestStore:
    def test_names(self, place):
        with Store(place) as store:
            for name in ("", "a/b", "../x", "-a", "a" * 65, "ä", "a b", "a'; DROP TABLE mfbandit_log; --", 5, "a\n"):
                with pytest.raises(ValueError, match="an experiment's name must be"):
                    make(store, name)
            make(store, "a" * 64)
            assert store.list() == ("a" * 64,)
            with pytest.raises(UnknownExperiment, match=r"Experiment not found: .*the store has aaaa"):
                store.open("ads")

    def test_deleting_needs_the_name_again(self, place):
        with Store(place) as store:
            make(store, "one")
            play_some(make(store, "two"), 3)
            with pytest.raises(ValueError, match="To delete 'two', pass confirm='two'"):
                store.delete("two", confirm="one")
            two = store.open("two")
            store.delete("two", confirm="two")
            assert store.list() == ("one",)
            with pytest.raises(UnknownExperiment, match="experiment 'two' was deleted"):
                two.ask()
            with pytest.raises(UnknownExperiment):
                store.delete("two", confirm="two")
            assert make(store, "two").events == 0

    def test_experiments_do_not_touch_each_other(self, place):
        with Store(place) as store:
            one, two = make(store, "one"), make(store, "two")
            play_some(one, 10)
            assert two.events == 0
            with pytest.raises(UnknownPlay):
                two.tell(one.ask(), 0.5)

    def test_nothing_is_appended_to_an_experiment_that_is_gone(self, place):
        with Store(place) as store:
            experiment = make(store)
            store.write(lambda connection: connection.run("DELETE FROM mfbandit_experiments"))
            with pytest.raises(StoreError):
                experiment.ask()
            with pytest.raises(UnknownExperiment):
                experiment.ask()

    def test_one_of_many_who_make_the_same_experiment_succeeds(self, place):
        with Store(place) as store:
            outcomes = []

            def one():
                try:
                    make(store)
                    outcomes.append("made")
                except Conflict:
                    outcomes.append("conflict")

            threads = [threading.Thread(target=one) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(outcomes) == ["conflict"] * 7 + ["made"]

    def test_open_gives_the_same_object_to_all(self, tmp_path):
        with Store(tmp_path / "store.db") as store:
            assert make(store) is store.open("exp")

    def test_texts_of_all_kinds_come_back(self, place, monkeypatch):
        labels = ["<script>alert(1)</script>", "'; DROP TABLE x; --", "مرحبا", "😀" * 50, "\u0000", "\ud800", " "]
        with Store(place) as store, monkeypatch.context() as patch:
            for module in ("checks", "experiment"):  # as earlier versions did, which took half a character, too
                patch.setattr(f"mfbandit.experiment.{module}.check_text", lambda *_: None)
            experiment = make(store, arms=labels)
            experiment.note("".join(labels))
        with Store(place) as store:
            assert store.open("exp").arms == tuple(labels)
            assert store.open("exp").log == (Noted("".join(labels)),)

    def test_tokens(self, place):
        with Store(place) as store:
            text = store.create_token("ci", "write")
            assert store.token(text).allows("read")  # type: ignore[union-attr]
            assert store.token(text[:-1] + ("a" if text[-1] != "a" else "b")) is None
            assert store.token("") is None
            with pytest.raises(ValueError, match="scope must be one of read, write, admin"):
                store.create_token("ci", "root")
            ((name, token),) = store.tokens().items()
            assert text not in repr(token)
            with pytest.raises(ValueError, match="Token not found"):
                store.revoke_token("nope")
            store.revoke_token(name)
            assert store.token(text) is None


def test_paths_with_odd_characters(tmp_path):
    for name in ("a b?c#d%20.db", "ünïcode 😀.db"):
        with Store(tmp_path / name) as store:
            make(store)
        assert Store(tmp_path / name, read_only=True).list() == ("exp",)
    assert SQLite(tmp_path / "x.db").name.endswith("x.db")
