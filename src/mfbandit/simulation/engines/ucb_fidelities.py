"""Which fidelities UCB and MF-UCB play: UCB is MF-UCB on the highest one alone."""

from mfbandit.core import Fidelities
from mfbandit.policies import MFUCB, UCB
from mfbandit.problems import Problem


def used(problem: Problem, policy: UCB | MFUCB) -> list[int]:
    """The fidelities that the policy plays.

    >>> from mfbandit.problems import paper_problem
    >>> used(paper_problem(1), UCB()), used(paper_problem(1), MFUCB())
    ([2], [0, 1, 2])
    """
    rows = list(range(len(problem.fidelities)))
    return rows[-1:] if isinstance(policy, UCB) else rows


def known(problem: Problem, policy: UCB | MFUCB) -> Fidelities:
    """What the policy knows of those that it plays.

    >>> from mfbandit.problems import paper_problem
    >>> known(paper_problem(1), UCB()).costs
    (1000.0,)
    """
    return problem.fidelities.top if isinstance(policy, UCB) else problem.fidelities
