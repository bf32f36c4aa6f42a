// One step: what went on at each time, what held it up, its groups.

import { setServerClock } from "../ages.js";
import { ask, isStatic } from "../api.js";
import { statusClass } from "../color.js";
import { fill, h } from "../dom.js";
import { count, counted, decimal, duration, percent, plain } from "../format.js";
import { flowChart } from "../flow.js";
import { spreadBar, statusBar } from "../lanes.js";
import { change, link } from "../router.js";
import { table } from "../table.js";
import { laneTable, totalCards } from "./group.js";

/** @typedef {import("../main.js").Context} Context */

/** @param {HTMLElement} root @param {Context} context @returns {Promise<import("../main.js").Shown>} */
export async function stepPage(root, context) {
  /** @type {any} */
  let answer;
  const draw = async (/** @type {Context} */ { params, signal }) => {
    answer = await ask("step", { step: params.get("step"), sort: isStatic ? null : params.get("sort") }, signal);
    setServerClock(answer.now_unix_nano);
    fill(root, stepTitle(answer), totalCards(answer, { step: answer.step, groups: answer.groups }),
      answer.flow !== null && h("section", null, h("h2", null, "Samples in each stage over time"), flowChart(answer.flow)),
      answer.ending !== null && stragglers(answer), groupTable(answer, params.get("sort") ?? "longest"));
  };
  await draw(context);
  return {
    refresh: draw,
    key: (event) => {
      const to = event.key === "j" || event.key === "ArrowRight" ? answer.next : event.key === "k" || event.key === "ArrowLeft" ? answer.previous : null;
      if (to === null || event.shiftKey) return false;
      location.hash = link("step", { step: to });
      return true;
    },
  };
}

/** @param {any} answer */
function stepTitle({ step, previous, next }) {
  return h("h1", null, step === null ? "All samples, which are of no step " : `Step ${plain(step)} `,
    h("span", { class: "aside" },
      previous !== null && h("a", { href: link("step", { step: previous }), title: "key: k" }, `← ${plain(previous)}`),
      next !== null && h("a", { href: link("step", { step: next }), title: "key: j" }, `${plain(next)} →`),
      h("a", { href: link("steps") }, "all steps"), h("a", { href: link("overview", { step }) }, "stages of this step"),
      previous !== null && h("a", { href: link("compare", { a: `step:${previous}`, b: `step:${step}` }) }, `compare with ${plain(previous)}`)));
}

/** @param {any} answer */
function stragglers(answer) {
  const { ending, open, samples } = answer;
  const ended = ((samples - open) / samples) * 100;
  const marks = ending.ended.filter((/** @type {[number, string]} */ [part]) => part <= ended).map((/** @type {[number, string]} */ [part, ns]) =>
    h("span", { class: "key" }, part === 100 ? "all after" : `${part} % after`, "\u00a0", h("b", null, duration(ns))));
  const share = h("b", null, percent(ending.last_share));
  return [
    h("section", { class: open === 0 && ending.last_share >= 0.3 && ending.last_samples > 0 ? "warning" : null }, h("h2", null, "What held it up"),
      h("p", null, open > 0 ? [h("a", { href: link("samples", { step: answer.step, q: "is:open", sort: "start" }) }, counted(open, "sample")), ` of ${count(samples)} ${open === 1 ? "has" : "have"} not ended.`]
        : ending.last_samples === 0 ? `${counted(samples, "sample")} are too few to speak of the last twentieth.`
          : ["The last 5 % of samples (", count(ending.last_samples), ") took ", share, " of the step's time."]),
      marks.length > 0 && h("p", { class: "legend" }, "Ended: ", marks)),
    laneTable(open > 0 ? "The oldest that go on, and the last that ended" : "The last that ended", answer.stragglers, { ...answer, samples: answer.stragglers.length }),
  ];
}

/** @param {any} answer @param {string} sort */
function groupTable(answer, sort) {
  if (answer.groups === 0) return null;
  const whole = Math.max(1, ...answer.rows.map((/** @type {any} */ row) => Number(row.longest_ns ?? 0)));
  const by = (/** @type {string} */ title, /** @type {string} */ name) =>
    h("button", { class: `sort ${sort === name ? "on" : ""}`, "aria-pressed": String(sort === name), onclick: () => change({ sort: name === "longest" ? null : name }, { replace: true }) }, title);
  return h("section", null, h("h2", null, `Groups: ${count(answer.groups)}`),
    // A saved page has the first groups of one order.
    !isStatic && h("p", { class: "legend" }, "sorted by ", by("longest", "longest"), by("long tail", "tail"), by("begin", "start"), by("id", "group"), by("reward", "reward")),
    table([
      { title: "group", cell: (row) => h("a", { href: link("group", { step: answer.step, group: row.group_id }) }, plain(row.group_id)) },
      { title: "status", hint: "the worst of its samples", cell: (row) => h("span", { class: statusClass(row.status) }, row.status) },
      { title: "samples", number: true, cell: (row) => count(row.samples) },
      { title: "statuses", cell: (row) => statusBar(row.statuses) },
      { title: "shortest · median · longest", cell: (row) => spreadBar(row, whole) },
      { title: "median", number: true, cell: (row) => duration(row.p50_ns) },
      { title: "longest", number: true, cell: (row) => h("span", null, duration(row.longest_ns), row.open > 0 && "…") },
      { title: "tail", number: true, hint: "how many times the median", cell: (row) => row.tail === null ? "–" : h("span", { class: row.tail > 3 ? "warn" : null }, `${row.tail.toFixed(1)}×`) },
      { title: "reward", number: true, cell: (row) => row.reward.count === 0 ? "" : h("span", { title: `${decimal(row.reward.min)} to ${decimal(row.reward.max)}` }, decimal(row.reward.sum / row.reward.count)) },
      { title: "stuck", number: true, cell: (row) => row.stuck > 0 && h("b", { class: "bad" }, count(row.stuck)) },
    ], answer.rows),
    answer.rows.length < answer.groups && h("p", { class: "soft" }, `The first ${count(answer.rows.length)} are shown.`));
}
