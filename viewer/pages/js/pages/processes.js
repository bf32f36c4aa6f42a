// Who recorded: processes, what ran in them over time, and the files that tell of it.

import { ask, isStatic } from "../api.js";
import { stageColor } from "../color.js";
import { fill, h, svg, tip } from "../dom.js";
import { bytes, clock, count, dateTime, duration, percent, short } from "../format.js";
import { laneChart } from "../swimlanes.js";
import { change, go, link } from "../router.js";
import { table } from "../table.js";
import { stageName } from "./overview.js";

/** @typedef {import("../main.js").Context} Context */

/** @param {HTMLElement} root @param {Context} context @returns {Promise<import("../main.js").Shown>} */
export async function processesPage(root, context) {
  const [top, over, list, files] = [h("div", null), h("section", null), h("section", null), h("section", null)];
  const by = h("select", { id: "lanes-by", onchange: () => {
    change({ by: by.value }, { quiet: true });
    refreshLanes();
  } },
    [["worker", "workers, threads, GPUs"], ["process", "processes"], ["stage", "stages"]].map(([value, text]) => h("option", { value }, text)));
  by.value = context.params.get("by") ?? "worker";
  by.disabled = isStatic;
  const note = h("span", { class: "none" });
  const lanes = laneChart({
    moved: (from, until) => {
      change({ from, until }, { quiet: true });
      // A saved page has the whole, which is drawn larger or smaller.
      if (!isStatic) refreshAll();
    },
    open: (box) => go("sample", { trace: box.trace, sample: box.sample, span: box.span }),
  });
  const button = (/** @type {string} */ text, /** @type {string} */ title, /** @type {() => void} */ onclick) => h("button", { title, onclick, "aria-label": title }, text);
  const time = h("section", { class: "lanes-section" }, h("h2", null, "Lanes"),
    h("p", { class: "tools" }, h("label", null, "a lane for each of the ", by),
      button("+", "zoom in (key: w)", () => lanes.zoom(0.5)), button("−", "zoom out (key: s)", () => lanes.zoom(2)),
      button("‹", "to the left (key: a)", () => lanes.pan(-0.25)), button("›", "to the right (key: d)", () => lanes.pan(0.25)),
      button("all", "the whole time (key: 0)", () => lanes.all()), note,
      h("span", { class: "gap" }), isStatic && h("span", { class: "none" }, "a saved page has all processes and the whole time"), h("span", { class: "none" }, "drag to pan, Ctrl or Shift and wheel to zoom, click a span to open its sample")),
    lanes.canvas);
  fill(root, top, over, time, list, files);
  let { state, signal } = context;

  /** What the address says now. */
  const params = () => new URLSearchParams(location.hash.split("?")[1] ?? "");

  async function refreshLanes() {
    const now = params();
    const answer = await ask("lanes", isStatic ? {} : { from: now.get("from"), until: now.get("until"), by: by.value, process: now.get("process"), width: lanes.width() }, signal)
      .catch((error) => (error.status === 404 ? null : Promise.reject(error)));
    time.hidden = answer === null;
    if (answer === null) return;
    lanes.show(answer);
    const notes = [answer.more > 0 && `${count(answer.more)} more lanes`, answer.is_coarse && "too many spans for lanes of workers: zoom in or choose a process"];
    fill(note, notes.filter((one) => one !== false).join("; "));
  }

  async function refreshAll() {
    const now = params();
    const chosen = isStatic ? null : now.get("process");
    const answer = await ask("processes", isStatic ? {} : { from: now.get("from"), until: now.get("until"), process: chosen }, signal);
    fill(top, processCards(answer, chosen));
    fill(over, stagesOverTime(answer, chosen));
    fill(list, processTable(answer, chosen));
    fill(files, sourceTable(state));
    await refreshLanes();
  }

  const draw = async (/** @type {Context} */ next) => {
    ({ state, signal } = next);
    await refreshAll();
  };
  await draw(context);
  return { refresh: draw, close: lanes.close, key: lanes.key };
}

/** @param {any} answer @param {string | null} chosen */
function processCards({ count: all, processes: rows }, chosen) {
  const sum = (/** @type {string} */ key) => rows.reduce((/** @type {number} */ total, /** @type {any} */ row) => total + row[key], 0);
  const having = (/** @type {(row: any) => boolean} */ is) => rows.filter(is).length;
  const dead = having((row) => row.is_dead);
  const card = (/** @type {string} */ name, /** @type {import("../dom.js").Child} */ value, kind = "") => h("div", { class: `card ${kind}` }, h("b", null, value), h("span", null, name));
  return [
    h("div", { class: "cards" },
      card(all === 1 ? "process" : "processes", count(all)), card("alive", count(having((row) => row.is_alive === true))),
      dead > 0 && card("ended without closing", count(dead), "alarm"),
      card("open spans", count(sum("open"))), sum("lost") > 0 && card("open when their process died", count(sum("lost")), "alarm"),
      sum("lost_spans") > 0 && card("spans found no room", count(sum("lost_spans")), "alarm"), card("spans with an error", count(sum("errors")))),
    chosen !== null && h("p", null, "Only ", h("b", null, chosen), " ", h("button", { onclick: () => change({ process: null }) }, "show all")),
  ];
}

