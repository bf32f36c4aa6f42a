// The samples of one group, side by side.

import { setServerClock } from "../ages.js";
import { ask } from "../api.js";
import { statusClass } from "../color.js";
import { fill, h } from "../dom.js";
import { count, counted, dateTime, decimal, duration, plain } from "../format.js";
import { laneAxis, sampleLane } from "../lanes.js";
import { link } from "../router.js";
import { MANY_STATUSES, quoted, stageName } from "./overview.js";
import { sampleLink } from "./samples.js";

/** @typedef {import("../main.js").Context} Context */
/** @typedef {import("../lanes.js").SampleRow} SampleRow */

/** @param {HTMLElement} root @param {Context} context @returns {Promise<import("../main.js").Shown>} */
export async function groupPage(root, context) {
  let chosen = -1;
  /** @type {SampleRow[]} */
  let rows = [];
  const draw = async (/** @type {Context} */ { params, signal }) => {
    const answer = await ask("group", { group: params.get("group"), step: params.get("step") }, signal);
    setServerClock(answer.now_unix_nano);
    rows = answer.rows;
    fill(root, groupTitle(answer), totalCards(answer), laneTable(`Side by side, from ${dateTime(answer.from_unix_nano)}`, rows, answer, chosen));
  };
  await draw(context);
  return {
    refresh: draw,
    key: (event) => {
      if (event.key === "j" || event.key === "ArrowDown") chosen = Math.min(rows.length - 1, chosen + 1);
      else if (event.key === "k" || event.key === "ArrowUp") chosen = Math.max(0, chosen - 1);
      else if (event.key === "Enter" && rows[chosen] !== undefined) location.hash = sampleLink(rows[chosen]);
      else return false;
      root.querySelectorAll(".lanes .lane-row").forEach((row, at) => {
        row.classList.toggle("chosen", at === chosen);
        if (at === chosen) row.scrollIntoView({ block: "nearest" });
      });
      return true;
    },
  };
}

/** @param {any} answer */
function groupTitle(answer) {
  const step = answer.step;
  return h("h1", null, `Group ${plain(answer.group_id)} `, step !== null && ["of ", h("a", { href: link("step", { step }) }, `step ${plain(step)}`), " "],
    h("span", { class: statusClass(answer.status) }, answer.status),
    answer.other_steps.length > 0 && h("span", { class: "aside" }, "also in step ", answer.other_steps.slice(0, 8).map((/** @type {any} */ other, /** @type {number} */ at) =>
      [at > 0 && ", ", h("a", { href: link("group", { step: other, group: answer.group_id }) }, plain(other))])));
}

/**
 * Cards of what samples add up to.
 * @param {any} totals
 * @param {{ q?: string, step?: unknown, groups?: number }} [where] what a link to the samples needs
 */
export function totalCards(totals, where = {}) {
  const card = (/** @type {string} */ name, /** @type {import("../dom.js").Child} */ value, kind = "", /** @type {string | null} */ q = null, title = "") => {
    const href = q === null ? null : link("samples", { step: where.step ?? totals.step, q: [where.q ?? (totals.group_id == null ? "" : `group:=${totals.group_id}`), q].filter(Boolean).join(" ") });
    return h(href === null ? "div" : "a", { class: `card ${kind}`, href, title: title || null }, h("b", null, value), h("span", null, name));
  };
  const { reward } = totals;
  const statuses = /** @type {[string, number][]} */ (Object.entries(totals.statuses)).sort((one, other) => other[1] - one[1]);
  return h("div", { class: "cards" },
    card("samples", count(totals.samples), "", ""),
    where.groups !== undefined && where.groups > 0 && card("groups", count(where.groups)),
    statuses.slice(0, MANY_STATUSES).map(([status, value]) => card(status, count(value), statusClass(status), `status:${quoted(status)}`)),
    totals.stuck > 0 && card("stuck", count(totals.stuck), "alarm", "is:stuck"),
    totals.errors > 0 && card("with an error", count(totals.errors), "", "is:error"),
    totals.wall_ns !== null && card(totals.open > 0 ? "so far" : "in all", duration(totals.wall_ns), "", null, "from the first begin to the last end"),
    totals.p50_ns !== null && card("median", duration(totals.p50_ns)),
    totals.p99_ns !== null && card("99 % within", duration(totals.p99_ns)),
    totals.longest_ns !== null && card(totals.tail === null ? "longest" : `longest, ${totals.tail.toFixed(1)}× the median`, duration(totals.longest_ns), totals.tail > 3 ? "warning" : ""),
    reward.count > 0 && card(reward.min === reward.max ? `reward of ${count(reward.count)}, all alike` : `mean reward of ${count(reward.count)}, ${decimal(reward.min)} to ${decimal(reward.max)}`, decimal(reward.sum / reward.count), reward.count > 1 && reward.min === reward.max && totals.group_id != null ? "warning" : "", null,
      "a group whose rewards are all alike teaches nothing"),
    totals.completion_tokens > 0 && card("tokens generated", count(totals.completion_tokens)));
}

