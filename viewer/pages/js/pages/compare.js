// Two runs, steps or services side by side: did a stage become slower, and can one tell?

import { ask, isStatic } from "../api.js";
import { stageColor, statusClass } from "../color.js";
import { fill, h, svg, tip } from "../dom.js";
import { count, duration, percent, plain } from "../format.js";
import { change, link } from "../router.js";
import { table } from "../table.js";
import { stageName } from "./overview.js";

/** @typedef {import("../main.js").Context} Context */

/** @param {HTMLElement} root @param {Context} context @returns {Promise<import("../main.js").Shown>} */
export async function comparePage(root, context) {
  const draw = async (/** @type {Context} */ { params, signal }) => {
    const answer = await ask("compare", { a: params.get("a"), b: params.get("b") }, signal);
    const focused = document.activeElement?.id;
    fill(root, sides(answer), answer.comparison === null ? h("section", null, h("p", { class: "none" }, "There is only one run, one step and one service: nothing to compare. Open the directories of two runs together: ", h("code", null, "stagetrace-viewer serve run-a run-b"), "."))
      : [verdicts(answer.comparison), comparedStages(answer), comparedStatuses(answer.comparison), comparedErrors(answer.comparison)]);
    if (focused === "side-a" || focused === "side-b") document.getElementById(focused)?.focus();
  };
  await draw(context);
  return { refresh: draw };
}

/** What stands on either side. @param {any} answer */
function sides({ choices, a, b, comparison }) {
  const side = (/** @type {"a" | "b"} */ name, /** @type {string | null} */ chosen) => {
    const group = (/** @type {string} */ title, /** @type {string} */ kind, /** @type {string[]} */ all) => all.length > 0
      && h("optgroup", { label: title }, [...all].reverse().map((one) => h("option", { value: `${kind}:${one}`, selected: `${kind}:${one}` === chosen }, `${kind} ${one}`)));
    const select = h("select", { id: `side-${name}`, disabled: isStatic, onchange: () => change({ a, b, [name]: select.value }) },
      h("option", { value: "all", selected: chosen === "all" }, "all samples"), group("runs", "run", choices.runs), group("steps", "step", choices.steps), group("services", "service", choices.services));
    const run = comparison?.[name];
    return h("div", { class: `side side-${name}` }, h("label", null, h("b", null, name.toUpperCase()), " ", select),
      run && h("span", { class: "none" }, `${count(run.samples)} samples, ${count(run.finished_spans)} ended spans`));
  };
  return h("section", { class: "sides" }, side("a", a), h("button", { title: "the other way round", disabled: isStatic, onclick: () => change({ a: b, b: a }), "aria-label": "swap" }, "⇄"), side("b", b),
    isStatic && h("span", { class: "none" }, "a saved page has each step beside the one before it"));
}

/** @type {Record<string, string>} */
const VERDICTS = { slower: "slower", faster: "faster", same: "same", too_few: "too few spans", only_in_a: "only in A", only_in_b: "only in B" };

/** @param {any} comparison */
function verdicts({ stages }) {
  const counts = Object.keys(VERDICTS).map((verdict) => [verdict, stages.filter((/** @type {any} */ one) => one.verdict === verdict).length]);
  return h("div", { class: "cards" }, counts.filter(([, value]) => Number(value) > 0).map(([verdict, value]) =>
    h("div", { class: `card ${verdict === "slower" ? "alarm" : ""}` }, h("b", null, count(Number(value))), h("span", null, `stages ${VERDICTS[verdict]}`))));
}

