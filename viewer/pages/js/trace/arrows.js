// Arrows between the selected span and those that it links to, or that link to it.

import { pixelOf } from "./paint.js";
import { ROW_TALL } from "./rows.js";

/** @typedef {import("./model.js").Trace} Trace */

/** Most that are drawn. */
const MOST_ARROWS = 200;

/** Remembers to which spans one links, and which link to it. */
export function linkFinder() {
  /** @type {{ span: number, of: Trace | null, pairs: [number, number][] }} */
  let known = { span: -1, of: null, pairs: [] };
  return (/** @type {Trace} */ trace, /** @type {number} */ selected) => {
    if (known.span === selected && known.of === trace) return known.pairs;
    const pairs = selected < 0 ? [] : trace.answer.links.filter((/** @type {[number, number]} */ [from, to]) => from === selected || to === selected);
    known = { span: selected, of: trace, pairs: pairs.slice(0, MOST_ARROWS) };
    return known.pairs;
  };
}

/**
 * @param {CanvasRenderingContext2D} context @param {import("./paint.js").Scene} scene @param {[number, number][]} pairs a span, and that to which it links
 * @param {(span: number) => number} rowOf -1 if it is not shown @param {number} top pixels that are scrolled away @param {number} tall
 */
export function paintArrows(context, scene, pairs, rowOf, top, tall) {
  const { trace, left, width, palette } = scene;
  context.save();
  context.beginPath();
  context.rect(left, 0, width - left, tall);
  context.clip();
  context.strokeStyle = context.fillStyle = palette.text;
  context.lineWidth = 1.3;
  for (const [span, to] of pairs) {
    const [row, toRow] = [rowOf(span), rowOf(to)];
    if (row < 0 || toRow < 0) continue;
    // From the end of what came before to the begin of what follows it.
    const [x, toX] = [pixelOf(scene, Math.min(trace.end[to], trace.start[span])), pixelOf(scene, trace.start[span])];
    const [y, toY] = [toRow * ROW_TALL - top + ROW_TALL / 2, row * ROW_TALL - top + ROW_TALL / 2];
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
