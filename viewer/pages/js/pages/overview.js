// The whole at a glance: how samples stand, what is stuck, where time goes, what went wrong.

import { ask } from "../api.js";
import { spreadChart, timeChart } from "../charts.js";
import { stageColor, statusClass } from "../color.js";
import { fill, h } from "../dom.js";
import { count, counted, decimal, duration, percent, plain } from "../format.js";
import { link } from "../router.js";
import { table } from "../table.js";

/** @typedef {import("../main.js").Context} Context */

/** Rows of a list that links to all. */
const FEW = 10;

/** @param {HTMLElement} root @param {Context} context @returns {Promise<import("../main.js").Shown>} */
export async function overview(root, context) {
  const draw = async (/** @type {Context} */ { params, signal }) => {
    const step = params.get("step");
    const answer = await ask("overview", { step }, signal);
    fill(root, cards(answer, step), alarms(answer, step), h("div", { class: "columns" }, occupancy(answer, step), overTime(answer)),
      stages(answer, step), errors(answer, step), slowest(answer), losses(answer));
  };
  await draw(context);
  return { refresh: draw };
}

/** Most statuses with a card. */
export const MANY_STATUSES = 20;

/** @param {string} title @param {...import("../dom.js").Child} children */
function section(title, ...children) {
  return h("section", null, h("h2", null, title), children);
}

/** @param {any} answer @param {string | null} step */
function cards({ summary, open_samples, stuck }, step) {
  const card = (/** @type {string} */ name, /** @type {import("../dom.js").Child} */ value, /** @type {string | null} */ href, kind = "") =>
    h(href === null ? "div" : "a", { class: `card ${kind}`, href }, h("b", null, value), h("span", null, name));
  const statuses = Object.entries(summary.statuses).sort((one, other) => other[1] - one[1]);
  const { reward } = summary;
  return h("div", { class: "cards" },
    card("samples", count(summary.samples), link("samples", { step })),
    statuses.slice(0, MANY_STATUSES).map(([status, value]) => card(status, count(value), link("samples", { step, q: `status:${quoted(status)}` }), statusClass(status))),
    card("stuck", count(stuck), stuck > 0 ? link("samples", { step, q: "is:stuck" }) : null, stuck > 0 ? "alarm" : ""),
    open_samples > 0 && card("open", count(open_samples), link("samples", { step, q: "is:open" })),
    summary.groups > 0 && card("groups", count(summary.groups), null),
    summary.steps > 0 && card("steps", count(summary.steps), null),
    reward.count > 0 && card(`mean reward of ${count(reward.count)}`, decimal(reward.sum / reward.count), null),
    reward.passed > 0 && card("passed", percent(reward.passed / reward.count), null),
    summary.first_token !== null && card(`first token, half within (99 %: ${duration(summary.first_token.p99_ns)})`, duration(summary.first_token.p50_ns), null),
    card("ended spans", count(summary.finished_spans), null));
}

/** What needs somebody; @param {any} answer @param {string | null} step */
function alarms({ summary, stuck, lost }, step) {
  const sample = (/** @type {any} */ row) => h("a", { href: link("sample", { trace: row.trace_id, sample: row.rollout_id }) }, plain(row.rollout_id));
  const stage = (/** @type {any} */ row) => stageName(row.stage);
  const group = { title: "group", cell: (/** @type {any} */ row) => row.group_id === null ? "–" : h("a", { href: link("group", { step: row.step, group: row.group_id }) }, plain(row.group_id)) };
  const more = (/** @type {number} */ all, /** @type {any[]} */ rows, /** @type {string} */ q) =>
    all > rows.length && h("p", null, h("a", { href: link("samples", { step, q }) }, `all ${count(all)}`));
  return [
    summary.stuck.length > 0 && h("section", { class: "alarm" }, h("h2", null, `Stuck: ${counted(stuck, "sample")}`),
      table([
        { title: "sample", cell: sample }, { title: "stage", cell: stage },
        { title: "open for", number: true, cell: (row) => h("b", null, duration(row.age_ns)) },
        { title: "usual limit", hint: "a multiple of the stage's median", number: true, cell: (row) => duration(row.threshold_ns) },
        { title: "times", number: true, cell: (row) => `${(Number(row.age_ns) / Math.max(1, Number(row.threshold_ns))).toFixed(1)}×` },
        { title: "step", cell: (row) => plain(row.step) }, group,
      ], summary.stuck.slice(0, FEW)), more(stuck, summary.stuck.slice(0, FEW), "is:stuck")),
    summary.lost.length > 0 && h("section", { class: "alarm" }, h("h2", null, `Lost with their process: ${counted(lost, "sample")}`),
      table([{ title: "sample", cell: sample }, { title: "was in", cell: stage }, { title: "step", cell: (row) => plain(row.step) }, group], summary.lost.slice(0, FEW)),
      more(lost, summary.lost.slice(0, FEW), "status:lost")),
  ];
}

