"""Experiments that are made and deleted while others do the same: a name has one log, and a log one name."""

import threading

import pytest

from mfbandit import MFUCB, Bounded, Conflict, Fidelities, Store, UnknownExperiment

FIDELITIES = Fidelities(costs=[1, 10], biases=[0.1, 0], concentration=Bounded(0, 1))


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "a.db") as store:
        yield store


def make(store, name, **more):
    return store.create(name, MFUCB(), arms=3, fidelities=FIDELITIES, **more)


def together(jobs):
    """What each of the jobs gave or raised, run at the same time."""
    gate, outcomes = threading.Barrier(len(jobs)), []

    def run(job):
        gate.wait()
        try:
            outcomes.append(job())
        except Exception as error:
            outcomes.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_of_many_who_make_the_same_name_at_once_one_does_and_the_others_are_told(store):
    outcomes = together([lambda: make(store, "ads")] * 8)
    assert sum(isinstance(one, Conflict) for one in outcomes) == 7
    assert store.list() == ("ads",)


def test_the_same_request_many_times_at_once_makes_one_experiment_for_all(store):
    outcomes = together([lambda: make(store, "ads", request_key="k")] * 8)
    assert {id(one) for one in outcomes} == {id(store.open("ads"))}


def test_what_is_made_at_once_under_different_names_is_all_there(store):
    together([lambda name=f"e{i}": make(store, name) for i in range(8)])
    assert set(store.list()) == {f"e{i}" for i in range(8)}


def test_an_object_of_a_deleted_experiment_writes_nothing_into_the_next_ones_log(store):
    old = make(store, "ads")
    play = old.ask()
    store.delete("ads", confirm="ads")
    new = make(store, "ads")
    for use in (old.ask, lambda: old.tell(play, 0.5), lambda: old.spent, old.pause, lambda: old.stats):
        with pytest.raises(UnknownExperiment, match="'ads' was deleted"):
            use()
    for _ in range(5):
        new.tell(new.ask(), 0.5)
    assert new.spent == 5
    assert len(new.log) == 11  # with the opening


def test_deleting_while_others_ask_leaves_nothing_behind(store, tmp_path):
    experiment = make(store, "ads")

    def work():
        for _ in range(5000):
            experiment.tell(experiment.ask(), 0.5)

    outcomes = together([work, work, work, lambda: store.delete("ads", confirm="ads")])
    assert sum(isinstance(one, UnknownExperiment) for one in outcomes) == 3
    new = make(store, "other")
    for _ in range(100):
        new.tell(new.ask(), 0.5)
    store.close()
    with Store(tmp_path / "a.db") as again:
        assert again.open("other").spent == 100