/**
 * A lane for each sample, on one axis.
 * @param {string} title
 * @param {SampleRow[]} rows
 * @param {any} totals
 * @param {number} chosen
 */
export function laneTable(title, rows, totals, chosen = -1) {
  if (rows.length === 0) return h("p", { class: "none" }, "No sample has begun.");
  const from = Math.min(...rows.flatMap((row) => (row.start_unix_nano === null ? [] : [Number(row.start_unix_nano)])), Number(totals.until_unix_nano ?? Infinity));
  const ends = rows.map((row) => Number(row.start_unix_nano ?? from) + Math.max(Number(row.duration_ns ?? 0), ...row.path.map((part) => Number(part.from_ns) + Number(part.duration_ns))));
  const whole = Math.max(1, Math.max(...ends) - from);
  const stages = [...new Set(rows.flatMap((row) => row.path.map((part) => part.stage)))].sort();
  const hasAttempts = rows.some((row) => row.attempt !== null);
  const cell = (/** @type {string} */ kind, /** @type {...import("../dom.js").Child} */ ...children) => h("div", { class: `cell ${kind}` }, children);
  const line = (/** @type {SampleRow} */ row, /** @type {number} */ at) => h("div", { class: `lane-row ${row.is_stuck ? "stuck" : ""} ${at === chosen ? "chosen" : ""}` },
    cell("id", h("a", { href: sampleLink(row), title: `trace ${row.trace_id}` }, plain(row.id ?? row.name)), hasAttempts && row.attempt !== null && h("span", { class: "soft" }, ` · attempt ${plain(row.attempt)}`)),
    cell("state", h("span", { class: statusClass(row.status) }, row.status)),
    cell("axis", sampleLane(row, from, whole)),
    cell("number", duration(row.duration_ns), row.is_open && "…"),
    cell("number", row.reward === null ? "" : decimal(row.reward)),
    cell("number", row.completion_tokens === null ? "" : count(row.completion_tokens)),
    cell("why", row.error_stage !== null ? h("span", { class: "bad", title: `${row.error_stage}\n${row.error ?? ""}` }, row.error || row.error_stage)
      : row.is_open && row.stage !== null ? h("span", { class: row.is_stuck ? "bad" : null, title: row.threshold_ns && `usual limit ${duration(row.threshold_ns)}` }, stageName(row.stage), row.is_stuck ? " stuck for " : " for ", duration(row.stage_age_ns)) : ""));
  return h("section", null, h("h2", null, title),
    h("p", { class: "legend" }, stages.slice(0, 16).map((stage) => h("span", { class: "key" }, stageName(stage)))),
    h("div", { class: "scroll" }, h("div", { class: "lanes" },
      h("div", { class: "lane-head" }, cell("id", "sample"), cell("state", "status"), cell("axis", laneAxis(whole)), cell("number", "took"), cell("number", "reward"), cell("number", "tokens"), cell("why", "error, or what it is in")),
      rows.map(line))),
    totals.samples > rows.length && h("p", { class: "soft" }, `The first ${count(rows.length)} of ${counted(totals.samples, "sample")}.`));
}