/** @param {any} answer @param {string | null} step */
function occupancy({ summary, open_samples, occupied_stages }, step) {
  const most = Math.max(1, ...summary.occupancy.map((/** @type {any} */ row) => row.samples));
  const rows = [...summary.occupancy].sort((one, other) => other.samples - one.samples);
  const unknown = open_samples > 0 && !summary.live_source;
  return section("In a stage now",
    table([
      { title: "stage", cell: (row) => h("a", { href: link("samples", { step, q: `current:${quoted(row.stage)}` }) }, stageName(row.stage)) },
      { title: "samples", number: true, cell: (row) => h("span", { class: "bar" }, meter(row.samples / most, stageColor(row.stage)), count(row.samples)) },
      { title: "groups", number: true, cell: (row) => count(row.groups) },
      { title: "oldest", number: true, cell: (row) => duration(row.oldest_age_ns) },
      { title: "which", cell: (row) => h("a", { href: link("samples", { step, q: `rollout:${quoted(plain(row.oldest_rollout_id))} is:open` }) }, plain(row.oldest_rollout_id)) },
    ], rows, { empty: unknown ? "Samples are open, but no source says what they are in: a recording or live.jsonl would." : "Nothing is open." }),
    occupied_stages > rows.length && h("p", { class: "none" }, `${count(occupied_stages - rows.length)} more stages with fewer samples`));
}

/** @param {any} answer */
function overTime({ timeline }) {
  return section("Over time", timeline === null ? h("p", { class: "none" }, "No sample has begun.")
    : [h("p", { class: "legend" }, h("i", { class: "ended" }), "ended ", h("i", { class: "failed" }), "failed ", h("i", { class: "p50" }), "half within ", h("i", { class: "p99" }), "99 % within"), timeChart(timeline)]);
}

/** @param {any} answer @param {string | null} step */
function stages({ summary, distributions, ended_stages, self_ns }, step) {
  const own = new Map(summary.self_times.map((/** @type {any} */ row) => [row.stage, Number(row.self_ns)]));
  const spreads = new Map(distributions.map((/** @type {any} */ one) => [one.stage, one]));
  const range = {
    from: Math.min(...distributions.map((/** @type {any} */ one) => one.from_ns)),
    to: Math.max(...distributions.map((/** @type {any} */ one) => one.from_ns * 2 ** (one.bars.length / 2))),
  };
  const all = Number(self_ns);
  const time = (/** @type {string} */ title, /** @type {string} */ key) => ({ title, number: true, cell: (/** @type {any} */ row) => duration(row[key]) });
  const rows = [...summary.stages].sort((one, other) => (own.get(other.stage) ?? 0) - (own.get(one.stage) ?? 0));
  return section("Stages",
    table([
      { title: "stage", cell: (row) => h("a", { href: link("samples", { step, q: `stage:${quoted(row.stage)}` }), title: Object.entries(row.raw_spans).slice(0, 20).map(([name, spans]) => `${name}: ${spans}`).join("\n") }, stageName(row.stage)) },
      { title: "spans", number: true, cell: (row) => count(row.span_count) },
      { title: "self", hint: "time in which none of its children ran, as a share of all", number: true, cell: (row) => {
        const share = all > 0 ? (own.get(row.stage) ?? 0) / all : 0;
        return h("span", { class: "bar" }, meter(share, stageColor(row.stage)), percent(share));
      } },
      { title: "spread", hint: "durations on one logarithmic scale", cell: (row) => spreads.has(row.stage) && spreadChart(spreads.get(row.stage), range, stageColor(row.stage)) },
      time("p50", "p50_ns"), time("p90", "p90_ns"), time("p99", "p99_ns"), time("max", "max_ns"), time("total", "sum_ns"),
      { title: "errors", number: true, cell: (row) => row.error_samples > 0 ? h("a", { class: "bad", href: link("samples", { step, q: `error-stage:${quoted(row.stage)}` }) }, count(row.error_samples)) : "0" },
    ], rows, { empty: "No span has ended." }),
    ended_stages > rows.length && h("p", null, h("a", { href: link("stages", { step }) }, `all ${count(ended_stages)}`)));
}

