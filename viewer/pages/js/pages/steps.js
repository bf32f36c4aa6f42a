// All steps, one a row.

import { setServerClock } from "../ages.js";
import { ask } from "../api.js";
import { fill, h } from "../dom.js";
import { count, counted, dateTime, decimal, duration, percent, plain } from "../format.js";
import { statusBar } from "../lanes.js";
import { link } from "../router.js";
import { table } from "../table.js";
import { meter } from "./overview.js";

/** @typedef {import("../main.js").Context} Context */

/** @param {HTMLElement} root @param {Context} context @returns {Promise<import("../main.js").Shown>} */
export async function stepsPage(root, context) {
  const draw = async (/** @type {Context} */ { signal }) => {
    const answer = await ask("steps", {}, signal);
    setServerClock(answer.now_unix_nano);
    const longest = Math.max(1, ...answer.rows.map((/** @type {any} */ row) => Number(row.wall_ns ?? 0)));
    fill(root, h("h1", null, counted(answer.count, "step")), h("section", null, table(stepColumns(answer.rows, longest), [...answer.rows].reverse(), {
      empty: "No sample says which step it is for; the attribute rollout.step would.",
    })),
      answer.rows.length < answer.count && h("p", { class: "soft" }, `The last ${count(answer.rows.length)} are shown.`),
      answer.without > 0 && h("p", { class: "soft" }, `${counted(answer.without, "sample")} of no step.`));
  };
  await draw(context);
  return { refresh: draw };
}

/** @param {any[]} rows @param {number} longest @returns {import("../table.js").Column<any>[]} */
function stepColumns(rows, longest) {
  const before = new Map(rows.slice(1).map((row, at) => [row.step, rows[at].step]));
  const some = (/** @type {any} */ row, /** @type {number} */ value, /** @type {string} */ q) => value === 0 ? "" : h("a", { class: "bad", href: link("samples", { step: row.step, q }) }, count(value));
  return [
    { title: "step", cell: (row) => h("a", { href: link("step", { step: row.step }) }, h("b", null, plain(row.step))) },
    { title: "began", cell: (row) => h("span", { class: "nowrap" }, dateTime(row.from_unix_nano).replace(/\.\d+$/, "")) },
    { title: "wall time", number: true, hint: "from the first begin to the last end", cell: (row) => h("span", { class: "bar" }, meter(Number(row.wall_ns ?? 0) / longest, "var(--accent)"), duration(row.wall_ns)) },
    { title: "samples", number: true, cell: (row) => h("a", { href: link("samples", { step: row.step }) }, count(row.samples)) },
    { title: "groups", number: true, cell: (row) => count(row.groups) },
    { title: "statuses", cell: (row) => statusBar(row.statuses) },
    { title: "open", number: true, cell: (row) => row.open === 0 ? "" : h("a", { href: link("samples", { step: row.step, q: "is:open" }) }, count(row.open)) },
    { title: "stuck", number: true, cell: (row) => some(row, row.stuck, "is:stuck") },
    { title: "errors", number: true, cell: (row) => some(row, row.errors, "is:error") },
    { title: "p50", number: true, cell: (row) => duration(row.p50_ns) },
    { title: "p99", number: true, cell: (row) => duration(row.p99_ns) },
    { title: "longest", number: true, hint: "how many times the median", cell: (row) => row.tail === null ? duration(row.longest_ns) : h("span", { title: `${row.tail.toFixed(1)}× the median` }, duration(row.longest_ns)) },
    { title: "reward", number: true, cell: (row) => row.reward.count === 0 ? "" : h("span", { title: `${percent(row.reward.passed / row.reward.count)} of ${count(row.reward.count)} passed` }, decimal(row.reward.sum / row.reward.count)) },
    { title: "", cell: (row) => before.has(row.step) && h("a", { href: link("compare", { a: `step:${before.get(row.step)}`, b: `step:${row.step}` }), title: `compare with step ${before.get(row.step)}` }, "compare") },
  ];
}
