"""Studies: every policy on every problem at every capital, from Python and from the command line."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from mfbandit import MFUCB, UCB, misleading_problem, paper_problem, simulate, study
from tests.support.commands import call, refused, strict

PROBLEMS = {"paper 3": paper_problem(3), "misleading": misleading_problem(5)}

GRID = """
[[policies]]
name = "MFUCB"
[[policies]]
name = "UCB"
rho = 1
[simulate]
runs = 3
seed = 2
[grid]
looks = [4, 2]
problems = [{paper = 3}, {misleading = 5}]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text(GRID)
    return path


class TestStudy:
    def test_is_all_simulations(self):
        found = study(PROBLEMS, [MFUCB(), UCB(1)], looks=[4, 2], runs=3, seed=2)
        assert list(found.sims) == [
            (name, policy) for name in PROBLEMS for policy in ("MFUCB(rho=2.0)", "UCB(rho=1.0)")
        ]
        rows = found.rows()
        assert len(rows) == 8
        for row in rows:
            problem, policy = PROBLEMS[row["problem"]], MFUCB() if row["policy"].startswith("MF") else UCB(1)
            alone = simulate(problem, policy, capital=row["capital"], runs=3, seed=2, grid=1)
            assert row["regret"] == alone.regret[:, -1].mean()  # as with that capital alone
            assert row["low"] <= row["regret"] <= row["high"]
        assert [row["capital"] for row in rows[:4]] == [4000, 4000, 8000, 8000]

    def test_one_run_has_no_interval(self):
        found = study(PROBLEMS, [UCB()], capitals=[8000], runs=1)
        assert found.rows()[0]["low"] is None
        assert str(found).splitlines()[1].split()[-1] == "-"

    def test_wrong_input(self):
        with pytest.raises(ValueError, match="either capitals or looks must be given"):
            study(PROBLEMS, [UCB()])
        with pytest.raises(ValueError, match="either capitals or looks must be given"):
            study(PROBLEMS, [UCB()], capitals=[1], looks=[1])
        with pytest.raises(ValueError, match=r"at least one capital, got \[\]"):
            study(PROBLEMS, [UCB()], capitals=[])
        with pytest.raises(ValueError, match=r"policies must be different, got UCB\(rho=2.0\), UCB\(rho=2.0\)"):
            study(PROBLEMS, [UCB(), UCB(2)], looks=[1])
        with pytest.raises(ValueError, match="at least one problem and one policy"):
            study({}, [UCB()], looks=[1])


