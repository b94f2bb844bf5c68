"""MFAda, MFBayes and MFTopTwo written out plainly, one arm and one fidelity at a time, as the rules are stated.

Only the rounding of square roots (policies/exploration.py) and the order of additions are taken over from the package:
they decide ties, and are part of the rule.
"""

import itertools
import math
from dataclasses import replace

import numpy as np

from mfbandit import Bounded, Stats

RESOLUTION = 2.0**-30


def policy_plays(problem, policy, n, seed, look=lambda _: None):
    """The first plays as a policy of the package chooses them; ``look`` sees its memory after each."""
    rng, stats, plays = np.random.default_rng(seed), Stats.empty(len(problem.fidelities), problem.arms), []
    for _ in range(n):
        arm, m = policy.choose(stats.read_only(), problem.fidelities)
        plays.append((arm, m))
        reward = problem.draw(arm, m, rng, earlier=int(stats.counts[m, arm]))
        stats.counts[m, arm] += 1
        stats.sums[m, arm] += reward
        stats.squares[m, arm] += reward * reward
        if hasattr(policy, "remember"):
            stats = replace(stats, memory=policy.remember(stats.read_only(), problem.fidelities))
            look(stats.memory)
        if hasattr(policy, "decision") and policy.decision(stats.read_only(), problem.fidelities) is not None:
            break
    return plays


def rule_plays(problem, rule, n, seed):
    """The first plays by a rule that is written out plainly below, told one by one."""
    rng, plays = np.random.default_rng(seed), []
    counts = np.zeros(problem.means.shape, dtype=int)
    for _ in range(n):
        arm, m = rule.choose()
        plays.append((arm, m))
        rule.tell(arm, m, problem.draw(arm, m, rng, earlier=int(counts[m, arm])))
        counts[m, arm] += 1
    return plays


def check_chain(chain):
    """No NaN, no infinite and no negative variance, ever: what ``look`` may see of a policy that fits a chain."""
    if chain is None:
        return
    variances = [chain.spread, *chain.steps, *chain.predicted, *chain.noise]
    assert all(0 < variance < math.inf for variance in variances)
    assert np.isfinite([chain.start, *chain.shifts]).all()


def spent_on(plays, costs, k):
    total = 0.0
    for m, cost in enumerate(costs):
        total += cost * plays[m][k]
    return total


def level_ratios(plays, costs):
    """S/H_k for every arm, H_k = sum over j of min(c_k, sqrt(c_k c_j))."""
    arms = range(len(plays[0]))
    roots = [math.floor(math.sqrt(spent_on(plays, costs, k) / costs[0]) / RESOLUTION + 0.5) for k in arms]
    total = 0.0
    for m, cost in enumerate(costs):
        total += cost * sum(plays[m])
    ratios = []
    for k in arms:
        overlap = sum(min(roots[k], roots[j]) for j in arms)
        ratios.append(total / costs[0] / ((roots[k] * RESOLUTION) * (overlap * RESOLUTION)) if roots[k] else math.inf)
    return ratios


def kl(p, q):
    if p == q:
        return 0.0
    if (q <= 0 and p > 0) or (q >= 1 and p < 1):
        return math.inf
    win = p * math.log(p / q) if p > 0 else 0.0
    return win + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)


def kl_upper(p, level):
    """By bisection; slow, and right to 1e-15 or so."""
    low, high = p, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        if kl(p, middle) > level:
            high = middle
        else:
            low = middle
    return low


