"""Plots of problems, plays and regret, with the paper's symbols; nothing is computed here.

Each function draws on the axes ``ax``, or on a new figure, and returns the axes: ``ax.figure.savefig("regret.png")``.
Colours are those of Okabe and Ito, which colour-blind people can distinguish. Lines also differ in dashes, for print.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from mfbandit._internal.formatting import plain
from mfbandit._internal.imports import needed_for
from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.errors import InvalidArgument
from mfbandit.problems import Problem
from mfbandit.simulation import Simulation
from mfbandit.theory import gaps, partition

if TYPE_CHECKING:
    from mfbandit.search.estimator import MFSearchCV

with needed_for("plotting", "plot"):
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

COLOURS = ("#E69F00", "#009E73", "#D55E00", "#CC79A7", "#0072B2", "#56B4E9", "#F0E442")
DASHES = ("-", "--", "-.", ":")
MAX_DOTS = 20_000  # more cannot be distinguished, and make files large
MAX_BARS = 20
MAX_CURVES_BESIDE_LEGEND = 4  # with more, the legend goes below the axes
GOLDEN_RATIO = (5**0.5 - 1) / 2

Sims: TypeAlias = Sequence[Simulation] | Mapping[str, Simulation]


def plot_partition(problem: Problem, ax: Axes | None = None) -> Axes:
    r"""Plot which fidelity settles which arm: the paper's Figure 1.

    There is one row for each fidelity m, the cheapest at the top. Its dots are the arms that no cheaper fidelity
    settles, at their gap Δ^(m)_k. Those to the right of 2γ_m are settled there and form the class K^(m). The others
    are in the next row again.

    Args:
        problem: the problem.
        ax: where to draw; a new figure by default.

    >>> from mfbandit import paper_problem
    >>> ax = plot_partition(paper_problem(3))
    >>> ax.get_xlabel()
    'gap $\\Delta^{(m)}_k = \\mu^* - \\mu^{(m)}_k - \\zeta_m$  (reward)'
    >>> plt.close(ax.figure)
    """
    parts, shortfall = partition(problem), gaps(problem)
    ax = _axes(ax, height=1.3 + 0.95 * len(problem.fidelities))
    shown = _thinned(np.arange(problem.arms))
    thresholds = (*(2 * gamma for gamma in problem.fidelities.gammas), 0.0)
    for m, threshold in enumerate(thresholds):
        arms = shown[parts.classes[shown] >= m]
        _strip(ax, -m, shortfall[m], arms[parts.classes[arms] > m], colour="0.7")
        _strip(ax, -m, shortfall[m], arms[parts.classes[arms] == m], colour=COLOURS[m % 7])
        ax.plot(shortfall[m, parts.optimal], np.full(len(parts.optimal), -m), "ko", ms=6)
        ax.plot([threshold, threshold], [-m - 0.42, -m + 0.42], color="k", lw=1)
        ax.text(threshold, -m + 0.45, _threshold_name(m, problem), ha="center", va="bottom", fontsize=8)
        size = f"$\\mathcal{{K}}^{{({m + 1})}}$: {parts.sizes[m]:,} arm{'s' * (int(parts.sizes[m]) != 1)}"
        ax.annotate(size, (1.01, -m), xycoords=("axes fraction", "data"), va="center", fontsize=9)
    ax.set_yticks(-np.arange(len(thresholds)), [_fidelity_name(m, problem) for m in range(len(thresholds))])
    ax.set_ylim(-len(thresholds) + 0.4, 0.8)
    ax.set_xlabel(r"gap $\Delta^{(m)}_k = \mu^* - \mu^{(m)}_k - \zeta_m$  (reward)")
    ax.set_title("colour: settled here   grey: not settled here   black: optimal", fontsize=9)
    return _tidy(ax, grid="x")


def _strip(ax: Axes, row: int, gap: FloatArray, arms: IntArray, *, colour: str) -> None:
    """Draw arms as dots along a row, spread over its height to distinguish them."""
    height = row + 0.62 * (arms * GOLDEN_RATIO % 1 - 0.5)
    ax.plot(gap[arms], height, ".", ms=4, color=colour, rasterized=True)


def plot_means(problem: Problem, ax: Axes | None = None) -> Axes:
    r"""Plot every arm's mean at every fidelity, arms ordered by the mean at the highest: the paper's Figure 3.

    Args:
        problem: the problem.
        ax: where to draw; a new figure by default.

    >>> from mfbandit import paper_problem
    >>> ax = plot_means(paper_problem(3))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['$m = 1$', '$m = 2$']
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    order = _thinned(problem.means[-1].argsort(kind="stable"))
    rank = np.linspace(1, problem.arms, len(order))
    top = len(problem.means) - 1
    for m in range(top):
        label = f"$m = {m + 1}$"
        ax.plot(rank, problem.means[m, order], ".", ms=3, color=COLOURS[m % 7], label=label, rasterized=True)
    ax.plot(rank, problem.means[-1, order], "k-" if problem.arms > 1 else "k.", lw=2, label=f"$m = {top + 1}$")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    ax.set_xlabel(r"arm $k$, ordered by $\mu^{(M)}_k$")
    ax.set_ylabel(r"mean $\mu^{(m)}_k$  (reward)")
    _legend(ax)
    return _tidy(ax)


