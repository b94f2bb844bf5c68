"""Results of many observations in a store: kept, read back, exported and imported."""

import json
import sqlite3

import pytest

from mfbandit import Batch, Bounded, Conflict, Counts, Experiment, Fidelities, Store, StoreDamaged
from mfbandit.core import STATS_ARRAYS
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import PastResult
from mfbandit.store import as_past_results, jsonl, plays_csv, read_results, writer
from tests.support.commands import call, done, refused, told
from tests.support.services import create, problem, served, talking
from tests.support.stores import ARMS, FID, make, used_snapshots

PAST: list[PastResult] = [
    ("a", 0, Counts(37, 1000), None),
    ("b", 1, Batch(0.5, 20, 0.125), 2.0),
    ("c", 2, Batch(0.25, 3), None),
]


def arrays(experiment):
    stats = experiment.stats
    return [None if getattr(stats, name) is None else getattr(stats, name).tolist() for name in STATS_ARRAYS]


def told_some(experiment):
    experiment.add_results(PAST)
    for i in range(8):
        play = experiment.ask()
        if i % 2:
            experiment.tell(play, successes=i, trials=10, request_key=f"k{i}")
        else:
            experiment.tell(play, 0.25)
    return play.id


class TestReopening:
    def test_from_snapshots_and_from_rows_alone(self, place, monkeypatch):
        monkeypatch.setattr(writer, "SNAPSHOT_EVERY", 5)
        with Store(place) as store:
            experiment = make(store)
            last = told_some(experiment)
            before, log, status = arrays(experiment), experiment.log, experiment.status()
        with Store(place) as store:
            assert used_snapshots(store) >= 10
            again = store.open("exp")
            assert (arrays(again), again.log, again.status()) == (before, log, status)
            again.tell(last, successes=7, trials=10, request_key="k7")  # known, and the same
            with pytest.raises(Conflict, match="already used for another request"):
                again.tell(last, successes=8, trials=10, request_key="k7")
            with pytest.raises(Conflict, match="7 of 10 at cost"):
                again.tell(last, successes=8, trials=10)
            store.write(lambda connection: connection.run("DELETE FROM mfbandit_snapshots"))
        with Store(place) as store:
            assert arrays(store.open("exp")) == before
            assert arrays(Experiment.from_json(store.open("exp").to_json())) == before

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE mfbandit_log SET body = NULL WHERE body LIKE '%37%'",
            "UPDATE mfbandit_log SET body = replace(body, '37', '38') WHERE body LIKE '%37%'",
            "UPDATE mfbandit_log SET kind = 'Told', body = NULL WHERE body LIKE '%37%'",
        ],
    )
    def test_counts_that_were_lost_or_changed_are_damage(self, tmp_path, monkeypatch, change):
        monkeypatch.setattr(writer, "SNAPSHOT_EVERY", 5)
        with Store(tmp_path / "s.db") as store:
            told_some(make(store))
        with sqlite3.connect(tmp_path / "s.db") as database:
            database.execute(change)
        database.close()
        with Store(tmp_path / "s.db") as store, pytest.raises(StoreDamaged):
            list(store.open("exp").records())

    def test_a_batch_with_an_id_counts_once(self, place):
        with Store(place) as store:
            experiment = make(store)
            rows: list[PastResult] = [(*result[:4], f"v{i}") for i, result in enumerate(PAST)]
            first = experiment.add_results(rows)
        with Store(place) as store:
            experiment = store.open("exp")
            before = arrays(experiment)
            assert experiment.add_results(rows) == first
            with pytest.raises(Conflict, match="id 'v0' is there with another content"):
                experiment.add_results([("a", 0, Counts(38, 1000), None, "v0")])
            with pytest.raises(Conflict, match="id 'v0' is there with another content"):
                experiment.add_results([("a", 0, 0.037, None, "v0")])
            assert arrays(experiment) == before


