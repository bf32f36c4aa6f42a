// Every stage that could be there beside those that are, and one of them in detail.

import { ask } from "../api.js";
import { spreadChart } from "../charts.js";
import { stageColor } from "../color.js";
import { fill, h, svg, tip } from "../dom.js";
import { clock, count, counted, duration, percent, plain } from "../format.js";
import { link } from "../router.js";
import { table } from "../table.js";
import { meter, quoted, stageName } from "./overview.js";

/** @typedef {import("../main.js").Context} Context */

/** @param {HTMLElement} root @param {Context} context @returns {Promise<import("../main.js").Shown>} */
export async function stagesPage(root, context) {
  const draw = async (/** @type {Context} */ { params, signal }) => {
    const [stage, step] = [params.get("stage"), params.get("step")];
    if (stage !== null) fill(root, oneStage(await ask("stage", { stage, step }, signal), step));
    else fill(root, catalogue(await ask("stages", { step }, signal), step));
  };
  await draw(context);
  const isOne = context.params.has("stage");
  /** @param {KeyboardEvent} event */
  const key = (event) => {
    if (!isOne || event.key !== "Escape") return false;
    location.hash = link("stages", { step: context.params.get("step") });
    return true;
  };
  return { refresh: draw, key };
}

/**
 * Stages in the order of a tree: each below the one that it is declared to lie within.
 * @param {any[]} all
 */
function stageTree(all) {
  const names = new Set(all.map((one) => one.stage));
  const below = new Map();
  for (const one of all) {
    const above = one.within !== null && names.has(one.within) && one.within !== one.stage ? one.within : null;
    below.set(above, [...(below.get(above) ?? []), one]);
  }
  /** @type {{ entry: any, depth: number, isLast: boolean[] }[]} */
  const rows = [];
  const seen = new Set();
  const walk = (/** @type {string | null} */ above, /** @type {boolean[]} */ isLast) => {
    const children = (below.get(above) ?? []).filter((/** @type {any} */ one) => !seen.has(one.stage));
    children.forEach((/** @type {any} */ entry, /** @type {number} */ at) => {
      if (seen.has(entry.stage)) return;
      seen.add(entry.stage);
      const path = [...isLast, at === children.length - 1];
      rows.push({ entry, depth: path.length - 1, isLast: path });
      walk(entry.stage, path);
    });
  };
  walk(null, []);
  // Stages that are declared to lie within each other have no place in a tree.
  for (const entry of all) if (!seen.has(entry.stage)) rows.push({ entry, depth: 0, isLast: [true] });
  return rows;
}

