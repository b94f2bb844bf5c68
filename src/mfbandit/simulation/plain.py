"""Runs play by play in Python, as the policy says: for any policy, and what every engine must equal."""

from dataclasses import replace

import numpy as np

from mfbandit._internal.progress import Tick
from mfbandit._internal.typing import FloatArray
from mfbandit.core import Fidelities, Stats, limit
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import checked_choice
from mfbandit.policies import Policy, Remembers, decision
from mfbandit.problems import Account, Problem, pseudo_rewards
from mfbandit.simulation.results import UNDECIDED, Run, regret_after_decision


def plain_run(
    problem: Problem, policy: Policy, capitals: FloatArray, account: Account, rng: np.random.Generator, tick: Tick
) -> Run:
    """Make one run in Python.

    Args:
        problem: the hidden truth.
        policy: the policy.
        capitals: where regret is recorded, increasing; the run ends at the last; shape (G,).
        account: what a play earns.
        rng: where chance comes from.
        tick: called after each play with the share of the capital that it cost; may raise to stop.

    >>> from mfbandit import MFUCB, paper_problem
    >>> rng = np.random.default_rng(0)
    >>> plain_run(paper_problem(3), MFUCB(), np.array([500.0]), "paper", rng, lambda _: None).steps
    500
    """
    stats = Stats.empty(len(problem.fidelities), problem.arms)
    record, answer = _RegretRecord(problem, capitals, account), UNDECIDED
    while True:
        arm, m = checked_choice(policy, stats.read_only(), problem.fidelities)
        if not record.fits(m):
            break
        reward = problem.draw(arm, m, rng, earlier=int(stats.counts[m, arm]))
        stats = told(stats, policy, problem.fidelities, arm, m, reward)
        before = record.spent
        record.pay(arm, m)
        tick((record.spent - before) / capitals[-1])
        answer = checked_decision(policy, stats.read_only(), problem.fidelities)
        if answer != UNDECIDED:
            record.end(answer)
            break
    tick(1 - record.spent / capitals[-1])
    return Run(record.regret, stats.counts, int(record.tally.sum()), record.spent, answer)


def checked_decision(policy: Policy, stats: Stats, fidelities: Fidelities) -> int:
    """Return the arm that the policy has decided for, or UNDECIDED; an error if it is no active arm.

    >>> from mfbandit import MFUCB, paper_problem
    >>> checked_decision(MFUCB(), Stats.empty(2, 200), paper_problem(3).fidelities)
    -1
    """
    arm = decision(policy, stats, fidelities)
    if arm is None:
        return UNDECIDED
    if not (0 <= arm < len(stats.active) and stats.active[arm]):
        raise InvalidArgument(f"decision of {policy} must be an active arm or None, got {arm!r}")
    return int(arm)


def told(stats: Stats, policy: Policy, fidelities: Fidelities, arm: int, m: int, reward: float) -> Stats:
    """Take in a reward, in place, and let the policy remember; the statistics with its memory.

    >>> from mfbandit import MFUCB, paper_problem
    >>> start = Stats.empty(fidelities=2, arms=200)
    >>> told(start, MFUCB(), paper_problem(3).fidelities, 7, 1, 0.5).counts[1, 7]
    np.int64(1)
    """
    stats.counts[m, arm] += 1
    stats.sums[m, arm] += reward
    stats.squares[m, arm] += reward * reward
    if isinstance(policy, Remembers):
        return replace(stats, memory=policy.remember(stats.read_only(), fidelities))
    return stats


class _RegretRecord:
    """What is spent and lost, and the regret at every capital that has been passed."""

    def __init__(self, problem: Problem, capitals: FloatArray, account: Account) -> None:
        self.spent, self.regret = 0.0, np.zeros(len(capitals))
        self._problem = problem
        self.tally = np.zeros(len(problem.fidelities), dtype=np.int64)
        self._capitals, self._limits, self._best_mean = capitals, limit(capitals), problem.best_mean
        self._costs = np.array(problem.fidelities.costs)
        self._losses = self._costs[:, None] * (problem.best_mean - pseudo_rewards(problem, account))
        self._recorded, self._lost = 0, 0.0

    def fits(self, m: int) -> bool:
        """Record the regret at every capital into which a play at m does not fit; whether one is left."""
        after = self._total(m)
        while self._recorded < len(self._limits) and after > self._limits[self._recorded]:
            unused = self._capitals[self._recorded] - self.spent
            self.regret[self._recorded] = unused * self._best_mean + self._lost  # eq. 1
            self._recorded += 1
        return self._recorded < len(self._limits)

    def end(self, answer: int) -> None:
        """Record the regret at every other capital, as the policy has decided."""
        rest = self._capitals[self._recorded :]
        self.regret[self._recorded :] = regret_after_decision(self._problem, answer, rest, self.spent, self._lost)

    def pay(self, arm: int, m: int) -> None:
        """Pay for a play."""
        self.spent = self._total(m)
        self.tally[m] += 1
        self._lost += float(self._losses[m, arm])

    def _total(self, m: int) -> float:
        """Σ_m λ_m·(plays at m) with one more at m, added up in this order as everywhere else."""
        spent = 0.0
        for i, (cost, plays) in enumerate(zip(self._costs.tolist(), self.tally.tolist(), strict=True)):
            spent += cost * (plays + (i == m))
        return spent
