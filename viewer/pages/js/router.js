// The address holds the whole view: `#/samples?status=failed&sort=duration`. It works from a file as well.

/** @typedef {{ page: string, params: URLSearchParams }} Place */

/** @returns {Place} */
export function here() {
  const [path, ...rest] = location.hash.replace(/^#\/?/, "").split("?");
  const query = rest.join("?");
  return { page: path === "" ? "overview" : path, params: new URLSearchParams(query) };
}

/**
 * The address of a page. Empty parameters are left out.
 * @param {string} page
 * @param {Record<string, unknown>} [params]
 */
export function link(page, params = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "" && value !== false) query.set(name, String(value));
  }
  const text = query.toString();
  return `#/${page === "overview" ? "" : page}${text === "" ? "" : `?${text}`}`;
}

/** Goes to a page; @param {string} page @param {Record<string, unknown>} [params] */
export function go(page, params) {
  location.hash = link(page, params);
}

/**
 * Changes parameters of this page: `null` takes one away. `replace` leaves no step in the history, as for what is typed.
 * @param {Record<string, unknown>} changes
 * @param {{ replace?: boolean, quiet?: boolean }} [how] `quiet`: the page knows already and is not drawn again
 */
export function change(changes, how = {}) {
  const { page, params } = here();
  const next = link(page, { ...Object.fromEntries(params), ...changes });
  if (next === link(page, Object.fromEntries(params))) return;
  if (how.replace || how.quiet) {
    history.replaceState(null, "", next);
    if (!how.quiet) dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = next;
  }
}
