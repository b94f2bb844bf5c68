"""What was acknowledged survives: kill -9 of the service and of the database under it, and being told to stop."""

from tests import crash


def assert_good(record: crash.Record, kills: int) -> None:
    assert record.faults == ()
    assert (record.kills, record.lost, record.doubled) == (kills, 0, 0)
    assert record.told > kills  # else there was nothing to lose


class TestSQLite:
    def test_thirty_kills_of_the_service(self, tmp_path):
        plan = crash.Plan(kills=30, up=(0.02, 0.5))
        assert_good(crash.run(str(tmp_path / "crash.db"), tmp_path, plan), 30)

    def test_being_told_to_stop_under_load(self, tmp_path):
        plan = crash.Plan(kills=3, ways=("terminate",), up=(0.2, 0.5))
        assert_good(crash.run(str(tmp_path / "crash.db"), tmp_path, plan), 3)


class TestPostgres:
    def test_thirty_kills_of_the_service_or_the_server(self, own_postgres, tmp_path):
        plan = crash.Plan(kills=30, ways=("kill", "server"), up=(0.02, 0.5))
        record = crash.run(own_postgres.database("crash"), tmp_path, plan, server=own_postgres)
        assert_good(record, 30)
