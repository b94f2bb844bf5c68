"""Export the log as JSON Lines and plays as CSV; read results back from either."""

import csv
import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mfbandit._internal.limits import MAX_PLAY_NUMBER_DIGITS, MAX_VALUE_SHOWN
from mfbandit._internal.typing import JSON, JSONObject
from mfbandit.core import Fidelities, Reward, observed
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import (
    ArmAdded,
    Asked,
    Expired,
    Failed,
    Incarnations,
    Opened,
    PastResult,
    Record,
    Told,
    ToldBatch,
    ToldInBlock,
    play_id,
    to_record,
)

PLAY_COLUMNS = ("play", "arm", "label", "fidelity", "asked", "outcome", "settled", "reward", "cost")
BATCH_COLUMNS = ("successes", "trials", "weight", "sd")  # after those, where results are many observations
BLOCK_COLUMNS = ("block",)  # after those, where results are of blocks
TOLD_KINDS = ("Told", "ToldBatch", "ToldInBlock")


def log_record(record: Record) -> JSONObject:
    """Return a record of a log as a JSON object.

    >>> log_record(Record(seq=1, time=0.5, event=Asked(play=0, arm=2, fidelity=1), due=60.5))
    {'seq': 1, 'time': 0.5, 'event': 'Asked', 'play': 0, 'arm': 2, 'fidelity': 1, 'due': 60.5}
    """
    more = {"due": record.due, "request_key": record.request, "actor": record.actor}
    present = {name: value for name, value in more.items() if value is not None}
    return {"seq": record.seq, "time": record.time, **to_record(record.event), **present}


def jsonl(records: Iterable[Record], experiment: str | None = None) -> Iterator[str]:
    r"""Export a log as JSON Lines, one event a line.

    Args:
        records: the log, from its beginning.
        experiment: its id; then events that tell results have the ids of their plays.

    >>> list(jsonl([Record(seq=1, time=0.5, event=Asked(play=0, arm=2, fidelity=1))]))
    ['{"seq": 1, "time": 0.5, "event": "Asked", "play": 0, "arm": 2, "fidelity": 1}\n']
    """
    incarnations, asked = Incarnations(), 0
    for record in records:
        line, event = log_record(record), record.event
        match event:
            case Opened(incarnation):
                incarnations.begin(asked, incarnation)
            case Asked(play):
                asked = play + 1
            case Told(play) if experiment is not None:
                line["id"] = play_id(experiment, incarnations.of(play), play)
        yield json.dumps(line) + "\n"


def plays_csv(
    records: Iterable[Record], experiment: str, labels: Sequence[str], *, batches: bool = False, blocks: bool = False
) -> Iterator[str]:
    """Export all plays and what came of them as CSV, in the order in which they were settled; pending ones last.

    Args:
        records: the whole log.
        experiment: its id, which the ids of plays begin with.
        labels: the names of arms; names of later arms are taken from the log.
        batches: whether to have columns for results of many observations.
        blocks: whether to have a column for the blocks of results.

    >>> log = [Record(1, 0.0, Asked(0, 1, 0)), Record(2, 60.0, Told(0, 0.5, 1.0)), Record(3, 60.0, Asked(1, 0, 0))]
    >>> print("".join(plays_csv(log, "demo", ["a", "b"])))
    play,arm,label,fidelity,asked,outcome,settled,reward,cost
    demo-0,1,b,0,1970-01-01T00:00:00+00:00,told,1970-01-01T00:01:00+00:00,0.5,1.0
    demo-1,0,a,0,1970-01-01T00:01:00+00:00,pending,,,
    <BLANKLINE>
    """
    names, known, pending = list(labels), set(labels), dict[int, tuple[Asked, float, str, str]]()
    more = BATCH_COLUMNS * batches + BLOCK_COLUMNS * blocks
    incarnation, nothing = "", ("",) * len(more)
    yield _line((*PLAY_COLUMNS, *more))
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
            case Told(play, reward, cost) as event:
                told = _play(pending.pop(play), names, ("told", record.time, reward, cost))
                yield _line((*told, *_batch(event) * batches, *_block(event) * blocks))
            case Failed(play, cost):
                yield _line((*_play(pending.pop(play), names, ("failed", record.time, "", cost)), *nothing))
            case _:
                continue
    for left in pending.values():
        yield _line((*_play(left, names, (left[3], None, "", "")), *nothing))


