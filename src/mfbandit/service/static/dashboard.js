// Draws the capital over time from the numbers that the page brings with every update; sends filters once chosen.
"use strict";
(() => {
  let chart = null;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Times of day, or days where it took days; UTC, as everywhere on the page.
  function times(_, splits) {
    const span = splits[splits.length - 1] - splits[0], [from, to] = span > 172800 ? [5, 10] : span > 600 ? [11, 16] : [11, 19];
    return splits.map((time) => new Date(time * 1000).toISOString().slice(from, to));
  }

  function options(box, names) {
    const axis = { stroke: colour("--text"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
    return {
      width: box.clientWidth,
      height: 260,
      legend: { show: true, live: false },
      cursor: { drag: { x: false, y: false } },
      scales: { x: { time: true } },
      tzDate: (time) => uPlot.tzDate(new Date(time * 1000), "Etc/UTC"),
      axes: [{ ...axis, values: times, space: 80, label: "Time, UTC", labelSize: 20 }, { ...axis, size: 65, label: "Spent", labelSize: 20 }],
      series: [{}, ...names.map((name, i) => ({ label: name, stroke: colour(`--f${i % 6}`), width: 2, points: { show: false } }))],
    };
  }

  function draw() {
    const source = document.getElementById("spending"), box = document.getElementById("spending-chart");
    if (!source || !box) return;
    const { names, times, spent } = JSON.parse(source.dataset.series);
    box.hidden = times.length < 2; // nothing was spent yet
    if (box.hidden) return;
    if (chart && chart.root.isConnected && chart.series.length === names.length + 1) {
      chart.setData([times, ...spent]);
      return;
    }
    box.replaceChildren();
    chart = new uPlot(options(box, names), [times, ...spent], box);
  }

  function redraw() {
    chart = null;
    draw();
  }

  function reachable(yes) {
    const notice = document.getElementById("unreachable");
    if (notice) notice.hidden = yes;
  }

  document.addEventListener("DOMContentLoaded", draw);
  document.addEventListener("change", (event) => { if (event.target.matches("select[data-submit]")) event.target.form.requestSubmit(); });
  document.addEventListener("htmx:after:swap", () => { reachable(true); draw(); });
  document.addEventListener("htmx:error", () => reachable(false));
  document.addEventListener("htmx:response:error", (event) => {
    // Signed out meanwhile, or the experiment was deleted: the whole page says so.
    if ([401, 404].includes(event.detail.ctx.response.status)) location.reload();
    else reachable(false);
  });
  window.addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
})();
