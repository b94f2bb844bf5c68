"""Finished chunks of a simulation: kept whole, taken for nothing else, and never computed twice."""

import math
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfbandit import MFUCB, UCB, Bernoulli, Bounded, Fidelities, Problem, Replay, SubGaussian, paper_problem, simulate
from mfbandit.simulation import simulator as runs_module
from mfbandit.simulation.checkpoints import Chunk, Chunks, fingerprint, missing
from tests.simulation.test_simulator import same

PROBLEM = paper_problem(3, seed=1)
OPTIONS: dict[str, Any] = {"capital": 2e4, "seed": 5, "grid": 3}


@pytest.fixture
def made(monkeypatch):
    """The numbers of the runs that are made, but for those of the trial that finds how many fit into a chunk."""
    made: list[int] = []
    real = runs_module._chunk

    def counting(job, root, keep_plays, first, last, tick):
        made.extend(range(first, last))
        return real(job, root, keep_plays, first, last, tick)

    monkeypatch.setattr(runs_module, "_chunk", counting)
    return made


def sizes(monkeypatch, size):
    monkeypatch.setattr(runs_module, "_runs_in_a_chunk", lambda *_: size)


class TestSimulate:
    def test_the_result_is_the_same_and_nothing_is_made_twice(self, tmp_path, made, monkeypatch):
        sizes(monkeypatch, 3)
        plain = simulate(PROBLEM, MFUCB(), runs=8, **OPTIONS)
        made.clear()
        assert same(simulate(PROBLEM, MFUCB(), runs=8, results=tmp_path, **OPTIONS), plain)
        assert sorted(made) == list(range(8))
        made.clear()
        assert same(simulate(PROBLEM, MFUCB(), runs=8, results=tmp_path, **OPTIONS), plain)
        assert made == []

    def test_more_runs_later(self, tmp_path, made, monkeypatch):
        sizes(monkeypatch, 3)
        simulate(PROBLEM, MFUCB(), runs=6, results=tmp_path, **OPTIONS)
        made.clear()
        more = simulate(PROBLEM, MFUCB(), runs=9, results=tmp_path, **OPTIONS)
        assert sorted(made) == [6, 7, 8]
        made.clear()
        assert same(more, simulate(PROBLEM, MFUCB(), runs=9, **OPTIONS))
        fewer = simulate(PROBLEM, MFUCB(), runs=4, results=tmp_path, **OPTIONS)
        assert same(fewer, simulate(PROBLEM, MFUCB(), runs=4, **OPTIONS))

    @pytest.mark.parametrize(
        "other",
        [
            {"policy": MFUCB(1)},
            {"policy": UCB()},
            {"problem": paper_problem(3, seed=2)},
            {"capital": 2.1e4},
            {"grid": 4},
            {"seed": 6},
            {"seed": np.random.SeedSequence(5, spawn_key=(1,))},
            {"account": "top"},
            {"keep_plays": True},
        ],
        ids=str,
    )
    def test_chunks_of_other_simulations_are_left_alone(self, tmp_path, made, other):
        asked: dict[str, Any] = {"problem": PROBLEM, "policy": MFUCB(), "runs": 2, "results": tmp_path} | OPTIONS
        simulate(**asked)
        made.clear()
        sim = simulate(**asked | other)
        assert sorted(made) == [0, 1]
        assert same(sim, simulate(**asked | other | {"results": None}))

    def test_plays_of_each_run(self, tmp_path):
        kept = [
            simulate(PROBLEM, MFUCB(), runs=4, keep_plays=True, results=results, **OPTIONS).run_plays
            for results in (None, tmp_path, tmp_path)
        ]
        assert len({None if plays is None else plays.tobytes() for plays in kept}) == 1
        assert kept[0] is not None

    def test_a_damaged_chunk_is_made_again(self, tmp_path, made, monkeypatch):
        sizes(monkeypatch, 2)
        plain = simulate(PROBLEM, MFUCB(), runs=6, results=tmp_path, **OPTIONS)
        files = sorted(tmp_path.glob("*/runs-*.npz"))
        assert len(files) == 3
        files[1].write_bytes(files[1].read_bytes()[:-100])
        made.clear()
        with pytest.warns(UserWarning, match=r"runs-00000002-00000004.npz is damaged, and its runs are made again"):
            again = simulate(PROBLEM, MFUCB(), runs=6, results=tmp_path, **OPTIONS)
        assert sorted(made) == [2, 3]
        assert same(again, plain)

    def test_no_folder(self, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(ValueError, match=r"Cannot write to the folder of results .*file: "):
            simulate(PROBLEM, MFUCB(), runs=2, results=tmp_path / "file", **OPTIONS)

    @pytest.mark.parametrize("backend", ["loky", "multiprocessing", "sequential"])
    def test_under_joblib(self, tmp_path, backend):
        plain = simulate(PROBLEM, MFUCB(), runs=6, **OPTIONS)
        with joblib.parallel_config(backend, n_jobs=2):
            assert same(simulate(PROBLEM, MFUCB(), runs=6, results=tmp_path, **OPTIONS), plain)
        assert same(simulate(PROBLEM, MFUCB(), runs=6, results=tmp_path, **OPTIONS), plain)

    def test_chunks_take_about_half_a_second(self, monkeypatch):
        """By a clock of its own: each run takes 20 ms."""
        now = [0.0]

        def job(_, tick):
            now[0] += 0.02
            tick(1.0)

        monkeypatch.setattr(time, "perf_counter", lambda: now[0])
        root = np.random.SeedSequence(0)
        assert runs_module._runs_in_a_chunk(job, root, 1000) == 20  # four whole runs in the 0.1 s
        now[0] = 0.0

        def long(_, tick):
            now[0] += 3
            tick(1.0)

        assert runs_module._runs_in_a_chunk(long, root, 9) == 1


def test_a_driver_killed_at_any_moment(tmp_path):
    """Killed without warning while it works, and started again until it is done: the same numbers, nothing twice."""
    script = (
        "import sys, mfbandit as mfb\n"
        "from mfbandit.simulation import simulator as runs\n"
        "real = runs._chunk\n"
        "def chunk(*args):\n"
        "    print(*range(*args[3:5]), flush=True)\n"
        "    return real(*args)\n"
        "runs._chunk = chunk\n"
        "runs._runs_in_a_chunk = lambda *_: 2\n"
        "sim = mfb.simulate(mfb.paper_problem(1), mfb.MFUCB(), capital=3e6, runs=24, seed=3, grid=2,\n"
        "                   results=sys.argv[1], workers=1)\n"
        "sim.save(sys.argv[2])\n"
        "print('done', flush=True)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "kept"), str(tmp_path / "sim.npz")]
    said, kills = [], 0
    for pause in (0.05, 0.15, 0.3, 0.6, 600):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
            assert driver.stdout is not None
            lines = [driver.stdout.readline().strip()]
            if pause < 600 and lines != ["done"]:
                time.sleep(pause)
                os.kill(driver.pid, signal.SIGKILL)
                kills += 1
            lines += driver.stdout.read().split("\n")
        kept = sum(1 for _ in tmp_path.glob("kept/*/runs-*.npz"))
        said.append([line for line in lines if line and line != "done"])
        if "done" in lines:
            break
        assert 2 * kept >= 2 * (len(said[-1]) - 1)  # all but the chunk it was in
    assert kills >= 2
    assert sum(len(lines) for lines in said) <= 12 + kills  # a kill costs at most the chunk under way
    plain = simulate(paper_problem(1), MFUCB(), capital=3e6, runs=24, seed=3, grid=2)
    assert same(type(plain).load(tmp_path / "sim.npz"), plain)


@given(
    done=st.lists(st.integers(0, 30), min_size=0, max_size=8, unique=True).map(sorted),
    runs=st.integers(1, 40),
    size=st.integers(1, 9),
)
def test_missing_runs_are_all_there_once(done, runs, size):
    spans = [(at, at + 1) for at in done if at < runs]
    pieces = missing(spans, runs, size)
    covered = sorted([*(i for first, last in pieces for i in range(first, last)), *(first for first, _ in spans)])
    assert covered == list(range(runs))
    assert all(0 < last - first <= size for first, last in pieces)


def test_overlapping_chunks_are_taken_once(tmp_path):
    chunks = Chunks(tmp_path, {"a": 1})
    for first, last in ((0, 3), (2, 4), (3, 5), (4, 9)):
        n = last - first
        chunks.save(
            Chunk(
                first,
                np.ones((n, 1)),
                np.ones(n, dtype=np.int64),
                np.ones(n),
                np.ones(n, dtype=np.int64),
                np.ones((1, 1), dtype=int),
            )
        )
    (next(tmp_path.iterdir()) / "runs-of-mine.npz").touch()  # nothing of ours
    assert [(chunk.first, chunk.last) for chunk in chunks.load(8)] == [(0, 3), (3, 5)]


def test_many_drivers_keep_the_same_chunk_at_once(tmp_path):
    chunk = Chunk(
        0,
        np.ones((2, 500)),
        np.ones(2, dtype=np.int64),
        np.ones(2),
        np.ones(2, dtype=np.int64),
        np.ones((1, 1), dtype=int),
    )

    def drive(_):
        Chunks(tmp_path, {"a": 1}).save(chunk)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(drive, range(100)))
    assert [(kept.first, kept.last) for kept in Chunks(tmp_path, {"a": 1}).load(2)] == [(0, 2)]
    assert not list(tmp_path.glob("*/.*"))


class TestFingerprint:
    def test_tells_things_apart(self):
        @dataclass(frozen=True)
        class Own:
            a: float = 1.0

        class Plain:
            def __init__(self, a):
                self.a, self.me = a, self

            def captured(self):
                return self.a

        class Slotted:
            __slots__ = ("a",)

            def __init__(self, a):
                self.a = a

        def captures(number):
            return lambda x: number * x

        fid = Fidelities([1.0], concentration=Bounded())
        things = [
            None,
            1,
            1.0,
            "1",
            b"1",
            True,
            [1],
            (1,),
            [[1]],
            {"a": 1},
            {"a": 2},
            np.array([1]),
            np.array([1.0]),
            np.array([[1]]),
            Own(),
            Own(2.0),
            Plain(1),
            Plain(2),
            Plain,
            Own,
            fingerprint,
            missing,
            Problem([[0.5]], fid, Bernoulli()),
            Problem([[0.5]], Fidelities([1.0], concentration=SubGaussian(0.5)), Bernoulli()),
            Replay([[[0.0, 1.0]]]),
            Replay([[[1.0, 0.0]]]),
            [[1], 2],
            [[1, 2]],
            {"a": {"b": 1}, "c": 2},
            {"a": {"b": 1, "c": 2}},
            {"b", "a"},
            {"b", "c"},
            np.array([None, 1]),
            np.array([None, 2]),
            partial(missing, runs=1),
            partial(missing, runs=2),
            partial(fingerprint, 1),
            *(captures(number) for number in (1, 2)),
            *(Plain(number).captured for number in (1, 2)),
            *(lambda a=number: a for number in (1, 2)),
            Slotted(1),
            Slotted(2),
            np.exp,
            np.log,
            str.upper,
            str.lower,
            math.sqrt,
            math.exp,
        ]
        assert len({fingerprint(thing) for thing in things}) == len(things)

    def test_does_not_depend_on_what_was_worked_out_meanwhile(self):
        problem = paper_problem(1)
        before = fingerprint(problem)
        assert problem.gaps.shape
        assert problem.digest
        assert fingerprint(problem) == before == fingerprint(paper_problem(1))

    def test_is_the_same_in_another_process(self):
        script = (
            "import mfbandit as mfb; from mfbandit.simulation.checkpoints import fingerprint;"
            "print(fingerprint([mfb.paper_problem(1), mfb.MFUCB(), {'a', 'b', 'c'}]))"
        )
        there = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
        assert there.strip() == fingerprint([paper_problem(1), MFUCB(), {"c", "b", "a"}])

    @pytest.mark.parametrize("inherited", [False, True])
    def test_counts_the_source_of_a_class_of_ones_own(self, tmp_path, inherited):
        script = "import own; from mfbandit.simulation.checkpoints import fingerprint; print(fingerprint(own.P()))"
        prints = []
        for answer in (1, 1, 2):
            source = f"class Base:\n    def choose(self):\n        return {answer}\n"
            source = f"{source}class P(Base):\n    pass\n" if inherited else source.replace("Base", "P")
            (tmp_path / "own.py").write_text(source)
            done = subprocess.run(
                [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
            )
            prints.append(done.stdout)
        assert prints[0] == prints[1] != prints[2]

    def test_counts_the_code_of_a_class_without_a_source(self):
        """As in a notebook."""
        prints = []
        for answer, rho in ((1, 2.0), (1, 2.0), (2, 2.0), (1, 3.0)):
            names: dict[str, Any] = {"__name__": "__main__"}
            exec(f"class P:\n    rho = {rho}\n    def choose(self):\n        return {answer}\n", names)  # noqa: S102
            prints.append(fingerprint(names["P"]()))
        assert prints[0] == prints[1]
        assert len(set(prints)) == 3
