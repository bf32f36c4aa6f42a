// A trace in typed arrays: what `/api/sample` answers in columns, and what follows from it.

import { isStatic } from "../api.js";

/** What is marked at a span, as bits of `marks`. */
export const MARK = {
  open: 1, lost: 2, neverCame: 4, failed: 8, guessed: 16, parentMissing: 32, waits: 64, gpu: 128, linksAway: 256, noBegin: 512, backward: 1024,
};

/** @typedef {{ name: string | null, is_gpu: boolean, process: number, rows: number }} TraceLane */
/** @typedef {{ service: string | null, host: string | null, pid: string | null, instance: string | null }} TraceProcess */
/** @typedef {{ stage: number, waits: boolean, spans: number, failed: number, self_ns: string, sum_ns: string, usual: { count: number, p50_ns: string, p90_ns: string, p99_ns: string } | null, threshold_ns: string | null }} TraceStage */

/**
 * Spans by number, each behind its parent and before the next child of that. Times are nanoseconds from the first begin.
 * @typedef {object} Trace
 * @property {any} answer
 * @property {number} count
 * @property {Int32Array} parent -1 for none
 * @property {Int32Array} next the first behind its subtree
 * @property {Int32Array} depth
 * @property {Float64Array} start
 * @property {Float64Array} end of open ones now
 * @property {Float64Array} covered
 * @property {Uint32Array} name
 * @property {Uint32Array} stage
 * @property {Uint32Array} process
 * @property {Uint32Array} lane
 * @property {Uint32Array} row
 * @property {Int32Array} sample
 * @property {Uint32Array} kind
 * @property {Uint32Array} marks
 * @property {string[]} texts
 * @property {Int32Array} open those that were not lost
 * @property {Int32Array} failed
 * @property {Map<number, { early: number, late: number }>} skews
 * @property {Map<number, { at: number, name: string }[]>} events
 * @property {Float64Array} pathFrom the critical path in order of time
 * @property {Float64Array} pathTo
 * @property {Int32Array} pathSpan
 * @property {Int32Array} pathPlaces places in the path, by span
 * @property {Int32Array} pathFirst where the places of a span begin; one more at the end
 * @property {Map<number, TraceStage>} stages
 * @property {number} now
 * @property {number} readAt when it was read, in milliseconds since 1970
 * @property {number} from the first begin
 * @property {number} to the last end
 */

/** @param {any} answer @returns {Trace} */
export function readTrace(answer) {
  const { spans } = answer;
  const count = spans.count;
  const parent = new Int32Array(count).fill(-1);
  const next = new Int32Array(count);
  const depth = new Int32Array(count);
  const start = filled(new Float64Array(count), spans.start);
  const end = filled(new Float64Array(count), spans.duration);
  const up = filled(new Uint32Array(count), spans.up);
  const marks = filled(new Uint32Array(count), spans.marks);
  const now = since(answer, answer.now_unix_nano);
  const open = [];
  const failed = [];
  let to = 0;
  let from = 0;
  for (let at = 0; at < count; at++) {
    if (up[at] > 0) {
      parent[at] = at - up[at];
      depth[at] = depth[parent[at]] + 1;
      start[at] += start[parent[at]];
    }
    if (marks[at] & MARK.open && !(marks[at] & MARK.lost)) {
      open.push(at);
      end[at] = Math.max(now, start[at]);
    } else {
      end[at] += start[at];
    }
    if (marks[at] & MARK.failed) failed.push(at);
    if (end[at] > to) to = end[at];
    if (start[at] < from) from = start[at];
  }
  for (let at = count - 1; at >= 0; at--) {
    if (next[at] === 0) next[at] = at + 1;
    const above = parent[at];
    if (above >= 0 && next[at] > next[above]) next[above] = next[at];
  }
  const { steps, lengths } = answer.critical;
  const pathSpan = new Int32Array(steps.length);
  const pathFrom = new Float64Array(steps.length);
  const pathTo = new Float64Array(steps.length);
  for (let at = 0, span = 0, begin = answer.critical.from; at < steps.length; at++) {
    pathSpan[at] = span += steps[at];
    pathFrom[at] = begin;
    pathTo[at] = begin += lengths[at];
  }
  const { places: pathPlaces, firsts: pathFirst } = groupBySpan(pathSpan, count);
  const events = new Map();
  for (const [span, at, name] of answer.events) {
    if (!events.has(span)) events.set(span, []);
    events.get(span).push({ at, name });
  }
  return {
    answer, count, parent, next, depth, start, end, marks, now, readAt: Date.now(), from, to: to > from ? to : from + 1,
    covered: filled(new Float64Array(count), spans.covered),
    name: filled(new Uint32Array(count), spans.name),
    stage: filled(new Uint32Array(count), spans.stage),
    process: filled(new Uint32Array(count), spans.process),
    lane: filled(new Uint32Array(count), spans.lane),
    row: filled(new Uint32Array(count), spans.row),
    sample: filled(new Int32Array(count), spans.sample),
    kind: filled(new Uint32Array(count), spans.kind),
    texts: answer.texts,
    open: Int32Array.from(open),
    failed: Int32Array.from(failed),
    skews: new Map(answer.skews.map((/** @type {number[]} */ [span, early, late]) => [span, { early, late }])),
    events,
    pathFrom, pathTo, pathSpan, pathPlaces, pathFirst,
    stages: new Map(answer.stages.map((/** @type {TraceStage} */ one) => [one.stage, one])),
  };
}

