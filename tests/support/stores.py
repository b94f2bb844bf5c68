"""Experiments in stores, made and looked at."""

from contextlib import closing

import numpy as np

from mfbandit import (
    MFUCB,
    Fidelities,
    SubGaussian,
)
from mfbandit.store import log_reader as logs

FID = Fidelities([1, 5, 25], [0.3, 0.1, 0], SubGaussian(0.2))
ARMS = ["a", "b", "c", "d"]


def make(store, name="exp", policy=None, arms=ARMS, fidelities=FID, **options):
    return store.create(name, policy or MFUCB(rho=0.5), arms=arms, fidelities=fidelities, **options)


def seen(experiment):
    """Everything that a later play can depend on, to the last bit."""
    stats = experiment.stats
    arrays = [getattr(stats, name).tolist() for name in ("counts", "sums", "squares", "pending", "active")]
    plays = [play.id for play in experiment.pending]
    return arrays, plays, experiment.spent, experiment.reserved, experiment.capital, experiment.policy, experiment.arms


def used_snapshots(store, name="exp"):
    """Up to which event the log would be read from snapshots."""
    with closing(store.read()) as connection:
        _, chain = logs.read_all(connection, logs.entry(connection, name))
    return chain.head - chain.tail_rows


def play_some(experiment, number=30, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(number):
        play = experiment.ask()
        experiment.tell(play, float(rng.random() < 0.2 + 0.2 * play.arm))


class Clock:
    """Time that passes when a test says so."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now
