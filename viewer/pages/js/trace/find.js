// Which spans a search means, and which of them are drawn.

import { MARK, selfTime, spanId } from "./model.js";

/** @typedef {import("./model.js").Trace} Trace */

const LENGTHS = /** @type {Record<string, number>} */ ({ ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, min: 60e9, m: 60e9, h: 3600e9 });

/**
 * A 1 for each span that a search means; `null` if it is empty. Terms must all hold: parts of names, stages and ids, `is:open`,
 * `is:failed`, `is:lost`, `is:waiting`, `is:gpu`, `is:critical`, `is:skewed`, `>10ms`, `<1s`, `self:>10ms`, and `-` in front for not.
 * @param {Trace} trace
 * @param {string} text
 * @returns {Uint8Array | null}
 */
export function matchSpans(trace, text) {
  const terms = (text.toLowerCase().match(/-?(?:[a-z]+:)?(?:"[^"]*"|\S+)/g) ?? []).map((term) => spanTest(trace, term.replaceAll('"', "")));
  if (terms.length === 0) return null;
  const found = new Uint8Array(trace.count);
  for (let span = 0; span < trace.count; span++) {
    found[span] = terms.every((test) => test(span)) ? 1 : 0;
  }
  return found;
}

/** @param {Trace} trace @param {string} term @returns {(span: number) => boolean} */
function spanTest(trace, term) {
  if (term.length > 1 && term.startsWith("-")) {
    const test = spanTest(trace, term.slice(1));
    return (span) => !test(span);
  }
  const length = /^(self:)?([<>])=?(\d+(?:\.\d+)?)(ns|us|µs|ms|s|min|m|h)$/.exec(term);
  if (length !== null) {
    const limit = Number(length[3]) * LENGTHS[length[4]];
    const take = length[1] ? (/** @type {number} */ span) => selfTime(trace, span) : (/** @type {number} */ span) => trace.end[span] - trace.start[span];
    return length[2] === ">" ? (span) => take(span) >= limit : (span) => take(span) <= limit;
  }
  /** @type {Record<string, number>} */
  const bits = { open: MARK.open, lost: MARK.lost, failed: MARK.failed, error: MARK.failed, waiting: MARK.waits, gpu: MARK.gpu };
  if (term.startsWith("is:")) {
    const what = term.slice(3);
    if (Object.hasOwn(bits, what)) return (span) => (trace.marks[span] & bits[what]) !== 0;
    if (what === "critical") return (span) => trace.pathFirst[span + 1] > trace.pathFirst[span];
    if (what === "skewed") return (span) => trace.skews.has(span);
  }
  const part = term.replace(/^(stage|name|span):/, "");
  const isIn = trace.texts.map((one) => one.toLowerCase().includes(part));
  const isId = /^[0-9a-f]{4,16}$/.test(part);
  return (span) => isIn[trace.name[span]] || isIn[trace.stage[span]] || (isId && spanId(trace, span).startsWith(part));
}

/**
 * The spans that stand in rows: none below a closed one and, where only matches are wanted, these and what is above them.
 * @param {Trace} trace
 * @param {Set<number>} closed
 * @param {Uint8Array | null} wanted
 * @param {number} sample of which the spans are wanted; -1 for all
 * @returns {Int32Array}
 */
export function visibleSpans(trace, closed, wanted, sample) {
  const { count, parent, next } = trace;
  let shown = wanted;
  if (sample >= 0) {
    shown = new Uint8Array(count);
    for (let span = 0; span < count; span++) shown[span] = trace.sample[span] === sample && (wanted === null || wanted[span]) ? 1 : 0;
  }
  if (shown !== null) {
    const whole = Uint8Array.from(shown);
    for (let span = count - 1; span >= 0; span--) if (whole[span] && parent[span] >= 0) whole[parent[span]] = 1;
    shown = whole;
  }
  const rows = new Int32Array(count);
  let used = 0;
  for (let span = 0; span < count;) {
    if (shown !== null && !shown[span]) {
      span = next[span];
      continue;
    }
    rows[used++] = span;
    span = closed.has(span) ? next[span] : span + 1;
  }
  return rows.subarray(0, used);
}