def mfada(plays, sums, fidelities, upper):  # noqa: PLR0912 - the rule, all of it in one place
    """The next play of MFAda; ``upper`` is the inverse of kl that ties are to be broken by."""
    costs, biases, tails = fidelities.costs, fidelities.biases, fidelities.tails
    top, arms = len(costs) - 1, range(len(plays[0]))
    for k in arms:
        if not any(plays[m][k] for m in range(top + 1)):
            return k, 0
    ratios = level_ratios(plays, costs)
    index, value, lowest, deviation = [], [], [], []
    for k in arms:
        effort = math.log(1 + ratios[k])
        best, low, high, deviations = math.inf, -math.inf, math.inf, [math.inf] * (top + 1)
        for m in range(top + 1):
            n = plays[m][k]
            if n == 0:
                continue
            mean = sums[m][k] / n
            if isinstance(tails[m], Bounded):
                span = tails[m].high - tails[m].low
                scaled = min(max((mean - tails[m].low) / span, 0.0), 1.0)
                bound = tails[m].low + span * upper(scaled, effort / n)
                p = (scaled * n + 0.5) / (n + 1)
                deviations[m] = span * math.sqrt(p * (1 - p) / n)
            else:
                bound = mean + tails[m].scale * math.sqrt(2 * effort / n)
                deviations[m] = tails[m].scale / math.sqrt(n)
            best = min(best, bound + biases[m])
            low = max(low, mean - biases[m] - 2 * deviations[m])
            high = min(high, mean + biases[m] + 2 * deviations[m])
        if all(isinstance(tail, Bounded) for tail in tails):
            best = min(best, max(tail.high for tail in tails))
        index.append(best)
        value.append(min(best, low + max(0.0, high - low) / 2))
        lowest.append(min(low, best))
        deviation.append(deviations)
    arm, leader = index.index(max(index)), value.index(max(value))
    if arm == leader:
        for m in range(top):
            if plays[m][arm] == 0 or deviation[arm][m] >= biases[m] * math.sqrt(costs[m] / costs[m + 1]):
                return arm, m
        return arm, top
    best, chosen = 0.0, top
    for m in range(top, -1, -1):
        x, y = lowest[arm] - biases[m], value[leader] - biases[m]
        if m < top and plays[m][arm] > 0:
            x = max(x, sums[m][arm] / plays[m][arm] - 2 * deviation[arm][m])
        if isinstance(tails[m], Bounded):
            span = tails[m].high - tails[m].low
            x, y = (min(max((v - tails[m].low) / span, 0.0), 1.0) for v in (x, y))
            told = kl(x, y) if y > x else 0.0
        else:
            told = (y - x) ** 2 / (2 * tails[m].scale ** 2) if y > x else 0.0
        if told / costs[m] > best:
            best, chosen = told / costs[m], m
    return arm, chosen


