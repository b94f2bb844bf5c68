"""The paper's algorithms written down as plainly as possible: loops, no arrays, no shared code."""

import math

from mfbandit import Bounded, SubGaussian


def play_by_hand(problem, n, rng, *, rho=2.0, multi_fidelity=True):
    """The first n plays (arm, fidelity) of MF-UCB, or of UCB at the highest fidelity, on a problem."""
    fid = problem.fidelities
    costs, biases = list(fid.costs), list(fid.biases)
    tails = fid.tails if multi_fidelity else fid.tails[-1:] * len(costs)
    square = all(type(tail) in (SubGaussian, Bounded) for tail in tails)
    n_fidelities, n_arms = problem.means.shape
    used = range(n_fidelities) if multi_fidelity else [n_fidelities - 1]
    gammas = [
        tail.psi_inv((costs[m] / costs[m + 1]) * tail.psi(biases[m]))  # eq. 4
        for m, tail in enumerate(fid.tails[:-1])
    ]
    counts = [[0] * n_arms for _ in range(n_fidelities)]
    sums = [[0.0] * n_arms for _ in range(n_fidelities)]

    def width(m, k, t):
        if not square:
            return tails[m].psi_inv(rho * math.log(t) / counts[m][k])
        return math.sqrt(math.log(t)) * (tails[m].scale * math.sqrt(2 * rho) / math.sqrt(counts[m][k]))

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


def next_by_hand(told, pending, active, fid, rho):
    """MF-UCB's next (arm, fidelity): ``told`` has (arm, fidelity, reward) and ``pending`` (arm, fidelity)."""
    arms, fidelities = range(len(active)), range(len(fid.costs))
    t = 1 + len(told) + len(pending)

    def plays(k, m):
        return sum((a, f) == (k, m) for a, f, *_ in [*told, *pending])

    def width(k, m):
        n = plays(k, m)
        return math.inf if n == 0 else math.sqrt(math.log(t)) * (fid.tails[m].scale * math.sqrt(2 * rho) / math.sqrt(n))

    def bound(k):
        bounds = []
        for m in fidelities:
            rewards = [r for a, f, r in told if (a, f) == (k, m)]
            if rewards:
                bounds.append((sum(rewards) / len(rewards) + fid.biases[m]) + width(k, m))
        return min(bounds)

    seen = {k for k, *_ in told}
    waiting = [sum(a == k for a, _ in pending) for k in arms]
    usable = [k for k in arms if active[k]]
    untouched = [k for k in usable if k not in seen and waiting[k] == 0]
    with_result = [k for k in usable if k in seen]
    if untouched:
        arm = untouched[0]
    elif with_result:
        arm = max(with_result, key=lambda k: (bound(k), -k))
    else:
        arm = min(usable, key=lambda k: (waiting[k], k))
    for m in fidelities[:-1]:
        if width(arm, m) >= fid.gammas[m]:
            return arm, m
    return arm, fidelities[-1]
