"""Policies, fidelities and experiments as JSON, and back."""

import json
from collections.abc import Sequence
from dataclasses import MISSING, asdict, is_dataclass
from dataclasses import fields as dataclass_fields
from typing import Any, TypeVar

from mfbandit.core import Bounded, Concentration, Fidelities, Rate, SubGaussian
from mfbandit.errors import InvalidArgument
from mfbandit.policies import POLICIES, Policy

Thing = TypeVar("Thing")
FORMAT = 1  # of an experiment's JSON
CONCENTRATIONS: tuple[type[Concentration], ...] = (SubGaussian, Bounded, Rate)


def policy_record(policy: Policy) -> dict[str, Any]:
    """{name, its fields}.

    >>> from mfbandit.policies import MFUCB
    >>> policy_record(MFUCB(rho=2.0))
    {'name': 'MFUCB', 'rho': 2.0, 'kl': False}
    """
    return _record(policy, POLICIES)


def policy_from_record(record: dict[str, Any]) -> Policy:
    """The policy of the package that :func:`policy_record` described.

    >>> policy_from_record({'name': 'UCB', 'rho': 1.0})
    UCB(rho=1.0)
    """
    return _revive("policy", POLICIES, record)


def fidelities_record(fidelities: Fidelities) -> dict[str, Any]:
    """All fields, the concentration as {name, its fields} for each fidelity.

    >>> fid = Fidelities(costs=[1, 10], biases=[0.2, 0], concentration=SubGaussian(0.5))
    >>> fidelities_record(fid)["concentration"][0]
    {'name': 'SubGaussian', 'scale': 0.5}
    """
    tails = None if fidelities.concentration is None else [_record(tail, CONCENTRATIONS) for tail in fidelities.tails]
    record = {
        "costs": fidelities.costs,
        "biases": fidelities.biases,
        "concentration": tails,
        "names": fidelities.names,
    }
    # Else left out, as those lack it that were written before there was such a choice.
    return record | {"resume": True} if fidelities.resume else record


def fidelities_from_record(record: dict[str, Any], known: Sequence[Concentration] = ()) -> Fidelities:
    """The fidelities that :func:`fidelities_record` described.

    Args:
        record: the dictionary.
        known: concentrations of your own, which a record can name but not bring back.

    >>> fid = Fidelities(costs=[1, 10], biases=[0.2, 0], concentration=SubGaussian(0.5))
    >>> fidelities_from_record(fidelities_record(fid)) == fid
    True
    """
    tails = record.get("concentration")
    if "costs" not in record:
        raise InvalidArgument(f"fidelities must have costs, got {record}")
    return Fidelities(
        record["costs"],
        record.get("biases"),
        _concentration(tails, known),
        record.get("names"),
        record.get("resume", False),
    )


def experiment_record(text: str) -> dict[str, Any]:
    """The JSON of an experiment as a dictionary with all its parts.

    >>> experiment_record("{}")
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: an experiment's JSON must have
    ['arms', 'capital', 'fidelities', 'format', 'id', 'log', 'policy']
    """
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidArgument(f"an experiment's JSON cannot be read: {error}") from None
    needed = {"format", "id", "policy", "fidelities", "arms", "capital", "log"}
    if not isinstance(record, dict) or not needed <= record.keys():
        raise InvalidArgument(f"an experiment's JSON must have {sorted(needed)}")
    if record["format"] != FORMAT:
        raise InvalidArgument(f"an experiment's JSON must have format {FORMAT}, got {record['format']!r}")
    for name, kind in (("id", str), ("policy", dict), ("fidelities", dict), ("arms", list), ("log", list)):
        if not isinstance(record[name], kind):
            raise InvalidArgument(f"an experiment's JSON must have a {kind.__name__} as {name}, got {record[name]!r}")
    return record


def _concentration(record: Any, known: Sequence[Concentration]) -> Concentration | list[Concentration] | None:  # noqa: ANN401 - one for all, or one each
    if record is None:
        return None
    if isinstance(record, dict):
        return _tail(record, known)
    if not isinstance(record, list | tuple):
        raise InvalidArgument(f"concentration must be an object or a list of them, got {record!r}")
    return [_tail(tail, known) for tail in record]


def _tail(record: dict[str, Any], known: Sequence[Concentration]) -> Concentration:
    for tail in known:
        if json.loads(json.dumps(_record(tail, CONCENTRATIONS))) == record:  # JSON has no tuples
            return tail
    return _revive("concentration", CONCENTRATIONS, record)


def _record(thing: object, known: tuple[type, ...]) -> dict[str, Any]:
    kind = type(thing)
    # A class of the user's own may have the name of one of ours: its module keeps them apart.
    name = kind.__name__ if kind in known else f"{kind.__module__}.{kind.__qualname__}"
    if not is_dataclass(thing) or isinstance(thing, type):
        return {"name": name}
    # A parameter that is not set says nothing, so that records from before it are the same.
    unset = {field.name for field in dataclass_fields(thing) if field.default is None}
    fixed = {field.name for field in dataclass_fields(thing) if not field.init}
    values = {field: value for field, value in asdict(thing).items() if value is not None or field not in unset}
    return {"name": name, **{field: value for field, value in values.items() if field not in fixed}}


def _revive(what: str, known: tuple[type[Thing], ...], record: dict[str, Any]) -> Thing:
    kinds = {kind.__name__: kind for kind in known}
    if not isinstance(record, dict) or record.get("name") not in kinds:
        name = record.get("name") if isinstance(record, dict) else record
        raise InvalidArgument(
            f"{what} must be one of {sorted(kinds)}, got {name!r}; one of your own has to be passed in"
        )
    fields = {field: value for field, value in record.items() if field != "name"}
    missing = [field for field in _needed(kinds[record["name"]]) if field not in fields]
    if missing:
        raise InvalidArgument(f"{what} {record['name']} must have the fields {missing}, got {sorted(fields)}")
    try:
        return kinds[record["name"]](**fields)
    except TypeError:
        raise InvalidArgument(f"{what} {record['name']} does not have the fields {sorted(fields)}") from None


def _needed(kind: type) -> list[str]:
    return [field.name for field in dataclass_fields(kind) if field.default is MISSING]
