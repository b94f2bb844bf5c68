"""What was acknowledged survives: kill -9 of the service and of the database under it, and being told to stop."""

from dataclasses import replace

import pytest

import mfbandit as mfb
from mfbandit.core.stats import Play
from mfbandit.experiment.events import Failed, Told
from tests.support import comparison, crash, faults
from tests.support.clients import ARMS, FIDELITIES, Diary
from tests.support.effort import effort

KILLS = effort(6, 30)  # of each kind; `make soak` makes thousands


def assert_good(record: crash.Record, number: int) -> None:
    assert record.problems == ()
    assert record.good
    assert sum(record.faults.values()) == number
    assert record.told > number  # else there was nothing to lose


@pytest.mark.slow
@pytest.mark.no_cover
class TestSQLite:
    def test_kills_of_the_service(self, tmp_path):
        plan = crash.Plan(faults=KILLS, up=(0.02, 0.5))
        assert_good(faults.run(str(tmp_path / "crash.db"), tmp_path, plan), KILLS)

    def test_being_told_to_stop_under_load(self, tmp_path):
        plan = crash.Plan(faults=3, ways=("terminate",), up=(0.2, 0.5))
        assert_good(faults.run(str(tmp_path / "crash.db"), tmp_path, plan), 3)

    def test_what_else_can_happen_to_it(self, tmp_path):
        plan = crash.Plan(faults=6, ways=("wal", "stop", "clock", "node", "move"), in_turn=True, up=(0.2, 0.5))
        assert_good(faults.run(str(tmp_path / "crash.db"), tmp_path, plan), 6)


@pytest.mark.slow
@pytest.mark.no_cover
class TestPostgres:
    def test_kills_of_the_service_or_the_server(self, own_postgres, tmp_path):
        plan = crash.Plan(faults=KILLS, ways=("kill", "server"), up=(0.02, 0.5))
        record = faults.run(own_postgres.database("crash"), tmp_path, plan, server=own_postgres)
        assert_good(record, KILLS)


class TestCompare:
    """That nothing was lost says something only if a loss would be seen."""

    @pytest.fixture
    def experiment(self, tmp_path):
        with mfb.Store(tmp_path / "store.db") as store:
            yield store.create("first", mfb.MFUCB(), arms=ARMS, fidelities=FIDELITIES)

    @pytest.fixture
    def diary(self, experiment):
        """Of a client that asked for two plays, told one and failed the other."""
        one, other = experiment.ask(2, request_key="a")
        experiment.tell(one, 0.25)
        experiment.fail(other)
        return Diary(
            "first",
            keys={"a": 2},
            plays={"a": [one, other]},
            outcomes={0: Told(0, 0.25, one.cost), 1: Failed(1, 0.0)},
            kept={0, 1},
        )

    def found(self, experiment, diary):
        found = comparison.compare(experiment, [diary])
        return found.lost, found.doubled, len(found.problems)

    def test_nothing(self, experiment, diary):
        assert self.found(experiment, diary) == (0, 0, 0)

    def test_a_lost_result(self, experiment, diary):
        diary.outcomes[2] = Told(2, 0.5, 1.0)
        diary.kept.add(2)
        assert self.found(experiment, diary) == (1, 0, 0)

    def test_another_result(self, experiment, diary):
        diary.outcomes[0] = Told(0, 0.26, 1.0)
        assert self.found(experiment, diary) == (1, 0, 1)

    def test_a_lost_ask(self, experiment, diary):
        diary.keys["b"], diary.plays["b"] = 1, [Play("x-7", 3, 0, 1.0, "3")]
        assert self.found(experiment, diary) == (1, 0, 0)

    def test_another_arm(self, experiment, diary):
        diary.plays["a"][1] = replace(diary.plays["a"][1], arm=7)
        assert self.found(experiment, diary) == (1, 0, 0)

    def test_a_request_that_made_plays_twice(self, experiment, diary):
        diary.keys["a"], diary.plays["a"] = 1, diary.plays["a"][:1]
        assert self.found(experiment, diary) == (0, 1, 0)

    def test_half_a_request(self, experiment, diary):
        diary.keys["a"] = 3
        assert self.found(experiment, diary) == (0, 0, 1)

    def test_a_lost_renewal(self, experiment, diary):
        diary.renewed[0] = True
        assert self.found(experiment, diary) == (1, 0, 0)

    @pytest.mark.parametrize("verb", [lambda exp: exp.note("x"), lambda exp: exp.ask(request_key="b")])
    def test_what_nobody_sent(self, experiment, diary, verb):
        verb(experiment)
        assert self.found(experiment, diary) == (0, 0, 1)

    def test_a_play_that_the_policy_did_not_choose(self, experiment, diary):
        experiment.add_results([(11, 1, 0.5, None)], request_key="b")
        diary.keys["b"] = 1
        diary.outcomes[2] = Told(2, 0.5, 10.0)
        assert self.found(experiment, diary) == (0, 0, 1)
