"""The HTML report of a reproduction: one self-contained page, made from the manifest alone."""

import base64
from collections.abc import Callable, Iterable, Mapping
from html import escape
from typing import Any

from mfbandit._internal.typing import JSONObject

NO_DECIMALS_FROM = 100  # numbers from here on are shown without decimals

STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 62rem; font: 16px/1.55 system-ui, sans-serif; color: #1a1a1a; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.3rem; margin: 2.6rem 0 .5rem; padding-top: .6rem; border-top: 1px solid #ddd; }
p, li { max-width: 46rem; }
.lead { font-size: 1.15rem; color: #333; }
.note { color: #555; font-size: .93rem; }
.miss { background: #fff4e5; border-left: 4px solid #d55e00; padding: .5rem .8rem; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem; }
figure { margin: 1rem 0; }
figure img { width: 100%; max-width: 36rem; height: auto; display: block; }
sub, sup { line-height: 0; font-size: .72em; }
.wide { overflow-x: auto; border-right: 1px solid #eee; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .93rem; margin: .6rem 0; }
th, td { padding: .25rem .55rem; text-align: right; border-bottom: 1px solid #e5e5e5; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 2px solid #bbb; }
.words th, .words td { text-align: left; white-space: normal; }
pre { background: #f6f6f6; padding: .7rem; overflow-x: auto; }
code { font-family: ui-monospace, monospace; font-size: .92em; }
details summary { cursor: pointer; }
"""


def report(manifest: Mapping[str, Any], pictures: Mapping[str, bytes]) -> str:
    """Make the page.

    Args:
        manifest: the numbers of ``reproduce``.
        pictures: the content of the SVG files that the manifest names.

    >>> page = report({"settings": {"runs": 2, "seed": 0, "quick": True}, "versions": {}, "seconds": 0, "panels": {}}, {})
    >>> page.startswith("<!doctype html>")
    True
    """
    page = Page(manifest, pictures)
    parts = [_opening(page), SETTING, ALGORITHM, *_sections(page), _again(page)]
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>The Multi-fidelity Multi-armed Bandit, reproduced</title><style>{STYLE}</style></head><body>"
    )
    return "\n".join([head, *parts, "</body></html>\n"])


class Page:
    """The data of the page: numbers of the panels, settings, and pictures to embed."""

    def __init__(self, manifest: Mapping[str, Any], pictures: Mapping[str, bytes]) -> None:
        self.manifest, self._pictures = manifest, pictures
        self.panels: dict[str, JSONObject] = {name: panel["numbers"] for name, panel in manifest["panels"].items()}

    @property
    def problems(self) -> dict[int, JSONObject]:
        """The numbers of those of the paper's problems that were run."""
        return {n: self.panels[f"problem-{n}"] for n in (1, 2, 3, 4) if f"problem-{n}" in self.panels}

    def figure(self, stem: str, alt: str) -> str:
        """Embed a picture in the page."""
        data = base64.b64encode(self._pictures[f"{stem}.svg"]).decode()
        return f'<figure><img alt="{escape(alt)}" src="data:image/svg+xml;base64,{data}"></figure>'


def _sections(page: Page) -> list[str]:
    makers: list[tuple[str, Callable[[Page], str]]] = [
        ("partition", _partition),
        ("means", _means),
        ("problem-", _experiments),
        ("problem-1", _plays),
        ("table-1", _table_1),
        ("misleading", _misleading),
        ("learning-curves", _curves),
        ("beyond", _beyond),
    ]
    return [make(page) for start, make in makers if any(name.startswith(start) for name in page.panels)]


SETTING = """<h2>The setting</h2>
<p>There are <i>K</i> options, called arms. Each can be played at <i>M</i> fidelities, from cheap and biased to expensive and unbiased. An ad is shown for a minute
or for an hour; a model is trained on a sample or on all data. A play of arm <i>k</i> at fidelity <i>m</i> costs &lambda;<sub>m</sub> and gives a noisy reward
with mean &mu;<sup>(m)</sup><sub>k</sub>. That mean lies within &zeta;<sub>m</sub> of the arm&rsquo;s true mean &mu;<sup>(M)</sup><sub>k</sub>. All plays
together may cost a capital &Lambda;. A play earns its arm&rsquo;s true mean times its cost. Regret is what the capital would have earned on the best arm, with mean &mu;*,
minus what it earned.</p>"""

ALGORITHM = """<h2>The algorithm</h2>
<p>UCB plays the arm with the largest upper confidence bound, always at the highest fidelity. MF-UCB has an upper bound from every fidelity, mean
plus width plus &zeta;<sub>m</sub>, and takes the smallest of them for each arm. It plays the arm with the largest of these, at the lowest fidelity <i>m</i> whose width is at
least &gamma;<sub>m</sub>: below that, a fidelity is no longer informative, and the next one is used. Here both use &rho; = 2, as in the paper.</p>"""


def _opening(page: Page) -> str:
    ratios = [f"{p['ratio']['value']:.2f}" for p in page.problems.values()]
    which = (
        f"the paper&rsquo;s {_count(len(ratios), 'problem')}"
        if len(ratios) > 1
        else "one of the paper&rsquo;s problems"
    )
    lead = (
        f"On {which}, MF-UCB has {_listed(ratios)} of UCB&rsquo;s regret."
        if ratios
        else "Parts of the paper, reproduced."
    )
    runs = page.manifest["settings"]["runs"]
    return (
        "<h1>The Multi-fidelity Multi-armed Bandit, reproduced</h1>"
        '<p class="note">Kandasamy, Dasarathy, Schneider, P&oacute;czos, NIPS 2016; simulations by mfbandit, '
        f"{runs} runs of each policy on each problem; intervals are 95 % over runs.</p>"
        f'<p class="lead">{lead}</p>'
    )


def _partition(page: Page) -> str:
    p = page.panels["partition"]
    classes = _listed([f"{size:,}" for size in p["classes"]])
    return (
        "<h2>Figure 1: which fidelity settles which arm</h2>"
        "<p>A cheap fidelity settles arms that are far below the best one. The paper&rsquo;s "
        f"problem {p['problem']} has {p['arms']:,} arms and {len(p['classes'])} fidelities; "
        f"{classes} arms are in the classes of fidelities 1 to {len(p['classes'])}. "
        "Each row shows the arms that no cheaper fidelity settles.</p>"
        + page.figure("figure-1-partition", "Arms by the fidelity that settles them")
    )


def _means(page: Page) -> str:
    return (
        "<h2>Figure 3: the problems</h2><p>Every arm&rsquo;s mean at every fidelity. The black line is the highest fidelity; means at low fidelities lie within "
        "&plusmn;&zeta;<sub>m</sub> of it. On the Gaussian problems, as in the paper, the best arm&rsquo;s low-fidelity means are below another arm&rsquo;s where &zeta;<sub>m</sub> allows it.</p>"
        + _grid(
            page.figure(f"figure-3-means-{n}", f"Means of the arms of problem {n} at every fidelity")
            for n in (1, 2, 3, 4)
        )
    )


def _experiments(page: Page) -> str:
    rows = [_experiment_row(number, p) for number, p in page.problems.items()]
    head = ["problem", "capital", "regret of UCB", "regret of MF-UCB", "ratio"]
    growths = [_growth_row(number, p) for number, p in page.problems.items()]
    figures = (
        page.figure(f"figure-2-regret-{n}", f"Regret of UCB and MF-UCB against capital on problem {n}")
        for n in page.problems
    )
    return (
        "<h2>Figure 2: regret against capital</h2>"
        "<p><b>The paper claims</b> that MF-UCB outperforms UCB on all these problems, and that its regret grows more slowly.</p>"
        f"<p><b>Measured</b> at a capital of {next(iter(page.problems.values()))['looks']} K&lambda;<sub>M</sub>; regret is in units of capital times reward:</p>"
        + _table(head, rows)
        + "<p>Growth of the regret over the last half of the capital:</p>"
        + _table(["problem", "growth of UCB", "growth of MF-UCB", "ratio"], growths)
        + _verdicts(page)
        + _grid(figures)
    )


def _experiment_row(number: int, p: JSONObject) -> list[str]:
    regrets = [
        f"{p['policies'][name]['mean'][-1]:,.0f} &plusmn; {p['policies'][name]['half_width']:,.0f}"
        for name in ("UCB", "MF-UCB")
    ]
    return [f"{number}: {p['rewards']}, {p['arms']:,} arms", f"{p['capital']:,.0f}", *regrets, _ratio(p["ratio"])]


def _growth_row(number: int, p: JSONObject) -> list[str]:
    growths = [f"{p['policies'][name]['growth']:,.0f}" for name in ("UCB", "MF-UCB")]
    return [str(number), *growths, _ratio(p["growth_ratio"])]


def _give_or_take(interval: JSONObject) -> str:
    return f"{interval['value']:.2f} &plusmn; {(interval['high'] - interval['low']) / 2:.2f}"


def _ratio(interval: JSONObject) -> str:
    return f"{interval['value']:.3f} ({interval['low']:.3f} to {interval['high']:.3f})"


def _verdicts(page: Page) -> str:
    """List where the paper's two claims do not hold."""
    says = []
    for number, p in page.problems.items():
        capital = p["policies"]["UCB"]["capital"]
        if p["loses_at"]:
            says.append(
                f"Problem {number}: MF-UCB&rsquo;s regret is <b>not</b> below UCB&rsquo;s at {len(p['loses_at'])} of {len(capital)} capitals, from "
                f"{p['loses_at'][0]:,.0f} to {p['loses_at'][-1]:,.0f}."
            )
        if p["growth_ratio"]["value"] >= 1:
            says.append(
                f"Problem {number}: over the last half of this capital MF-UCB&rsquo;s regret grows <b>faster</b> than UCB&rsquo;s, by a factor of "
                f"{p['growth_ratio']['value']:.2f}."
            )
    if not says:
        return "<p>MF-UCB&rsquo;s mean regret is below UCB&rsquo;s at every capital measured, and grows less over the last half.</p>"
    return (
        '<div class="miss"><p>Where the claims do not hold:</p><ul>'
        + "".join(f"<li>{s}</li>" for s in says)
        + "</ul></div>"
    )


def _plays(page: Page) -> str:
    p = page.panels["problem-1"]["plays"]
    ours, ucb = p["MF-UCB"], p["UCB"]
    more = ours["best_twentieth"] > ucb["best_twentieth"]
    return (
        "<h2>Figure 2, continued: plays of each arm at each fidelity</h2>"
        "<p><b>The paper claims</b> that MF-UCB plays very suboptimal arms at low fidelities only, and can therefore afford more plays at the highest fidelity "
        "of arms close to the best.</p>"
        f"<p><b>Measured</b> on problem 1: the worse half of the arms got {ours['worse_half']:,.0f} plays at the highest fidelity from MF-UCB and "
        f"{ucb['worse_half']:,.0f} from UCB; the best twentieth got {ours['best_twentieth']:,.0f} from MF-UCB and {ucb['best_twentieth']:,.0f} from UCB: "
        f"{'as claimed' if more else '<b>not</b> as claimed'}.</p>"
        + _grid(
            page.figure(f"figure-2-plays-{name}", f"Plays of {name.upper()} on problem 1, by arm and fidelity")
            for name in ("mf-ucb", "ucb")
        )
    )


def _table_1(page: Page) -> str:
    p = page.panels["table-1"]
    fidelities = len(p["measured"])
    names = [f"class {c + 1}" for c in range(fidelities)] + ["optimal"]
    head = ["", *(f"{name} ({size:,} arm{'s' * (size != 1)})" for name, size in zip(names, p["arms"], strict=True))]
    rows = [
        [
            f"fidelity {m + 1}",
            *(f"{_number(a)} of {_number(b)}" for a, b in zip(p["measured"][m], p["bounds"][m], strict=True)),
        ]
        for m in range(fidelities)
    ]
    return (
        "<h2>Table 1: measured plays and their bounds</h2>"
        f"<p>The table shows mean plays of an arm of each class at each fidelity on problem 1 after {p['plays']:,} plays, and Lemma 8&rsquo;s bound on them. The lemmas need "
        f"&rho; above 2 and 4, so this run has &rho; = {p['rho']:g} ({p['runs']} runs). Its regret is {p['regret']:,.0f}; Lemma 10 says at most "
        f"{p['regret_bound']:,.0f}.</p>" + _table(head, rows)
    )


def _misleading(page: Page) -> str:
    p = page.panels["misleading"]
    ratio = p["ratio"]
    lost = ratio["value"] > 1
    return (
        f"<h2>{'Where MF-UCB loses' if lost else 'A misleading problem'}</h2>"
        f"<p>Low fidelities need not help. Here every low fidelity ranks the {p['arms']} arms in exactly the wrong order, within its bound "
        f"&zeta;<sub>m</sub>. MF-UCB pays for its plays there. At a capital of {p['looks']} K&lambda;<sub>M</sub>, {p['capital']:,.0f}, its regret is "
        f"{ratio['value']:.2f} times UCB&rsquo;s ({ratio['low']:.2f} to {ratio['high']:.2f}).</p>"
        + _grid(
            [
                page.figure("misleading-means", "Means of the misleading problem"),
                page.figure("misleading-regret", "Regret of UCB and MF-UCB on the misleading problem"),
            ]
        )
    )


def _curves(page: Page) -> str:
    p = page.panels["learning-curves"]
    looks = list(p["summary"])
    says = "; ".join(
        f"at {k} K&lambda;<sub>M</sub> the median ratio is {s['median']:.2f}, and it is below 1 on {100 * s['share_better']:.0f} % of them"
        for k, s in p["summary"].items()
    )
    with_rest = _listed([f"{s['median_with_rest']:.2f}" for s in p["summary"].values()])
    head = ["data set", "learners", "costs (s)", *(f"ratio at {k} K&lambda;" for k in looks)]
    rows = [
        [
            escape(row["name"]),
            str(row["arms"]),
            ", ".join(f"{cost:.3g}" for cost in row["costs"]),
            *(_ratio(row["at"][k]["ratio_of_plays"]) for k in looks),
        ]
        for row in p["data_sets"]
    ]
    return (
        "<h2>Real data: choosing among scikit-learn learners</h2>"
        "<p>Recorded learning curves of up to 20 learners on "
        f"{_count(len(rows), 'OpenML data set')}: fidelities are training-set sizes (about N/64, N/16, N/4, N), costs are measured training times, rewards are "
        "recorded test accuracies. Both policies know the bias bounds &zeta; and the noise of <b>an oracle</b>, computed from the same table. A real user has "
        "no such oracle.</p>"
        f"<p>Ratio of the regret of MF-UCB&rsquo;s plays to that of UCB&rsquo;s: {says}. Where a learner&rsquo;s curve is steep, a true &zeta; is wide, and low fidelities "
        "exclude few learners. These ratios leave out capital that is too little for the next play. UCB has none left, as these capitals are whole numbers of its plays. "
        f"With that capital counted, as in eq. 1, the medians are {with_rest}.</p>"
        + page.figure("learning-curves", "Ratio of MF-UCB's regret to UCB's on each data set")
        + f"<details><summary>All {len(rows)} data sets</summary>{_table(head, rows)}</details>"
        '<p class="note">Data: LCDB 1.0 (Mohr, Viering, Loog, van Rijn, 2022), MIT licence.</p>'
    )


ADVICE = [
    ("&zeta; is known; guarantees and worst cases matter", "MF-UCB at &rho; = 2 (the theorems need more than 4)"),
    ("&zeta; is known, with a capital of 10 K&lambda;<sub>M</sub> or more", "MFAda"),
    (
        "&zeta; is known, less capital than that",
        "MF-UCB at &rho; = &frac14; if you can accept its risk; at &rho; = 2 if costs are 1 : 1000",
    ),
    ("&zeta; is not known, and there are many similar arms", "MFBayes"),
    ("the same, but low fidelities may be useless", "MFBayes with a safeguard, or UCB"),
]


def _beyond(page: Page) -> str:
    p = page.panels["beyond"]
    first = next(iter(p["problems"].values()))
    head = [
        "policy",
        *(f"{name.removeprefix('problem ')}, {t['looks']} K&lambda;" for name, t in p["problems"].items()),
    ]
    rows = [[label, *(_give_or_take(t["ratio"][label]) for t in p["problems"].values())] for label in first["ratio"]]
    curves = p["curves"]
    curve_head = ["policy", *(f"{what} at {k} K&lambda;" for k in curves["at"] for what in ("median", "worst"))]
    labels = list(next(iter(curves["at"].values())))
    curve_rows = [
        [label, *(cell for at in curves["at"].values() for cell in _median_and_worst(at[label]))] for label in labels
    ]
    return (
        "<h2>Beyond the paper</h2>"
        "<p>This package has two policies that are not in the paper; they have no proofs. <b>MFAda</b> explores an arm less the more was spent on it. It chooses "
        "the fidelity with the most information per cost on whether the arm could beat the leader. <b>MFBayes</b> knows neither &zeta; nor the noise. It "
        "models how means change from fidelity to fidelity, the same for all arms. It plays where a play reduces the variance of an arm&rsquo;s true mean most per cost. Its safeguard gives 5 % of the "
        "capital to UCB. A smaller &rho; alone also helps MF-UCB on most problems, but gives up its guarantees.</p>"
        f"<p>Ratio of regret to that of MF-UCB at &rho; = 2, {first['runs']} paired runs, on problems 1 to 4, the misleading problem and the gap problem:</p>"
        + _table(head, rows)
        + _grid(
            page.figure(f"beyond-{name.replace(' ', '-')}", f"Regret of all policies against capital: {name}")
            for name in p["problems"]
        )
        + f"<p>Ratio of the regret of plays to that of UCB at &rho; = 1 on {_count(curves['data_sets'], 'data set')} of learning curves, {curves['runs']} runs each. MF-UCB and MFAda know an oracle&rsquo;s "
        "&zeta; and noise, UCB the noise, MFBayes neither. The defaults of MFBayes were chosen on data sets of this collection:</p>"
        + _table(curve_head, curve_rows)
        + "<p>Which policy to choose:</p>"
        + f'<div class="words">{_table(["when", "policy"], [list(row) for row in ADVICE])}</div>'
    )


def _median_and_worst(row: JSONObject) -> list[str]:
    return [f"{row['median']:.2f} ({row['low']:.2f} to {row['high']:.2f})", f"{row['worst']:.2f}"]


def _again(page: Page) -> str:
    settings, versions = page.manifest["settings"], page.manifest["versions"]
    quick = " --quick" if settings["quick"] else ""
    return (
        "<h2>Run it yourself</h2>"
        f"<pre><code>mfbandit reproduce --runs {settings['runs']} --seed {settings['seed']}{quick}</code></pre>"
        f"<p>This command computes these numbers, and panels that are missing here, on any number of cores. <code>manifest.json</code> beside this page has all numbers. It took "
        f"{page.manifest['seconds']:.0f} s with {escape(', '.join(f'{name} {number}' for name, number in versions.items()))}.</p>"
        '<p class="note">The paper does not give the capitals or the number of runs of its figures; these are ours. Its appendix has two slips: it writes M for K, and gives the Bernoulli '
        "problems a Gaussian deviation.</p>"
    )


def _grid(figures: Iterable[str]) -> str:
    return f'<div class="grid">{"".join(figures)}</div>'


def _table(head: list[str], rows: list[list[str]]) -> str:
    top = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _number(value: float | None) -> str:
    if value is None:
        return "&ndash;"
    return f"{value:,.0f}" if value >= NO_DECIMALS_FROM or value == 0 else f"{value:.1f}"


def _count(number: int, what: str) -> str:
    words = {1: "one", 2: "two", 3: "three", 4: "four"}
    return f"{words.get(number, f'{number:,}')} {what}{'s' * (number != 1)}"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
