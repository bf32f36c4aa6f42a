// A canvas of lanes over time: spans one by one, or what was done most where they are too dense. Zooms and pans.

import { stageColor, themeColor } from "./color.js";
import { h, tip } from "./dom.js";
import { clock, counted, duration, plain } from "./format.js";
import { timeTicks } from "./trace/scale.js";

/**
 * @typedef {{ row: number, at: number, ns: number, stage: number, name: string, trace: string, span: string, sample: unknown, is_open: boolean, is_failed: boolean }} LaneBox
 * @typedef {{ process: string, name: string, spans: number, rows: number, boxes: LaneBox[], columns: [number, number, number, number][], most: number, is_waiting: boolean }} LaneRow
 * @typedef {{ begin_unix_nano: string, end_unix_nano: string, from_unix_nano: string, until_unix_nano: string, stages: string[], lanes: LaneRow[], more: number, is_coarse: boolean }} LaneAnswer
 */

const LANE_LABEL = 210;
const LANE_AXIS = 24;
const LANE_ROW = 11;
const LANE_GAP = 7;
/** No window is shorter, in nanoseconds. */
const LANE_SHORTEST = 1000;

/**
 * @param {{ moved: (from: string | null, until: string | null) => void, open: (box: LaneBox) => void }} listener `moved` is
 *   told of a window that somebody chose; `null` stands for the whole
 */
