// Tables: those that are short enough whole, of others the beginning.

import { h } from "./dom.js";
import { count } from "./format.js";

/** Most rows: a browser takes milliseconds for each, and draws them again at each change. */
const MOST_ROWS = 300;

/**
 * @template T
 * @typedef {{ title: string, hint?: string, number?: boolean, cell: (row: T) => import("./dom.js").Child }} Column
 */

/**
 * @template T
 * @param {Column<T>[]} columns
 * @param {T[]} rows
 * @param {{ class?: string, empty?: string }} [how]
 */
export function table(columns, rows, how = {}) {
  if (rows.length === 0) return h("p", { class: "none" }, how.empty ?? "None.");
  const kind = (/** @type {Column<T>} */ column) => (column.number ? "number" : null);
  const head = columns.map((column) => h("th", { class: kind(column), title: column.hint, scope: "col" }, column.title));
  const body = rows.slice(0, MOST_ROWS).map((row) => h("tr", null, columns.map((column) => h("td", { class: kind(column) }, column.cell(row)))));
  return h("div", { class: "scroll" }, h("table", { class: how.class }, h("thead", null, h("tr", null, head)), h("tbody", null, body)),
    rows.length > MOST_ROWS && h("p", { class: "none" }, `${count(rows.length - MOST_ROWS)} more`));
}
