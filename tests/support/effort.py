"""How hard the tests try: enough for work at one's desk, or all that is worth the time (as in ``.ci/run``)."""

import os
from typing import TypeVar

THOROUGH = os.environ.get("MFBANDIT_THOROUGH") == "1"
FEWEST_EXAMPLES = 10

T = TypeVar("T")


def effort(quick: T, thorough: T) -> T:
    """Choose how long a test goes on: so long, or, where MFBANDIT_THOROUGH=1, so long."""
    return thorough if THOROUGH else quick


def examples(number: int) -> int:
    """How many examples Hypothesis tries: a third of them, or all where MFBANDIT_THOROUGH=1."""
    return effort(max(FEWEST_EXAMPLES, number // 3), number)
