"""All plays of an experiment, a column for each of their properties."""

from array import array

import numpy as np
from numpy.typing import NDArray

from mfbandit._internal.typing import IntArray
from mfbandit.errors import InvalidArgument
from mfbandit.experiment.codec import Packed, PackedLog, is_kind, is_told
from mfbandit.experiment.events import Expired, Failed, Told, ToldBatch
from mfbandit.experiment.history import ArmHistory, History
from mfbandit.experiment.sums import Batches

PENDING, TOLD, FAILED, EXPIRED = range(4)


class PlayTable:
    """Arms, fidelities, states, rewards and costs of plays, by their numbers: some thirty bytes a play.

    >>> plays = PlayTable()
    >>> plays.add(arm=3, fidelity=1)
    >>> plays.settle(0, TOLD, reward=0.5, cost=10.0)
    >>> plays[0], plays.outcome(0)
    ((3, 1), Told(play=0, reward=0.5, cost=10.0))
    """

    def __init__(self) -> None:
        self.arms = array("i")
        self.fidelities = array("h")
        self.states = bytearray()
        self.rewards = array("d")
        self.costs = array("d")
        self.told = array("q")  # numbers of plays in the order of their results
        self.batches: dict[int, ToldBatch] = {}  # results of many observations, by the numbers of plays

    def __len__(self) -> int:
        return len(self.states)

    def __getitem__(self, play: int) -> tuple[int, int]:
        """Its arm and fidelity."""
        return self.arms[play], self.fidelities[play]

    def takes_outcome(self, play: int) -> bool:
        """Whether a play is pending, or expired and still takes a late result.

        >>> plays = PlayTable()
        >>> plays.add(arm=0, fidelity=0)
        >>> plays.takes_outcome(0)
        True
        """
        return self.states[play] in (PENDING, EXPIRED)

    def outcome(self, play: int) -> Told | Failed | Expired | None:
        """What came of a play, or None while it is pending.

        >>> plays = PlayTable()
        >>> plays.add(arm=0, fidelity=0)
        >>> plays.outcome(0) is None
        True
        """
        match self.states[play]:
            case 1:
                return self.batches.get(play) or Told(play, self.rewards[play], self.costs[play])
            case 2:
                return Failed(play, self.costs[play])
            case 3:
                return Expired(play)
        return None

    def results(self, first: int = 0, last: int | None = None) -> History:
        """Results in the order of telling.

        Args:
            first: the number of the first result, from 0.
            last: the number after the last one; None for all.

        >>> plays = PlayTable()
        >>> plays.add(arm=3, fidelity=1)
        >>> plays.settle(0, TOLD, reward=0.5, cost=10.0)
        >>> plays.results().rewards.tolist(), plays.results(first=1).arms.shape
        ([0.5], (0,))
        """
        told = np.frombuffer(self.told, np.int64)[first:last]
        fidelities, arms = self.where(told)
        rewards, costs = np.frombuffer(self.rewards)[told], np.frombuffer(self.costs)[told]
        many = self.observed(told)
        weights, sums = np.ones(len(told), dtype=np.int64), rewards.copy()
        weights[many.places], sums[many.places] = many.numbers, many.totals
        return History(arms.astype(np.int64), fidelities.astype(np.int64), rewards, costs, weights, sums)

    def of_arm(self, arm: int) -> ArmHistory:
        """Results of one arm, in the order of telling.

        >>> plays = PlayTable()
        >>> for arm in (3, 4):
        ...     plays.add(arm, fidelity=1)
        ...     plays.settle(arm - 3, TOLD, reward=0.5, cost=10.0)
        >>> plays.of_arm(4).numbers.tolist(), plays.of_arm(4).costs.tolist()
        ([2], [10.0])
        """
        told = np.frombuffer(self.told, np.int64)
        places = np.flatnonzero(np.frombuffer(self.arms, np.intc)[told] == arm)
        plays = told[places]
        many, weights = self.observed(plays), np.ones(len(plays), dtype=np.int64)
        weights[many.places] = many.numbers
        fidelities = np.frombuffer(self.fidelities, np.short)[plays].astype(np.int64)
        rewards, costs = np.frombuffer(self.rewards)[plays], np.frombuffer(self.costs)[plays]
        return ArmHistory(places + 1, fidelities, rewards, weights, costs)

    def observed(self, plays: IntArray) -> Batches:
        """What those of many results add that are many observations.

        Args:
            plays: numbers of plays that were told.
        """
        if not self.batches:
            return Batches.of([], [])
        found = [(place, self.batches[play]) for place, play in enumerate(plays.tolist()) if play in self.batches]
        return Batches.of([place for place, _ in found], [event.observed for _, event in found])

    def where(self, plays: IntArray) -> tuple[NDArray[np.short], NDArray[np.intc]]:
        """Fidelities and arms of many plays.

        >>> plays = PlayTable()
        >>> plays.add(arm=3, fidelity=1)
        >>> [part.tolist() for part in plays.where(np.array([0, 0]))]
        [[1, 1], [3, 3]]
        """
        fidelities, arms = np.frombuffer(self.fidelities, np.short), np.frombuffer(self.arms, np.intc)
        return fidelities[plays], arms[plays]

    def numbers_in(self, state: int) -> IntArray:
        """The numbers of all plays in a state, increasing.

        >>> plays = PlayTable()
        >>> plays.add(arm=3, fidelity=1)
        >>> plays.numbers_in(PENDING).tolist()
        [0]
        """
        return np.flatnonzero(np.frombuffer(bytes(self.states), dtype=np.uint8) == state)

    # One at a time

    def add(self, arm: int, fidelity: int) -> None:
        """Add a pending play."""
        self.arms.append(arm)
        self.fidelities.append(fidelity)
        self.states.append(PENDING)
        self.rewards.append(0.0)
        self.costs.append(0.0)

    def settle_batch(self, event: ToldBatch) -> None:
        """Write down a result of many observations."""
        self.settle(event.play, TOLD, reward=event.reward, cost=event.cost)
        self.batches[event.play] = event

    def settle(self, play: int, state: int, *, reward: float = 0.0, cost: float = 0.0) -> None:
        """Write down what came of a play."""
        self.states[play] = state
        self.rewards[play] = reward
        self.costs[play] = cost
        if state == TOLD:
            self.told.append(play)

    # Many at once

    def add_all(self, asked: Packed) -> None:
        """Add packed ``Asked`` events, which must go on from the last number."""
        if not np.array_equal(asked["play"], np.arange(len(self), len(self) + len(asked))):
            raise InvalidArgument(f"the log does not fit together: plays must be numbered on from {len(self)}")
        self.arms.frombytes(asked["arm"].astype(np.intc).tobytes())
        self.fidelities.frombytes(asked["fidelity"].astype(np.short).tobytes())
        self.states.extend(bytes(len(asked)))
        self.rewards.frombytes(bytes(8 * len(asked)))
        self.costs.frombytes(bytes(8 * len(asked)))

    def settle_all(self, log: PackedLog) -> None:
        """Write down results, failures and expired leases; a late result overrides an expiry."""
        rows = log.rows
        states = np.frombuffer(self.states, dtype=np.uint8)
        rewards, costs = np.frombuffer(self.rewards), np.frombuffer(self.costs)
        states[rows["play"][is_kind(rows, Expired)]] = EXPIRED
        told = rows[is_told(rows)]
        for state, settled in ((FAILED, rows[is_kind(rows, Failed)]), (TOLD, told)):
            states[settled["play"]] = state
            costs[settled["play"]] = settled["cost"]
        self.batches.update(log.batches)
        rewards[told["play"]] = told["reward"]
        self.told.frombytes(told["play"].astype(np.int64).tobytes())
