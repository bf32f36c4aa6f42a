// What stands before the bars: the tree of names, and signs of what is odd about a span.

import { MARK, processName } from "./model.js";
import { spanColor } from "./paint.js";
import { ROW_TALL } from "./rows.js";

/** Pixels before the label of a span; @param {number} depth @param {number} left pixels before the first instant */
export function labelIndent(depth, left) {
  return Math.min(depth * 14, left * 0.55);
}

/**
 * @param {CanvasRenderingContext2D} context @param {import("./paint.js").Scene} scene @param {number} span @param {number} y
 * @param {Set<number>} closed spans whose children are not shown
 */
export function paintLabel(context, scene, span, y, closed) {
  const { trace, left, palette, matches, sample } = scene;
  const indent = labelIndent(trace.depth[span], left);
  context.save();
  context.beginPath();
  context.rect(0, y, left - 4, ROW_TALL);
  context.clip();
  const isFound = matches !== null && matches[span] === 1;
  if (isFound) {
    context.fillStyle = palette.accent;
    context.globalAlpha = 0.16;
    context.fillRect(0, y + 1, left, ROW_TALL - 2);
    context.globalAlpha = 1;
  }
  context.fillStyle = palette.edge;
  for (let depth = 0; depth < Math.min(trace.depth[span], 200); depth++) context.fillRect(labelIndent(depth, left) + 10, y, 1, ROW_TALL);
  const middle = y + ROW_TALL / 2;
  if (trace.next[span] > span + 1) {
    context.fillStyle = palette.soft;
    context.beginPath();
    const x = indent + 10;
    if (closed.has(span)) context.moveTo(x - 3, middle - 5), context.lineTo(x + 4, middle), context.lineTo(x - 3, middle + 5);
    else context.moveTo(x - 5, middle - 3), context.lineTo(x + 5, middle - 3), context.lineTo(x, middle + 4);
    context.fill();
  }
  context.fillStyle = spanColor(trace, span);
  context.fillRect(indent + 19, y + 6, 4, ROW_TALL - 12);
  const name = trace.texts[trace.name[span]];
  const stage = trace.texts[trace.stage[span]];
  const marks = trace.marks[span];
  let x = indent + 28;
  context.globalAlpha = (matches !== null && !isFound) || (sample >= 0 && trace.sample[span] !== sample) ? 0.5 : 1;
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
  if (closed.has(span)) parts.push(`+${trace.next[span] - span - 1}`);
  if (parts.length > 0) context.fillText(parts.join(" · "), x, middle + 0.5);
  context.restore();
}

/** Signs before the name of a span; @param {number} marks @param {boolean} isSkewed @returns {[number | boolean, string, "bad" | "warn" | "accent" | "soft"][]} */
function badgesOf(marks, isSkewed) {
  return [
    [marks & MARK.failed, "✕", "bad"], [marks & MARK.lost, "†", "bad"], [(marks & MARK.open) && !(marks & MARK.lost), "●", "accent"],
    [marks & MARK.neverCame, "?", "warn"], [marks & MARK.parentMissing, "⤴", "warn"], [isSkewed || marks & (MARK.backward | MARK.noBegin), "◷", "warn"],
    [marks & MARK.linksAway, "↗", "soft"],
  ];
}
