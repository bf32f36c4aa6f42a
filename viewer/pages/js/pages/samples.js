// All samples: searched, sorted, of any number.

import { ageSince, serverClock, setServerClock, tickAges } from "../ages.js";
import { ask, isStatic, Refused } from "../api.js";
import { stageColor, statusClass } from "../color.js";
import { fill, h } from "../dom.js";
import { clock, count, counted, dateTime, decimal, duration, plain } from "../format.js";
import { sampleLane } from "../lanes.js";
import { change, link } from "../router.js";
import { searchBox, searchChips } from "../search.js";
import { virtualList } from "../virtual.js";
import { meter, quoted, stageName } from "./overview.js";

/** @typedef {import("../main.js").Context} Context */
/** @typedef {import("../lanes.js").SampleRow} SampleRow */

const SAMPLE_ROWS = 200;
const SAMPLE_ROW_HEIGHT = 34;
/** Title, what it is sorted by, class. @type {[string, string | null, string][]} */
const SAMPLE_COLUMNS = [
  ["sample", "id", "id"], ["status", "status", "state"], ["now in", "stage", "now"], ["for", "stage_age", "number"], ["path", null, "way"],
  ["took", "duration", "number took"], ["start", "start", "number start"], ["step", "step", "number"], ["group", "group", "number"],
  ["att.", "attempt", "number attempt"], ["reward", "reward", "number"], ["tokens", "tokens", "number tokens"], ["spans", "spans", "number spans"], ["error", null, "why"],
];

/** The page of a sample; @param {SampleRow} row */
export function sampleLink(row) {
  return link("sample", { trace: row.trace_id, sample: row.id });
}

/** @param {HTMLElement} root @param {Context} context @returns {Promise<import("../main.js").Shown>} */
export async function samplesPage(root, context) {
  const { params } = context;
  const view = {
    q: params.get("q") ?? "", step: params.get("step"),
    sort: params.get("sort") ?? "start", desc: params.has("sort") ? params.get("desc") === "true" : true,
  };
  const question = (/** @type {number} */ offset, /** @type {number} */ limit) => ({ q: view.q.trim(), step: view.step, sort: view.sort, desc: view.desc, offset, limit });
  const [chips, told, why, head] = [h("div", { class: "facets" }), h("p", { class: "told soft" }), h("p", { class: "refusal bad", role: "alert", hidden: true }), h("div", { class: "virtual-head samples-grid", role: "row" })];
  let longest = 1;
  let turn = 0;

  const box = searchBox(view.q, search);
  const list = virtualList({
    rowHeight: SAMPLE_ROW_HEIGHT, head,
    load: async (offset, limit) => {
      const answer = await ask("samples", question(offset, limit), context.signal);
      learn(answer);
      list.setTotal(answer.matched);
      return answer.rows;
    },
    draw: (row, index) => sampleRow(row, index, longest),
    name: (row) => `${row.trace_id} ${row.sample}`,
    settled: (first) => change({ at: first > 0 ? first : null }, { quiet: true }),
  });

  /** What an answer says of all samples that were found; @param {any} answer */
  function learn(answer) {
    setServerClock(answer.now_unix_nano);
    const most = Math.max(1, Number(answer.longest_ns));
    if (Math.abs(most / longest - 1) > 0.05) {
      longest = most;
      list.redraw();
    }
    searchChips(chips, answer.facets, view.q, (q) => {
      box.set(q);
      search(q);
    }, quoted);
    const json = !isStatic && h("a", { href: `/api/samples?${new URLSearchParams(Object.entries(question(0, SAMPLE_ROWS)).filter(([, value]) => value !== null && value !== "").map(([name, value]) => [name, String(value)]))}`, target: "_blank", rel: "noopener" }, "the same as JSON");
    fill(told, h("b", null, counted(answer.matched, "sample")), answer.matched < answer.total && ` of ${count(answer.total)}`, view.step !== null && ` of step ${view.step}`, answer.matched === 0 && view.q !== "" && " · Escape takes the search away",
      answer.unsearched_spans > 0 && h("span", { class: "warn" }, ` · details of ${counted(answer.unsearched_spans, "span")} are not in memory and were not searched`),
      h("span", { class: "gap" }), json);
  }

  /** Asks for the first page, or for that with a row. @param {number} [at] */
  async function load(at = 0) {
    const own = ++turn;
    const offset = Math.floor(at / SAMPLE_ROWS) * SAMPLE_ROWS;
    try {
      const answer = await ask("samples", question(offset, SAMPLE_ROWS), context.signal);
      if (own !== turn) return;
      why.hidden = true;
      learn(answer);
      list.reset(answer.matched, offset, answer.rows);
      if (at > 0) list.scrollTo(at);
    } catch (error) {
      if (own !== turn) return;
      if (!(error instanceof Refused) || error.status !== 400) throw error;
      why.hidden = false;
      fill(why, error.message);
    }
    list.fit();
  }

  const again = () => load().catch((error) => {
    if (error instanceof DOMException) return;
    why.hidden = false;
    fill(why, String(error.message ?? error));
  });

  function search(/** @type {string} */ q) {
    if (q === view.q) return;
    view.q = q;
    change({ q: q.trim() === "" ? null : q, at: null }, { quiet: true });
    again();
  }

  function sort(/** @type {string} */ column) {
    const first = ["id", "status", "stage", "step", "group", "attempt"].includes(column);
    [view.sort, view.desc] = [column, view.sort === column ? !view.desc : !first];
    change({ sort: view.sort, desc: view.desc, at: null }, { quiet: true });
    drawHead();
    again();
  }

  function drawHead() {
    fill(head, SAMPLE_COLUMNS.map(([title, column, kind]) => {
      const is = column === view.sort;
      return h("div", { class: `cell ${kind}`, role: "columnheader", "aria-sort": is && (view.desc ? "descending" : "ascending") },
        column === null ? title : h("button", { class: "sort", onclick: () => sort(column) }, title, is && (view.desc ? " ▾" : " ▴")));
    }));
  }

  drawHead();
  fill(root, box.element, why, chips, told, list.element);
  await load(Math.max(0, Math.floor(Number(params.get("at") ?? 0)) || 0));
  // The page is put into the document after this, and only then its size is known.
  requestAnimationFrame(() => {
    list.fit();
    const at = Number(params.get("at") ?? 0);
    if (at > 0) list.scrollTo(at);
  });
  const fit = () => list.fit();
  addEventListener("resize", fit);
  const stopAges = tickAges(list.element);
  return {
    refresh: async (next) => {
      context = next;
      if (!why.hidden) return;
      await list.refresh();
    },
    close: () => {
      removeEventListener("resize", fit);
      stopAges();
      box.stop();
      list.close();
    },
    key: (event) => {
      if (event.key === "j" || event.key === "ArrowDown") list.move(1);
      else if (event.key === "k" || event.key === "ArrowUp") list.move(-1);
      else if (event.key === "Enter" && list.chosen() !== null && !(document.activeElement instanceof HTMLButtonElement || document.activeElement instanceof HTMLAnchorElement)) location.hash = sampleLink(/** @type {SampleRow} */ (list.chosen()));
      else if (event.key === "Escape" && view.q !== "") {
        box.set("");
        search("");
      } else return false;
      return true;
    },
  };
}