def plot_plays(sim: Simulation, ax: Axes | None = None) -> Axes:
    r"""Plot mean plays of each arm at each fidelity, arms ordered by their mean at the highest (Figure 2, last panels).

    Fidelities that were never played are left out.

    Args:
        sim: the runs of a policy.
        ax: where to draw; a new figure by default.

    >>> from mfbandit import MFUCB, paper_problem, simulate
    >>> ax = plot_plays(simulate(paper_problem(3), MFUCB(), capital=50_000))
    >>> ax.get_yscale()
    'log'
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    order = _thinned(sim.means.argsort(kind="stable"))
    rank = np.linspace(1, len(sim.means), len(order))
    for m, plays in enumerate(sim.plays):
        if plays.any():
            played = plays[order] > 0
            label = f"$m = {m + 1}$"
            ax.plot(
                rank[played],
                plays[order][played],
                "osD^v*X"[m % 7],
                ms=2.5,
                color=COLOURS[m % 7],
                label=label,
                rasterized=True,
            )
    ax.set_yscale("log")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    ax.set_xlabel(r"arm $k$, ordered by $\mu^{(M)}_k$")
    ax.set_ylabel(r"plays $T^{(m)}_k$  (mean over runs)")
    _legend(ax, markerscale=2)
    return _tidy(ax)


def plot_regret(
    sims: Sims,
    *,
    bounds: Mapping[str, ArrayLike] | None = None,
    log: bool = False,
    confidence: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    r"""Plot mean regret against capital, with confidence bands (Figure 2, first panels).

    Args:
        sims: simulations to compare, or a mapping from labels to them.
        bounds: more curves, from labels to values at the first simulation's capitals, such as
            ``{"Lemma 10": theory.upper_bound(problem, sim.capital, rho=5).total}``.
        log: make both axes logarithmic; for bounds, which are far above measured regret.
        confidence: confidence level of the bands, in (0, 1).
        ax: where to draw; a new figure by default.

    >>> from mfbandit import MFUCB, UCB, paper_problem, simulate
    >>> problem = paper_problem(3)
    >>> ours, ucb = (simulate(problem, policy, capital=50_000, runs=4) for policy in (MFUCB(), UCB()))
    >>> ax = plot_regret({"MF-UCB": ours, "UCB": ucb})
    >>> ax.get_ylabel()
    'regret $R(\\Lambda)$  (capital × reward)'
    >>> plt.close(ax.figure)
    """
    named = list(sims.items()) if isinstance(sims, Mapping) else [(sim.policy, sim) for sim in sims]
    if not named:
        raise InvalidArgument(f"sims must have at least one simulation, got {sims!r}")
    ax = _axes(ax)
    for i, (label, sim) in enumerate(named):
        summary, colour = sim.summary(confidence), COLOURS[(4, 2, 1, 3, 0, 5)[i % 6]]
        low = np.maximum(summary.low, summary.mean / 3) if log else summary.low  # a log scale has no 0
        ax.fill_between(sim.capital, low, summary.high, color=colour, alpha=0.2, lw=0)
        ax.plot(sim.capital, summary.mean, DASHES[i % 4], color=colour, lw=1.8, label=label)
    first = named[0][1]
    for i, (label, values) in enumerate((bounds or {}).items()):
        ax.plot(
            first.capital, np.asarray(values), DASHES[(i + 2) % 4], color=("0.25", "0.55")[i % 2], lw=1.4, label=label
        )
    if log:
        ax.set_xscale("log")
        ax.set_yscale("log")
    else:
        ax.set_xlim(0, max(float(sim.capital[-1]) for _, sim in named))
        ax.set_ylim(bottom=min(0.0, *(float(sim.regret.mean(axis=0).min()) for _, sim in named)))
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(FuncFormatter(_short))
    ax.set_xlabel(r"capital $\Lambda$  (units of cost)")
    ax.set_ylabel(r"regret $R(\Lambda)$  (capital × reward)")
    if bounds or len(named) > MAX_CURVES_BESIDE_LEGEND:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, frameon=False, fontsize=9)
    else:
        _legend(ax)
    return _tidy(ax)


def plot_ratios(ratios: Mapping[str, ArrayLike], ax: Axes | None = None) -> Axes:
    """Plot the distribution of ratios of one policy's regret to another's.

    Args:
        ratios: a mapping from labels to ratios, above 0, one for each problem.
        ax: where to draw; a new figure by default.

    >>> ax = plot_ratios({"small capital": [0.5, 0.8, 1.2], "large capital": [0.9, 1.1, 1.3]})
    >>> ax.get_xscale()
    'log'
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    for i, (label, values) in enumerate(ratios.items()):
        ordered = np.sort(np.asarray(values, dtype=np.float64))
        share = 100 * np.arange(1, len(ordered) + 1) / len(ordered)
        ax.plot(ordered, share, "os^D"[i % 4], ms=4, color=COLOURS[(4, 2, 1, 3, 0, 5)[i % 6]], label=label)
    ax.axvline(1, color="k", lw=1)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(_short))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_ylim(0, 102)
    ax.set_xlabel("ratio of regrets (left of 1: less)")
    ax.set_ylabel("problems with at most this ratio (%)")
    _legend(ax)
    return _tidy(ax)


