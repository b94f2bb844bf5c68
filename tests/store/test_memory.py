"""Results that fade, and arms that changed: in a store by its clock, at a service, and on the command line."""

import pytest

import mfbandit
from mfbandit import UCB, Bounded, Counts, Experiment, Fidelities, HalfLife, Store
from mfbandit.experiment.events import TimePassed
from tests.support.commands import call, done, refused, told
from tests.support.services import problem, served, talking
from tests.support.stores import Clock, make, seen

FADED = [("a", 0, Counts(700, 10_000), None), ("a", 0, Counts(100, 10_000), None)]


@pytest.mark.parametrize("memory", [HalfLife(plays=7), HalfLife(time=100.0)], ids=repr)
def test_what_faded_is_the_same_after_a_restart(place, memory):
    clock = Clock()
    with Store(place, clock=clock) as store:
        experiment = make(store, memory=memory)
        experiment.add_results([("a", 2, 0.5, None)] * 10)
        for i in range(12):
            clock.now += 25.0
            play = experiment.ask(request_key=f"ask {i}")
            assert experiment.ask(request_key=f"ask {i}") == play
            experiment.tell(play, 0.1 * i)
        experiment.forget("b")
        before, log, status = seen(experiment), experiment.log, experiment.status()
    with Store(place, clock=clock) as store:
        again = store.open("exp")
        assert again.memory == memory
        assert (seen(again), again.log, again.status()) == (before, log, status)
        assert seen(Experiment.from_json(again.to_json()))[0] == before[0]
        assert any(isinstance(event, TimePassed) for event in log) is (memory.plays is None)


def test_at_a_service(tmp_path):
    with served(tmp_path / "s.db") as service, mfbandit.connect(service.url) as client, talking(service.url) as http:
        one = Fidelities([1], concentration=Bounded())
        for memory in (None, HalfLife(plays=500), HalfLife(time=3600)):
            name = "ads" if memory is None else f"ads-{memory.plays}".replace(".", "-")
            experiment = client.create(name, UCB(), arms=["a", "b"], fidelities=one, memory=memory)
            assert experiment.memory == memory
            assert (experiment.definition.get("memory") is None) is (memory is None)
            experiment.add_results(FADED)
            (found,) = experiment.drift()
            assert found == Store(tmp_path / "s.db", read_only=True).open(name).drift()[0]
            page = http.get(f"/experiments/{name}").text
            assert "a has changed at fidelity 0: from 0.07 in its first 10,000 observations to 0.01" in page
            assert ("forget` begins it anew" in page) is (memory is None)
        body = {"name": "bad", "arms": 2, "fidelities": {"costs": [1]}, "policy": {"name": "MFBayes"}}
        for given, said in (
            ({"plays": 5, "time": 5}, "memory must have either plays or time"),
            ({}, "memory must have either plays or time"),
            ({"plays": 0}, "greater than 0"),
            ({"days": 1}, "days"),
        ):
            problem(http.post("/api/experiments", json={**body, "memory": given}), 422, "invalid", said)
        assert http.get("/api/experiments/ads/drift").json()["drift"][0]["since"] == 10_000


def test_on_the_command_line(tmp_path):
    path, toml = tmp_path / "s.db", tmp_path / "a.toml"
    text = '[experiment]\narms = ["a", "b"]\n[fidelities]\ncosts = [1]\nrewards = "rate"\n[memory]\n'
    toml.write_text(f"{text}plays = 500\n")
    done("experiment", "create", path, "fading", toml)
    assert told("experiment", "status", path, "fading")["memory"] == {"plays": 500.0}
    toml.write_text(f"{text}plays = 0\n")
    refused(call("experiment", "create", path, "bad", toml), "plays of a half-life must be positive, got 0")
    toml.write_text(text.removesuffix("[memory]\n"))
    done("experiment", "create", path, "ads", toml)
    assert done("experiment", "drift", path, "ads") == "no arm is known to have changed\n"
    with Store(path) as store:
        store.open("ads").add_results(FADED)
    said = "a has changed at fidelity 0: 0.07 on average in its first 10,000 observations, 0.01 since"
    assert done("experiment", "drift", path, "ads") == f"{said}.\n"
    assert f"WARNING: {said}; `forget` begins it anew" in done("experiment", "status", path, "ads")
    assert told("experiment", "drift", path, "ads")[0]["label"] == "a"
    assert done("experiment", "forget", path, "ads", "a") == "ads: a begins anew\n"
    assert done("experiment", "drift", path, "ads") == "no arm is known to have changed\n"
    refused(call("experiment", "forget", path, "ads", "nobody"), "nobody")
