"""Export the log as JSON Lines and plays as CSV; read results back from either."""

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from mfbandit._internal.limits import MAX_PLAY_NUMBER_DIGITS, MAX_VALUE_SHOWN
from mfbandit._internal.typing import JSON, JSONObject
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import (
    ArmAdded,
    Asked,
    Expired,
    Failed,
    Opened,
    PastResult,
    Record,
    Told,
    play_id,
    to_record,
)

T = TypeVar("T", int, float)

PLAY_COLUMNS = ("play", "arm", "label", "fidelity", "asked", "outcome", "settled", "reward", "cost")


def log_record(record: Record) -> JSONObject:
    """Return a record of a log as a JSON object.

    >>> log_record(Record(seq=1, time=0.5, event=Asked(play=0, arm=2, fidelity=1), due=60.5))
    {'seq': 1, 'time': 0.5, 'event': 'Asked', 'play': 0, 'arm': 2, 'fidelity': 1, 'due': 60.5}
    """
    more = {"due": record.due, "request_key": record.request}
    present = {name: value for name, value in more.items() if value is not None}
    return {"seq": record.seq, "time": record.time, **to_record(record.event), **present}


def jsonl(records: Iterable[Record]) -> Iterator[str]:
    r"""Export a log as JSON Lines, one event a line.

    >>> list(jsonl([Record(seq=1, time=0.5, event=Asked(play=0, arm=2, fidelity=1))]))
    ['{"seq": 1, "time": 0.5, "event": "Asked", "play": 0, "arm": 2, "fidelity": 1}\n']
    """
    for record in records:
        yield json.dumps(log_record(record)) + "\n"


def plays_csv(records: Iterable[Record], experiment: str, labels: Sequence[str]) -> Iterator[str]:
    """Export all plays and what came of them as CSV, in the order in which they were settled; pending ones last.

    Args:
        records: the whole log.
        experiment: its id, which the ids of plays begin with.
        labels: the names of arms; names of later arms are taken from the log.

    >>> log = [Record(1, 0.0, Asked(0, 1, 0)), Record(2, 60.0, Told(0, 0.5, 1.0)), Record(3, 60.0, Asked(1, 0, 0))]
    >>> print("".join(plays_csv(log, "demo", ["a", "b"])))
    play,arm,label,fidelity,asked,outcome,settled,reward,cost
    demo-0,1,b,0,1970-01-01T00:00:00+00:00,told,1970-01-01T00:01:00+00:00,0.5,1.0
    demo-1,0,a,0,1970-01-01T00:01:00+00:00,pending,,,
    <BLANKLINE>
    """
    names, known, pending = list(labels), set(labels), dict[int, tuple[Asked, float, str, str]]()
    incarnation = ""
    yield _line(PLAY_COLUMNS)
    for record in records:
        match record.event:
            case ArmAdded(label):
                if label not in known:
                    names.append(label)
            case Opened(incarnation):
                continue
            case Asked(play) as asked:
                pending[play] = asked, record.time, play_id(experiment, incarnation, play), "pending"
            case Expired(play):
                pending[play] = *pending[play][:3], "expired"
            case Told(play, reward, cost):
                yield _line(_play(pending.pop(play), names, ("told", record.time, reward, cost)))
            case Failed(play, cost):
                yield _line(_play(pending.pop(play), names, ("failed", record.time, "", cost)))
            case _:
                continue
    for left in pending.values():
        yield _line(_play(left, names, (left[3], None, "", "")))


def _play(pending: tuple[Asked, float, str, str], labels: Sequence[str], outcome: tuple[Any, ...]) -> tuple[Any, ...]:
    asked, time, play, _ = pending
    kind, settled, reward, cost = outcome
    when = "" if settled is None else _when(settled)
    return play, asked.arm, labels[asked.arm], asked.fidelity, _when(time), kind, when, reward, cost


