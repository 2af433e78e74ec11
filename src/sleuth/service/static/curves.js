// Curves of one or several runs, drawn again while they train.
import { alertBox, el, number, svg } from "./dom.js";
import { file, metricsOf } from "./source.js";

const CHARTS = [
  ["Reward, with 95 % interval", "reward/total", 1], ["Live groups, %", "live", 100], ["Right answers, %", "rollouts/right", 100], ["Valid format, %", "rollouts/valid_format", 100],
  ["Response length, tokens", "rollouts/response_length", 1], ["Searches", "rollouts/searches", 1], ["KL to the reference", "update/kl", 1],
  ["Entropy", "update/entropy", 1], ["Loss", "update/loss", 1], ["Dev questions right, %", "dev/em", 100], ["Refused, %", "rollouts/refused", 100],
];
const WIDTH = 360;
const LEFT = 56; // Room for a label such as −0.00554.
const HEIGHT = 170;
const POLL_MS = 2000;

export function curvesView(runs) {
  const known = runs.map((run) => ({ ...run, rows: [] }));
  const heads = el("div", { class: "columns" });
  const charts = el("div", { class: "charts" });
  const problem = el("div", {});

  async function poll() {
    try {
      const found = await Promise.all(known.map((_, place) => metricsOf(place)));
      const isNew = found.some((each, place) => each.rows.length !== known[place].rows.length || each.running !== known[place].running);
      found.forEach((each, place) => Object.assign(known[place], each));
      if (isNew || !charts.childElementCount) draw();
      problem.replaceChildren();
    } catch (error) {
      problem.replaceChildren(alertBox(`No new figures: ${error.message}`));
    }
    if (!file) window.setTimeout(poll, POLL_MS);
  }

  function draw() {
    heads.replaceChildren(...known.map(runCard));
    const phases = known.map((run) => mainPhase(run.rows));
    const parts = new Set(phases.flat().flatMap((row) => Object.keys(row)).filter((name) => /^reward\/(?!total|zero_variance)/.test(name) && !name.endsWith("_se")));
    const wanted = [...CHARTS.slice(0, 1), ...[...parts].map((name) => [`Reward: ${name.slice(7)}`, name, 1]), ...CHARTS.slice(1)];
    charts.replaceChildren(...wanted.map(([label, name, factor]) => chart(label, phases.map((rows) => points(rows, name, factor)), known)).filter(Boolean));
    if (!charts.childElementCount) charts.append(el("p", {}, "No step has been logged yet."));
  }

  poll();
  return el("section", { "aria-label": "Training" }, problem, heads, charts);
}

function mainPhase(rows) {
  const names = rows.map((row) => row.phase).filter((name) => name !== "warm_start");
  const chosen = names.length ? names[names.length - 1] : "warm_start";
  return rows.filter((row) => row.phase === chosen);
}

function points(rows, name, factor) {
  return rows.flatMap((row) => {
    const value = name === "live" && row["reward/zero_variance"] != null ? 1 - row["reward/zero_variance"] : row[name];
    if (!Number.isFinite(value)) return [];
    const error = row[`${name}_se`];
    const half = Number.isFinite(error) ? 1.96 * error : 0;
    return [{ x: row.step, y: factor * value, low: factor * (value - half), high: factor * (value + half) }];
  });
}

function runCard(run, place) {
  const rows = mainPhase(run.rows);
  const last = rows[rows.length - 1];
  const lines = [];
  if (last) {
    const left = Math.max(0, run.steps - last.step);
    const recent = rows.slice(-5).map((row) => row["time/step_s"]).filter(Number.isFinite);
    const each = recent.reduce((sum, seconds) => sum + seconds, 0) / Math.max(1, recent.length);
    lines.push(`Step ${last.step}${run.steps ? ` of ${run.steps}` : ""} (${String(last.phase).replace("_", " ")})`);
    if (run.collapse) lines.push(`stopped because ${run.collapse}`);
    else if (left && !run.running) lines.push("not running");
    else if (left && recent.length) lines.push(`about ${time(left * each)} left`);
    else if (run.steps && !left) lines.push("finished");
  }
  return el("div", { class: "card" }, el("h2", {}, el("span", { class: `k${place % 4}`, "aria-hidden": "true" }, "● "), run.name),
    el("p", { class: "soft" }, run.recipe), el("p", { role: "status" }, lines.join(", ") || "no steps yet"));
}

function time(seconds) {
  return seconds < 90 ? `${Math.round(seconds)} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${number(seconds / 3600)} h`;
}

function chart(label, lines, runs) {
  const all = lines.flat();
  if (!all.length) return null;
  const [x0, x1] = [Math.min(...all.map((p) => p.x)), Math.max(...all.map((p) => p.x))];
  let [y0, y1] = [Math.min(...all.map((p) => p.low)), Math.max(...all.map((p) => p.high))];
  if (y1 - y0 < 1e-9) [y0, y1] = [y0 - 0.5, y1 + 0.5];
  const x = (value) => LEFT + ((value - x0) / Math.max(1, x1 - x0)) * (WIDTH - LEFT - 10);
  const y = (value) => HEIGHT - 24 - ((value - y0) / (y1 - y0)) * (HEIGHT - 36);
  const path = (list) => list.map((p, i) => `${i ? "L" : "M"}${x(p.x).toFixed(1)},${y(p.y).toFixed(1)}`).join("");
  const drawn = lines.flatMap((list, place) => {
    if (!list.length) return [];
    const colour = `c${place % 4}`;
    const edge = [...list.map((p) => [p.x, p.high]), ...[...list].reverse().map((p) => [p.x, p.low])];
    const band = svg("polygon", { class: `band ${colour}`, points: edge.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(" ") });
    const end = list[list.length - 1];
    return [band, svg("path", { class: `line ${colour}`, d: path(list) }), svg("circle", { class: `dot ${colour}`, cx: x(end.x), cy: y(end.y), r: 3 })];
  });
  const axes = [
    svg("line", { class: "axis", x1: LEFT, x2: WIDTH - 10, y1: HEIGHT - 24, y2: HEIGHT - 24 }), svg("line", { class: "axis", x1: LEFT, x2: LEFT, y1: 12, y2: HEIGHT - 24 }),
    svg("text", { x: LEFT - 4, y: 18, "text-anchor": "end" }, number(y1)), svg("text", { x: LEFT - 4, y: HEIGHT - 24, "text-anchor": "end" }, number(y0)),
    svg("text", { x: LEFT, y: HEIGHT - 8 }, `step ${x0}`), svg("text", { x: WIDTH - 10, y: HEIGHT - 8, "text-anchor": "end" }, String(x1)),
  ];
  const values = lines.map((list, place) => (list.length ? `${runs[place].name}: ${number(list[0].y)} to ${number(list[list.length - 1].y)}` : "")).filter(Boolean).join("; ");
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${label}. ${values}` }, ...axes, ...drawn);
  return el("figure", { class: "card" }, el("figcaption", {}, label), picture, el("p", { class: "soft" }, values));
}
