// A list of any length, of which only what is seen is drawn and asked for.

import { h } from "./dom.js";

/** Rows that are asked for at once. */
const ROWS_OF_PAGE = 200;
/** Browsers draw nothing beyond some 16 million pixels; a longer list scrolls faster than its bar. */
const TALLEST = 8_000_000;
/** Pages that are kept. */
const KEPT = 30;

/**
 * @template T
 * @typedef {object} VirtualList
 * @property {HTMLElement} element
 * @property {(total: number, offset: number, rows: T[]) => void} reset shows another list, of which a page is known
 * @property {() => Promise<void>} refresh asks again for what is seen, and keeps the place
 * @property {(total: number) => void} setTotal
 * @property {(by: number) => void} move chooses another row
 * @property {() => T | null} chosen
 * @property {(index: number) => void} scrollTo
 * @property {() => void} redraw
 * @property {() => void} fit
 * @property {() => void} close
 */

/**
 * @template T
 * @param {object} how
 * @param {number} how.rowHeight
 * @param {HTMLElement} how.head
 * @param {(offset: number, limit: number) => Promise<T[]>} how.load
 * @param {(row: T | null, index: number) => HTMLElement} how.draw
 * @param {(row: T) => string} how.name tells rows apart
 * @param {(first: number) => void} [how.settled] called with the first row that is seen, when scrolling has ended
 * @returns {VirtualList<T>}
 */