/** How many spans were at work at once, by stage. @param {any} answer @param {string | null} chosen */
function stagesOverTime({ window: range, stages }, chosen) {
  const title = h("h2", null, "At work at once, by stage");
  if (range === null || stages.length === 0) return [title, h("p", { class: "none" }, "Nothing was done in this time.")];
  const [width, tall] = [960, 130];
  const sums = Array.from({ length: range.buckets }, (_, at) => stages.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + one.at_once[at], 0));
  const most = Math.max(...sums, 0.001);
  const wide = width / range.buckets;
  const base = sums.map(() => 0);
  const bars = stages.map((/** @type {any} */ one) => {
    const points = base.map((from, at) => {
      base[at] = from + one.at_once[at];
      return [from, base[at]].map((value) => tall - (value / most) * (tall - 4));
    });
    const line = (/** @type {number} */ which) => points.map((pair, at) => `${(at * wide).toFixed(1)},${pair[which].toFixed(1)} ${((at + 1) * wide).toFixed(1)},${pair[which].toFixed(1)}`);
    return svg("polygon", { points: [...line(1), ...line(0).reverse().map((pair) => pair.split(" ").reverse().join(" "))].join(" "), fill: stageColor(one.stage) });
  });
  const [from, step] = [Number(range.from_unix_nano), Number(range.bucket_ns)];
  const hits = sums.map((sum, at) => svg("rect", {
    class: "hit", x: (at * wide).toFixed(1), width: wide.toFixed(1), y: 0, height: tall,
    onmousemove: (/** @type {MouseEvent} */ event) => tip(event, `${clock(from + at * step)}: ${sum.toFixed(sum < 10 ? 2 : 0)} at work at once`,
      stages.filter((/** @type {any} */ one) => one.at_once[at] > 0).sort((/** @type {any} */ one, /** @type {any} */ other) => other.at_once[at] - one.at_once[at])
        .map((/** @type {any} */ one) => [h("br", null), stageName(one.stage), ` ${one.at_once[at].toFixed(2)}`])),
    onmouseleave: () => tip(null),
  }));
  const marks = [0, 0.25, 0.5, 0.75, 1].map((part) => h("span", null, clock(from + part * range.buckets * step).slice(0, range.buckets * step > 600e9 ? 8 : 12)));
  return [title,
    h("p", { class: "legend stages" }, stages.map((/** @type {any} */ one) => stageName(one.stage)), h("span", { class: "none" }, `up to ${most.toFixed(most < 10 ? 1 : 0)} at once${chosen === null ? "" : " in this process"}`)),
    h("div", { class: "times" },
      svg("svg", { viewBox: `0 0 ${width} ${tall}`, preserveAspectRatio: "none", role: "img" }, bars, svg("line", { class: "axis", x1: 0, x2: width, y1: tall, y2: tall }), hits),
      h("div", { class: "marks" }, marks))];
}

