"""How sure an experiment is, as its page shows it: what is said, and how rarely it is computed."""

import re
import threading
from types import SimpleNamespace

import pytest

from mfbandit import MFUCB, UCB, Bounded, Fidelities, MFBayes, Store, Sure
from mfbandit.experiment import ConfidenceTrend, Findings, TrendPoint
from mfbandit.service import certainty as module
from mfbandit.service.certainty import UNKNOWN, CertaintyWatch
from mfbandit.service.certainty_view import BOTTOM, LEFT, RIGHT, RIVALS_SHOWN, TOP, certainty_view, ticks
from mfbandit.service.view_models import experiment_view

ONE = Fidelities([1], concentration=Bounded())
PATIENT = 60.0  # seconds, however busy the machine is


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "a.db") as store:
        yield store


@pytest.fixture
def ads(store):
    return store.create("ads", UCB(), arms=["a", "b", "c"], fidelities=ONE)


@pytest.fixture
def watch():
    return CertaintyWatch(patience=PATIENT)


@pytest.fixture
def unlimited(monkeypatch):
    """All points of a trend at once, on any machine."""
    monkeypatch.setattr(module, "CREDIT_SECONDS", PATIENT)


def results(experiment, *past):
    experiment.add_results([(arm, 0, reward, None) for arm, reward, times in past for _ in range(times)])


class TestWatch:
    def test_nothing_is_known_before_any_result(self, ads, watch):
        assert watch.of(ads) == UNKNOWN

    def test_it_says_what_the_experiment_says(self, ads, watch):
        results(ads, ("a", 0.2, 30), ("b", 0.5, 30), ("c", 0.6, 30))
        assert watch.of(ads).found == ads.confidence()

    @pytest.mark.usefixtures("unlimited")
    def test_the_trend_ends_with_what_is_said_now(self, ads):
        results(ads, ("a", 0.0, 30), ("b", 0.0, 30), ("c", 1.0, 30))
        trend, found = CertaintyWatch(patience=PATIENT).of(ads).trend, ads.confidence()
        assert trend[-1] == TrendPoint(ads.spent, found.level, found.could_lose, found.best)
        assert 9 < len(trend) <= 21
        assert [point.spent for point in trend] == sorted({point.spent for point in trend})

    @pytest.mark.usefixtures("unlimited")
    def test_it_is_the_same_after_a_restart(self, ads, tmp_path):
        results(ads, ("a", 0.2, 30), ("b", 0.5, 30), ("c", 0.9, 30))
        ads.retire_arm("a")
        results(ads, ("b", 0.5, 9))
        before = CertaintyWatch(patience=PATIENT).of(ads)
        with Store(tmp_path / "a.db", read_only=True) as again:
            assert CertaintyWatch(patience=PATIENT).of(again.open("ads")) == before

    def test_it_is_computed_once_while_nothing_happens(self, ads, watch, monkeypatch):
        results(ads, ("a", 0.2, 3), ("b", 0.5, 3))
        known = watch.of(ads)
        monkeypatch.setattr(Findings, "confidence", lambda *_: pytest.fail("it was computed again"))
        assert watch.of(ads) is known

    def test_it_waits_until_the_time_for_it_is_saved_up(self, ads, watch, monkeypatch):
        monkeypatch.setattr(module, "CPU_SHARE", 0.0)
        results(ads, ("a", 0.2, 3), ("b", 0.5, 3))
        known = watch.of(ads)
        watch._credit = -1.0
        results(ads, ("c", 0.9, 9))
        assert watch.of(ads) is known
        monkeypatch.setattr(module, "CPU_SHARE", 1e9)
        assert watch.of(ads).found.label == "c"

    @pytest.mark.parametrize(
        ("passed", "busy", "others", "saved"),
        [
            (1.0, 1.0, 0.0, module.CPU_SHARE),
            (1.0, 1.7, 0.0, module.CPU_SHARE),  # threads that write to disk are beside those that run Python
            (1.0, 0.2, 0.0, module.CPU_SHARE + 0.8 * module.IDLE_SHARE),
            (1.0, 0.2, 1.0, module.CPU_SHARE),  # it waits for a core
            (3600.0, 0.0, 0.0, module.LOOK_SECONDS * (module.CPU_SHARE + module.IDLE_SHARE)),  # nobody looked
        ],
    )
    def test_more_is_saved_up_where_there_is_nothing_to_do(self, ads, monkeypatch, passed, busy, others, saved):
        monkeypatch.setattr(module, "machine_idle", lambda: 1.0 - others)
        now, used = 1000.0, 50.0
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now, process_time=lambda: used))
        watch = CertaintyWatch(patience=PATIENT)
        watch._credit = -1.0
        now, used = now + passed, used + busy
        watch.at_once(ads)
        assert watch._credit == pytest.approx(-1.0 + saved)

    def test_a_page_does_not_wait_for_long_work(self, ads, monkeypatch):
        results(ads, ("a", 0.2, 3))
        began, go_on = threading.Event(), threading.Event()
        right = Findings.confidence

        def slow(self, level):
            began.set()
            go_on.wait(PATIENT)
            return right(self, level)

        monkeypatch.setattr(Findings, "confidence", slow)
        watch = CertaintyWatch(patience=0.0)
        assert watch.of(ads) == watch.of(ads) == UNKNOWN  # and computes it once
        assert began.wait(PATIENT)
        go_on.set()
        watch._patience = PATIENT
        assert watch.of(ads).found is not None

    def test_the_answer_does_not_wait_for_charts(self, ads, monkeypatch):
        results(ads, ("a", 0.2, 3), ("b", 0.5, 3))
        began, go_on = threading.Event(), threading.Event()
        right = ConfidenceTrend.add

        def slow(self, *point):
            began.set()
            go_on.wait(PATIENT)
            right(self, *point)

        monkeypatch.setattr(ConfidenceTrend, "add", slow)
        watch = CertaintyWatch(patience=0.0)
        watch.of(ads)
        assert began.wait(PATIENT)
        known = watch.of(ads)
        assert known.found == ads.confidence()
        assert (known.trend, known.whole) == ((), False)
        go_on.set()
        watch._patience = PATIENT
        assert watch.of(ads).trend

    @pytest.mark.parametrize("read", ["id", "events"])
    def test_nobody_waits_for_an_experiment_while_those_who_have_it_wait(self, ads, watch, monkeypatch, read):
        right = getattr(type(ads), read).fget

        def checked(self):
            assert not watch._lock.locked()
            return right(self)

        monkeypatch.setattr(type(ads), read, property(checked))
        watch._credit = -1.0  # nothing is computed beside it
        watch.at_once(ads)

    def test_a_bug_is_logged_and_the_page_goes_on(self, ads, watch, monkeypatch, caplog):
        results(ads, ("a", 0.2, 3))
        monkeypatch.setattr(Findings, "confidence", lambda *_: 1 / 0)
        assert watch.of(ads) == UNKNOWN
        assert "how sure ads is" in caplog.text

    def test_few_experiments_are_kept(self, store, watch, monkeypatch):
        monkeypatch.setattr(module, "EXPERIMENTS_KEPT", 2)
        for name in "abc":
            watch.of(store.create(name, UCB(), arms=2, fidelities=ONE))
        assert len(watch._watched) == 2


