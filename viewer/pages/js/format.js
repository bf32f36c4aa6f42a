// Numbers, times and ids for people.

/** @type {[number, string][]} */
const UNITS = [[86_400e9, "d"], [3600e9, "h"], [60e9, "min"], [1e9, "s"], [1e6, "ms"], [1e3, "µs"]];

/**
 * Nanoseconds in three digits: `1.23 ms`, `45.6 s`, `2 h 5 min`.
 * @param {number | string | null | undefined} ns
 */
export function duration(ns) {
  if (ns === null || ns === undefined) return "–";
  const value = Number(ns);
  const sign = value < 0 ? "−" : "";
  const size = Math.abs(value);
  const at = UNITS.findIndex(([unit]) => size >= unit);
  if (at < 0) return `${sign}${Math.round(size)} ns`;
  const [unit, name] = UNITS[at];
  if (unit < 60e9) return `${sign}${digits(size / unit)} ${name}`;
  const [part, partName] = UNITS[at + 1];
  const whole = Math.floor(size / unit);
  const rest = Math.floor((size - whole * unit) / part);
  return `${sign}${whole} ${name}${rest > 0 ? ` ${rest} ${partName}` : ""}`;
}

/** @param {number} value */
function digits(value) {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** `12 345`; @param {number | null | undefined} value */
export function count(value) {
  return value === null || value === undefined ? "–" : Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** `1 sample`, `2 samples`; @param {number} value @param {string} word */
export function counted(value, word) {
  return `${count(value)} ${word}${value === 1 ? "" : "s"}`;
}

/** `1.2 MiB`; @param {number} value */
export function bytes(value) {
  const names = ["B", "KiB", "MiB", "GiB", "TiB"];
  const at = value < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(value) / 10));
  return at === 0 ? `${value} B` : `${digits(value / 1024 ** at)} ${names[at]}`;
}

/** A share of one: `12.3 %`; @param {number} value */
export function percent(value) {
  return `${value >= 0.1 || value === 0 ? (value * 100).toFixed(0) : (value * 100).toFixed(1)} %`;
}

/** @param {number | null | undefined} value */
export function decimal(value) {
  return value === null || value === undefined ? "–" : String(Math.round(value * 1000) / 1000);
}

/** The time of day in this time zone; @param {string | number | null | undefined} unixNano */
export function clock(unixNano) {
  if (unixNano === null || unixNano === undefined) return "–";
  const at = new Date(Number(unixNano) / 1e6);
  const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
  const millis = String(at.getMilliseconds()).padStart(3, "0");
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${millis}`;
}

/** Date and time in this time zone; @param {string | number | null | undefined} unixNano */
export function dateTime(unixNano) {
  if (unixNano === null || unixNano === undefined) return "–";
  const at = new Date(Number(unixNano) / 1e6);
  const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(unixNano)}`;
}

/** The beginning of a long id; @param {string} id */
export function short(id) {
  return id.length > 12 ? `${id.slice(0, 8)}…` : id;
}

/** An id, which may be a number, a text or nothing; @param {unknown} id */
export function plain(id) {
  return id === null || id === undefined || id === "" ? "–" : String(id);
}