class Bayes:
    """MFBayes with its chain, one arm at a time."""

    def __init__(self, fidelities, arms, r0=0.5, nu0=2.0, nu=8.0, kappa=2.0):
        self.r0, self.nu0, self.nu = r0, nu0, nu
        top = len(fidelities) - 1
        self.rows = [m for m in range(top) if kappa * fidelities.costs[m] <= fidelities.costs[top]] + [top]
        self.costs, self.all_costs, self.arms = [fidelities.costs[m] for m in self.rows], fidelities.costs, arms
        n = len(self.rows)
        self.counts = [[0] * arms for _ in range(n)]
        self.sums = [[0.0] * arms for _ in range(n)]
        self.squares = [[0.0] * arms for _ in range(n)]
        self.fitted_at = None

    def choose(self):
        played = sum(map(sum, self.counts))
        if played < self.arms:
            return played, self.rows[0]
        if self.fitted_at is None:
            once = [self.sums[0][k] if self.counts[0][k] == 1 else -math.inf for k in range(self.arms)]
            return once.index(max(once)), self.rows[0]
        ratios = level_ratios(self.counts, [*self.costs]) if self.costs[0] == self.all_costs[0] else None
        if ratios is None:  # the unit of roots is the lowest fidelity's cost, used or not
            padded = [[0] * self.arms for _ in self.all_costs]
            for row, m in enumerate(self.rows):
                padded[m] = self.counts[row]
            ratios = level_ratios(padded, self.all_costs)
        index, values = [], []
        for k in range(self.arms):
            _, _, means, variances = self.filter(k)
            nu = self.nu * (1 + self.counts[-1][k])
            values.append(means[-1])
            index.append(
                means[-1] + math.sqrt(variances[-1]) * math.sqrt(nu * math.expm1(2 * math.log(1 + ratios[k]) / nu))
            )
        arm, leader = index.index(max(index)), values.index(max(values))
        if arm == leader:
            return arm, self.rows[-1]
        _, wide, _, variances = self.filter(arm)
        smooth, link = list(variances), list(variances)
        for r in range(len(self.rows) - 2, -1, -1):
            gain = variances[r] / wide[r + 1]
            smooth[r] = variances[r] + gain * gain * (smooth[r + 1] - wide[r + 1])
            link[r] = link[r + 1] * gain
        worth = [link[r] * (link[r] / ((smooth[r] + self.noise[r]) * cost)) for r, cost in enumerate(self.costs)]
        return arm, self.rows[worth.index(max(worth))]

    def tell(self, arm, fidelity, reward):
        r = self.rows.index(fidelity)
        self.counts[r][arm] += 1
        self.sums[r][arm] += reward
        self.squares[r][arm] += reward * reward
        spent = 0.0
        for cost, row in zip(self.costs, self.counts, strict=True):
            spent += cost * sum(row)
        played = sum(map(sum, self.counts))
        if played == self.arms + min(5, self.arms):
            self.start_values()
            for _ in range(5):
                self.em_step()
            self.fitted_at = spent
        elif self.fitted_at is not None and spent >= 1.01 * self.fitted_at:
            self.fit_noise()
            self.em_step()
            self.fitted_at = spent

    def floor(self):
        total = 0.0
        for row in self.squares:
            for square in row:
                total += square
        size = math.sqrt(total / sum(map(sum, self.counts)))
        return 1e-9 * 1e-9 * (size * size if size > 0 else 1.0)

    def scatter(self, r):
        """Squared distances from the arms' means at a fidelity, and how many of them are free."""
        within, freedom = 0.0, 0.0
        for k in range(self.arms):
            n = self.counts[r][k]
            if n:
                within += max(self.squares[r][k] - self.sums[r][k] * self.sums[r][k] / n, 0.0)
                freedom += n - 1
        return within, freedom

    def fit_noise(self):
        self.noise: list[float] = []
        for r in range(len(self.rows)):
            within, freedom = self.scatter(r)
            before = 5.0 if r else 0.0
            below = self.noise[-1] if r else 0.0
            self.noise.append(max((before * below + within) / max(before + freedom, 1.0), self.floor()))

    def start_values(self):
        means = [total / n for total, n in zip(self.sums[0], self.counts[0], strict=True)]
        self.start = 0.0
        for mean in means:
            self.start += mean
        self.start /= len(means)
        variance = 0.0
        for mean in means:
            variance += (mean - self.start) * (mean - self.start)
        variance /= len(means)
        self.fit_noise()
        self.spread = max(variance - self.noise[0], 0.1 * variance, 0.01 * self.noise[0], self.floor())
        steps = len(self.rows) - 1
        self.shifts, self.steps = [0.0] * steps, [self.r0 * self.r0 * self.spread] * steps
        self.predicted = list(self.steps)

    def filter(self, k):
        mean, variance = self.start, self.spread
        before, wide, means, variances = [], [], [], []
        for r in range(len(self.rows)):
            before.append(mean)
            wide.append(variance)
            n = self.counts[r][k]
            seen = self.sums[r][k] / n if n else 0.0
            weight = variance * n + self.noise[r]
            mean = mean + variance * n / weight * (seen - mean)
            variance = variance * (self.noise[r] / weight)
            means.append(mean)
            variances.append(variance)
            if r < len(self.rows) - 1:
                mean, variance = mean + self.shifts[r], variance + self.predicted[r]
        return before, wide, means, variances

    def em_step(self):
        floor, last = self.floor(), len(self.rows) - 1
        smooth, unsure, gains = [], [], []
        for k in range(self.arms):
            before, wide, means, variances = self.filter(k)
            s, u, g = list(means), list(variances), [0.0] * (last + 1)
            for r in range(last - 1, -1, -1):
                g[r] = variances[r] / wide[r + 1]
                u[r] = variances[r] + g[r] * g[r] * (u[r + 1] - wide[r + 1])
                s[r] = means[r] + g[r] * (s[r + 1] - before[r + 1])
            smooth.append(s)
            unsure.append(u)
            gains.append(g)
        seen = [k for k in range(self.arms) if any(row[k] for row in self.counts)]
        start = 0.0
        for k in seen:
            start += smooth[k][0]
        start /= len(seen)
        spread = 0.0
        for k in seen:
            spread += (smooth[k][0] - start) * (smooth[k][0] - start) + unsure[k][0]
        spread = max(spread / len(seen), 0.01 * self.noise[0], floor)
        for r in range(last):
            above = [k for k in range(self.arms) if any(self.counts[h][k] for h in range(r + 1, last + 1))]
            moved = 0.0
            for k in above:
                moved += smooth[k][r + 1] - smooth[k][r]
            shift = moved / (len(above) + self.steps[r] / self.spread)
            squares = 0.0
            for k in above:
                off = smooth[k][r + 1] - smooth[k][r] - shift
                squares += off * off + max(unsure[k][r + 1] * (1 - 2 * gains[k][r]) + unsure[k][r], 0.0)
            self.shifts[r] = shift
            self.steps[r] = max((self.nu0 * self.r0 * self.r0 * spread + squares) / (self.nu0 + len(above)), floor)
            self.predicted[r] = self.steps[r] * (1 + 1 / (len(above) + 1.0))
        self.start, self.spread = start, spread