def _batch(event: Told) -> tuple[Any, ...]:
    if not isinstance(event, ToldBatch) or event.weight == 1:
        return ("",) * len(BATCH_COLUMNS)
    if event.successes is not None:
        return event.successes, event.weight, "", ""
    return "", "", event.weight, "" if event.sd is None else event.sd


def _block(event: Told) -> tuple[str, ...]:
    return (event.block if isinstance(event, ToldInBlock) else "",)


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


@dataclass(frozen=True)
class ReadResult:
    """A result as a file has it; arm and fidelity may be names, or indices as text."""

    line: int
    arm: int | str
    fidelity: int | str
    reward: Reward
    cost: float | None
    id: str


def read_results(text: str, kind: str, *, id_column: str | None = None, all_new: bool = False) -> Iterator[ReadResult]:
    r"""Read past results from CSV with a header, or from JSON Lines: arm, fidelity, reward, maybe cost.

    A result of many observations has successes and trials in place of a reward, or a weight and maybe sd beside it. Any
    result may have a block.

    What :func:`plays_csv` and :func:`jsonl` wrote can be read, too: the plays that were told, by their ids. In another
    file without an ``id_column``, a row is recognized by all that it has: the second of two equal rows is another one,
    and the same when a longer file is read that has both.

    Args:
        text: of the file.
        kind: "csv" or "jsonl".
        id_column: the column that has ids, which no two results share.
        all_new: every row is another result than those of other files, even if it is equal to one of theirs.

    >>> list(read_results("arm,fidelity,reward,visit\nad-a,0,0.5,v7\n", "csv", id_column="visit"))
    [ReadResult(line=2, arm='ad-a', fidelity='0', reward=0.5, cost=None, id='v7')]
    >>> list(read_results('{"arm": 1, "fidelity": 0, "reward": "x"}', "jsonl"))
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: line 1: reward must be a number, got 'x'
    """
    lines = text.splitlines()
    rows = _csv_rows(lines, id_column) if kind == "csv" else _json_rows(lines)
    seen: Counter[str] = Counter()
    file = _digest(text) if all_new else ""
    for number, row in rows:
        if row.get("outcome", "told") != "told":
            continue
        try:
            name = _row_id(row, id_column)
            if name is None and all_new:
                name = f"file-{file}-{number}"
            elif name is None:
                content = _digest(json.dumps(row, sort_keys=True))
                seen[content] += 1
                name = f"row-{content}-{seen[content]}"
            yield _past_result(number, row, name)
        except InvalidArgument as error:
            raise InvalidArgument(f"line {number}: {error}") from None


def _row_id(row: JSONObject, column: str | None) -> str | None:
    """The id that a row has; None if it has none."""
    if column is not None:
        value = row.get(column)
        if value is None or isinstance(value, bool | list | dict | float) or not str(value).strip():
            raise InvalidArgument(f"{column} must be an id, got {value!r}")
        return str(value).strip()
    if row.keys() >= set(PLAY_COLUMNS):
        return str(row["play"])
    return str(row["id"]) if row.get("event") in TOLD_KINDS and "id" in row else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:24]


def _csv_rows(lines: Iterable[str], id_column: str | None) -> Iterator[tuple[int, JSONObject]]:
    reader = csv.DictReader(lines)
    reader.fieldnames = [name.strip() for name in reader.fieldnames or ()]
    if id_column is not None and id_column not in reader.fieldnames:
        raise InvalidArgument(f"line 1: the header must name the id column {id_column!r}, got {reader.fieldnames}")
    there = set(reader.fieldnames)
    if not there >= {"arm", "fidelity"} or not (there >= {"reward"} or there >= {"successes", "trials"}):
        names = ",".join(reader.fieldnames)
        rule = "arm, fidelity and reward (or successes and trials), with commas between"
        raise InvalidArgument(f"line 1: the header must name {rule}, got {names!r}")
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
        elif kind in TOLD_KINDS:
            found = asked.get(play, {})
            yield number, {**_as_counts(row), "arm": found.get("arm"), "fidelity": found.get("fidelity")}
        elif kind is None:
            yield number, row


def _as_counts(row: JSONObject) -> JSONObject:
    """The row of an event whose weight is the number of trials, with trials."""
    if row.get("event") == "Told" or row.get("successes") is None:
        return row
    return {**row, "trials": row.get("weight"), "weight": None}


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


