"""Objectives that tests run on workers: at the top of a module, so that they can be sent to other processes."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from mfbandit import Trained

FINE = 0.5
EPOCHS = (1, 4, 16)  # by fidelity


def noisy(play):
    return play.rng().normal(0.1 * play.arm, 0.1)


def coin(play):
    return float(play.rng().random() < 0.3 + 0.1 * play.arm)


def slow(play):
    time.sleep(0.05)
    return noisy(play)


def long(play):
    time.sleep(2.5)
    return noisy(play)


def misbehaving(play):
    """Does what the arm's name says."""
    if play.label == "raises":
        raise ZeroDivisionError("x over 0")
    if play.label == "dies":
        os._exit(3)
    if play.label == "exits":
        raise SystemExit(4)
    if play.label == "hangs":
        time.sleep(60)
    if play.label == "hangs hard":
        _go_on_for_ever()
    time.sleep(0.02)
    return {"nan": float("nan"), "text": "good", "triple": (1, 2, 3), "poor": (FINE, -1)}.get(play.label, FINE)


def _go_on_for_ever():
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with suppress(BaseException):
            time.sleep(60)


def play_number(play) -> int:
    """The number in a play's id: plays are counted from 0."""
    return int(play.id.rpartition("-")[2])


def dying_now_and_then(play):
    """The best arm's plays are under way together when the 15th and the 40th take their worker along."""
    if play_number(play) in (15, 40):
        time.sleep(0.05)
        os._exit(3)
    time.sleep(0.1)
    return play.rng().normal({"best": 0.9, "poor": 0.1}[play.label], 0.1)


def second_time(play):
    """Fails in the first attempt."""
    if play.attempt == 1:
        raise RuntimeError("not yet")
    return noisy(play)


def priced(play):
    return FINE, 0.25 * play.cost


class Marking:
    """Leaves a file for each call, and takes its time."""

    def __init__(self, folder, seconds):
        self.folder, self.seconds = Path(folder), seconds

    def __call__(self, play):
        (self.folder / f"{play.id}.{os.getpid()}.{time.time_ns()}").touch()
        time.sleep(self.seconds)
        return noisy(play)


class DyingLast(Marking):
    """The arm that dies does so when a file is there: when all others have ended."""

    def __init__(self, folder, go):
        super().__init__(folder, 0.0)
        self.go = go

    def __call__(self, play):
        reward = super().__call__(play)
        if play.label != "dies":
            return reward
        _wait_for(self.go)
        return misbehaving(play)


class Waiting(Marking):
    """One play, by its number, goes on when a file is there."""

    def __init__(self, folder, seconds, number, go):
        super().__init__(folder, seconds)
        self.number, self.go = number, go

    def __call__(self, play):
        reward = super().__call__(play)
        if play_number(play) == self.number:
            _wait_for(self.go)
        return reward


def _wait_for(file):
    end = time.monotonic() + 120
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.01)


def curve(config, epochs, seed):
    """A score that grows with the epochs, best at a rate of 0.3, with a little noise."""
    return -((config["rate"] - 0.3) ** 2) - 0.1 / epochs + 1e-3 * (seed / 2**32)


def curve_or_kill(mark, config, epochs, seed):
    """The same; the first time at 25 epochs its process is killed, and leaves a file."""
    if epochs == 25 and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return curve(config, epochs, seed)


def trained(play):
    """Training that remembers which epochs it has had; the reward is their sum."""
    state = play.state() or {"epochs": []}
    state["epochs"] += range(len(state["epochs"]), EPOCHS[play.fidelity])
    return Trained(float(sum(state["epochs"])) + play.arm, state)


def walked(config, epochs, seed, state):
    """Training for tune: a random walk that goes on where it was, with the same draws."""
    state = state or (0, 0.0)
    total = state[1] + sum(((seed + k) % 7 - 3) * 1e-4 + 0.01 * config["rate"] for k in range(state[0], epochs))
    return total, (epochs, total)


def walked_or_kill(mark, config, epochs, seed, state):
    """The same; the first time that it goes on to 25 epochs its process is killed, and leaves a file."""
    if epochs == 25 and state is not None and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return walked(config, epochs, seed, state)


def marked_curve(folder, go, config, epochs, seed):
    """The curve, with a file for each call; the candidate of place 12 goes on when a file is there."""
    (Path(folder) / f"{epochs}-{config['k']}.{os.getpid()}.{time.time_ns()}").touch()
    if config["k"] == 12:
        _wait_for(Path(go))
    time.sleep(0.02)
    return curve(config, epochs, seed)
