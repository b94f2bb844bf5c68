"""Results from elsewhere: every row counts once, however often and in whatever file it comes."""

import json
import shutil

import pytest

from mfbandit import MFUCB, Conflict, Experiment, Fidelities, Store, SubGaussian
from mfbandit.errors import InvalidArgument
from mfbandit.store import jsonl, plays_csv
from tests.support.commands import call, done, refused, told
from tests.support.services import create, problem, served, talking
from tests.support.stores import ARMS, FID, make, seen

ROWS = [("a", 0, 0.5, None, "v1"), ("b", 1, 0.25, None, "v2"), ("a", 0, 0.5, None, "v3")]


class TestIds:
    def test_a_row_counts_once_for_ever(self, place, monkeypatch):
        monkeypatch.setattr("mfbandit._internal.limits.REQUEST_KEYS_KEPT", 3)
        with Store(place) as store:
            experiment = make(store)
            plays = experiment.add_results(ROWS[:2])
            for i in range(20):  # keys are forgotten, ids are not
                experiment.note("x", request_key=f"k{i}")
        with Store(place) as store:
            experiment = store.open("exp")
            again = experiment.add_results([*ROWS, ROWS[0]])
            assert [play.id for play in again[:2]] == [play.id for play in plays]
            assert again[3] == again[0]
            assert sum(experiment.results_at) == 3
            before = seen(experiment), experiment.events
            assert experiment.add_results(ROWS) == again[:3]
            assert (seen(experiment), experiment.events) == before

    def test_another_content_is_a_conflict_that_names_the_row(self, place):
        with Store(place) as store:
            experiment = make(store)
            experiment.add_results(ROWS)
            before = seen(experiment)
            for wrong in (("b", 0, 0.5, None), ("a", 1, 0.5, None), ("a", 0, 0.75, None), ("a", 0, 0.5, 7.0)):
                with pytest.raises(Conflict, match=r"Result 2: id 'v1' is there with another content: arm 0"):
                    experiment.add_results([("c", 0, 0.5, None, "new"), (*wrong, "v1")])
            with pytest.raises(Conflict, match="Result 2: id 'new' came twice"):
                experiment.add_results([("c", 0, 0.5, None, "new"), ("c", 0, 0.75, None, "new")])
            assert seen(experiment) == before

    def test_a_key_and_ids_go_together(self, place):
        with Store(place) as store:
            experiment = make(store)
            first = experiment.add_results(ROWS, request_key="k")
            assert experiment.add_results(ROWS, request_key="k") == first
            assert experiment.add_results(ROWS, request_key="k2") == first  # nothing new, and remembered
            with pytest.raises(Conflict, match="was already used for another request"):
                experiment.add_results(ROWS[:1], request_key="k2")
            plain = experiment.add_results([row[:4] for row in ROWS], request_key="k3")  # without ids they are others
        with Store(place) as store:
            experiment = store.open("exp")
            assert experiment.add_results(ROWS, request_key="k") == first
            assert experiment.add_results([row[:4] for row in ROWS], request_key="k3") == plain
            assert sum(experiment.results_at) == 6

    def test_a_wrong_reward_of_a_pending_play_is_refused(self, tmp_path):
        with Store(tmp_path / "store.db") as store:
            experiment = make(store)
            play = experiment.ask()
            with pytest.raises(InvalidArgument, match="reward must be a number, got 'x'"):
                experiment.add_results([(play.arm, play.fidelity, "x", None, play.id)])
            assert experiment.pending == (play,)

    def test_known_rows_of_a_retired_arm_are_no_obstacle(self, tmp_path):
        with Store(tmp_path / "store.db") as store:
            experiment = make(store)
            experiment.add_results(ROWS)
            experiment.retire_arm("a")
            experiment.add_results([*ROWS, ("b", 0, 0.5, None, "v4")])
            assert sum(experiment.results_at) == 4

    def test_what_is_no_id_is_refused(self, tmp_path):
        with Store(tmp_path / "store.db") as store:
            experiment = make(store)
            for wrong in ("", "x" * 201, "a\nb", "\ud800", 7):
                with pytest.raises(InvalidArgument, match="the id of a result must be 1 to 200 printable"):
                    experiment.add_results([("a", 0, 0.5, None, wrong)])
            with pytest.raises(InvalidArgument, match="ids must be given for all results or for none"):
                experiment.add_results([ROWS[0], ("a", 0, 0.5, None)])
            assert experiment.events == 0
        with pytest.raises(InvalidArgument, match="id must be None for an experiment in memory, got 'v1'"):
            Experiment(MFUCB(), arms=ARMS, fidelities=FID).add_results(ROWS)

    def test_the_log_says_nothing_strange_of_them(self, place):
        with Store(place) as store:
            experiment = make(store)
            experiment.add_results(ROWS)
            assert {(record.due, record.request) for record in experiment.records()} == {(None, None)}
            assert experiment.leases == {}
            again = Experiment.from_json(experiment.to_json())
            assert again.history.rewards.tolist() == experiment.history.rewards.tolist()

    def test_a_restored_backup_gets_back_what_an_export_has(self, tmp_path):
        file = tmp_path / "store.db"
        with Store(file) as store:
            experiment = make(store)
            first, second = experiment.ask(2)
            experiment.tell(first, 0.5)
        shutil.copy(file, tmp_path / "backup.db")
        with Store(file) as store:
            experiment = store.open("exp")
            experiment.tell(second, 0.25)
            experiment.tell(experiment.ask(), 0.75)
            rows = list(plays_csv(experiment.records(), experiment.id, experiment.arms))
            lines = list(jsonl(experiment.records(), experiment.id))
        for name, text in (("out.csv", rows), ("out.jsonl", lines)):
            shutil.copy(tmp_path / "backup.db", file)
            Store(file, accept_loss=True).close()
            (tmp_path / name).write_text("".join(text))
            for new in (2, 0, 0):
                said = told("experiment", "import", file, "exp", tmp_path / name)
                assert said == {"results": 3, "new": new}
            with Store(file) as store:
                experiment = store.open("exp")
                assert sorted(experiment.history.rewards.tolist()) == [0.25, 0.5, 0.75]
                assert experiment.pending == ()


