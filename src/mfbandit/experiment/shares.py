"""Shares of the plays at the highest fidelity: for a control, and for every active arm."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from mfbandit._internal.formatting import plain
from mfbandit._internal.validation import number, shown
from mfbandit.core import LEAST_SHARE, Quota
from mfbandit.errors import InvalidArgument


@dataclass(frozen=True)
class Shares:
    """Which arm is the control, and the least shares of the plays at the highest fidelity.

    Args:
        control: the index of the control; None for none.
        control_share: of the plays at the highest fidelity, for the control.
        least_share: of these plays, for every active arm.

    >>> Shares(control=0, control_share=0.1, least_share=0.01).check(arms=50)
    >>> Shares(control=0, control_share=0.1, least_share=0.02).check(arms=50)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: shares must sum to at most 1, got 1.08: 0.1 for the control and 0.02 for each of
        49 other arms
    """

    control: int | None = None
    control_share: float = 0.0
    least_share: float = 0.0

    def __post_init__(self) -> None:
        for name in ("control_share", "least_share"):
            value = number(name, getattr(self, name))
            if value != 0 and not LEAST_SHARE <= value <= 1:
                raise InvalidArgument(f"{name} must be 0, or {LEAST_SHARE:g} to 1, got {shown(getattr(self, name))}")
            object.__setattr__(self, name, value)
        if self.control is None and self.control_share:
            raise InvalidArgument(f"control_share must come with a control, got {plain(self.control_share)} and none")

    def words(self, labels: Sequence[str] | Mapping[int, str]) -> str:
        """The control and the shares, for people; empty where there are none.

        Args:
            labels: the names of arms, by their indices.

        >>> Shares(0, 0.1, 0.01).words(["ad-a", "ad-b"])
        'ad-a is the control, with at least 10 % of the plays, every active arm at least 1 %'
        """
        parts = [f"{labels[self.control]} is the control"] if self.control is not None else []
        parts += [f"with at least {plain(100 * self.control_share, 6)} % of the plays"] if self.control_share else []
        parts += [f"every active arm at least {plain(100 * self.least_share, 6)} %"] if self.least_share else []
        return ", ".join(parts)

    def check(self, arms: int) -> None:
        """Refuse shares that sum to more than 1.

        Args:
            arms: how many take part, or may do so again.
        """
        others = arms - (self.control is not None)
        first = 0.0 if self.control is None else max(self.control_share, self.least_share)
        total = first + others * self.least_share
        if total > 1 + 1e-9:
            control = "" if self.control is None else f"{plain(first)} for the control and "
            raise InvalidArgument(
                f"shares must sum to at most 1, got {plain(total)}: "
                f"{control}{plain(self.least_share)} for each of {others:,} other arms"
            )

    def quota(self, arms: int, begun: int = 0) -> Quota | None:
        """What counts which arm is owed a play; None if no arm has a share.

        Args:
            arms: how many there are.
            begun: the number of the first play that counts.
        """
        if not self.control_share and not self.least_share:
            return None
        control = -1 if self.control is None else self.control
        return Quota(arms, control=control, control_share=self.control_share, least_share=self.least_share, begun=begun)


NO_SHARES = Shares()


def shares_record(shares: Shares) -> dict[str, Any] | None:
    """The shares as a dictionary for JSON; None where there are none.

    >>> shares_record(Shares(0, 0.1)), shares_record(NO_SHARES)
    ({'control': 0, 'control_share': 0.1, 'least_share': 0.0}, None)
    """
    return None if shares == NO_SHARES else asdict(shares)


def shares_from_record(record: Mapping[str, Any] | None) -> Shares:
    """The shares that :func:`shares_record` described.

    >>> shares_from_record({"least_share": 0.01})
    Shares(control=None, control_share=0.0, least_share=0.01)
    """
    if record is None:
        return NO_SHARES
    names = [field.name for field in fields(Shares)]
    if not isinstance(record, Mapping) or not record.keys() <= set(names):
        raise InvalidArgument(f"shares must have the fields {', '.join(names)}, got {shown(record)}")
    return Shares(**record)