/** @param {any} answer @param {string | null} step */
function catalogue({ is_declared, count: all, stages: entries }, step) {
  const rows = stageTree(entries);
  const executed = entries.filter((/** @type {any} */ one) => one.row !== null || one.open > 0).length;
  const spreads = entries.flatMap((/** @type {any} */ one) => (one.spread === null ? [] : [one.spread]));
  const range = { from: Math.min(...spreads.map((/** @type {any} */ one) => one.from_ns)), to: Math.max(...spreads.map((/** @type {any} */ one) => one.from_ns * 2 ** (one.bars.length / 2))) };
  const own = entries.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + Number(one.self_ns ?? 0), 0);
  const sum = (/** @type {(one: any) => number} */ of) => entries.reduce((/** @type {number} */ total, /** @type {any} */ one) => total + of(one), 0);
  const card = (/** @type {string} */ name, /** @type {number} */ value, kind = "") => h("div", { class: `card ${kind}` }, h("b", null, count(value)), h("span", null, name));
  const never = entries.filter((/** @type {any} */ one) => one.is_declared && one.row === null && one.open === 0).length;
  const misplaced = sum((one) => one.misplaced);
  const branch = (/** @type {boolean[]} */ isLast) => isLast.slice(1).map((last, at, path) => (at === path.length - 1 ? (last ? "└ " : "├ ") : last ? "   " : "│  ")).join("");
  const time = (/** @type {string} */ title, /** @type {string} */ key) => ({ title, number: true, cell: (/** @type {any} */ { entry }) => (entry.row === null ? "" : duration(entry.row[key])) });
  /** @type {import("../table.js").Column<{ entry: any, depth: number, isLast: boolean[] }>[]} */
  const declared = [
    { title: "level", hint: "1 important, 2 normal, 3 detail", number: true, cell: ({ entry }) => plain(entry.level) },
    { title: "set", hint: "the stage set that it is declared in", cell: ({ entry }) => entry.set ?? (!entry.is_declared ? h("span", { class: "none" }, "not declared") : "–") },
  ];
  return [
    h("div", { class: "cards" }, card("stages", all), card("executed", executed), never > 0 && card("never executed", never),
      card("open spans", sum((one) => one.open)), misplaced > 0 && card("misplaced spans", misplaced, "alarm"), card("samples with an error", sum((one) => one.row?.error_samples ?? 0))),
    h("section", null, h("h2", null, "Stages"),
      !is_declared && h("p", { class: "none" }, "No recording says which stages there could be: these are those that were executed."),
      table([
        { title: "stage", cell: ({ entry, isLast }) => h("span", { class: "branch" }, h("span", { class: "twig", "aria-hidden": "true" }, branch(isLast)), h("a", { href: link("stages", { stage: entry.stage, step }) }, stageName(entry.stage))) },
        ...(is_declared ? declared : []),
        { title: "spans", number: true, cell: ({ entry }) => entry.row !== null ? count(entry.row.span_count) : entry.open > 0 ? "0" : h("span", { class: "never" }, "never executed") },
        { title: "self", hint: "time in which none of its children ran, as a share of all", number: true, cell: ({ entry }) => entry.self_ns !== null && own > 0 && h("span", { class: "bar" }, meter(Number(entry.self_ns) / own, stageColor(entry.stage)), percent(Number(entry.self_ns) / own)) },
        { title: "spread", hint: "durations on one logarithmic scale", cell: ({ entry }) => entry.spread !== null && spreadChart(entry.spread, range, stageColor(entry.stage)) },
        time("p50", "p50_ns"), time("p99", "p99_ns"), time("max", "max_ns"),
        { title: "open", number: true, cell: ({ entry }) => entry.open > 0 ? h("a", { href: link("samples", { step, q: `current:${quoted(entry.stage)}` }) }, count(entry.open)) : "0" },
        { title: "errors", hint: "samples in which something went wrong first here", number: true, cell: ({ entry }) => (entry.row?.error_samples ?? 0) > 0 ? h("a", { class: "bad", href: link("samples", { step, q: `error-stage:${quoted(entry.stage)}` }) }, count(entry.row.error_samples)) : "0" },
        { title: "misplaced", hint: "ended spans that lie elsewhere than declared", number: true, cell: ({ entry }) => entry.misplaced > 0 ? h("span", { class: "bad" }, count(entry.misplaced)) : entry.within === null ? "" : "0" },
        { title: "seen in", cell: ({ entry }) => entry.processes > 0 && h("a", { href: link("processes"), title: entry.process_names.join("\n") }, entry.processes === 1 ? entry.process_names[0] : counted(entry.processes, "process").replace(/processs$/, "processes")) },
      ], rows, { empty: "No stage was executed." }),
      all > entries.length && h("p", { class: "none" }, `${count(all - entries.length)} more`)),
  ];
}

