"""The status of an experiment as lines for people."""

from mfbandit._internal.formatting import plain
from mfbandit.core import Bounds
from mfbandit.experiment import (
    Decided,
    Status,
    decision_text,
    doubt_left,
    shares_from_record,
    stop_from_record,
    unmet_text,
)


def status_text(record: Status, confidence: str = "") -> str:
    """Format a status, warnings first.

    Args:
        record: the status.
        confidence: how sure it is that the best arm so far is the best, in a sentence.

    >>> from mfbandit import UCB, Bounded, Experiment, Fidelities
    >>> exp = Experiment(UCB(), arms=["a"], fidelities=Fidelities([1], concentration=Bounded()), capital=5)
    >>> exp.tell(exp.ask(), 0.5)
    >>> print(status_text({"name": "ads", **exp.status()}))
    experiment   ads (running)
    policy       UCB(rho=2.0, kl=False)
    capital      1 spent (20.0%), 0 reserved, of 5
    results      1 at cost 1
    pending      0 plays
    arms         1
    best so far  a (arm 0)
    """
    lines = {
        "experiment": f"{record.get('name', record['id'])} ({record['state']})",
        "policy": _policy(record),
        "capital": _capital(record),
        "results": _at_each(record, record["results"]),
        "observed": _observed(record),
        "pending": f"{record['pending']:,} play{'s' * (record['pending'] != 1)}",
        "arms": _arms(record),
        "best so far": _best(record),
        "decided": decided_words(record),
        "confidence": ("without any tolerance: " if _with_tolerance(record) and confidence else "") + confidence,
        "lift": (record["lift"] or {}).get("sentence", ""),
        "control": _control(record),
        "stops when": stop_words(record),
        "not reached": "" if record["stop"] is None else unmet_text(record["state"], record["policy"]["name"]),
    }
    return "\n".join([*record["warnings"], *(f"{name:12} {text}" for name, text in lines.items() if text)])


def _policy(record: Status) -> str:
    fields = ", ".join(f"{field}={value}" for field, value in record["policy"].items() if field != "name")
    return f"{record['policy']['name']}({fields})"


def _capital(record: Status) -> str:
    capital, spent = record["capital"], record["spent"]
    share = "" if capital is None else f" ({spent / capital:.1%})"
    whole = "unlimited" if capital is None else plain(capital, 10)
    return f"{plain(spent, 10)} spent{share}, {plain(record['reserved'], 10)} reserved, of {whole}"


def _at_each(record: Status, numbers: list[int], thing: str = "") -> str:
    """Numbers at each fidelity, by its name, or else by its cost."""
    names, costs = record["fidelities"]["names"], record["fidelities"]["costs"]
    places = [
        f"cost {plain(cost)}" if name == str(m) else name
        for m, (name, cost) in enumerate(zip(names, costs, strict=True))
    ]
    return ", ".join(f"{n:,}{thing} at {place}" for n, place in zip(numbers, places, strict=True))


def _observed(record: Status) -> str:
    """How many observations there are; empty where every result is one."""
    numbers = record["observations"]
    return "" if numbers == record["results"] else _at_each(record, numbers, " observations")


def _arms(record: Status) -> str:
    parts = [f"{record['arms']:,}"]
    parts += [f"{len(record['retired']):,} retired"] if record["retired"] else []
    parts += [f"{len(record['set_aside']):,} set aside after failures"] if record["set_aside"] else []
    return ", ".join(parts)


def _best(record: Status) -> str:
    if record["best"] is None:
        return "no result yet"
    best = f"{record['best_label']} (arm {record['best']})"
    decided = record["decided"]
    doubt = doubt_left(record["doubt"], decided=decided is not None and decided["arm"] == record["best"])
    if doubt is None:
        return best
    other = "" if record["runner_up"] is None else f" (or {record['runner_up_label']}, arm {record['runner_up']})"
    return f"{best}, in doubt{other}: {doubt}"


def _with_tolerance(record: Status) -> bool:
    """Tell whether a decision allows for a loss, which the confidence in the best arm does not."""
    decided = record["decided"]
    return decided is not None and bool(decided["tolerance"])


def _control(record: Status) -> str:
    """The control and the shares; empty where there are none."""
    shares = shares_from_record(record["shares"])
    return shares.words({} if shares.control is None else {shares.control: str(record["control_label"])})


def stop_words(record: Status) -> str:
    """The rule for stopping; empty without one.

    >>> stop_words({"stop": {"level": 0.95, "tolerance": 0.01, "estimates": False}})
    '95 % sure that no other arm is better by more than 0.01'
    """
    rule = stop_from_record(record["stop"])
    return "" if rule is None else rule.sentence


def decided_words(record: Status) -> str:
    """What was decided; empty as long as it goes on."""
    known = record["decided"]
    return "" if known is None else decision_text(Decided(**known), str(record["decided_label"]))


def leading_arms(bounds: Bounds, record: Status, top: int) -> str:
    """Format the leading arms, each at all its fidelities: the recommended one first, those that take no part last.

    >>> from mfbandit import UCB, Bounded, Experiment, Fidelities
    >>> exp = Experiment(UCB(), arms=["a", "b"], fidelities=Fidelities([1], concentration=Bounded()))
    >>> exp.tell(exp.ask(), 0.5)
    >>> print(leading_arms(exp.bounds(), exp.status(), top=1))
    The recommended arm, then by lower bound (confidence bounds):
    arm  fidelity  plays    mean   width    lower   upper
    a    0             1  0.5000  0.8326  -0.3326  1.3326
    """
    resting = {*record["retired"], *record["set_aside"]}
    order = bounds.ranked(first=record["best"], last=resting)[:top]
    return f"The recommended arm, then by {bounds.ranking} ({bounds.kind}):\n{bounds.table(order)}"
