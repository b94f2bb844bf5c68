"""How sure an experiment is, before and after a restart: the same to the last bit."""

import numpy as np
import pytest

import mfbandit as mfb

KNOWN = mfb.Fidelities([1, 10], [0.1, 0], mfb.SubGaussian(0.2))
CLICKS = mfb.Fidelities([1, 10], [0.1, 0], mfb.Bounded())
UNKNOWN = mfb.Fidelities([1, 10])


@pytest.mark.parametrize(
    ("policy", "fidelities"),
    [
        (mfb.MFSure(delta=1e-9), KNOWN),
        (mfb.MFUCB(), CLICKS),
        (mfb.MFTopTwo(capital=500), UNKNOWN),
        (mfb.MFBayes(), UNKNOWN),
    ],
)
def test_the_same_after_a_restart(place, policy, fidelities):
    rng, means = np.random.default_rng(4), (0.2, 0.5, 0.6, 0.9)
    with mfb.Store(place) as store:
        exp = store.create("ads", policy, arms=4, fidelities=fidelities)
        memory = mfb.Experiment(policy, arms=4, fidelities=fidelities)
        for step in range(60):
            if step == 30:
                exp.add_arm("late")
                memory.add_arm("late")
            play, same = exp.ask(), memory.ask()
            reward = float(np.clip(rng.normal((*means, 0.4)[play.arm], 0.05), 0, 1))
            exp.tell(play, reward)
            memory.tell(same, reward)
            if step % 7 == 0:
                assert exp.confidence(0.9) == memory.confidence(0.9)  # which keeps what did not change
        asked = [exp.confidence(level) for level in (0.5, 0.9, 0.95)]
    with mfb.Store(place) as store:
        again = store.open("ads")
        assert [again.confidence(level) for level in (0.5, 0.9, 0.95)] == asked
    kept = mfb.Experiment.from_json(memory.to_json())
    assert [kept.confidence(level) for level in (0.5, 0.9, 0.95)] == asked