export function laneChart(listener) {
  const canvas = h("canvas", { class: "swimlanes", tabindex: 0, "aria-label": "lanes over time" });
  /** @type {LaneAnswer | null} */
  let answer = null;
  /** The window that is shown, in nanoseconds after the begin of all. */
  let [from, until] = [0, 1];
  /** That of the answer. */
  let [has, hasUntil] = [0, 1];
  let whole = 1;
  /** @type {number[]} */
  let tops = [];
  let timer = 0;

  const offset = (/** @type {string} */ unixNano) => Number(BigInt(unixNano) - BigInt(answer?.begin_unix_nano ?? "0"));
  const absolute = (/** @type {number} */ at) => (BigInt(answer?.begin_unix_nano ?? "0") + BigInt(Math.round(at))).toString();
  const plot = () => Math.max(50, canvas.clientWidth - LANE_LABEL);
  const height = (/** @type {LaneRow} */ lane) => (lane.boxes.length > 0 ? Math.max(2, lane.rows) : 3) * LANE_ROW + LANE_GAP;

  function draw() {
    const context = canvas.getContext("2d");
    if (context === null || answer === null || canvas.clientWidth === 0) return;
    let top = LANE_AXIS;
    tops = answer.lanes.map((lane) => (top += height(lane)) - height(lane));
    const [wide, tall, ratio] = [canvas.clientWidth, top + 4, devicePixelRatio];
    canvas.style.height = `${tall}px`;
    [canvas.width, canvas.height] = [Math.round(wide * ratio), Math.round(tall * ratio)];
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const x = (/** @type {number} */ at) => LANE_LABEL + ((at - from) / (until - from)) * plot();
    axis(context, x, tall);
    answer.lanes.forEach((lane, index) => {
      const y = tops[index];
      context.fillStyle = themeColor("faint");
      context.fillRect(0, y + height(lane) - 1, wide, 1);
      context.save();
      context.beginPath();
      context.rect(LANE_LABEL, y, plot(), height(lane));
      context.clip();
      if (lane.boxes.length > 0) boxes(context, lane, y, x);
      else columns(context, lane, y, x);
      context.restore();
      label(context, lane.name, y + (height(lane) - LANE_GAP) / 2 + 2);
    });
  }

  /** @param {CanvasRenderingContext2D} context @param {(at: number) => number} x @param {number} tall */
  function axis(context, x, tall) {
    for (const { at, text } of timeTicks(from, until, plot() / 130)) {
      context.fillStyle = themeColor("edge");
      context.fillRect(x(at), 16, 1, tall);
      context.fillStyle = themeColor("soft");
      context.fillText(text, x(at) + 3, 9);
    }
    context.fillStyle = themeColor("soft");
    context.fillText(clock(absolute(from)), 0, 9);
  }

  /** @param {CanvasRenderingContext2D} context @param {string} name @param {number} y */
  function label(context, name, y) {
    context.fillStyle = themeColor("text");
    let text = name;
    while (text.length > 4 && context.measureText(text).width > LANE_LABEL - 14) text = `${text.slice(0, -2)}…`;
    context.fillText(text, 0, y);
  }

  /** @param {CanvasRenderingContext2D} context @param {LaneRow} lane @param {number} y @param {(at: number) => number} x */
  function boxes(context, lane, y, x) {
    for (const box of lane.boxes) {
      const [left, right] = [x(has + box.at), x(has + box.at + box.ns)];
      if (right < LANE_LABEL || left > LANE_LABEL + plot()) continue;
      const wide = Math.max(1, right - left - 0.5);
      const top = y + box.row * LANE_ROW + 2;
      context.fillStyle = stageColor(answer?.stages[box.stage] ?? "");
      context.globalAlpha = box.is_open ? 0.55 : 1;
      context.fillRect(left, top, wide, LANE_ROW - 1.5);
      context.globalAlpha = 1;
      if (box.is_failed) {
        context.fillStyle = themeColor("bad");
        context.fillRect(left, top + LANE_ROW - 4, wide, 2.5);
      }
      if (wide > 46) {
        context.save();
        context.beginPath();
        context.rect(Math.max(left, LANE_LABEL), top, wide, LANE_ROW);
        context.clip();
        context.fillStyle = "#fff";
        context.shadowColor = "#0009";
        context.shadowBlur = 2;
        context.font = "10px system-ui, sans-serif";
        context.fillText(box.name, Math.max(left, LANE_LABEL) + 3, top + LANE_ROW / 2 - 0.5);
        context.restore();
      }
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {LaneRow} lane @param {number} y @param {(at: number) => number} x */
  function columns(context, lane, y, x) {
    const dot = (hasUntil - has) / asked();
    const tall = 3 * LANE_ROW;
    for (const [at, length, stage, value] of lane.columns) {
      const [left, right] = [x(has + at * dot), x(has + (at + length) * dot)];
      const size = Math.max(1.5, (value / Math.max(1, lane.most)) * tall);
      context.fillStyle = stageColor(answer?.stages[stage] ?? "");
      context.fillRect(left, y + 1 + tall - size, Math.max(0.7, right - left), size);
    }
  }

  let dots = 1000;
  const asked = () => dots;

  /** @param {number} nextFrom @param {number} nextUntil */
  function move(nextFrom, nextUntil) {
    const length = Math.min(whole, Math.max(LANE_SHORTEST, nextUntil - nextFrom));
    from = Math.max(0, Math.min(whole - length, nextFrom));
    until = from + length;
    draw();
    clearTimeout(timer);
    const isWhole = length >= whole * 0.999;
    timer = setTimeout(() => {
      timer = 0;
      listener.moved(isWhole ? null : absolute(from), isWhole ? null : absolute(until));
    }, 140);
  }

  /** @param {number} factor below 1 for more detail @param {number} [share] what stays where it is */
  function zoom(factor, share = 0.5) {
    const length = until - from;
    const next = Math.max(LANE_SHORTEST, Math.min(whole, length * factor));
    move(from + (length - next) * share, from + (length - next) * share + next);
  }

  /** @param {number} share of the window */
  function pan(share) {
    const step = (until - from) * share;
    move(from + step, until + step);
  }

  /** What is at a place: a lane, a span, a time. @param {MouseEvent} event */
  function under(event) {
    const bounds = canvas.getBoundingClientRect();
    const [left, y] = [event.clientX - bounds.left, event.clientY - bounds.top];
    const at = from + ((left - LANE_LABEL) / plot()) * (until - from);
    const index = tops.filter((top) => y >= top).length - 1;
    const lane = index < 0 ? undefined : answer?.lanes[index];
    if (lane === undefined) return { at };
    if (left < LANE_LABEL) return { at, lane };
    const dotNs = (until - from) / plot();
    const row = Math.floor((y - tops[index] - 2) / LANE_ROW);
    const box = [...lane.boxes].reverse().find((one) => one.row === row && has + one.at - dotNs <= at && at <= has + one.at + one.ns + dotNs);
    const dot = Math.floor((at - has) / ((hasUntil - has) / asked()));
    const column = lane.columns.find(([begin, length]) => begin <= dot && dot < begin + length);
    return { at, lane, box, column };
  }

  /** @param {MouseEvent} event */
  function hover(event) {
    if (drag !== null && event.buttons === 1) {
      const step = ((drag.x - event.clientX) / plot()) * (until - from);
      if (Math.abs(drag.x - event.clientX) > 3) drag.moved = true;
      drag.x = event.clientX;
      return move(from + step, until + step);
    }
    const { at, lane, box, column } = under(event);
    canvas.style.cursor = box !== undefined ? "pointer" : "default";
    const stage = (/** @type {number} */ number) => answer?.stages[number] ?? "";
    if (box !== undefined) {
      tip(event, h("b", null, stage(box.stage)), box.name === stage(box.stage) ? "" : ` ${box.name}`, h("br", null),
        `${duration(box.ns)}${box.is_open ? " so far" : ""}, from +${duration(has + box.at)}`, h("br", null), `sample ${plain(box.sample)}`, box.is_failed && ", failed");
    } else if (column !== undefined) {
      tip(event, `+${duration(at)}: ${column[3] / 100} ${lane?.is_waiting ? "open, waiting for others," : "at work"} at once, most of them in `, h("b", null, stage(column[2])));
    } else if (lane !== undefined) {
      tip(event, lane.name, h("br", null), `${counted(lane.spans, "span")} in this window`);
    } else {
      tip(null);
    }
  }

  /** @type {{ x: number, moved: boolean } | null} */
  let drag = null;
  canvas.addEventListener("mousedown", (event) => (drag = { x: event.clientX, moved: false }));
  canvas.addEventListener("mousemove", hover);
  canvas.addEventListener("mouseleave", () => tip(null));
  canvas.addEventListener("click", (event) => {
    if (drag?.moved) return;
    const { at, box, column } = under(event);
    if (box !== undefined) listener.open(box);
    else if (column !== undefined) zoom(0.1, (at - from) / (until - from));
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
    event.preventDefault();
    const { at } = under(event);
    zoom((event.deltaY || event.deltaX) < 0 ? 0.75 : 1 / 0.75, Math.min(1, Math.max(0, (at - from) / (until - from))));
  }, { passive: false });
  const observer = new ResizeObserver(draw);
  observer.observe(canvas);
  addEventListener("resize", draw);

  return {
    canvas,
    /** How many dots to ask for. */
    width: () => (dots = Math.min(4096, Math.max(200, Math.round(plot())))),
    /** @param {LaneAnswer} next */
    show(next) {
      answer = next;
      whole = Math.max(LANE_SHORTEST, offset(next.end_unix_nano));
      [has, hasUntil] = [offset(next.from_unix_nano), Math.max(offset(next.until_unix_nano), offset(next.from_unix_nano) + 1)];
      // An answer that comes while somebody goes on does not take him back.
      if (timer === 0) [from, until] = [has, Math.max(hasUntil, has + LANE_SHORTEST)];
      draw();
    },
    zoom,
    pan,
    all: () => move(0, whole),
    /** Whether a key was for it. @param {KeyboardEvent} event */
    key(event) {
      /** @type {Record<string, () => void>} */
      const keys = { w: () => zoom(0.5), s: () => zoom(2), "+": () => zoom(0.5), "-": () => zoom(2), a: () => pan(-0.25), d: () => pan(0.25), 0: () => move(0, whole) };
      keys[event.key]?.();
      return event.key in keys;
    },
    close() {
      clearTimeout(timer);
      observer.disconnect();
      removeEventListener("resize", draw);
    },
  };
}
