"""What an experiment can be made of: arms, a policy, and a capital that pays for its first play."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

from mfbandit._internal.formatting import plain
from mfbandit._internal.validation import number, whole
from mfbandit.core import Fidelities, Stats, limit
from mfbandit.errors import InvalidArgument
from mfbandit.policies import POLICIES, Policy

MAX_LABELS_LISTED = 1000  # of arms that are called by their numbers


class SavedLabels(list[str]):
    """The names of arms of a saved experiment; earlier versions took names that cannot be printed."""


def saved_labels(labels: Sequence[str]) -> int | list[str]:
    """What is kept of the names of arms: their number, if there are many that are called by their numbers.

    A million names would be a row of ten megabytes, which SQLite writes anew with every result.

    >>> saved_labels(["0", "1"]), saved_labels([str(k) for k in range(100_000)])
    (['0', '1'], 100000)
    """
    many = len(labels) > MAX_LABELS_LISTED
    numbered = many and labels[-1] == str(len(labels) - 1) and list(labels) == checked_labels(len(labels))
    return len(labels) if numbered else list(labels)


def checked_labels(arms: int | Sequence[str]) -> list[str]:
    """The names of arms: those given, or their numbers; all different and none empty.

    >>> checked_labels(2), checked_labels(["ad-a", "ad-b"])
    (['0', '1'], ['ad-a', 'ad-b'])
    """
    if isinstance(arms, str) or not isinstance(arms, Iterable):
        labels = [str(k) for k in range(whole("arms", arms))]
    else:
        labels = list(arms)
    if not labels:
        raise InvalidArgument(f"arms must be at least one, got {arms!r}")
    for label in labels:
        check_label(label, saved=isinstance(arms, SavedLabels))
    if len(set(labels)) != len(labels):
        (twice, _), *_ = Counter(labels).most_common(1)
        raise InvalidArgument(f"arms must have different names, got {twice!r} twice")
    return labels


def check_label(label: object, *, saved: bool = False) -> None:
    """Refuse what cannot name an arm; a saved name may be one that cannot be printed.

    >>> check_label("")
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: arms must be named by text that is not empty, got ''
    """
    if not isinstance(label, str) or not label:
        raise InvalidArgument(f"arms must be named by text that is not empty, got {label!r}")
    if not saved:
        check_text("arms must be named in", label)


def check_text(rule: str, text: str) -> None:
    r"""Refuse half a character (a lone surrogate), which can be neither sent nor printed.

    >>> check_text("text must be", "ad-\ud800")
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: text must be valid Unicode, got 'ad-\ud800'
    """
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidArgument(f"{rule} valid Unicode, got {text!r}") from None


def arm_index(what: str, arm: int | str, labels: Sequence[str]) -> int:
    """The index of an arm, given by its index or name.

    >>> arm_index("control", "b", ["a", "b"]), arm_index("control", 0, ["a", "b"])
    (1, 0)
    """
    if isinstance(arm, str):
        if arm not in labels:
            raise InvalidArgument(f"{what} must be the name of an arm, got {arm!r}")
        return labels.index(arm)
    if not 0 <= whole(what, arm) < len(labels):
        raise InvalidArgument(f"{what} must lie in 0 to {len(labels) - 1}, got {arm}")
    return int(arm)


def check_fidelity_names(fidelities: Fidelities) -> None:
    """Refuse names of fidelities that can be neither sent nor printed.

    >>> check_fidelity_names(Fidelities([1, 10], names=["a minute", "an hour"]))
    """
    for name in fidelities.labels:
        check_text("fidelities must be named in", name)


def check_is_policy(policy: object) -> None:
    """Refuse what is no policy, such as a policy's class.

    >>> from mfbandit import UCB
    >>> check_is_policy(UCB)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: policy must be an object with choose, index and recommend, got <class
        'mfbandit.policies.ucb.UCB'>
    """
    if isinstance(policy, type) or not isinstance(policy, Policy):
        raise InvalidArgument(f"policy must be an object with choose, index and recommend, got {policy!r}")


def checked_capital(capital: float, policy: Policy, fidelities: Fidelities, stats: Stats) -> float:
    """A capital that pays for the first play that the policy would make, or an error.

    >>> from mfbandit import UCB, Bounded
    >>> checked_capital(5, UCB(), Fidelities([10], concentration=Bounded()), Stats.empty(1, 3))
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: capital must pay for the first play, which costs 10 with UCB, got 5
    """
    _, first = checked_choice(policy, stats, fidelities)
    amount, cost = number("capital", capital), fidelities.costs[first]
    if limit(amount) < cost:
        raise InvalidArgument(
            f"capital must pay for the first play, which costs {plain(cost)} with {type(policy).__name__}, "
            f"got {capital}"
        )
    return amount


def with_capital(policy: Policy, before: float | None, after: float | None) -> Policy | None:
    """A policy of the package whose own capital was that of its experiment, with the new one; None for any other.

    >>> from mfbandit import MFTopTwo
    >>> with_capital(MFTopTwo(capital=5), 5.0, 10.0).capital, with_capital(MFTopTwo(capital=7), 5.0, 10.0)
    (10.0, None)
    """
    own = getattr(policy, "capital", None)
    if own is None or after is None or own != before or type(policy) not in POLICIES:
        return None
    changed: Policy = replace(cast("Any", policy), capital=after)
    return changed


def checked_choice(policy: Policy, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
    """What a policy chooses, or an error if there is no such arm or fidelity.

    >>> from mfbandit import UCB, Bounded
    >>> checked_choice(UCB(), Stats.empty(1, 3), Fidelities([1], concentration=Bounded()))
    (0, 0)
    """
    choice = policy.choose(stats, fidelities)
    arm, fidelity = whole("a chosen arm", choice[0]), whole("a chosen fidelity", choice[1])
    if not (0 <= arm < len(stats.active) and stats.active[arm] and 0 <= fidelity < len(fidelities)):
        raise InvalidArgument(
            f"a policy must choose an active arm of the {len(stats.active)} and a fidelity of the {len(fidelities)}, "
            f"and {type(policy).__name__} chose arm {arm} at fidelity {fidelity}"
        )
    return arm, fidelity


def refuse_in_memory(**given: object) -> None:
    """Refuse what only experiments in a store or at a service have.

    >>> refuse_in_memory(lease=5.0)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: lease must be None for an experiment in memory, got 5.0
    """
    for name, value in given.items():
        if value is not None:
            raise InvalidArgument(f"{name} must be None for an experiment in memory, got {value!r}")