/** @param {any} answer @param {string | null} chosen */
function processTable({ count: all, processes: rows, window: range, now_unix_nano }, chosen) {
  const since = (/** @type {string | null} */ at) => at === null ? "–" : h("span", { title: dateTime(at) }, `${duration(Number(now_unix_nano) - Number(at))} ago`);
  const life = (/** @type {any} */ row) => {
    if (row.is_dead) return h("span", { class: "status status-failed", title: "its recording was not closed, and its process is gone" }, "ended without closing");
    if (row.is_alive) return h("span", { class: "status status-running" }, "alive");
    return row.is_alive === false ? h("span", { class: "status" }, "closed") : h("span", { class: "none", title: "there is no recording of it, which would know" }, "not known");
  };
  const oldest = (/** @type {any} */ row) => row.oldest_open === null ? "–"
    : h("a", { href: link("sample", { trace: row.oldest_open.trace_id, span: row.oldest_open.span_id }), title: row.oldest_open.stage }, `${row.oldest_open.stage} for ${duration(row.oldest_open.age_ns)}`);
  return [h("h2", null, "Processes"), table([
    { title: "process", cell: (row) => isStatic ? row.name : h("a", { href: link("processes", { ...Object.fromEntries(new URLSearchParams(location.hash.split("?")[1] ?? "")), process: row.id === chosen ? null : row.id }), title: [row.id, row.sdk].filter((one) => one !== null).join("\n") }, row.name) },
    { title: "state", cell: life },
    { title: "run", cell: (row) => h("span", { title: row.run }, row.run === null ? "–" : short(row.run)) },
    { title: "busy", hint: "share of the time in which at least one span was open; darker is more at once", cell: (row) => busyStrip(row, range) },
    { title: "spans", number: true, cell: (row) => count(row.spans) }, { title: "samples", hint: "that began here", number: true, cell: (row) => count(row.samples) },
    { title: "errors", number: true, cell: (row) => h("span", { class: row.errors > 0 ? "bad" : null }, count(row.errors)) },
    { title: "open", number: true, cell: (row) => count(row.open) }, { title: "oldest open", cell: oldest },
    { title: "lost", hint: "open when it died, and without room in its recorder", number: true, cell: (row) => row.lost + row.lost_spans > 0 ? h("span", { class: "bad" }, count(row.lost + row.lost_spans)) : "0" },
    { title: "first", number: true, cell: (row) => since(row.first_unix_nano) }, { title: "last", number: true, cell: (row) => since(row.last_unix_nano) },
  ], rows.slice(0, 300), { class: "processes", empty: "No span says who recorded it." }),
  all > 300 && h("p", { class: "none" }, `${count(all - 300)} more with fewer spans`)];
}

/** @param {any} row @param {any} range */
function busyStrip(row, range) {
  if (row.busy_share === null || range === null) return "–";
  const [width, tall] = [row.busy.length, 14];
  const most = Math.max(...row.at_once, 0.001);
  const bars = row.busy.map((/** @type {number} */ share, /** @type {number} */ at) => share > 0
    && svg("rect", { x: at, y: tall - Math.max(1, (share / 100) * tall), width: 1.05, height: Math.max(1, (share / 100) * tall), opacity: (0.35 + 0.65 * (row.at_once[at] / most)).toFixed(2) }));
  const move = (/** @type {MouseEvent} */ event) => {
    const bounds = /** @type {Element} */ (event.currentTarget).getBoundingClientRect();
    const at = Math.max(0, Math.min(width - 1, Math.floor(((event.clientX - bounds.left) / bounds.width) * width)));
    tip(event, `${clock(Number(range.from_unix_nano) + at * Number(range.bucket_ns))}: busy ${row.busy[at]} %, ${row.at_once[at].toFixed(2)} at work at once`);
  };
  return h("span", { class: "bar" },
    svg("svg", { class: "busy", viewBox: `0 0 ${width} ${tall}`, width: 120, height: tall, preserveAspectRatio: "none", role: "img", onmousemove: move, onmouseleave: () => tip(null) }, bars),
    percent(row.busy_share));
}

/** @param {import("../main.js").State} state */
function sourceTable({ sources }) {
  const damaged = sources.filter((source) => source.error !== null || source.damaged_lines > 0);
  return [h("h2", null, "Sources"), table([
    { title: "name", cell: (row) => h("span", { class: "mono" }, row.name) }, { title: "kind", cell: (row) => row.kind },
    { title: "state", cell: (row) => row.error !== null ? h("span", { class: "bad" }, "cannot be read") : row.alive === null ? "–" : row.alive ? "its process lives" : "its process is gone" },
    { title: "size", number: true, cell: (row) => row.kind === "file" ? bytes(row.bytes) : "–" }, { title: "lines", number: true, cell: (row) => row.kind === "file" ? count(row.lines) : "–" },
    { title: "damaged", number: true, cell: (row) => row.damaged_lines > 0 ? h("span", { class: "bad" }, count(row.damaged_lines)) : "0" },
    { title: "open spans", number: true, cell: (row) => row.kind === "recording" ? count(row.open_spans) : "–" },
    { title: "lost spans", number: true, cell: (row) => row.lost_spans > 0 ? h("span", { class: "bad" }, count(row.lost_spans)) : "0" },
  ], sources),
  damaged.length > 0 && [h("h2", { class: "lower" }, "What is wrong with them"), h("ul", { class: "damages" }, damaged.slice(0, 100).map((source) => h("li", null, h("span", { class: "mono" }, source.name),
    source.error !== null && h("div", { class: "bad" }, source.error),
    source.damage.map(([line, what]) => h("div", null, `line ${count(line)}: `, h("span", { class: "message" }, what))),
    source.damaged_lines > source.damage.length && h("div", { class: "none" }, source.damaged_lines - source.damage.length === 1 ? "its last line is torn: its writer was killed, or is writing it now" : `${count(source.damaged_lines - source.damage.length)} more, a torn last line included`))))]];
}
