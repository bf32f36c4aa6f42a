// How spans look on a canvas.

import { stageColor, themeColor } from "../color.js";
import { duration } from "../format.js";
import { lowerBound, MARK } from "./model.js";

/** @typedef {import("./model.js").Trace} Trace */

/**
 * What is drawn, and how.
 * @typedef {object} Scene
 * @property {Trace} trace
 * @property {number} from the instants at the left and right
 * @property {number} to
 * @property {number} left pixels before the first instant
 * @property {number} width
 * @property {number} selected -1 for none
 * @property {number} hovered
 * @property {Uint8Array | null} matches
 * @property {number} sample spans of others are dim; -1 for all
 * @property {boolean} critical
 * @property {Palette} palette
 */

/** @typedef {Record<"back" | "front" | "edge" | "text" | "soft" | "faint" | "accent" | "bad" | "warn" | "hover" | "good", string>} Palette */

/** @returns {Palette} */
export function readPalette() {
  const names = /** @type {const} */ (["back", "front", "edge", "text", "soft", "faint", "accent", "bad", "warn", "hover", "good"]);
  return /** @type {Palette} */ (Object.fromEntries(names.map((name) => [name, themeColor(name)])));
}

/** The pixel of an instant; @param {Scene} scene @param {number} at */
export function pixelOf(scene, at) {
  return scene.left + ((at - scene.from) / (scene.to - scene.from)) * (scene.width - scene.left);
}

/** The colour of a span, by its stage; @param {Trace} trace @param {number} span */
export function spanColor(trace, span) {
  return stageColor(trace.texts[trace.stage[span]]);
}

/** @param {Scene} scene @param {number} span */
export function isDim(scene, span) {
  return (scene.matches !== null && !scene.matches[span]) || (scene.sample >= 0 && scene.trace.sample[span] !== scene.sample);
}

/** @type {Map<string, CanvasPattern | null>} */
const hatches = new Map();

/** A pattern of slanted lines; @param {CanvasRenderingContext2D} context @param {string} color */
function hatch(context, color) {
  let pattern = hatches.get(color);
  if (pattern === undefined) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const inner = tile.getContext("2d");
    if (inner === null) return null;
    inner.globalAlpha = 0.35;
    inner.fillStyle = color;
    inner.fillRect(0, 0, 8, 8);
    inner.globalAlpha = 1;
    inner.strokeStyle = color;
    inner.lineWidth = 2.4;
    inner.beginPath();
    for (const shift of [-8, 0, 8]) {
      inner.moveTo(shift - 1, 9);
      inner.lineTo(shift + 9, -1);
    }
    inner.stroke();
    pattern = context.createPattern(tile, "repeat");
    hatches.set(color, pattern);
  }
  return pattern;
}

/**
 * One span as a bar; says where it ends.
 * @param {CanvasRenderingContext2D} context @param {Scene} scene @param {number} span @param {number} y @param {number} height
 */
export function paintBar(context, scene, span, y, height) {
  const { trace, palette, left, width } = scene;
  const marks = trace.marks[span];
  const begin = pixelOf(scene, trace.start[span]);
  const until = Math.max(pixelOf(scene, trace.end[span]), begin + 2);
  const x = Math.max(left - 4, begin);
  const right = Math.min(width + 4, until);
  if (right <= left || x >= width) return { x, right: x };
  const color = marks & MARK.failed || marks & MARK.lost ? palette.bad : spanColor(trace, span);
  context.globalAlpha = isDim(scene, span) ? 0.22 : 1;
  if (marks & (MARK.open | MARK.lost)) {
    context.fillStyle = hatch(context, color) ?? color;
    context.fillRect(x, y, right - x, height);
    context.strokeStyle = color;
    context.lineWidth = 1;
    context.setLineDash(marks & MARK.lost ? [4, 3] : []);
    context.strokeRect(x + 0.5, y + 0.5, Math.max(1, right - x - 1), height - 1);
    context.setLineDash([]);
  } else if (marks & MARK.waits) {
    const dim = context.globalAlpha;
    context.fillStyle = color;
    context.globalAlpha = dim * 0.42;
    context.fillRect(x, y, right - x, height);
    context.globalAlpha = dim;
    context.fillRect(x, y + height - 2, right - x, 2);
  } else {
    context.fillStyle = color;
    context.fillRect(x, y, right - x, height);
  }
  if (marks & MARK.neverCame) {
    context.fillStyle = palette.warn;
    context.fillRect(right - 3, y, 3, height);
  }
  if (scene.critical && right - x > 3) paintPath(context, scene, span, y + height, left);
  const events = trace.events.get(span);
  if (events !== undefined) paintEvents(context, scene, events, y, height);
  const skew = trace.skews.get(span);
  if (skew !== undefined) {
    context.strokeStyle = palette.warn;
    context.setLineDash([2, 2]);
    context.lineWidth = 2;
    context.strokeRect(x - 1, y - 1, right - x + 2, height + 2);
    context.setLineDash([]);
  }
  if (span === scene.selected) {
    context.globalAlpha = 1;
    context.strokeStyle = palette.text;
    context.lineWidth = 2;
    context.strokeRect(x - 1, y - 1, right - x + 2, height + 2);
  }
  context.globalAlpha = 1;
  return { x, right };
}

