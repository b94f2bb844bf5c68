"""The reproduction: its claims, its manifest, and that it can be interrupted."""

import html.parser
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from mfbandit import Simulation
from mfbandit.reproduction import reproducer as module
from mfbandit.reproduction.panels import PANELS, Panel, Settings, regret_numbers
from mfbandit.reproduction.report import report
from mfbandit.reproduction.reproducer import load_record, reproduce


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("made")
    reproduce(out, runs=5, seed=3, quick=True, workers=2)
    assert "beyond" not in json.loads((out / "manifest.json").read_text())["panels"]
    reproduce(out, runs=5, seed=3, quick=True, workers=2, only="beyond")
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
    for looks in ("2", "20"):
        rows = [row["at"][looks] for row in numbers["data_sets"]]
        for row in rows:
            assert row["ratio"]["value"] == pytest.approx(row["regret"]["MF-UCB"] / row["regret"]["UCB"])
            # UCB's capital is a whole number of plays: nothing is left over.
            assert row["regret_of_plays"]["UCB"] == pytest.approx(row["regret"]["UCB"], rel=1e-6)
            assert row["regret_of_plays"]["MF-UCB"] < row["regret"]["MF-UCB"]
        ratios = sorted(row["ratio_of_plays"]["value"] for row in rows)
        assert numbers["summary"][looks]["median"] == pytest.approx((ratios[3] + ratios[4]) / 2)
        assert numbers["summary"][looks]["share_better"] == sum(ratio < 1 for ratio in ratios) / 8


def test_growth_is_over_the_last_half():
    """Regret 4, 6, 7, 9 at capitals 1 to 4 in one run, twice that in the other: from 2 on, 3 and 6 are added."""
    regret = np.array([[4.0, 6.0, 7.0, 9.0], [8.0, 12.0, 14.0, 18.0]])
    one = np.zeros((1, 1))
    sim = Simulation(
        "UCB",
        "p",
        "paper",
        (0,),
        (),
        np.zeros(1),
        np.arange(1.0, 5.0),
        regret,
        one,
        np.ones(2, int),
        np.ones(2),
        np.ones(2, int),
    )
    half = replace(sim, policy="MFUCB", regret=regret / 2)
    numbers = regret_numbers({"MF-UCB": half, "UCB": sim})
    assert numbers["policies"]["UCB"]["growth"] == 4.5
    assert numbers["growth_ratio"]["value"] == 0.5
    assert numbers["loses_at"] == []
    assert regret_numbers({"MF-UCB": sim, "UCB": half})["loses_at"] == [1, 2, 3, 4]


def test_pictures_are_there_and_hold_something(made, manifest):
    files = [file for panel in manifest["panels"].values() for file in panel["files"]]
    assert {file.split(".")[0] for file in files} >= {"figure-1-partition", "figure-2-regret-4", "figure-2-plays-ucb"}
    assert all((made / file).stat().st_size > 5000 for file in files)


@pytest.mark.slow
@pytest.mark.no_cover
def test_a_second_run_on_other_cores_gives_the_same_manifest_and_pictures(made, manifest, tmp_path):
    reproduce(tmp_path, runs=5, seed=3, quick=True, workers=1)
    reproduce(tmp_path, runs=5, seed=3, quick=True, workers=1, only="beyond")
    again = json.loads((tmp_path / "manifest.json").read_text())
    assert timeless(again) == timeless(manifest)
    for panel in manifest["panels"].values():
        assert all((tmp_path / file).read_bytes() == (made / file).read_bytes() for file in panel["files"])


def test_finished_panels_are_not_made_again(made, monkeypatch):
    def never(_):
        raise AssertionError("made again")

    monkeypatch.setattr(module, "PANELS", {name: Panel(1, never) for name in PANELS})
    before = (made / "manifest.json").read_text()
    reproduce(made, runs=5, seed=3, quick=True)
    assert (made / "manifest.json").read_text() == before


def test_other_settings_make_them_again(made):
    assert load_record(made, "means", Settings(5, 3, True)) is not None
    assert load_record(made, "means", Settings(6, 3, True)) is None
    assert load_record(made, "means", Settings(5, 4, True)) is None


@pytest.fixture(scope="module")
def one_panel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("partition")
    reproduce(folder, runs=2, only="partition")
    return folder


