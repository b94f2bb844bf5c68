import json
import sys

import numpy as np
import pytest

from mfbandit import MFUCB, UCB, Simulation, compare, paper_problem, simulate
from mfbandit._internal.quantiles import t_quantile

PROBLEM = paper_problem(3, seed=1)
WORDS = ("policy", "problem", "account", "seed", "spawn_key")


def made_up(regret, policy="A", account="paper", problem="P"):
    regret = np.array(regret, dtype=float)
    runs, grid = regret.shape
    capital = np.arange(1.0, grid + 1)
    nothing = np.zeros(runs, int)
    return Simulation(
        policy,
        problem,
        account,
        (0,),
        (),
        np.zeros(1),
        capital,
        regret,
        np.zeros((1, 1)),
        nothing,
        np.zeros(runs),
        nothing,
    )


@pytest.mark.parametrize(
    ("p", "freedom", "value"),
    [  # from printed tables
        (0.975, 1, 12.7062),
        (0.975, 2, 4.30265),
        (0.975, 3, 3.18245),
        (0.975, 4, 2.77645),
        (0.975, 9, 2.26216),
        (0.995, 9, 3.24984),
        (0.95, 19, 1.72913),
        (0.975, 99, 1.98422),
    ],
)
def test_students_t(p, freedom, value):
    assert t_quantile(p, freedom) == pytest.approx(value, rel=4e-3 if freedom < 5 else 2e-4)


class TestSummary:
    def test_by_hand(self):
        # Mean 2, standard deviation 1, three runs: 2 ± 4.30265·1/sqrt(3).
        summary = made_up([[1.0], [2.0], [3.0]]).summary()
        assert summary.mean.tolist() == [2.0]
        assert summary.high[0] - 2 == pytest.approx(4.30265 / 3**0.5, rel=1e-5)
        assert summary.low[0] == pytest.approx(4 - summary.high[0])

    def test_one_run_has_no_interval(self):
        summary = made_up([[1.0]]).summary()
        assert summary.mean.tolist() == [1.0]
        assert np.isnan(summary.low).all()

    def test_covers_the_mean_as_often_as_it_says(self):
        # 2,000 samples of ten normal numbers: 95 % cover 0, give or take three standard errors of 0.5 %.
        regret = np.random.default_rng(0).standard_normal((10, 2000))
        summary = made_up(regret).summary()
        assert ((summary.low < 0) & (summary.high > 0)).mean() == pytest.approx(0.95, abs=0.015)

    def test_printed(self):
        lines = str(made_up(np.ones((3, 100))).summary()).splitlines()
        assert lines[0] == "regret of A over 3 runs, with 95 % intervals"
        assert len(lines) == 12
        assert len({len(line) for line in lines[1:]}) == 1
        assert lines[-1].split()[0] == "100"

    @pytest.mark.parametrize("confidence", [0, 1, 95])
    def test_confidence_is_a_share(self, confidence):
        with pytest.raises(ValueError, match=f"confidence must lie between 0 and 1, got {confidence}"):
            made_up([[1.0]]).summary(confidence)


class TestCompare:
    def test_by_hand(self):
        a, b = made_up([[1.0], [2.0], [3.0]]), made_up([[2.0], [4.0], [9.0]], "B")
        result = compare(a, b)
        assert result.difference.tolist() == [-3.0]
        assert result.ratio.tolist() == [0.4]
        # a − 0.4·b is 0.2, 0.4, −0.6: standard deviation sqrt(0.28).
        assert result.ratio_high[0] - 0.4 == pytest.approx(4.30265 * 0.28**0.5 / 3**0.5 / 5, rel=1e-5)
        assert "A against B over 3 pairs of runs" in str(result)
        assert len(str(result).splitlines()) == 3

    def test_pairs_cancel_what_they_share(self):
        shared = np.random.default_rng(0).standard_normal((20, 1)) * 100 + 1000
        result = compare(made_up(shared + 1), made_up(shared))
        assert result.difference_low[0] == pytest.approx(1)
        assert result.difference_high[0] == pytest.approx(1)

    def test_the_ratio_covers_the_truth_as_often_as_it_says(self):
        rng = np.random.default_rng(0)
        b = rng.normal(10, 2, (20, 2000))
        a = 0.5 * b + rng.normal(0, 1, b.shape)
        result = compare(made_up(a), made_up(b))
        assert ((result.ratio_low < 0.5) & (result.ratio_high > 0.5)).mean() == pytest.approx(0.95, abs=0.02)

    def test_only_what_can_be_compared(self):
        a = made_up([[1.0], [2.0]])
        with pytest.raises(ValueError, match="same capitals and number of runs"):
            compare(a, made_up([[1.0]]))
        with pytest.raises(ValueError, match="same account to be compared run by run, got 'paper' and 'top'"):
            compare(a, made_up([[1.0], [2.0]], account="top"))
        with pytest.raises(ValueError, match="same problem"):
            compare(a, made_up([[1.0], [2.0]], problem="Q"))
        with pytest.raises(ValueError, match=r"same seed .* got \(1,\) and \(2,\)"):
            compare(simulate(PROBLEM, UCB(), capital=100, seed=1), simulate(PROBLEM, UCB(), capital=100, seed=2))


