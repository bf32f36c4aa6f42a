// The frame: header, navigation, keys, and which page is shown.

import { ask, follow, isStatic, Refused } from "./api.js";
import { fill, h, tip } from "./dom.js";
import { bytes, count, counted, plain } from "./format.js";
import { groupPage } from "./pages/group.js";
import { overview } from "./pages/overview.js";
import { samplesPage } from "./pages/samples.js";
import { stepPage } from "./pages/step.js";
import { stepsPage } from "./pages/steps.js";
import { comparePage } from "./pages/compare.js";
import { processesPage } from "./pages/processes.js";
import { stagesPage } from "./pages/stages.js";
import { sample } from "./pages/sample.js";
import { change, go, here, link } from "./router.js";

/**
 * What was read, as `/api/state` says it.
 * @typedef {object} State
 * @property {number} version
 * @property {string} now_unix_nano
 * @property {string[]} services
 * @property {string[]} run_ids
 * @property {(string | number)[]} steps
 * @property {string | number | null} latest_step
 * @property {boolean} live
 * @property {number} samples
 * @property {number} spans
 * @property {number} traces
 * @property {number} memory_bytes
 * @property {{ name: string, kind: string, alive: boolean | null, bytes: number, lines: number, damaged_lines: number, damage: [number, string][], open_spans: number, lost_spans: number, error: string | null }[]} sources
 * @property {{ factor: number, floor_ns: string, least_closed: number }} stuck
 */

/** @typedef {{ state: State, params: URLSearchParams, signal: AbortSignal }} Context what a page is drawn from */

/**
 * A page that is shown. `refresh` is called when something has changed; `key` when a key is pressed, and says whether it was for it.
 * @typedef {{ refresh?: (context: Context) => Promise<void>, close?: () => void, key?: (event: KeyboardEvent) => boolean }} Shown
 */

/** @typedef {{ title: string, key?: string, isOfStep?: boolean, open: (root: HTMLElement, context: Context) => Promise<Shown> }} Page those with a key stand in the navigation, and those of a step show one that is chosen */

/** @type {Record<string, Page>} */
const PAGES = {
  overview: { title: "Overview", key: "o", isOfStep: true, open: overview },
  samples: { title: "Samples", key: "s", isOfStep: true, open: samplesPage },
  steps: { title: "Steps", key: "g", open: stepsPage },
  stages: { title: "Stages", key: "c", isOfStep: true, open: stagesPage },
  processes: { title: "Processes", key: "p", open: processesPage },
  compare: { title: "Compare", key: "v", open: comparePage },
  step: { title: "Step", isOfStep: true, open: stepPage },
  group: { title: "Group", open: groupPage },
  sample: { title: "Sample", open: sample },
};

const header = /** @type {HTMLElement} */ (document.getElementById("top"));
const root = /** @type {HTMLElement} */ (document.getElementById("page"));
/** @type {State | null} */
let state = null;
/** @type {Shown} */
let shown = {};
let leaving = new AbortController();
let isConnected = true;
/** Which page is drawn, so that one that comes too late is thrown away. */
let turn = 0;

/** Draws the page that the address names. */
async function show() {
  const own = ++turn;
  leaving.abort();
  leaving = new AbortController();
  shown.close?.();
  shown = {};
  tip(null);
  const { page: name, params } = here();
  const page = Object.hasOwn(PAGES, name) ? PAGES[name] : undefined;
  try {
    await learn(own);
    if (own !== turn || state === null) return;
    drawHeader();
    document.title = `${page?.title ?? "?"} · stagetrace`;
    if (page === undefined) return fill(root, h("h1", null, "There is no such page"), h("p", null, h("a", { href: link("overview") }, "To the overview")));
    const box = h("div", { class: `page page-${name}` });
    const next = await page.open(box, { state, params, signal: leaving.signal });
    if (own !== turn) return next.close?.();
    shown = next;
    fill(root, box);
  } catch (error) {
    if (own === turn) explain(error);
  }
}

/**
 * Asks for the state; waits while the sources are read for the first time, as they are again by a server that was started anew.
 * @param {number} own the turn that asks
 * @returns {Promise<boolean>} whether the page made room for saying so
 */
