"""Which incarnation of an experiment a play was asked from: a part of its id.

A backup that is restored, or a copy that goes on twice, hands out the same numbers again for other plays. So each time
that an experiment is opened, plays get another incarnation into their ids, and no id ever means two plays.
"""

import os
import re
from bisect import bisect_right

PATTERN = re.compile(r"[0-9a-z]{1,32}")
RANDOM_BYTES = 3


def new_incarnation() -> str:
    """Make up an incarnation.

    >>> PATTERN.fullmatch(new_incarnation()) is not None
    True
    """
    return os.urandom(RANDOM_BYTES).hex()


class Incarnations:
    """The incarnations so far, and the number of the first play of each.

    >>> known = Incarnations()
    >>> known.begin(2, "a1b2c3")
    >>> known.of(1), known.of(2)
    ('', 'a1b2c3')
    """

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.names: list[str] = []

    def begin(self, play: int, name: str) -> None:
        """Let plays of this number and above belong to another incarnation."""
        self.starts.append(play)
        self.names.append(name)

    def of(self, play: int) -> str:
        """The incarnation of a play; empty for those before the first.

        >>> Incarnations().of(7)
        ''
        """
        starts = self.starts
        if not starts:
            return ""
        if play >= starts[-1]:  # nearly always
            return self.names[-1]
        place = bisect_right(starts, play)
        return self.names[place - 1] if place else ""


def play_id(experiment: str, incarnation: str, number: int) -> str:
    """The id of a play.

    >>> play_id("8fa7e3eb1859", "a1b2c3", 0), play_id("8fa7e3eb1859", "", 0)
    ('8fa7e3eb1859-a1b2c3-0', '8fa7e3eb1859-0')
    """
    return f"{experiment}-{incarnation}-{number}" if incarnation else f"{experiment}-{number}"
