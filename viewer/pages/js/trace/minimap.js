// The whole trace in a strip, with a window that can be drawn and dragged.

import { h } from "../dom.js";
import { spanColor } from "./paint.js";
import { MARK } from "./model.js";

/** @typedef {import("./model.js").Trace} Trace */

const STRIP = 54;

/**
 * @param {(from: number, to: number) => void} moved a window was chosen, by its instants
 * @param {() => void} reset
 */
export function minimap(moved, reset) {
  const canvas = h("canvas", { class: "minimap", title: "drag to move the window or to choose another; double-click for all" });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const whole = document.createElement("canvas");
  let [width, left] = [0, 0];
  let shown = { from: 0, to: 1, first: 0, last: 1 };
  /** @type {{ from: number, to: number, begin: number, kind: "move" | "left" | "right" | "new" } | null} */
  let drag = null;
  const instant = (/** @type {number} */ x) => shown.first + ((x - left) / (width - left)) * (shown.last - shown.first);
  const pixel = (/** @type {number} */ at) => left + ((at - shown.first) / (shown.last - shown.first)) * (width - left);
  const kindAt = (/** @type {number} */ x) => {
    const [from, to] = [pixel(shown.from), pixel(shown.to)];
    if (to - from > (width - left) * 0.98) return "new";
    return Math.abs(x - from) < 6 ? "left" : Math.abs(x - to) < 6 ? "right" : x > from && x < to ? "move" : "new";
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    drag = { from: shown.from, to: shown.to, begin: instant(event.offsetX), kind: kindAt(event.offsetX) };
  });
  canvas.addEventListener("pointermove", (event) => {
    const at = instant(event.offsetX);
    if (drag === null) {
      const kind = kindAt(event.offsetX);
      canvas.style.cursor = kind === "move" ? "grab" : kind === "new" ? "crosshair" : "ew-resize";
    } else if (drag.kind === "move") moved(drag.from + at - drag.begin, drag.to + at - drag.begin);
    else if (drag.kind === "left") moved(Math.min(at, drag.to - 1), drag.to);
    else if (drag.kind === "right") moved(drag.from, Math.max(at, drag.from + 1));
    else if (Math.abs(pixel(at) - pixel(drag.begin)) > 3) moved(Math.min(at, drag.begin), Math.max(at, drag.begin));
  });
  canvas.addEventListener("pointerup", () => { drag = null; });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("dblclick", reset);

  /**
   * Draws all spans; only when they or the size have changed.
   * @param {Trace} trace @param {(span: number) => number} rowOf -1 if it is not drawn @param {number} rows @param {number} wide @param {number} begin pixels before the first instant
   */
  function draw(trace, rowOf, rows, wide, begin) {
    [width, left] = [wide, begin];
    const scale = devicePixelRatio;
    for (const one of [canvas, whole]) {
      one.width = Math.max(1, Math.round(width * scale));
      one.height = Math.round(STRIP * scale);
    }
    canvas.style.width = `${width}px`;
    canvas.style.height = `${STRIP}px`;
    const inner = whole.getContext("2d");
    if (inner === null) return;
    inner.scale(scale, scale);
    const lines = Math.min(STRIP - 6, Math.max(1, rows));
    const tall = Math.max(1, Math.min(6, Math.floor((STRIP - 6) / lines)));
    const columns = Math.max(1, Math.round(width - left));
    // Which colour each cell has: what is drawn first stays, but for what failed.
    const cells = new Int32Array(lines * columns).fill(-1);
    const perPixel = (trace.to - trace.from) / columns;
    for (let span = 0; span < trace.count; span++) {
      const row = rowOf(span);
      if (row < 0) continue;
      const line = Math.min(lines - 1, Math.floor((row / Math.max(1, rows)) * lines)) * columns;
      const from = Math.max(0, Math.floor((trace.start[span] - trace.from) / perPixel));
      const to = Math.min(columns - 1, Math.floor((trace.end[span] - trace.from) / perPixel));
      const isFailed = (trace.marks[span] & MARK.failed) !== 0;
      if (!isFailed && to - from > 4 && cells[line + from] >= 0 && cells[line + to] >= 0 && cells[line + ((from + to) >> 1)] >= 0) continue;
      for (let at = line + from; at <= line + to; at++) if (cells[at] < 0 || isFailed) cells[at] = span;
    }
    const bad = getComputedStyle(document.documentElement).getPropertyValue("--bad").trim();
    for (let line = 0; line < lines; line++) {
      for (let at = 0; at < columns;) {
        const span = cells[line * columns + at];
        let end = at + 1;
        while (end < columns && cells[line * columns + end] === span) end++;
        if (span >= 0) {
          inner.fillStyle = trace.marks[span] & MARK.failed ? bad : spanColor(trace, span);
          inner.fillRect(left + at, 3 + line * tall, end - at, Math.max(1, tall - (tall > 2 ? 1 : 0)));
        }
        at = end;
      }
    }
  }

  /** Draws the window over the whole; @param {{ from: number, to: number }} window @param {Trace} trace @param {import("./paint.js").Palette} palette */
  function frame(window, trace, palette) {
    shown = { from: window.from, to: window.to, first: trace.from, last: trace.to };
    const scale = devicePixelRatio;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.drawImage(whole, 0, 0);
    context.scale(scale, scale);
    const [from, to] = [Math.max(left, pixel(window.from)), Math.min(width, pixel(window.to))];
    context.fillStyle = palette.back;
    context.globalAlpha = 0.72;
    context.fillRect(left, 0, from - left, STRIP);
    context.fillRect(to, 0, width - to, STRIP);
    context.globalAlpha = 1;
    context.strokeStyle = palette.accent;
    context.lineWidth = 1;
    context.strokeRect(from + 0.5, 0.5, Math.max(2, to - from - 1), STRIP - 1);
    context.fillStyle = palette.accent;
    for (const x of [from, to]) context.fillRect(x - 1.5, STRIP / 2 - 8, 3, 16);
  }
  return { canvas, draw, frame };
}
