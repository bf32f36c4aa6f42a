// What is known of one span, beside the timeline.

import { ask } from "../api.js";
import { stageColor } from "../color.js";
import { fill, h } from "../dom.js";
import { count, counted, dateTime, duration, percent } from "../format.js";
import { link } from "../router.js";
import { childrenOf, MARK, onPath, processName, selfTime, since, spanId, unixNano } from "./model.js";
import { attributeList, copyButton, otlpText } from "./values.js";

/** @typedef {import("./model.js").Trace} Trace */

const KINDS = ["", "internal", "server", "client", "producer", "consumer"];
const STANDINGS = /** @type {Record<string, string>} */ ({
  announced: "announced by a live file", recorded: "open in a recording", written: "open in a file",
  over: "ended, but its end was never written", recorded_end: "ended, in a recording", written_end: "ended, in a file",
});

/**
 * @param {{ select: (span: number) => void, zoomTo: (span: number) => void, close: () => void }} does
 */
export function spanPanel(does) {
  const element = h("aside", { class: "span-panel", "aria-label": "span" });
  element.hidden = true;
  let turn = 0;
  let asking = new AbortController();
  let filter = "";

  /** @param {Trace} trace @param {number} span -1 for none */
  async function show(trace, span) {
    const own = ++turn;
    asking.abort();
    asking = new AbortController();
    element.hidden = span < 0;
    if (span < 0) return;
    const details = h("div", { class: "details" }, h("p", { class: "loading" }, "…"));
    fill(element, facts(trace, span), details);
    const params = { trace: trace.answer.trace_id, span: spanId(trace, span) };
    try {
      const answer = await ask("span", params, asking.signal);
      if (own === turn) fill(details, parts(trace, span, answer));
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") return;
      if (own === turn) fill(details, h("p", { class: "bad" }, error instanceof Error ? error.message : String(error)));
    }
  }

  /** What the timeline knows; @param {Trace} trace @param {number} span */
  function facts(trace, span) {
    const marks = trace.marks[span];
    const lasted = trace.end[span] - trace.start[span];
    const [name, stage] = [trace.texts[trace.name[span]], trace.texts[trace.stage[span]]];
    const known = trace.stages.get(trace.stage[span]);
    const { root } = trace.answer;
    const whole = root === null ? 0 : trace.end[root] - trace.start[root];
    const own = onPath(trace, span);
    const skew = trace.skews.get(span);
    const children = childrenOf(trace, span);
    const longest = children.sort((one, other) => trace.end[other] - trace.start[other] - trace.end[one] + trace.start[one]);
    const jump = (/** @type {number} */ to) => h("button", { class: "jump", onclick: () => does.select(to) }, trace.texts[trace.name[to]]);
    const row = (/** @type {string} */ term, /** @type {...import("../dom.js").Child} */ ...what) => [h("dt", null, term), h("dd", null, ...what)];
    const lane = trace.answer.lanes[trace.lane[span]];
    const box = h("i", { class: "swatch" });
    box.style.background = stageColor(stage);
    const times = known?.usual && lasted > 0 ? lasted / Math.max(1, Number(known.usual.p50_ns)) : 0;
    const isOpen = (marks & MARK.open) !== 0 && !(marks & MARK.lost);
    const isStuck = isOpen && known?.threshold_ns != null && lasted > Number(known.threshold_ns);
    return [
      h("header", null, h("h2", null, box, name), h("button", { title: "zoom to it (key: f)", onclick: () => does.zoomTo(span) }, "zoom"),
        h("button", { class: "plain", title: "close (key: Esc)", onclick: does.close }, "✕")),
      h("dl", { class: "facts" },
        stage !== name && row("stage", stage),
        row(isOpen ? "open for" : marks & MARK.lost ? "lost after" : "took", h("b", { class: isStuck ? "bad" : null }, duration(lasted)),
          whole > 0 && whole >= lasted && ` · ${percent(lasted / whole)} of the sample`),
        known?.usual && row("usually", `${duration(known.usual.p50_ns)}, 99 % within ${duration(known.usual.p99_ns)}`, times >= 1.5 && h("b", { class: times > 3 ? "bad" : null }, ` · ${times.toFixed(times < 10 ? 1 : 0)}×`)),
        isStuck && row("stuck beyond", duration(known?.threshold_ns)),
        children.length > 0 && row("itself", `${duration(selfTime(trace, span))} · ${percent(selfTime(trace, span) / Math.max(1, lasted))}`),
        own > 0 && row("critical", `${duration(own)} on the critical path`),
        row("begins", `${trace.start[span] < 0 ? "" : "+"}${duration(trace.start[span])} `, h("span", { class: "soft" }, marks & MARK.noBegin ? "not recorded" : dateTime(unixNano(trace, trace.start[span])))),
        skew !== undefined && row("clock", h("b", { class: "warn" }, [skew.early > 0 && `begins ${duration(skew.early)} before its parent`, skew.late > 0 && `ends ${duration(skew.late)} after its parent`].filter(Boolean).join(", ")), skew.early > 0 ? " in another process: their clocks differ" : " in another process: their clocks differ, or it went on alone", "; times are as recorded"),
        (marks & MARK.backward) !== 0 && row("clock", h("b", { class: "warn" }, "ends before it begins")),
        trace.parent[span] >= 0 ? row("parent", jump(trace.parent[span]), (marks & MARK.guessed) !== 0 && " known by its path") : (marks & MARK.parentMissing) !== 0 && row("parent", h("b", { class: "warn" }, "not here: "), "not written yet, lost, or recorded elsewhere"),
        longest.length > 0 && row(counted(longest.length, "child").replace("childs", "children"), longest.slice(0, 6).map((child) => h("div", null, jump(child), ` ${duration(trace.end[child] - trace.start[child])}`)), longest.length > 6 && `and ${count(longest.length - 6)} shorter ones`),
        row(lane.is_gpu ? "GPU" : "process", processName(trace.answer.processes[trace.process[span]], true), lane.name !== null && ` · ${lane.name}`),
        KINDS[trace.kind[span]] !== "" && row("kind", KINDS[trace.kind[span]]),
        row("id", h("code", null, spanId(trace, span)), copyButton(spanId(trace, span), "copy the span id"))),
    ];
  }

  /** What the server says; @param {Trace} trace @param {number} span @param {any} answer */
  function parts(trace, span, answer) {
    const resource = answer.otlp?.resourceSpans?.[0];
    const scope = resource?.scopeSpans?.[0];
    const one = scope?.spans?.[0] ?? {};
    const attributes = one.attributes ?? [];
    const sorted = [...attributes].sort((/** @type {any} */ left, /** @type {any} */ right) => (left.key < right.key ? -1 : 1));
    const list = attributeList(sorted);
    const sift = () => {
      for (const item of /** @type {NodeListOf<HTMLElement>} */ (list.querySelectorAll(":scope > div"))) {
        item.hidden = filter !== "" && !`${item.dataset.key} ${item.dataset.value}`.includes(filter);
      }
    };
    const search = h("input", { type: "search", placeholder: "filter", "aria-label": "filter attributes", value: filter, oninput: (/** @type {Event} */ event) => {
      filter = /** @type {HTMLInputElement} */ (event.target).value.toLowerCase();
      sift();
    } });
    sift();
    const message = one.status?.message;
    const dropped = (one.droppedAttributesCount ?? 0) + (one.droppedEventsCount ?? 0) + (one.droppedLinksCount ?? 0);
    const fold = (/** @type {string} */ title, /** @type {boolean} */ isOpen, /** @type {...import("../dom.js").Child} */ ...children) => h("details", { open: isOpen }, h("summary", null, title), ...children);
    return [
      (one.status?.code === 2 || message) && h("p", { class: "bad message" }, message || "failed, without a message"),
      answer.cut > 0 && h("p", { class: "warn" }, `${counted(answer.cut, "long text")} cut. `, h("button", { onclick: () => whole(trace, span) }, "Show whole")),
      attributes.length > 0 && fold(`Attributes ${attributes.length}`, true, attributes.length > 8 && search, list),
      one.events?.length > 0 && fold(`Events ${one.events.length}`, true, h("ol", { class: "events" }, one.events.map((/** @type {any} */ event) => {
        const at = since(trace.answer, event.timeUnixNano ?? "0");
        return h("li", null, h("b", null, event.name ?? ""), h("span", { class: "soft" }, ` +${duration(at - trace.start[span])} in it, at ${duration(at)}`), (event.attributes ?? []).length > 0 && attributeList(event.attributes));
      }))),
      one.links?.length > 0 && fold(`Links ${one.links.length}`, true, h("ul", { class: "links" }, one.links.map((/** @type {any} */ other, /** @type {number} */ at) => {
        const isHere = other.traceId === trace.answer.trace_id;
        const text = `${isHere ? "span" : "trace"} ${isHere ? other.spanId : other.traceId}`;
        return h("li", null, answer.known_links[at] ? h("a", { href: link("sample", { trace: other.traceId, span: other.spanId }) }, text) : h("span", { title: "it was not read" }, text, " (not here)"),
          (other.attributes ?? []).length > 0 && attributeList(other.attributes));
      }))),
      dropped > 0 && h("p", { class: "warn" }, `${counted(dropped, "attribute, event or link", )} not kept by the recorder`),
      fold("Process and library", false, attributeList(resource?.resource?.attributes ?? []),
        scope?.scope?.name && h("p", { class: "soft" }, `${scope.scope.name} ${scope.scope.version ?? ""}`),
        h("p", { class: "soft" }, `${STANDINGS[answer.standing] ?? answer.standing}${answer.is_lost ? "; its process died" : ""}`),
        one.traceState && h("p", { class: "soft" }, `tracestate ${otlpText({ stringValue: one.traceState })}`)),
      raw(answer),
    ];
  }

  /** @param {any} answer */
  function raw(answer) {
    const text = () => JSON.stringify(answer.otlp, null, 2);
    const pre = h("pre", null);
    return h("details", { ontoggle: () => { if (pre.textContent === "") pre.textContent = text(); } }, h("summary", null, "OTLP/JSON"), copyButton(text, "copy OTLP/JSON"), pre);
  }

  /** @param {Trace} trace @param {number} span */
  async function whole(trace, span) {
    const own = turn;
    const answer = await ask("span", { trace: trace.answer.trace_id, span: spanId(trace, span), whole: "true" }, asking.signal);
    if (own === turn) fill(/** @type {Element} */ (element.querySelector(".details")), parts(trace, span, answer));
  }

  return { element, show };
}
