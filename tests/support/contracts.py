"""What every policy is held to, written once."""

import numpy as np

from mfbandit import Experiment, simulate
from mfbandit.simulation import plain_run


def assert_resumes_at_any_point(exp, problem, batch):
    """Play on, now and then from its JSON; each time a copy asks for the same plays as the original."""
    rng = np.random.default_rng(0)
    for step in range(120 // batch):
        plays = exp.ask(batch)
        if step % 9 == 3:
            again = Experiment.from_json(exp.to_json())
            copy = Experiment.from_json(exp.to_json())
            ahead = ([(play.arm, play.fidelity) for play in one.ask(5)] for one in (exp, copy))
            assert next(ahead) == next(ahead)
            exp = again
        for play in rng.permutation(len(plays)).tolist():
            exp.tell(plays[play], problem.draw(plays[play].arm, plays[play].fidelity, rng))


def assert_simulated_as_played(problem, policy, capital):
    """simulate gives what the plain path gives, to the last bit."""
    capitals = np.linspace(1, capital, 30)
    fast = simulate(problem, policy, capital=capital, grid=capitals.tolist(), seed=4)
    seed = np.random.SeedSequence(4, spawn_key=(0,))
    slow = plain_run(problem, policy, capitals, "paper", np.random.default_rng(seed), lambda _: None)
    assert fast.regret[0].tolist() == slow.regret.tolist()
    assert fast.plays.tolist() == slow.plays.tolist()
