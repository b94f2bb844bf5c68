"""MFAuto written out plainly, one arm and one fidelity at a time, as the rule is stated."""

import math
from typing import Any

from mfbandit import Bounded, Rate, SubGaussian
from tests.support.oracle_policies import Bayes, kl, level_ratios


class Auto(Bayes):
    """MFAuto with its chain; ``upper`` is the inverse of kl that ties are to be broken by."""

    def __init__(self, fidelities, arms, guard, upper):
        super().__init__(fidelities, arms)
        self.guard, self.upper = guard, upper
        self.biases: Any = None if fidelities.biases is None else [fidelities.known_biases[m] for m in self.rows]
        self.told: Any = None if fidelities.concentration is None else [fidelities.tails[m] for m in self.rows]
        self.looks = 5 if self.told is None else 0
        self.guarded = self.owed = self.tests = 0
        self.doubt = 0.0

    def spent(self):
        total = 0.0
        for cost, row in zip(self.costs, self.counts, strict=True):
            total += cost * sum(row)
        return total

    def tell(self, arm, fidelity, reward):
        r = self.rows.index(fidelity)
        self.counts[r][arm] += 1
        self.sums[r][arm] += reward
        self.squares[r][arm] += reward * reward
        played, spent = sum(map(sum, self.counts)), self.spent()
        if self.fitted_at is None:
            if played < self.arms + min(self.looks, self.arms):
                return
            self.start_values()
            for _ in range(5):
                self.em_step()
            self.fitted_at = spent
            self.doubt = self.doubts()
        elif self.owed and r == len(self.rows) - 1:
            self.guarded += 1
        looks = spent / self.costs[-1] / self.arms
        due = {"light": 3 * math.sqrt(looks / self.arms), "strict": 2 * math.sqrt(looks * self.arms), "off": 0}
        self.owed = max(0, math.floor(due[self.guard]) - self.guarded)
        if self.fitted_at < spent and spent >= 1.01 * self.fitted_at:
            self.fit_noise()
            self.em_step()
            self.fitted_at = spent
            self.doubt = self.doubts()
        blind, late = min(self.doubt / 0.6, 1), min(looks / (2 * self.arms), 1)
        early = 2 * (blind * blind * blind) * math.sqrt(looks * self.arms)
        self.tests = math.floor(min(early + late * late * self.arms, self.arms)) if self.guard == "light" else 0

    def doubts(self):
        """How little lower fidelities tell of the highest."""
        found = [self.believed(k) for k in range(self.arms)]
        unsure = [deviation * deviation for k, (_, _, _, deviation) in enumerate(found) if not self.counts[-1][k]]
        mean = 0.0
        for value, *_ in found:
            mean += value
        mean /= self.arms
        spread = away = 0.0
        for value, *_ in found:
            spread += (value - mean) * (value - mean)
        for variance in unsure:
            away += variance
        spread, away = spread / self.arms, away / max(len(unsure), 1)
        return away / (away + spread) if away + spread else 0.0

    def believed(self, k):
        """Value, least and largest plausible mean, and deviation."""
        _, _, means, variances = self.filter(k)
        seen = [r for r in range(len(self.rows)) if self.counts[r][k]]
        biases = self.biases or [0.0] * len(self.rows)
        mean = [self.sums[r][k] / self.counts[r][k] if r in seen else 0 for r in range(len(self.rows))]
        low = max(mean[r] - biases[r] - 2 * self.width(r, k) for r in seen)
        high = min(mean[r] + biases[r] + 2 * self.width(r, k) for r in seen)
        value = means[-1]
        if self.biases is not None:
            value = (low + high) / 2 if low > high else min(max(value, low), high)
        return value, low, high, math.sqrt(variances[-1])

    def fit_noise(self):
        if self.told is None:
            super().fit_noise()
            return
        self.noise = []
        for tail in self.told:
            noise = tail.scale * tail.scale if isinstance(tail, SubGaussian) else 0.25 * (tail.high - tail.low) ** 2
            self.noise.append(max(noise, self.floor()))

    def ranged(self, r):
        return self.told is not None and isinstance(self.told[r], (Bounded, Rate))

    def guesses(self, spread):
        if self.biases is None:
            return [0.25 * spread] * (len(self.rows) - 1)
        return [(a * a + b * b) / 3 for a, b in zip(self.biases, self.biases[1:], strict=False)]

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
        first = self.noise[0]
        if self.ranged(0):
            span = self.told[0].high - self.told[0].low
            p = min(max((self.start - self.told[0].low) / span, 0.02), 0.98)
            first = span * span * p * (1 - p)
        self.spread = max(variance - first, 0.1 * variance, 0.01 * first, self.floor())
        self.shifts = [0.0] * (len(self.rows) - 1)
        self.steps = self.guesses(self.spread)
        self.predicted = list(self.steps)

    def filter(self, k):
        """Predicted means and variances, filtered ones; ``self.each`` is the noise of one reward at each row."""
        self.inflation = 1.0
        found = self.one_pass(k)
        n = self.counts[-1][k]
        if self.biases is None and len(self.rows) > 1 and n:
            before, wide, _, _ = found
            off = self.sums[-1][k] / n - before[-1]
            self.inflation = max(1.0, (4 + off * off / (wide[-1] + self.each[-1] / n)) / 5)
            found = self.one_pass(k)
        return found

    def one_pass(self, k):
        mean, variance = self.start, self.spread
        before, wide, means, variances, self.each = [], [], [], [], []
        for r in range(len(self.rows)):
            before.append(mean)
            wide.append(variance)
            n = self.counts[r][k]
            noise = self.noise[r]
            if self.ranged(r):
                low, span = self.told[r].low, self.told[r].high - self.told[r].low
                q = min(max((mean - low) / span, 0.02), 0.98)
                p = ((self.sums[r][k] - n * low) / span + 2 * q) / (n + 2)
                noise = max(span * span * p * (1 - p), 1e-4 * span * span)
            self.each.append(noise)
            seen = self.sums[r][k] / n if n else 0.0
            weight = variance * n + noise
            mean = mean + variance * n / weight * (seen - mean)
            variance = variance * (noise / weight)
            means.append(mean)
            variances.append(variance)
            if r < len(self.rows) - 1:
                mean, variance = mean + self.shifts[r], variance + self.predicted[r] * self.inflation
        return before, wide, means, variances

    def em_step(self):
        floor, last = self.floor(), len(self.rows) - 1
        smooth, unsure, gains, weights = [], [], [], []
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
            weights.append(self.inflation)
        start, spread = 0.0, 0.0
        for k in range(self.arms):
            start += smooth[k][0]
        start /= self.arms
        for k in range(self.arms):
            spread += (smooth[k][0] - start) * (smooth[k][0] - start) + unsure[k][0]
        spread = max(spread / self.arms, 0.01 * self.noise[0], floor)
        for r, guess in enumerate(self.guesses(spread)):
            above = [k for k in range(self.arms) if any(self.counts[h][k] for h in range(r + 1, last + 1))]
            moved = number = squares = 0.0
            for k in above:
                moved += (smooth[k][r + 1] - smooth[k][r]) / weights[k]
                number += 1 / weights[k]
            shift = moved / (number + self.steps[r] / self.spread)
            for k in above:
                off = smooth[k][r + 1] - smooth[k][r] - shift
                rest = unsure[k][r + 1] * (1 - 2 * gains[k][r]) + unsure[k][r]
                squares += (off * off + max(rest, 0.0)) / weights[k]
            self.shifts[r] = shift
            self.steps[r] = max((2.0 * guess + squares) / (2.0 + len(above)), floor)
            self.predicted[r] = self.steps[r] * (1 + 1 / (len(above) + 1.0))
        self.start, self.spread = start, spread

    def width(self, r, k):
        """Deviation of a mean of results."""
        n = self.counts[r][k]
        if self.ranged(r):
            low, span = self.told[r].low, self.told[r].high - self.told[r].low
            scaled = min(max((self.sums[r][k] / n - low) / span, 0.0), 1.0)
            p = (scaled * n + 0.5) / (n + 1)
            return span * math.sqrt(p * (1 - p) / n)
        return self.scale(r) / math.sqrt(n)

    def scale(self, r):
        return math.sqrt(self.noise[r]) if self.told is None else self.told[r].scale

    def information(self, r, x, y):
        if self.ranged(r):
            low, span = self.told[r].low, self.told[r].high - self.told[r].low
            x, y = (min(max((v - low) / span, 0.0), 1.0) for v in (x, y))
            return kl(x, y) if y > x else 0.0
        return (y - x) ** 2 / (2 * self.scale(r) * self.scale(r)) if y > x else 0.0

    def bound(self, k, effort):
        best = math.inf
        for r, bias in enumerate(self.biases):
            n = self.counts[r][k]
            if n:
                mean = self.sums[r][k] / n
                if self.ranged(r):
                    low, span = self.told[r].low, self.told[r].high - self.told[r].low
                    top = low + span * self.upper(min(max((mean - low) / span, 0.0), 1.0), effort / n)
                else:
                    top = mean + self.scale(r) * math.sqrt(2 * effort / n)
                best = min(best, top + bias)
        if self.told is not None and all(self.ranged(r) for r in range(len(self.rows))):
            best = min(best, max(tail.high for tail in self.told))
        return best

    def far(self, k, ratio):
        if self.biases is None:
            return math.sqrt(2 * math.log(ratio))
        nu = 8.0 * (1 + self.counts[-1][k])
        return math.sqrt(nu * math.expm1(min(2 * math.log(ratio) / nu, 600.0)))

    def choose(self):
        if sum(map(sum, self.counts)) < self.arms:
            return sum(map(sum, self.counts)), self.rows[0]
        if self.fitted_at is None:
            once = [self.sums[0][k] if self.counts[0][k] == 1 else -math.inf for k in range(self.arms)]
            return once.index(max(once)), self.rows[0]
        padded = [[0] * self.arms for _ in self.all_costs]
        for row, m in enumerate(self.rows):
            padded[m] = self.counts[row]
        ratios = [1 + ratio for ratio in level_ratios(padded, self.all_costs)]
        lows, highs, values, deviations, index = [], [], [], [], []
        for k in range(self.arms):
            value, low, high, deviation = self.believed(k)
            lows.append(low)
            highs.append(high)
            values.append(value)
            deviations.append(deviation)
            index.append(value + deviation * self.far(k, ratios[k]))
            if self.biases is not None:
                index[k] = min(index[k], self.bound(k, math.log(ratios[k])))
        if self.owed:
            return self.guards_arm(values, lows, highs), self.rows[-1]
        untested = [k for k in self.not_ruled_out(lows, highs) if not self.counts[-1][k]]
        if untested and sum(n > 0 for n in self.counts[-1]) < self.tests:
            return max(untested, key=lambda k: (values[k], -k)), self.rows[-1]
        arm, leader = index.index(max(index)), values.index(max(values))
        if arm == leader and self.biases is None:
            return arm, self.rows[-1]
        row = -1
        if arm != leader and self.biases is not None:
            row = self.by_bounds(arm, min(values[leader], index[arm]), ratios[arm], values[arm], deviations[arm])
        return arm, self.rows[self.most_telling(arm) if row < 0 else row]

    def not_ruled_out(self, lows, highs):
        every = list(range(self.arms))
        return every if self.biases is None else [k for k in every if highs[k] >= max(lows)] or every

    def guards_arm(self, values, lows, highs):
        allowed = self.not_ruled_out(lows, highs)
        untested = [k for k in allowed if self.counts[-1][k] == 0]
        if untested:
            return max(untested, key=lambda k: (values[k], -k))
        effort = math.sqrt(2 * math.log(sum(self.counts[-1]) + 2.0))
        last = len(self.rows) - 1
        return max(allowed, key=lambda k: (self.sums[-1][k] / self.counts[-1][k] + effort * self.width(last, k), -k))

    def by_bounds(self, arm, target, ratio, value, deviation):
        best, chosen = math.inf, -1
        for r, bias in enumerate(self.biases):
            n = self.counts[r][arm]
            guess = self.sums[r][arm] / n - self.width(r, arm) if n else value
            rate = self.information(r, guess, target - bias)
            if rate > 0 and max(math.log(ratio) / rate - n, 1.0) * self.costs[r] < best:
                best, chosen = max(math.log(ratio) / rate - n, 1.0) * self.costs[r], r
        if target <= value:
            return chosen
        self.filter(arm)
        allowed = (target - value) / self.far(arm, ratio)
        plays = max(self.each[-1] * (1 / (allowed * allowed) - 1 / (deviation * deviation)), 1.0)
        return chosen if best < 0.3 * (plays * self.costs[-1]) else -1

    def most_telling(self, arm):
        _, wide, _, variances = self.filter(arm)
        smooth, link = list(variances), list(variances)
        for r in range(len(self.rows) - 2, -1, -1):
            gain = variances[r] / wide[r + 1]
            smooth[r] = variances[r] + gain * gain * (smooth[r + 1] - wide[r + 1])
            link[r] = link[r + 1] * gain
        worth = [link[r] * (link[r] / ((smooth[r] + self.each[r]) * cost)) for r, cost in enumerate(self.costs)]
        return worth.index(max(worth))