def _when(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat()


def _line(values: Iterable[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()


def read_results(lines: Iterable[str], kind: str) -> Iterator[PastResult]:
    r"""Read past results from CSV with a header, or from JSON Lines: arm (index or name), fidelity, reward, maybe cost.

    What :func:`plays_csv` and :func:`jsonl` wrote can be read, too: the plays that were told.

    Args:
        lines: of the file.
        kind: "csv" or "jsonl".

    >>> list(read_results(["arm,fidelity,reward\n", "ad-a,0,0.5\n"], "csv"))
    [('ad-a', 0, 0.5, None)]
    >>> list(read_results(['{"arm": 1, "fidelity": 0, "reward": "x"}'], "jsonl"))
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: line 1: reward must be a number, got 'x'
    """
    rows = _csv_rows(lines) if kind == "csv" else _json_rows(lines)
    for number, row in rows:
        if row.get("outcome", "told") != "told":
            continue
        try:
            yield _past_result(row)
        except InvalidArgument as error:
            raise InvalidArgument(f"line {number}: {error}") from None


def _csv_rows(lines: Iterable[str]) -> Iterator[tuple[int, JSONObject]]:
    reader = csv.DictReader(lines)
    reader.fieldnames = [name.strip() for name in reader.fieldnames or ()]
    missing = {"arm", "fidelity", "reward"} - set(reader.fieldnames)
    if missing:
        names = ",".join(reader.fieldnames)
        raise InvalidArgument(
            f"line 1: the header must name arm, fidelity and reward, with commas between, got {names!r}"
        )
    try:
        for row in reader:
            if None in row:  # a decimal comma, perhaps, and what is left of the number would be read
                places = len(reader.fieldnames)
                raise InvalidArgument(f"line {reader.line_num}: must have {places} values, as the header has, got more")
            if not any(row.values()):  # how spreadsheets write an empty line
                continue
            yield reader.line_num, {**row, "arm": row.get("label") or row["arm"]}
    except csv.Error as error:
        raise InvalidArgument(f"line {reader.line_num}: {error}") from None


def _json_rows(lines: Iterable[str]) -> Iterator[tuple[int, JSONObject]]:
    asked: dict[str, JSONObject] = {}
    for number, row in _objects(lines):
        kind, play = row.get("event"), repr(row.get("play"))  # of a file that somebody edited it may be anything
        if kind == "Asked":
            asked[play] = row
        elif kind == "Told":
            found = asked.get(play, {})
            yield number, {**row, "arm": found.get("arm"), "fidelity": found.get("fidelity")}
        elif kind is None:
            yield number, row


def _objects(lines: Iterable[str]) -> Iterator[tuple[int, JSONObject]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:  # no JSON, numbers of thousands of digits, deep nesting
            raise InvalidArgument(f"line {number}: must be JSON: {error}") from None
        if not isinstance(row, dict):
            raise InvalidArgument(
                f"line {number}: must be an object with arm, fidelity and reward, got {line.strip()[:MAX_VALUE_SHOWN]}"
            )
        yield number, row


def _past_result(row: JSONObject) -> PastResult:
    arm = row.get("arm")
    if isinstance(arm, bool) or not isinstance(arm, int | str) or arm == "":
        raise InvalidArgument(f"arm must be a name or an index, got {arm!r}")
    cost = row.get("cost")
    return (
        arm,
        _number("fidelity", row.get("fidelity"), int, "a whole number"),
        _number("reward", row.get("reward"), float, "a number"),
        None if cost in (None, "") else _number("cost", cost, float, "a number"),
    )


def _number(what: str, value: JSON, kind: Callable[[JSON], T], rule: str) -> T:
    refused = isinstance(value, bool) or value is None or (kind is int and isinstance(value, float))
    try:
        if not refused:
            return kind(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidArgument(f"{what} must be {rule}, got {value!r}")


def arms_as_indices(results: Iterable[PastResult], arms: Sequence[str], fidelities: int) -> list[PastResult]:
    """Replace names of arms by their indices; text that is no name may be an index. All are checked before any is used.

    >>> arms_as_indices([("b", 0, 0.5, None), ("0", 0, 0.5, None)], ["a", "b"], fidelities=1)
    [(1, 0, 0.5, None), (0, 0, 0.5, None)]
    >>> arms_as_indices([("c", 0, 0.5, None)], ["a", "b"], fidelities=1)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: result 1: arm must be a name or an index below 2, got 'c'
    """
    places = {label: index for index, label in enumerate(arms)}
    known: list[PastResult] = []
    for number, (arm, fidelity, reward, cost) in enumerate(results, start=1):
        index = places.get(arm, _index(arm)) if isinstance(arm, str) else arm
        if not 0 <= index < len(arms):
            raise InvalidArgument(f"result {number}: arm must be a name or an index below {len(arms)}, got {arm!r}")
        if not 0 <= fidelity < fidelities:
            raise InvalidArgument(f"result {number}: fidelity must lie in 0 to {fidelities - 1}, got {fidelity}")
        known.append((index, fidelity, reward, cost))
    return known


def _index(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) <= MAX_PLAY_NUMBER_DIGITS else -1


def import_keys(text: str, number: int) -> list[str]:
    """Return request keys for the parts of a file, the same whenever the same file is read.

    >>> len(import_keys("arm,fidelity,reward", 2))
    2
    """
    digest = hashlib.sha256(text.encode()).hexdigest()[:32]
    return [f"import-{digest}-{part}" for part in range(number)]
