"""Results of blocks in a store: kept, read back, exported and imported."""

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
    ("a", 0, Counts(37, 1000, "mon"), None),
    ("b", 0, Counts(50, 1000, "mon"), None),
    ("b", 1, Batch(0.5, 20, 0.125, "tue, rainy"), 2.0),
    ("a", 1, Batch(0.25, 3, None, "tue, rainy"), None),
    ("c", 2, Batch(0.25, 1, None, "mon"), None),
    ("c", 2, Counts(1, 1, "tue, rainy"), None),
]


def arrays(experiment):
    stats = experiment.stats
    return [None if getattr(stats, name) is None else getattr(stats, name).tolist() for name in STATS_ARRAYS]


def told_some(experiment):
    experiment.add_results(PAST)
    for i in range(8):
        play = experiment.ask()
        if i % 2:
            experiment.tell(play, successes=i, trials=10, block=f"day {i // 4}", request_key=f"k{i}")
        else:
            experiment.tell(play, 0.25, block="mon" if i else None)
    return play.id


class TestReopening:
    def test_from_snapshots_and_from_rows_alone(self, place, monkeypatch):
        monkeypatch.setattr(writer, "SNAPSHOT_EVERY", 5)
        with Store(place) as store:
            experiment = make(store)
            last = told_some(experiment)
            before, log, status = arrays(experiment), experiment.log, experiment.status()
            effects, sure = experiment.block_effects(), experiment.confidence()
        assert list(effects) == ["mon", "tue, rainy", "", "day 0", "day 1"]
        with Store(place) as store:
            assert used_snapshots(store) >= 5
            again = store.open("exp")
            assert (arrays(again), again.log, again.status()) == (before, log, status)
            assert (again.block_effects(), again.confidence()) == (effects, sure)
            again.tell(last, successes=7, trials=10, block="day 1", request_key="k7")  # known, and the same
            with pytest.raises(Conflict, match="already used for another request"):
                again.tell(last, successes=7, trials=10, request_key="k7")
            with pytest.raises(Conflict, match="in block 'day 1'"):
                again.tell(last, successes=7, trials=10, block="day 2")
            store.write(lambda connection: connection.run("DELETE FROM mfbandit_snapshots"))
        with Store(place) as store:
            assert arrays(store.open("exp")) == before
            assert arrays(Experiment.from_json(store.open("exp").to_json())) == before

    def test_plays_go_on_as_in_memory(self, place):
        memory = Experiment(arms=ARMS, fidelities=FID)
        with Store(place) as store:
            kept = store.create("exp", arms=ARMS, fidelities=FID)
            for number in range(20):
                for one in (kept, memory):
                    play = one.ask()
                    one.tell(play, 0.1 * play.arm + 0.05 * (number % 7), block=f"day {number % 7}")
        with Store(place) as store:
            again = store.open("exp")
            assert arrays(again) == arrays(memory)
            ours, due = again.ask(), memory.ask()
            assert (ours.arm, ours.fidelity) == (due.arm, due.fidelity)

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE mfbandit_log SET body = replace(body, 'mon', 'sun') WHERE body LIKE '%mon%'",
            "UPDATE mfbandit_log SET kind = 'ToldBatch' WHERE kind = 'ToldInBlock'",
        ],
    )
    def test_blocks_that_were_changed_are_damage(self, tmp_path, change):
        with Store(tmp_path / "s.db") as store:
            told_some(make(store))
        with sqlite3.connect(tmp_path / "s.db") as database:
            database.execute(change)
        database.close()
        with Store(tmp_path / "s.db") as store, pytest.raises(StoreDamaged):
            list(store.open("exp").records())

    def test_a_result_with_an_id_counts_once(self, place):
        with Store(place) as store:
            experiment = make(store)
            rows: list[PastResult] = [(*result[:4], f"v{i}") for i, result in enumerate(PAST)]
            first = experiment.add_results(rows)
            before = arrays(experiment)
            assert experiment.add_results(rows) == first
            with pytest.raises(Conflict, match="id 'v0' is there with another content"):
                experiment.add_results([("a", 0, Counts(37, 1000, "sun"), None, "v0")])
            with pytest.raises(Conflict, match="id 'v0' is there with another content"):
                experiment.add_results([("a", 0, Counts(37, 1000), None, "v0")])
            assert arrays(experiment) == before

    def test_what_is_refused_changes_nothing(self, place):
        with Store(place) as store:
            experiment = make(store)
            play = experiment.ask()
            before = experiment.events
            for block in ("", "x" * 101, 7, "\ud800"):
                with pytest.raises(InvalidArgument, match="block must be text"):
                    experiment.tell(play, 0.5, block=block)
            assert experiment.events == before


