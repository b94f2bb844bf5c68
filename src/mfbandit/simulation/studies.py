"""Every policy on every problem at every capital: a study."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mfbandit._internal.formatting import columns, plain, readable
from mfbandit._internal.progress import print_line, progress_bar
from mfbandit.errors import InvalidArgument
from mfbandit.policies import Policy
from mfbandit.problems import Account, Problem
from mfbandit.simulation.results import Simulation
from mfbandit.simulation.simulator import simulate


@dataclass(frozen=True)
class Study:
    """What came of a study; made by :func:`study`.

    Args:
        sims: the simulations, by the name of the problem and the policy as text; each has all capitals.
    """

    sims: dict[tuple[str, str], Simulation]

    def rows(self) -> list[dict[str, Any]]:
        """One for each problem, capital and policy: mean regret with a 95 % interval (None for one run).

        >>> from mfbandit import MFUCB, paper_problem
        >>> row = study({"paper 3": paper_problem(3)}, [MFUCB()], capitals=[4000], runs=2).rows()[0]
        >>> row["problem"], row["policy"], row["capital"], row["runs"]
        ('paper 3', 'MFUCB(rho=2.0)', 4000.0, 2)
        """
        rows = []
        for (problem, policy), sim in self.sims.items():
            summary = sim.summary() if len(sim.regret) > 1 else None
            for g, capital in enumerate(sim.capital.tolist()):
                rows.append(
                    {
                        "problem": problem,
                        "capital": capital,
                        "policy": policy,
                        "runs": len(sim.regret),
                        "regret": float(sim.regret[:, g].mean()),
                        "low": float(summary.low[g]) if summary else None,
                        "high": float(summary.high[g]) if summary else None,
                    }
                )
        order = {problem: i for i, (problem, _) in enumerate(self.sims)}
        return sorted(rows, key=lambda row: (order[row["problem"]], row["capital"]))  # stable: policies as given

    def __str__(self) -> str:
        lines = [("problem", "capital", "policy", "regret", "95 % interval")]
        for row in self.rows():
            interval = "-" if row["low"] is None else f"{readable(row['low'])} to {readable(row['high'])}"
            capital = plain(row["capital"])
            lines.append((row["problem"], capital, row["policy"], readable(row["regret"]), interval))
        return "\n".join(columns(lines))


def study(  # noqa: PLR0913 - options with names and defaults
    problems: Mapping[str, Problem],
    policies: Sequence[Policy],
    *,
    capitals: Sequence[float] | None = None,
    looks: Sequence[float] | None = None,
    runs: int = 20,
    seed: int = 0,
    account: Account = "paper",
    workers: int | None = None,
    results: str | Path | None = None,
    progress: bool | None = None,
) -> Study:
    """Simulate every policy on every problem, and record regret at every capital.

    A policy does not see how much capital is left, so one simulation up to the largest has them all. One that is told a
    budget when it is made, such as :class:`~mfbandit.MFTopTwo`, keeps to that one at every capital.

    Args:
        problems: the hidden truths, by name.
        policies: the policies.
        capitals: Λ, at which regret is recorded; or
        looks: the same in full looks at every arm, Λ/(K·λ_M), which suits problems of different sizes.
        runs: runs of each policy on each problem; all use the same seeds.
        seed: for all chance.
        account: what a play earns, see :func:`~mfbandit.pseudo_rewards`.
        workers: see :func:`~mfbandit.simulate`; joblib's backends are used as there.
        results: a folder for finished chunks; a study that was stopped goes on where it was.
        progress: show a progress bar; by default on a terminal, and a line for each simulation elsewhere.

    >>> from mfbandit import MFUCB, UCB, paper_problem
    >>> print(study({"paper 3": paper_problem(3)}, [MFUCB(), UCB()], looks=[2, 4], runs=4))
    problem  capital          policy  regret   95 % interval
    paper 3    4,000  MFUCB(rho=2.0)   988.8  963.5 to 1,014
    paper 3    4,000    UCB(rho=2.0)   1,507  1,483 to 1,531
    paper 3    8,000  MFUCB(rho=2.0)   1,632  1,593 to 1,672
    paper 3    8,000    UCB(rho=2.0)   2,601  2,538 to 2,663
    """
    if (capitals is None) == (looks is None):
        raise InvalidArgument(f"either capitals or looks must be given, got {capitals!r} and {looks!r}")
    if not problems or not policies:
        raise InvalidArgument("a study must have at least one problem and one policy")
    if len({str(policy) for policy in policies}) < len(policies):
        raise InvalidArgument(f"policies must be different, got {', '.join(map(str, policies))}")
    cells = [(name, problem, policy) for name, problem in problems.items() for policy in policies]
    sims: dict[tuple[str, str], Simulation] = {}
    with progress_bar(f"study of {len(cells)} simulations", len(cells), shown=progress) as tick:
        for name, problem, policy in cells:
            grid = _grid(capitals, looks, problem)
            sims[name, str(policy)] = simulate(
                problem,
                policy,
                capital=grid[-1],
                grid=grid,
                runs=runs,
                seed=seed,
                account=account,
                workers=workers,
                results=results,
                progress=tick,
            )
            if progress is None:
                print_line(f"{len(sims)} of {len(cells)}: {policy} on {name}", on_terminal=False)
    return Study(sims)


def _grid(capitals: Sequence[float] | None, looks: Sequence[float] | None, problem: Problem) -> list[float]:
    full = 1.0 if looks is None else problem.arms * problem.fidelities.costs[-1]
    given = list(capitals if capitals is not None else looks if looks is not None else ())
    if not given:
        raise InvalidArgument(f"a study must have at least one capital, got {given}")
    return sorted(float(full * capital) for capital in given)