class TopTwo(Bayes):
    """MFTopTwo with its chain, one arm at a time."""

    def __init__(self, fidelities, arms, capital):
        super().__init__(fidelities, arms, r0=0.5, nu0=5.0)
        kept = [len(fidelities) - 1]
        for m in range(len(fidelities) - 2, -1, -1):
            if 1.5 * fidelities.costs[m] <= fidelities.costs[kept[0]]:
                kept = [m, *kept]
        self.capital, self.kept, self.all_costs = capital * (1 + 1e-12), kept, fidelities.costs
        lowest = self.stages(exact=None)[0][0]
        self.rows = [m for m in kept if m >= lowest]
        self.costs = [fidelities.costs[m] for m in self.rows]
        self.counts, self.sums, self.squares, self.raw, self.raw_squares = (  # type: ignore[assignment]
            [[zero] * arms for _ in self.rows] for zero in (0, 0.0, 0.0, 0.0, 0.0)
        )

    def stages(self, exact):
        """The fidelities of the stages with their numbers of arms."""
        cost, arms, capital = self.all_costs, self.arms, self.capital
        last, first = self.kept[0], self.kept[0]
        for m in self.kept:
            last = m if cost[m] <= 0.12 * capital else last
        for m in self.kept:
            first = m if arms * cost[m] <= 0.5 * capital else first
        best, sweep = 0.0, (self.kept[0], 1)
        for between, m in enumerate(reversed(self.kept[:-1] if len(self.kept) > 1 else self.kept)):
            n = arms if arms * cost[m] <= 0.75 * capital else int(0.75 * capital / cost[m])
            if n / (1 + between) > best:
                best, sweep = n / (1 + between), (m, n)
        if arms * cost[first] > 0.5 * capital and first < sweep[0] and 3 * cost[first] > cost[sweep[0]]:
            return [sweep]
        if first >= last:
            return [(first, arms if arms * cost[first] <= capital else max(1, int(0.75 * capital / cost[first])))]
        inner = [m for m in self.kept if first < m < last]
        share = 0.35 if inner else 0.35 / (0.35 + 0.65 * 0.65)
        n = arms if arms * cost[first] <= 0.5 * capital else min(arms, max(1, int(share * capital / cost[first])))
        stages, left = [(first, n)], capital - n * cost[first]
        reserved = 3 * cost[first] if n >= 30 else 0.0
        if inner:
            middle = 0.5 * (math.log(cost[first]) + math.log(cost[last]))
            away = [abs(math.log(cost[m]) - middle) for m in inner]
            m = inner[away.index(min(away))]
            some = min(n, int(min(0.65 * left, left - 2 * cost[last] - reserved) / cost[m]))
            if some >= 1:
                stages.append((m, some))
                n, left = some, left - some * cost[m]
        looks = (left - reserved) / cost[last]
        n = min(n, int(looks) if exact else min(int(looks), max(2, int(0.4 * looks))))
        return [*stages, (last, n)] if n >= 1 else stages

    def exact(self):
        """Whether equal plays have given equal rewards often enough; None if that is open."""
        repeats, chance = 0, 0.0
        for r in range(len(self.rows)):
            for k in range(self.arms):
                n = self.counts[r][k]
                if n < 2:
                    continue
                mean = self.raw[r][k] / n
                if self.raw_squares[r][k] - self.raw[r][k] * mean > 1e-12 * self.raw_squares[r][k]:
                    return False
                others = [j for j in range(self.arms) if self.counts[r][j]]
                means = [self.raw[r][j] / self.counts[r][j] for j in others]
                same = sum(mean - 1e-12 * abs(mean) <= value <= mean + 1e-12 * abs(mean) for value in means)
                repeats, chance = repeats + 1, chance + (n - 1) * math.log(same / len(others))
        return True if repeats >= 3 and chance <= math.log(1e-3) else None

    def left(self):
        spent = 0.0
        for cost, row in zip(self.costs, self.counts, strict=True):
            spent += cost * sum(row)
        return self.capital - spent

    def staged(self, stages, mean):
        """The arm and row that the stages want next; None if they are over, or one does not fit."""
        for (below, _), (m, n) in itertools.pairwise(stages):
            low, r = self.rows.index(below), self.rows.index(m)
            reached = [k for k in range(self.arms) if any(row[k] for row in self.counts[r:])]
            ready = [k for k in mean if k not in reached and any(row[k] for row in self.counts[low:])]
            if len(reached) < n:
                return (max(ready, key=lambda k: mean[k]), r) if ready and self.costs[r] <= self.left() else None
        return None

    def choose(self):
        exact = self.exact()
        stages = self.stages(exact)
        seen = [k for k in range(self.arms) if any(row[k] for row in self.counts)]
        if len(seen) < stages[0][1] and (self.costs[0] <= self.left() or not seen):
            return min(set(range(self.arms)) - set(seen)), self.rows[0]
        beliefs = {k: self.filter(k) for k in seen}
        mean = {k: beliefs[k][2][-1] for k in seen}
        again = sum(n > 1 for row in self.counts for n in row)
        wanted = exact is None and stages[0][1] >= 30 and again < 3 and self.costs[0] <= self.left()
        once = [k for k in seen if self.counts[0][k] == 1]
        if wanted and once:
            return max(once, key=lambda k: mean[k]), self.rows[0]
        play = self.staged(stages, mean)
        if play is not None:
            return play[0], self.rows[play[1]]
        variance = {k: math.sqrt(beliefs[k][3][-1]) ** 2 for k in seen}
        leader = max(seen, key=lambda k: mean[k])
        rivals = [k for k in seen if k != leader and not (exact and self.counts[-1][k])]
        behind = {k: (mean[leader] - mean[k]) / math.sqrt(variance[leader] + variance[k]) for k in rivals}
        pair = [leader, min(behind, key=lambda k: behind[k])] if behind else [leader]
        return self.final(pair, beliefs, exact)

    def final(self, pair, beliefs, exact):
        """The play of a finalist that tells the most per cost."""
        worth = [(k, r) for k in pair for r in range(len(self.rows))]
        if exact:
            worth = [(k, r) for k, r in worth if not any(row[k] for row in self.counts[r:])]
        new = {r: sum(self.counts[r][k] == 0 for k, at in worth if at == r) for r in range(len(self.rows))}
        plays = [(k, r) for k, r in worth if max(new[r], 1) * self.costs[r] <= self.left()]
        if not plays:
            plays = worth if self.costs[0] > self.left() else [(k, r) for k, r in worth if r == 0]
        best, chosen = -1.0, (pair[0], self.rows[-1])
        for k, r in plays:
            _, wide, _, variances = beliefs[k]
            smooth, link = list(variances), list(variances)
            for below in range(len(self.rows) - 2, -1, -1):
                gain = variances[below] / wide[below + 1]
                smooth[below] = variances[below] + gain * gain * (smooth[below + 1] - wide[below + 1])
                link[below] = link[below + 1] * gain
            told = link[r] * (link[r] / ((smooth[r] + self.noise[r]) * self.costs[r]))
            if told > best:
                best, chosen = told, (k, self.rows[r])
        return chosen

    def tell(self, arm, fidelity, reward):
        r = self.rows.index(fidelity)
        self.counts[r][arm] += 1
        self.raw[r][arm] += reward
        self.raw_squares[r][arm] += reward * reward
        self.raise_hopeless()
        self.fit_noise()
        if self.exact():
            self.noise = [self.floor()] * len(self.rows)
        seen = sum(any(row[k] for row in self.counts) for k in range(self.arms))
        if sum(map(sum, self.counts)) == seen:  # no second look yet
            self.start_values()
            for _ in range(5):
                self.em_step()
        else:
            self.em_step()

    def raise_hopeless(self):
        numbers = [sum(n > 0 for n in row) for row in self.counts]
        r = numbers.index(max(numbers))
        means = sorted(total / n for total, n in zip(self.raw[r], self.counts[r], strict=True) if n)
        half, quarter = means[len(means) // 2], means[len(means) // 4]
        least = half - 3 * max(means[-1] - half, half - quarter) if len(means) >= 5 else -math.inf
        for h, row in enumerate(self.counts):
            for k, n in enumerate(row):
                low = n > 0 and self.raw[h][k] / n < least
                self.sums[h][k] = least * n if low else self.raw[h][k]
                self.squares[h][k] = least * least * n if low else self.raw_squares[h][k]

    def first_means(self):
        numbers = [sum(n > 0 for n in row) for row in self.counts]
        r = numbers.index(max(numbers))
        means = [total / n for total, n in zip(self.sums[r], self.counts[r], strict=True) if n]
        start = 0.0
        for mean in means:
            start += mean
        start /= len(means)
        variance = 0.0
        for mean in means:
            variance += (mean - start) * (mean - start)
        return start, variance / len(means)

    def fit_noise(self):
        _, variance = self.first_means()
        self.noise = []
        for r in range(len(self.rows)):
            within, freedom = self.scatter(r)
            before, below = (5.0, 0.7 * self.noise[-1]) if r else (1.0, 0.05 * variance)
            self.noise.append(max((before * below + within) / max(before + freedom, 1.0), self.floor()))

    def start_values(self):
        self.start, variance = self.first_means()
        self.spread = max(variance - self.noise[0], 0.1 * variance, 0.01 * self.noise[0], self.floor())
        steps = len(self.rows) - 1
        self.shifts, self.steps = [0.0] * steps, [self.r0 * self.r0 * self.spread] * steps
        self.predicted = list(self.steps)
