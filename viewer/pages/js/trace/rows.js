// The two ways in which spans stand below each other: as a tree, and in lanes.

import { MARK, processName } from "./model.js";

/** Pixels of a row. */
export const ROW_TALL = 22;

/** @typedef {import("./model.js").Trace} Trace */

/**
 * Rows of lanes: before the rows of each a row with its name.
 * @typedef {object} LaneRows
 * @property {number} count
 * @property {Int32Array} laneOf by row
 * @property {Uint8Array} isHead by row
 * @property {Int32Array} firsts by row: where its spans begin in `spans`; one more at the end
 * @property {Int32Array} spans by row, each in order of their begin
 * @property {Float64Array} starts of the same
 * @property {Int32Array} tops by lane: its head
 * @property {string[]} names by lane
 * @property {Int32Array} failed failed spans in order of their begin
 */

/** @param {Trace} trace @returns {LaneRows} */
export function laneRows(trace) {
  const { lanes, processes } = trace.answer;
  const order = lanes.map((/** @type {unknown} */ _, /** @type {number} */ at) => at);
  order.sort((/** @type {number} */ one, /** @type {number} */ other) =>
    lanes[one].process - lanes[other].process || Number(lanes[one].is_gpu) - Number(lanes[other].is_gpu) || one - other);
  const tops = new Int32Array(lanes.length);
  let count = 0;
  for (const lane of order) {
    tops[lane] = count;
    count += 1 + lanes[lane].rows;
  }
  const laneOf = new Int32Array(count);
  const isHead = new Uint8Array(count);
  for (const lane of order) {
    laneOf.fill(lane, tops[lane], tops[lane] + 1 + lanes[lane].rows);
    isHead[tops[lane]] = 1;
  }
  const rowOf = (/** @type {number} */ span) => tops[trace.lane[span]] + 1 + trace.row[span];
  const firsts = new Int32Array(count + 1);
  for (let span = 0; span < trace.count; span++) firsts[rowOf(span) + 1]++;
  for (let row = 0; row < count; row++) firsts[row + 1] += firsts[row];
  const byStart = new Int32Array(trace.count).map((_, at) => at).sort((one, other) => trace.start[one] - trace.start[other] || one - other);
  const used = Int32Array.from(firsts);
  const spans = new Int32Array(trace.count);
  for (const span of byStart) spans[used[rowOf(span)]++] = span;
  const several = processes.length > 1;
  const names = lanes.map((/** @type {import("./model.js").TraceLane} */ lane) => {
    const kind = lane.is_gpu ? `GPU ${lane.name === "GPU" ? "" : lane.name ?? ""}`.trim() : lane.name;
    return several || kind === null ? [processName(processes[lane.process]), kind].filter((one) => one !== null).join(" · ") : kind;
  });
  return {
    count, laneOf, isHead, firsts, spans, tops, names,
    starts: Float64Array.from(spans, (span) => trace.start[span]),
    failed: byStart.filter((span) => (trace.marks[span] & MARK.failed) !== 0),
  };
}

/** The row of a span; @param {LaneRows} rows @param {Trace} trace @param {number} span */
export function laneRowOf(rows, trace, span) {
  return rows.tops[trace.lane[span]] + 1 + trace.row[span];
}