class TestFiles:
    @pytest.mark.parametrize("kind", ["csv", "jsonl"])
    def test_what_was_exported_can_be_imported(self, tmp_path, kind):
        with Store(tmp_path / "s.db") as store:
            experiment, other = make(store), make(store, "other")
            told_some(experiment)
            play = experiment.ask()
            lines = jsonl(experiment.records(), experiment.id)
            if kind == "csv":
                lines = plays_csv(experiment.records(), experiment.id, ARMS, batches=True)
            text = "".join(lines)
            past = as_past_results(read_results(text, kind), ARMS, FID)
            assert len(past) == 11
            other.add_results(past)
            experiment.fail(play)
            assert arrays(other) == arrays(experiment)
            experiment.add_results(past)  # all of them are known by their ids
            assert arrays(other) == arrays(experiment)
            assert other.spent == experiment.spent

    def test_an_export_has_columns_of_these_names(self, tmp_path):
        with Store(tmp_path / "s.db") as store:
            experiment = make(store)
            experiment.add_results([*PAST, ("a", 0, 0.5, None)])
            lines = list(plays_csv(experiment.records(), "e", ARMS, batches=True))
        assert lines[0] == "play,arm,label,fidelity,asked,outcome,settled,reward,cost,successes,trials,weight,sd\n"
        ends = [line.strip().split(",")[7:] for line in lines[1:]]
        assert ends == [
            ["0.037", "1.0", "37", "1000", "", ""],
            ["0.5", "2.0", "", "", "20", "0.125"],
            ["0.25", "25.0", "", "", "3", ""],
            ["0.5", "1.0", "", "", "", ""],
        ]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("arm,fidelity,successes,trials\na,0,37,1000\n", Counts(37, 1000)),
            ("arm,fidelity,successes,trials\na,0,37.0,1e3\n", Counts(37, 1000)),
            ("arm,fidelity,reward,successes,trials\na,0,,37,1000\n", Counts(37, 1000)),
            ("arm,fidelity,reward,weight,sd\na,0,0.5,20,0.125\n", Batch(0.5, 20, 0.125)),
            ("arm,fidelity,reward,weight,sd\na,0,0.5,20,\n", Batch(0.5, 20)),
            ("arm,fidelity,reward,weight,sd\na,0,0.5,,\n", 0.5),
        ],
    )
    def test_rows_as_people_have_them(self, text, expected):
        (result,) = as_past_results(read_results(text, "csv"), ["a"], Fidelities([1]))
        assert result[2] == expected

    @pytest.mark.parametrize(
        ("row", "said"),
        [
            ({"successes": 5, "trials": 4}, "successes must lie in 0 to trials, which are 4, got 5"),
            ({"successes": 1.5, "trials": 4}, "successes must be a whole number, got 1.5"),
            ({"successes": 1, "trials": "many"}, "trials must be a number, got 'many'"),
            ({"successes": 1, "trials": float("nan")}, "trials must be a whole number, got nan"),
            ({"successes": 1, "trials": float("inf")}, "trials must be a whole number, got inf"),
            ({"successes": 1, "trials": 0}, "trials must be from 1 to 1000000000000, got 0"),
            ({"successes": 1}, "successes and trials must be given together"),
            (
                {"reward": 0.5, "successes": 1, "trials": 4},
                "reward must be left out where successes are given, got 0.5",
            ),
            ({"reward": 0.5, "weight": -1}, "weight must be from 1 to 1000000000000, got -1"),
            ({"reward": 0.5, "sd": 0.1}, "weight must be given where sd is"),
            ({"weight": 3}, "reward must be a number, got None"),
        ],
    )
    def test_rows_that_make_no_sense_are_named(self, row, said):
        text = json.dumps({"arm": "a", "fidelity": 0, **row})
        with pytest.raises(InvalidArgument, match=f"line 1: {said}"):
            list(read_results(text, "jsonl"))

    def test_a_header_without_either_is_refused(self):
        with pytest.raises(InvalidArgument, match=r"must name arm, fidelity and reward \(or successes and trials\)"):
            list(read_results("arm,fidelity,successes\na,0,1\n", "csv"))


