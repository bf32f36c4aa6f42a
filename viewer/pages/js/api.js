// Questions to the server, or to what a page without a server carries with it.

import { savedSamples } from "./saved.js";

/** What the server refuses, with its reason. */
export class Refused extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** @type {Record<string, any> | null} */
const carried = (() => {
  const element = document.getElementById("answers");
  return element === null ? null : JSON.parse(element.textContent ?? "{}");
})();

/** Whether this page carries its data, and no server is asked. */
export const isStatic = carried !== null;

/**
 * An answer of the server.
 * @param {string} path such as `overview`
 * @param {Record<string, unknown>} [params] empty ones are left out
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function ask(path, params = {}, signal) {
  const query = new URLSearchParams();
  for (const name of Object.keys(params).sort()) {
    const value = params[name];
    if (value !== null && value !== undefined && value !== "" && value !== false) query.set(name, String(value));
  }
  const text = query.toString();
  const address = text === "" ? path : `${path}?${text}`;
  if (carried !== null) {
    if (address in carried) return carried[address];
    if (path === "samples" && path in carried) {
      const answer = savedSamples(carried[path], params);
      if ("refused" in answer) throw new Refused(400, answer.refused);
      return answer;
    }
    throw new Refused(404, "This page was saved without that. The server of stagetrace-viewer has it.");
  }
  let [isThere, status, body] = [false, 0, ""];
  try {
    const response = await fetch(`/api/${address}`, signal ? { signal } : {});
    [isThere, status] = [response.ok, response.status];
    // The connection may break within an answer as well.
    body = await response.text();
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Refused(0, "The server of stagetrace-viewer does not answer. Is it still running?");
  }
  if (isThere) return JSON.parse(body);
  let message = body;
  try {
    message = JSON.parse(body).error ?? body;
  } catch {
    // Not JSON: shown as it is.
  }
  throw new Refused(status, message.trim());
}

/**
 * Calls a function at each change of what the server knows, and when the connection comes and goes.
 * @param {(version: number) => void} changed
 * @param {(isConnected: boolean) => void} connected
 */
export function follow(changed, connected) {
  if (isStatic) return;
  const events = new EventSource("/api/events");
  events.addEventListener("open", () => connected(true));
  events.addEventListener("error", () => {
    connected(false);
    // The browser tries again where nobody answers, but not where it was refused, as by a server with another token.
    if (events.readyState === EventSource.CLOSED) setTimeout(() => follow(changed, connected), 3000);
  });
  events.addEventListener("change", (event) => changed(Number(event.data)));
}
