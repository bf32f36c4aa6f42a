// What a sample is, how it stands, and where its time went: above the timeline.

import { stageColor, statusClass } from "../color.js";
import { h, tip } from "../dom.js";
import { count, counted, dateTime, decimal, duration, percent, plain } from "../format.js";
import { link } from "../router.js";
import { MARK } from "./model.js";
import { copyButton } from "./values.js";

/** @typedef {import("./model.js").Trace} Trace */
/** @typedef {{ select: (span: number) => void, search: (text: string) => void }} Does */

/** @param {Trace} trace @param {Does} does */
export function sampleHead(trace, does) {
  const { answer } = trace;
  const { row } = answer;
  const to = (/** @type {any} */ other) => link("sample", { trace: other.trace_id, sample: other.id });
  const crumb = (/** @type {string} */ what, /** @type {unknown} */ id, /** @type {string} */ href) => id !== null && id !== undefined && [h("a", { href }, `${what} ${plain(id)}`), h("span", { class: "soft" }, " › ")];
  if (row === null) {
    return h("section", { class: "sample-head" }, h("h1", null, "Trace ", h("code", null, answer.trace_id), copyButton(answer.trace_id, "copy the trace id")), h("p", { class: "soft" }, "It belongs to no sample."));
  }
  const fact = (/** @type {string} */ name, /** @type {import("../dom.js").Child} */ value, hint = "") => h("div", { class: "fact", title: hint }, h("span", null, name), h("b", null, value));
  const tokens = row.prompt_tokens !== null || row.completion_tokens !== null;
  const root = answer.root;
  const lasted = row.is_open && root !== null ? trace.end[root] - trace.start[root] : row.duration_ns;
  const kind = row.step === null && row.group_id === null ? "request" : "sample";
  const what = [h("span", { class: "soft kind" }, `${kind} `), row.id === null ? row.name ?? answer.trace_id.slice(0, 8) : plain(row.id)];
  return h("section", { class: "sample-head" },
    h("div", { class: "crumbs" },
      crumb("step", row.step, link("step", { step: row.step })), crumb("group", row.group_id, link("group", { step: row.step, group: row.group_id })),
      h("h1", null, what), row.id !== null && copyButton(plain(row.id), "copy the id"),
      h("span", { class: statusClass(row.status) }, row.status),
      row.attempt !== null && h("span", { class: "soft" }, `attempt ${plain(row.attempt)}`),
      row.task !== null && h("span", { class: "soft" }, row.task),
      h("span", { class: "gap" }),
      h("span", { class: "soft" }, "trace ", h("code", null, answer.trace_id)), copyButton(answer.trace_id, "copy the trace id")),
    alarmOf(trace, does),
    h("div", { class: "fact-row" },
      fact(row.is_open ? "open for" : "took", duration(lasted), row.start_unix_nano === null ? "" : `began ${dateTime(row.start_unix_nano)}`),
      answer.waits !== null && fact("waiting", `${duration(answer.waits.waiting_ns)} · ${share(answer.waits.waiting_ns, row.duration_ns)}`, "its spans that wait in queues, by their names"),
      answer.waits !== null && fact("between spans", `${duration(answer.waits.between_ns)} · ${share(answer.waits.between_ns, row.duration_ns)}`, "its root ran, and nothing below it"),
      row.reward !== null && fact("reward", decimal(row.reward)),
      tokens && fact("tokens", `${count(row.prompt_tokens)} → ${count(row.completion_tokens)}`, "prompt → completion"),
      row.finish_reason !== null && fact("finish", row.finish_reason),
      fact("spans", `${count(trace.count)}${trace.failed.length > 0 ? ` · ${count(trace.failed.length)} failed` : ""}`),
      row.session !== null && !(typeof row.session === "number" && !Number.isSafeInteger(row.session)) && fact("session", plain(row.session)),
      root !== null && row.start_unix_nano !== null && fact("began", dateTime(row.start_unix_nano))),
    latencyBar(answer), stageBar(trace, does), notes(trace, does),
    others("attempts", answer.attempts, row, to), others("samples of the trace", answer.samples, row, to),
    batchTable(trace));
}

/** @param {string} part @param {string} whole */
function share(part, whole) {
  return Number(whole) > 0 ? percent(Number(part) / Number(whole)) : "–";
}