class TestFiles:
    @pytest.fixture
    def file(self, tmp_path):
        path = tmp_path / "ads.db"
        fid = Fidelities([1, 10], [0.1, 0], SubGaussian(0.2), names=["minute", "hour"])
        with Store(path) as store:
            store.create("ads", MFUCB(), arms=["ad-a", "ad-b"], fidelities=fid)
        return path

    def imported(self, file, tmp_path, rows, *options, header="arm,fidelity,reward"):
        table = tmp_path / "daily.csv"
        table.write_text("\n".join([header, *rows]) + "\n")
        return told("experiment", "import", file, "ads", table, *options)["new"]

    def test_a_growing_file_counts_every_row_once(self, file, tmp_path):
        days = [["ad-a,0,1", "ad-a,0,1", "ad-b,0,0"], ["ad-a,0,1"], ["ad-b,0,0", "ad-b,1,1"]]
        rows: list[str] = []
        for day in days:
            rows += day
            assert self.imported(file, tmp_path, rows) == len(day)
            assert self.imported(file, tmp_path, rows) == 0
            assert self.imported(file, tmp_path, rows[::-1]) == 0  # the newest first
        assert told("experiment", "status", file, "ads")["results"] == [5, 1]

    def test_files_of_new_rows_alone(self, file, tmp_path):
        for _ in range(2):
            assert self.imported(file, tmp_path, ["ad-a,0,1"], "--all-new") in (1, 0)
        assert self.imported(file, tmp_path, ["ad-a,0,1", "ad-a,0,1"], "--all-new") == 2
        assert told("experiment", "status", file, "ads")["results"] == [3, 0]

    def test_ids_of_ones_own(self, file, tmp_path):
        header = "visit,arm,fidelity,reward"
        rows = ["v1,ad-a,0,1", "v2,ad-a,0,1"]
        assert self.imported(file, tmp_path, rows, "--id-column", "visit", header=header) == 2
        rows = ["v2,ad-a,0,1.0", "v3,ad-a,0,1"]  # another file, another way to write it
        assert self.imported(file, tmp_path, rows, "--id-column", "visit", header=header) == 1
        (tmp_path / "daily.csv").write_text(f"{header}\nv3,ad-b,0,1\n")
        shown = call("experiment", "import", file, "ads", tmp_path / "daily.csv", "--id-column", "visit")
        refused(shown, "id 'v3' is there with another content")
        for column, words in (("session", "must name the id column 'session'"), ("reward", "")):
            shown = call("experiment", "import", file, "ads", tmp_path / "daily.csv", "--id-column", column)
            assert words in shown.output
        (tmp_path / "daily.csv").write_text(f"{header}\n,ad-b,0,1\n")
        shown = call("experiment", "import", file, "ads", tmp_path / "daily.csv", "--id-column", "visit")
        refused(shown, "line 2: visit must be an id, got ''")

    def test_fidelities_by_name(self, file, tmp_path):
        rows = ["ad-a,minute,1", "ad-a,hour,0.5", "ad-b,1,0.5"]
        assert self.imported(file, tmp_path, rows) == 3
        assert told("experiment", "status", file, "ads")["results"] == [1, 2]
        (tmp_path / "daily.csv").write_text("arm,fidelity,reward\nad-a,day,1\n")
        refused(
            call("experiment", "import", file, "ads", tmp_path / "daily.csv"),
            "line 2: fidelity must be a name or lie in 0 to 1, got 'day'",
        )
        (tmp_path / "rows.jsonl").write_text(json.dumps({"arm": "ad-a", "fidelity": "hour", "reward": 1}))
        assert done("experiment", "import", file, "ads", tmp_path / "rows.jsonl").startswith("ads: 1 new results")


def test_over_http(tmp_path):
    with served(tmp_path / "a.db") as service, talking(service.url) as client:
        create(client, "ads")
        row = {"arm": "a", "fidelity": 0, "reward": 0.5, "id": "v1"}
        address = "/api/experiments/ads/results"
        (play,) = client.post(address, json={"results": [row]}).json()["plays"]
        assert client.post(address, json={"results": [row]}).json()["plays"] == [play]
        problem(client.post(address, json={"results": [{**row, "reward": 1}]}), 409, "conflict", "id 'v1' is there")
        assert client.get("/api/experiments/ads").json()["results"] == [1, 0]
        events = client.get("/api/experiments/ads/log").json()["events"]
        assert all("due" not in event and "request_key" not in event for event in events)
