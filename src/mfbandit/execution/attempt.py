"""One attempt at a play, as a worker makes it: call the objective, and return an error instead of raising it."""

import os
import pickle
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from types import FrameType
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from mfbandit._internal.imports import installed
from mfbandit._internal.validation import cost as checked_cost
from mfbandit._internal.validation import number
from mfbandit.core import Batch, Counts, Play, Reward
from mfbandit.errors import InvalidArgument

MAX_ERROR_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class SeededPlay(Play):
    """A play with a random seed of its own: what an objective is called with.

    Args:
        seed: below 2³². It depends on the seed of the whole run and on the play. It is the same in every attempt, so
            that a worker that dies changes no result.
        attempt: 1 the first time, 2 after a first failure, and so on.
        packed_state: what it goes on from, pickled; see :meth:`state`.

    >>> SeededPlay("demo-0", 0, 2, 1000.0, "ad-a", seed=7).rng().integers(10)
    np.int64(9)
    """

    seed: int
    attempt: int = 1
    packed_state: bytes | None = field(default=None, repr=False)

    def state(self) -> Any:  # noqa: ANN401 - whatever an objective returned
        """Return a copy of the state that this play goes on from, if ``run`` keeps them; None if it begins anew."""
        return None if self.packed_state is None else unpacked(self.packed_state)

    def rng(self) -> np.random.Generator:
        """Return a new random generator with this seed."""
        return np.random.default_rng(self.seed)


@dataclass(frozen=True, slots=True)
class Trained:
    """What an objective returns whose plays resume: a reward, and a state that a later play can go on from.

    Args:
        reward: of the play.
        state: anything that pickle can keep, such as a model, or the path of a checkpoint that the objective wrote.
        cost: what the play cost; None for what its fidelity costs beyond the one that it went on from.

    >>> Trained(0.5, state={"weights": [1.0, 2.0]}).reward
    0.5
    """

    reward: Reward
    state: object
    cost: float | None = None


Objective = Callable[[SeededPlay], Reward | tuple[Reward, float] | Trained]
"""Takes a play; returns its reward, or its reward and its cost. A reward may be many observations."""


@runtime_checkable
class HasParts(Protocol):
    """An objective that has something for each arm, such as its settings: a worker is sent only what a play needs."""

    def of_play(self, play: SeededPlay) -> Objective:
        """Return the objective of one play."""
        ...


def seeded(play: Play, seed: int = 0) -> SeededPlay:
    """Return the play with the random seed that :func:`~mfbandit.run` gives it.

    Args:
        play: from ``ask``.
        seed: of the whole run.

    >>> play = Play("demo-0", 0, 2, 1000.0, "ad-a")
    >>> seeded(play, seed=1).seed == seeded(play, seed=1).seed != seeded(play, seed=2).seed
    True
    """
    place = int(play.id.rpartition("-")[2])
    mixed = np.random.SeedSequence(seed, spawn_key=(place,)).generate_state(1)
    known = (play.id, play.arm, play.fidelity, play.cost, play.label)
    return SeededPlay(*known, seed=int(mixed[0]), resume_from=play.resume_from)


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """The result of an attempt: a reward, and a cost if the objective returned one; or else an error.

    Args:
        reward: None if the attempt failed.
        cost: None if the play cost what its fidelity costs.
        error: why the attempt failed, in one line.
        seconds: how long it took.
        state: pickled, if the objective returned one.
    """

    reward: Reward | None
    cost: float | None
    error: str | None
    seconds: float
    state: bytes | None = None


def make_attempt(objective: Objective, play: SeededPlay, timeout: float | None = None) -> AttemptResult:
    """Call the objective once.

    Args:
        objective: takes the play, returns a reward or (reward, cost).
        play: what to play.
        timeout: seconds after which the attempt has failed; None is never. In the main thread of a process, where the
            workers of a process pool run, the objective is interrupted. Elsewhere it is left in a thread of its own.

    >>> play = SeededPlay("demo-0", 0, 0, 1.0, "ad-a", seed=7)
    >>> make_attempt(lambda play: 0.5, play).reward
    0.5
    >>> make_attempt(lambda play: "good", play).error
    "reward must be a number, got 'good'"
    """
    began = time.perf_counter()
    try:
        result = _call_within(timeout, lambda: _call_here(objective, play))
        packed = packed_state(result.state) if isinstance(result, Trained) else None
        reward, cost = _checked(result)
    except _TimeIsUp:
        return AttemptResult(None, None, timeout_error(timeout), time.perf_counter() - began)
    except KeyboardInterrupt:  # not the play's failure
        raise
    except BaseException as error:  # also sys.exit: a worker goes on after any play
        return AttemptResult(None, None, describe_error(error), time.perf_counter() - began)
    return AttemptResult(reward, cost, None, time.perf_counter() - began, packed)


