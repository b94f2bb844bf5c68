"""A repeated request is done once, whatever it asks for and whatever others did meanwhile."""

import inspect

import pytest

from mfbandit import MFUCB, UCB, Conflict, Experiment, Fidelities, Store, SubGaussian
from mfbandit.errors import InvalidArgument
from mfbandit.experiment.events import Noted, Unchanged
from mfbandit.experiment.protocol import AnyExperiment
from tests.support.services import create, problem, served, talking
from tests.support.stores import ARMS, FID, make

BETTER = Fidelities([1, 5, 25], [0.2, 0.1, 0], SubGaussian(0.2))
VERBS = {
    "ask": ((), ()),
    "tell": (("{play}", 0.5), ("{play}", 0.25)),
    "tell_many": (([("{play}", 0.5, None)],), ([("{play}", 0.25, None)],)),
    "fail": (("{play}",), ("{play}", 0.5)),
    "fail_many": ((["{play}"],), (["{play}"], 0.5)),
    "renew": (("{play}",), ("{play}", 5.0)),
    "renew_many": ((["{play}"],), (["{play}"], 5.0)),
    "add_results": (([("a", 0, 0.5, None)],), ([("a", 0, 0.25, None)],)),
    "add_arm": (("new",), ("newer",)),
    "retire_arm": (("a",), ("b",)),
    "restore_arm": (("d",), ("c",)),
    "forget": (("a",), ("b",)),
    "pause": ((), None),
    "resume": ((), None),
    "set_capital": ((1e6,), (2e6,)),
    "set_policy": ((UCB(),), (MFUCB(rho=1.0),)),
    "set_biases": (([0.2, 0.1, 0.0],), ([0.25, 0.1, 0.0],)),
    "set_fidelities": ((BETTER,), (FID,)),
    "note": (("hello",), ("hallo",)),
}


def filled(value, play):
    if isinstance(value, list | tuple):
        return type(value)(filled(one, play) for one in value)
    return play if value == "{play}" else value


def prepared(store):
    experiment = make(store, capital=1e5)
    experiment.retire_arm("d")
    return experiment, experiment.ask(lease=60)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_a_key_bound_to_its_content(verb, place):
    given, other = VERBS[verb]
    with Store(place) as store:
        experiment, play = prepared(store)
        first = getattr(experiment, verb)(*filled(given, play), request_key="k")
        events = experiment.events
        assert getattr(experiment, verb)(*filled(given, play), request_key="k") == first
        assert experiment.events == events
    with Store(place) as store:
        experiment = store.open("exp")
        assert getattr(experiment, verb)(*filled(given, play), request_key="k") == first
        assert experiment.events == events
        again, content = (verb, other) if other else ("ask", (2,))
        with pytest.raises(Conflict, match="Request key 'k' was already used for another request"):
            getattr(experiment, again)(*filled(content, play), request_key="k")
        assert experiment.events == events


def test_the_protocol_and_memory_have_it_everywhere():
    experiment = Experiment(MFUCB(), arms=ARMS, fidelities=FID)
    play = experiment.ask()
    for verb, (given, _) in VERBS.items():
        if verb != "set_fidelities":
            assert "request_key" in inspect.signature(getattr(AnyExperiment, verb)).parameters
        with pytest.raises(InvalidArgument, match="request_key must be None for an experiment in memory, got 'k'"):
            getattr(experiment, verb)(*filled(given, play), request_key="k")
    assert len(experiment.log) == 1


class TestControls:
    def test_a_repeated_control_does_not_undo_a_colleagues(self, place):
        with Store(place) as store:
            experiment = make(store, capital=100)
            experiment.pause(request_key="p")
            experiment.set_capital(200, request_key="c")
            experiment.resume()
            experiment.set_capital(300)
            experiment.pause(request_key="p")
            experiment.set_capital(200, request_key="c")
            assert (experiment.paused, experiment.capital) == (False, 300)

    def test_one_that_changed_nothing_is_remembered_too(self, place):
        with Store(place) as store:
            experiment = make(store, capital=100)
            experiment.pause()
            experiment.pause(request_key="p")
            experiment.set_capital(100, request_key="c")
            assert experiment.log[-2:] == (Unchanged(), Unchanged())
            experiment.resume()
            experiment.set_capital(300)
        with Store(place) as store:
            experiment = store.open("exp")
            experiment.pause(request_key="p")
            experiment.set_capital(100, request_key="c")
            assert (experiment.paused, experiment.capital) == (False, 300)

    def test_without_a_key_nothing_is_written(self, place):
        with Store(place) as store:
            experiment = make(store)
            experiment.resume()
            assert experiment.events == 0


def test_an_import_under_the_key_of_an_ask_is_refused(place):
    with Store(place) as store:
        experiment = make(store)
        experiment.ask(request_key="k")
        with pytest.raises(Conflict, match="'k' was already used for another request"):
            experiment.add_results([("a", 0, 0.5, None)], request_key="k")
        assert sum(experiment.results_at) == 0


def test_the_log_shows_the_key_alone(tmp_path):
    with Store(tmp_path / "store.db") as store:
        experiment = make(store)
        experiment.note("hello", request_key="k")
        assert experiment.log == (Noted("hello"),)
        assert [record.request for record in experiment.records()] == ["k"]
        assert [record.request for record in experiment.page(0, 9)] == ["k"]


class TestOverHTTP:
    def test_controls(self, tmp_path):
        with served(tmp_path / "a.db") as service, talking(service.url) as client:
            create(client, "ads", capital=100)
            ads = "/api/experiments/ads"
            for verb, body, back in (
                ("pause", {}, ("resume", {})),
                ("capital", {"capital": 200}, ("capital", {"capital": 300})),
                ("biases", {"biases": [0.2, 0]}, ("biases", {"biases": [0.3, 0]})),
                (
                    "policy",
                    {"policy": {"name": "UCB", "rho": 1.0}},
                    ("policy", {"policy": {"name": "MFUCB", "rho": 1.0}}),
                ),
                ("retire", {"arm": "a"}, ("restore", {"arm": "a"})),
            ):
                keyed = {**body, "request_key": verb}
                assert client.post(f"{ads}/{verb}", json=keyed).status_code == 200
                after = client.post(f"{ads}/{back[0]}", json=back[1])
                assert after.status_code == 200, after.text
                assert client.post(f"{ads}/{verb}", json=keyed).json() == after.json()
            problem(client.post(f"{ads}/capital", json={"capital": 400, "request_key": "capital"}), 409, "conflict")
            problem(client.post(f"{ads}/resume", json={"request_key": "pause"}), 409, "conflict", "'pause'")
            headers = {"content-type": "application/json"}
            assert client.post(f"{ads}/pause", headers=headers).status_code == 200  # without a body
            assert {"request_key": "pause", "event": "Paused"}.items() <= client.get(f"{ads}/log").json()["events"][
                0
            ].items()
