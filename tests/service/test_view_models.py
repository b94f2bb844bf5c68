"""What the pages show, as numbers and texts, without a browser."""

import json

import httpx
import pytest

from mfbandit import MFUCB, UCB, Bounded, Fidelities, Store, SubGaussian
from mfbandit.service.dashboard import STATIC_FILES, _local
from mfbandit.service.pages import bar
from mfbandit.service.view_models import DRAWING_MARGIN, DRAWING_WIDTH, LEADING_ARMS_SHOWN, experiment_view, list_row
from tests.support.services import served

TWO = Fidelities([1, 10], [0.1, 0], Bounded(0, 1))


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "a.db") as store:
        yield store


@pytest.fixture
def ads(store):
    return store.create("ads", MFUCB(), arms=["a", "b", "c"], fidelities=TWO, capital=1000, lease=60)


def results(experiment, *past):
    experiment.add_results([(arm, m, reward, None) for arm, m, reward, times in past for _ in range(times)])


class TestList:
    def test_of_an_experiment_without_results(self, ads):
        row = list_row(ads)
        assert (row["best"], row["results"], row["share"], row["alarm"]) == (None, 0, 0.0, False)
        assert row["capital_text"] == "0.0% of 1,000 spent, nothing reserved"

    def test_what_is_spent_and_reserved(self, ads):
        results(ads, ("a", 1, 0.9, 10))
        ads.ask()
        row = list_row(ads)
        assert (row["share"], row["reserved_share"], row["best"]) == (0.1, 0.001, "a")
        assert row["capital_text"] == "10.0% of 1,000 spent, 1 reserved"

    def test_unlimited_capital_has_no_share(self, store):
        row = list_row(store.create("free", MFUCB(), arms=2, fidelities=TWO))
        assert (row["share"], row["capital_text"]) == (0.0, "spent of unlimited capital, nothing reserved")

    def test_a_bar_is_never_more_than_full(self, ads):
        results(ads, ("a", 1, 0.9, 50))
        ads.set_capital(500)
        assert list_row(ads)["share"] == 1.0
        assert 'width="100.0"' in bar(1.0, 0.5, "all")