/** What needs somebody; @param {Trace} trace @param {Does} does */
function alarmOf(trace, does) {
  const { answer } = trace;
  const { row, current, error } = answer;
  const name = (/** @type {number} */ span) => h("button", { class: "jump", onclick: () => does.select(span) }, trace.texts[trace.stage[span]]);
  const list = [];
  if (row.status === "lost") list.push(h("p", { class: "alarm-line" }, h("b", null, "Lost: "), "its process died", current !== null && [" while it was in ", name(current)], "."));
  else if (row.is_open && current !== null) {
    const age = trace.end[current] - trace.start[current];
    const stage = trace.stages.get(trace.stage[current]);
    const limit = stage?.threshold_ns == null ? null : Number(stage.threshold_ns);
    const usual = stage?.usual && ` The stage mostly takes ${duration(stage.usual.p50_ns)} (${counted(stage.usual.count, "ended span")}).`;
    if (limit !== null && age > limit) list.push(h("p", { class: "alarm-line" }, h("b", null, "Stuck: "), "in ", name(current), ` for ${duration(age)}, ${(age / limit).toFixed(1)}× the limit of ${duration(limit)}.`, usual));
    else list.push(h("p", { class: "open-line" }, "In ", name(current), ` for ${duration(age)}.`, usual));
  } else if (row.is_open) list.push(h("p", { class: "open-line" }, "Open, but no source says what it is in: a recording or live.jsonl would."));
  if (row.error_stage !== null) list.push(h("p", { class: "alarm-line" }, h("b", null, "Error in "), error === null ? row.error_stage : name(error), row.error ? `: ${row.error}` : "."));
  return list;
}

const PARTS = /** @type {Record<string, string>} */ ({
  queue: "queue", prefill: "prefill", decode: "decode", inference: "inference", time_to_first_token: "time to first token", time_per_output_token: "per output token", total: "total by the server",
});

/** Queue, prefill, decode as one bar, and the rest beside it; @param {any} answer */
function latencyBar({ latencies, row }) {
  if (latencies.length === 0) return null;
  const find = (/** @type {string} */ part) => latencies.find((/** @type {any} */ one) => one.part === part);
  const phases = ["queue", "prefill", "decode"].map(find).filter((one) => one !== undefined);
  const sum = phases.reduce((all, one) => all + Number(one.ns), 0);
  const source = (/** @type {any} */ one) => `${one.source === "stages" ? "by its stages" : one.source === "event" ? "by an event" : one.source}${one.calls > 1 ? `, of ${one.calls} calls` : ""}`;
  const [first, tokens] = [find("time_to_first_token"), row.completion_tokens];
  const each = find("time_per_output_token");
  const rate = first !== undefined && each === undefined && tokens > 1 && first.calls === 1 && !row.is_open ? (Number(row.duration_ns) - Number(first.ns)) / (tokens - 1) : null;
  return h("div", { class: "bar-row" }, h("span", { class: "bar-name" }, "latency"),
    phases.length > 1 && h("div", { class: "stack" }, phases.map((one) => piece(Number(one.ns) / sum, stageColor(one.part), `${PARTS[one.part]} ${duration(one.ns)} (${source(one)})`))),
    h("div", { class: "bar-legend" }, latencies.map((/** @type {any} */ one) => h("span", { title: source(one) }, phases.includes(one) && dot(one.part), `${PARTS[one.part] ?? one.part} `, h("b", null, duration(one.ns)))),
      rate !== null && rate > 0 && h("span", { title: "what follows the first token, by the tokens that were generated" }, "per output token ", h("b", null, duration(rate)))));
}

/** Most stages that stand in the bar by themselves. */
const MOST_PIECES = 40;

/** Where the time went, by stage; @param {Trace} trace @param {Does} does */
function stageBar(trace, does) {
  const stages = trace.answer.stages.filter((/** @type {any} */ one) => Number(one.self_ns) > 0);
  const sum = stages.reduce((/** @type {number} */ all, /** @type {any} */ one) => all + Number(one.self_ns), 0);
  if (sum === 0) return null;
  const rest = stages.slice(MOST_PIECES).reduce((/** @type {number} */ all, /** @type {any} */ one) => all + Number(one.self_ns), 0);
  const slow = (/** @type {any} */ one) => (one.usual === null || one.usual.count < 4 ? 0 : Number(one.sum_ns) / one.spans / Math.max(1, Number(one.usual.p50_ns)));
  const text = (/** @type {any} */ one) => `${trace.texts[one.stage]}: ${duration(one.self_ns)} of its own (${percent(Number(one.self_ns) / sum)}) in ${counted(one.spans, "span")}${one.usual === null ? "" : `; half of all take up to ${duration(one.usual.p50_ns)}, 99 % up to ${duration(one.usual.p99_ns)}`}`;
  return h("div", { class: "bar-row" }, h("span", { class: "bar-name", title: "time of their own, parallel stages added up" }, "stages"),
    h("div", { class: "stack" }, stages.slice(0, MOST_PIECES).map((/** @type {any} */ one) => piece(Number(one.self_ns) / sum, stageColor(trace.texts[one.stage]), text(one), () => does.search(`stage:"${trace.texts[one.stage]}"`))),
      rest > 0 && piece(rest / sum, "var(--soft)", `${stages.length - MOST_PIECES} other stages: ${duration(rest)}`)),
    h("div", { class: "bar-legend" }, stages.slice(0, 8).map((/** @type {any} */ one) => h("button", { class: "jump", title: text(one), onclick: () => does.search(`stage:"${trace.texts[one.stage]}"`) },
      dot(trace.texts[one.stage]), `${trace.texts[one.stage]} `, h("b", null, duration(one.self_ns)), ` ${percent(Number(one.self_ns) / sum)}`, slow(one) >= 2 && Number(one.self_ns) / sum > 0.02 && h("b", { class: "bad" }, ` ${slow(one) > 999 ? "over 1000" : slow(one).toFixed(slow(one) < 10 ? 1 : 0)}× usual`))),
      stages.length > 8 && h("span", { class: "soft" }, `and ${stages.length - 8} more`)));
}

