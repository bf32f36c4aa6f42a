// What a saved page answers by itself: its list of samples, searched and sorted.

/** Prefixes of a search that a saved page knows, and the field of a row they are about. @type {Record<string, string>} */
const SAVED_FIELDS = {
  rollout: "id", rollout_id: "id", status: "status", group: "group_id", task: "task", trace: "trace_id", trace_id: "trace_id",
  current: "stage", error: "error", "error-stage": "error_stage", session: "session",
};
/** Amounts that are compared: `duration:>10s`. @type {Record<string, (row: any) => unknown>} */
const SAVED_AMOUNTS = {
  duration: (row) => row.duration_ns, age: (row) => (row.is_open ? row.duration_ns : null), "stage-age": (row) => (row.is_open ? row.stage_age_ns : null), reward: (row) => row.reward, tokens: (row) => row.completion_tokens,
  step: (row) => row.step, attempt: (row) => row.attempt, spans: (row) => row.spans,
};
/** @type {Record<string, number>} */
const SAVED_UNITS = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, m: 60e9, min: 60e9, h: 3600e9, d: 86_400e9 };
/** @type {Record<string, (row: any) => boolean>} */
const SAVED_STATES = {
  open: (row) => row.is_open, stuck: (row) => row.is_stuck === true, error: (row) => row.error_stage !== null,
  lost: (row) => row.status === "lost", failed: (row) => row.status === "failed", "left-open": (row) => row.left_open > 0,
};
/** Columns by which a saved list is sorted, and the field of a row. @type {Record<string, string>} */
const SAVED_COLUMNS = {
  id: "id", start: "start_unix_nano", duration: "duration_ns", stage_age: "stage_age_ns", status: "status", stage: "stage", step: "step", group: "group_id",
  attempt: "attempt", reward: "reward", tokens: "completion_tokens", spans: "spans",
};

/**
 * The answer to a question for samples.
 * @param {any} list all of them, as the server listed them
 * @param {Record<string, any>} params those of the question
 */
export function savedSamples(list, params) {
  const terms = String(params.q ?? "").toLowerCase().match(/-?(?:[a-z_-]+:)?(?:"[^"]*"|\S+)/g) ?? [];
  const step = params.step === "latest" ? list.facets?.steps?.at(-1)?.[0] : params.step;
  const isOfStep = (/** @type {any} */ row) => step === null || step === undefined || step === "all" || String(row.step) === String(step);
  const all = list.rows.filter(isOfStep);
  const tests = terms.map((term) => ({ term, isNot: term.startsWith("-") && term.length > 1, test: savedTerm(term.replace(/^-(?=.)/, "")) }));
  const unknown = tests.find(({ test }) => test === null);
  if (unknown !== undefined) return { refused: `A saved page cannot search ${unknown.term}: it knows ${[...Object.keys(SAVED_FIELDS), ...Object.keys(SAVED_AMOUNTS), "is"].join(", ")}, and words. The server of stagetrace-viewer searches all.` };
  const rows = all.filter((/** @type {any} */ row) => tests.every(({ isNot, test }) => test?.(row) !== isNot));
  const sort = String(params.sort ?? "start");
  const field = Object.hasOwn(SAVED_COLUMNS, sort) ? SAVED_COLUMNS[sort] : "start_unix_nano";
  const sign = params.desc ? -1 : 1;
  rows.sort((/** @type {any} */ one, /** @type {any} */ other) => {
    const [a, b] = [one[field], other[field]];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    const [x, y] = [Number(a), Number(b)];
    return sign * (Number.isNaN(x) || Number.isNaN(y) ? String(a).localeCompare(String(b)) : x - y);
  });
  const from = Number(params.offset ?? 0);
  return { ...list, total: all.length, matched: rows.length, offset: from, rows: rows.slice(from, from + Number(params.limit ?? 100)) };
}

/**
 * What a term of a search asks of a row; `null` if a saved page does not know it.
 * @param {string} term
 * @returns {((row: any) => boolean) | null}
 */
function savedTerm(term) {
  const [, prefix, rest] = /^([a-z_-]+):(.*)$/.exec(term) ?? [];
  const text = (rest ?? term).replaceAll('"', "");
  if (prefix === undefined) return (row) => savedTexts(row).some((one) => one.includes(text));
  if (prefix === "is") return Object.hasOwn(SAVED_STATES, text) ? SAVED_STATES[text] : null;
  const comparison = /^([<>]=?|=)?(-?\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|min|h|d)?$/.exec(text);
  const amount = Object.hasOwn(SAVED_AMOUNTS, prefix) ? SAVED_AMOUNTS[prefix] : undefined;
  if (amount !== undefined) {
    if (comparison === null) return null;
    const wanted = Number(comparison[2]) * (SAVED_UNITS[comparison[3] ?? ""] ?? 1);
    return (row) => {
      const value = amount(row);
      if (value === null || value === undefined) return false;
      const sign = comparison[1] ?? "=";
      return sign[0] === ">" ? Number(value) > wanted || (sign === ">=" && Number(value) === wanted)
        : sign[0] === "<" ? Number(value) < wanted || (sign === "<=" && Number(value) === wanted) : Number(value) === wanted;
    };
  }
  const field = Object.hasOwn(SAVED_FIELDS, prefix) ? SAVED_FIELDS[prefix] : undefined;
  if (field === undefined) return null;
  const isWhole = text.startsWith("=");
  return (row) => row[field] !== null && (isWhole ? String(row[field]).toLowerCase() === text.slice(1) : String(row[field]).toLowerCase().includes(text));
}

/** What free words are searched in; @param {any} row */
function savedTexts(row) {
  return [...new Set(Object.values(SAVED_FIELDS)), "name"].map((field) => row[field]).filter((value) => value !== null && value !== undefined).map((value) => String(value).toLowerCase());
}
