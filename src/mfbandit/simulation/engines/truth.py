"""A problem as arrays: what rewards are drawn from, and what plays cost."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.problems import Account, Bernoulli, Gaussian, Problem, Replay, pseudo_rewards

GAUSSIAN, BERNOULLI, REPLAY, REPLAY_IN_ORDER = range(4)

Element = TypeVar("Element", np.float64, np.int64)


class Truth(NamedTuple):
    """The R fidelities that a policy plays, arms first: what is needed of one arm lies together."""

    kind: int  # of rewards: GAUSSIAN, BERNOULLI, REPLAY or REPLAY_IN_ORDER
    means: FloatArray  # (K, R)
    sigmas: FloatArray  # (R,): of Gaussian rewards
    costs: FloatArray  # (R,)
    losses: FloatArray  # (K, R): cost times (best mean - pseudo-reward) of one play
    table: FloatArray  # all recorded rewards, one arm and fidelity after the other
    starts: IntArray  # (K, R): where in the table those of an arm and fidelity begin
    lengths: IntArray  # (K, R): how many there are


def prepare_truth(problem: Problem, rows: Sequence[int], account: Account) -> Truth:
    """Lay out these fidelities of a problem for an engine.

    Args:
        problem: the hidden truth.
        rows: the fidelities that the policy plays, in order; R of them.
        account: what a play earns, see :func:`~mfbandit.pseudo_rewards`.

    >>> from mfbandit.problems import paper_problem
    >>> truth = prepare_truth(paper_problem(3), [1], "paper")
    >>> truth.means.shape, truth.costs.tolist()
    ((200, 1), [10.0])
    """
    rows = list(rows)
    costs = np.array(problem.fidelities.costs)[rows]
    losses = costs[:, None] * (problem.best_mean - pseudo_rewards(problem, account)[rows])
    kind, sigmas, (table, starts, lengths) = _rewards(problem, rows)
    means = _by_arm(problem.means[rows])
    return Truth(kind, means, sigmas, costs, _by_arm(losses), table, _by_arm(starts), _by_arm(lengths))


def _by_arm(table: NDArray[Element]) -> NDArray[Element]:
    # Always a copy: a read-only array is another type to Numba, and all would be compiled a second time.
    return np.array(table.T, order="C")


def _rewards(problem: Problem, rows: list[int]) -> tuple[int, FloatArray, tuple[FloatArray, IntArray, IntArray]]:
    rewards = problem.rewards
    no_table = (np.zeros(0), np.zeros((0, 0), dtype=np.int64), np.zeros((0, 0), dtype=np.int64))
    if isinstance(rewards, Gaussian):
        return GAUSSIAN, np.array(rewards.sigmas(len(problem.fidelities))[rows]), no_table
    if isinstance(rewards, Bernoulli):
        return BERNOULLI, np.zeros(0), no_table
    return REPLAY if rewards.replace else REPLAY_IN_ORDER, np.zeros(0), _one_table(rewards, rows)


def _one_table(rewards: Replay, rows: list[int]) -> tuple[FloatArray, IntArray, IntArray]:
    table = np.concatenate([np.asarray(cell, dtype=np.float64) for row in rewards.samples for cell in row])
    ends = np.cumsum(rewards.lengths.ravel()).reshape(rewards.lengths.shape)
    return table, (ends - rewards.lengths)[rows], rewards.lengths[rows]