/** @param {SampleRow | null} row @param {number} index @param {number} longest */
function sampleRow(row, index, longest) {
  const cell = (/** @type {string} */ kind, /** @type {...import("../dom.js").Child} */ ...children) => h("div", { class: `cell ${kind}`, role: "cell" }, children);
  if (row === null) return h("div", { class: "samples-grid virtual-row waiting", role: "row" }, cell("id", `#${count(index + 1)}`), cell("state", "…"));
  const since = row.stage_age_ns === null ? 0 : serverClock() - Number(row.stage_age_ns);
  const limit = row.threshold_ns !== null && `usual limit ${duration(row.threshold_ns)}`;
  const age = row.stage === null || row.stage_age_ns === null ? "" : row.is_open ? ageSince(since) : duration(row.stage_age_ns);
  const took = row.is_open && row.start_unix_nano !== null ? ageSince(Number(row.start_unix_nano)) : duration(row.duration_ns);
  const share = Number(row.duration_ns ?? 0) / longest;
  const start = Number(row.start_unix_nano ?? 0);
  const name = row.id ?? row.name ?? row.trace_id.slice(0, 12);
  return h("div", { class: `samples-grid virtual-row ${row.is_stuck ? "stuck" : ""}`, role: "row" },
    cell("id", h("a", { href: sampleLink(row), title: `${plain(name)}\ntrace ${row.trace_id}${row.task === null ? "" : `\ntask ${row.task}`}` }, String(name))),
    cell("state", h("span", { class: statusClass(row.status) }, row.status)),
    cell("now", row.stage !== null && h("span", { title: row.stage }, stageName(row.stage))),
    cell("number", row.is_stuck ? h("b", { class: "bad", title: `stuck: ${limit}` }, age) : h("span", { title: limit }, age)),
    cell("way", row.path.length > 0 && sampleLane({ ...row, start_unix_nano: String(start) }, start, Math.max(1, Number(row.duration_ns ?? 0), ...row.path.map((part) => Number(part.from_ns) + Number(part.duration_ns))))),
    cell("number took", h("span", { class: "bar" }, meter(share, row.is_open ? "var(--run)" : "var(--soft)"), took)),
    cell("number start", h("span", { title: dateTime(row.start_unix_nano) }, clock(row.start_unix_nano).replace(/\.\d+$/, ""))),
    cell("number", row.step === null ? "" : h("a", { href: link("step", { step: row.step }) }, plain(row.step))),
    cell("number", row.group_id === null ? "" : h("a", { href: link("group", { step: row.step, group: row.group_id }) }, plain(row.group_id))),
    cell("number attempt", row.attempt === null ? "" : plain(row.attempt)),
    cell("number", row.reward === null ? "" : h("span", { class: row.passed === false ? "soft" : row.passed ? "good" : null }, decimal(row.reward))),
    cell("number tokens", row.completion_tokens === null ? "" : count(row.completion_tokens)),
    cell("number spans", count(row.spans), row.left_open > 0 && h("span", { class: "warn", title: `${counted(row.left_open, "span")} left open` }, ` +${row.left_open}`)),
    cell("why", row.error_stage !== null && h("span", { class: "bad", title: `${row.error_stage}\n${row.error ?? ""}` }, failureDot(row.error_stage), row.error || row.error_stage)));
}

/** @param {string} stage */
function failureDot(stage) {
  const box = h("i", { class: "swatch" });
  box.style.background = stageColor(stage);
  return box;
}