class TestCommand:
    def test_table_and_json(self, file):
        done = call("simulate", file, "--grid")
        assert done.exit_code == 0
        assert len(done.stdout.splitlines()) == 9
        expected = study(
            {"paper 3": PROBLEMS["paper 3"], "misleading 5": PROBLEMS["misleading"]},
            [MFUCB(), UCB(1)],
            looks=[2, 4],
            runs=3,
            seed=2,
        )
        assert strict(call("simulate", file, "--grid", "--json").stdout) == expected.rows()
        assert done.stdout.rstrip("\n") == str(expected)

    @pytest.mark.slow
    @pytest.mark.parametrize("engine", ["processes", "dask"])
    def test_engines_give_the_same(self, file, tmp_path, engine):
        here = call("simulate", file, "--grid", "--json").stdout
        command = ["simulate", file, "--grid", "--engine", engine, "--workers", 2, "--results", tmp_path / "kept"]
        there = subprocess.run(
            [sys.executable, "-m", "mfbandit", *map(str, command), "--json"], capture_output=True, text=True, check=True
        )
        assert there.stdout == here
        assert "4 of 4: UCB(rho=1.0) on misleading 5" in there.stderr
        assert len(list((tmp_path / "kept").glob("*/runs-*.npz"))) >= 4
        assert call(*command, "--json").stdout == here  # from the folder

    @pytest.mark.slow
    def test_interrupted_and_started_again(self, tmp_path):
        path = tmp_path / "long.toml"
        path.write_text('[problem]\npaper = 1\n[[policies]]\nname = "MFUCB"\n[simulate]\nruns = 40\ncapital = 2e7\n')
        command = [sys.executable, "-m", "mfbandit", "simulate", path, "--results", tmp_path / "kept", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
            end = time.monotonic() + 60
            while not list(tmp_path.glob("kept/*/runs-*.npz")) and time.monotonic() < end:
                time.sleep(0.05)
            job.send_signal(signal.SIGINT)
            _, said = job.communicate(timeout=30)
        assert job.returncode == 130
        on = f"What is finished is kept in {tmp_path / 'kept'}: the same command goes on from there."
        assert said == f"{on}\nError: interrupted\n"
        kept = len(list(tmp_path.glob("kept/*/runs-*.npz")))
        assert kept > 0
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        plain = simulate(paper_problem(1), MFUCB(), capital=2e7, runs=40)
        np.testing.assert_array_equal(strict(done.stdout)[0]["regret"], plain.regret.mean(axis=0))

    def test_the_problem_of_the_file_alone(self, file):
        file.write_text(GRID.replace("problems = [{paper = 3}, {misleading = 5}]", "[problem]\npaper = 3"))
        rows = strict(call("simulate", file, "--grid", "--json", "--runs", 2).stdout)
        assert {row["problem"] for row in rows} == {"problem"}
        assert {row["runs"] for row in rows} == {2}

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ("[grid]", "[grids]", "has no table grids; did you mean grid?"),
            ("[grid]\nlooks = [4, 2]", "[theory]", "the table [grid] is missing; it needs the key capitals or looks"),
            ("looks = [4, 2]", "", "[grid] must have one of the keys capitals and looks, got {}"),
            ("looks = [4, 2]", "looks = [4]\ncapitals = [8]", "[grid] must have one of the keys capitals and looks"),
            ("looks = [4, 2]", "looks = []", "[grid] looks must be different numbers above 0, got []"),
            ("looks = [4, 2]", "looks = [2, 2]", "[grid] looks must be different numbers above 0, got [2, 2]"),
            ("looks = [4, 2]", "capitals = [0]", "[grid] capitals must be different numbers above 0, got [0]"),
            ("looks = [4, 2]", "looks = [0.0001]", "capital must pay for the first play"),
            ("{paper = 3}", "{means = 3}", "[grid] problem number 1 must have one of the keys paper, misleading"),
            ("{paper = 3}", "{paper = 9}", "[grid] problem number 1 paper must be 1, 2, 3 or 4, got 9"),
            ("{misleading = 5}", "{paper = 3}", "[grid] problem number 2 must be different from those before it"),
            ("{misleading = 5}", "5", "[grid] problems must be a list of tables, [{...}, ...], got [{'paper': 3}, 5]"),
        ],
    )
    def test_wrong_files(self, file, old, new, said):
        assert old in GRID
        file.write_text(GRID.replace(old, new))
        refused(call("simulate", file, "--grid"), said)

    def test_wrong_options(self, file, monkeypatch):
        monkeypatch.setattr("mfbandit.simulation.backends.SCHEDULER_TIMEOUT_SECONDS", 1)
        refused(call("simulate", file, "--grid", "--engine", "ray"), "engine must be one of threads, processes, dask")
        refused(call("simulate", file, "--grid", "--address", "tcp://x:1"), "an address must be a Dask scheduler's")
        refused(
            call("simulate", file, "--grid", "--engine", "dask", "--address", "x://y"), "such as tcp://10.0.0.5:8786"
        )
        refused(call("simulate", file, "--grid", "--plot", "a.png"), "--plot draws one problem, and --grid has many")
        nobody = call("simulate", file, "--grid", "--engine", "dask", "--address", "tcp://127.0.0.1:9")
        assert nobody.exit_code == 1
        assert "no Dask scheduler answers at tcp://127.0.0.1:9" in nobody.stderr
