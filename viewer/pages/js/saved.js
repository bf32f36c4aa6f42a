// What a saved page answers by itself: its list of samples, searched and sorted.

/** Prefixes of a search that a saved page knows, and the field of a row they are about. @type {Record<string, string>} */
const SAVED_FIELDS = {
  rollout: "id", rollout_id: "id", status: "status", step: "step", group: "group_id", task: "task", trace: "trace_id", trace_id: "trace_id",
  current: "stage", error: "error", "error-stage": "error_stage", session: "session", attempt: "attempt",
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
  const rows = all.filter((/** @type {any} */ row) => terms.every((term) => term.startsWith("-") ? !savedTerm(row, term.slice(1)) : savedTerm(row, term)));
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

/** Whether a row has what a term of a search asks for; @param {any} row @param {string} term */
function savedTerm(row, term) {
  const [, prefix, rest] = /^([a-z_-]+):(.*)$/.exec(term) ?? [];
  const text = (rest ?? term).replaceAll('"', "");
  if (prefix === "is" && text === "open") return row.is_open;
  if (prefix === "is" && text === "stuck") return row.is_stuck === true;
  if (prefix === "is" && text === "error") return row.error !== null;
  if (prefix === "is") return row.status === text;
  const field = prefix !== undefined && Object.hasOwn(SAVED_FIELDS, prefix) ? SAVED_FIELDS[prefix] : undefined;
  const values = field === undefined ? Object.values(row) : [row[field]];
  return values.some((value) => value !== null && String(value).toLowerCase().includes(field === undefined ? term.replaceAll('"', "") : text));
}
