"""Regret of a history of plays (eq. 1), and the variants of the paper's conclusion."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import limit, spending
from mfbandit.errors import InvalidArgument
from mfbandit.problems.problem import Problem

Account = Literal["paper", "own", "top", "harmless"]


def pseudo_rewards(problem: Problem, account: Account = "paper") -> FloatArray:
    r"""Compute q, the pseudo-reward of a play of arm k at fidelity m per unit of cost; shape (M, K), units of reward.

    Args:
        problem: the problem.
        account: what a play earns.

            - ``"paper"``: μ^(M)_k at any fidelity, as in eq. 1. An ad earns its click rate, however long it is shown.
            - ``"own"``: μ^(m)_k, the mean at the fidelity of the play.
            - ``"top"``: μ^(M)_k at fidelity M, and 0 below it. A simulated robot moves no boxes.
            - ``"harmless"``: μ^(M)_k at fidelity M, and μ* below it. A bad treatment does harm only at the highest
              fidelity.

    >>> from mfbandit.problems.builtin import misleading_problem
    >>> problem = misleading_problem(arms=2)
    >>> pseudo_rewards(problem, "top").round(2).tolist()
    [[0.0, 0.0], [0.0, 0.0], [0.4, 0.6]]
    """
    if account not in get_args(Account):
        raise InvalidArgument(f"account must be one of {list(get_args(Account))}, got {account!r}")
    if account == "own":
        return problem.means.copy()
    below = {"paper": problem.means[-1], "top": 0.0, "harmless": problem.best_mean}[account]
    earned = np.empty_like(problem.means)
    earned[:-1] = below
    earned[-1] = problem.means[-1]
    return earned


def regret(
    problem: Problem, arms: ArrayLike, fidelities: ArrayLike, capital: ArrayLike, *, account: Account = "paper"
) -> FloatArray:
    r"""Compute the regret R(Λ) of a history of plays, at one capital or many (eq. 1).

        R(Λ) = (Λ − Σ_{t≤N} λ_{m_t}) μ* + Σ_{t≤N} λ_{m_t} (μ* − q_t)

    N is the largest number of plays whose total cost is at most Λ. Capital that is left over counts as full regret.

    Args:
        problem: the problem.
        arms: I_t, the arms played, in order; shape (N,).
        fidelities: m_t, the fidelities they were played at; shape (N,).
        capital: Λ, any shape; the history should be long enough to spend it.
        account: what a play earns, see :func:`pseudo_rewards`.

    Returns:
        Regret in units of capital times reward, in the shape of ``capital``.

    >>> from mfbandit.problems.builtin import misleading_problem
    >>> problem = misleading_problem(arms=2)  # costs 1, 4, 16; means 0.4 and 0.6
    >>> regret(problem, arms=[0, 1], fidelities=[0, 2], capital=[0.5, 17, 20]).round(3).tolist()
    [0.3, 0.2, 2.0]
    """
    played, at = _history(problem, arms, fidelities)
    costs = np.asarray(problem.fidelities.costs)
    limits: FloatArray = np.asarray(capital, dtype=np.float64)
    if not (np.isfinite(limits) & (limits >= 0)).all():
        raise InvalidArgument(f"capital must be finite and not negative, got {capital!r}")
    spent = np.concatenate([[0.0], spending(at, costs)])
    lost = np.cumsum(costs[at] * (problem.best_mean - pseudo_rewards(problem, account)[at, played]))
    n = np.searchsorted(spent, limit(limits), side="right") - 1
    result: FloatArray = (limits - spent[n]) * problem.best_mean + np.concatenate([[0.0], lost])[n]
    return result


def _history(problem: Problem, arms: ArrayLike, fidelities: ArrayLike) -> tuple[IntArray, IntArray]:
    columns = []
    for name, given, number in (("arms", arms, problem.arms), ("fidelities", fidelities, len(problem.fidelities))):
        column = np.asarray(given)
        if column.ndim != 1 or (column.size and not np.issubdtype(column.dtype, np.integer)):
            raise InvalidArgument(f"{name} must be a list of whole numbers, got {given!r}")
        if column.size and not (column.min() >= 0 and column.max() < number):
            raise InvalidArgument(f"{name} must lie in 0 to {number - 1}, got {column.min()} to {column.max()}")
        columns.append(column.astype(np.int64))
    played, at = columns
    if len(played) != len(at):
        raise InvalidArgument(f"arms and fidelities must be equally long, got {len(played)} and {len(at)}")
    return played, at