/** The parts of a span that its end waited for; @param {CanvasRenderingContext2D} context @param {Scene} scene @param {number} span @param {number} y @param {number} left */
function paintPath(context, scene, span, y, left) {
  const { trace, palette } = scene;
  const [first, last] = [trace.pathFirst[span], trace.pathFirst[span + 1]];
  if (first === last) return;
  context.fillStyle = palette.text;
  let drawn = -1;
  for (let at = first; at < last; at++) {
    const place = trace.pathPlaces[at];
    const from = Math.max(left, pixelOf(scene, trace.pathFrom[place]));
    const to = Math.min(scene.width, pixelOf(scene, trace.pathTo[place]));
    if (to < from || Math.max(to, from + 1) <= drawn) continue;
    drawn = Math.max(to, from + 1);
    context.fillRect(from, y - 1, drawn - from, 3);
  }
}

/** @param {CanvasRenderingContext2D} context @param {Scene} scene @param {{ at: number, name: string }[]} events @param {number} y @param {number} height */
function paintEvents(context, scene, events, y, height) {
  context.fillStyle = scene.palette.text;
  let drawn = -9;
  for (const { at } of events) {
    const x = pixelOf(scene, at);
    if (x < scene.left || x > scene.width || Math.abs(x - drawn) < 2) continue;
    drawn = x;
    context.beginPath();
    context.moveTo(x, y - 2);
    context.lineTo(x + 3.5, y + height / 2);
    context.lineTo(x, y + height + 2);
    context.lineTo(x - 3.5, y + height / 2);
    context.fill();
  }
}

/**
 * Spans of one row, in order of their begin, none over another. Those that are narrower than a pixel are one.
 * @param {CanvasRenderingContext2D} context @param {Scene} scene @param {Int32Array} spans @param {Float64Array} starts of the same
 * @param {number} first @param {number} end their places @param {number} y @param {number} height
 */
export function paintRow(context, scene, spans, starts, first, end, y, height) {
  const { trace, from, to, left, width } = scene;
  const perPixel = (to - from) / (width - left);
  let at = Math.max(first, lowerBound(starts, from, first, end) - 1);
  let drawn = left - 1;
  while (at < end && starts[at] <= to) {
    const span = spans[at];
    const wide = (trace.end[span] - trace.start[span]) / perPixel;
    if (wide >= 2.5) {
      const bar = paintBar(context, scene, span, y, height);
      if (bar.right - bar.x > 34) paintInside(context, scene, span, bar, y, height);
      drawn = bar.right;
      at++;
      continue;
    }
    const x = pixelOf(scene, trace.start[span]);
    if (trace.end[span] >= from && x + 1 > drawn) {
      context.globalAlpha = isDim(scene, span) ? 0.22 : 1;
      context.fillStyle = spanColor(trace, span);
      context.fillRect(Math.max(left, x), y, Math.max(1, wide), height);
      drawn = Math.max(x + 1, x + wide);
    }
    // On to the last that begins in the pixel that is filled, since it may go on beyond.
    const next = from + (drawn - left) * perPixel;
    at = Math.max(at + 1, lowerBound(starts, next, at + 1, end) - 1);
  }
  context.globalAlpha = 1;
}

/** The name of a span within its bar; @param {CanvasRenderingContext2D} context @param {Scene} scene @param {number} span @param {{ x: number, right: number }} bar @param {number} y @param {number} height */
function paintInside(context, scene, span, bar, y, height) {
  const { trace, palette } = scene;
  const x = Math.max(bar.x, scene.left);
  const isPale = (trace.marks[span] & (MARK.open | MARK.waits)) !== 0;
  context.save();
  context.beginPath();
  context.rect(x, y, bar.right - x - 2, height);
  context.clip();
  context.fillStyle = isPale ? palette.text : "#fff";
  context.shadowColor = isPale ? palette.front : "#0009";
  context.shadowBlur = isPale ? 4 : 2;
  context.fillText(trace.texts[trace.name[span]], x + 4, y + height / 2 + 0.5);
  context.restore();
}

/** How long a span took, behind its bar or before it; @param {CanvasRenderingContext2D} context @param {Scene} scene @param {number} span @param {{ x: number, right: number }} bar @param {number} middle */
export function paintLength(context, scene, span, bar, middle) {
  const { trace, palette, left, width } = scene;
  const marks = trace.marks[span];
  const lasted = duration(trace.end[span] - trace.start[span]);
  const text = marks & MARK.lost ? `lost after ${lasted}` : marks & MARK.open ? `open for ${lasted}` : lasted;
  const wide = context.measureText(text).width;
  context.fillStyle = marks & (MARK.lost | MARK.failed) ? palette.bad : marks & MARK.open ? palette.accent : palette.soft;
  context.globalAlpha = isDim(scene, span) ? 0.4 : 1;
  if (pixelOf(scene, trace.end[span]) < left) context.fillText(`‹ ${text}`, left + 4, middle);
  else if (pixelOf(scene, trace.start[span]) > width) context.fillText(`${text} ›`, width - wide - 18, middle);
  else if (bar.right + wide + 10 < width) context.fillText(text, bar.right + 6, middle);
  else if (bar.x - wide - 8 > left) context.fillText(text, bar.x - wide - 6, middle);
  else {
    const x = Math.min(width, bar.right) - wide - 10;
    context.fillStyle = palette.front;
    context.beginPath();
    context.roundRect(x - 5, middle - 8, wide + 10, 16, 8);
    context.fill();
    context.fillStyle = palette.text;
    context.fillText(text, x, middle);
  }
  context.globalAlpha = 1;
}
