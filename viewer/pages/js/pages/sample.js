// One sample: where its time went, span by span.

import { ask, isStatic } from "../api.js";
import { fill, h } from "../dom.js";
import { counted } from "../format.js";
import { change, here } from "../router.js";
import { matchSpans } from "../trace/find.js";
import { sampleHead } from "../trace/head.js";
import { advance, findSpan, isGrowing, readTrace, since, spanId } from "../trace/model.js";
import { spanPanel } from "../trace/panel.js";
import { timeline } from "../trace/timeline.js";

/** @typedef {import("../main.js").Context} Context */
/** Most collapsed spans that an address holds. */
const MOST_CLOSED = 40;

/** @param {HTMLElement} root @param {Context} context @returns {Promise<import("../main.js").Shown>} */
export async function sample(root, context) {
  const { params } = context;
  const asked = { trace: params.get("trace"), sample: params.get("sample") };
  let trace = readTrace(await ask("sample", asked, context.signal));
  let isClosed = false;

  /** @type {import("../trace/timeline.js").TimelineState} */
  const state = {
    view: params.get("view") === "lanes" ? "lanes" : "tree",
    selected: findSpan(trace, params.get("span")),
    window: windowIn(params),
    closed: new Set((params.get("closed") ?? "").split(",").map((id) => findSpan(trace, id)).filter((span) => span >= 0)),
    matches: matchSpans(trace, params.get("find") ?? ""),
    onlyMatches: params.get("only") === "1",
    sample: params.get("all") === "1" || trace.answer.samples.length < 2 || trace.answer.sample === null ? -1 : trace.answer.sample,
    critical: params.get("critical") !== "0",
  };

  if (state.window === null) state.window = rootWindow(trace);
  const lines = timeline(trace, state, { selected: () => chosen(), moved: () => remember() });
  const panel = spanPanel({ select: (span) => pick(span), zoomTo: lines.zoomTo, close: () => pick(-1) });
  const found = h("span", { class: "soft found" });
  const search = h("input", {
    type: "search", placeholder: "find spans: name, stage, id, is:failed, >10ms", "aria-label": "find spans", value: params.get("find") ?? "",
    oninput: () => searched(),
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Enter") next(event.shiftKey ? -1 : 1);
      // Browsers clear the field; what was found is to stay.
      if (event.key === "Escape") event.preventDefault();
    },
  });
  const views = ["tree", "lanes"].map((view) => h("button", { "data-view": view, title: view === "tree" ? "a span in each row (key: v)" : "a lane for each process, thread and GPU (key: v)", onclick: () => turnView(/** @type {"tree" | "lanes"} */ (view)) }, view));
  const box = (/** @type {string} */ text, /** @type {string} */ title, /** @type {boolean} */ is, /** @type {(is: boolean) => void} */ set) => {
    const input = h("input", { type: "checkbox", checked: is, onchange: () => set(input.checked) });
    return { input, label: h("label", { title }, input, ` ${text}`) };
  };
  const only = box("only matches", "with what is above them", state.onlyMatches, (is) => {
    state.onlyMatches = is;
    lines.update();
    remember();
  });
  const critical = box("critical path", "what the end waited for: dark below the bars, and in the strip above them (key: x)", state.critical, (is) => {
    state.critical = is;
    lines.update();
    remember();
  });
  const own = trace.answer.samples.length > 1 && box("only this sample", "its trace has others", state.sample >= 0, (is) => {
    state.sample = is ? trace.answer.sample : -1;
    lines.update();
    remember();
  });
  const toolbar = h("div", { class: "toolbar" }, search, found, only.label, h("span", { class: "gap" }),
    own && own.label, critical.label, h("span", { class: "switch" }, views),
    h("button", { title: "close all but the first two levels", onclick: () => closeAll() }, "collapse"),
    h("button", { title: "open all", onclick: () => openAll() }, "expand"),
    h("button", { title: "all of the time (key: 0)", onclick: lines.whole }, "all"));
  const head = h("div", null);
  fill(root, head, h("section", { class: "trace" }, toolbar, h("div", { class: "trace-body" }, lines.element, panel.element)));
  const drawHead = () => fill(head, sampleHead(trace, { select: (span) => pick(span), search: (text) => {
    search.value = text;
    searched();
    next(1);
  } }));
  drawHead();
  const clock = setInterval(() => {
    if (!document.hidden && isGrowing(trace) && !head.matches(":hover, :focus-within")) drawHead();
  }, 1000);
  showViews();
  countMatches();
  lines.update();
  requestAnimationFrame(() => {
    if (isClosed) return;
    lines.update();
    if (state.selected >= 0) {
      void panel.show(trace, state.selected);
      lines.reveal(state.selected);
    } else if (trace.answer.current !== null && params.get("from") === null) lines.reveal(trace.answer.current);
  });

  /** @param {number} span */
  function pick(span) {
    lines.select(span);
    lines.reveal(span);
  }

  function chosen() {
    void panel.show(trace, state.selected);
    remember();
  }

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** The address holds the view, a moment later so that moving stays smooth. */
  function remember() {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (isClosed || here().page !== "sample") return;
      const closed = [...state.closed].slice(0, MOST_CLOSED).map((span) => spanId(trace, span));
      change({
        span: state.selected < 0 ? null : spanId(trace, state.selected),
        from: state.window === null ? null : Math.round(state.window.from), to: state.window === null ? null : Math.round(state.window.to),
        view: state.view === "tree" ? null : state.view, find: search.value || null, only: state.onlyMatches ? 1 : null,
        critical: state.critical ? null : 0, closed: closed.join(",") || null, all: trace.answer.samples.length > 1 && state.sample < 0 ? 1 : null,
      }, { quiet: true });
    }, 250);
  }

  function searched() {
    state.matches = matchSpans(trace, search.value);
    countMatches();
    lines.update();
    remember();
  }

  function countMatches() {
    const matches = state.matches?.reduce((sum, is) => sum + is, 0);
    found.textContent = matches === undefined ? "" : matches === 0 ? "none" : `${counted(matches, "match").replace("matchs", "matches")} · n, N`;
  }

  /** To the next match, or back; @param {1 | -1} way */
  function next(way) {
    const { matches } = state;
    if (matches === null) return;
    for (let tried = 1, span = state.selected; tried <= trace.count; tried++) {
      span = (span + way + trace.count) % trace.count;
      if (matches[span] === 1 && (state.sample < 0 || trace.sample[span] === state.sample)) return pick(span);
    }
  }

  /** @param {"tree" | "lanes"} view */
  function turnView(view) {
    state.view = view;
    showViews();
    lines.update();
    lines.reveal(state.selected);
    remember();
  }

  function showViews() {
    for (const button of views) button.classList.toggle("here", button.dataset.view === state.view);
  }

  function closeAll() {
    for (let span = 0; span < trace.count; span++) if (trace.depth[span] >= 1 && trace.next[span] > span + 1) state.closed.add(span);
    lines.update();
    remember();
  }

  function openAll() {
    state.closed.clear();
    lines.update();
    remember();
  }

  /** @param {KeyboardEvent} event */
  function key(event) {
    const { key } = event;
    if (key === "w" || key === "+" || key === "=") lines.zoom(0.7);
    else if (key === "s" || key === "-") lines.zoom(1 / 0.7);
    else if (key === "a") lines.pan(-0.15);
    else if (key === "d") lines.pan(0.15);
    else if (key === "0") lines.whole();
    else if (key === "f" && state.selected >= 0) lines.zoomTo(state.selected);
    else if (key === "x") critical.input.click();
    else if (key === "v") turnView(state.view === "tree" ? "lanes" : "tree");
    else if (key === "n") next(1);
    else if (key === "N") next(-1);
    else if (key.startsWith("Arrow") || key === "j" || key === "k") lines.step(key);
    else if (key === "Escape" && state.selected >= 0) pick(-1);
    else if (key === "e" && trace.answer.error !== null) pick(trace.answer.error);
    else return false;
    return true;
  }

  /** Asks again; what is open, selected and seen stays; @param {Context} context */
  async function refresh({ signal }) {
    const answer = await ask("sample", { ...asked, known: trace.answer.stamp }, signal);
    if (isClosed) return;
    if (answer.spans === undefined) {
      if (trace.open.length > 0) advance(trace, since(trace.answer, answer.now_unix_nano));
      drawHead();
      lines.update();
      return;
    }
    const ids = [...state.closed].map((span) => spanId(trace, span));
    const selected = state.selected < 0 ? null : spanId(trace, state.selected);
    trace = readTrace(answer);
    state.closed = new Set(ids.map((id) => findSpan(trace, id)).filter((span) => span >= 0));
    state.selected = findSpan(trace, selected);
    state.matches = matchSpans(trace, search.value);
    if (state.sample >= 0) state.sample = answer.sample ?? -1;
    countMatches();
    drawHead();
    lines.replace(trace);
    if (selected !== null) void panel.show(trace, state.selected);
  }

  return {
    key,
    refresh: isStatic ? undefined : refresh,
    close: () => {
      isClosed = true;
      clearTimeout(timer);
      clearInterval(clock);
      lines.close();
    },
  };
}

/** The time of the sample, if its trace is much longer; @param {import("../trace/model.js").Trace} trace */
function rootWindow(trace) {
  const { root } = trace.answer;
  if (root === null || trace.end[root] - trace.start[root] > (trace.to - trace.from) / 3) return null;
  const wide = Math.max(1000, trace.end[root] - trace.start[root]);
  return { from: trace.start[root] - wide * 0.05, to: trace.end[root] + wide * 0.1 };
}

/** @param {URLSearchParams} params */
function windowIn(params) {
  const [from, to] = [params.get("from"), params.get("to")].map((text) => (text === null ? NaN : Number(text)));
  return Number.isFinite(from) && Number.isFinite(to) && to > from ? { from, to } : null;
}
