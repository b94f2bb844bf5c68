"""Find the ad with the most clicks among twelve, with an experiment kept by a service.

An ad can be shown for a minute (cost 1), an hour (10) or a day (100). The shorter, the less typical are its visitors.

    mfbandit serve ads.db &
    python examples/ads.py http://127.0.0.1:8000
"""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import mfbandit as mfb

CLICKS = np.random.default_rng(7).uniform(0.02, 0.12, size=12)  # true click rates, unknown to the policy
VISITORS = (20, 200, 2000)  # in a minute, an hour, a day
BIAS = (0.03, 0.01, 0.0)  # how far the click rate may be off at each fidelity


def show(play: mfb.SeededPlay) -> float:
    """Show an ad and return the share of visitors who clicked."""
    rng = play.rng()
    rate = CLICKS[play.arm] + BIAS[play.fidelity] * np.cos(play.arm)
    return float(rng.binomial(VISITORS[play.fidelity], rate)) / VISITORS[play.fidelity]


def main(url: str) -> None:
    noise = [mfb.SubGaussian(0.25 / visitors**0.5) for visitors in VISITORS]
    fidelities = mfb.Fidelities([1, 10, 100], BIAS, noise, names=["minute", "hour", "day"])
    labels = [f"ad-{letter}" for letter in "abcdefghijkl"]
    with mfb.connect(url) as store, ThreadPoolExecutor(4) as pool:
        ads = store.create("ads", mfb.MFUCB(rho=0.5), arms=labels, fidelities=fidelities, capital=20_000)
        print(mfb.run(ads, show, pool))
        best = ads.best()
        print(f"best: {labels[best]}, clicked by {CLICKS[best]:.1%} of visitors; the best has {CLICKS.max():.1%}")
        for name, shown in zip(fidelities.labels, ads.results_at, strict=True):
            print(f"{name}: shown {shown:,} times")


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["http://127.0.0.1:8000"]))