class TestFiles:
    @pytest.mark.parametrize("kind", ["csv", "jsonl"])
    def test_what_was_exported_can_be_imported(self, tmp_path, kind):
        with Store(tmp_path / "s.db") as store:
            experiment, other = make(store), make(store, "other")
            told_some(experiment)
            lines = jsonl(experiment.records(), experiment.id)
            if kind == "csv":
                lines = plays_csv(experiment.records(), experiment.id, ARMS, batches=True, blocks=True)
            past = as_past_results(read_results("".join(lines), kind), ARMS, FID)
            assert len(past) == 14
            other.add_results(past)
            assert arrays(other) == arrays(experiment)
            assert other.block_effects() == experiment.block_effects()
            experiment.add_results(past)  # all of them are known by their ids
            assert arrays(other) == arrays(experiment)

    def test_an_export_has_a_column_of_this_name(self, tmp_path):
        with Store(tmp_path / "s.db") as store:
            experiment = make(store)
            experiment.add_results([("c", 2, Batch(0.25, 1, None, "mon"), None), ("c", 2, 0.5, None)])
            experiment.fail(experiment.ask())
            lines = list(plays_csv(experiment.records(), "e", ARMS, blocks=True))
        assert lines[0] == "play,arm,label,fidelity,asked,outcome,settled,reward,cost,block\n"
        assert [line.strip().split(",")[7:] for line in lines[1:]] == [
            ["0.25", "25.0", "mon"],
            ["0.5", "25.0", ""],
            ["", "0.0", ""],
        ]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("arm,fidelity,successes,trials,block\na,0,37,1000,mon\n", Counts(37, 1000, "mon")),
            ("arm,fidelity,successes,trials,block\na,0,37,1000,\n", Counts(37, 1000)),
            ("arm,fidelity,reward,weight,sd,block\na,0,0.5,20,0.125, mon \n", Batch(0.5, 20, 0.125, "mon")),
            ("arm,fidelity,reward,block\na,0,0.5,2026-11-16\n", Batch(0.5, 1, None, "2026-11-16")),
            ("arm,fidelity,reward,block\na,0,0.5,  \n", 0.5),
        ],
    )
    def test_rows_as_people_have_them(self, text, expected):
        (result,) = as_past_results(read_results(text, "csv"), ["a"], Fidelities([1]))
        assert result[2] == expected

    @pytest.mark.parametrize("block", [7, True, ["mon"], "x" * 101, "a\tb"])
    def test_rows_that_make_no_sense_are_named(self, block):
        text = json.dumps({"arm": "a", "fidelity": 0, "reward": 0.5, "block": block})
        with pytest.raises(InvalidArgument, match="line 1: block must be text of 1 to 100 printable characters"):
            list(read_results(text, "jsonl"))


def test_on_the_command_line(tmp_path):
    path, toml, file = tmp_path / "s.db", tmp_path / "a.toml", tmp_path / "past.csv"
    toml.write_text(
        '[experiment]\narms = ["a", "b"]\n[fidelities]\ncosts = [1]\nrange = [0, 1]\n[[policies]]\nname = "UCB"\n'
    )
    done("experiment", "create", path, "ads", toml)
    first, second = (play["id"] for play in told("experiment", "ask", path, "ads", "-n", 2))
    refused(call("experiment", "tell", path, "ads", first, 0.5, "--block", ""), "block must be text of 1 to 100")
    said = done("experiment", "tell", path, "ads", first, "--successes", 37, "--trials", 1000, "--block", "monday")
    assert said == f"{first}: successes 37, trials 1,000, block monday\n"
    found = told("experiment", "tell", path, "ads", second, 0.5, "--block", "sunday")
    assert found == {"play": second, "reward": 0.5, "block": "sunday"}
    file.write_text("arm,fidelity,successes,trials,block\na,0,1,100,monday\nb,0,2,100,monday\n")
    assert "2 new results" in done("experiment", "import", path, "ads", file)
    assert "0 new results" in done("experiment", "import", path, "ads", file)
    assert "an estimate" in done("experiment", "confidence", path, "ads")
    exported = done("experiment", "export", path, "ads")
    assert "weight,sd,block\n" in exported
    assert ",monday\n" in exported
    assert "monday" in done("experiment", "log", path, "ads")


def test_at_a_service(tmp_path):
    with served(tmp_path / "s.db") as service, talking(service.url) as client:
        create(client, "ads")
        plays = client.post("/api/experiments/ads/ask", json={"n": 2}).json()["plays"]
        first, second = (play["id"] for play in plays)
        for wrong, said in (
            ({"block": ""}, "at least 1"),
            ({"block": "x" * 101}, "at most 100"),
            ({"block": 7}, "string"),
            ({"block": "two\nlines"}, "block must be text"),
        ):
            body = {"results": [{"play": first, "reward": 0.5}, {"play": second, "reward": 0.5, **wrong}]}
            problem(client.post("/api/experiments/ads/tell", json=body), 422, "invalid", said)
        assert client.get("/api/experiments/ads/blocks").json() == {"effects": {}}
        results = [
            {"play": first, "successes": 37, "trials": 1000, "block": "mon"},
            {"play": second, "reward": 0.5, "block": "tue"},
        ]
        assert client.post("/api/experiments/ads/tell", json={"results": results}).json() == {"done": 2}
        assert set(client.get("/api/experiments/ads/blocks").json()["effects"]) == {"mon", "tue"}
        page = client.get("/experiments/ads").text
        for shown in ("37 of 1,000, in mon", "0.5, in tue"):
            assert shown in page
        assert ",37,1000,,,mon" in client.get("/api/experiments/ads/export").text


def test_plain_results_are_as_small_as_they_were(tmp_path):
    with Store(tmp_path / "s.db") as store:
        experiment = make(store, fidelities=Fidelities([1, 5, 25], [0.3, 0.1, 0], Bounded()))
        experiment.tell(experiment.ask(), 1.0)
        experiment.tell(experiment.ask(), successes=1, trials=2)
        experiment.tell(experiment.ask(), 1.0, block="mon")
        with sqlite3.connect(tmp_path / "s.db") as database:
            rows = database.execute(
                "SELECT kind, body FROM mfbandit_log WHERE kind LIKE 'Told%' ORDER BY seq"
            ).fetchall()
        database.close()
    assert rows == [
        ("Told", None),
        ("ToldBatch", '{"weight": 2, "sd": null, "successes": 1}'),
        ("ToldInBlock", '{"weight": 1, "sd": null, "successes": null, "block": "mon"}'),
    ]