class TestExperiment:
    def test_is_complete_before_the_first_result(self, ads):
        view = experiment_view(ads)
        assert (view["best_interval"], view["sure"], view["axis"]) == ("", "", "none yet")
        assert [arm.text for arm in view["leading"]] == [f"{name}: no result yet" for name in "abc"]
        assert json.loads(view["series"])["spent"] == [[0.0], [0.0]]

    def test_the_best_arm_leads_then_those_that_are_surely_good(self, ads):
        results(ads, ("a", 1, 0.2, 200), ("b", 1, 0.5, 400), ("c", 1, 0.9, 400))
        view = experiment_view(ads)
        assert [(arm.label, arm.best) for arm in view["leading"]] == [("c", True), ("b", False), ("a", False)]

    def test_arms_that_are_retired_are_named_so(self, ads):
        results(ads, ("a", 1, 0.5, 3), ("b", 1, 0.5, 3), ("c", 1, 0.4, 3))
        ads.retire_arm("b")
        view = experiment_view(ads)
        assert [arm.note for arm in view["leading"] if arm.label == "b"] == ["retired"]

    def test_intervals_are_drawn_inside_of_the_picture(self, ads):
        results(ads, ("a", 0, 0.1, 2), ("a", 1, 0.2, 50), ("b", 1, 1.0, 1))
        lines = [line for arm in experiment_view(ads)["leading"] for line in arm.intervals if line]
        assert len(lines) == 3
        for line in lines:
            assert DRAWING_MARGIN <= line.low <= line.mean <= line.high <= DRAWING_WIDTH - DRAWING_MARGIN

    def test_the_chart_ends_at_what_was_spent(self, ads):
        for _ in range(20):
            ads.tell(ads.ask(), 0.5)
        spent = json.loads(experiment_view(ads)["series"])["spent"]
        assert sum(row[-1] for row in spent) == ads.spent

    def test_it_is_the_same_after_the_store_was_opened_again(self, ads, tmp_path):
        for reward in (0.1, 0.9, 0.4, 0.8):
            ads.tell(ads.ask(), reward)
        ads.fail(ads.ask())
        ads.ask(3)
        ads.note("a new poster")
        ads.retire_arm("c")
        ads.set_biases([0.3, 0])
        before = experiment_view(ads)
        with Store(tmp_path / "a.db", read_only=True) as again:
            after = experiment_view(again.open("ads"))
        assert {**after, "now": ""} == {**before, "now": ""}

    def test_the_rest_of_many_arms_is_summed_up(self, store):
        experiment = store.create("many", MFUCB(), arms=100, fidelities=TWO)
        results(experiment, *((k, 0, 0.5, 1) for k in range(30)))
        view = experiment_view(experiment)
        assert (len(view["leading"]), view["more_arms"]) == (LEADING_ARMS_SHOWN, 100 - LEADING_ARMS_SHOWN)
        assert view["more_text"] == "18 results among them, 70 without any"

    def test_the_next_leases_to_end_come_first(self, ads):
        late, soon = ads.ask(lease=1000), ads.ask(lease=10)
        assert [one["label"] for one in experiment_view(ads)["leases"]] == [soon.label, late.label]

    def test_every_event_is_said_in_words(self, ads):
        ads.pause()
        ads.resume()
        ads.set_capital(None)
        ads.add_arm("d")
        ads.retire_arm("c")
        ads.note("hello")
        ads.set_policy(UCB())
        ads.set_biases([0.2, 0])
        said = [one["text"] for one in experiment_view(ads)["events"]][::-1]
        assert said[:6] == [
            "paused",
            "resumed",
            "capital set: unlimited",
            "arm added: d",
            "arm retired: c",
            "note: hello",
        ]
        assert said[6].startswith("policy set: ")
        assert said[7] == "biases set: 0.2, 0"

    def test_failures_and_arms_that_were_set_aside(self, ads):
        for _ in range(3):
            ads.add_arm(f"x{_}")
        for _ in range(12):
            ads.fail(ads.ask())
        said = [one["text"] for one in experiment_view(ads)["events"]]
        assert any(text.startswith("arm set aside after failures: ") for text in said)
        assert experiment_view(ads)["latest"][0]["outcome"] == "failed"
        named = [f"WARNING: {ads.arms[arm]} was set aside after 3 failures in a row" for arm in ads.set_aside]
        assert [text.split(";")[0] for text in experiment_view(ads)["warnings"]] == named

    def test_capital_that_late_results_overspent(self, ads):
        late = ads.ask(20)
        ads.renew_many(late, lease=1e-6)
        ads.expire()
        ads.tell_many([(play, 0.5, 100.0) for play in late])
        assert experiment_view(ads)["warnings"] == [
            "WARNING: spent 2,000 of 1,000: results came after their plays had expired"
        ]

    def test_a_retired_arm_that_came_back(self, ads):
        ads.retire_arm("b")
        ads.restore_arm("b")
        assert experiment_view(ads)["events"][0]["text"] == "retired arm brought back: b"

    def test_a_refuted_bias_is_a_warning_an_event_and_what_it_takes(self, ads):
        ads.set_capital(10_000)
        results(ads, ("b", 0, 0.0, 300), ("b", 1, 1.0, 300))
        view = experiment_view(ads)
        assert view["alarm"]
        assert len(view["warnings"]) == 1
        assert "bias of fidelity 0 refuted by b: it must be at least" in view["events"][0]["text"]
        assert float(view["fidelities"][0]["needed"]) > 0.1
        assert view["doubt"] == "results refute the assumed bias of fidelity 0"
        assert view["best_interval"].endswith("by its bounds at fidelity 1")  # no precision from a conflict

    def test_one_fidelity_has_no_biases_to_audit(self, store):
        experiment = store.create("one", UCB(), arms=2, fidelities=Fidelities([1], concentration=SubGaussian(1)))
        experiment.tell(experiment.ask(), 0.5)
        view = experiment_view(experiment)
        assert (view["audit_note"], view["warnings"]) == ("", [])


class TestAddresses:
    @pytest.mark.parametrize(
        "address", ["//evil", "/\\evil", "https://evil", "evil", "", "/\nevil", "/\u2028", "\\/evil"]
    )
    def test_no_address_elsewhere(self, address):
        assert _local(address) == "/"

    def test_files_that_are_there_and_no_others(self, tmp_path):
        kinds = {"css": "text/css", "js": "text/javascript", "txt": "text/plain"}
        with served(tmp_path / "a.db") as service, httpx.Client(base_url=service.url) as client:
            found = {name: client.get(f"/static/{name}") for name in STATIC_FILES}
            lost = [client.get(f"/static/{name}") for name in ("nothing.js", "..%2fguard.py", "%2e%2e/guard.py")]
        for name, answer in found.items():
            kind = kinds[name.rpartition(".")[2]]
            assert (answer.status_code, answer.headers["content-type"]) == (200, f"{kind}; charset=utf-8")
            assert ("immutable" in answer.headers["cache-control"]) == ("min." in name)
        assert {answer.status_code for answer in lost} == {404}
        sizes = {name: len(answer.content) for name, answer in found.items()}
        assert sum(size for name, size in sizes.items() if name.endswith(".js")) < 100_000  # all that a page can run
        assert sum(sizes.values()) < 120_000
