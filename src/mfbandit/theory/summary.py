"""The theory's results for one problem, as text and as numbers."""

from dataclasses import dataclass

from mfbandit._internal.formatting import plain, readable
from mfbandit._internal.typing import JSONObject
from mfbandit.problems import Problem
from mfbandit.theory.lower import lower_bound
from mfbandit.theory.partition import decay_condition, partition
from mfbandit.theory.plays import expected_plays
from mfbandit.theory.upper import ucb_upper_bound, upper_bound


@dataclass(frozen=True, eq=False)
class TheorySummary:
    """The theory's results for a problem, a capital and ρ. Printed, it is a page of text."""

    text: str
    numbers: JSONObject

    def __str__(self) -> str:
        return self.text


def summarize(problem: Problem, capital: float, rho: float = 5.0) -> TheorySummary:
    """Compute the classes, Assumption 1, bounds on plays, and upper and lower bounds on regret.

    Bounds whose conditions do not hold are included, with a line for each unmet condition.

    Args:
        problem: the problem.
        capital: Λ.
        rho: exploration parameter of MF-UCB.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> print(summarize(paper_problem(3), capital=80_000).text.splitlines()[-1])
      no strategy stays below 2,750 log n as the capital grows
    """
    parts, decay = partition(problem), decay_condition(problem.fidelities)
    plays = expected_plays(problem, max(1, int(capital / problem.fidelities.costs[0])), rho, unproven=True)
    every = upper_bound(problem, capital, rho, unproven=True)
    large = upper_bound(problem, capital, rho, form="large", unproven=True)
    ucb = ucb_upper_bound(problem, capital, rho, unproven=True)
    lower = lower_bound(problem, form="divergence", unproven=True)
    most, most_large, most_ucb = (float(bound.total) for bound in (every, large, ucb))
    trivial = capital * float(problem.gaps.max()) + problem.fidelities.costs[-1] * max(problem.best_mean, 0.0)
    vacuous = [f"  (no policy can have more than {readable(trivial)}: this bound is trivial here)"] * (most >= trivial)
    lines = [
        str(parts),
        "",
        *([str(decay), ""] if len(decay.left) else []),
        str(plays),
        "",
        f"regret of MF-UCB at capital {plain(capital, 10)}, rho = {rho:g}:",
        f"  at most {readable(most)} (Lemma 10, at every capital); UCB's at most {readable(most_ucb)}",
        *vacuous,
        f"  at most {readable(most_large)} beyond some enormous capital",
        f"  no strategy stays below {readable(lower.proven)} log n as the capital grows",
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
    return TheorySummary("\n".join([*lines, *(f"not proved: {note}" for note in notes)]), numbers)


def _notes(*caveats: tuple[str, ...]) -> list[str]:
    broken = dict.fromkeys(text for each in caveats for text in each)
    return list(broken)
