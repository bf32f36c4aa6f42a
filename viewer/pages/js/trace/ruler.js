// The ruler above the spans: times, the critical path, and a window that is chosen by a drag.

import { h, tip } from "../dom.js";
import { duration } from "../format.js";
import { pixelOf, spanColor } from "./paint.js";

const RULER_TALL = 38;

/** @param {(from: number | null, to?: number) => void} look shows a part of the time; `null` for all */
export function timeRuler(look) {
  const canvas = h("canvas", { class: "ruler", title: "drag to choose a time" });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  /** @type {{ scene: import("./paint.js").Scene, ticks: { at: number, text: string }[] } | null} */
  let drawn = null;

  function draw() {
    if (drawn === null) return;
    const { scene, ticks } = drawn;
    const { trace, from, to, left, width, palette } = scene;
    const scale = devicePixelRatio;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, RULER_TALL);
    context.font = "11.5px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.fillStyle = palette.soft;
    context.fillText(`${duration(to - from)} shown`, 10, 11);
    if (scene.critical) context.fillText("critical path", 10, 29);
    for (const { at, text } of ticks) {
      const x = Math.round(pixelOf(scene, at));
      if (x < left) continue;
      context.fillStyle = palette.edge;
      context.fillRect(x, 0, 1, RULER_TALL);
      context.fillStyle = palette.soft;
      context.fillText(text, x + 4, 11);
    }
    if (scene.critical) {
      let drawn = left;
      for (let at = 0; at < trace.pathSpan.length; at++) {
        const x = Math.max(left, pixelOf(scene, trace.pathFrom[at]));
        const right = Math.min(width, pixelOf(scene, trace.pathTo[at]));
        if (right < left || right <= drawn) continue;
        if (x > width) break;
        context.fillStyle = spanColor(trace, trace.pathSpan[at]);
        context.fillRect(x, 22, Math.max(1, right - x), 12);
        drawn = Math.max(x + 1, right);
      }
    }
    context.fillStyle = palette.edge;
    context.fillRect(0, RULER_TALL - 1, width, 1);
  }

  /** @type {number | null} */
  let brush = null;
  const instantAt = (/** @type {PointerEvent} */ event) => {
    if (drawn === null) return 0;
    const { from, to, left, width } = drawn.scene;
    return from + ((event.offsetX - left) / (width - left)) * (to - from);
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    brush = instantAt(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (brush === null || drawn === null) return;
    draw();
    const { from, to, left, width, palette } = drawn.scene;
    const x = left + ((brush - from) / (to - from)) * (width - left);
    context.globalAlpha = 0.25;
    context.fillStyle = palette.accent;
    context.fillRect(Math.min(x, event.offsetX), 0, Math.abs(event.offsetX - x), RULER_TALL);
    context.globalAlpha = 1;
    tip(event, duration(Math.abs(instantAt(event) - brush)));
  });
  canvas.addEventListener("pointerup", (event) => {
    const [one, other] = [brush ?? 0, instantAt(event)];
    brush = null;
    tip(null);
    if (drawn === null) return;
    const { from, to } = drawn.scene;
    if (Math.abs(one - other) > (to - from) * 0.005) look(Math.min(one, other), Math.max(one, other));
    else draw();
  });
  canvas.addEventListener("dblclick", () => look(null));

  return {
    canvas,
    tall: RULER_TALL,
    /** @param {import("./paint.js").Scene} scene @param {{ at: number, text: string }[]} ticks */
    paint(scene, ticks) {
      drawn = { scene, ticks };
      draw();
    },
  };
}
