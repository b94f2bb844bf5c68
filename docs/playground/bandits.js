// UCB and MF-UCB as in src/mfbandit/policies, with the same order of operations: they make the package's plays.
// No page, no clock, no chance: what a play gives is a function of seed, arm, fidelity and its number.
"use strict";

const Bandits = (() => {
  // --- the logarithm of 1, 2, 3, ...: Math.log differs from Python's at one number in a hundred. ---------------------
  // Twice the precision of a number: [high, low], whose sum is meant.
  const twoSum = (a, b) => { const s = a + b, c = s - a; return [s, (a - (s - c)) + (b - c)]; };
  const split = (a) => { const c = 134217729 * a, high = c - (c - a); return [high, a - high]; };
  const twoProduct = (a, b) => {
    const p = a * b, [ah, al] = split(a), [bh, bl] = split(b);
    return [p, ((ah * bh - p) + ah * bl + al * bh) + al * bl];
  };
  const add = ([a, b], [c, d]) => { const [s, e] = twoSum(a, c); return twoSum(s, e + b + d); };
  const multiply = ([a, b], [c, d]) => { const [p, e] = twoProduct(a, c); return twoSum(p, e + a * d + b * c); };
  const inverse = (n) => { const high = 1 / n, [p, e] = twoProduct(high, n); return twoSum(high, ((1 - p) - e) / n); };

  const logs = [[NaN, 0], [0, 0]];
  const log = (t) => {
    while (logs.length <= t) {  // log(t + 1) = log(t) + 2 (z + z³/3 + z⁵/5 + ...) with z = 1/(2t + 1)
      const z = inverse(2 * logs.length - 1), square = multiply(z, z);
      let power = z, sum = z;
      for (let n = 3; Math.abs(power[0]) > 1e-34; n += 2) {
        power = multiply(power, square);
        sum = add(sum, multiply(power, inverse(n)));
      }
      logs.push(add(logs[logs.length - 1], [2 * sum[0], 2 * sum[1]]));
    }
    return logs[t][0];
  };

  // --- chance --------------------------------------------------------------------------------------------------------
  const mix = (h, value) => {
    h = Math.imul(h ^ value, 0x9e3779b1);
    h = Math.imul(h ^ (h >>> 15), 0x85ebca6b);
    return h ^ (h >>> 13);
  };
  const uniform = (...numbers) => (mix(numbers.reduce(mix, 1), 77) >>> 0) / 4294967296;

  // --- problems: {costs, biases, means (a row for each fidelity), scale or binary, rho, seed} ---------------------------
  const means = ({ arms, biases, binary, misleading, seed }) => {
    const best = Array.from({ length: arms }, (_, k) => 0.1 + 0.8 * uniform(seed, 1, k));
    const order = best.map((_, k) => k).sort((a, b) => best[a] - best[b]);
    const rank = best.map((_, k) => (arms > 1 ? order.indexOf(k) / (arms - 1) : 0));
    return biases.map((bias, m) => best.map((mean, k) => {
      const shift = misleading ? 1 - 2 * rank[k] : 2 * uniform(seed, 2, m, k) - 1;
      const shifted = mean + bias * shift;
      return binary ? Math.min(1, Math.max(0, shifted)) : shifted;
    }));
  };
  // Twelve uniform numbers are sub-Gaussian with variance 1, and are added up alike everywhere.
  const draw = (problem, arm, fidelity, n) => {
    const mean = problem.means[fidelity][arm];
    if (problem.binary) return uniform(problem.seed, 3, fidelity, arm, n) < mean ? 1 : 0;
    let sum = 0;
    for (let i = 0; i < 12; i++) sum += uniform(problem.seed, 3, fidelity, arm, n, i);
    return mean + problem.scale * (sum - 6);
  };

  // --- the two rules ---------------------------------------------------------------------------------------------------
  class Run {
    constructor(problem, multi) {
      const M = problem.costs.length, K = problem.means[0].length;
      this.problem = problem;
      this.used = multi ? problem.costs.map((_, m) => m) : [M - 1];
      this.counts = problem.costs.map(() => new Array(K).fill(0));
      this.sums = problem.costs.map(() => new Array(K).fill(0));
      this.scale = problem.binary ? 0.5 : problem.scale;
      this.best = Math.max(...problem.means[M - 1]);
      this.time = 1;
      this.spent = 0;
      this.regret = 0;
      const psi = (x) => x * x / (2 * this.scale * this.scale);
      const inverse = (y) => this.scale * Math.sqrt(2 * y);
      this.gammas = problem.costs.slice(0, -1).map((cost, m) =>  // eq. 4
        inverse((cost / problem.costs[m + 1]) * psi(problem.biases[m])));
    }

    width(m, k) {
      if (this.counts[m][k] === 0) return Infinity;
      const u = Math.sqrt(log(this.time));
      return u * (this.scale * Math.sqrt(2 * this.problem.rho) / Math.sqrt(this.counts[m][k]));
    }

    mean(m, k) { return this.counts[m][k] ? this.sums[m][k] / this.counts[m][k] : NaN; }

    upper(m, k) {
      return this.counts[m][k] ? (this.mean(m, k) + this.problem.biases[m]) + this.width(m, k) : Infinity;
    }

    index(k) { return Math.min(...this.used.map((m) => this.upper(m, k))); }  // eq. 3

    lower(k) {
      return Math.max(...this.used.map((m) =>
        this.counts[m][k] ? (this.mean(m, k) - this.problem.biases[m]) - this.width(m, k) : -Infinity));
    }

    choose() {
      let arm = 0, index = -Infinity;
      for (let k = 0; k < this.counts[0].length; k++) {
        const bound = this.index(k);
        if (bound > index) [arm, index] = [k, bound];
      }
      const top = this.problem.costs.length - 1;
      const fidelity = this.used.find((m) => m === top || this.width(m, arm) >= this.gammas[m]);
      return { arm, fidelity, index, width: this.width(fidelity, arm), gamma: this.gammas[fidelity] };
    }

    recommend() {
      let best = 0, bound = -Infinity;
      for (let k = 0; k < this.counts[0].length; k++) if (this.lower(k) > bound) [best, bound] = [k, this.lower(k)];
      return best;
    }

    step() {
      const play = this.choose(), { arm, fidelity } = play;
      play.cost = this.problem.costs[fidelity];
      play.reward = draw(this.problem, arm, fidelity, this.counts[fidelity][arm]);
      this.counts[fidelity][arm] += 1;
      this.sums[fidelity][arm] += play.reward;
      this.time += 1;
      this.spent += play.cost;
      this.regret += play.cost * (this.best - this.problem.means[this.problem.costs.length - 1][arm]);
      return play;
    }
  }

  return { Run, means, log };
})();