class TestView:
    def test_rivals_by_how_much_they_could_be_ahead(self, ads, watch):
        results(ads, ("a", 0.5, 30), ("b", 0.55, 30), ("c", 0.6, 30))
        certainty = watch.of(ads)
        view = certainty_view(certainty, ads.arms)
        assert [one.label for one in view["rivals"]] == ["b", "a"]
        assert (view["rivals"][0].share, view["more_rivals"]) == (1.0, 0)
        assert 0 < view["rivals"][1].share < 1
        assert float(view["rivals"][1].ahead) < float(view["rivals"][0].ahead)
        assert certainty.found.sentence.endswith(f"2 of 3 may still be better, by at most {view['rivals'][0].ahead}.")

    def test_many_rivals_are_cut_off(self, store, watch):
        experiment = store.create("many", UCB(), arms=40, fidelities=ONE)
        results(experiment, (7, 0.5, 1))
        view = certainty_view(watch.of(experiment), experiment.arms)
        assert (len(view["rivals"]), view["more_rivals"]) == (RIVALS_SHOWN, 39 - RIVALS_SHOWN)

    def test_without_known_noise_it_says_why_and_draws_nothing(self, store, watch):
        experiment = store.create("noise", MFBayes(), arms=2, fidelities=Fidelities([1]))
        results(experiment, (0, 0.5, 3), (1, 0.25, 3))
        certainty = watch.of(experiment)
        view = certainty_view(certainty, experiment.arms)
        assert certainty.found.kind != "valid"
        assert certainty.found.why in experiment_view(experiment, certainty)["sure"]
        assert view["charts"] == []

    @pytest.mark.usefixtures("unlimited")
    def test_lines_are_drawn_inside_of_their_charts(self, store):
        experiment = store.create("two", MFUCB(), arms=3, fidelities=Fidelities([1, 9], [0.1, 0], Bounded()))
        results(experiment, *((k, 0.1 + 0.4 * k, 60) for k in range(3)))
        charts = certainty_view(CertaintyWatch(patience=PATIENT).of(experiment), experiment.arms)["charts"]
        assert [chart.title for chart in charts] == [
            "Confidence that the leader is the best, %",
            "Possible loss at 95 %",
        ]
        for chart in charts:
            points = [tuple(map(float, pair)) for pair in re.findall(r"[ML](\S+) (\S+)", chart.path)]
            assert len(points) > 5
            assert all(LEFT <= x <= RIGHT and TOP <= y <= BOTTOM for x, y in points)
            assert points[-1][0] == RIGHT

    def test_charts_say_up_to_where_they_are_drawn(self, ads, monkeypatch):
        monkeypatch.setattr(module, "CREDIT_SECONDS", 1e-9)  # one point at a time
        results(ads, ("a", 0.0, 30), ("c", 1.0, 30))
        watch, drawn_to = CertaintyWatch(patience=PATIENT), list[str]()
        while not drawn_to or drawn_to[-1]:
            watch._credit = 1e-9
            certainty = watch.of(ads)
            drawn_to.append(certainty_view(certainty, ads.arms)["drawn_to"])
        assert drawn_to[:3] == ["4", "8", "12"]
        assert certainty.trend[-1].spent == 60.0

    @pytest.mark.parametrize("highest", [1e-9, 0.013, 0.99, 1, 2, 7.3, 100, 123456, 3e12])
    def test_ticks_are_few_and_round(self, highest):
        found = ticks(highest)
        assert 3 <= len(found) <= 6
        assert found[-1] <= highest * (1 + 1e-6)
        assert found[-1] > highest * 0.7 or len(found) > 3

    def test_what_was_decided_is_on_the_page(self, ads, watch):
        ads.set_stop(Sure(0.95, tolerance=0.1))
        results(ads, ("a", 0.0, 40), ("b", 0.0, 40), ("c", 1.0, 40))
        view = experiment_view(ads, watch.of(ads))
        assert (view["state"], view["stop"]) == ("decided", "95 % sure that no other arm is better by more than 0.1")
        assert view["decided"].startswith("no other is better than c (arm 2) by more than 0.1")
