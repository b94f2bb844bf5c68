"""All that the theory says about one problem, as one text and one set of numbers."""

from dataclasses import dataclass
from typing import Any

from mfbandit._internal.formatting import readable
from mfbandit.problems import Problem
from mfbandit.theory.lower import lower_bound
from mfbandit.theory.partition import decay_condition, partition
from mfbandit.theory.plays import expected_plays
from mfbandit.theory.upper import ucb_upper_bound, upper_bound


@dataclass(frozen=True, eq=False)
class Proved:
    """What holds for a problem, a capital and ρ. Printed, it is a page of text."""

    text: str
    numbers: dict[str, Any]

    def __str__(self) -> str:
        return self.text


def proved(problem: Problem, capital: float, rho: float = 5.0) -> Proved:
    """Classes, Assumption 1, bounds on plays and on regret, from above and from below.

    Bounds whose conditions do not hold are given all the same, each with a line that says which.

    Args:
        problem: the truth.
        capital: Λ.
        rho: exploration parameter of MF-UCB.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> print(proved(paper_problem(3), capital=80_000).text.splitlines()[-1])
      no strategy stays below 2,750 log n as the capital grows without end
    """
    parts, decay = partition(problem), decay_condition(problem.fidelities)
    plays = expected_plays(problem, max(1, int(capital / problem.fidelities.costs[0])), rho, unproven=True)
    every = upper_bound(problem, capital, rho, unproven=True)
    large = upper_bound(problem, capital, rho, form="large", unproven=True)
    ucb = ucb_upper_bound(problem, capital, rho, unproven=True)
    lower = lower_bound(problem, form="divergence", unproven=True)
    most, most_large, most_ucb = (float(bound.total) for bound in (every, large, ucb))
    trivial = capital * float(problem.gaps.max()) + problem.fidelities.costs[-1] * max(problem.best_mean, 0.0)
    says_nothing = [f"  (more than any policy can lose, {readable(trivial)}: it says nothing here)"] * (most >= trivial)
    lines = [
        str(parts),
        "",
        *([str(decay), ""] if len(decay.left) else []),
        str(plays),
        "",
        f"regret of MF-UCB at capital {capital:,.10g}, rho = {rho:g}:",
        f"  at most {readable(most)} (Lemma 10, at every capital); UCB's at most {readable(most_ucb)}",
        *says_nothing,
        f"  at most {readable(most_large)} beyond some enormous capital",
        f"  no strategy stays below {readable(lower.proven)} log n as the capital grows without end",
    ]
    notes = _notes(every.caveats, lower.caveats)
    numbers = {
        "capital": capital,
        "rho": rho,
        "classes": parts.classes.tolist(),
        "first": parts.first.tolist(),
        "decay": {"left": decay.left.tolist(), "right": decay.right.tolist()},
        "plays": plays.table.tolist(),
        "regret": {
            "every_capital": most,
            "large_capital": most_large,
            "ucb": most_ucb,
            "trivial": trivial,
            "lower_per_log_n": lower.proven,
        },
        "not_proved": notes,
    }
    return Proved("\n".join([*lines, *(f"not proved: {note}" for note in notes)]), numbers)


def _notes(*caveats: tuple[str, ...]) -> list[str]:
    broken = dict.fromkeys(text for each in caveats for text in each)
    return list(broken)
