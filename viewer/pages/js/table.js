// Tables that are short enough to be whole.

import { h } from "./dom.js";

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
  const body = rows.map((row) => h("tr", null, columns.map((column) => h("td", { class: kind(column) }, column.cell(row)))));
  return h("div", { class: "scroll" }, h("table", { class: how.class }, h("thead", null, h("tr", null, head)), h("tbody", null, body)));
}
