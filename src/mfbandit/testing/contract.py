"""What all contracts share: an error for a broken rule, and ways to check one."""

from collections.abc import Callable


class ContractBroken(AssertionError):
    """A policy or an experiment breaks a rule that its users rely on."""


def require(holds: bool, rule: str) -> None:
    """Raise :class:`ContractBroken` with the rule unless it holds.

    >>> require(1 > 2, "1 must be above 2")
    Traceback (most recent call last):
    mfbandit.testing.contract.ContractBroken: 1 must be above 2
    """
    if not holds:
        raise ContractBroken(rule)


def require_equal(what: str, found: object, expected: object) -> None:
    """Raise :class:`ContractBroken` unless both are equal.

    >>> require_equal("spent", 1.0, 2.0)
    Traceback (most recent call last):
    mfbandit.testing.contract.ContractBroken: spent must be 2.0, got 1.0
    """
    require(found == expected, f"{what} must be {expected}, got {found}")


def require_error(error: type[Exception], call: Callable[[], object], rule: str) -> None:
    """Raise :class:`ContractBroken` with the rule unless the call raises this error.

    >>> require_error(ZeroDivisionError, lambda: 1 / 0, "division by 0 must be an error")
    """
    try:
        call()
    except error:
        return
    raise ContractBroken(rule)
