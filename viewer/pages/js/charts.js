// Small charts.

import { h, svg, tip } from "./dom.js";
import { clock, count, duration } from "./format.js";

/**
 * How durations spread, as bars of half powers of two. `range` fixes the scale, so that several can be compared.
 * @param {{ from_ns: number, bars: number[] }} spread
 * @param {{ from: number, to: number }} range in nanoseconds
 * @param {string} color
 */
export function spreadChart(spread, range, color) {
  const [width, height] = [150, 22];
  const place = (/** @type {number} */ ns) => Math.log2(Math.max(1, ns) / range.from);
  const whole = Math.max(0.5, place(range.to) + 0.5);
  const most = Math.max(...spread.bars, 1);
  const bars = spread.bars.map((value, at) => {
    if (value === 0) return null;
    const from = spread.from_ns * 2 ** (at / 2);
    const tall = Math.max(2, (value / most) * height);
    return svg("rect", {
      x: ((place(from) / whole) * width).toFixed(1), y: (height - tall).toFixed(1),
      width: Math.max(1.5, (0.5 / whole) * width - 0.5).toFixed(1), height: tall.toFixed(1), fill: color,
      onmousemove: (/** @type {MouseEvent} */ event) =>
        tip(event, `${count(value)} of ${duration(from)} to ${duration(from * Math.SQRT2)}`),
      onmouseleave: () => tip(null),
    });
  });
  return svg("svg", { class: "spread", viewBox: `0 0 ${width} ${height}`, width, height, role: "img" }, bars);
}

/**
 * Ended and failed samples over time as bars, and their median and 99th percentile as lines.
 * @param {{ from_unix_nano: string, bar_ns: string, bars: { begun: number, ended: number, failed: number, p50_ns: string | null, p99_ns: string | null }[] }} timeline
 */
export function timeChart(timeline) {
  const [width, tall] = [800, 140];
  const { bars } = timeline;
  const [from, step] = [Number(timeline.from_unix_nano), Number(timeline.bar_ns)];
  const wide = width / bars.length;
  const most = Math.max(1, ...bars.map((bar) => Math.max(bar.ended, bar.begun)));
  const slowest = Math.max(1, ...bars.map((bar) => Number(bar.p99_ns ?? 0)));
  const x = (/** @type {number} */ at) => (at * wide).toFixed(1);
  const rect = (/** @type {number} */ at, /** @type {number} */ value, /** @type {string} */ kind) => {
    const size = (value / most) * (tall - 6);
    return value > 0 && svg("rect", { class: kind, x: x(at + 0.1), width: (wide * 0.8).toFixed(1), y: (tall - size).toFixed(1), height: Math.max(1, size).toFixed(1) });
  };
  const line = (/** @type {"p50_ns" | "p99_ns"} */ key) => {
    const points = bars.flatMap((bar, at) =>
      bar[key] === null ? [] : [`${x(at + 0.5)},${(tall - (Number(bar[key]) / slowest) * (tall - 6)).toFixed(1)}`]);
    return svg("polyline", { class: `line ${key}`, points: points.join(" ") });
  };
  const hit = (/** @type {(typeof bars)[0]} */ bar, /** @type {number} */ at) =>
    svg("rect", {
      class: "hit", x: x(at), width: wide.toFixed(1), y: 0, height: tall,
      onmousemove: (/** @type {MouseEvent} */ event) =>
        tip(event, `${clock(from + at * step)}: ${count(bar.begun)} began, ${count(bar.ended)} ended, ${count(bar.failed)} failed`,
          bar.p50_ns !== null && `; half within ${duration(bar.p50_ns)}, 99 % within ${duration(bar.p99_ns)}`),
      onmouseleave: () => tip(null),
    });
  const marks = [0, 0.25, 0.5, 0.75, 1].map((part) => h("span", null, clock(from + part * bars.length * step).slice(0, bars.length * step > 600e9 ? 8 : 12)));
  return h("div", { class: "times" },
    svg("svg", { viewBox: `0 0 ${width} ${tall}`, preserveAspectRatio: "none", role: "img" },
      svg("line", { class: "axis", x1: 0, x2: width, y1: tall, y2: tall }),
      bars.map((bar, at) => [rect(at, bar.ended, "ended"), rect(at, bar.failed, "failed")]),
      line("p99_ns"), line("p50_ns"), bars.map(hit)),
    h("div", { class: "marks" }, marks));
}
