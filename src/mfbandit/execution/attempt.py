"""One attempt at a play, as a worker makes it: the objective is called, and whatever goes wrong is told, not raised."""

import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import numpy as np

from mfbandit._internal.validation import cost as checked_cost
from mfbandit._internal.validation import number
from mfbandit.core import Play
from mfbandit.errors import InvalidArgument

LONGEST_ERROR = 300  # characters of an error that are kept
PAIR = 2  # a reward and what it cost


@dataclass(frozen=True, slots=True)
class SeededPlay(Play):
    """A play with a random seed of its own: what an objective is called with.

    Args:
        seed: below 2³²; depends on the seed of the whole job and on the play, and is the same in every attempt, so that
            a worker that dies changes no result.
        attempt: 1 the first time, 2 after a first failure, and so on.

    >>> SeededPlay("demo-0", 0, 2, 1000.0, "ad-a", seed=7).rng().integers(10)
    np.int64(9)
    """

    seed: int
    attempt: int = 1

    def rng(self) -> np.random.Generator:
        """A fresh random generator from the seed."""
        return np.random.default_rng(self.seed)


Objective = Callable[[SeededPlay], float | tuple[float, float]]


def seeded(play: Play, seed: int = 0) -> SeededPlay:
    """The play with the random seed that :func:`~mfbandit.run` gives it.

    Args:
        play: from ``ask``.
        seed: of the whole job.

    >>> play = Play("demo-0", 0, 2, 1000.0, "ad-a")
    >>> seeded(play, seed=1).seed == seeded(play, seed=1).seed != seeded(play, seed=2).seed
    True
    """
    place = int(play.id.rpartition("-")[2])
    mixed = np.random.SeedSequence(seed, spawn_key=(place,)).generate_state(1)
    return SeededPlay(play.id, play.arm, play.fidelity, play.cost, play.label, seed=int(mixed[0]))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an attempt: a reward, and a cost where the objective said one, or else an error; and its seconds."""

    reward: float | None
    cost: float | None
    error: str | None
    seconds: float


def attempt(objective: Objective, play: SeededPlay, timeout: float | None = None) -> Outcome:
    """Call the objective once.

    Args:
        objective: takes the play, returns a reward or (reward, cost).
        play: what to play.
        timeout: seconds after which it has failed; None is never. In the main thread of a process, where the workers of
            a process pool run, it is interrupted; elsewhere it is left behind in a thread of its own.

    >>> play = SeededPlay("demo-0", 0, 0, 1.0, "ad-a", seed=7)
    >>> attempt(lambda play: 0.5, play).reward
    0.5
    >>> attempt(lambda play: "good", play).error
    "reward must be a number, got 'good'"
    """
    began = time.perf_counter()
    try:
        reward, cost = _checked(_within(timeout, lambda: objective(play)))
    except _TimeIsUp:
        return Outcome(None, None, too_long(timeout), time.perf_counter() - began)
    except KeyboardInterrupt:  # not the play's failure
        raise
    except BaseException as error:  # also sys.exit: a worker goes on after any play
        return Outcome(None, None, described(error), time.perf_counter() - began)
    return Outcome(reward, cost, None, time.perf_counter() - began)


def too_long(timeout: float | None) -> str:
    """The error of a play that took too long.

    >>> too_long(2.0)
    'it took longer than 2 s'
    """
    return f"it took longer than {timeout:g} s"


def described(error: BaseException) -> str:
    """An error in one line that is not too long; our own say enough without their type.

    >>> described(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero'
    """
    try:
        text = " ".join(str(error).split())
    except Exception:  # somebody's own error, which cannot be told
        text = ""
    text = text.encode("utf-8", "backslashreplace").decode()  # halves of characters cannot be sent or kept
    if not (isinstance(error, _NoResult) and text):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text if len(text) <= LONGEST_ERROR else f"{text[:LONGEST_ERROR]}..."


class _NoResult(ValueError):
    """The objective returned something that is no result."""


class _TimeIsUp(BaseException):  # not an Exception: an objective that catches those must not go on
    """The alarm went off."""


def _checked(result: object) -> tuple[float, float | None]:
    try:
        if isinstance(result, tuple):
            if len(result) != PAIR:
                raise InvalidArgument(f"an objective must return a reward or (reward, cost), got {result!r}")
            return number("reward", result[0]), checked_cost(result[1])
        return number("reward", result), None
    except ValueError as error:
        raise _NoResult(str(error)) from None


def _within(seconds: float | None, call: Callable[[], object]) -> object:
    """What a call returns, if it does so within these seconds."""
    if seconds is None:
        return call()
    if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
        with _alarm(seconds):
            return call()
    done: queue.SimpleQueue[tuple[object, BaseException | None]] = queue.SimpleQueue()

    def work() -> None:
        try:
            done.put((call(), None))
        except BaseException as error:  # raised again where it is waited for
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
    def ring(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - what a handler takes
        raise _TimeIsUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
