// The timeline: labels, bars, ruler and minimap on canvases, of which only what is seen is drawn.

import { h, tip } from "../dom.js";
import { duration } from "../format.js";
import { visibleSpans } from "./find.js";
import { minimap } from "./minimap.js";
import { advance, isGrowing, MARK, onPath, processName, selfTime, since } from "./model.js";
import { paintBar, paintLength, paintRow, pixelOf, readPalette, spanColor } from "./paint.js";
import { laneRowOf, laneRows } from "./rows.js";
import { fitWindow, timeTicks } from "./scale.js";

/** @typedef {import("./model.js").Trace} Trace */

const TALL = 22;
const RULER = 38;
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
  const ruler = h("canvas", { class: "ruler", title: "drag to choose a time" });
  const body = h("canvas", { class: "spans" });
  const spacer = h("div", { class: "spacer" }, body);
  const scroll = h("div", { class: "spans-scroll", tabindex: "0", role: "application", "aria-label": "timeline of spans: arrow keys move, w and s zoom, a and d pan" }, spacer);
  const splitter = h("div", { class: "splitter", role: "separator", "aria-orientation": "vertical" });
  const element = h("div", { class: "timeline" }, map.canvas, ruler, scroll, splitter);
  const context = /** @type {CanvasRenderingContext2D} */ (body.getContext("2d"));
  const rulerContext = /** @type {CanvasRenderingContext2D} */ (ruler.getContext("2d"));

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
    const top = row * TALL;
    if (top < scroll.scrollTop) scroll.scrollTop = Math.max(0, top - tall / 3);
    else if (top + TALL > scroll.scrollTop + tall) scroll.scrollTop = top - tall * 0.6;
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
    const most = Math.max(240, innerHeight - 46 - 54 - RULER - 78);
    tall = Math.min(most, Math.max(120, (rowCount() + 1) * TALL));
    scroll.style.height = `${tall}px`;
    spacer.style.height = `${Math.max(tall, (rowCount() + 0.5) * TALL)}px`;
    sizeCanvas(body, width, tall);
    sizeCanvas(ruler, width, RULER);
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
    const [firstRow, lastRow] = [Math.floor(top / TALL), Math.min(rowCount() - 1, Math.floor((top + tall) / TALL))];
    for (let row = firstRow; row <= lastRow; row++) {
      if (state.view === "tree") paintTreeRow(scene, rows[row], row * TALL - top);
      else paintLaneRow(scene, row, row * TALL - top);
    }
    if (state.view === "lanes" && lanes !== null) paintFailed(scene, lanes, top);
    paintLinks(scene, top);
    paintNow(scene);
    context.fillStyle = palette.edge;
    context.fillRect(left, 0, 1, tall);
    paintRuler(scene, ticks);
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
      context.fillRect(0, y, width, TALL);
    }
    context.save();
    context.beginPath();
    context.rect(left, y, width - left, TALL);
    context.clip();
    const bar = paintBar(context, scene, span, y + 4, TALL - 9);
    paintLength(context, scene, span, bar, y + TALL / 2);
    context.restore();
    paintLabel(span, y);
  }

  /** @param {number} span @param {number} y */
  function paintLabel(span, y) {
    const indent = indentOf(trace.depth[span]);
    context.save();
    context.beginPath();
    context.rect(0, y, left - 4, TALL);
    context.clip();
    const isFound = state.matches !== null && state.matches[span] === 1;
    if (isFound) {
      context.fillStyle = palette.accent;
      context.globalAlpha = 0.16;
      context.fillRect(0, y + 1, left, TALL - 2);
      context.globalAlpha = 1;
    }
    context.fillStyle = palette.edge;
    for (let depth = 0; depth < Math.min(trace.depth[span], 200); depth++) context.fillRect(indentOf(depth) + 10, y, 1, TALL);
    const middle = y + TALL / 2;
    if (trace.next[span] > span + 1) {
      context.fillStyle = palette.soft;
      context.beginPath();
      const x = indent + 10;
      if (state.closed.has(span)) context.moveTo(x - 3, middle - 5), context.lineTo(x + 4, middle), context.lineTo(x - 3, middle + 5);
      else context.moveTo(x - 5, middle - 3), context.lineTo(x + 5, middle - 3), context.lineTo(x, middle + 4);
      context.fill();
    }
    context.fillStyle = spanColor(trace, span);
    context.fillRect(indent + 19, y + 6, 4, TALL - 12);
    const name = trace.texts[trace.name[span]];
    const stage = trace.texts[trace.stage[span]];
    const marks = trace.marks[span];
    let x = indent + 28;
    context.globalAlpha = (state.matches !== null && !isFound) || (state.sample >= 0 && trace.sample[span] !== state.sample) ? 0.5 : 1;
    for (const [bit, text, color] of badgesOf(marks, trace.skews.has(span))) {
      if (!bit) continue;
      context.fillStyle = palette[color];
      context.fillText(text, x, middle + 0.5);
      x += context.measureText(text).width + 4;
    }
    context.fillStyle = marks & (MARK.failed | MARK.lost) ? palette.bad : palette.text;
    context.fillText(name, x, middle + 0.5);
    x += context.measureText(name).width + 7;
    context.fillStyle = palette.soft;
    const above = trace.parent[span];
    const parts = [];
    if (stage !== name) parts.push(stage);
    const process = trace.answer.processes[trace.process[span]];
    const isOther = above < 0 ? trace.answer.processes.length > 1 : trace.process[above] !== trace.process[span];
    if (isOther && (process.service !== null || process.pid !== null)) parts.push(processName(process));
    if (state.closed.has(span)) parts.push(`+${trace.next[span] - span - 1}`);
    if (parts.length > 0) context.fillText(parts.join(" · "), x, middle + 0.5);
    context.restore();
  }

  const indentOf = (/** @type {number} */ depth) => Math.min(depth * 14, left * 0.55);

  /** @param {import("./paint.js").Scene} scene @param {number} row @param {number} y */
  function paintLaneRow(scene, row, y) {
    if (lanes === null) return;
    if (lanes.isHead[row]) {
      context.fillStyle = palette.faint;
      context.fillRect(0, y, width, TALL);
      context.fillStyle = palette.text;
      context.fillText(lanes.names[lanes.laneOf[row]], 10, y + TALL / 2 + 0.5);
      return;
    }
    context.save();
    context.beginPath();
    context.rect(left, y, width - left, TALL);
    context.clip();
    paintRow(context, scene, lanes.spans, lanes.starts, lanes.firsts[row], lanes.firsts[row + 1], y + 2, TALL - 5);
    context.restore();
  }

  /** What failed is seen at every size; @param {import("./paint.js").Scene} scene @param {import("./rows.js").LaneRows} lanes @param {number} top */
  function paintFailed(scene, lanes, top) {
    context.fillStyle = palette.bad;
    for (const span of lanes.failed) {
      const y = laneRowOf(lanes, trace, span) * TALL - top;
      const x = pixelOf(scene, trace.start[span]);
      if (y > -TALL && y < tall && x >= left && x < width) context.fillRect(x, y + 2, 2, TALL - 5);
    }
  }

  /** Arrows between the selected span and those that it links to, or that link to it; @param {import("./paint.js").Scene} scene @param {number} top */
  function paintLinks(scene, top) {
    context.save();
    context.beginPath();
    context.rect(left, 0, width - left, tall);
    context.clip();
    context.strokeStyle = context.fillStyle = palette.text;
    context.lineWidth = 1.3;
    for (const [span, to] of linked()) {
      const [row, toRow] = [rowOf(span), rowOf(to)];
      if (row < 0 || toRow < 0) continue;
      // From the end of what came before to the begin of what follows it.
      const [x, toX] = [pixelOf(scene, Math.min(trace.end[to], trace.start[span])), pixelOf(scene, trace.start[span])];
      const [y, toY] = [toRow * TALL - top + TALL / 2, row * TALL - top + TALL / 2];
      context.setLineDash([4, 3]);
      context.beginPath();
      context.moveTo(x, y);
      context.bezierCurveTo(x + 26, y, toX - 26, toY, toX - 5, toY);
      context.stroke();
      context.setLineDash([]);
      context.beginPath();
      context.moveTo(toX, toY);
      context.lineTo(toX - 7, toY - 4);
      context.lineTo(toX - 7, toY + 4);
      context.fill();
    }
    context.restore();
  }

  /** @type {{ span: number, of: Trace, pairs: [number, number][] }} */
  let known = { span: -1, of: trace, pairs: [] };
  function linked() {
    if (known.span !== state.selected || known.of !== trace) {
      const { selected } = state;
      const pairs = selected < 0 ? [] : trace.answer.links.filter((/** @type {[number, number]} */ [from, to]) => from === selected || to === selected);
      known = { span: selected, of: trace, pairs: pairs.slice(0, 200) };
    }
    return known.pairs;
  }

  /** @param {import("./paint.js").Scene} scene */
  function paintNow(scene) {
    const x = pixelOf(scene, trace.now);
    if (trace.open.length === 0 || x < left || x > width) return;
    context.fillStyle = palette.accent;
    context.fillRect(x, 0, 1, tall);
  }

  /** @param {import("./paint.js").Scene} scene @param {{ at: number, text: string }[]} ticks */
  function paintRuler(scene, ticks) {
    const scale = devicePixelRatio;
    rulerContext.setTransform(scale, 0, 0, scale, 0, 0);
    rulerContext.clearRect(0, 0, width, RULER);
    rulerContext.font = "11.5px system-ui, sans-serif";
    rulerContext.textBaseline = "middle";
    rulerContext.fillStyle = palette.soft;
    const { from, to } = scene;
    rulerContext.fillText(`${duration(to - from)} shown`, 10, 11);
    if (state.critical) rulerContext.fillText("critical path", 10, 29);
    for (const { at, text } of ticks) {
      const x = Math.round(pixelOf(scene, at));
      if (x < left) continue;
      rulerContext.fillStyle = palette.edge;
      rulerContext.fillRect(x, 0, 1, RULER);
      rulerContext.fillStyle = palette.soft;
      rulerContext.fillText(text, x + 4, 11);
    }
    if (state.critical) {
      let drawn = left;
      for (let at = 0; at < trace.pathSpan.length; at++) {
        const x = Math.max(left, pixelOf(scene, trace.pathFrom[at]));
        const right = Math.min(width, pixelOf(scene, trace.pathTo[at]));
        if (right < left || right <= drawn) continue;
        if (x > width) break;
        rulerContext.fillStyle = spanColor(trace, trace.pathSpan[at]);
        rulerContext.fillRect(x, 22, Math.max(1, right - x), 12);
        drawn = Math.max(x + 1, right);
      }
    }
    rulerContext.fillStyle = palette.edge;
    rulerContext.fillRect(0, RULER - 1, width, 1);
  }

  /** What is below the pointer; @param {MouseEvent} event */
  function spanAt(event) {
    const box = body.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const row = Math.floor((y + scroll.scrollTop) / TALL);
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

  /** @param {PointerEvent} event @param {number} span */
  function hint(event, span) {
    if (span < 0) return tip(null);
    const marks = trace.marks[span];
    const lasted = trace.end[span] - trace.start[span];
    const usual = trace.stages.get(trace.stage[span])?.usual;
    const own = onPath(trace, span);
    const lines = [
      `${marks & MARK.open ? (marks & MARK.lost ? "lost after" : "open for") : "took"} ${duration(lasted)}, itself ${duration(selfTime(trace, span))}, from ${duration(trace.start[span])}`,
      usual && !(marks & MARK.open) && `half of the stage take up to ${duration(usual.p50_ns)}, 99 % up to ${duration(usual.p99_ns)}`,
      own > 0 && `${duration(own)} of it on the critical path`,
      processName(trace.answer.processes[trace.process[span]]),
    ];
    tip(event, h("b", null, trace.texts[trace.name[span]]), lines.filter(Boolean).map((line) => h("div", null, String(line))));
  }

  /** @type {{ x: number, y: number, from: number, to: number, top: number, isMoved: boolean } | null} */
  let drag = null;
  scroll.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target !== body) return;
    drag = { x: event.clientX, y: event.clientY, ...seen(), top: scroll.scrollTop, isMoved: false };
  });
  body.addEventListener("pointermove", (event) => {
    const { span, x } = spanAt(event);
    pointer = Math.min(1, Math.max(0, (x - left) / (width - left)));
    if (drag !== null) {
      const [right, down] = [event.clientX - drag.x, event.clientY - drag.y];
      if (!drag.isMoved && Math.abs(right) + Math.abs(down) > 4) {
        drag.isMoved = true;
        body.setPointerCapture(event.pointerId);
        tip(null);
      }
      if (drag.isMoved) {
        const shift = (right / (width - left)) * (drag.to - drag.from);
        scroll.scrollTop = drag.top - down;
        look(drag.from - shift, drag.to - shift);
      }
      return;
    }
    if (span !== hovered) {
      hovered = span;
      paintSoon();
    }
    body.style.cursor = span >= 0 ? "pointer" : "default";
    hint(event, span);
  });
  body.addEventListener("pointerleave", () => {
    hovered = -1;
    tip(null);
    paintSoon();
  });
  body.addEventListener("pointerup", (event) => {
    const wasDrag = drag;
    drag = null;
    if (wasDrag === null || wasDrag.isMoved) return;
    const { span, x } = spanAt(event);
    if (span < 0) return select(-1);
    const indent = indentOf(trace.depth[span]);
    if (state.view === "tree" && x > indent && x < indent + 19 && x < left && trace.next[span] > span + 1) toggle(span);
    else select(span);
  });
  body.addEventListener("pointercancel", () => { drag = null; });
  body.addEventListener("dblclick", (event) => {
    const { span, x } = spanAt(event);
    if (span < 0) look(null);
    else if (x < left && state.view === "tree" && trace.next[span] > span + 1) toggle(span);
    else zoomTo(span);
  });
  element.addEventListener("wheel", (event) => {
    const isZoom = event.ctrlKey || event.metaKey;
    const across = event.shiftKey ? event.deltaY : event.deltaX;
    if (isZoom) {
      const { at } = spanAt(event);
      zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.006), at);
    } else if (Math.abs(across) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      pan(across / (width - left));
    } else {
      return;
    }
    event.preventDefault();
  }, { passive: false });
  scroll.addEventListener("scroll", paintSoon);

  /** @type {number | null} */
  let brush = null;
  const instantAt = (/** @type {PointerEvent} */ event) => {
    const { from, to } = seen();
    return from + ((event.offsetX - left) / (width - left)) * (to - from);
  };
  ruler.addEventListener("pointerdown", (event) => {
    ruler.setPointerCapture(event.pointerId);
    brush = instantAt(event);
  });
  ruler.addEventListener("pointermove", (event) => {
    if (brush === null) return;
    paint();
    const { from, to } = seen();
    const x = left + ((brush - from) / (to - from)) * (width - left);
    rulerContext.globalAlpha = 0.25;
    rulerContext.fillStyle = palette.accent;
    rulerContext.fillRect(Math.min(x, event.offsetX), 0, Math.abs(event.offsetX - x), RULER);
    rulerContext.globalAlpha = 1;
    tip(event, duration(Math.abs(instantAt(event) - brush)));
  });
  ruler.addEventListener("pointerup", (event) => {
    const [one, other] = [brush ?? 0, instantAt(event)];
    brush = null;
    tip(null);
    const { from, to } = seen();
    if (Math.abs(one - other) > (to - from) * 0.005) look(Math.min(one, other), Math.max(one, other));
    else paintSoon();
  });
  ruler.addEventListener("dblclick", () => look(null));

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

/** Signs before the name of a span; @param {number} marks @param {boolean} isSkewed @returns {[number | boolean, string, "bad" | "warn" | "accent" | "soft"][]} */
function badgesOf(marks, isSkewed) {
  return [
    [marks & MARK.failed, "✕", "bad"], [marks & MARK.lost, "†", "bad"], [(marks & MARK.open) && !(marks & MARK.lost), "●", "accent"],
    [marks & MARK.neverCame, "?", "warn"], [marks & MARK.parentMissing, "⤴", "warn"], [isSkewed || marks & (MARK.backward | MARK.noBegin), "◷", "warn"],
    [marks & MARK.linksAway, "↗", "soft"],
  ];
}
