// Ages that go on while somebody looks.

import { h } from "./dom.js";
import { duration } from "./format.js";

/** The server's clock in nanoseconds since 1970, as far as it is known, and when it was told. */
let told = { ns: 0, at: 0, goes: false };

/** Takes over the server's clock. One that was set to an instant of the past stands still; @param {string} unixNano */
export function setServerClock(unixNano) {
  const ns = Number(unixNano);
  told = { ns, at: performance.now(), goes: Math.abs(Date.now() * 1e6 - ns) < 3600e9 };
}

/** Now, by the server's clock, in nanoseconds since 1970. */
export function serverClock() {
  return told.ns + (told.goes ? (performance.now() - told.at) * 1e6 : 0);
}

/** For how long something has been going on; `tickAges` keeps it right; @param {number} since in nanoseconds since 1970 */
export function ageSince(since) {
  return h("span", { class: "age", "data-since": since }, duration(Math.max(0, serverClock() - since)));
}

/**
 * Lets the ages inside an element go on, each second.
 * @param {Element} root
 * @returns {() => void} what ends it
 */
export function tickAges(root) {
  const tick = () => {
    if (document.hidden || !told.goes) return;
    for (const element of root.querySelectorAll("[data-since]")) {
      const text = duration(Math.max(0, serverClock() - Number(element.getAttribute("data-since"))));
      if (element.textContent !== text) element.textContent = text;
    }
  };
  const timer = setInterval(tick, 1000);
  return () => clearInterval(timer);
}