/** @param {any} answer @param {string | null} step */
function oneStage(answer, step) {
  const { row, stage } = answer;
  const card = (/** @type {string} */ name, /** @type {import("../dom.js").Child} */ value, kind = "") => h("div", { class: `card ${kind}` }, h("b", null, value), h("span", null, name));
  const span = (/** @type {string} */ what, /** @type {any[]} */ rows) => table([
    { title: "sample", cell: (one) => h("a", { href: link("sample", { trace: one.trace_id, sample: one.sample, span: one.span_id }) }, plain(one.sample ?? one.trace_id.slice(0, 8))) },
    { title: what, number: true, cell: (one) => h("b", null, duration(one.duration_ns)) },
    { title: "began", number: true, cell: (one) => clock(one.start_unix_nano) },
    { title: "span", cell: (one) => one.name },
    { title: "step", cell: (one) => plain(one.step) },
    { title: "process", cell: (one) => one.process },
    { title: "status", cell: (one) => one.is_failed ? h("span", { class: "status status-failed" }, "failed") : "" },
  ], rows);
  const part = (/** @type {string} */ title, /** @type {any[]} */ rows, /** @type {(one: any) => import("../dom.js").Child} */ name) => {
    const slowest = Math.max(...rows.map((one) => Number(one.p50_ns)), 1);
    return table([
      { title, cell: name },
      { title: "spans", number: true, cell: (one) => count(one.spans) },
      { title: "p50", number: true, cell: (one) => h("span", { class: "bar" }, meter(Number(one.p50_ns) / slowest, stageColor(stage)), duration(one.p50_ns)) },
      { title: "p99", number: true, cell: (one) => duration(one.p99_ns) }, { title: "max", number: true, cell: (one) => duration(one.max_ns) },
      { title: "failed", number: true, cell: (one) => h("span", { class: one.failed > 0 ? "bad" : null }, count(one.failed)) },
    ], rows);
  };
  return [
    h("h1", null, h("a", { href: link("stages", { step }) }, "Stages"), " / ", stageName(stage)),
    row === null ? h("p", { class: "none" }, answer.open.length > 0 ? "None of its spans has ended." : "It was never executed.") : [
      h("div", { class: "cards" }, card("ended spans", count(row.span_count)), card("p50", duration(row.p50_ns)), card("p90", duration(row.p90_ns)), card("p99", duration(row.p99_ns)),
        card("max", duration(row.max_ns)), card("total", duration(row.sum_ns)), card("self", duration(answer.self_ns)), row.error_samples > 0 && card("samples with an error", count(row.error_samples), "alarm")),
      h("div", { class: "columns" },
        h("section", null, h("h2", null, "Durations"), answer.spread !== null && histogram(answer.spread, row, stageColor(stage))),
        h("section", null, h("h2", null, "By step"), answer.steps.length > 1 ? trendChart(answer.steps) : h("p", { class: "none" }, "There are fewer than two steps."))),
    ],
    answer.open.length > 0 && h("section", null, h("h2", null, "Open now, the oldest first"), span("open for", answer.open)),
    answer.processes.length > 1 && h("section", null, h("h2", null, "By process"), part("process", answer.processes, (one) => plain(one.name))),
    answer.steps.length > 1 && h("details", null, h("summary", null, `All ${count(answer.steps.length)} steps`), h("section", null, part("step", answer.steps, (one) => h("a", { href: link("stages", { stage, step: one.name }) }, plain(one.name))))),
    row !== null && row.errors.length > 0 && h("section", null, h("h2", null, "What went wrong"), table([
      { title: "samples", number: true, cell: (one) => h("a", { href: link("samples", { step, q: `error:${quoted(one.message ?? one.type ?? "")} error-stage:${quoted(stage)}` }) }, count(one.samples)) },
      { title: "type", cell: (one) => plain(one.type) }, { title: "message", cell: (one) => h("span", { class: "message" }, plain(one.message)) },
    ], row.errors.slice(0, 50))),
    answer.slowest.length > 0 && h("section", null, h("h2", null, "Slowest"), span("took", answer.slowest)),
    row !== null && h("section", null, h("h2", null, "Names of its spans"), table([
      { title: "name", cell: ([name]) => h("a", { href: link("samples", { step, q: `span:${quoted(name)}` }) }, name) }, { title: "spans", number: true, cell: ([, spans]) => count(spans) },
    ], Object.entries(row.raw_spans).sort((one, other) => Number(other[1]) - Number(one[1])))),
  ];
}

