"""Sixteen processes that work on one experiment through a service."""

import random
import subprocess
import sys
from collections import Counter

import pytest

from mfbandit import MFUCB, Bounded, CapitalExhausted, Fidelities, connect
from mfbandit.experiment.events import Asked, Told
from tests.support.services import served

WORKERS, ARMS = 16, 40
WORKER = """
import sys, time
from tests.service.test_workers import work
print("ready", flush=True)
sys.stdin.readline()
work(sys.argv[1], int(sys.argv[2]))
"""


def work(url, seed):
    """Make plays until the capital is spent; print each with its result."""
    draw = random.Random(seed)
    with connect(url) as store:
        experiment = store.open("race")
        while True:
            try:
                play = experiment.ask()
            except CapitalExhausted:
                return
            reward = float(draw.random() < play.arm / ARMS)
            experiment.tell(play, reward)
            sys.stdout.write(f"{play.id} {reward}\n")


@pytest.mark.slow
@pytest.mark.no_cover
def test_sixteen_workers_touch_every_arm_once_first_and_lose_no_result(tmp_path):
    fidelities = Fidelities(costs=[1, 10], biases=[0.1, 0], concentration=Bounded(0, 1))
    with served(tmp_path / "a.db") as service, connect(service.url) as store:
        experiment = store.create("race", MFUCB(), arms=ARMS, fidelities=fidelities, capital=400)
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", WORKER, service.url, str(seed)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for seed in range(WORKERS)
        ]
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        said = [worker.communicate(timeout=60)[0].split() for worker in workers]
        assert [worker.returncode for worker in workers] == [0] * WORKERS
        log, history, stats = experiment.log, experiment.history, experiment.stats

    asked = [event.arm for event in log if isinstance(event, Asked)]
    assert sorted(asked[:ARMS]) == list(range(ARMS))  # none twice while another is untouched
    told = {f"{experiment_id(said)}-{event.play}": event.reward for event in log if isinstance(event, Told)}
    seen = {play: float(reward) for words in said for play, reward in zip(words[::2], words[1::2], strict=True)}
    assert told == seen
    assert len(history.rewards) == len(seen) == sum(len(words) // 2 for words in said)
    assert stats.sums.sum() == sum(seen.values())
    assert Counter(asked) == Counter({arm: int(n) for arm, n in enumerate(stats.counts.sum(axis=0))})
    assert history.costs.sum() <= 400
    assert sum(bool(words) for words in said) > WORKERS // 2  # they did share the work


def experiment_id(said):
    return next(words[0] for words in said if words).rpartition("-")[0]
