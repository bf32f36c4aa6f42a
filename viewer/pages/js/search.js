// The box in which samples are searched, and what can be said in it.

import { statusClass, stageColor } from "./color.js";
import { fill, h } from "./dom.js";
import { count } from "./format.js";

/** Prefixes with what they find. @type {[string[], string][]} */
const SEARCH_WORDS = [
  [["rollout:", "rollout_id:"], "the id of the sample or request; rollout:=7 is 7 alone"],
  [["group:", "group_id:"], "its group"],
  [["step:", "producer_future_step:"], "its step: step:21, step:>=20"],
  [["attempt:"], "its attempt: attempt:>1"],
  [["session:"], "its session"],
  [["task:"], "its task"],
  [["trace:", "trace_id:"], "its trace"],
  [["status:"], "how it stands: completed, failed, running, aborted, filtered, expired, …"],
  [["is:open", "is:stuck", "is:lost", "is:failed", "is:error", "is:root-missing", "is:left-open"], "what needs somebody"],
  [["stage:", "span:"], "the stage or the name of any of its spans"],
  [["current:"], "the stage that it is in now"],
  [["stack:"], "names from the root to what it is in, or to what failed: stack:\"run > judge\""],
  [["error:"], "type or message of what went wrong"],
  [["error-stage:", "error_stage:"], "the stage in which that arose"],
  [["filter:", "drop:"], "why it was filtered out or dropped"],
  [["attr:"], "an attribute of any of its spans: attr:http.status_code=503"],
  [["duration:"], "from begin to end, or to now: duration:>1.5min"],
  [["age:", "stage-age:", "stage_age:"], "for how long it has been open, or in its stage: age:>60s"],
  [["reward:", "tokens:", "spans:"], "numbers: reward:<0, tokens:>=1000"],
];

const SEARCH_EXAMPLES = ["is:stuck", "is:error -status:failed", "stage-age:>60s current:judge", "reward:<=0 duration:>1min", "\"503 Service Unavailable\""];

/** The terms of a search, as far as they can be told apart without reading them; @param {string} q */
export function searchTerms(q) {
  return q.match(/-?(?:[\w.-]+:)?(?:[<>=]*"(?:\\.|[^"\\])*"?|\S+)/g) ?? [];
}

/** Adds a term, or takes it away if it is there; @param {string} q @param {string} term */
export function toggleTerm(q, term) {
  const all = searchTerms(q);
  const rest = all.filter((one) => one !== term);
  return (rest.length < all.length ? rest : [...all, term]).join(" ");
}

/**
 * @param {string} q what stands in it
 * @param {(q: string) => void} searched called when another search was typed, and it is time to do it
 */
export function searchBox(q, searched) {
  /** @type {number | undefined} */
  let timer;
  const input = h("input", {
    type: "search", value: q, placeholder: "Search: words, status:failed, is:stuck, age:>60s, … (key: /)", "aria-label": "search", spellcheck: "false", autocomplete: "off",
    oninput: () => {
      clearTimeout(timer);
      timer = setTimeout(() => searched(input.value), 180);
    },
    onfocus: () => input.value === "" && open(true), onblur: () => setTimeout(() => !help.contains(document.activeElement) && open(false), 120),
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Enter") {
        clearTimeout(timer);
        searched(input.value);
        open(false);
      }
    },
  });
  const put = (/** @type {string} */ text) => {
    input.value = text;
    input.focus();
    if (!text.endsWith(":")) searched(text);
    open(false);
  };
  const add = (/** @type {string} */ word) => put(input.value.trim() === "" ? word : `${input.value.trim()} ${word}`);
  const term = (/** @type {string} */ word, /** @type {(word: string) => void} */ act) =>
    h("button", { class: "term mono", type: "button", onmousedown: (/** @type {Event} */ event) => event.preventDefault(), onclick: () => act(word) }, word);
  const help = h("div", { class: "search-help", hidden: true },
    h("p", null, "All terms must hold; case does not matter. ", h("code", null, "-term"), " excludes, ", h("code", null, "\"two words\""), " belong together and may hold a colon."),
    h("dl", null, SEARCH_WORDS.map(([words, what]) => [h("dt", null, words.map((word) => term(word, add))), h("dd", null, what)])),
    h("p", null, "Examples: ", SEARCH_EXAMPLES.map((one) => term(one, put))));
  const toggle = h("button", { class: "plain", type: "button", title: "what can be searched", "aria-expanded": "false", onclick: () => open(help.hidden === true) }, "?");
  function open(/** @type {boolean} */ is) {
    help.hidden = !is;
    toggle.setAttribute("aria-expanded", String(is));
  }
  return {
    element: h("div", { class: "search" }, input, toggle, help),
    input,
    /** @param {string} text */
    set: (text) => void (input.value = text),
    isHelpOpen: () => !help.hidden,
    closeHelp: () => open(false),
    stop: () => clearTimeout(timer),
  };
}

