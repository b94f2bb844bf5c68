r"""Shares of the plays at the highest fidelity that arms get whatever the policy chooses.

The control has a share c, every other active arm a share ℓ, and c + (K − 1)ℓ ≤ 1. An arm is owed

    d_i = the largest s_i·n − (plays of arm i), over all stretches of n plays that end now,

and never less than 0. So surplus is not saved up, and over any stretch of n plays an arm gets ⌊s_i·n⌋ if d_i stays
below 1. The policy's choice is taken as long as all arms can still be served in time. Arm i has to get one of the next
D_i plays, after which d_i would be 1. With all arms but the control ordered by D, the j-th can wait if their part 1 − c
of D_j plays is at least j. What is missing is d_G = max_j(j − (1 − c)·D_j). The play goes to an arm that is owed one if
d_c + d_G would reach 1 otherwise: to the control if d_c is the larger one, else to the other arm that is owed most. As
d_c grows by at most c a play, and d_G by at most 1 − c, both are never due at once.

A play that fails or expires is owed again. All numbers are integers, in units of 10⁻¹² plays: nothing is rounded.
"""

import math
from dataclasses import dataclass

import numpy as np

from mfbandit._internal.typing import BoolArray, IntArray

ONE = 10**12  # a play
DUE = ONE - 1000  # one that was due a moment ago: shares such as 1/3 are not whole numbers of units
LEAST = 1e-6  # share that is not 0


def units(share: float) -> int:
    """A share in units, rounded down, so that shares that sum to 1 still do.

    >>> units(0.1), units(1 / 3), units(0.29)
    (100000000000, 333333333333, 290000000000)
    """
    return math.floor(share * ONE + 0.01)


@dataclass(frozen=True)
class Turn:
    """What every arm would be owed after a play that is not its own.

    Args:
        owed: in units of 10⁻¹² plays; shape (K,).
        active: which arms take part; shape (K,).
        control: the arm with a share of its own; -1 if there is none.
        shares: c and ℓ, in units.
    """

    owed: IntArray
    active: BoolArray
    control: int
    shares: tuple[int, int]

    def arm(self, chosen: int) -> int:
        """The arm that gets the play: the chosen one, if all others can still be served in time.

        >>> turn = Turn(np.array([0, ONE]), np.array([True, True]), control=1, shares=(ONE // 10, 0))
        >>> turn.arm(0)
        1
        """
        after = self.owed.copy()
        after[chosen] = max(0, after[chosen] - ONE)
        if self._control_is_owed(after) + self._others_are_owed(after) < DUE:
            return chosen
        other = int(np.where(self._others(), self.owed, -1).argmax())
        first, second = self._control_is_owed(self.owed), self._others_are_owed(self.owed)
        # After failures more than one may be due: then one that is comes before one that would soon be.
        return self.control if (first >= DUE, first) >= (self.owed[other] >= DUE, second) else other

    def _control_is_owed(self, owed: IntArray) -> int:
        return int(owed[self.control]) if self.control >= 0 and self.active[self.control] else 0

    def _others(self) -> BoolArray:
        others = self.active.copy()
        if self.control >= 0:
            others[self.control] = False
        return others

    def _others_are_owed(self, owed: IntArray) -> int:
        """d_G: what the others together are owed, so that none of them has to wait too long."""
        share, each = self.shares
        if each == 0:
            return 0
        waits = np.sort(-((owed[self._others()] - DUE) // each))  # D_j, increasing
        missing = np.arange(1, len(waits) + 1) * ONE - (ONE - share) * waits
        return max(0, int(missing.max(initial=0)))


class Quota:
    """What each arm is owed, play by play.

    An arm's debt is kept as it was after its own last play: what came since is its share of the plays since.

    Args:
        arms: K.
        control: the arm with a share of its own; -1 for none.
        control_share: c.
        least_share: ℓ, the share of every other arm.
        begun: the number of the first play that counts.

    >>> quota, active = Quota(3, control=2, control_share=0.25, least_share=0.0), np.ones(3, dtype=np.bool_)
    >>> given = []
    >>> for number in range(8):
    ...     given.append(quota.arm(0, active))
    ...     quota.asked(number, given[-1])
    >>> given
    [0, 0, 0, 2, 0, 0, 0, 2]
    """

    def __init__(
        self, arms: int, *, control: int = -1, control_share: float = 0.0, least_share: float = 0.0, begun: int = 0
    ) -> None:
        self._control, self._begun = control, begun
        least = units(least_share)
        self._shares = (max(units(control_share), least) if control >= 0 else 0), least
        self._clock = 0  # plays so far
        self._since: list[int] = []  # the clock at the last play of each arm, or when it came
        self._left: list[int] = []  # what it was owed then
        self._expired: set[int] = set()
        for arm in range(arms):
            self.comes(arm)

    def arm(self, chosen: int, active: BoolArray) -> int:
        """The arm that gets the next play at the highest fidelity.

        Args:
            chosen: by the policy.
            active: which arms take part; shape (K,).
        """
        share = np.full(len(active), self._shares[1])
        if self._control >= 0:
            share[self._control] = self._shares[0]
        owed = np.array(self._left) + share * (self._clock + 1 - np.array(self._since))
        return Turn(np.where(active, owed, 0), active, self._control, self._shares).arm(chosen)

    def comes(self, arm: int) -> None:
        """An arm takes part from now on: it is owed nothing yet."""
        if arm == len(self._since):
            self._since.append(0)
            self._left.append(0)
        self._since[arm], self._left[arm] = self._clock, 0

    def asked(self, play: int, arm: int) -> None:
        """A play at the highest fidelity was handed out."""
        if play < self._begun:
            return
        self._clock += 1
        share = self._shares[arm != self._control]
        self._left[arm] = max(0, self._left[arm] + share * (self._clock - self._since[arm]) - ONE)
        self._since[arm] = self._clock

    def lost(self, play: int, arm: int, *, expired: bool = False) -> None:
        """A play at the highest fidelity gave no result: it is owed again, also if a late result should come."""
        if play < self._begun:
            return
        if play in self._expired:  # and is owed already
            self._expired.discard(play)
            return
        self._left[arm] += ONE
        if expired:
            self._expired.add(play)
