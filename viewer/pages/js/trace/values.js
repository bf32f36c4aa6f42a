// Values of OTLP/JSON.

import { h, svg } from "../dom.js";

/**
 * @typedef {{ stringValue?: string, intValue?: string | number, doubleValue?: number | string, boolValue?: boolean, bytesValue?: string,
 *   arrayValue?: { values?: OtlpValue[] }, kvlistValue?: { values?: OtlpAttribute[] } }} OtlpValue
 */
/** @typedef {{ key: string, value?: OtlpValue }} OtlpAttribute */

/** A value as a text; @param {OtlpValue | undefined} value @returns {string} */
export function otlpText(value) {
  if (value === undefined) return "";
  if (value.stringValue !== undefined) return value.stringValue;
  const plain = otlpPlain(value);
  return typeof plain === "object" ? JSON.stringify(plain, null, 2) : String(plain);
}

/** @param {OtlpValue | undefined} value @returns {unknown} */
function otlpPlain(value) {
  if (value === undefined) return null;
  if (value.stringValue !== undefined) return value.stringValue;
  if (value.intValue !== undefined) return Number.isSafeInteger(Number(value.intValue)) ? Number(value.intValue) : String(value.intValue);
  if (value.doubleValue !== undefined) return value.doubleValue;
  if (value.boolValue !== undefined) return value.boolValue;
  if (value.bytesValue !== undefined) return value.bytesValue;
  if (value.arrayValue !== undefined) return (value.arrayValue.values ?? []).map(otlpPlain);
  if (value.kvlistValue !== undefined) return Object.fromEntries((value.kvlistValue.values ?? []).map((one) => [one.key, otlpPlain(one.value)]));
  return null;
}

/** What kind a value is, for its colour; @param {OtlpValue | undefined} value */
function otlpKind(value) {
  if (value?.stringValue !== undefined) return "text";
  return value?.boolValue !== undefined ? "truth" : value?.intValue !== undefined || value?.doubleValue !== undefined ? "amount" : "other";
}

/** A button that copies a text; @param {string | (() => string)} text @param {string} [what] */
export function copyButton(text, what = "copy") {
  const button = h("button", {
    class: "copy", title: what, "aria-label": what,
    onclick: async (/** @type {Event} */ event) => {
      event.stopPropagation();
      try {
        await navigator.clipboard.writeText(typeof text === "string" ? text : text());
        button.textContent = "copied";
      } catch {
        button.textContent = "refused";
      }
      setTimeout(() => button.replaceChildren(copyIcon()), 900);
    },
  }, copyIcon());
  return button;
}

function copyIcon() {
  return svg("svg", { viewBox: "0 0 16 16", width: 13, height: 13, "aria-hidden": "true" },
    svg("path", { d: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z", fill: "none", stroke: "currentColor", "stroke-width": 1.3 }));
}

/** Attributes as a list; @param {OtlpAttribute[]} attributes */
export function attributeList(attributes) {
  return h("dl", { class: "attributes" }, attributes.map(({ key, value }) => {
    const text = otlpText(value);
    return h("div", { "data-key": key.toLowerCase(), "data-value": text.slice(0, 2000).toLowerCase() },
      h("dt", { title: key }, key),
      h("dd", { class: `value-${otlpKind(value)}` }, text.length > 160 || text.includes("\n") ? h("pre", null, pretty(text)) : text, copyButton(text, `copy ${key}`)));
  }));
}

/** JSON is set out; @param {string} text */
function pretty(text) {
  if (!/^\s*[[{]/.test(text) || text.length > 200_000) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