/** @typedef {{ statuses: [string, number][], stages: [string, number][], error_stages: [string, number][], steps: [string | number, number][], open: number, stuck: number, error: number, left_open: number, root_missing: number }} Facets */

/** The counts of chips that are shown, and what the chips are. @type {WeakMap<HTMLElement, { kind: string, counts: HTMLElement[] }>} */
const shownChips = new WeakMap();

/**
 * Chips that add terms: how many of the samples that were found have what.
 * @param {HTMLElement} root
 * @param {Facets} facets
 * @param {string} q
 * @param {(q: string) => void} searched
 * @param {(text: string) => string} quote
 */
export function searchChips(root, facets, q, searched, quote) {
  const active = new Set(searchTerms(q));
  /** @type {[string, string, number, import("./dom.js").Child, string][]} title, term, count, text, class */
  const chips = [];
  const stage = (/** @type {string} */ title, /** @type {string} */ prefix, /** @type {[string, number][]} */ counts) => {
    for (const [name, value] of counts) {
      const box = h("i", { class: "swatch" });
      box.style.background = stageColor(name);
      chips.push([title, `${prefix}:${quote(name)}`, value, [box, name], ""]);
    }
  };
  const some = (/** @type {string} */ term, /** @type {string} */ text, /** @type {number} */ value, kind = "") =>
    (value > 0 || active.has(term)) && chips.push(["is", term, value, text, kind]);
  for (const [name, value] of facets.statuses) chips.push(["status", `status:${quote(name)}`, value, h("span", { class: statusClass(name) }, name), ""]);
  stage("now in", "current", facets.stages);
  stage("errors in", "error-stage", facets.error_stages);
  some("is:stuck", "stuck", facets.stuck, "alarm");
  some("is:open", "open", facets.open);
  some("is:error", "with an error", facets.error);
  some("is:left-open", "left open", facets.left_open);
  some("is:root-missing", "root missing", facets.root_missing);
  if (facets.steps.length > 1) for (const [name, value] of facets.steps) chips.push(["step", `step:${quote(String(name))}`, value, String(name), ""]);

  const kind = JSON.stringify([q, chips.map(([, term]) => term)]);
  const shown = shownChips.get(root);
  if (shown?.kind === kind) {
    shown.counts.forEach((element, at) => (element.textContent = count(chips[at][2])));
    return;
  }
  /** @type {HTMLElement[]} */
  const counts = [];
  const toggle = (/** @type {string} */ term) => searched(toggleTerm(q, term));
  const titles = [...new Set(chips.map(([title]) => title))];
  const groups = titles.map((title) => h("span", { class: "chips" }, h("span", { class: "soft" }, title),
    chips.filter((chip) => chip[0] === title).map(([, term, value, text, look]) => {
      const is = active.has(term);
      const number = h("b", null, count(value));
      counts.push(number);
      return h("button", {
        class: `facet ${look} ${is ? "on" : ""}`, "aria-pressed": String(is), title: `${term}\nwith Shift: all others`,
        onclick: (/** @type {MouseEvent} */ event) => toggle(event.shiftKey ? `-${term}` : term),
      }, text, " ", number);
    })));
  const excluded = [...active].filter((term) => term.startsWith("-") && term.length > 1).map((term) =>
    h("button", { class: "facet on", "aria-pressed": "true", onclick: () => toggle(term) }, `not ${term.slice(1)}`));
  fill(root, groups, excluded.length > 0 && h("span", { class: "chips" }, excluded));
  shownChips.set(root, { kind, counts });
}