/** Durations as bars over a logarithmic axis, with percentiles. @param {any} spread @param {any} row @param {string} color */
function histogram(spread, row, color) {
  const [width, tall, low] = [600, 150, 18];
  const wide = width / spread.bars.length;
  const most = Math.max(...spread.bars);
  const from = (/** @type {number} */ at) => spread.from_ns * 2 ** (at / 2);
  const x = (/** @type {number} */ ns) => Math.max(0, Math.min(width, Math.log2(Math.max(1, ns) / spread.from_ns) * 2 * wide));
  const bars = spread.bars.map((/** @type {number} */ value, /** @type {number} */ at) => {
    const size = value === 0 ? 0 : Math.max(2, (value / most) * (tall - 14));
    return [svg("rect", { x: at * wide + 0.5, width: Math.max(1, wide - 1), y: tall - size, height: size, fill: color }),
      svg("rect", {
        class: "hit", x: at * wide, width: wide, y: 0, height: tall,
        onmousemove: (/** @type {MouseEvent} */ event) => tip(event, `${counted(value, "span")} of ${duration(from(at))} to ${duration(from(at + 1))}: ${percent(value / row.span_count)}`), onmouseleave: () => tip(null),
      })];
  });
  const lines = [["p50", row.p50_ns], ["p99", row.p99_ns]].map(([name, ns]) => [
    svg("line", { class: "percentile", x1: x(Number(ns)), x2: x(Number(ns)), y1: 0, y2: tall }), svg("text", { class: "mark", x: Math.min(width - 26, x(Number(ns)) + 3), y: 10 }, name)]);
  const every = Math.ceil(spread.bars.length / 6);
  const marks = spread.bars.flatMap((/** @type {number} */ _, /** @type {number} */ at) => at % every === 0 ? [svg("text", { class: "mark", x: at * wide + 1, y: tall + low - 4 }, duration(from(at)))] : []);
  return svg("svg", { class: "histogram", viewBox: `0 0 ${width} ${tall + low}`, role: "img" }, bars, svg("line", { class: "axis", x1: 0, x2: width, y1: tall, y2: tall }), lines, marks);
}

/** Median and 99th percentile by step. @param {any[]} steps */
function trendChart(steps) {
  const [width, tall, low] = [600, 150, 18];
  const most = Math.max(...steps.map((one) => Number(one.p99_ns)), 1);
  const wide = width / steps.length;
  const y = (/** @type {string} */ ns) => (tall - (Number(ns) / most) * (tall - 12)).toFixed(1);
  const line = (/** @type {string} */ key) => svg("polyline", { class: `line ${key}`, points: steps.map((one, at) => `${((at + 0.5) * wide).toFixed(1)},${y(one[key])}`).join(" ") });
  const dots = steps.length <= 60 && ["p50_ns", "p99_ns"].map((key) => steps.map((one, at) => svg("circle", { class: `dot ${key}`, cx: ((at + 0.5) * wide).toFixed(1), cy: y(one[key]), r: 2.5 })));
  const hits = steps.map((one, at) => svg("rect", {
    class: "hit", x: (at * wide).toFixed(1), width: wide.toFixed(1), y: 0, height: tall,
    onmousemove: (/** @type {MouseEvent} */ event) => tip(event, `step ${plain(one.name)}: ${counted(one.spans, "span")}, half within ${duration(one.p50_ns)}, 99 % within ${duration(one.p99_ns)}${one.failed > 0 ? `, ${count(one.failed)} failed` : ""}`), onmouseleave: () => tip(null),
  }));
  const every = Math.ceil(steps.length / 8);
  const marks = steps.flatMap((one, at) => at % every === 0 ? [svg("text", { class: "mark", "text-anchor": "middle", x: ((at + 0.5) * wide).toFixed(1), y: tall + low - 4 }, plain(one.name))] : []);
  return [h("p", { class: "legend" }, h("i", { class: "p50" }), "half within ", h("i", { class: "p99" }), `99 % within, up to ${duration(most)}`),
    svg("svg", { class: "times trend", viewBox: `0 0 ${width} ${tall + low}`, role: "img" }, svg("line", { class: "axis", x1: 0, x2: width, y1: tall, y2: tall }), line("p99_ns"), line("p50_ns"), dots, hits, marks)];
}
