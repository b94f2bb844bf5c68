"""What monitoring wants to know of an experiment: a few numbers of one moment."""

from dataclasses import dataclass

from mfbandit.experiment import Experiment


@dataclass(frozen=True, slots=True)
class Figures:
    """Numbers of an experiment.

    Args:
        state: what ``ask`` would do.
        results: how many results were told.
        pending: how many plays were asked for and not told yet.
        leases: how many of these have a lease.
        expiries: how many leases ran out since it was opened by this process.
        arms: how many arms there are, retired ones included.
        set_aside: how many arms were set aside after failures.
        capital: Λ, what all plays together may cost; None is unlimited.
        spent: what they cost so far.
        reserved: what pending plays will cost.
        refuted: how many assumed biases results have refuted.
        warnings: how many warnings a person should see, refuted biases not included.
    """

    state: str
    results: int
    pending: int
    leases: int
    expiries: int
    arms: int
    set_aside: int
    capital: float | None
    spent: float
    reserved: float
    refuted: int
    warnings: int


def figures_of(core: Experiment, *, leases: int, expiries: int) -> Figures:
    """Return the numbers of an experiment in memory.

    Args:
        core: the experiment.
        leases: how many plays have a lease.
        expiries: how many leases ran out.

    >>> from mfbandit import UCB, Bounded, Fidelities
    >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()), capital=5)
    >>> exp.tell(exp.ask(), 0.5)
    >>> found = figures_of(exp, leases=0, expiries=0)
    >>> found.state, found.results, found.spent, found.capital
    ('running', 1, 1.0, 5.0)
    """
    return Figures(
        core.state,
        sum(core.results_at),
        core.pending_count,
        leases,
        expiries,
        len(core.folded.labels),
        len(core.folded.aside),
        core.capital,
        core.spent,
        core.reserved,
        len(core.refuted),
        len(core.incidents),
    )