export function virtualList({ rowHeight, head, load, draw, name, settled }) {
  let [total, chosen, epoch] = [0, -1, 0];
  /** @type {Map<number, T[]>} */
  let pages = new Map();
  /** @type {Set<number>} */
  const asked = new Set();
  let drawn = "";
  /** @type {number | undefined} */
  let rest;
  const layer = h("div", { class: "virtual-rows", role: "rowgroup" });
  const space = h("div", { class: "virtual-space" }, layer);
  const element = h("div", { class: "virtual", role: "table", tabindex: 0 }, head, space);

  const view = () => Math.max(rowHeight, element.clientHeight - head.offsetHeight);
  const tall = () => Math.min(total * rowHeight, TALLEST);
  /** Pixels of the whole list for a pixel of the scroll bar. */
  const scale = () => (tall() > view() ? (total * rowHeight - view()) / (tall() - view()) : 1);
  const top = () => element.scrollTop * scale();
  const seen = () => {
    const first = Math.max(0, Math.floor(top() / rowHeight) - 6);
    return { first, last: Math.min(total, first + Math.ceil(view() / rowHeight) + 12) };
  };
  const row = (/** @type {number} */ index) => pages.get(Math.floor(index / ROWS_OF_PAGE))?.[index % ROWS_OF_PAGE] ?? null;

  /** What is drawn, by its place. @type {Map<number, { text: string, element: HTMLElement }>} */
  let elements = new Map();

  function paint(force = false) {
    const { first, last } = seen();
    const now = `${first} ${last}`;
    layer.style.transform = `translateY(${element.scrollTop + first * rowHeight - top()}px)`;
    if (now === drawn && !force) return;
    drawn = now;
    /** @type {typeof elements} */
    const next = new Map();
    for (let index = first; index < last; index++) {
      const one = row(index);
      const text = JSON.stringify(one);
      let known = elements.get(index);
      if (known?.text !== text) {
        known = { text, element: draw(one, index) };
        known.element.setAttribute("aria-rowindex", String(index + 2));
        known.element.style.height = `${rowHeight}px`;
      }
      known.element.classList.toggle("chosen", index === chosen);
      next.set(index, known);
    }
    elements = next;
    const all = [...next.values()].map((one) => one.element);
    // What stays as it was keeps its focus, and clicks that are half done.
    const isSame = all.length === layer.children.length && all.every((one, at) => one === layer.children[at]);
    if (!isSame) layer.replaceChildren(...all);
  }

  const missing = () => {
    const { first, last } = seen();
    const all = [];
    for (let page = Math.floor(first / ROWS_OF_PAGE); page * ROWS_OF_PAGE < last; page++) all.push(page);
    return all;
  };

  /** Asks for what is seen and not known. @param {boolean} [again] also for what is known */
  async function want(again = false) {
    const own = epoch;
    const wanted = missing().filter((page) => (again || !pages.has(page)) && !asked.has(page));
    await Promise.all(wanted.map(async (page) => {
      asked.add(page);
      try {
        const rows = await load(page * ROWS_OF_PAGE, ROWS_OF_PAGE);
        if (own !== epoch) return;
        pages.set(page, rows);
        if (pages.size > KEPT) pages = new Map([...pages].filter(([other]) => Math.abs(other - page) <= KEPT / 2));
        paint(true);
      } finally {
        if (own === epoch) asked.delete(page);
      }
    }));
  }

  /** @param {T} wanted */
  function placeOf(wanted) {
    const text = name(wanted);
    for (const [page, rows] of pages) {
      const at = rows.findIndex((one) => name(one) === text);
      if (at >= 0) return page * ROWS_OF_PAGE + at;
    }
    return null;
  }

  function scrolled() {
    paint();
    clearTimeout(rest);
    // What only rushes by is not asked for.
    rest = setTimeout(() => {
      want().catch(() => {});
      settled?.(Math.round(top() / rowHeight));
    }, missing().every((page) => pages.has(page)) ? 250 : 70);
  }

  /** A list that is longer than its scroll bar is still turned row by row; @param {WheelEvent} event */
  function wheeled(event) {
    if (scale() === 1 || event.deltaY === 0 || event.ctrlKey) return;
    event.preventDefault();
    element.scrollTop += (event.deltaY * (event.deltaMode === 1 ? rowHeight : 1)) / scale();
  }

  element.addEventListener("scroll", scrolled, { passive: true });
  element.addEventListener("wheel", wheeled, { passive: false });

  function setTotal(/** @type {number} */ value) {
    total = value;
    chosen = Math.min(chosen, total - 1);
    space.style.height = `${tall()}px`;
    element.setAttribute("aria-rowcount", String(total + 1));
  }
  function scrollTo(/** @type {number} */ index) {
    element.scrollTop = (index * rowHeight) / scale();
  }
  function fit() {
    const room = innerHeight - (element.getBoundingClientRect().top + scrollY) - 42;
    element.style.height = `${Math.max(260, room)}px`;
    paint(true);
  }
  return {
    element,
    setTotal: (value) => {
      if (value === total) return;
      setTotal(value);
      paint(true);
    },
    scrollTo,
    fit,
    reset(value, offset, rows) {
      epoch++;
      asked.clear();
      pages = new Map([[Math.floor(offset / ROWS_OF_PAGE), rows]]);
      setTotal(value);
      chosen = -1;
      element.scrollTop = 0;
      paint(true);
    },
    async refresh() {
      const at = Math.floor(top() / rowHeight);
      const [anchor, marked] = [row(at), row(chosen)];
      const keep = new Set(missing());
      pages = new Map([...pages].filter(([page]) => keep.has(page)));
      await want(true);
      // Rows that came in above do not move what is looked at.
      const moved = at > 0 && anchor !== null ? placeOf(anchor) : null;
      if (moved !== null && moved !== at) element.scrollTop += ((moved - at) * rowHeight) / scale();
      if (marked !== null) chosen = placeOf(marked) ?? chosen;
      paint(true);
    },
    redraw: () => {
      elements.clear();
      paint(true);
    },
    move(by) {
      if (total === 0) return;
      const { first } = seen();
      chosen = chosen < 0 ? Math.min(total - 1, first + (first > 0 ? 6 : 0)) : Math.max(0, Math.min(total - 1, chosen + by));
      const [from, until] = [top(), top() + view() - rowHeight];
      if (chosen * rowHeight < from) scrollTo(chosen);
      else if (chosen * rowHeight > until) scrollTo(chosen - view() / rowHeight + 1);
      paint(true);
    },
    chosen: () => row(chosen),
    close: () => {
      epoch++;
      clearTimeout(rest);
    },
  };
}
