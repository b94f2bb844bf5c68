"""Ids of plays: never those of other plays, whatever happened to the store in between."""

import re
import shutil

import pytest

from mfbandit import MFUCB, Experiment, Fidelities, Store, SubGaussian, UnknownPlay, connect
from mfbandit.core import Play
from mfbandit.experiment.events import Opened
from tests.support.services import create, problem, served, talking
from tests.support.stores import ARMS, FID, make, play_some

FORM = re.compile(r"[0-9a-f]{12}-[0-9a-f]{6}-[0-9]+")


class TestIncarnations:
    def test_a_restored_backup_takes_no_result_for_another_play(self, tmp_path):
        file = tmp_path / "store.db"
        with Store(file) as store:
            play_some(make(store), 5)
        shutil.copy(file, tmp_path / "backup.db")
        with Store(file) as store:
            lost = store.open("exp").ask(30)
        shutil.copy(tmp_path / "backup.db", file)
        with Store(file, accept_loss=True) as store:
            experiment = store.open("exp")
            again = experiment.ask(30)
            before = experiment.stats.counts.tolist()
            for play in lost:
                for name in (play, play.id):  # by its id alone, too
                    with pytest.raises(UnknownPlay):
                        experiment.tell(name, 0.5)
                    with pytest.raises(UnknownPlay):
                        experiment.fail(name)
                    with pytest.raises(UnknownPlay):
                        experiment.renew(name)
            assert experiment.stats.counts.tolist() == before
            experiment.tell_many([(play, 0.5, None) for play in again])

    def test_each_opening_has_its_own_and_plays_keep_theirs(self, place):
        ids: list[str] = []
        for _ in range(3):
            with Store(place) as store:
                experiment = store.open("exp") if ids else make(store)
                assert [play.id for play in experiment.pending] == ids
                ids += [play.id for play in experiment.ask(2)]
                assert list(experiment.leases) == ids
        assert all(map(FORM.fullmatch, ids))
        assert [one.rpartition("-")[2] for one in ids] == list("012345")
        assert len({one.split("-")[1] for one in ids}) == 3
        with Store(place) as store:
            experiment = store.open("exp")
            for one in ids:
                experiment.tell(one, 0.5)
            assert sum(experiment.results_at) == 6

    def test_opening_alone_writes_nothing(self, place):
        with Store(place) as store:
            make(store).note("hello")
        for _ in range(2):
            with Store(place) as store:
                store.open("exp").pause()
                store.open("exp").resume()
                assert not any(isinstance(event, Opened) for event in store.open("exp").log)

    def test_past_results_have_it_too(self, place):
        with Store(place) as store:
            (play,) = make(store).add_results([("a", 0, 0.5, None)])
            assert FORM.fullmatch(play.id)
            assert [type(event).__name__ for event in store.open("exp").log] == ["Opened", "Asked", "Told"]

    def test_another_form_of_the_same_number_is_no_id(self, tmp_path):
        with Store(tmp_path / "store.db") as store:
            play = make(store).ask()
            head, incarnation, number = play.id.split("-")
            for wrong in (f"{head}-{number}", f"{head}-{incarnation}-00", f"{head}-{incarnation.upper()}x-0"):
                with pytest.raises(UnknownPlay):
                    store.open("exp").tell(wrong, 0.5)


class TestInMemory:
    def test_ids_are_short_until_it_is_read_back(self):
        experiment = Experiment(MFUCB(), arms=ARMS, fidelities=FID)
        first = experiment.ask()
        assert first.id == f"{experiment.id}-0"
        copies = [Experiment.from_json(experiment.to_json()) for _ in range(2)]
        assert copies[0].log == experiment.log
        one, two = (copy.ask() for copy in copies)
        assert (one.arm, one.fidelity) == (two.arm, two.fidelity)
        assert one.id != two.id
        with pytest.raises(UnknownPlay):
            copies[0].tell(two, 0.5)
        copies[0].tell(first, 0.5)
        again = Experiment.from_json(copies[0].to_json())
        again.tell(one, 0.5)
        assert again.history.rewards.tolist() == [0.5, 0.5]

    def test_a_play_of_another_arm_is_named(self):
        experiment = Experiment(MFUCB(), arms=ARMS, fidelities=FID)
        play = experiment.ask()
        other = Play(play.id, 2, 1, play.cost, "c")
        with pytest.raises(UnknownPlay, match="is of arm 0 at fidelity 0, got arm 2 at fidelity 1"):
            experiment.tell(other, 0.5)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with served(tmp_path_factory.mktemp("ids") / "a.db") as service:
        yield service


class TestOverHTTP:
    def test_a_result_with_another_arm_or_fidelity_is_refused(self, service):
        with talking(service.url) as client:
            create(client, "ads")
            play, other = client.post("/api/experiments/ads/ask", json={"n": 2}).json()["plays"]
            right = {"play": play["id"], "arm": play["arm"], "fidelity": play["fidelity"]}
            for wrong, words in (({"arm": 2}, "got arm 2 at fidelity 0"), ({"fidelity": 1}, "got arm 0 at fidelity 1")):
                named = {**right, **wrong}
                for verb, body in (
                    ("tell", {"results": [{**named, "reward": 0.5}]}),
                    ("fail", {"plays": [named]}),
                    ("renew", {"plays": [named]}),
                ):
                    answer = client.post(f"/api/experiments/ads/{verb}", json=body)
                    problem(answer, 404, "unknown-play", "is of arm 0 at fidelity 0", words)
            half = {"play": play["id"], "arm": 0, "reward": 0.5}
            problem(client.post("/api/experiments/ads/tell", json={"results": [half]}), 422, "invalid", "fidelity")
            assert client.post("/api/experiments/ads/renew", json={"plays": [right, other["id"]]}).status_code == 200
            told = {"results": [{**right, "reward": 0.5}, {"play": other["id"], "reward": 0.5}]}
            assert client.post("/api/experiments/ads/tell", json=told).json() == {"done": 2}

    def test_our_client_sends_them(self, service, monkeypatch, request):
        fid = Fidelities([1, 10], [0.1, 0], SubGaussian(0.2))
        store = connect(service.url)
        request.addfinalizer(store.close)
        experiment = store.create("ours", MFUCB(), arms=3, fidelities=fid)
        sent = {}
        usual = experiment._transport.post
        monkeypatch.setattr(
            experiment._transport, "post", lambda path, body: sent.update({path: body}) or usual(path, body)
        )
        one, two, three = experiment.ask(3)
        experiment.renew(one)
        experiment.tell(one, 0.5)
        experiment.fail(two)
        experiment.tell(three.id, 0.5)
        with pytest.raises(UnknownPlay, match="is of arm 0 at fidelity 0, got arm 1 at fidelity 0"):
            experiment.tell(Play(one.id, 1, 0, 1.0, "1"), 0.5)
        assert sent["/api/experiments/ours/fail"]["plays"] == [{"play": two.id, "arm": two.arm, "fidelity": 0}]
        assert sent["/api/experiments/ours/renew"]["plays"] == [{"play": one.id, "arm": one.arm, "fidelity": 0}]