async function learn(own) {
  for (let hasWaited = false; ; hasWaited = true) {
    const answer = await ask("state");
    if (own !== turn) return false;
    if (answer.version > 0) {
      state = answer;
      return hasWaited;
    }
    fill(root, h("p", { class: "loading" }, "Reading the sources: ", `${bytes(answer.read_bytes)} of ${bytes(answer.total_bytes)}`,
      h("progress", { value: answer.read_bytes, max: Math.max(1, answer.total_bytes) })));
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** @param {unknown} error */
function explain(error) {
  if (error instanceof DOMException && error.name === "AbortError") return;
  const isKnown = error instanceof Refused;
  if (!isKnown) console.error(error);
  const what = isKnown ? error.message : `This page has a fault: ${error}`;
  fill(root, h("div", { class: "refused", role: "alert" }, h("h1", null, isKnown && error.status === 404 ? "Not there" : "No answer"), h("p", null, what),
    h("p", null, h("button", { onclick: show }, "Try again"), " ", h("a", { href: link("overview") }, "To the overview"))));
}

let isRefreshing = false;
let wantsRefresh = false;

/** Something has changed: at most twice a second, and only while somebody looks. */
async function changed() {
  wantsRefresh = true;
  if (isRefreshing || document.hidden) return;
  isRefreshing = true;
  while (wantsRefresh && !document.hidden) {
    wantsRefresh = false;
    const own = turn;
    try {
      const isGone = await learn(own);
      if (isGone) {
        await show();
      } else if (own === turn && state !== null) {
        drawHeader();
        await shown.refresh?.({ state, params: here().params, signal: leaving.signal });
      }
    } catch (error) {
      if (!(error instanceof Refused) && !(error instanceof DOMException)) console.error(error);
    }
    await new Promise((resolve) => setTimeout(resolve, 400));
  }
  isRefreshing = false;
}

/** Parts of the header, each with what it was drawn from: what has not changed keeps its focus and its open menu. */
const [navigation, steps, life] = [0, 1, 2].map(() => ({ element: h("div", { class: "part" }), from: "" }));
header.append(navigation.element, h("span", { class: "gap" }), steps.element, life.element,
  h("button", { class: "plain", title: "dark or light (key: t)", onclick: turnTheme, "aria-label": "dark or light" }, "◐"),
  h("button", { class: "plain", title: "keys (key: ?)", onclick: help, "aria-label": "keys" }, "?"));

function drawHeader() {
  if (state === null) return;
  const { page, params } = here();
  const step = params.get("step");
  drawPart(navigation, [page, step], () => [
    h("a", { class: "brand", href: link("overview"), "aria-label": "stagetrace" }, h("span", { class: "logo", "aria-hidden": "true" }), h("span", { class: "wide" }, "stagetrace")),
    h("nav", { "aria-label": "pages" }, Object.entries(PAGES).filter(([, { key }]) => key !== undefined).map(([name, { title, key }]) =>
      h("a", { href: link(name, { step }), class: name === page ? "here" : null, "aria-current": name === page && "page", title: `key: ${key}` }, title))),
  ]);
  const menu = document.getElementById("step");
  // A menu that is open is left alone while what it has chosen holds.
  const isOpen = menu instanceof HTMLSelectElement && menu === document.activeElement && menu.value === (step ?? "all");
  if (!isOpen) drawPart(steps, [page, step, state.steps], stepMenu);
  const damage = state.sources.filter((source) => source.error !== null || source.damaged_lines > 0).length;
  const recordings = state.sources.filter((source) => source.kind === "recording");
  const hasEnded = recordings.length > 0 && recordings.every((source) => source.alive === false);
  const [kind, said] = isStatic ? ["saved", "a saved page"] : !isConnected ? ["off", "not connected"] : hasEnded ? ["saved", "ended"] : recordings.length > 0 ? ["on", "live"] : ["on", "following"];
  const { run_ids: runs, services, samples, spans } = state;
  drawPart(life, [runs, services, samples, spans, damage, said], () => [
    h("span", { class: "run", title: [...runs, ...services].slice(0, 40).join("\n") },
      plain(runs.length > 1 ? `${runs.length} runs` : runs[0] ?? services[0]), ` · ${counted(samples, "sample")} · ${count(spans)} spans`),
    damage > 0 && h("a", { class: "damage", href: link("processes"), title: "sources with lines that could not be read" }, count(damage), h("span", { class: "wide" }, damage === 1 ? " source" : " sources"), " damaged"),
    h("span", { class: `life ${kind}`, title: "server-sent events" }, said),
  ]);
}

/** @param {{ element: HTMLElement, from: string }} part @param {unknown} from @param {() => import("./dom.js").Child[]} draw */
function drawPart(part, from, draw) {
  const text = JSON.stringify(from);
  if (part.from === text) return;
  part.from = text;
  fill(part.element, draw());
}

/** Most steps in the menu, the last ones; the page of steps and addresses know more. */
const MENU_STEPS = 500;

function stepMenu() {
  if (state === null || state.steps.length === 0) return [];
  const { page, params } = here();
  const step = params.get("step") ?? "all";
  const isOfStep = PAGES[page]?.isOfStep === true;
  const { steps } = state;
  const isBeyond = steps.length > MENU_STEPS && steps.slice(0, -MENU_STEPS).some((one) => String(one) === step);
  const choose = (/** @type {Event} */ event) => {
    const { value } = /** @type {HTMLSelectElement} */ (event.target);
    change({ step: value === "all" ? null : value });
  };
  return [h("label", { class: "step" }, h("span", { class: "wide" }, "step "),
    h("select", { id: "step", "aria-label": "step", disabled: !isOfStep, title: isOfStep ? null : "this page is not for a step that is chosen here", onchange: choose },
      h("option", { value: "all", selected: step === "all" }, "all"),
      h("option", { value: "latest", selected: step === "latest" }, `latest (${plain(state.latest_step)})`),
      steps.slice(-MENU_STEPS).reverse().map((one) => h("option", { value: one, selected: String(one) === step }, String(one))),
      isBeyond && h("option", { value: step, selected: true }, step)))];
}

function turnTheme() {
  const is = document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const next = is === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem("stagetrace.theme", next);
  } catch {
    // A saved page may have no storage; the choice lasts as long as the page.
  }
  dispatchEvent(new Event("resize"));
}

function help() {
  const keys = [
    ...Object.values(PAGES).filter(({ key }) => key !== undefined).map(({ key, title }) => [key, title]),
    ["/", "search"], ["j k", "next and previous row"], ["Enter", "open the row"], ["Esc", "close, or one level up"],
    ["w s a d, + −, 0", "in a timeline: zoom, pan, all"],
    ["← → n N", "in a sample: close or open a span, next and previous match"], ["f e v x", "zoom to the span, to the error, tree or lanes, critical path"],
    ["t", "dark or light"], ["?", "these keys"],
  ];
  const dialog = h("dialog", { class: "help", onclose: () => dialog.remove() }, h("h2", null, "Keys"),
    h("dl", null, keys.map(([key, what]) => [h("dt", null, h("kbd", null, key)), h("dd", null, what)])),
    h("form", { method: "dialog" }, h("button", null, "Close")));
  document.body.append(dialog);
  dialog.showModal();
}

/** @param {KeyboardEvent} event */
function pressed(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (target.matches("input, select, textarea")) {
    if (event.key === "Escape") target.blur();
    return;
  }
  if (shown.key?.(event)) return event.preventDefault();
  const page = Object.entries(PAGES).find(([, { key }]) => key === event.key);
  if (page !== undefined) go(page[0], { step: here().params.get("step") });
  else if (event.key === "t") turnTheme();
  else if (event.key === "?") help();
  else if (event.key === "/") {
    event.preventDefault();
    const search = document.querySelector("input[type=search]");
    if (search instanceof HTMLElement) search.focus();
    else go("samples");
  }
}

try {
  const theme = localStorage.getItem("stagetrace.theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch {
  // The system's choice holds.
}
addEventListener("hashchange", show);
addEventListener("keydown", pressed);
document.addEventListener("visibilitychange", () => !document.hidden && wantsRefresh && changed());
follow((version) => state !== null && version !== state.version && changed(), (is) => {
  if (is !== isConnected) {
    isConnected = is;
    drawHeader();
  }
});
// What is open grows older though nothing changes.
if (!isStatic) setInterval(() => state !== null && changed(), 3000);
show();
