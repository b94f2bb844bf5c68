"""Hypothesis strategies for fidelities and problems."""

import numpy as np
from hypothesis import strategies as st

from mfbandit import Bernoulli, Bounded, Fidelities, Gaussian, Problem, SubGaussian
from tests.support.problems import SubExponential


@st.composite
def problems(draw, max_arms=30, max_fidelities=5, any_psi=False):
    """Gaussian (equal means among them) and Bernoulli problems, K and M from 1, few arms being likely."""
    n_arms = draw(st.integers(1, max_arms) | st.integers(1, min(4, max_arms)))
    n_fidelities = draw(st.integers(1, max_fidelities))
    ratios = draw(st.lists(st.sampled_from([1.25, 2.0, 10.0]), min_size=n_fidelities, max_size=n_fidelities))
    costs = np.cumprod(ratios).tolist()
    decays = draw(st.lists(st.sampled_from([0.5, 0.8]), min_size=n_fidelities - 1, max_size=n_fidelities - 1))
    biases = [*(draw(st.sampled_from([0.1, 0.4, 1.0])) * np.cumprod(decays)).tolist(), 0.0]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    truth = np.full(n_arms, 0.5) if draw(st.booleans()) else rng.random(n_arms)
    means = truth + np.array(biases)[:, None] * rng.uniform(-1, 1, (n_fidelities, n_arms))
    if draw(st.booleans()):
        return Problem(means.clip(0, 1), Fidelities(costs, biases, Bounded()), Bernoulli())
    sigma = draw(st.sampled_from([0.02, 0.1, 1.0]))
    tails = [SubGaussian(sigma), *([SubExponential()] if any_psi else [])]
    if sigma < 1:  # rewards stay in the range that is told
        means, tails = means.clip(0, 1), [*tails, Bounded(-1, 2)]
    each = draw(
        st.just([tails[0]] * n_fidelities)
        | st.lists(st.sampled_from(tails), min_size=n_fidelities, max_size=n_fidelities)
    )
    return Problem(means, Fidelities(costs, biases, each), Gaussian(sigma))