/** @param {number} part @param {string} color @param {string} text @param {() => void} [pressed] */
function piece(part, color, text, pressed) {
  const box = h("i", { onmousemove: (/** @type {MouseEvent} */ event) => tip(event, text), onmouseleave: () => tip(null), onclick: pressed });
  box.style.flexGrow = String(Math.max(0.002, part));
  box.style.background = color;
  return box;
}

/** @param {string} stage */
function dot(stage) {
  const box = h("i", { class: "swatch" });
  box.style.background = stageColor(stage);
  return box;
}

/** What is missing or does not fit; @param {Trace} trace @param {Does} does */
function notes(trace, does) {
  const counts = { missing: 0, lost: 0, never: 0, backward: 0 };
  for (const marks of trace.marks) {
    if (marks & MARK.parentMissing) counts.missing++;
    if (marks & MARK.lost) counts.lost++;
    if (marks & MARK.neverCame) counts.never++;
    if (marks & (MARK.backward | MARK.noBegin)) counts.backward++;
  }
  const isEarly = [...trace.skews.values()].some(({ early }) => early > 0);
  const worst = Math.max(0, ...[...trace.skews.values()].slice(0, 10_000).map(({ early, late }) => Math.max(early, late)));
  const list = [
    trace.answer.left_out > 0 && `only the first ${count(trace.count)} of ${count(trace.count + trace.answer.left_out)} spans are drawn`,
    counts.missing > 0 && `⤴ ${counted(counts.missing, "span")} whose parent is not here`,
    counts.lost > 0 && `† ${counted(counts.lost, "span")} open when their process died`,
    counts.never > 0 && `? ${counted(counts.never, "span")} ended, but never written`,
    counts.backward > 0 && `◷ ${counted(counts.backward, "span")} with impossible times`,
    trace.skews.size > 0 && h("button", { class: "jump", onclick: () => does.search("is:skewed") }, `◷ ${counted(trace.skews.size, "span")} outside their parents in another process, by up to ${duration(worst)}: ${isEarly ? "clocks differ" : "clocks differ, or they went on alone"}; times are as recorded`),
  ].filter((one) => one !== false);
  return list.length > 0 && h("p", { class: "warn notes" }, list.map((one) => h("span", null, one)));
}

/** Links to samples beside this one; @param {string} what @param {any[]} rows @param {any} own @param {(row: any) => string} to */
function others(what, rows, own, to) {
  if (rows.length < 2) return null;
  const is = (/** @type {any} */ row) => row.trace_id === own.trace_id && row.sample === own.sample;
  const place = rows.findIndex(is);
  const from = Math.max(0, Math.min(place - 10, rows.length - 24));
  return h("div", { class: "bar-row" }, h("span", { class: "bar-name" }, what), h("div", { class: "bar-legend" },
    rows.slice(from, from + 24).map((row, at) => h("a", { class: is(row) ? "chip here" : "chip", href: to(row), title: `${row.status}, ${duration(row.duration_ns)}` },
      h("span", { class: statusClass(row.status) }, what === "attempts" ? plain(row.attempt ?? from + at + 1) : plain(row.id)), ` ${duration(row.duration_ns)}`)),
    rows.length > 24 && h("span", { class: "soft" }, `of ${count(rows.length)}`)));
}

/** Batches that served it, with its share of each; @param {Trace} trace */
function batchTable(trace) {
  const { batches } = trace.answer;
  if (batches.length === 0) return null;
  const sum = batches.reduce((/** @type {number} */ all, /** @type {any} */ one) => all + Number(one.share_ns), 0);
  return h("details", { class: "batches" }, h("summary", null, `Served by ${counted(batches.length, "batch").replace("batchs", "batches")} of other traces: ${duration(sum)} by its shares`),
    h("div", { class: "scroll" }, h("table", null, h("thead", null, h("tr", null, ["batch", "began", "took", "traces", "share", "counted"].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", null, batches.slice(0, 100).map((/** @type {any} */ one) => h("tr", null,
        h("td", null, h("a", { href: link("sample", { trace: one.trace_id, span: one.span_id }) }, one.name)),
        h("td", null, dateTime(one.start_unix_nano)), h("td", null, duration(one.duration_ns), one.is_open && " so far"), h("td", null, count(one.members)),
        h("td", null, percent(one.share)), h("td", null, duration(one.share_ns))))))));
}
