"""IISE, LUCB and MF-GRAD written out plainly: generators that yield plays and return an answer.

They yield a list of plays, several if rounding decides among them, and are sent the one that was made and its reward.
They share nothing with the package. Minima are found by bisection, and every pair of arms is compared every time.
"""

import math
from dataclasses import replace

from mfbandit import Stats


def decided(problem, policy, n, rng, rule=None):
    """The first n plays of a policy, fewer if it answers before, and the answer, or None; checked by a rule below."""
    fidelities, plays = problem.fidelities, list[tuple[int, int]]()
    stats = Stats.empty(len(fidelities), problem.arms)
    expected, end = (None, None) if rule is None else (next(rule), None)
    while len(plays) < n:
        play = arm, m = policy.choose(stats.read_only(), fidelities)
        assert expected is None or play in expected
        plays.append(play)
        reward = problem.draw(arm, m, rng, earlier=int(stats.counts[m, arm]))
        stats.counts[m, arm] += 1
        stats.sums[m, arm] += reward
        stats = replace(stats, memory=policy.remember(stats.read_only(), fidelities))
        answer = policy.decision(stats.read_only(), fidelities)
        if rule is not None:
            try:
                expected = rule.send((play, reward))
            except StopIteration as done:
                end = done.value
            assert answer == end
        if answer is not None:
            return plays, answer
    return plays, None


def iise(arms, fidelities, delta, proved):
    costs, biases, total = fidelities.costs, fidelities.biases, 0
    top, left = len(costs) - 1, list(range(arms))
    for m in range(top + 1):
        variance = fidelities.tails[m].scale ** 2
        limit = max(
            (
                4 * (biases[m] - biases[j]) * math.sqrt(costs[m]) / (math.sqrt(costs[j]) - math.sqrt(costs[m]))
                for j in range(m + 1, top + 1)
            ),
            default=None,
        )
        sums, n = dict.fromkeys(left, 0.0), 0
        while True:
            for k in left:
                _, reward = yield [(k, m)]
                sums[k] += reward
                total += 1
            n += 1
            careful = math.sqrt(2 * variance * math.log(4 * n * n * arms * (top + 1) / delta) / n)
            repeated = max(math.log(math.log(total)), 0) if total > 1 else 0
            width = math.sqrt(2 * variance * (repeated + math.log(arms * (top + 1) / delta)) / n)
            width = careful if proved else width
            reach = max(sums[k] / n - width - biases[m] for k in left)
            left = [k for k in left if reach < sums[k] / n + width + biases[m]]
            if len(left) == 1:
                return left[0]
            if limit is not None and 4 * careful <= limit:
                break
    return None


def lucb(arms, fidelities, policy):
    costs, biases, delta = fidelities.costs, fidelities.biases, policy.delta
    scales = [tail.scale for tail in fidelities.tails]
    cells = [(k, m) for k in range(arms) for m in range(len(costs))]
    counts, sums, fixed = dict.fromkeys(cells, 0), dict.fromkeys(cells, 0.0), dict[int, int]()
    top, rows = len(costs) - 1, range(len(costs))

    def radius(k, m, t):
        level = math.log(4 * arms * len(costs) / delta) + 4 * math.log(t)
        return math.sqrt(2 * scales[m] ** 2 * level / counts[k, m])

    def upper(k, t):
        return min(sums[k, m] / counts[k, m] + biases[m] + radius(k, m, t) if counts[k, m] else math.inf for m in rows)

    def lower(k, t):
        return max(sums[k, m] / counts[k, m] - biases[m] - radius(k, m, t) if counts[k, m] else -math.inf for m in rows)

    def gap(k, m, leader):
        mean = sums[k, m] / counts[k, m]
        return mean - biases[m] - policy.second_mean if k == leader else policy.best_mean - mean - biases[m]

    def guarded(k, m):
        spent = sum(costs[j] * counts[k, j] for j in rows)
        return top if costs[top] * counts[k, top] < policy.guard * spent else m

    def explore_a(k, leader):
        for m in rows:
            if counts[k, m] == 0:
                return [m]
        n = sum(counts[k, m] for m in rows)
        index = [
            gap(k, m, leader) / math.sqrt(costs[m]) + math.sqrt(2 * math.log(n) / (costs[m] * counts[k, m]))
            for m in rows
        ]
        return [guarded(k, index.index(max(index)))]

    def explore_b(k, _):
        return [guarded(k, fixed[k])] if k in fixed else list(rows)

    while True:
        t = 1 + sum(counts.values())
        ranked = sorted(range(arms), key=lambda k: (-upper(k, t), k))
        leader, pair = ranked[0], ranked[:2]
        apart = lower(leader, t) > upper(pair[1], t) if arms > 1 else counts[0, 0] > 0
        if apart:
            return leader
        for k in range(arms):
            if k not in fixed and all(counts[k, m] for m in rows):
                index = [gap(k, m, leader) / math.sqrt(costs[m]) for m in rows]
                m = index.index(max(index))
                level = scales[m] ** 2 * math.log(4 * arms * len(costs) / delta)
                if index[m] >= 3 * math.sqrt(level / (costs[0] * counts[k, m])):
                    fixed[k] = m
        explore = explore_a if policy.explore == "A" else explore_b
        for play in [(k, m) for k in pair for m in explore(k, leader)]:
            _, reward = yield [play]
            sums[play] += reward
            counts[play] += 1