def test_on_the_command_line(tmp_path):
    path, toml, file = tmp_path / "s.db", tmp_path / "a.toml", tmp_path / "past.csv"
    toml.write_text(
        '[experiment]\narms = ["a", "b"]\n[fidelities]\ncosts = [1]\nrange = [0, 1]\n[[policies]]\nname = "UCB"\n'
    )
    done("experiment", "create", path, "ads", toml)
    first, second = (play["id"] for play in told("experiment", "ask", path, "ads", "-n", 2))
    said = done("experiment", "tell", path, "ads", first, "--successes", 37, "--trials", 1000)
    assert said == f"{first}: successes 37, trials 1,000\n"
    found = told("experiment", "tell", path, "ads", second, 0.5, "--weight", 20, "--sd", 0.1)
    assert found == {"play": second, "reward": 0.5, "weight": 20, "sd": 0.1}
    refused(call("experiment", "tell", path, "ads", second), "reward must be a number, got None")
    refused(
        call("experiment", "tell", path, "ads", second, "--trials", 3), "successes and trials must be given together"
    )
    file.write_text("arm,fidelity,successes,trials\na,0,1,100\nb,0,2,100\n")
    assert "2 new results" in done("experiment", "import", path, "ads", file)
    assert "0 new results" in done("experiment", "import", path, "ads", file)
    assert told("experiment", "status", path, "ads")["observations"] == [1220]
    shown = done("experiment", "status", path, "ads")
    assert "observed     1,220 observations at cost 1" in shown
    assert "successes,trials,weight,sd" in done("experiment", "export", path, "ads")


def test_at_a_service(tmp_path):
    with served(tmp_path / "s.db") as service, talking(service.url) as client:
        create(client, "ads")
        plays = client.post("/api/experiments/ads/ask", json={"n": 2}).json()["plays"]
        first, second = (play["id"] for play in plays)
        for wrong, said in (
            ({"successes": 5, "trials": 4}, "successes must lie in 0 to trials"),
            ({"successes": 5}, "successes and trials must be given together"),
            ({"reward": 0.5, "successes": 1, "trials": 4}, "reward must be left out"),
            ({"successes": 1.5, "trials": 4}, "integer"),
            ({"successes": 1, "trials": 0}, "greater than or equal to 1"),
            ({}, "reward must be a number"),
        ):
            body = {"results": [{"play": first, "reward": 0.5}, {"play": second, **wrong}]}
            problem(client.post("/api/experiments/ads/tell", json=body), 422, "invalid", said)
        body = {
            "results": [{"play": first, "successes": 37, "trials": 1000}, {"play": second, "reward": 0.5, "weight": 4}]
        }
        assert client.post("/api/experiments/ads/tell", json=body).json() == {"done": 2}
        assert client.get("/api/experiments/ads").json()["observations"] == [1004, 0]
        page = client.get("/experiments/ads").text
        for shown in ("1,004 observations", "37 of 1,000", "0.5, mean of 4", "Observations</th>"):
            assert shown in page
        text = client.get("/api/experiments/ads/export").text
        assert ",37,1000,," in text


def test_plain_results_are_as_small_as_they_were(tmp_path):
    with Store(tmp_path / "s.db") as store:
        experiment = make(store, fidelities=Fidelities([1, 5, 25], [0.3, 0.1, 0], Bounded()))
        experiment.tell(experiment.ask(), 1.0)
        experiment.tell(experiment.ask(), successes=1, trials=1)
        experiment.tell(experiment.ask(), successes=1, trials=2)
        with sqlite3.connect(tmp_path / "s.db") as database:
            rows = database.execute(
                "SELECT kind, body FROM mfbandit_log WHERE kind LIKE 'Told%' ORDER BY seq"
            ).fetchall()
        database.close()
    assert rows == [
        ("Told", None),
        ("Told", None),
        ("ToldBatch", '{"weight": 2, "sd": null, "successes": 1}'),
    ]
