"""The commands as people and machines call them."""

import os
import signal
import subprocess
import sys
import time

import pytest

from mfbandit import MFUCB, UCB, MFAuto, Policy, paper_problem, plan, simulate
from mfbandit.errors import ReplayExhausted
from tests.support.commands import call, refused, strict

COMMANDS = ["reproduce", "simulate", "theory", "plan", "problem", "bench", "version"]
SMALL = """
[problem]
paper = 3

[simulate]
capital = 5000
runs = 3
seed = 2

[theory]
capital = 5000

[plan]
capital = 5000
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text(SMALL)
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command):
    result = call(command, "--help")
    assert result.exit_code == 0
    assert f"Example: mfbandit {command}" in result.stdout
    assert "--json" in result.stdout


def test_help_lists_every_command_and_loads_nothing_heavy():
    code = "import sys; from mfbandit.cli.main import app\ntry: app(['--help'])\nfinally: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(f"  {command} " in done.stdout for command in COMMANDS)
    assert not {"numpy", "numba", "matplotlib", "sklearn", "fastapi"} & set(done.stdout.split())


def test_as_a_module():
    done = subprocess.run([sys.executable, "-m", "mfbandit", "version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("mfbandit 0.")


class TestSimulate:
    def test_table(self, file):
        result = call("simulate", file)
        assert result.exit_code == 0
        lines = result.stdout.splitlines()
        assert lines[0] == "200 arms, costs 1, 10; capital 5,000, 3 runs"
        names = [line.split("  ")[0] for line in lines[2:5]]
        assert names == [str(policy) for policy in (MFAuto(), MFUCB(), UCB())]

    def test_json_is_what_simulate_gives(self, file):
        rows = strict(call("simulate", file, "--json").stdout)
        policies: list[Policy] = [MFAuto(), MFUCB(), UCB()]
        for row, policy in zip(rows, policies, strict=True):
            sim = simulate(paper_problem(3), policy, capital=5000, runs=3, seed=2)
            assert row["policy"] == str(policy)
            assert row["regret"] == sim.regret.mean(axis=0).tolist()
            assert row["plays"] == sim.plays.sum(axis=1).tolist()

    def test_one_run_has_no_interval(self, file):
        lines = call("simulate", file, "--runs", 1).stdout.splitlines()
        assert [line.split()[2:4] for line in lines[2:]] == [["-", "-"]] * 3
        assert strict(call("simulate", file, "--runs", 1, "--json").stdout)[0]["low"] is None

    @pytest.mark.parametrize("suffix", ["png", "svg"])
    def test_plot(self, file, tmp_path, suffix):
        picture = tmp_path / f"regret.{suffix}"
        assert call("simulate", file, "--plot", picture).exit_code == 0
        assert picture.stat().st_size > 5000

    def test_plots_that_cannot_be(self, file, tmp_path):
        refused(call("simulate", file, "--plot", tmp_path / "regret.doc"), "--plot must end in .png, .svg or .pdf")
        nowhere = tmp_path / "nowhere" / "regret.png"
        refused(call("simulate", file, "--plot", nowhere), "--plot must be a file that can be written")
        (tmp_path / "folder.png").mkdir()
        refused(call("simulate", file, "--plot", tmp_path / "folder.png"), "--plot must be a file that can be written")

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ("capital = 5000\nruns", "runs", "[simulate] needs the key capital, a finite number"),
            (
                "capital = 5000\nruns",
                "capitol = 5000\nruns",
                "[simulate] needs the key capital, a finite number; it has capitol, did you mean capital?",
            ),
            ("runs = 3", 'runs = "many"', "[simulate] runs must be a whole number, got 'many'"),
            ("runs = 3", "runs = 0", "problem.toml: [simulate] runs must be at least 1, got 0"),
            ("seed = 2", 'account = "bank"', "account must be one of"),
            ("paper = 3", "paper = 9", "[problem] paper must be 1, 2, 3 or 4, got 9"),
        ],
    )
    def test_wrong_files(self, file, old, new, said):
        file.write_text(SMALL.replace(old, new, 1))
        refused(call("simulate", file), said)

    def test_a_missing_file(self, tmp_path):
        refused(call("simulate", tmp_path / "no.toml"), "File not found: ", "no.toml")

    def test_options_are_not_blamed_on_the_file(self, file):
        assert call("simulate", file, "--runs", 0).stderr == "Error: --runs must be at least 1, got 0\n"
        assert call("simulate", file, "--workers", 0).stderr == "Error: --workers must be at least 1, got 0\n"

    @pytest.mark.parametrize("number", ["inf", "nan", "1" + 400 * "0", "true"])
    @pytest.mark.parametrize("command", ["simulate", "theory", "plan"])
    def test_numbers_that_are_none(self, file, command, number):
        file.write_text(SMALL.replace("capital = 5000", f"capital = {number}"))
        refused(call(command, file), f"[{command}] capital must be a finite number, got")

    def test_sizes_that_do_not_go_together(self, file):
        file.write_text(
            SMALL.replace("paper = 3", 'means = [[0.1, 0.2]]\nrewards = "gaussian"\nsigma = 1')
            + "[fidelities]\ncosts = [1]\nscale = 1e-300\n"
        )
        assert call("theory", file).exit_code == 2

    def test_one_arm_and_equal_arms(self, file):
        for means in ("[[0.5]]", "[[0.5, 0.5]]"):
            file.write_text(
                SMALL.replace("paper = 3", f'means = {means}\nrewards = "bernoulli"')
                + "[fidelities]\ncosts = [1]\nrange = [0, 1]\n"
            )
            result = call("simulate", file)
            assert result.exit_code == 0
            assert "nan" not in result.stdout
            for command in ("simulate", "theory", "plan"):
                strict(call(command, file, "--json").stdout)

    def test_long_values_are_cut_and_control_characters_escaped(self, file):
        file.write_text(SMALL.replace("runs = 3", f"runs = {['x'] * 10_000}"))
        assert len(call("simulate", file).stderr) < 500
        file.write_text(SMALL + '[simulate2]\n"\\u001b[31mx" = 1\n')
        assert "\x1b" not in call("simulate", file).stderr

    def test_a_job_that_fails_is_no_wrong_input(self, file, monkeypatch):
        def broken(*_, **__):
            raise ReplayExhausted("the Replay table ran dry")

        monkeypatch.setattr("mfbandit.simulation.simulate", broken)
        result = call("simulate", file)
        assert result.exit_code == 1
        assert result.stderr == "Error: the Replay table ran dry\n"


class TestTheory:
    def test_text(self, file):
        result = call("theory", file)
        assert result.exit_code == 0
        assert "fidelity 0   112  112    0" in result.stdout
        assert "(Lemma 10, at every capital)" in result.stdout
        assert "not proved" not in result.stdout

    def test_json(self, file):
        numbers = strict(call("theory", file, "--json").stdout)
        assert numbers["rho"] == 5
        assert len(numbers["classes"]) == 200
        assert numbers["decay"]["right"] == [None]
        assert numbers["not_proved"] == []

    def test_what_is_not_proved_is_said(self, file):
        file.write_text(SMALL.replace("[theory]", "[theory]\nrho = 2"))
        assert "not proved: Lemma 10 needs rho above 4, got rho=2" in call("theory", file).stdout

    def test_capital_is_needed(self, file):
        file.write_text("[problem]\npaper = 3\n")
        refused(call("theory", file), "[theory] needs the key capital")


class TestPlan:
    def test_of_a_problem(self, file):
        expected = plan(paper_problem(3).fidelities, 5000, means=paper_problem(3).means)
        assert call("plan", file).stdout == f"{expected}\n"
        assert strict(call("plan", file, "--json").stdout)["regret"] == expected.regret

    def test_of_past_results(self, tmp_path):
        file = tmp_path / "ads.toml"
        file.write_text(
            "[fidelities]\ncosts = [1, 10]\nbiases = [0.2, 0]\nrange = [0, 1]\n"
            "[plan]\ncapital = 10\nprior = [0.1, 0.2, 0.5]\narms = 40\n"
        )
        numbers = strict(call("plan", file, "--json").stdout)
        assert numbers["arms"] == 40
        assert numbers["resolution"] is None  # ten looks at forty arms
        assert numbers["regret_without"][-1] is None
        assert len(numbers["verdicts"]) == 2

    def test_by_the_policies_of_the_file(self, file):
        problem, text = paper_problem(3), "[problem]\npaper = 3\n[plan]\ncapital = 5000\n"
        file.write_text(f'{text}[[policies]]\nname = "MFBayes"\n[[policies]]\nname = "MFUCB"\nrho = 1\n')
        assert call("plan", file).stdout == f"{plan(problem.fidelities, 5000, means=problem.means, rho=1)}\n"
        file.write_text(f'{text}[[policies]]\nname = "UCB"\nrho = 3\n')
        top = plan(problem.fidelities.top, 5000, means=problem.means[-1:], rho=3)
        assert call("plan", file).stdout == f"{top}\n"
        assert "UCB with rho = 3: an estimate" in str(top)
        file.write_text(f'{text}rho = 2\n[[policies]]\nname = "MFUCB"\nrho = 1\n')
        assert strict(call("plan", file, "--json").stdout)["rho"] == 2
        file.write_text(f'{text}[[policies]]\nname = "MFBayes"\n')
        refused(call("plan", file), "[[policies]] must have MFUCB or UCB for a plan, got MFBayes")

    def test_without_a_guess(self, tmp_path):
        file = tmp_path / "ads.toml"
        file.write_text("[fidelities]\ncosts = [1, 10]\nbiases = [0.2, 0]\nrange = [0, 1]\n[plan]\ncapital = 100\n")
        refused(call("plan", file), "ads.toml: [plan] plan needs either means")


class TestProblem:
    def test_prints_a_file_that_simulate_reads(self, tmp_path):
        file = tmp_path / "problem.toml"
        file.write_text(call("problem", "misleading").stdout)
        assert call("simulate", file, "--runs", 2).exit_code == 0

    def test_json(self):
        assert strict(call("problem", 3, "--json").stdout)["fidelities"]["costs"] == [1, 10]

    def test_unknown(self):
        refused(call("problem", "eight"), "name must be 1, 2, 3, 4, misleading or one of", "got 'eight'")


def test_bench(monkeypatch):
    monkeypatch.setattr("mfbandit.cli.bench.ENGINE_LOOKS", 1.0)
    monkeypatch.setattr("mfbandit.cli.bench.PLAIN_LOOKS", 0.001)
    assert call("bench").stdout.splitlines()[0].startswith("problem   arms  engine, plays/s")
    assert [row["problem"] for row in strict(call("bench", "--json").stdout)] == [1, 2, 3, 4]


def test_version_as_json():
    assert {"mfbandit", "numpy", "python"} <= set(strict(call("version", "--json").stdout))


class TestReproduce:
    def test_one_panel(self, tmp_path):
        result = call("reproduce", "--out", tmp_path, "--runs", 2, "--only", "misleading")
        assert result.exit_code == 0
        assert result.stdout == f"Open {tmp_path / 'report.html'}\n"
        assert "misleading: " in result.stderr

    def test_json(self, tmp_path):
        result = call("reproduce", "--out", tmp_path, "--runs", 2, "--only", "partition", "--json")
        assert list(strict(result.stdout)["panels"]) == ["partition"]

    def test_wrong_input(self, tmp_path):
        refused(call("reproduce", "--out", tmp_path, "--only", "figure-9"), "only must be one of partition, means")
        refused(call("reproduce", "--out", tmp_path, "--runs", 1), "runs must be at least 2")
        refused(call("reproduce", "--out", tmp_path, "--seed", -1), "seed must not be negative, got -1")
        refused(call("reproduce", "--out", tmp_path, "--workers", 0), "workers must be at least 1, got 0")
        refused(call("reproduce", "--out", ""), "out must name a folder")

    def test_a_folder_that_cannot_be_written_is_told_before_any_work(self, tmp_path):
        (tmp_path / "file").write_text("")
        began = time.perf_counter()
        refused(call("reproduce", "--out", tmp_path / "file"), "Cannot write to the folder", "file")
        assert time.perf_counter() - began < 60  # all panels would take longer

    def test_interrupted_it_keeps_finished_panels_and_goes_on(self, tmp_path):
        command = [sys.executable, "-m", "mfbandit", "reproduce", "--out", tmp_path, "--runs", "400"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
            assert process.stderr is not None
            assert process.stderr.readline().startswith("partition: ")
            time.sleep(0.3)
            os.killpg(process.pid, signal.SIGINT)
            rest = process.stderr.read()
        assert process.returncode == 130
        assert rest.endswith("Error: interrupted\n")
        assert "Traceback" not in rest
        made = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "panels").iterdir()}
        assert "partition.json" in made
        for panel in ("partition", "means"):
            assert call("reproduce", "--out", tmp_path, "--runs", 400, "--only", panel).exit_code == 0
        assert (tmp_path / "panels" / "partition.json").stat().st_mtime_ns == made["partition.json"]
        assert {"partition", "means"} <= set(strict((tmp_path / "manifest.json").read_text())["panels"])
