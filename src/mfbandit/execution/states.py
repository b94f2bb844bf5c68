"""What training left behind, for plays that go on from it: in memory, or in a folder that survives."""

import logging
import os
from collections import defaultdict, deque
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol

from mfbandit.errors import InvalidArgument
from mfbandit.execution.attempt import SeededPlay, unpacked

SEED_BYTES = 8

log = logging.getLogger("mfbandit")


class StatePlace(NamedTuple):
    """Which state: the arm, the fidelity, and the number of the play that left it."""

    arm: int
    fidelity: int
    number: int


class Shelf(Protocol):
    """Where packed states are."""

    def found(self) -> list[StatePlace]:
        """Return the states that are there already, in the order of their plays."""
        ...

    def load(self, place: StatePlace) -> tuple[int, bytes] | None:
        """Return the seed of a state's training, and the packed state; None if it is not there."""
        ...

    def save(self, place: StatePlace, seed: int, packed: bytes) -> None:
        """Keep a state."""
        ...

    def remove(self, place: StatePlace) -> None:
        """Remove a state."""
        ...


class MemoryShelf:
    """States in memory."""

    def __init__(self) -> None:
        self._states: dict[StatePlace, tuple[int, bytes]] = {}

    def found(self) -> list[StatePlace]:
        """Return the states that are there."""
        return sorted(self._states, key=lambda place: place.number)

    def load(self, place: StatePlace) -> tuple[int, bytes] | None:
        """Return a seed and a packed state."""
        return self._states.get(place)

    def save(self, place: StatePlace, seed: int, packed: bytes) -> None:
        """Keep a state."""
        self._states[place] = seed, packed

    def remove(self, place: StatePlace) -> None:
        """Remove a state."""
        self._states.pop(place, None)


class FolderShelf:
    """States in files of a folder, ``ARM-FIDELITY-PLAY.state``: eight bytes of seed, then what pickle wrote."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def found(self) -> list[StatePlace]:
        """Return the states in the folder."""
        names = [path.stem.split("-") for path in self._folder.glob("*-*-*.state")]
        places = [StatePlace(*map(int, parts)) for parts in names if all(part.isdecimal() for part in parts)]
        return sorted(places, key=lambda place: place.number)

    def load(self, place: StatePlace) -> tuple[int, bytes] | None:
        """Read a file; one that is cut off counts as gone."""
        try:
            content = self._path(place).read_bytes()
        except OSError:
            return None
        if len(content) <= SEED_BYTES:
            return None
        return int.from_bytes(content[:SEED_BYTES], "little"), content[SEED_BYTES:]

    def save(self, place: StatePlace, seed: int, packed: bytes) -> None:
        """Write a file: whole, or not at all."""
        path = self._path(place)
        new = path.with_suffix(".new")
        new.write_bytes(seed.to_bytes(SEED_BYTES, "little") + packed)
        new.replace(path)

    def remove(self, place: StatePlace) -> None:
        """Remove a file."""
        with suppress(OSError):
            self._path(place).unlink()

    def _path(self, place: StatePlace) -> Path:
        return self._folder / f"{place.arm}-{place.fidelity}-{place.number}.state"


class States:
    """The states of a run's plays, for an experiment whose fidelities resume.

    A state is whatever an objective returned in :class:`~mfbandit.Trained`: a model, its weights, or the path of a
    checkpoint that it wrote itself. It is pickled at once, so that training that goes on changes nothing that others
    may need. One that a play has gone on from is removed, as are those of an arm that is set aside.

    Args:
        folder: where to keep them, in a folder of its own for each experiment, so that a run that was killed finds them
            again. They are read by pickle: nobody else may write there. None is in memory.

    >>> States().count
    0
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        if folder is not None and (not isinstance(folder, str | os.PathLike) or not os.fspath(folder)):
            raise InvalidArgument(f"states must be in a folder, or None for memory, got {folder!r}")
        self._folder = None if folder is None else Path(folder)
        if self._folder is not None and self._folder.exists() and not self._folder.is_dir():
            raise InvalidArgument(f"states must be in a folder, got {str(folder)!r}, which is a file")
        self._shelf: Shelf = MemoryShelf()
        self._free: defaultdict[tuple[int, int], deque[StatePlace]] = defaultdict(deque)
        self._taken: dict[str, StatePlace] = {}  # by the ids of plays that are going on from them
        self._anew: set[str] = set()  # ids of plays whose state was gone

    @property
    def count(self) -> int:
        """How many are kept."""
        return sum(map(len, self._free.values())) + len(self._taken)

    def open(self, experiment: str) -> None:
        """Look for the states of an experiment, by its id."""
        if self._folder is not None:
            self._shelf = FolderShelf(self._folder / experiment)
        self._taken.clear()
        self._free.clear()
        for place in self._shelf.found():
            self._free[place.arm, place.fidelity].append(place)

    def attach(self, play: SeededPlay) -> SeededPlay:
        """Give a play the state that it goes on from, and the seed of that training.

        If the state is gone, the play begins anew.
        """
        if play.resume_from is None or play.id in self._anew:
            return replace(play, resume_from=None)
        at = (play.arm, play.resume_from)
        while play.id in self._taken or self._free[at]:
            place = self._taken.pop(play.id, None) or self._free[at].popleft()
            loaded = self._shelf.load(place)
            if loaded is not None:
                self._taken[play.id] = place
                return replace(play, seed=loaded[0], packed_state=loaded[1])
        self._anew.add(play.id)
        log.warning("the training that play %s (%s) goes on from is gone: it begins anew", play.id, play.label)
        return replace(play, resume_from=None)

    def began_anew(self, play: SeededPlay) -> bool:
        """Return whether a play was to go on from a state that was gone."""
        return play.id in self._anew

    def keep(self, play: SeededPlay, packed: bytes) -> None:
        """Keep the state that a play leaves, before its result is told: what is told can be gone on from."""
        place = StatePlace(play.arm, play.fidelity, int(play.id.rpartition("-")[2]))
        self._shelf.save(place, play.seed, packed)
        if place not in self._free[play.arm, play.fidelity]:  # as it is if a run was killed before it told
            self._free[play.arm, play.fidelity].append(place)

    def settle(self, play: SeededPlay) -> None:
        """After a result is told remove what its play went on from."""
        before = self._taken.pop(play.id, None)
        if before is not None:
            self._shelf.remove(before)

    def give_back(self, play: SeededPlay) -> None:
        """After a failure keep what the play went on from for another one."""
        place = self._taken.pop(play.id, None)
        if place is not None:
            self._free[place.arm, place.fidelity].appendleft(place)

    def drop(self, arm: int) -> None:
        """Remove the states of an arm that is out."""
        for at in [at for at in self._free if at[0] == arm]:
            for place in self._free.pop(at):
                self._shelf.remove(place)

    def best(self, arm: int) -> object:
        """Return the state of an arm at the highest fidelity that has one; None if there is none."""
        for at in sorted((at for at, places in self._free.items() if at[0] == arm and places), reverse=True):
            loaded = self._shelf.load(self._free[at][0])
            if loaded is not None:
                return unpacked(loaded[1])
        return None
