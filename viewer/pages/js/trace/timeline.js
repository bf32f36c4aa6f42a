// The timeline: labels, bars, ruler and minimap on canvases, of which only what is seen is drawn.

import { h, tip } from "../dom.js";
import { linkFinder, paintArrows } from "./arrows.js";
import { visibleSpans } from "./find.js";
import { paintLabel } from "./labels.js";
import { minimap } from "./minimap.js";
import { advance, isGrowing, since } from "./model.js";
import { paintBar, paintLength, paintRow, pixelOf, readPalette } from "./paint.js";
import { followPointer } from "./pointer.js";
import { laneRowOf, laneRows, ROW_TALL } from "./rows.js";
import { timeRuler } from "./ruler.js";
import { fitWindow, timeTicks } from "./scale.js";

/** @typedef {import("./model.js").Trace} Trace */

const FONT = "12.5px system-ui, sans-serif";

/**
 * @typedef {object} TimelineState
 * @property {"tree" | "lanes"} view
 * @property {number} selected
 * @property {{ from: number, to: number } | null} window `null` for all
 * @property {Set<number>} closed
 * @property {Uint8Array | null} matches
 * @property {boolean} onlyMatches
 * @property {number} sample -1 for all
 * @property {boolean} critical
 */

/**
 * @param {Trace} first
 * @param {TimelineState} state changed by the timeline, and by its owner before `update`
 * @param {{ selected: () => void, moved: () => void }} tell
 */
