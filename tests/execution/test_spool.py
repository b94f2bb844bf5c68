"""Results that cannot be told are kept, told when the store is back, and taken over by the next run."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from mfbandit import UCB, Batch, Bounded, Counts, Experiment, Fidelities, Store, run, seeded
from mfbandit.core import Play
from mfbandit.errors import InvalidArgument, StoreHeld, StoreUnavailable
from mfbandit.execution import InlineExecutor, outcomes
from mfbandit.execution.outcomes import OutcomeRecorder
from mfbandit.execution.spool import Outcome, Spool
from mfbandit.experiment.events import Failed, Noted
from mfbandit.store.durable_experiment import DurableExperiment

FID = Fidelities([1], concentration=Bounded())
PLAY = Play("demo-0", 0, 0, 1.0, "a")


@pytest.fixture(autouse=True)
def at_once(monkeypatch, tmp_path):
    """Nothing is waited for, and nothing is left in anybody's home."""
    monkeypatch.setattr(outcomes, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr("mfbandit.execution.run_loop.POLL_SECONDS", 0.05)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def experiment(tmp_path):
    with Store(tmp_path / "a.db") as store:
        yield store.create("e", UCB(), arms=["a", "b"], fidelities=FID, capital=32)


def unavailable(monkeypatch, verb, times):
    """Let a verb fail so many times."""
    usual, left = getattr(DurableExperiment, verb), [None] * times

    def sometimes(self, *args, **options):
        if left:
            left.pop()
            raise StoreUnavailable("the disk is full")
        return usual(self, *args, **options)

    monkeypatch.setattr(DurableExperiment, verb, sometimes)


def half(_play):
    return 0.5


@pytest.mark.parametrize("reward", [0.5, Counts(37, 1000), Batch(0.5, 20, 0.1), Batch(0.5, 20)])
def test_what_was_observed_is_read_back(reward):
    outcome = Outcome(PLAY, reward, cost=2.0)
    assert Outcome.from_line(outcome.line()) == outcome


def test_many_observations_are_told_when_the_store_is_back(experiment, monkeypatch):
    unavailable(monkeypatch, "tell", 3)
    with ThreadPoolExecutor(2) as pool:
        run(experiment, lambda play: (Counts(play.arm, 10), 2.0), pool, progress=False)
    assert (experiment.results_at, experiment.observations_at, experiment.spent) == ([16], [160], 32.0)


@pytest.mark.parametrize("verb", ["tell", "ask"])
def test_a_run_goes_on_until_the_store_is_back(experiment, monkeypatch, tmp_path, caplog, verb):
    unavailable(monkeypatch, verb, 5)
    with ThreadPoolExecutor(4) as pool:
        ran = run(experiment, half, pool, progress=False)
    assert (ran.told, len(experiment.history.rewards), experiment.spent) == (32, 32, 32.0)
    assert list(tmp_path.glob("state/mfbandit/*")) == []
    words = {"tell": "the store is back, and ", "ask": "waiting is over: the run goes on"}
    assert words[verb] in caplog.text


def test_a_failed_play_is_kept_too(experiment, monkeypatch):
    unavailable(monkeypatch, "fail", 2)
    ran = run(experiment, lambda play: 1 / play.arm, InlineExecutor(), plays=5, progress=False)
    assert len(ran.failures) == sum(isinstance(event, Failed) for event in experiment.log) > 0
    assert any("ZeroDivisionError" in event.text for event in experiment.log if isinstance(event, Noted))


def test_a_write_that_fails_somewhere(experiment, monkeypatch):
    from mfbandit.store import writer

    usual, groups = writer.Writer._commit, []

    def sometimes(self, group):
        groups.append(group)
        if len(groups) % 7 == 0:
            raise StoreUnavailable("the disk is full")
        return usual(self, group)

    monkeypatch.setattr(writer.Writer, "_commit", sometimes)
    with ThreadPoolExecutor(4) as pool:
        run(experiment, half, pool, progress=False)
    assert (len(experiment.history.rewards), experiment.pending) == (32, ())


def test_ctrl_c_keeps_what_is_untold_for_the_next_run(experiment, monkeypatch, tmp_path, caplog):
    def interrupted(play):
        if play.id.endswith("-3"):
            raise KeyboardInterrupt
        return 0.25

    with monkeypatch.context() as patch:
        unavailable(patch, "tell", 10**6)
        patch.setattr(OutcomeRecorder, "untold", 0)  # it asks on, so that there are several
        with pytest.raises(KeyboardInterrupt):
            run(experiment, interrupted, InlineExecutor(), spool=tmp_path / "spool", progress=False)
    (kept,) = (tmp_path / "spool").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert [json.loads(line)["reward"] for line in kept.read_text().splitlines()] == [0.25] * 3
    kept.write_text(kept.read_text() + '{"play": {"id"')  # cut off by a power failure
    run(experiment, half, InlineExecutor(), plays=1, spool=tmp_path / "spool", progress=False)
    assert experiment.history.rewards.tolist() == [0.25] * 3 + [0.5]
    assert "untold results of an earlier run, which are told first: 3" in caplog.text
    assert "cannot be read, and is left out" in caplog.text
    assert list((tmp_path / "spool").iterdir()) == []


def test_a_result_that_is_refused_for_good_is_kept_too(experiment, monkeypatch, tmp_path):
    def lost(*_args, **_options):
        raise StoreHeld("somebody else has the store")

    with monkeypatch.context() as patch:
        patch.setattr(DurableExperiment, "tell", lost)
        with pytest.raises(StoreHeld):
            run(experiment, half, InlineExecutor(), spool=tmp_path / "spool", progress=False)
    run(experiment, half, InlineExecutor(), plays=0, spool=tmp_path / "spool", progress=False)
    assert experiment.history.rewards.tolist() == [0.5]


def test_the_name_of_an_experiment_leads_nowhere_else(tmp_path):
    spool = Spool("../*", tmp_path / "spool")
    spool.add(Outcome(PLAY, reward=0.5))
    spool.close()
    assert [path.parent for path in tmp_path.rglob("*.jsonl")] == [tmp_path / "spool"]
    assert Spool("../*", tmp_path / "spool").take_over() == 1


def test_the_spool_of_a_run_that_goes_on_is_left_alone(tmp_path):
    mine, others = Spool("demo", tmp_path), Spool("demo", tmp_path)
    mine.add(Outcome(PLAY, reward=0.5))
    assert (others.take_over(), Spool("other", tmp_path).take_over()) == (0, 0)
    mine.close()
    assert others.take_over() == 1
    assert list(others.outcomes) == [Outcome(PLAY, reward=0.5)]


def test_a_spool_that_cannot_be_written(tmp_path, caplog):
    (tmp_path / "file").touch()
    spool = Spool("demo", tmp_path / "file" / "below")
    spool.add(Outcome(PLAY, reward=0.5))
    assert len(spool.outcomes) == 1
    assert "the result of play demo-0 is kept in memory alone: " in caplog.text


def test_a_spool_must_be_a_folder(tmp_path):
    (tmp_path / "file").touch()
    experiment = Experiment(UCB(), arms=1, fidelities=FID)
    with pytest.raises(ValueError, match=r"spool must be a folder, got .*file', which is a file"):
        run(experiment, half, InlineExecutor(), spool=tmp_path / "file")
    with pytest.raises(ValueError, match="spool must be a folder, got ''"):
        run(experiment, half, InlineExecutor(), spool="")


def test_an_arm_that_another_worker_has_restored_is_no_error():
    class Shared(Experiment):
        """Others restore an arm between a look at it and the restoring."""

        def restore_arm(self, arm, **options):
            super().restore_arm(arm, **options)
            raise InvalidArgument("arm must be one that was retired or set aside, got arm 0, which was not")

    experiment = Shared(UCB(), arms=1, fidelities=FID)
    OutcomeRecorder(experiment).give_back(experiment.ask(3))  # type: ignore[arg-type]
    assert (experiment.set_aside, experiment.pending) == ((), ())


class TestWhoseFailuresSetAnArmAside:
    def test_the_third_of_them_is_ours_although_it_was_set_aside_before(self, experiment):
        """Another worker that ended has restored it meanwhile, and two more have given plays back."""

        class Meanwhile(DurableExperiment):
            def fail(self, play, cost=0.0, *, request_key=None):
                experiment.restore_arm(0)
                experiment.fail_many(others)
                super().fail(play, cost, request_key=request_key)

        experiment.retire_arm(1)
        ours, *others = experiment.ask(3)
        experiment.fail_many(experiment.ask(3))
        assert experiment.set_aside == (0,)
        OutcomeRecorder(Meanwhile(experiment._logged)).give_back([seeded(ours)])
        assert (experiment.set_aside, experiment.pending) == ((), ())

    def test_one_that_others_have_set_aside_stays_so(self, experiment):
        experiment.retire_arm(1)
        ours, *others = experiment.ask(4)
        experiment.fail_many(others)
        OutcomeRecorder(experiment).give_back([seeded(ours)])
        assert (experiment.set_aside, experiment.pending) == ((0,), ())


def test_a_run_ends_with_what_the_experiment_warns_of(experiment):
    ran = run(experiment, lambda play: 1 / play.arm, InlineExecutor(), plays=6, progress=False)
    assert ran.warnings == ("WARNING: a was set aside after 3 failures in a row; `restore_arm` brings it back",)
