"""On which splits trainings are that go on: each from its first play to its last on one split."""

from collections import defaultdict, deque
from collections.abc import Callable

from mfbandit.core import Play


class Chains:
    """The trainings of candidates: the i-th one of each is on the same split.

    A play that goes on from an earlier one is on its split. Of several that it might go on from it takes the oldest.

    >>> chains = Chains()
    >>> first = Play("a-0", 0, 0, 0.25, "a")
    >>> chains.split(first, int), chains.split(Play("a-1", 0, 1, 1.0, "a"), int)
    (0, 1)
    >>> chains.told(first, 0, failed=False)
    >>> chains.split(Play("a-2", 0, 1, 0.75, "a", resume_from=0), int)
    0
    """

    def __init__(self) -> None:
        self._begun: defaultdict[int, int] = defaultdict(int)
        self._waiting: defaultdict[tuple[int, int], deque[int]] = defaultdict(deque)  # splits, by arm and fidelity

    def split(self, play: Play, number: Callable[[int], int]) -> int:
        """Return the split of a play that begins now.

        Args:
            play: as it was asked for.
            number: of the split of a candidate's i-th training.
        """
        if play.resume_from is not None:
            return self._waiting[play.arm, play.resume_from].popleft()
        self._begun[play.arm] += 1
        return number(self._begun[play.arm] - 1)

    def told(self, play: Play, split: int, *, failed: bool) -> None:
        """Take in that a play has ended; after a failure another one may go on from where it did."""
        if not failed:
            self._waiting[play.arm, play.fidelity].append(split)
        elif play.resume_from is not None:
            self._waiting[play.arm, play.resume_from].appendleft(split)