class TestRecords:
    settings = Settings(2, 0, False)

    @pytest.fixture
    def folder(self, one_panel, tmp_path):
        shutil.copytree(one_panel, tmp_path, dirs_exist_ok=True)
        assert load_record(tmp_path, "partition", self.settings) is not None
        return tmp_path

    @pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"")])
    def test_missing_and_emptied_pictures_are_made_again(self, folder, damage):
        picture = folder / "figure-1-partition.svg"
        before = picture.read_bytes()
        damage(picture)
        assert load_record(folder, "partition", self.settings) is None
        reproduce(folder, runs=2, only="partition")
        assert picture.read_bytes() == before

    @pytest.mark.parametrize("text", ["{", "[1]", "null", '"x"', "{}", "\xff"])
    def test_records_that_are_none(self, folder, text):
        (folder / "panels" / "partition.json").write_text(text)
        assert load_record(folder, "partition", self.settings) is None

    @pytest.mark.parametrize(
        ("key", "value"),
        [("files", None), ("files", ["panels"]), ("numbers", []), ("seconds", "x"), ("settings", {}), ("versions", {})],
    )
    def test_records_with_something_wrong(self, folder, key, value):
        path = folder / "panels" / "partition.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
        assert load_record(folder, "partition", self.settings) is None

    def test_an_interrupted_run_with_other_settings_does_not_pass_for_the_old_one(self, folder, monkeypatch):
        before = (folder / "figure-1-partition.svg").read_bytes()
        writes = module._write

        def interrupted(path, data):
            if path.name == "figure-1-partition.svg":
                raise KeyboardInterrupt
            writes(path, data)

        monkeypatch.setattr(module, "_write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            reproduce(folder, runs=2, seed=7, only="partition")
        monkeypatch.undo()
        assert load_record(folder, "partition", self.settings) is None
        reproduce(folder, runs=2, only="partition")
        assert (folder / "figure-1-partition.svg").read_bytes() == before
        assert not list(folder.rglob("*.part"))

    def test_a_second_run_at_once_is_kept_out(self, folder):
        with module.lock_folder(folder), pytest.raises(ValueError, match="Another run is writing to"):
            reproduce(folder, runs=2, only="means")

    def test_panels_of_other_settings_are_named(self, folder, capsys):
        reproduce(folder, runs=3, only="means")
        assert "left out of the report" in capsys.readouterr().err
        assert list(json.loads((folder / "manifest.json").read_text())["panels"]) == ["means"]

    def test_what_is_taken_over_is_said(self, folder, capsys):
        reproduce(folder, runs=2, only="partition")
        assert "1 of 1 panels kept from an earlier run" in capsys.readouterr().err

    def test_new_code_makes_them_again(self, folder, monkeypatch):
        monkeypatch.setattr(module, "source_digest", lambda: "other")
        assert load_record(folder, "partition", self.settings) is None


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
        assert len(page.links) == 20
        assert all(link.startswith("data:image/svg+xml;base64,") for link in page.links)

    def test_tells_the_story_in_order(self, page):
        headings = ["The setting", "The algorithm", "Figure 1", "Figure 3", "Figure 2: regret", "plays of each arm"]
        headings += ["Table 1", "Where MF-UCB loses", "Real data", "Beyond the paper", "Run it yourself"]
        places = [page.text.index(heading) for heading in headings]
        assert places == sorted(places)

    def test_has_the_measured_numbers(self, page, manifest):
        for number in (1, 2, 3, 4):
            numbers = manifest["panels"][f"problem-{number}"]["numbers"]
            assert f"{numbers['ratio']['value']:.3f} ({numbers['ratio']['low']:.3f} to" in page.text
            assert f"{numbers['growth_ratio']['value']:.3f} (" in page.text
            assert f"{numbers['policies']['UCB']['growth']:,.0f}" in page.text
        assert "mfbandit reproduce --runs 5 --seed 3 --quick" in page.text

    def test_says_where_the_claims_do_not_hold(self, manifest):
        changed = json.loads(json.dumps(manifest))
        numbers = changed["panels"]["problem-2"]["numbers"]
        numbers["loses_at"], numbers["growth_ratio"]["value"] = [100.0, 900.0], 1.25
        blank = {f"{file}": b"" for panel in changed["panels"].values() for file in panel["files"]}
        text = report(changed, blank)
        assert "is <b>not</b> below UCB&rsquo;s at 2 of 80 capitals, from 100 to 900" in text
        assert "grows <b>faster</b> than UCB&rsquo;s, by a factor of 1.25" in text

    def test_words_follow_the_numbers(self, manifest):
        blank = {f"{file}": b"" for panel in manifest["panels"].values() for file in panel["files"]}
        assert "Where MF-UCB loses" in report(manifest, blank)
        changed = json.loads(json.dumps(manifest))
        changed["panels"]["misleading"]["numbers"]["ratio"]["value"] = 0.9
        plays = changed["panels"]["problem-1"]["numbers"]["plays"]
        for more, said in ((True, "as claimed"), (False, "<b>not</b> as claimed")):
            plays["MF-UCB"]["best_twentieth"] = plays["UCB"]["best_twentieth"] + (1 if more else -1)
            text = report(changed, blank)
            assert f": {said}." in text
        assert "Where MF-UCB loses" not in text
        numbers = changed["panels"]["table-1"]["numbers"]
        assert f"{numbers['measured'][0][1]:,.0f} of {numbers['bounds'][0][1]:,.0f}" in text
        median = manifest["panels"]["learning-curves"]["numbers"]["summary"]["20"]["median"]
        assert f"median ratio is {median:.2f}" in text

    def test_of_nothing(self):
        empty = {"settings": {"runs": 2, "seed": 0, "quick": False}, "versions": {}, "seconds": 0, "panels": {}}
        assert "Parts of the paper, reproduced." in report(empty, {})