def bisect(slope, low, high):
    for _ in range(60):
        middle = (low + high) / 2
        if slope(middle) > 0:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def evidence(weights, means, fidelities):
    """F: (value, i, a, η_i, η_a); weights and means by (arm, fidelity)."""
    arms, rows = range(1 + max(k for k, _ in means)), range(len(fidelities.costs))
    biases, scales = fidelities.biases, [tail.scale for tail in fidelities.tails]

    def excess(k, m, eta):
        return max(abs(eta - means[k, m]) - biases[m], 0.0) * (1 if eta > means[k, m] else -1)

    def cost(k, eta):
        return sum(weights[k, m] * excess(k, m, eta) ** 2 / (2 * scales[m] ** 2) for m in rows)

    def slope(k, eta):
        return sum(weights[k, m] * excess(k, m, eta) / scales[m] ** 2 for m in rows)

    low, high = min(means.values()) - biases[0], max(means.values()) + biases[0]
    own = [bisect(lambda eta, k=k: slope(k, eta), low, high) for k in arms]

    def pair(i, a):
        if own[a] >= own[i]:
            return cost(i, own[i]) + cost(a, own[a]), i, a, own[i], own[a]
        eta = bisect(lambda eta: slope(i, eta) + slope(a, eta), low, high)
        return cost(i, eta) + cost(a, eta), i, a, eta, eta

    weakest = [min((pair(i, a) for a in arms if a != i), key=lambda found: found[0]) for i in arms]
    return max(weakest, key=lambda found: found[0])


def mfgrad(arms, fidelities, policy):
    costs, biases = fidelities.costs, fidelities.biases
    cells = [(k, m) for k in range(arms) for m in range(len(costs))]
    counts, sums = dict.fromkeys(cells, 0), dict.fromkeys(cells, 0.0)
    gradient, aim = dict.fromkeys(cells, 0.0), dict.fromkeys(cells, 0.0)
    share, s, number, top = dict.fromkeys(cells, 1.0), 0, len(costs), len(costs) - 1
    for cell in cells:
        _, reward = yield [cell]
        sums[cell] += reward
        counts[cell] += 1
        if arms == 1:
            return 0
    while True:
        t, means = sum(counts.values()), {cell: sums[cell] / counts[cell] for cell in cells}
        level = math.log(arms / policy.delta)
        enough = level + number * math.log(math.log(t) + 1)
        if policy.proved:
            enough = level + 2 * number * (math.log(level + 1) + 1) + 12 * number * math.log(math.log(t) + 3)
        value, answer, *_ = evidence(counts, means, fidelities)
        if value >= enough:
            return answer
        _, i, a, eta_i, eta_a = evidence({(k, m): share[k, m] / costs[m] for k, m in cells}, means, fidelities)
        price = sum(share.values()) / sum(share[k, m] / costs[m] for k, m in cells)
        for m in range(number):
            twice = 2 * fidelities.tails[m].scale ** 2 * costs[m]
            if m == top or eta_i < means[i, m] - biases[m]:
                gradient[i, m] += price * (means[i, m] - biases[m] - eta_i) ** 2 / twice
            if m == top or eta_a > means[a, m] + biases[m]:
                gradient[a, m] += price * (eta_a - means[a, m] - biases[m]) ** 2 / twice
        s += 1
        rate = 0.25 if policy.rate == "constant" else 1 / math.sqrt(s + 1)
        share = {cell: math.exp(rate * (gradient[cell] - max(gradient.values()))) for cell in cells}
        speed = {(k, m): share[k, m] / costs[m] for k, m in cells}
        forced, whole = 1 / (4 * math.sqrt(t + 1)), sum(speed.values())
        for cell in cells:
            aim[cell] += (1 - forced) * speed[cell] / whole + forced / len(cells)
        most = max(aim[cell] - counts[cell] for cell in cells)
        play, reward = yield [cell for cell in cells if aim[cell] - counts[cell] > most - 1e-9]
        sums[play] += reward
        counts[play] += 1
