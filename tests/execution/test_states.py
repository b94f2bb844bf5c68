"""Plays that go on from states: in memory and in a folder, on threads and processes, after failures and kills."""

import threading
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import pytest

import mfbandit as mfb
from mfbandit.errors import InvalidArgument
from mfbandit.execution.attempt import make_attempt
from mfbandit.execution.states import FolderShelf, MemoryShelf, StatePlace
from mfbandit.experiment.events import Told
from tests.support.objectives import EPOCHS, trained

FID = mfb.Fidelities([1, 4, 16], resume=True)


def experiment(arms=6, capital=60.0):
    return mfb.Experiment(mfb.MFTopTwo(capital), arms=arms, fidelities=FID, capital=capital)


def told(exp):
    return {event.play: (event.reward, event.cost) for event in exp.log if isinstance(event, Told)}


def made(states=None, executor=None, objective: Any = trained, **options: Any):
    exp = experiment()
    with executor or ThreadPoolExecutor(1) as pool:
        mfb.run(exp, objective, pool, progress=False, states=mfb.States() if states is None else states, **options)
    return exp


@pytest.mark.parametrize("executor", [lambda: ThreadPoolExecutor(3), lambda: ProcessPoolExecutor(2)])
def test_training_goes_on_where_it_was(executor, tmp_path):
    states = mfb.States(tmp_path)
    exp = made(states, executor())
    starts = [exp.play(number) for number in told(exp)]
    assert any(play.resume_from is not None for play in starts)
    for play in starts:
        reward, cost = told(exp)[exp.number(play)]
        assert reward == sum(range(EPOCHS[play.fidelity])) + play.arm  # each epoch once, whoever trained it
        assert cost == play.cost
    assert exp.spent <= 60
    assert states.count == int(exp.stats.states.sum()) == len(list(tmp_path.glob("*/*.state")))


def test_the_seed_is_that_of_the_first_play():
    seeds: dict[int, set[int]] = {}

    def objective(play):
        state = play.state() or {"seed": play.seed}
        assert state["seed"] == play.seed
        seeds.setdefault(play.arm, set()).add(play.seed)
        return mfb.Trained(float(play.arm), state)

    exp = made(objective=objective)
    fresh = Counter(exp.play(number).arm for number in told(exp) if exp.play(number).resume_from is None)
    assert {arm: len(found) for arm, found in seeds.items()} == dict(fresh)


def test_a_play_that_fails_leaves_its_state_to_the_next():
    failed: list[mfb.SeededPlay] = []

    def objective(play):
        if play.resume_from is not None and len(failed) < 2:
            failed.append(play)
            play.state()["epochs"].append("spoilt")
            raise RuntimeError
        return trained(play)

    exp = made(objective=objective, retries=1)
    assert [play.attempt for play in failed] == [1, 2]
    for number, (reward, _) in told(exp).items():
        play = exp.play(number)
        assert reward == sum(range(EPOCHS[play.fidelity])) + play.arm


def test_states_of_an_arm_that_is_set_aside_are_dropped():
    def objective(play):
        if play.arm == 5 and play.fidelity:
            raise RuntimeError
        return trained(play)

    states = mfb.States()
    exp = made(states, objective=objective)
    assert exp.set_aside == (5,)
    assert states.best(5) is None
    assert not exp.stats.states[:, 5].any()
    assert states.best(4) is not None


def test_a_state_that_is_gone_costs_the_whole(tmp_path, caplog):
    def objective(play):
        for path in tmp_path.glob("*/*.state"):
            path.unlink()
        return trained(play)

    exp = made(mfb.States(tmp_path), objective=objective)
    anew = [(exp.play(n), cost) for n, (_, cost) in told(exp).items() if cost != exp.play(n).cost]
    assert anew
    for play, cost in anew:
        assert cost == FID.costs[play.fidelity]
    assert "is gone: it begins anew" in caplog.text


def test_a_folder_is_found_again(tmp_path):
    exp = experiment()
    with ThreadPoolExecutor(1) as pool:
        mfb.run(exp, trained, pool, progress=False, states=mfb.States(tmp_path), plays=8)
        mfb.run(exp, trained, pool, progress=False, states=mfb.States(tmp_path))
    whole = made()
    assert told(exp) == told(whole)


def test_shelves_are_alike(tmp_path):
    for shelf in (MemoryShelf(), FolderShelf(tmp_path / "states")):
        one, two = StatePlace(3, 1, 12), StatePlace(3, 1, 7)
        assert shelf.load(one) is None
        shelf.save(one, 2**32 - 1, b"abc")
        shelf.save(two, 0, b"d")
        assert shelf.found() == [two, one]
        assert shelf.load(one) == (2**32 - 1, b"abc")
        shelf.remove(one)
        shelf.remove(one)
        assert shelf.found() == [two]
    (tmp_path / "states" / "3-1-7.state").write_bytes(b"cut")
    (tmp_path / "states" / "not-a-state.state").touch()
    assert FolderShelf(tmp_path / "states").load(two) is None
    assert FolderShelf(tmp_path / "states").found() == [two]


def test_what_cannot_be_kept():
    play = mfb.SeededPlay("demo-0", 0, 0, 1.0, "a", seed=7)
    error = make_attempt(lambda _: mfb.Trained(0.5, threading.Lock()), play).error
    assert error is not None
    assert error.startswith("state must be something that pickle can keep, or the path of a checkpoint, got a lock")
    assert make_attempt(lambda _: mfb.Trained("good", 1), play).error == "reward must be a number, got 'good'"  # type: ignore[arg-type]
    assert make_attempt(lambda _: mfb.Trained(1.0, 1, -1), play).error == "cost must not be negative, got -1"
    assert make_attempt(lambda _: mfb.Trained(1.0, 1, 2), play).cost == 2


def test_what_is_refused(tmp_path):
    plain = mfb.Experiment(mfb.MFTopTwo(9), arms=2, fidelities=mfb.Fidelities([1, 4]), capital=9)
    (tmp_path / "file").touch()
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(InvalidArgument, match="states must be None for an experiment whose fidelities do not"):
            mfb.run(plain, trained, pool, states=mfb.States())
        with pytest.raises(InvalidArgument, match="states must be a States, got 'here'"):
            mfb.run(plain, trained, pool, states="here")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"states must be in a folder, got '.*file', which is a file"):
        mfb.States(tmp_path / "file")
    with pytest.raises(InvalidArgument, match="states must be in a folder, or None for memory, got 3"):
        mfb.States(3)  # type: ignore[arg-type]
