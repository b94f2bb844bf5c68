"""An experiment at a glance, as a dictionary for JSON: for the command line and the service."""

from mfbandit.core import Bounds
from mfbandit.experiment import Status


def readable_status(record: Status) -> str:
    """The same in lines for people."""
    costs = record["fidelities"]["costs"]
    results = ", ".join(f"{n:,} at cost {cost:g}" for n, cost in zip(record["results"], costs, strict=True))
    capital = "unlimited" if record["capital"] is None else f"{record['capital']:,.10g}"
    share = "" if record["capital"] is None else f" ({record['spent'] / record['capital']:.1%})"
    policy = dict(record["policy"])
    name = policy.pop("name")
    fields = ", ".join(f"{field}={value}" for field, value in policy.items())
    lines = [
        ("experiment", f"{record['name']} ({record['state']})"),
        ("policy", f"{name}({fields})"),
        ("capital", f"{record['spent']:,.10g} spent{share}, {record['reserved']:,.10g} reserved, of {capital}"),
        ("results", results),
        ("under way", f"{record['pending']:,} play{'s' * (record['pending'] != 1)}"),
        ("arms", _arms(record)),
        (
            "best so far",
            "no result yet" if record["best"] is None else f"{record['best_label']} (arm {record['best']})",
        ),
    ]
    return "\n".join([*record["warnings"], *(f"{name:12} {text}" for name, text in lines)])


def _arms(record: Status) -> str:
    parts = [f"{record['arms']:,}"]
    parts += [f"{len(record['retired']):,} retired"] if record["retired"] else []
    parts += [f"{len(record['set_aside']):,} set aside after failures"] if record["set_aside"] else []
    return ", ".join(parts)


def leading(bounds: Bounds, top: int) -> str:
    """The leading arms of a table of bounds, each at all its fidelities."""
    lines = str(bounds).splitlines()
    return "\n".join(lines[: 1 + top * len(bounds.plays)])