/** @param {any} answer */
function comparedStages({ comparison, spreads }) {
  const rows = comparison.stages.map((/** @type {any} */ one, /** @type {number} */ at) => ({ ...one, spreads: spreads[at] }));
  const order = Object.keys(VERDICTS);
  rows.sort((/** @type {any} */ one, /** @type {any} */ other) => order.indexOf(one.verdict) - order.indexOf(other.verdict) || Math.abs(relative(other) ?? 0) - Math.abs(relative(one) ?? 0));
  const ends = rows.flatMap((/** @type {any} */ row) => [relative(row), ...bounds(row)].filter((value) => value !== null).map((value) => Math.abs(Number(value))));
  const most = Math.min(2, Math.max(0.05, ...ends));
  const known = rows.flatMap((/** @type {any} */ row) => row.spreads.filter((/** @type {any} */ one) => one !== null));
  const range = { from: Math.min(...known.map((/** @type {any} */ one) => one.from_ns)), to: Math.max(...known.map((/** @type {any} */ one) => one.from_ns * 2 ** (one.bars.length / 2))) };
  const both = (/** @type {any} */ row, /** @type {(side: any) => import("../dom.js").Child} */ cell) => [row.a, row.b].map((side, at) => h("div", { class: at === 0 ? "of-a" : "of-b" }, side === null ? "–" : cell(side)));
  return h("section", null, h("h2", null, "Stages, A and below it B"),
    table([
      { title: "stage", cell: (row) => h("a", { href: link("stages", { stage: row.stage }) }, stageName(row.stage)) },
      { title: "verdict", cell: (row) => h("span", { class: `verdict verdict-${row.verdict}` }, VERDICTS[row.verdict]) },
      { title: `median, by what part of A's (scale ±${percent(most)})`, hint: "the whiskers are the 95 % confidence interval", cell: (row) => differenceBar(row, most) },
      { title: "change", number: true, cell: (row) => signedPercent(relative(row)) },
      { title: "p50", number: true, cell: (row) => both(row, (side) => duration(side.p50_ns)) },
      { title: "p90", number: true, cell: (row) => both(row, (side) => duration(side.p90_ns)) },
      { title: "p99", number: true, cell: (row) => both(row, (side) => duration(side.p99_ns)) },
      { title: "spread", hint: "durations on one logarithmic scale: A filled, B as a line", cell: (row) => overlay(row, range) },
      { title: "spans", number: true, cell: (row) => both(row, (side) => count(side.span_count)) },
      { title: "errors", hint: "samples in which something went wrong first here", number: true, cell: (row) => both(row, (side) => h("span", { class: side.error_samples > 0 ? "bad" : null }, count(side.error_samples))) },
      { title: "p", hint: "how probable so uneven ranks are if nothing has changed", number: true, cell: (row) => row.p_value === null ? "–" : row.p_value < 0.001 ? "< 0.001" : row.p_value.toFixed(3) },
    ], rows, { class: "compared" }),
    h("p", { class: "none" }, "Slower or faster is what a rank test (p ≤ 0.01), the 95 % confidence interval and a change of at least 1 % agree upon."));
}

/** The difference of medians as a part of the first. @param {any} row @returns {number | null} */
function relative(row) {
  const median = Number(row.a?.p50_ns ?? 0);
  return row.difference_ns === null || median === 0 ? null : Number(row.difference_ns) / median;
}

/** @param {any} row @returns {(number | null)[]} */
function bounds(row) {
  const median = Number(row.a?.p50_ns ?? 0);
  return row.interval_ns === null || median === 0 ? [null, null] : row.interval_ns.map((/** @type {string} */ ns) => Number(ns) / median);
}

/** @param {number | null} part */
function signedPercent(part) {
  if (part === null) return "–";
  return `${part < 0 ? "−" : "+"}${percent(Math.abs(part))}`;
}

/** A bar from zero, with whiskers. @param {any} row @param {number} most */
function differenceBar(row, most) {
  const [width, tall] = [220, 20];
  const x = (/** @type {number} */ part) => width / 2 + (Math.max(-most, Math.min(most, part)) / most) * (width / 2 - 4);
  const part = relative(row);
  const [low, high] = bounds(row);
  if (part === null) return null;
  const kind = row.verdict === "slower" ? "slower" : row.verdict === "faster" ? "faster" : "same";
  const left = Math.min(x(0), x(part));
  const whiskers = low !== null && high !== null && [
    svg("line", { class: "whisker", x1: x(low), x2: x(high), y1: tall / 2, y2: tall / 2 }),
    [low, high].map((end) => svg("line", { class: "whisker", x1: x(end), x2: x(end), y1: tall / 2 - 4, y2: tall / 2 + 4 })),
  ];
  const text = `median ${signedPercent(part)}: ${duration(row.a.p50_ns)} to ${duration(row.b.p50_ns)}`;
  const interval = row.interval_ns === null ? "" : `; with 95 % confidence between ${duration(row.interval_ns[0])} and ${duration(row.interval_ns[1])}`;
  return svg("svg", {
    class: `difference ${kind}`, viewBox: `0 0 ${width} ${tall}`, width, height: tall, role: "img", "aria-label": text + interval,
    onmousemove: (/** @type {MouseEvent} */ event) => tip(event, text, interval, row.superiority !== null && `; a span of B is longer than one of A in ${percent(row.superiority)} of all pairs`), onmouseleave: () => tip(null),
  }, svg("rect", { class: "field", x: 0, y: 0, width, height: tall }), svg("rect", { class: "amount", x: left, width: Math.max(1, Math.abs(x(part) - x(0))), y: 5, height: tall - 10 }),
  svg("line", { class: "zero", x1: x(0), x2: x(0), y1: 0, y2: tall }), whiskers);
}

