import math

import pytest

from mfbandit import Fidelities
from mfbandit.events import ArmAdded, ArmRetired, Asked, Failed, Told
from mfbandit.ledger import Ledger


def ledger():
    made = Ledger(Fidelities([0.1, 1], [0.1, 0]), ["a", "b"])
    made.apply(Asked(0, 0, 0))
    return made


def test_rounding_does_not_build_up_in_what_was_spent():
    made = Ledger(Fidelities([0.1]), ["a"])
    for play in range(1000):
        made.apply(Asked(play, 0, 0))
        made.apply(Told(play, 0.5, 0.1))
    assert made.spent == 0.1 * 1000


@pytest.mark.parametrize(
    "event",
    [
        Asked(5, 0, 0),
        Asked(1, 2, 0),
        Asked(1, -1, 0),
        Asked(1, 0, 2),
        Asked(1, 0.0, 0),  # type: ignore[arg-type]
        Told(1, 0.5, 1.0),
        Told(0, math.nan, 1.0),
        Told(0, "x", 1.0),  # type: ignore[arg-type]
        Told(0, 0.5, -1.0),
        Failed(0, math.inf),
        Failed(3, 0.0),
        ArmAdded("a"),
        ArmAdded(""),
        ArmRetired(2),
    ],
)
def test_a_log_that_does_not_fit_together(event):
    with pytest.raises(ValueError, match="the log does not fit together"):
        ledger().check(event)


@pytest.mark.parametrize("event", [Asked(1, 1, 1), Told(0, 0.5, 0.0), Failed(0, 1), ArmAdded("c"), ArmRetired(1)])
def test_a_log_that_does(event):
    ledger().check(event)
