// Colours of stages and statuses: the same on every page and in every run.

const HUES = [211, 158, 32, 265, 190, 340, 95, 48, 290, 12, 230, 130];
/** @type {Map<string, string>} */
const known = new Map();

/** @param {string} stage */
export function stageColor(stage) {
  let color = known.get(stage);
  if (color === undefined) {
    let hash = 2166136261;
    for (let at = 0; at < stage.length; at++) hash = Math.imul(hash ^ stage.charCodeAt(at), 16777619);
    hash >>>= 0;
    const lightness = 52 + ((hash >>> 8) % 3) * 6;
    color = `hsl(${HUES[hash % HUES.length]} 58% ${lightness}%)`;
    known.set(stage, color);
  }
  return color;
}

/** The class of a status, as the style sheet has a colour for it; @param {string} status */
export function statusClass(status) {
  const all = ["completed", "archived", "running", "failed", "aborted", "filtered", "expired", "cancelled", "init", "unknown", "lost"];
  return `status status-${all.includes(status) ? status : "other"}`;
}

/** A colour of the style sheet, for canvases; @param {string} name */
export function themeColor(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