class TestKeeping:
    @pytest.mark.parametrize("keep_plays", [True, False])
    def test_there_and_back(self, tmp_path, keep_plays):
        sim = simulate(
            PROBLEM,
            MFUCB(),
            capital=1000,
            runs=2,
            seed=np.random.SeedSequence(np.int64(3), spawn_key=(4,)),
            keep_plays=keep_plays,
        )
        path = tmp_path / "kept.npz"
        sim.save(path)
        again = Simulation.load(str(path))
        assert (again.policy, again.account, again.seed, again.spawn_key) == ("MFUCB(rho=2.0)", "paper", (3,), (4,))
        assert again.problem == PROBLEM.digest
        for name in ("capital", "regret", "plays", "steps", "spent"):
            assert getattr(again, name).tobytes() == getattr(sim, name).tobytes()
        assert (again.run_plays is not None) == keep_plays
        assert [file.name for file in tmp_path.iterdir()] == ["kept.npz"]

    def test_a_file_from_before_runs_had_answers(self, tmp_path):
        sim, path = simulate(PROBLEM, MFUCB(), capital=1000, runs=2), tmp_path / "kept.npz"
        sim.save(path)
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files if name != "answers"}
        np.savez(path, **arrays)
        again = Simulation.load(path)
        assert again.answers.tolist() == [-1, -1]
        assert again.regret.tobytes() == sim.regret.tobytes()

    def test_a_save_that_fails_leaves_the_old_file(self, tmp_path, monkeypatch):
        sim = simulate(PROBLEM, UCB(), capital=1000)
        path = tmp_path / "kept.npz"
        sim.save(path)
        before = path.read_bytes()

        def full(file, **_):
            file.write(b"half")
            raise OSError("no space left on device")

        monkeypatch.setattr(np, "savez_compressed", full)
        with pytest.raises(OSError, match="no space"):
            sim.save(path)
        assert path.read_bytes() == before
        assert [file.name for file in tmp_path.iterdir()] == ["kept.npz"]

    def test_another_file(self, tmp_path):
        path = tmp_path / "other.npz"
        np.savez(path, x=np.zeros(1))
        with pytest.raises(ValueError, match=r"damaged, or Simulation.save did not write it: .*other.npz"):
            Simulation.load(path)
        path.write_bytes(b"nonsense")
        with pytest.raises(ValueError, match=r"damaged, or Simulation.save did not write it: .*other.npz"):
            Simulation.load(path)

    @pytest.mark.parametrize("damage", ["cut", "flip", "npy", "words", "arrays"])
    def test_a_damaged_file(self, tmp_path, damage):
        path = tmp_path / "kept.npz"
        simulate(PROBLEM, UCB(), capital=1000).save(path)
        whole = path.read_bytes()
        if damage == "cut":
            path.write_bytes(whole[:-100])
        elif damage == "flip":
            middle = len(whole) // 2
            path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :])
        elif damage == "npy":
            with path.open("wb") as file:
                np.save(file, np.zeros(3))
        else:
            np.savez(path, about=np.array("{}" if damage == "words" else json.dumps(dict.fromkeys(WORDS, "1"))))
        with pytest.raises(ValueError, match=r"damaged, or Simulation.save did not write it: .*kept.npz"):
            Simulation.load(path)


def test_frame():
    sim = simulate(PROBLEM, UCB(), capital=1000, runs=2, grid=3)
    frame = sim.to_frame()
    assert frame["run"].tolist() == [0, 0, 0, 1, 1, 1]
    assert frame["regret"].tolist() == sim.regret.ravel().tolist()
    assert set(frame["policy"]) == {"UCB(rho=2.0)"}


def test_frame_without_pandas(monkeypatch):
    sim = simulate(PROBLEM, UCB(), capital=1000)
    monkeypatch.setitem(sys.modules, "pandas", None)  # what Python takes for a module that is not there
    with pytest.raises(ImportError, match=r"to_frame\(\) needs pandas: pip install pandas"):
        sim.to_frame()