def packed_state(state: object) -> bytes:
    """Return a state as bytes.

    >>> unpacked(packed_state([1, 2]))
    [1, 2]
    >>> packed_state(threading.Lock())
    Traceback (most recent call last):
    mfbandit.execution.attempt._NoResult: state must be something that pickle can keep, or the path of a checkpoint,
        got a lock (cannot pickle '_thread.lock' object)
    """
    try:
        # What a script itself defines is known on other machines by cloudpickle alone.
        return cast("bytes", _pickler().dumps(state, protocol=pickle.HIGHEST_PROTOCOL))
    except Exception as error:  # pickle and the state's own methods raise whatever they like
        raise _NoResult(
            "state must be something that pickle can keep, or the path of a checkpoint, got a "
            f"{type(state).__name__} ({error})"
        ) from None


def unpacked(packed: bytes) -> Any:  # noqa: ANN401 - whatever an objective returned
    """Return the state that :func:`packed_state` made bytes of."""
    return pickle.loads(packed)  # noqa: S301 - of this run, or of a folder that its user named


def _pickler() -> Any:  # noqa: ANN401 - a module
    return import_module("cloudpickle") if installed("cloudpickle") else pickle


def timeout_error(timeout: float | None) -> str:
    """Return the error of a play that took too long.

    >>> timeout_error(2.0)
    'it took longer than 2 s'
    """
    return f"it took longer than {timeout:g} s"


def describe_error(error: BaseException) -> str:
    """Return an error in one line of limited length, with its type unless the message is our own.

    >>> describe_error(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero'
    """
    try:
        text = " ".join(str(error).split())
    except Exception:  # somebody's own error, which has no text
        text = ""
    text = text.encode("utf-8", "backslashreplace").decode()  # lone surrogates can be neither sent nor stored
    if not (isinstance(error, _NoResult) and text):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text if len(text) <= MAX_ERROR_CHARACTERS else f"{text[:MAX_ERROR_CHARACTERS]}..."


class _NoResult(InvalidArgument):
    """The objective returned something that is no result."""


class _TimeIsUp(BaseException):  # not an Exception: an objective that catches those must not go on
    """The timeout has passed."""


def _checked(result: object) -> tuple[Reward, float | None]:
    try:
        match result:
            case Trained(reward, _, cost):
                return _reward(reward), None if cost is None else checked_cost(cost)
            case tuple((reward, cost)):
                return _reward(reward), checked_cost(cost)
            case tuple():
                raise InvalidArgument(f"an objective must return a reward or (reward, cost), got {result!r}")
        return _reward(result), None
    except InvalidArgument as error:
        raise _NoResult(str(error)) from None


def _reward(value: object) -> Reward:
    return value if isinstance(value, Counts | Batch) else number("reward", value)


def _call_here(objective: Objective, play: SeededPlay) -> object:
    """Call the objective; a child process that it forked off, and that comes back here, ends."""
    pid = os.getpid()
    try:
        return objective(play)
    finally:
        if os.getpid() != pid:  # else it would tell a result as well, and go on with the run
            os._exit(_exit_code(sys.exception()))


def _exit_code(error: BaseException | None) -> int:
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    return int(error is not None)


def _call_within(seconds: float | None, call: Callable[[], object]) -> object:
    """Return what a call returns, if it does so within these seconds."""
    if seconds is None:
        return call()
    if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
        with _alarm(seconds):
            return call()
    return _call_in_thread(seconds, call)


def _call_in_thread(seconds: float, call: Callable[[], object]) -> object:
    done: queue.SimpleQueue[tuple[object, BaseException | None]] = queue.SimpleQueue()

    def work() -> None:
        try:
            done.put((call(), None))
        except BaseException as error:  # raised again by the caller
            done.put((None, error))

    threading.Thread(target=work, name="play", daemon=True).start()
    try:
        result, error = done.get(timeout=seconds)
    except queue.Empty:
        raise _TimeIsUp from None
    if error is not None:
        raise error
    return result


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(_number: int, _frame: FrameType | None) -> None:
        raise _TimeIsUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
