"""Outcomes of plays that could not be told, on disk until the store or the service is back.

Each run has a file of its own, made when it is first needed. The file of a run that ended is taken over by the next run
of the same experiment, which tells what is in it first. A result that was told twice counts once.
"""

import json
import logging
import os
import secrets
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

from mfbandit.core import Play, Reward, observed

log = logging.getLogger("mfbandit")


@dataclass(frozen=True)
class Outcome:
    """What came of a play: a reward, and what it cost where that is not its fidelity's cost; or else an error.

    >>> Outcome.from_line(Outcome(Play("demo-0", 0, 2, 1000.0, "ad-a"), reward=0.5).line()).reward
    0.5
    """

    play: Play
    reward: Reward | None = None
    cost: float | None = None
    error: str | None = None

    def line(self) -> str:
        """As a line of JSON."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def from_line(cls, line: str) -> "Outcome":
        """The outcome that :meth:`line` wrote."""
        record = json.loads(line)
        if isinstance(record.get("reward"), dict):  # many observations
            record["reward"] = observed(**record["reward"])
        return cls(Play(**record.pop("play")), **record)


class Spool:
    """The outcomes that were not told yet, in the order in which they came.

    Args:
        experiment: its id.
        folder: where files are kept; None for the user's state folder.
    """

    def __init__(self, experiment: str, folder: Path | None = None) -> None:
        self._experiment, self._folder = quote(experiment, safe=""), folder or _state_folder()
        self.outcomes: deque[Outcome] = deque()
        self._files: dict[Path, int] = {}  # open, and locked for as long as this run lives
        self.place: Path | None = None

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome, on disk if that is possible."""
        self.outcomes.append(outcome)
        try:
            if self.place is None:
                self._make_file()
            if self.place is not None:
                os.write(self._files[self.place], outcome.line().encode())
                os.fsync(self._files[self.place])
        except OSError as error:
            log.warning("the result of play %s is kept in memory alone: %s", outcome.play.id, error)

    def take_over(self) -> int:
        """Take over what runs of the same experiment left behind; return how many outcomes."""
        before = len(self.outcomes)
        with suppress(OSError):  # no folder, no outcomes
            for path in sorted(self._folder.glob(f"{self._experiment}-*.jsonl")):
                self._take_over(path)
        return len(self.outcomes) - before

    def clear(self) -> None:
        """Remove the files: everything in them was told."""
        for path in self._files:
            with suppress(OSError):
                path.unlink()
        self.close()

    def close(self) -> None:
        """Leave the files to the next run."""
        for file in self._files.values():
            os.close(file)
        self._files, self.place = {}, None

    def _make_file(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"{self._experiment}-{secrets.token_hex(6)}.jsonl"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._files[path] = os.open(path, flags, 0o600)
        _lock(self._files[path])
        self.place = path

    def _take_over(self, path: Path) -> None:
        file = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
        if not _lock(file):  # its run goes on
            os.close(file)
            return
        self._files[path] = file
        self.outcomes.extend(_read(path))


def _read(path: Path) -> Iterator[Outcome]:
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            yield Outcome.from_line(line)
        except (ValueError, TypeError, LookupError, AttributeError):  # cut off in the middle, as its run was killed
            log.warning("a line of %s cannot be read, and is left out", path)


def _lock(file: int) -> bool:
    """Lock a file for as long as it is open; return whether nobody else has it."""
    try:
        import fcntl  # not on Windows
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _state_folder() -> Path:
    given = os.environ.get("XDG_STATE_HOME")
    return (Path(given) if given else Path("~/.local/state").expanduser()) / "mfbandit"