def plot_spending(
    results: "Mapping[str, Any] | MFSearchCV", *, unit: str | None = None, ax: Axes | None = None
) -> Axes:
    """Plot what each candidate of a search cost at each fidelity, the best candidate first.

    Beside a bar is the candidate's mean score at its highest fidelity.

    Args:
        results: an :class:`~mfbandit.MFSearchCV` that was fitted, or its ``cv_results_`` if there is one metric.
        unit: the unit of the capital; by default that of the search, or full fits.
        ax: where to draw; a new figure by default.

    >>> results = {"candidate": ["a", "b"], "rank_test_score": [2, 1], "mean_test_score": [0.5, 0.9],
    ...            "fidelity": ["0.25", "1"], "cost_at_0.25": [0.25, 0.5], "cost_at_1": [0.0, 3.0]}
    >>> ax = plot_spending(results)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['b', 'a']
    >>> plt.close(ax.figure)
    """
    metric = "score"
    if not isinstance(results, Mapping):
        search = results
        if not hasattr(search, "cv_results_"):
            raise InvalidArgument(f"results must be a search that was fitted, or its cv_results_, got {search!r}")
        results, metric, unit = search.cv_results_, search.metric_, unit or search.unit
    order = np.argsort(np.asarray(results[f"rank_test_{metric}"]), kind="stable")
    shown, others = order[:MAX_BARS], order[MAX_BARS:]
    names = [name.removeprefix("cost_at_") for name in results if name.startswith("cost_at_")]
    rows = np.arange(len(shown) + bool(len(others)))
    ax = _axes(ax, height=1.1 + 0.24 * len(rows), width=6.4)
    end = np.zeros(len(rows))
    for m, name in enumerate(names):
        cost = np.asarray(results[f"cost_at_{name}"])
        bars = np.append(cost[shown], [cost[others].sum()] if len(others) else [])
        ax.barh(rows, bars, 0.72, end, color=COLOURS[(5, 0, 4, 1, 2, 3)[m % 6]], label=name, lw=0)
        end = end + bars
    for row, k in enumerate(shown):
        text = _score_text(results, k, names[-1], metric)
        ax.annotate(text, (end[row], row), xytext=(4, 0), textcoords="offset points", va="center", fontsize=7.5)
    labels = [str(results["candidate"][k]) for k in shown] + [f"{len(others)} others"] * bool(len(others))
    ax.set_yticks(rows, labels, fontsize=8)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(0, 1.22 * max(float(end.max()), 1e-12))
    ax.set_xlabel(f"capital spent  ({unit or 'full fits'})")
    ax.legend(title="fidelity", loc="lower right", framealpha=0.85, edgecolor="none", fontsize=8, title_fontsize=8)
    return _tidy(ax, grid="x")


def _score_text(results: Mapping[str, Any], k: int, top: str, metric: str) -> str:
    """Format a candidate's mean score, and its fidelity if that is not the highest."""
    score, fidelity = results[f"mean_test_{metric}"][k], results["fidelity"][k]
    if np.isfinite(score):
        return f"{score:.3f}" + ("" if fidelity == top else f" at {fidelity}")
    return "no score"


def _axes(ax: Axes | None, height: float = 3.4, width: float = 5.2) -> Axes:
    return plt.subplots(figsize=(width, height), layout="constrained")[1] if ax is None else ax


def _tidy(ax: Axes, grid: str = "both") -> Axes:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=grid, color="0.9", lw=0.6)  # type: ignore[arg-type]
    ax.set_axisbelow(True)
    return ax


def _legend(ax: Axes, markerscale: float = 1.5) -> None:
    ax.legend(framealpha=0.85, edgecolor="none", fontsize=9, markerscale=markerscale)


def _thinned(arms: IntArray) -> IntArray:
    """Return the arms, or evenly spaced ones if there are too many."""
    step = -(-len(arms) // MAX_DOTS)
    return arms[::step]


def _fidelity_name(m: int, problem: Problem) -> str:
    bias, cost = problem.fidelities.known_biases[m], problem.fidelities.costs[m]
    return f"$m = {m + 1}$\n$\\lambda = {plain(cost, thousands='')},\\ \\zeta = {bias:g}$"


def _threshold_name(m: int, problem: Problem) -> str:
    return f"$2\\gamma_{{{m + 1}}}$" if m < len(problem.fidelities) - 1 else "$0$"


def _short(value: float, _: object) -> str:
    """Format 2,000,000 as 2M."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"
