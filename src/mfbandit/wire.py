"""Policies and fidelities as dictionaries for JSON, and back."""

from collections.abc import Iterable
from dataclasses import asdict, is_dataclass
from typing import Any, TypeVar

from mfbandit.concentration import Bounded, Concentration, SubGaussian
from mfbandit.fidelities import Fidelities
from mfbandit.policies import POLICIES, Policy

Thing = TypeVar("Thing")


def policy_record(policy: Policy) -> dict[str, Any]:
    """{name, its fields}.

    >>> from mfbandit.policies import MFUCB
    >>> policy_record(MFUCB(rho=2.0))
    {'name': 'MFUCB', 'rho': 2.0}
    """
    return _record(policy)


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
    tails = None if fidelities.concentration is None else [_record(tail) for tail in fidelities.tails]
    return {
        "costs": fidelities.costs,
        "biases": fidelities.biases,
        "concentration": tails,
        "names": fidelities.names,
    }


def fidelities_from_record(record: dict[str, Any]) -> Fidelities:
    """The fidelities that :func:`fidelities_record` described.

    >>> fid = Fidelities(costs=[1, 10], biases=[0.2, 0], concentration=SubGaussian(0.5))
    >>> fidelities_from_record(fidelities_record(fid)) == fid
    True
    """
    known: tuple[type[Concentration], ...] = (SubGaussian, Bounded)
    tails = record.get("concentration")
    return Fidelities(
        record["costs"],
        record.get("biases"),
        None if tails is None else [_revive("concentration", known, tail) for tail in tails],
        record.get("names"),
    )


def _record(thing: object) -> dict[str, Any]:
    fields = asdict(thing) if is_dataclass(thing) and not isinstance(thing, type) else {}
    return {"name": type(thing).__name__, **fields}


def _revive(what: str, kinds: Iterable[type[Thing]], record: dict[str, Any]) -> Thing:
    known = {kind.__name__: kind for kind in kinds}
    name = record.get("name")
    if name not in known:
        raise ValueError(f"{what} must be one of {sorted(known)}, got {name!r}; one of your own has to be passed in")
    try:
        return known[name](**{field: value for field, value in record.items() if field != "name"})
    except TypeError:
        raise ValueError(f"{what} {name} does not have these fields: {record}") from None
