// Samples as bars on a time axis, statuses as stacked bars.

import { stageColor, statusClass } from "./color.js";
import { h, tip } from "./dom.js";
import { count, duration } from "./format.js";

/**
 * A sample as the server tells it in lists.
 * @typedef {object} SampleRow
 * @property {string} trace_id
 * @property {number} sample
 * @property {string | number | null} id
 * @property {string | number | null} group_id
 * @property {string | number | null} step
 * @property {string | number | null} attempt
 * @property {string | null} task
 * @property {string} status
 * @property {boolean} is_open
 * @property {string | null} start_unix_nano
 * @property {string | null} duration_ns
 * @property {string | null} stage
 * @property {string | null} stage_age_ns
 * @property {string | null} threshold_ns
 * @property {boolean} is_stuck
 * @property {number} spans
 * @property {number} left_open
 * @property {number | null} reward
 * @property {boolean | null} passed
 * @property {number | null} prompt_tokens
 * @property {number | null} completion_tokens
 * @property {string | null} error_stage
 * @property {string | null} error
 * @property {string | null} name
 * @property {{ stage: string, from_ns: string, duration_ns: string, is_open: boolean, is_failed: boolean }[]} path
 * @property {number} path_more
 */

/**
 * The stages that a sample went through, on an axis that begins at `from` and is `whole` long.
 * @param {SampleRow} row
 * @param {number} from in nanoseconds since 1970
 * @param {number} whole in nanoseconds
 */
export function sampleLane(row, from, whole) {
  const scale = 100 / Math.max(1, whole);
  const begin = Number(row.start_unix_nano ?? from) - from;
  const place = (/** @type {HTMLElement} */ bar, /** @type {number} */ at, /** @type {number} */ long) => {
    bar.style.left = `${(at * scale).toFixed(3)}%`;
    bar.style.width = `${(long * scale).toFixed(3)}%`;
    return bar;
  };
  const back = row.duration_ns !== null && place(h("i", { class: "lane-whole" }), begin, Number(row.duration_ns));
  const parts = row.path.map((part) => {
    const kind = `${part.is_open ? "open" : ""} ${part.is_failed ? "failed" : ""}`;
    const bar = place(h("i", { class: `lane-part ${kind}` }), begin + Number(part.from_ns), Number(part.duration_ns));
    bar.style.backgroundColor = stageColor(part.stage);
    return bar;
  });
  return h("div", {
    class: "lane", onmousemove: (/** @type {MouseEvent} */ event) => tip(event, pathTip(row)), onmouseleave: () => tip(null),
  }, back, parts);
}

/** @param {SampleRow} row */
function pathTip(row) {
  const lines = row.path.map((part) => {
    const box = h("i", { class: "swatch" });
    box.style.background = stageColor(part.stage);
    return h("div", null, box, `${part.stage} `, h("b", null, duration(part.duration_ns)), part.is_open && " and going on", part.is_failed && " failed");
  });
  return [lines, row.path_more > 0 && h("div", null, `and ${count(row.path_more)} more`)];
}

/**
 * Marks of an axis, for lanes below it.
 * @param {number} whole in nanoseconds
 */
export function laneAxis(whole) {
  const marks = [0, 0.25, 0.5, 0.75].map((part) => {
    const mark = h("span", null, part === 0 ? "0" : `+${duration(part * whole)}`);
    mark.style.left = `${part * 100}%`;
    return mark;
  });
  return h("div", { class: "lane-axis" }, marks);
}

/** How many stand how, as a stacked bar; @param {Record<string, number>} statuses */
export function statusBar(statuses) {
  const all = Object.values(statuses).reduce((sum, value) => sum + value, 0);
  const parts = Object.entries(statuses).sort((one, other) => other[1] - one[1]).map(([status, value]) => {
    const bar = h("i", { class: statusClass(status).replace("status ", "tone ") });
    bar.style.width = `${(value / Math.max(1, all)) * 100}%`;
    return bar;
  });
  const text = Object.entries(statuses).map(([status, value]) => `${count(value)} ${status}`).join(", ");
  return h("span", { class: "status-stack", role: "img", "aria-label": text, onmousemove: (/** @type {MouseEvent} */ event) => tip(event, text), onmouseleave: () => tip(null) }, parts);
}

/**
 * Shortest, median and longest on a scale from 0 to `whole`.
 * @param {{ min_ns: string | null, p50_ns: string | null, longest_ns: string | null }} totals
 * @param {number} whole in nanoseconds
 */
export function spreadBar(totals, whole) {
  if (totals.longest_ns === null) return "–";
  const [max, min] = [Number(totals.longest_ns), Number(totals.min_ns ?? totals.longest_ns)];
  const place = (/** @type {number} */ ns) => `${((ns / Math.max(1, whole)) * 100).toFixed(2)}%`;
  const range = h("i", { class: "range" });
  range.style.left = place(min);
  range.style.width = place(Math.max(0, max - min));
  const median = totals.p50_ns !== null && h("i", { class: "median" });
  if (median) median.style.left = place(Number(totals.p50_ns));
  const text = `shortest ${duration(totals.min_ns)}, median ${duration(totals.p50_ns)}, longest ${duration(totals.longest_ns)}`;
  return h("span", { class: "minmax", role: "img", "aria-label": text, onmousemove: (/** @type {MouseEvent} */ event) => tip(event, text), onmouseleave: () => tip(null) }, range, median);
}
