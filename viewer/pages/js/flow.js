// How many samples were in which stage over time, as stacked areas.

import { stageColor } from "./color.js";
import { h, svg, tip } from "./dom.js";
import { clock, decimal, duration } from "./format.js";

/** @typedef {{ from_unix_nano: string, bucket_ns: string, samples: number[], stages: { stage: string | null, samples: number[] }[] }} Flow */

/** @param {string | null} stage */
const flowColor = (stage) => (stage === null ? "var(--soft)" : stageColor(stage));

/** @param {Flow} flow */
export function flowChart(flow) {
  const [wide, tall] = [flow.samples.length, 100];
  const [from, width] = [Number(flow.from_unix_nano), Number(flow.bucket_ns)];
  const sums = flow.samples.map((_, at) => flow.stages.reduce((sum, one) => sum + one.samples[at], 0));
  const most = Math.max(1e-9, ...flow.samples, ...sums);
  const y = (/** @type {number} */ value) => (tall - (value / most) * (tall - 4)).toFixed(2);
  const below = flow.samples.map(() => 0);
  const areas = flow.stages.map((one) => {
    const low = below.map((value, at) => `${at + 0.5},${y(value)}`).reverse();
    one.samples.forEach((value, at) => (below[at] += value));
    const high = below.map((value, at) => `${at + 0.5},${y(value)}`);
    return svg("polygon", { points: [...high, ...low].join(" "), fill: flowColor(one.stage) });
  });
  const line = svg("polyline", { class: "all", points: flow.samples.map((value, at) => `${at + 0.5},${y(value)}`).join(" ") });
  const cursor = svg("line", { class: "cursor", y1: 0, y2: tall, x1: -1, x2: -1 });
  const chart = svg("svg", {
    class: "flow", viewBox: `0 0 ${wide} ${tall}`, preserveAspectRatio: "none", role: "img", "aria-label": "samples in each stage over time",
    onmousemove: (/** @type {MouseEvent} */ event) => {
      const box = chart.getBoundingClientRect();
      const at = Math.max(0, Math.min(wide - 1, Math.floor(((event.clientX - box.left) / box.width) * wide)));
      cursor.setAttribute("x1", String(at + 0.5));
      cursor.setAttribute("x2", String(at + 0.5));
      const inside = flow.stages.filter((one) => one.samples[at] > 0).sort((one, other) => other.samples[at] - one.samples[at]);
      tip(event, h("div", null, h("b", null, `+${duration(at * width)}`), ` · ${clock(from + at * width)}`), h("div", null, `${decimal(flow.samples[at])} begun and not ended`),
        inside.map((one) => h("div", null, flowSwatch(one.stage), `${one.stage ?? "others"} `, h("b", null, decimal(one.samples[at])))));
    },
    onmouseleave: () => {
      cursor.setAttribute("x1", "-1");
      cursor.setAttribute("x2", "-1");
      tip(null);
    },
  }, areas, line, cursor);
  const marks = [0, 0.25, 0.5, 0.75, 1].map((part) => h("span", null, part === 0 ? clock(from) : `+${duration(part * wide * width)}`));
  return h("div", { class: "flow-box" },
    h("p", { class: "legend" }, flow.stages.map((one) => h("span", { class: "key" }, flowSwatch(one.stage), one.stage ?? "others")), h("span", { class: "key" }, h("i", { class: "line" }), "begun and not ended")),
    h("div", { class: "flow-most soft" }, `${decimal(Math.round(most * 10) / 10)} at most`), chart, h("div", { class: "flow-marks soft" }, marks));
}

/** @param {string | null} stage */
function flowSwatch(stage) {
  const box = h("i", { class: "swatch" });
  box.style.background = flowColor(stage);
  return box;
}