/** Both distributions over each other, each as shares of its own. @param {any} row @param {{ from: number, to: number }} range */
function overlay(row, range) {
  const [width, tall] = [170, 30];
  const whole = Math.max(0.5, Math.log2(range.to / range.from));
  const x = (/** @type {number} */ ns) => (Math.log2(Math.max(1, ns) / range.from) / whole) * width;
  const wide = (0.5 / whole) * width;
  const shares = row.spreads.map((/** @type {any} */ one) => {
    if (one === null) return [];
    const all = one.bars.reduce((/** @type {number} */ sum, /** @type {number} */ value) => sum + value, 0);
    return one.bars.map((/** @type {number} */ value, /** @type {number} */ at) => ({ x: x(one.from_ns * 2 ** (at / 2)), share: value / all }));
  });
  const most = Math.max(...shares.flat().map((/** @type {any} */ one) => one.share), 0.001);
  const y = (/** @type {number} */ share) => tall - (share / most) * (tall - 2);
  const bars = shares[0].map((/** @type {any} */ one) => one.share > 0 && svg("rect", { class: "bar-a", x: one.x.toFixed(1), width: Math.max(1, wide - 0.3).toFixed(1), y: y(one.share).toFixed(1), height: (tall - y(one.share)).toFixed(1), fill: stageColor(row.stage) }));
  const points = shares[1].flatMap((/** @type {any} */ one) => [`${one.x.toFixed(1)},${y(one.share).toFixed(1)}`, `${(one.x + wide).toFixed(1)},${y(one.share).toFixed(1)}`]);
  const ends = shares[1].length > 0 ? [`${shares[1][0].x.toFixed(1)},${tall}`, `${(shares[1][shares[1].length - 1].x + wide).toFixed(1)},${tall}`] : [];
  return svg("svg", { class: "overlay", viewBox: `0 0 ${width} ${tall}`, width, height: tall, role: "img" }, bars, points.length > 0 && svg("polyline", { class: "line-b", points: [ends[0], ...points, ends[1]].join(" ") }));
}

/** @param {any} comparison */
function comparedStatuses({ a, b }) {
  const names = [...new Set([...Object.keys(a.statuses), ...Object.keys(b.statuses)])].sort();
  const all = (/** @type {any} */ run, /** @type {string} */ status) => (Object.hasOwn(run.statuses, status) ? run.statuses[status] : 0);
  const share = (/** @type {any} */ run, /** @type {string} */ status) => all(run, status) / Math.max(1, run.samples);
  const cell = (/** @type {any} */ run) => (/** @type {string} */ status) => `${count(all(run, status))} (${percent(share(run, status))})`;
  return h("section", null, h("h2", null, "Statuses"), table([
    { title: "status", cell: (status) => h("span", { class: statusClass(status) }, status) },
    { title: "A", number: true, cell: cell(a) }, { title: "B", number: true, cell: cell(b) },
    { title: "B less A", number: true, cell: (status) => { const points = (share(b, status) - share(a, status)) * 100; return `${points < 0 ? "−" : "+"}${Math.abs(points).toFixed(1)} points`; } },
  ], names));
}

/** @param {any} comparison */
function comparedErrors({ stages }) {
  const rows = stages.flatMap((/** @type {any} */ one) => one.errors.map((/** @type {any} */ error) => ({ stage: one.stage, ...error })));
  rows.sort((/** @type {any} */ one, /** @type {any} */ other) => Math.abs(other.b - other.a) - Math.abs(one.b - one.a) || other.a + other.b - one.a - one.b);
  return rows.length > 0 && h("section", null, h("h2", null, "Errors, by the stage where they arose"), table([
    { title: "A", number: true, cell: (row) => count(row.a) }, { title: "B", number: true, cell: (row) => h("b", { class: row.b > row.a ? "bad" : null }, count(row.b)) },
    { title: "stage", cell: (row) => stageName(row.stage) }, { title: "type", cell: (row) => plain(row.type) }, { title: "message", cell: (row) => h("span", { class: "message" }, plain(row.message)) },
  ], rows.slice(0, 50)));
}
