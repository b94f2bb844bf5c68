"""The paper's algorithms written down as plainly as possible: loops, no arrays, no shared code."""

import math


def play_by_hand(problem, n, rng, *, rho=2.0, multi_fidelity=True):
    """The first n plays (arm, fidelity) of MF-UCB, or of UCB at the highest fidelity, on a problem."""
    fid = problem.fidelities
    costs, biases, scales = list(fid.costs), list(fid.biases), [tail.scale for tail in fid.tails]
    n_fidelities, n_arms = problem.means.shape
    used = range(n_fidelities) if multi_fidelity else [n_fidelities - 1]
    gammas = [
        tail.psi_inv((costs[m] / costs[m + 1]) * tail.psi(biases[m]))  # eq. 4
        for m, tail in enumerate(fid.tails[:-1])
    ]
    counts = [[0] * n_arms for _ in range(n_fidelities)]
    sums = [[0.0] * n_arms for _ in range(n_fidelities)]

    def width(m, k, t):
        return math.sqrt(math.log(t)) * (scales[m] * math.sqrt(2 * rho) / math.sqrt(counts[m][k]))

    def bound(k, t):  # eq. 3
        smallest = math.inf
        for m in used:
            if counts[m][k] > 0:
                smallest = min(smallest, (sums[m][k] / counts[m][k] + biases[m]) + width(m, k, t))
        return smallest

    plays = []
    for t in range(1, n + 1):
        best, arm = -math.inf, -1
        for k in range(n_arms):  # step 1, the lowest index among ties
            b = bound(k, t)
            if b > best:
                best, arm = b, k
        fidelity = n_fidelities - 1
        for m in used:  # step 2
            if m < n_fidelities - 1 and (counts[m][arm] == 0 or width(m, arm, t) >= gammas[m]):
                fidelity = m
                break
        reward = problem.draw(arm, fidelity, rng, earlier=counts[fidelity][arm])
        counts[fidelity][arm] += 1
        sums[fidelity][arm] += reward
        plays.append((arm, fidelity))
    return plays