def _past_result(line: int, row: JSONObject, name: str) -> ReadResult:
    arm, fidelity, cost = row.get("arm"), row.get("fidelity"), row.get("cost")
    if isinstance(arm, bool) or not isinstance(arm, int | str) or arm == "":
        raise InvalidArgument(f"arm must be a name or an index, got {arm!r}")
    if isinstance(fidelity, bool) or not isinstance(fidelity, int | str) or fidelity == "":
        raise InvalidArgument(f"fidelity must be a name or a whole number, got {fidelity!r}")
    return ReadResult(line, arm, fidelity, _reward(row), None if cost in (None, "") else _number("cost", cost), name)


def _reward(row: JSONObject) -> Reward:
    given = {name: row.get(name) for name in ("reward", *BATCH_COLUMNS)}
    there = {name: value for name, value in given.items() if value not in (None, "")}
    block = row.get("block")
    if isinstance(block, str):
        block = block.strip() or None
    if there.keys() <= {"reward"}:
        return observed(_number("reward", given["reward"]), block=block)
    numbers = {name: _number(name, value) for name, value in there.items() if name in ("reward", "sd")}
    wholes = {name: _whole(name, value) for name, value in there.items() if name not in numbers}
    mean = numbers.get("reward")
    if wholes.get("trials", 0) > 0 and mean == wholes.get("successes", -1) / wholes["trials"]:
        mean = None  # of an export, which has both
    return observed(mean, sd=numbers.get("sd"), **wholes, block=block)


def _whole(what: str, value: JSON) -> int:
    """A whole number, also as text or as 1000.0, which is how spreadsheets write it."""
    number = _number(what, value)
    if not number.is_integer():
        raise InvalidArgument(f"{what} must be a whole number, got {value!r}")
    return int(number)


def _number(what: str, value: JSON) -> float:
    try:
        if value is not None and not isinstance(value, bool):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidArgument(f"{what} must be a number, got {value!r}")


def as_past_results(
    results: Iterable[ReadResult], arms: Sequence[str], fidelities: Fidelities, cost: float | None = None
) -> list[PastResult]:
    """Replace names of arms and fidelities by indices; text that is no name may be an index. All are checked first.

    Args:
        results: as a file has them.
        arms: the names of arms.
        fidelities: of the experiment.
        cost: what each result cost, in place of the file's.

    >>> fid = Fidelities([1, 10], names=["minute", "hour"])
    >>> as_past_results([ReadResult(2, "b", "hour", 0.5, None, "v7")], ["a", "b"], fid)
    [(1, 1, 0.5, None, 'v7')]
    >>> as_past_results([ReadResult(2, "c", "0", 0.5, None, "v7")], ["a", "b"], fid)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: line 2: arm must be a name or an index below 2, got 'c'
    """
    places = {label: index for index, label in enumerate(arms)}
    levels = {name: index for index, name in enumerate(fidelities.names or ())}
    known: list[PastResult] = []
    for one in results:
        arm = places.get(one.arm, _index(one.arm)) if isinstance(one.arm, str) else one.arm
        if not 0 <= arm < len(arms):
            raise InvalidArgument(f"line {one.line}: arm must be a name or an index below {len(arms)}, got {one.arm!r}")
        fidelity = levels.get(one.fidelity, _index(one.fidelity)) if isinstance(one.fidelity, str) else one.fidelity
        if not 0 <= fidelity < len(fidelities):
            rule = f"fidelity must be a name or lie in 0 to {len(fidelities) - 1}"
            raise InvalidArgument(f"line {one.line}: {rule}, got {one.fidelity!r}")
        known.append((arm, fidelity, one.reward, one.cost if cost is None else cost, one.id))
    return known


def _index(text: str) -> int:
    digits = text.strip()
    return int(digits) if digits.isdecimal() and len(digits) <= MAX_PLAY_NUMBER_DIGITS else -1


def import_keys(text: str, number: int) -> list[str]:
    """Return request keys for the parts of a file, the same whenever the same file is read.

    >>> len(import_keys("arm,fidelity,reward", 2))
    2
    """
    digest = hashlib.sha256(text.encode()).hexdigest()[:32]
    return [f"import-{digest}-{part}" for part in range(number)]
