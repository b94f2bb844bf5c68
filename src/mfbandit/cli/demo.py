"""A demonstration: forty ads, shown for a minute, ten minutes or an hour to simulated visitors."""

import threading
import time
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from mfbandit._internal.typing import FloatArray
from mfbandit.core import Counts, Fidelities, Rate
from mfbandit.errors import (
    CapitalExhausted,
    ExperimentDecided,
    ExperimentPaused,
    NoActiveArms,
    StoreError,
    UnknownExperiment,
)
from mfbandit.experiment import Sure
from mfbandit.policies import MFSure
from mfbandit.store import DurableExperiment, Store, acting_as

ADS, CLICKBAIT = 40, 7
VISITORS = 20  # for each time that an ad is shown
CAPITAL = 500_000.0  # minutes of display
TOLERANCE = 0.02  # of a share of visitors: ads that are nearly as good will do
RETRY_SECONDS = 1.0  # after the experiment had no play
SWINGS = (1.0, 0.9, 0.7, 0.8, 1.1, 1.3, 1.2)  # of how many visitors click, from Monday to Sunday
MONDAY, RESULTS_OF_A_DAY = date(2026, 11, 16).toordinal(), 300
WORDS = ("spring", "summer", "autumn", "winter", "blue", "green", "bold", "plain")


@dataclass(frozen=True)
class Visitors:
    """How often visitors click on each ad, after each length of display; the policy never sees it.

    Args:
        means: share of visitors who click, shape (3, 40): after a minute, ten minutes, an hour.
    """

    means: FloatArray

    @classmethod
    def drawn(cls, seed: int) -> "Visitors":
        """Draw ads of all qualities, clicked nearly as often after a minute as after an hour; but one is clickbait.

        >>> means = Visitors.drawn(seed=0).means
        >>> bool(means[0, CLICKBAIT] > means[0].max() - 0.01), bool(means[2, CLICKBAIT] < 0.35)
        (True, True)
        """
        rng = np.random.default_rng(seed)
        hour = rng.permutation(np.linspace(0.2, 0.7, ADS))
        hour[CLICKBAIT] = 0.3
        ten = hour + rng.uniform(-0.08, 0.08, ADS)
        minute = hour + rng.uniform(-0.18, 0.18, ADS)
        minute[CLICKBAIT] = ten[CLICKBAIT] = max(minute.max(), ten.max()) + 0.05
        return cls(np.clip(np.array([minute, ten, hour]), 0.01, 0.99))

    def clicks(self, arm: int, fidelity: int, rng: np.random.Generator, day: int | None = None) -> Counts:
        """Draw how many visitors click while an ad is shown once.

        Args:
            arm: the ad.
            fidelity: how long it is shown.
            rng: for the draw.
            day: from 0, a Monday, where visitors click more often on some days than on others; else None.
        """
        rate = self.means[fidelity, arm]
        if day is None:
            return Counts(int(rng.binomial(VISITORS, rate)), VISITORS)
        swung = min(rate * SWINGS[day % 7], 0.99)
        return Counts(int(rng.binomial(VISITORS, swung)), VISITORS, date.fromordinal(MONDAY + day).isoformat())


def described(*, weekdays: bool = False) -> dict[str, Any]:
    """Describe the experiment, with biases that hold for all ads but the clickbait, and widen once it is found out.

    Args:
        weekdays: whether visitors click more often on some days than on others. What days do is learned then, so that
            an estimate has to be enough for a decision.

    >>> described()["arms"][CLICKBAIT]
    "ad 08, YOU WON'T BELIEVE THIS"
    >>> described(weekdays=True)["stop"]
    Sure(level=0.95, tolerance=0.02, estimates=True)
    """
    fidelities = Fidelities([1, 10, 60], [0.2, 0.1, 0], Rate(), ["1 minute", "10 minutes", "1 hour"])
    labels = [f"ad {k + 1:02}, {WORDS[k % 8]} {'offer' if k % 3 else 'story'}" for k in range(ADS)]
    labels[CLICKBAIT] = f"ad {CLICKBAIT + 1:02}, YOU WON'T BELIEVE THIS"
    return {
        "policy": MFSure(tolerance=TOLERANCE),
        "arms": labels,
        "fidelities": fidelities,
        "capital": CAPITAL,
        "widen": True,
        "stop": Sure(0.95, tolerance=TOLERANCE, estimates=True) if weekdays else None,
    }


def create(store: Store, *, weekdays: bool = False) -> DurableExperiment:
    """Create the experiment in a store.

    Args:
        store: a store.
        weekdays: as in :func:`described`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/demo.db") as store:
    ...     create(store).capital
    500000.0
    """
    return store.create("ads", **described(weekdays=weekdays), lease=60)


class Crowd(threading.Thread):
    """A thread of visitors, who keep coming until told to stop; they come back when the experiment is resumed.

    Args:
        experiment: the ads that they see.
        speed: results a second.
        seed: for their clicks.
        weekdays: whether they click more often on some days than on others; a day is 300 results.
    """

    def __init__(self, experiment: DurableExperiment, *, speed: float, seed: int, weekdays: bool = False) -> None:
        super().__init__(name="visitors", daemon=True)
        self._experiment, self._pause = experiment, 1.0 / speed
        self._visitors, self._rng = Visitors.drawn(seed), np.random.default_rng(seed + 1)
        self._weekdays, self._results = weekdays, 0
        self._ended = threading.Event()

    def run(self) -> None:
        """Ask, show an ad, tell how often it was clicked; repeat."""
        with acting_as("visitors"):
            self._come()

    def _come(self) -> None:
        due = time.monotonic()
        while not self._ended.is_set():
            try:
                play = self._experiment.ask()
                day = self._results // RESULTS_OF_A_DAY if self._weekdays else None
                self._experiment.tell(play, self._visitors.clicks(play.arm, play.fidelity, self._rng, day))
                self._results += 1
                due += self._pause
            except (CapitalExhausted, ExperimentDecided, ExperimentPaused, NoActiveArms):
                due = time.monotonic() + RETRY_SECONDS
            except (StoreError, UnknownExperiment):
                return  # the store was closed, or somebody deleted the experiment
            self._ended.wait(max(0.0, due - time.monotonic()))

    def stop(self) -> None:
        """Stop, and wait until the last one is gone."""
        self._ended.set()
        self.join()