export function timeline(first, state, tell) {
  let trace = first;
  /** @type {Int32Array} */
  let rows = new Int32Array(0);
  /** @type {import("./rows.js").LaneRows | null} */
  let lanes = null;
  let palette = readPalette();
  let [wanted, left, width, tall] = [320, 320, 800, 300];
  let hovered = -1;
  let isDrawnSoon = false;
  let pointer = 0.5;
  const map = minimap((from, to) => look(from, to), () => look(null));
  const ruler = timeRuler(look);
  const body = h("canvas", { class: "spans" });
  const spacer = h("div", { class: "spacer" }, body);
  const scroll = h("div", { class: "spans-scroll", tabindex: "0", role: "application", "aria-label": "timeline of spans: arrow keys move, w and s zoom, a and d pan" }, spacer);
  const splitter = h("div", { class: "splitter", role: "separator", "aria-orientation": "vertical" });
  const element = h("div", { class: "timeline" }, map.canvas, ruler.canvas, scroll, splitter);
  const context = /** @type {CanvasRenderingContext2D} */ (body.getContext("2d"));
  const linksOf = linkFinder();

  const seen = () => state.window ?? fitWindow(trace, trace.from, trace.from + (trace.to - trace.from) * 1.02);
  const rowCount = () => (state.view === "tree" ? rows.length : lanes?.count ?? 0);
  const rowOf = (/** @type {number} */ span) => (state.view === "lanes" ? (lanes === null ? -1 : laneRowOf(lanes, trace, span)) : places()[span]);
  /** @type {Int32Array | null} */
  let placed = null;
  const places = () => {
    if (placed === null) {
      placed = new Int32Array(trace.count).fill(-1);
      for (let row = 0; row < rows.length; row++) placed[rows[row]] = row;
    }
    return placed;
  };

  /** Shows a part of the time; `null` for all of it; @param {number | null} from @param {number} [to] */
  function look(from, to = 0) {
    const fitted = from === null ? null : fitWindow(trace, from, to);
    state.window = fitted === null || fitted.to - fitted.from >= (trace.to - trace.from) * 1.015 ? null : fitted;
    tell.moved();
    paintSoon();
  }

  /** @param {number} factor above 1 shows more @param {number} [at] the instant that stays */
  function zoom(factor, at) {
    const { from, to } = seen();
    const fixed = at ?? from + (to - from) * pointer;
    look(fixed - (fixed - from) * factor, fixed + (to - fixed) * factor);
  }

  /** @param {number} part of what is seen */
  function pan(part) {
    const { from, to } = seen();
    look(from + (to - from) * part, to + (to - from) * part);
  }

  /** @param {number} span */
  function zoomTo(span) {
    const wide = Math.max(100, trace.end[span] - trace.start[span]);
    look(trace.start[span] - wide * 0.08, trace.end[span] + wide * 0.12);
  }

  /** @param {number} span @param {boolean} [quietly] */
  function select(span, quietly = false) {
    state.selected = span;
    if (!quietly) tell.selected();
    paintSoon();
  }

  /** Brings a span into sight: opens what hides it, and scrolls; @param {number} span */
  function reveal(span) {
    if (span < 0) return;
    let isHidden = false;
    for (let above = trace.parent[span]; above >= 0; above = trace.parent[above]) isHidden = state.closed.delete(above) || isHidden;
    if (isHidden) arrange();
    const row = rowOf(span);
    if (row < 0) return;
    const top = row * ROW_TALL;
    if (top < scroll.scrollTop) scroll.scrollTop = Math.max(0, top - tall / 3);
    else if (top + ROW_TALL > scroll.scrollTop + tall) scroll.scrollTop = top - tall * 0.6;
    const { from, to } = seen();
    if (trace.end[span] < from || trace.start[span] > to) {
      const wide = to - from;
      look(trace.start[span] - wide * 0.2, trace.start[span] + wide * 0.8);
    }
    paintSoon();
  }

  /** @param {number} span */
  function toggle(span) {
    if (!state.closed.delete(span)) state.closed.add(span);
    arrange();
    tell.moved();
  }

  /** Which rows there are has changed. */
  function arrange() {
    if (state.view === "tree") rows = visibleSpans(trace, state.closed, state.onlyMatches ? state.matches : null, state.sample);
    else lanes ??= laneRows(trace);
    placed = null;
    measure();
  }

  /** The size or what is drawn as a whole has changed. */
  function measure() {
    palette = readPalette();
    width = Math.max(200, element.clientWidth);
    left = Math.round(Math.min(wanted, Math.max(120, width * 0.4)));
    const most = Math.max(240, innerHeight - 46 - 54 - ruler.tall - 78);
    tall = Math.min(most, Math.max(120, (rowCount() + 1) * ROW_TALL));
    scroll.style.height = `${tall}px`;
    spacer.style.height = `${Math.max(tall, (rowCount() + 0.5) * ROW_TALL)}px`;
    sizeCanvas(body, width, tall);
    sizeCanvas(ruler.canvas, width, ruler.tall);
    splitter.style.left = `${left - 3}px`;
    map.draw(trace, state.view === "lanes" ? rowOf : (span) => places()[span], rowCount(), width, left);
    paintSoon();
  }

  function paintSoon() {
    if (isDrawnSoon) return;
    isDrawnSoon = true;
    requestAnimationFrame(() => {
      isDrawnSoon = false;
      if (element.isConnected) paint();
    });
  }

  function paint() {
    const { from, to } = seen();
    /** @type {import("./paint.js").Scene} */
    const scene = { trace, from, to, left, width, selected: state.selected, hovered, matches: state.matches, sample: state.sample, critical: state.critical, palette };
    const scale = devicePixelRatio;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, tall);
    context.font = FONT;
    context.textBaseline = "middle";
    const ticks = timeTicks(from, to, (width - left) / 110);
    context.fillStyle = palette.edge;
    for (const { at } of ticks) context.fillRect(Math.round(pixelOf(scene, at)), 0, 1, tall);
    const top = scroll.scrollTop;
    const [firstRow, lastRow] = [Math.floor(top / ROW_TALL), Math.min(rowCount() - 1, Math.floor((top + tall) / ROW_TALL))];
    for (let row = firstRow; row <= lastRow; row++) {
      if (state.view === "tree") paintTreeRow(scene, rows[row], row * ROW_TALL - top);
      else paintLaneRow(scene, row, row * ROW_TALL - top);
    }
    if (state.view === "lanes" && lanes !== null) paintFailed(scene, lanes, top);
    paintArrows(context, scene, linksOf(trace, state.selected), rowOf, top, tall);
    paintNow(scene);
    context.fillStyle = palette.edge;
    context.fillRect(left, 0, 1, tall);
    ruler.paint(scene, ticks);
    map.frame({ from, to }, trace, palette);
    if (!isMeasured) {
      isMeasured = true;
      performance.mark("stagetrace drawn");
    }
  }
  let isMeasured = false;

  /** @param {import("./paint.js").Scene} scene @param {number} span @param {number} y */
  function paintTreeRow(scene, span, y) {
    if (span === state.selected || span === hovered) {
      context.fillStyle = palette.hover;
      context.fillRect(0, y, width, ROW_TALL);
    }
    context.save();
    context.beginPath();
    context.rect(left, y, width - left, ROW_TALL);
    context.clip();
    const bar = paintBar(context, scene, span, y + 4, ROW_TALL - 9);
    paintLength(context, scene, span, bar, y + ROW_TALL / 2);
    context.restore();
    paintLabel(context, scene, span, y, state.closed);
  }

  /** @param {import("./paint.js").Scene} scene @param {number} row @param {number} y */
  function paintLaneRow(scene, row, y) {
    if (lanes === null) return;
    if (lanes.isHead[row]) {
      context.fillStyle = palette.faint;
      context.fillRect(0, y, width, ROW_TALL);
      context.fillStyle = palette.text;
      context.fillText(lanes.names[lanes.laneOf[row]], 10, y + ROW_TALL / 2 + 0.5);
      return;
    }
    context.save();
    context.beginPath();
    context.rect(left, y, width - left, ROW_TALL);
    context.clip();
    paintRow(context, scene, lanes.spans, lanes.starts, lanes.firsts[row], lanes.firsts[row + 1], y + 2, ROW_TALL - 5);
    context.restore();
  }

  /** What failed is seen at every size; @param {import("./paint.js").Scene} scene @param {import("./rows.js").LaneRows} lanes @param {number} top */
  function paintFailed(scene, lanes, top) {
    context.fillStyle = palette.bad;
    for (const span of lanes.failed) {
      const y = laneRowOf(lanes, trace, span) * ROW_TALL - top;
      const x = pixelOf(scene, trace.start[span]);
      if (y > -ROW_TALL && y < tall && x >= left && x < width) context.fillRect(x, y + 2, 2, ROW_TALL - 5);
    }
  }

  /** @param {import("./paint.js").Scene} scene */
  function paintNow(scene) {
    const x = pixelOf(scene, trace.now);
    if (trace.open.length === 0 || x < left || x > width) return;
    context.fillStyle = palette.accent;
    context.fillRect(x, 0, 1, tall);
  }

  /** What is below the pointer; @param {MouseEvent} event */
  function spanAt(event) {
    const box = body.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const row = Math.floor((y + scroll.scrollTop) / ROW_TALL);
    const { from, to } = seen();
    const at = from + ((x - left) / (width - left)) * (to - from);
    if (row < 0 || row >= rowCount()) return { span: -1, x, at };
    if (state.view === "tree") return { span: rows[row], x, at };
    if (lanes === null || x < left) return { span: -1, x, at };
    const slack = ((to - from) / (width - left)) * 2;
    let found = -1;
    for (let place = lanes.firsts[row + 1] - 1, low = lanes.firsts[row]; place >= low;) {
      // The last that has begun by then, by halves.
      let [one, other] = [low, place + 1];
      while (one < other) {
        const middle = (one + other) >>> 1;
        if (lanes.starts[middle] <= at + slack) one = middle + 1;
        else other = middle;
      }
      const candidate = one - 1;
      if (candidate >= low && trace.end[lanes.spans[candidate]] >= at - slack) found = lanes.spans[candidate];
      break;
    }
    return { span: found, x, at };
  }

  followPointer(element, scroll, body, {
    spanAt, seen, look, zoom, pan, zoomTo, select, toggle,
    trace: () => trace,
    place: () => ({ left, width, isTree: state.view === "tree" }),
    aim: (part) => { pointer = part; },
    hover: (span) => {
      if (span === hovered) return;
      hovered = span;
      paintSoon();
    },
  });
  scroll.addEventListener("scroll", paintSoon);

  splitter.addEventListener("pointerdown", (event) => splitter.setPointerCapture(event.pointerId));
  splitter.addEventListener("pointermove", (event) => {
    if (!splitter.hasPointerCapture(event.pointerId)) return;
    wanted = Math.max(120, event.clientX - element.getBoundingClientRect().left);
    measure();
  });

  const observer = new ResizeObserver(() => element.clientWidth !== width && measure());
  observer.observe(element);
  addEventListener("resize", measure);
  const timer = setInterval(() => {
    if (element.isConnected && !document.hidden && isGrowing(trace)) {
      advance(trace, since(trace.answer, trace.answer.now_unix_nano) + (Date.now() - trace.readAt) * 1e6);
      paintSoon();
    }
  }, 200);

  /** Moves the selection by rows, or within the tree; @param {string} key */
  function step(key) {
    const span = state.selected;
    if (state.view === "tree") {
      const row = span < 0 ? -1 : places()[span];
      if (key === "ArrowDown" || key === "j") select(rows[Math.min(rows.length - 1, row + 1)]);
      else if (key === "ArrowUp" || key === "k") select(rows[Math.max(0, row - 1)]);
      else if (key === "ArrowLeft" && span >= 0) {
        if (trace.next[span] > span + 1 && !state.closed.has(span)) toggle(span);
        else if (trace.parent[span] >= 0) select(trace.parent[span]);
      } else if (key === "ArrowRight" && span >= 0 && trace.next[span] > span + 1) {
        if (state.closed.has(span)) toggle(span);
        else select(span + 1);
      }
    } else if (lanes !== null) {
      const place = span < 0 ? -1 : lanes.spans.indexOf(span);
      if (place < 0) select(lanes.spans[0]);
      else if (key === "ArrowRight") select(lanes.spans[Math.min(trace.count - 1, place + 1)]);
      else if (key === "ArrowLeft") select(lanes.spans[Math.max(0, place - 1)]);
      else if (key === "ArrowUp" && trace.parent[span] >= 0) select(trace.parent[span]);
      else if (key === "ArrowDown" && trace.next[span] > span + 1) select(span + 1);
    }
    reveal(state.selected);
  }

  return {
    element, zoom, pan, zoomTo, select, reveal, step,
    whole: () => look(null),
    /** What is to be drawn has changed. */
    update: arrange,
    rows: () => rows,
    /** Another answer about the trace; @param {Trace} next */
    replace: (next) => {
      trace = next;
      lanes = null;
      hovered = -1;
      arrange();
    },
    close: () => {
      clearInterval(timer);
      observer.disconnect();
      removeEventListener("resize", measure);
      tip(null);
    },
  };
}

/** @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
function sizeCanvas(canvas, width, height) {
  const scale = devicePixelRatio;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
}