/** @param {any} answer @param {string | null} step */
function errors({ summary }, step) {
  const rows = summary.stages.flatMap((/** @type {any} */ row) => row.errors.map((/** @type {any} */ error) => ({ stage: row.stage, ...error })));
  rows.sort((/** @type {any} */ one, /** @type {any} */ other) => other.samples - one.samples);
  return rows.length > 0 && section("Errors, by the stage where they arose",
    table([
      { title: "samples", number: true, cell: (row) => h("a", { href: link("samples", { step, q: `error:${quoted(row.message ?? row.type ?? "")} error-stage:${quoted(row.stage)}` }) }, count(row.samples)) },
      { title: "stage", cell: (row) => stageName(row.stage) },
      { title: "type", cell: (row) => plain(row.type) },
      { title: "message", cell: (row) => h("span", { class: "message" }, plain(row.message)) },
    ], rows.slice(0, 30)));
}

/** @param {any} answer */
function slowest({ slowest: rows }) {
  return rows.length > 0 && section("Slowest",
    table([
      { title: "sample", cell: (row) => h("a", { href: link("sample", { trace: row.trace_id, sample: row.id }) }, plain(row.id ?? row.name)) },
      { title: "status", cell: (row) => h("span", { class: statusClass(row.status) }, row.status) },
      { title: "took", number: true, cell: (row) => duration(row.duration_ns) },
      { title: "spans", number: true, cell: (row) => count(row.spans) },
      { title: "tokens", number: true, cell: (row) => count(row.completion_tokens) },
      { title: "step", cell: (row) => plain(row.step) }, { title: "group", cell: (row) => plain(row.group_id) },
    ], rows));
}

/** @param {any} answer */
function losses({ summary }) {
  /** @type {[number, string][]} */
  const notes = [
    [summary.left_open_spans, "spans are open though their sample has ended"],
    [summary.result_not_exported, "samples ended and their root never came"],
    [summary.losses.damaged_lines, "lines could not be read"],
    [summary.losses.refused_spans, "spans have no valid ids"],
    [summary.losses.recorder_spans, "spans found no room in their recorder"],
    [summary.losses.recorder_details, "events, links or late attributes found no room there"],
    [summary.losses.beyond_memory, "spans did not fit into the viewer's memory limit"],
    [summary.losses.unassigned_spans, "spans belong to no sample"],
  ];
  const some = notes.filter(([value]) => value > 0);
  return some.length > 0 && section("Losses and gaps", h("ul", null, some.map(([value, what]) => h("li", null, h("b", null, count(value)), ` ${what}`))));
}

/** @param {string | null} stage */
export function stageName(stage) {
  return stage === null ? "–" : h("span", { class: "stage" }, swatch(stage), stage);
}

/** @param {string} stage */
function swatch(stage) {
  const box = h("i", { class: "swatch" });
  box.style.background = stageColor(stage);
  return box;
}

/** @param {number} share @param {string} color */
export function meter(share, color) {
  const bar = h("i", null);
  bar.style.width = `${(Math.min(1, share) * 100).toFixed(1)}%`;
  bar.style.background = color;
  return h("span", { class: "meter" }, bar);
}

/** Longest text of a link's search, whose length has a limit. */
const LONGEST_TERM = 200;

/** A term of a search, quoted if it must be. Of a long text the beginning is looked for; @param {string} whole */
export function quoted(whole) {
  const text = whole.length > LONGEST_TERM ? whole.slice(0, LONGEST_TERM).replace(/[\ud800-\udbff]$/, "") : whole;
  return /^[^\s"<>=][^\s"]*$/.test(text) ? text : `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