/** Places by span; @param {Int32Array} spans @param {number} count */
function groupBySpan(spans, count) {
  const firsts = new Int32Array(count + 1);
  for (const span of spans) firsts[span + 1]++;
  for (let span = 0; span < count; span++) firsts[span + 1] += firsts[span];
  const used = Int32Array.from(firsts);
  const places = new Int32Array(spans.length);
  spans.forEach((span, at) => { places[used[span]++] = at; });
  return { places, firsts };
}

/**
 * A column is one value if all are the same.
 * @template {Float64Array | Uint32Array | Int32Array} A
 * @param {A} into
 * @param {number | number[]} column
 * @returns {A}
 */
function filled(into, column) {
  if (Array.isArray(column)) into.set(column);
  else into.fill(column);
  return into;
}

/** Nanoseconds from the base to an instant, which may be beyond what a number holds; @param {any} answer @param {string} unixNano */
export function since(answer, unixNano) {
  return Number(BigInt(unixNano) - BigInt(answer.base_unix_nano));
}

/** The instant, in nanoseconds since 1970; @param {Trace} trace @param {number} at */
export function unixNano(trace, at) {
  return (BigInt(trace.answer.base_unix_nano) + BigInt(Math.round(at))).toString();
}

/** @param {Trace} trace @param {number} span */
export function spanId(trace, span) {
  return trace.answer.spans.ids.slice(16 * span, 16 * span + 16);
}

/** The number of a span; -1 if it is not there; @param {Trace} trace @param {string | null} id */
export function findSpan(trace, id) {
  if (id === null || !/^[0-9a-f]{16}$/.test(id)) return -1;
  const { ids } = trace.answer.spans;
  for (let at = ids.indexOf(id); at >= 0; at = ids.indexOf(id, at + 1)) {
    if (at % 16 === 0) return at / 16;
  }
  return -1;
}

/** Whether open spans grow: only where the server's now is now; @param {Trace} trace */
export function isGrowing(trace) {
  const isNow = Math.abs(Number(trace.answer.now_unix_nano) / 1e6 - trace.readAt) < 600_000;
  return !isStatic && isNow && trace.open.length > 0 && trace.answer.row?.is_open === true;
}

/** Lets time go on: open spans end now; @param {Trace} trace @param {number} now */
export function advance(trace, now) {
  trace.now = now;
  for (const span of trace.open) {
    trace.end[span] = Math.max(now, trace.start[span]);
    if (trace.end[span] > trace.to) trace.to = trace.end[span];
  }
}

/** What its children leave of it; @param {Trace} trace @param {number} span */
export function selfTime(trace, span) {
  return Math.max(0, trace.end[span] - trace.start[span] - trace.covered[span]);
}

/** The name of a process; @param {TraceProcess | undefined} process @param {boolean} [whole] */
export function processName(process, whole = false) {
  if (process === undefined) return "?";
  const { service, host, pid, instance } = process;
  const parts = [service ?? "unknown process", host, pid === null ? null : `pid ${pid}`];
  if (pid === null && instance !== null) parts.push(instance.length > 16 && !whole ? `${instance.slice(0, 8)}…` : instance);
  return parts.filter((part) => part !== null).join(" · ");
}

/** The children of a span; @param {Trace} trace @param {number} span @returns {number[]} */
export function childrenOf(trace, span) {
  const children = [];
  for (let at = span + 1; at < trace.next[span]; at = trace.next[at]) children.push(at);
  return children;
}

/** How much of the critical path is a span's own; @param {Trace} trace @param {number} span */
export function onPath(trace, span) {
  let sum = 0;
  for (let at = trace.pathFirst[span]; at < trace.pathFirst[span + 1]; at++) {
    const place = trace.pathPlaces[at];
    sum += trace.pathTo[place] - trace.pathFrom[place];
  }
  return sum;
}

/** The first place of a sorted array whose value is not less; @param {Float64Array} values @param {number} value @param {number} from @param {number} to */
export function lowerBound(values, value, from, to) {
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (values[middle] < value) from = middle + 1;
    else to = middle;
  }
  return from;
}
