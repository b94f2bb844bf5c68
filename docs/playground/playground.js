// The page: settings in, pictures out. The rules themselves are in bandits.js.
"use strict";

(() => {
  const $ = (id) => document.getElementById(id);
  const PRESETS = {
    ads: ["Ads: a minute, ten minutes, an hour", { arms: 8, costs: [1, 10, 60], biases: [0.2, 0.1, 0], binary: true, scale: 0.5, rho: 0.5, capital: 40000, seed: 5 }],
    robot: ["A robot and its simulator", { arms: 12, costs: [1, 100], biases: [0.15, 0], scale: 0.2, rho: 2, capital: 30000, seed: 3 }],
    models: ["Models on a part of the data", { arms: 16, costs: [1, 4, 16], biases: [0.15, 0.05, 0], scale: 0.05, rho: 1, capital: 2000, seed: 8 }],
    misleading: ["A simulator that misleads", { arms: 8, costs: [1, 10], biases: [0.4, 0], scale: 0.2, rho: 2, capital: 4000, misleading: true, seed: 4 }],
    one: ["One fidelity: both are the same", { arms: 6, costs: [10], biases: [0], scale: 0.3, rho: 2, capital: 5000, seed: 2 }],
  };
  const MAX_PLAYS = 200000, COLOURS = ["--f0", "--f1", "--f2", "--f3"], NAMES = ["MF-UCB", "UCB"];
  let settings, problem, runs, curves, last, timer = null;

  const number = (x) => (Number.isInteger(x) || Math.abs(x) >= 100 ? Math.round(x).toLocaleString("en") : x.toFixed(Math.abs(x) >= 10 ? 1 : 2));
  // The two cheapest of three fidelities take the first two colours, and the real thing always the same one.
  const colour = (m) => `var(${m === settings.costs.length - 1 ? COLOURS[2] : COLOURS[m === 2 ? 3 : m]})`;
  const named = (m) => (m === settings.costs.length - 1 ? `the real thing (cost ${number(settings.costs[m])})` : `a look for ${number(settings.costs[m])}`);

  // --- the problem -----------------------------------------------------------------------------------------------------
  function complaint(s) {
    if (!(s.arms >= 2 && s.arms <= 20 && Number.isInteger(s.arms))) return `Arms must be a whole number from 2 to 20, got ${s.arms}.`;
    if (!s.costs.every((c, m) => c > 0 && (!m || c > s.costs[m - 1]))) return `Costs must be above 0 and grow, got ${s.costs.join(", ")}.`;
    if (!s.biases.every((b, m) => b >= 0 && (!m || b < s.biases[m - 1]))) return `Biases must fall to 0, got ${s.biases.join(", ")}.`;
    if (!(s.rho > 0)) return `Exploration must be above 0, got ${s.rho}.`;
    if (!(s.binary || s.scale > 0)) return `Noise must be above 0, got ${s.scale}.`;
    if (!(s.capital >= s.costs[s.costs.length - 1])) return `Capital must pay for one play of the real thing, got ${s.capital}.`;
    if (s.capital / s.costs[0] > 50 * MAX_PLAYS) return `Capital is too much to be watched, got ${s.capital}.`;
    return "";
  }

  function begin(next) {
    const wrong = complaint(next);
    $("error").hidden = !wrong;
    $("error").textContent = wrong;
    if (wrong) return;
    stop();
    settings = next;
    problem = { ...settings, means: Bandits.means(settings) };
    runs = [true, false].map((multi) => new Bandits.Run(problem, multi));
    curves = runs.map(() => [[0, 0]]);
    last = [null, null];
    fill();
    draw();
  }

  const behind = () => {  // the one that has spent less and can still play
    const able = [0, 1].filter((i) => !runs[i].ended);
    return able.length === 2 ? (runs[1].spent < runs[0].spent ? 1 : 0) : able[0];
  };

  function step() {
    const i = behind();
    if (i === undefined) return false;
    const run = runs[i], cost = settings.costs[run.choose().fidelity];
    if (run.spent + cost > settings.capital || run.time > MAX_PLAYS) {
      run.ended = true;
      return behind() !== undefined;
    }
    last[i] = run.step();
    const curve = curves[i], before = curve[curve.length - 1];
    if (run.spent - before[0] >= settings.capital / 400) curve.push([run.spent, run.regret]);
    return true;
  }

  // --- running -----------------------------------------------------------------------------------------------------------
  let owed = 0;
  function frame() {
    owed += 2 ** (+$("speed").value) / 8;  // from one play in eight frames to 128 plays in each
    let going = true;
    while (owed >= 1 && going) { going = step(); owed -= 1; }
    draw();
    if (going) timer = requestAnimationFrame(frame); else stop();
  }
  function stop() {
    if (timer !== null) cancelAnimationFrame(timer);
    timer = null;
    owed = 0;
    $("run").textContent = "Run";
  }
  function toggle() {
    if (timer !== null) { stop(); return; }
    $("run").textContent = "Pause";
    timer = requestAnimationFrame(frame);
  }

  // --- pictures ----------------------------------------------------------------------------------------------------------
  const LEFT = 64, RIGHT = 376, WIDTH = 460;
  function scaleOf() {
    const all = problem.means.flat(), low = Math.min(...all), high = Math.max(...all), room = 0.25 * Math.max(high - low, 0.2) + 0.05;
    const from = low - room, to = high + room;
    return (x) => LEFT + (RIGHT - LEFT) * Math.min(1, Math.max(0, (x - from) / (to - from)));
  }

  function arms(i) {
    const run = runs[i], x = scaleOf(), top = settings.costs.length - 1, truth = problem.means[top];
    const each = Math.max(18, 8 + 7 * settings.costs.length), height = each * settings.arms + 8;
    const next = run.ended ? -1 : run.choose().arm;
    let s = `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Bounds of each arm by ${NAMES[i]}; it would play arm ${next + 1} next and recommends arm ${run.recommend() + 1}">`;
    if (next >= 0) s += `<rect class="now" x="0" y="${4 + next * each}" width="${WIDTH}" height="${each}" rx="4"/>`;
    s += `<line class="ideal" x1="${x(run.best)}" x2="${x(run.best)}" y1="2" y2="${height - 2}"/>`;
    for (let k = 0; k < settings.arms; k++) {
      const y = 4 + k * each, middle = y + each / 2;
      s += `<line class="axis" x1="0" x2="${WIDTH}" y1="${y + each}" y2="${y + each}"/><text x="4" y="${middle + 4}">arm ${k + 1}</text>`;
      run.used.forEach((m, j) => {
        if (!run.counts[m][k]) return;
        const at = y + 7.5 + j * 7 + (each - 8 - 7 * run.used.length) / 2, mean = run.mean(m, k), w = run.width(m, k), z = settings.biases[m];
        const line = (a, b, thick) => `<line x1="${x(a)}" x2="${x(b)}" y1="${at}" y2="${at}" stroke="${colour(m)}" stroke-width="${thick}"/>`;
        s += line(mean - w - z, mean + w + z, 1.2) + line(mean - w, mean + w, 4) + `<circle cx="${x(mean)}" cy="${at}" r="3" fill="${colour(m)}" stroke="var(--box)"/>`;
      });
      const d = x(truth[k]), index = run.index(k);
      if (index < Infinity) s += `<line class="index" x1="${x(index)}" x2="${x(index)}" y1="${y + 3}" y2="${y + each - 3}"/>`;
      s += `<path class="truth" d="M${d} ${middle - 5}l5 5-5 5-5-5z"/>`;
      const plays = run.used.map((m) => run.counts[m][k]).reduce((a, b) => a + b, 0);
      s += `<text x="${WIDTH - 4}" y="${middle + 4}" text-anchor="end">${plays.toLocaleString("en")}<tspan class="soft"> plays</tspan></text>`;
    }
    $(`a${i}`).innerHTML = `${s}</svg>`;
    const lost = run.regret + (run.ended ? (settings.capital - run.spent) * run.best : 0), found = run.recommend();
    $(`f${i}`).innerHTML = `<span>spent <b>${number(run.spent)}</b></span><span>plays <b>${(run.time - 1).toLocaleString("en")}</b></span><span>lost <b>${number(lost)}</b></span>` +
      (run.time > 1 ? `<span>would answer <b>arm ${found + 1}</b>${truth[found] === run.best ? ", the best" : ""}</span>` : "");
    $(`w${i}`).textContent = why(i);
  }

  function why(i) {
    const play = last[i];
    if (!play) return i ? "UCB plays the real thing alone, the arm with the highest bound first." : "MF-UCB begins with the cheapest look at each arm.";
    const arm = `Arm ${play.arm + 1}`, told = `Reward ${number(play.reward)}.`;
    if (play.index === Infinity) return `${arm} had no result yet: ${named(play.fidelity)}. ${told}`;
    const because = `${arm} had the highest bound, ${number(play.index)}.`;
    if (i) return `${because} ${told}`;
    if (play.gamma === undefined) {
      return settings.costs.length === 1 ? `${because} ${told}` : `${because} Cheaper looks have said all they can, so it got ${named(play.fidelity)}. ${told}`;
    }
    const wide = play.width === Infinity ? "there was none yet" : `its width, ${number(play.width)}, is at least γ = ${number(play.gamma)}`;
    return `${because} It got ${named(play.fidelity)}: ${wide}. ${told}`;
  }

  function regret() {
    const most = Math.max(1e-9, ...runs.map((run) => run.regret)), W = 460, H = 190, far = settings.capital;
    const x = (c) => 44 + (W - 104) * (c / far), y = (r) => H - 24 - (H - 40) * (r / most);
    let s = `<svg viewBox="0 0 ${W} ${H}" role="img" aria-label="Regret over capital: ${runs.map((run, i) => `${NAMES[i]} ${number(run.regret)}`).join(", ")}">`;
    for (const part of [0, 0.5, 1]) s += `<line class="axis" x1="44" x2="${W - 60}" y1="${y(part * most)}" y2="${y(part * most)}"/><text class="soft" x="38" y="${y(part * most) + 4}" text-anchor="end">${number(part * most)}</text>`;
    s += `<text class="soft" x="${x(0)}" y="${H - 6}">0</text><text class="soft" x="${x(far)}" y="${H - 6}" text-anchor="end">capital ${number(far)}</text>`;
    const ends = runs.map((run) => y(run.regret));
    runs.forEach((run, i) => {
      const points = [...curves[i], [run.spent, run.regret]].map(([c, r]) => `${x(c).toFixed(1)},${y(r).toFixed(1)}`).join(" ");
      const apart = Math.abs(ends[0] - ends[1]) < 14 ? (ends[i] <= ends[1 - i] && (ends[i] !== ends[1 - i] || i) ? -8 : 8) : 0;
      s += `<polyline points="${points}" fill="none" stroke="var(--${i ? "f1" : "f0"})" stroke-width="2.4"${i ? ' stroke-dasharray="6 3"' : ""}/><text x="${x(run.spent) + 6}" y="${ends[i] + 4 + apart}">${NAMES[i]}</text>`;
    });
    $("regret").innerHTML = `${s}</svg>`;
  }

  function spending() {
    const W = 460, M = settings.costs.length;
    let s = "", words = [];
    runs.forEach((run, i) => {
      let from = 84;
      const y = 8 + i * 40;
      s += `<text x="4" y="${y + 18}">${NAMES[i]}</text><rect x="84" y="${y}" width="${W - 88}" height="28" fill="none" stroke="var(--line)"/>`;
      for (let m = 0; m < M; m++) {
        const paid = run.counts[m].reduce((a, b) => a + b, 0) * settings.costs[m], wide = (W - 88) * paid / settings.capital;
        s += `<rect x="${from}" y="${y}" width="${wide}" height="28" fill="${colour(m)}"/>`;
        words.push(`${NAMES[i]} ${number(paid)} on ${named(m)}`);
        from += wide;
      }
    });
    const top = M - 1, most = Math.max(1, ...runs.flatMap((run) => run.counts[top].map((n) => n * settings.costs[top])));
    s += `<text class="soft" x="4" y="104">on each arm:</text>`;
    const each = (W - 8) / settings.arms, total = (run, k) => settings.costs.reduce((sum, cost, m) => sum + cost * run.counts[m][k], 0);
    const largest = Math.max(most, ...runs.flatMap((run) => problem.means[0].map((_, k) => total(run, k))));
    problem.means[top].forEach((mean, k) => {
      runs.forEach((run, i) => {
        let y = 186;
        for (let m = 0; m < M; m++) {
          const high = 72 * run.counts[m][k] * settings.costs[m] / largest;
          y -= high;
          s += `<rect x="${4 + k * each + (0.08 + 0.44 * i) * each}" y="${y}" width="${0.4 * each}" height="${high}" fill="${colour(m)}"/>`;
        }
      });
      s += `<text class="soft" x="${4 + (k + 0.5) * each}" y="200" text-anchor="middle">${mean === runs[0].best ? `★${k + 1}` : k + 1}</text>`;
    });
    $("spending").innerHTML = `<svg viewBox="0 0 ${W} 206" role="img" aria-label="${words.join("; ")}">${s}</svg>`;
  }

  function draw() {
    arms(0);
    arms(1);
    regret();
    spending();
    const done = behind() === undefined;
    $("run").disabled = $("step").disabled = done;
    const [ours, theirs] = runs.map((run) => run.regret + (settings.capital - run.spent) * run.best);
    $("told").textContent = !done ? (runs[0].time === 1 ? "Press Step to see one play and why it was made, or Run." : "")
      : `The capital is spent. MF-UCB lost ${number(ours)}, UCB ${number(theirs)}: ${ours < theirs ? `${number(theirs / ours)} times as much` : ours > theirs ? "here, cheap looks did not pay" : "the same"}.`;
  }

  // --- settings ------------------------------------------------------------------------------------------------------------
  function fill() {
    const form = $("form");
    for (const key of ["arms", "capital", "rho", "scale"]) form.elements[key].value = settings[key];
    form.elements.binary.value = settings.binary ? "1" : "";
    form.elements.misleading.value = settings.misleading ? "1" : "";
    form.elements.scale.disabled = !!settings.binary;
    const top = settings.costs.length - 1;
    $("rows").innerHTML = settings.costs.map((cost, m) => `<tr><th scope="row">${m === top ? "the real thing" : `look ${m + 1}`}</th>` +
      `<td><input name="cost${m}" type="number" step="any" aria-label="Cost of fidelity ${m + 1}" value="${cost}"></td>` +
      `<td><input name="bias${m}" type="number" step="any" aria-label="Bias of fidelity ${m + 1}" value="${settings.biases[m]}"${m === top ? " disabled" : ""}></td></tr>`).join("");
    $("more").disabled = settings.costs.length > 3;
    $("fewer").disabled = settings.costs.length < 2;
    $("legend").innerHTML = settings.costs.map((_, m) => `<li><i style="background:${colour(m)}"></i>${named(m)}</li>`).join("") + "<li>◇ true mean</li><li><b>|</b> index: the tightest upper bound</li>";
  }
  function read() {
    const form = $("form").elements, top = settings.costs.length - 1, value = (name) => parseFloat(form[name].value);
    begin({
      ...settings, arms: value("arms"), capital: value("capital"), rho: value("rho"), scale: value("scale"),
      binary: form.binary.value === "1", misleading: form.misleading.value === "1",
      costs: settings.costs.map((_, m) => value(`cost${m}`)), biases: settings.biases.map((_, m) => (m === top ? 0 : value(`bias${m}`))),
    });
  }

  function theme() {  // as set on the site, else as the system has it
    let chosen = "auto";
    try { chosen = localStorage.getItem("mode") || "auto"; } catch { /* a page from a file may have no storage */ }
    const dark = chosen === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches : chosen === "dark";
    document.documentElement.dataset.theme = dark ? "dark" : "light";
  }

  $("preset").innerHTML = Object.entries(PRESETS).map(([key, [name]]) => `<option value="${key}">${name}</option>`).join("");
  $("preset").addEventListener("change", () => begin({ ...PRESETS[$("preset").value][1] }));
  $("form").addEventListener("change", read);
  $("form").addEventListener("submit", (event) => event.preventDefault());
  $("step").addEventListener("click", () => { stop(); step(); draw(); });
  $("run").addEventListener("click", toggle);
  $("reset").addEventListener("click", () => begin({ ...settings }));
  $("new").addEventListener("click", () => begin({ ...settings, seed: settings.seed + 1 }));
  $("more").addEventListener("click", () => begin({ ...settings, costs: [settings.costs[0] / 10, ...settings.costs], biases: [settings.biases[0] * 2 || 0.2, ...settings.biases] }));
  $("fewer").addEventListener("click", () => begin({ ...settings, costs: settings.costs.slice(1), biases: settings.biases.slice(1) }));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", theme);
  theme();
  if (matchMedia("(max-width: 34rem)").matches) $("settings").open = false;
  const asked = new URLSearchParams(location.search).get("problem");
  $("preset").value = asked in PRESETS ? asked : "ads";
  begin({ ...PRESETS[$("preset").value][1] });
})();
