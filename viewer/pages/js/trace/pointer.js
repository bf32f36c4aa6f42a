// What the pointer does over the spans: hints, clicks, drags and the wheel.

import { h, tip } from "../dom.js";
import { duration } from "../format.js";
import { labelIndent } from "./labels.js";
import { MARK, onPath, processName, selfTime } from "./model.js";

/** @typedef {import("./model.js").Trace} Trace */

/**
 * @typedef {object} PointerDoes
 * @property {() => Trace} trace
 * @property {() => { left: number, width: number, isTree: boolean }} place pixels before the first instant, and all
 * @property {() => { from: number, to: number }} seen
 * @property {(event: MouseEvent) => { span: number, x: number, at: number }} spanAt what is below the pointer: -1 for no span
 * @property {(part: number) => void} aim what part of what is seen stays where it is when keys zoom
 * @property {(span: number) => void} hover
 * @property {(span: number) => void} select
 * @property {(span: number) => void} toggle
 * @property {(span: number) => void} zoomTo
 * @property {(from: number | null, to?: number) => void} look
 * @property {(factor: number, at?: number) => void} zoom
 * @property {(part: number) => void} pan
 */

/** @param {HTMLElement} element @param {HTMLElement} scroll @param {HTMLCanvasElement} body @param {PointerDoes} does */
export function followPointer(element, scroll, body, does) {
  /** @type {{ x: number, y: number, from: number, to: number, top: number, isMoved: boolean } | null} */
  let drag = null;
  scroll.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target !== body) return;
    drag = { x: event.clientX, y: event.clientY, ...does.seen(), top: scroll.scrollTop, isMoved: false };
  });
  body.addEventListener("pointermove", (event) => {
    const { span, x } = does.spanAt(event);
    const { left, width } = does.place();
    does.aim(Math.min(1, Math.max(0, (x - left) / (width - left))));
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
        does.look(drag.from - shift, drag.to - shift);
      }
      return;
    }
    does.hover(span);
    body.style.cursor = span >= 0 ? "pointer" : "default";
    spanHint(event, does.trace(), span);
  });
  body.addEventListener("pointerleave", () => {
    tip(null);
    does.hover(-1);
  });
  body.addEventListener("pointerup", (event) => {
    const wasDrag = drag;
    drag = null;
    if (wasDrag === null || wasDrag.isMoved) return;
    const { span, x } = does.spanAt(event);
    if (span < 0) return does.select(-1);
    const [trace, { left, isTree }] = [does.trace(), does.place()];
    const indent = labelIndent(trace.depth[span], left);
    if (isTree && x > indent && x < indent + 19 && x < left && trace.next[span] > span + 1) does.toggle(span);
    else does.select(span);
  });
  body.addEventListener("pointercancel", () => { drag = null; });
  body.addEventListener("dblclick", (event) => {
    const { span, x } = does.spanAt(event);
    const [trace, { left, isTree }] = [does.trace(), does.place()];
    if (span < 0) does.look(null);
    else if (x < left && isTree && trace.next[span] > span + 1) does.toggle(span);
    else does.zoomTo(span);
  });
  element.addEventListener("wheel", (event) => {
    const isZoom = event.ctrlKey || event.metaKey;
    const across = event.shiftKey ? event.deltaY : event.deltaX;
    if (isZoom) {
      const { at } = does.spanAt(event);
      does.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.006), at);
    } else if (Math.abs(across) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      const { left, width } = does.place();
      does.pan(across / (width - left));
    } else {
      return;
    }
    event.preventDefault();
  }, { passive: false });
}

/** Tells of a span beside the pointer; @param {PointerEvent} event @param {Trace} trace @param {number} span -1 for none */
function spanHint(event, trace, span) {
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
