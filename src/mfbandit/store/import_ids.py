"""Which results from elsewhere are there already, by the ids of their rows, folded from a log.

The event that tells such a result carries the row's id as its text. Beside it, where other events have the end of a
lease, it carries a number made from the id: so the fold needs no texts, and a million ids are read in milliseconds.
"""

import hashlib
from collections.abc import Sequence

import numpy as np

from mfbandit._internal.limits import MAX_IMPORT_ID_LENGTH
from mfbandit._internal.typing import BoolArray, FloatArray, IntArray
from mfbandit.core import Play, Reward
from mfbandit.errors import Conflict, InvalidArgument, UnknownPlay
from mfbandit.experiment import Experiment, Packed, PackedLog, PastResult, Record, Told, is_told, told
from mfbandit.store.request_keys import SEPARATOR

BITS = 53  # a number of so many bits is exact as a float
NEEDED = 4  # values of a result: arm, fidelity, reward and cost
UNSORTED = 65_536  # ids that came one by one, before they are sorted in


def checked_import_id(name: object) -> str:
    """The id of a row: short, and safe to be kept and printed.

    >>> checked_import_id("")
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: the id of a result must be 1 to 200 printable characters, got ''
    """
    length = MAX_IMPORT_ID_LENGTH
    if not isinstance(name, str) or not 0 < len(name) <= length or not name.isprintable():
        raise InvalidArgument(f"the id of a result must be 1 to {length} printable characters, got {name!r}")
    return name


def import_mark(name: str) -> float:
    """The number by which an id is found.

    >>> import_mark("a") == import_mark("a"), import_mark("a") == import_mark("b")
    (True, False)
    """
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return float(int.from_bytes(digest) >> (64 - BITS))


def import_record(record: Record, name: str) -> Record:
    r"""The record of a result with the id of its row.

    >>> import_record(Record(1, 0.0, Told(0, 0.5, 1.0)), "row-7").request
    '\trow-7'
    """
    return record._replace(due=import_mark(name), request=f"{SEPARATOR}{name}")


def is_import(rows: Packed) -> BoolArray:
    """Which packed events tell results that had ids.

    >>> is_import(PackedLog.of([Told(0, 0.5, 1.0)]).rows).tolist()
    [False]
    """
    return np.asarray(is_told(rows) & ~np.isnan(rows["due"]))


class ImportIds:
    """The ids of rows that are there, as numbers: 16 bytes each, and about 100 for one that came since it was opened.

    >>> ids = ImportIds()
    >>> ids.apply(import_record(Record(2, 0.0, Told(0, 0.5, 1.0)), "row-7"))
    >>> ids.find("row-7"), ids.find("row-8")
    (0, None)
    """

    def __init__(self) -> None:
        self._marks: FloatArray = np.empty(0)  # increasing
        self._plays: IntArray = np.empty(0, dtype=np.int64)
        self._new: dict[float, int] = {}

    def __len__(self) -> int:
        return len(self._marks) + len(self._new)

    def apply(self, record: Record) -> None:
        """Move on by one event."""
        if isinstance(record.event, Told) and record.due is not None:
            self._new[record.due] = record.event.play
            if len(self._new) > UNSORTED:
                marks = np.fromiter(self._new, np.float64, len(self._new))
                self._sort_in(marks, np.fromiter(self._new.values(), np.int64, len(self._new)))
                self._new = {}

    def apply_all(self, log: PackedLog) -> None:
        """Move on by all events of a packed log; what one at a time gives."""
        rows = log.rows[is_import(log.rows)]
        self._sort_in(rows["due"], rows["play"])

    def find(self, name: str) -> int | None:
        """The number of the play that a row became, or None if it is not there."""
        mark = import_mark(name)
        if mark in self._new:
            return self._new[mark]
        place = int(np.searchsorted(self._marks, mark))
        return int(self._plays[place]) if place < len(self._marks) and self._marks[place] == mark else None

    def _sort_in(self, marks: FloatArray, plays: IntArray) -> None:
        everything = np.concatenate([self._marks, marks])
        order = np.argsort(everything, kind="stable")
        self._marks, self._plays = everything[order], np.concatenate([self._plays, plays])[order]


class ImportPlan:
    """What an import does: plays that it makes, pending plays that it tells, and the play of every row.

    Args:
        core: the experiment in memory.
        known: the ids that are there.
        results: arm, fidelity, reward, cost and maybe an id each.
    """

    def __init__(self, core: Experiment, known: ImportIds, results: Sequence[PastResult]) -> None:
        self._core, self._known = core, known
        self.new: list[PastResult] = []
        self.tells: dict[int, tuple[str, Reward, float | None]] = {}
        self.ids: dict[int, str] = {}  # by the numbers of plays that will be made
        self.rows: list[int] = []
        self._first, self._seen = len(core.folded.plays), dict[str, tuple[int, PastResult]]()
        names = [(*result, None)[4] if len(result) >= NEEDED else None for result in results]
        self.has_ids = any(name is not None for name in names)
        if self.has_ids and None in names:
            raise InvalidArgument("ids must be given for all results or for none, got some without")
        for number, (name, result) in enumerate(zip(names, results, strict=True), start=1):
            row = self._add(result) if name is None else self._recognize(number, checked_import_id(name), result)
            self.rows.append(row)

    def run(self, core: Experiment) -> list[Play]:
        """Do it: all of it, or nothing if something is refused."""
        core.check_results(self.new)
        core.tell_many(self.tells.values())
        core.add_results(self.new)
        return [core.play(at) for at in self.rows]

    def answer(self, core: Experiment, made: list[int]) -> list[Play]:
        """The answer, where all was done before; an earlier version kept no ids, and only knows what it made."""
        return [core.play(at) for at in (made if self.new else self.rows)]

    def _add(self, result: PastResult) -> int:
        self.new.append((*result, None, None)[:4])
        return self._first + len(self.new) - 1

    def _recognize(self, number: int, name: str, result: PastResult) -> int:
        at = self._known.find(name)
        if at is None:
            at = self._own(name)
        if at is not None:
            self._compare(number, name, at, result)
            return at
        if name not in self._seen:
            at = self._add(result)
            self.ids[at], self._seen[name] = name, (at, result)
        at, first = self._seen[name]
        if first[:4] != result[:4]:
            raise Conflict(f"Result {number}: id {name!r} came twice, with {first[:4]} and {result[:4]}")
        return at

    def _own(self, name: str) -> int | None:
        try:
            return self._core.number(name)
        except UnknownPlay:
            return None

    def _compare(self, number: int, name: str, at: int, result: PastResult) -> None:
        arm, fidelity, reward, cost = (*result, None)[:4]
        plays, index = self._core.folded.plays, self._core.folded.index
        outcome = plays.outcome(at)
        same_play = plays[at] == (index.get(arm) if isinstance(arm, str) else arm, fidelity)
        if same_play and plays.takes_outcome(at):
            telling = (name, reward, cost)
            if self.tells.setdefault(at, telling) == telling:
                return
        elif same_play and isinstance(outcome, Told) and outcome == _as_told(at, reward, cost, outcome):
            return
        known = f"arm {plays.arms[at]}, fidelity {plays.fidelities[at]}, {outcome}"
        raise Conflict(f"Result {number}: id {name!r} is there with another content: {known}, got {result[:4]}")


def _as_told(at: int, reward: Reward, cost: float | None, known: Told) -> Told:
    return told(at, reward, known.cost if cost is None else cost)
