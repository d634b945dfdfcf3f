// What pages do in a browser beyond plain HTML: curves, the reader's own time on hover. Everything else works without.
"use strict";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function localTimes(root) {
  for (const time of root.querySelectorAll("time:not([title])")) {
    time.title = new Date(time.dateTime).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }) + ", your time";
  }
}

// uPlot's rows: least distance of ticks in seconds, their text, and the text where a year, month, day, ... begins
const CLOCK = [
  [86400 * 28, "{MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [86400, "{DD} {MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [3600, "{HH}:{mm}", "\n{DD} {MMM}", null, "\n{DD} {MMM}", null, null, null, 1],
];

function stacked(values) {
  const sums = [];
  let below = null;
  for (const series of values) {
    below = series.map((value, at) => (value === null ? null : value + (below === null ? 0 : below[at] ?? 0)));
    sums.push(below);
  }
  return sums;
}

function draw(figure) {
  const table = figure.querySelector("table");
  const plot = figure.querySelector(".plot");
  if (!table || !window.uPlot || plot.childElementCount) return;
  const heads = [...table.tHead.rows[0].cells].slice(1);
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 2) return;
  const hours = rows.map((row) => Number(row.cells[0].dataset.at));
  const values = heads.map((_, at) => rows.map((row) => (row.cells[at + 1].textContent === "" ? null : Number(row.cells[at + 1].textContent.replace(/,/g, "")))));
  const isStacked = "stacked" in figure.dataset;
  const isRange = (head) => head.dataset.kind === "expected"; // all from this value on, up to the top
  const unit = figure.dataset.unit;
  const marks = [...figure.querySelectorAll(".marks li")].map((one) => ({ at: Number(one.dataset.at), kind: one.dataset.kind }));
  const isNear = figure.dataset.low === "near"; // what changes little is looked at from near; the axis says where it begins
  const low = figure.dataset.low === undefined || isNear ? null : Number(figure.dataset.low);
  const floor = (min) => (isNear ? Math.max(0, Math.floor(((min ?? 0) - 3) / 10) * 10) : Math.min(0, min ?? 0));
  const high = figure.dataset.high === undefined ? null : Number(figure.dataset.high);
  const limits = (figure.dataset.limits ?? "").split(" ").filter(Boolean).map(Number);
  const drawn = isStacked ? stacked(values) : values;
  const newest = Math.max(0, rows.findLastIndex((_, at) => values.some((series) => series[at] !== null))); // told where nobody points
  const options = {
    width: plot.clientWidth,
    height: Number(figure.dataset.height ?? 180),
    tzDate: (at) => uPlot.tzDate(new Date(at * 1e3), "Etc/UTC"),
    scales: { x: { time: true }, y: { range: (_, min, max) => [low ?? floor(min), high ?? Math.max(1e-9, (max ?? 1) * 1.05)] } },
    axes: [
      { stroke: colour("dim"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line") }, font: "11px system-ui", values: CLOCK },
      { stroke: colour("dim"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line") }, font: "11px system-ui", size: 56, values: (_, ticks) => ticks.map((tick) => `${tick.toLocaleString("en")}${unit}`) },
    ],
    series: [
      { label: "hour", value: (_, __, ___, index) => new Date(hours[index ?? newest] * 1e3).toISOString().slice(0, 16).replace("T", " ") + " UTC" },
      ...heads.map((head, at) => ({
        label: head.textContent,
        stroke: colour(head.dataset.kind) || colour("accent"),
        fill: isStacked ? colour(head.dataset.kind) + "99" : isRange(head) ? colour(head.dataset.kind) + "33" : undefined,
        fillTo: isRange(head) ? (u) => u.scales.y.max : undefined,
        width: isStacked || isRange(head) ? 1 : 1.75,
        points: { show: rows.length < 30 && !isRange(head), size: 4 },
        value: (_, __, ___, index) => {
          const value = values[at][index ?? newest];
          return value === null ? "–" : `${value.toLocaleString("en", { maximumSignificantDigits: 4 })}${unit}`;
        },
      })),
    ],
    bands: isStacked ? heads.slice(1).map((_, at) => ({ series: [at + 2, at + 1] })) : [],
    cursor: { y: false, sync: { key: "pages" } },
    hooks: {
      draw: [(u) => {
        for (const limit of limits) {
          const y = Math.round(u.valToPos(limit, "y", true));
          if (y < u.bbox.top || y > u.bbox.top + u.bbox.height) continue;
          u.ctx.save();
          u.ctx.strokeStyle = colour("ink");
          u.ctx.setLineDash([2, 4]);
          u.ctx.beginPath();
          u.ctx.moveTo(u.bbox.left, y);
          u.ctx.lineTo(u.bbox.left + u.bbox.width, y);
          u.ctx.stroke();
          u.ctx.restore();
        }
        for (const mark of marks) {
          const x = Math.round(u.valToPos(mark.at, "x", true));
          if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
          u.ctx.save();
          u.ctx.strokeStyle = colour(`mark-${mark.kind.split(" ")[0]}`) || colour("dim");
          u.ctx.setLineDash([4, 3]);
          u.ctx.beginPath();
          u.ctx.moveTo(x, u.bbox.top);
          u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
          u.ctx.stroke();
          u.ctx.restore();
        }
      }],
    },
  };
  figure.plotted = new uPlot(options, [hours, ...drawn], plot);
  figure.plotted.setLegend({ idx: newest });
  plot.tabIndex = 0;
  plot.setAttribute("role", "group");
  plot.setAttribute("aria-label", `${figure.querySelector("figcaption").textContent}: left and right go from hour to hour`);
  plot.querySelector(".u-legend").setAttribute("aria-live", "polite");
  let place = newest;
  plot.onkeydown = (event) => {
    const places = { ArrowLeft: place - 1, ArrowRight: place + 1, PageUp: place - 24, PageDown: place + 24, Home: 0, End: rows.length - 1 };
    if (!(event.key in places) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    place = Math.min(rows.length - 1, Math.max(0, places[event.key]));
    figure.plotted.setCursor({ left: figure.plotted.valToPos(hours[place], "x"), top: 0 });
  };
  plot.onblur = () => {
    place = newest;
    figure.plotted.setCursor({ left: -10, top: -10 });
  };
}

function redrawn(figure) {
  figure.plotted?.destroy();
  figure.querySelector(".plot").replaceChildren();
  draw(figure);
}

function redraw() {
  for (const figure of document.querySelectorAll("figure.curve")) redrawn(figure);
}

function prepared(root) {
  localTimes(root);
  for (const figure of root.querySelectorAll("figure.curve")) draw(figure);
}

document.addEventListener("DOMContentLoaded", () => {
  document.documentElement.classList.add("scripted");
  prepared(document);
  let waiting;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 150);
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  for (const event of ["htmx:after:swap", "htmx:afterSwap"]) document.body.addEventListener(event, () => prepared(document));
});
