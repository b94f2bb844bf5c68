"""What an experiment of a store begins with: its name, and its definition, checked before anything is written."""

from collections.abc import Sequence
from typing import Any

from mfbandit._internal.limits import DEFAULT_LEASE_SECONDS, EXPERIMENT_NAME
from mfbandit._internal.validation import positive
from mfbandit.core import Fidelities
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import Experiment, HalfLife, Sure
from mfbandit.policies import Policy


def check_definition(  # noqa: PLR0913 - options with names and defaults
    policy: Policy | None = None,
    *,
    arms: int | Sequence[str],
    fidelities: Fidelities,
    capital: float | None = None,
    widen: bool = False,
    stop: Sure | None = None,
    control: int | str | None = None,
    control_share: float = 0.0,
    least_share: float = 0.0,
    memory: HalfLife | None = None,
    lease: float | None = DEFAULT_LEASE_SECONDS,
) -> dict[str, Any]:
    """The definition of an experiment, or an error that says what is wrong with it.

    >>> from mfbandit import UCB, Bounded
    >>> check_definition(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()), lease=-1)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: lease must be positive and finite, got -1
    """
    plain = Experiment(
        policy,
        arms=arms,
        fidelities=fidelities,
        capital=capital,
        widen=widen,
        stop=stop,
        control=control,
        control_share=control_share,
        least_share=least_share,
        memory=memory,
    )
    return {**plain.definition, "lease": None if lease is None else positive("lease", lease)}


def check_name(name: object) -> None:
    """Refuse what cannot name an experiment: names are parts of addresses and of file names.

    >>> check_name("../etc")
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: an experiment's name must be 1 to 64 letters, digits, dots, dashes or
        underscores, got '../etc'
    """
    if not isinstance(name, str) or not EXPERIMENT_NAME.fullmatch(name):
        raise InvalidArgument(
            f"an experiment's name must be 1 to 64 letters, digits, dots, dashes or underscores, got {name!r}"
        )
