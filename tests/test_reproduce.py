"""The reproduction: its claims, its manifest, and that it can be interrupted."""

import html.parser
import json

import pytest

from mfbandit import reproduce as module
from mfbandit.report import report
from mfbandit.reproduce import PANELS, Settings, finished, reproduce


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("made")
    reproduce(out, runs=5, seed=3, quick=True, workers=2)
    return out


@pytest.fixture(scope="module")
def manifest(made):
    return json.loads((made / "manifest.json").read_text())


def timeless(manifest):
    """Without times and versions."""
    kept = {key: value for key, value in manifest.items() if key not in ("seconds", "versions")}
    kept["panels"] = {
        name: {key: value for key, value in panel.items() if key != "seconds"}
        for name, panel in manifest["panels"].items()
    }
    return json.dumps(kept)


def test_every_panel_is_there(manifest):
    assert list(manifest["panels"]) == list(PANELS)


def test_mf_ucb_beats_ucb_on_the_papers_problems(manifest):
    for number in (1, 2, 3, 4):
        numbers = manifest["panels"][f"problem-{number}"]["numbers"]
        assert numbers["ratio"]["high"] < 1
        ours, ucb = (numbers["policies"][name]["mean"][-1] for name in ("MF-UCB", "UCB"))
        assert ours < ucb
        assert numbers["policies"]["UCB"]["capital"][-1] >= 40 * numbers["arms"] * numbers["costs"][-1]


def test_mf_ucb_loses_on_the_misleading_problem(manifest):
    assert manifest["panels"]["misleading"]["numbers"]["ratio"]["low"] > 1


def test_measured_plays_keep_to_table_1(manifest):
    numbers = manifest["panels"]["table-1"]["numbers"]
    for row, bounds in zip(numbers["measured"], numbers["bounds"], strict=True):
        assert all(plays <= bound for plays, bound in zip(row, bounds, strict=True))
    assert numbers["regret"] < numbers["regret_bound"]


def test_learning_curves_have_ratios_at_both_capitals(manifest):
    numbers = manifest["panels"]["learning-curves"]["numbers"]
    assert len(numbers["data_sets"]) == 8
    assert all(set(row["ratio"]) == {"2.0", "20.0"} for row in numbers["data_sets"])


def test_pictures_are_there_and_hold_something(made, manifest):
    files = [file for panel in manifest["panels"].values() for file in panel["files"]]
    assert {file.split(".")[0] for file in files} >= {"figure-1-partition", "figure-2-regret-4", "figure-2-plays-ucb"}
    assert all((made / file).stat().st_size > 5000 for file in files)


def test_a_second_run_on_other_cores_gives_the_same_manifest(manifest, tmp_path):
    for name in ("problem-3", "misleading"):
        reproduce(tmp_path, runs=5, seed=3, quick=True, workers=1, only=name)
    again = json.loads((tmp_path / "manifest.json").read_text())
    first = {**manifest, "panels": {name: manifest["panels"][name] for name in ("problem-3", "misleading")}}
    assert timeless(again) == timeless(first)


def test_finished_panels_are_not_made_again(made, monkeypatch):
    def never(_):
        raise AssertionError("made again")

    monkeypatch.setattr(module, "PANELS", {name: module.Panel(1, never) for name in PANELS})
    before = (made / "manifest.json").read_text()
    reproduce(made, runs=5, seed=3, quick=True)
    assert (made / "manifest.json").read_text() == before


def test_other_settings_make_them_again(made):
    assert finished(made, "means", Settings(5, 3, True)) is not None
    assert finished(made, "means", Settings(6, 3, True)) is None
    assert finished(made, "means", Settings(5, 4, True)) is None


def test_damaged_or_missing_panels_are_made_again(tmp_path):
    settings = Settings(2, 0, False)
    reproduce(tmp_path, runs=2, only="partition")
    picture = tmp_path / "figure-1-partition.png"
    picture.unlink()
    assert finished(tmp_path, "partition", settings) is None
    reproduce(tmp_path, runs=2, only="partition")
    assert picture.exists()
    (tmp_path / "panels" / "partition.json").write_text("{")
    assert finished(tmp_path, "partition", settings) is None


class Reader(html.parser.HTMLParser):
    """Checks that tags are closed in order, and collects links and text."""

    def __init__(self):
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def page(made):
    reader = Reader()
    reader.feed((made / "report.html").read_text())
    return reader


class TestPage:
    def test_is_well_formed_and_self_contained(self, page):
        assert page.open == []
        assert len(page.links) == 14
        assert all(link.startswith("data:image/svg+xml;base64,") for link in page.links)

    def test_tells_the_story_in_order(self, page):
        headings = ["The setting", "The algorithm", "Figure 1", "Figure 3", "Figure 2: regret", "who is played where"]
        headings += ["Table 1", "Where MF-UCB loses", "Real data", "Do it again"]
        places = [page.text.index(heading) for heading in headings]
        assert places == sorted(places)

    def test_has_the_measured_numbers(self, page, manifest):
        for number in (1, 2, 3, 4):
            assert f"{manifest['panels'][f'problem-{number}']['numbers']['ratio']['value']:.3f}" in page.text
        assert "mfbandit reproduce --runs 5 --seed 3 --quick" in page.text

    def test_says_where_the_claims_do_not_hold(self, manifest):
        changed = json.loads(json.dumps(manifest))
        numbers = changed["panels"]["problem-2"]["numbers"]
        numbers["loses_at"], numbers["growth_ratio"] = [100.0, 900.0], 1.25
        blank = {f"{file}": b"" for panel in changed["panels"].values() for file in panel["files"]}
        text = report(changed, blank)
        assert "is <b>not</b> below UCB&rsquo;s at 2 of 80 capitals, from 100 to 900" in text
        assert "grows <b>faster</b> than UCB&rsquo;s, by a factor of 1.25" in text

    def test_of_nothing(self):
        empty = {"settings": {"runs": 2, "seed": 0, "quick": False}, "versions": {}, "seconds": 0, "panels": {}}
        assert "Parts of the paper, measured anew." in report(empty, {})
