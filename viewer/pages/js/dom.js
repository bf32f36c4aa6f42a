// Elements made without HTML text, so that nothing that was recorded can become markup.

/**
 * What an element may hold: texts are shown as they are, empty values are left out.
 * @typedef {Node | string | number | null | undefined | false | Child[]} Child
 */

/**
 * An element with attributes and children. `class`, `title`, `href` and the like are attributes; `onclick` and the like
 * are listeners; `true` is an attribute without a value, `false`, `null` and `undefined` are none.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, any> | null} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  dress(element, attributes);
  append(element, children);
  return element;
}

/**
 * The same for SVG.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, any> | null} [attributes]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  dress(element, attributes);
  append(element, children);
  return element;
}

/**
 * Puts these in the place of all that an element holds.
 * @param {Element} element
 * @param {...Child} children
 */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/** @param {Element} element @param {Record<string, any> | null | undefined} attributes */
function dress(element, attributes) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
}

/** @param {Element} element @param {Child[]} children */
function append(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child instanceof Node) element.append(child);
    else if (child !== null && child !== undefined && child !== false) element.append(String(child));
  }
}

/**
 * Shows a tip beside the pointer, or hides it.
 * @param {MouseEvent | null} event
 * @param {...Child} children
 */
export function tip(event, ...children) {
  const box = /** @type {HTMLElement} */ (document.getElementById("tip"));
  box.hidden = event === null;
  if (event === null) return;
  fill(box, ...children);
  const { innerWidth, innerHeight } = window;
  const left = Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8);
  const below = event.clientY + 18 + box.offsetHeight < innerHeight;
  box.style.left = `${Math.max(4, left)}px`;
  box.style.top = `${below ? event.clientY + 18 : event.clientY - box.offsetHeight - 10}px`;
}
