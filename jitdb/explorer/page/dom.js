// Elements, and how values read. What a record holds becomes text nodes, never markup.

const SVG = "http://www.w3.org/2000/svg";
// Characters that change how those around them are shown, or that are not seen at all: as escapes.
const ODD =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

export const $ = (id) => document.getElementById(id);

/** An element: its attributes (on…: listeners; `data-` and `aria-` too), and what is in it. */
export function el(name, attributes = {}, ...inside) {
  return filled(document.createElement(name), attributes, inside);
}

export function svg(name, attributes = {}, ...inside) {
  return filled(document.createElementNS(SVG, name), attributes, inside);
}

function filled(node, attributes, inside) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value == null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...inside.filter(isThere));
  return node;
}

const isThere = (each) => each != null && each !== false && each !== "";

/** Put these in the place of what is in it. */
export function fill(node, ...inside) {
  node.replaceChildren(...inside.filter(isThere));
}

/** A width, height or place that only a number decides: the page's rules allow no style attributes. */
export function styled(node, properties) {
  for (const [name, value] of Object.entries(properties)) node.style.setProperty(name, value);
  return node;
}

/** Text of a record, with escapes for what would not be seen. */
export function shown(text) {
  return text.replace(ODD, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A value as the server gives it, [kind, text, characters]: one element. */
export function cell([kind, text, characters], attributes = {}) {
  const more = characters ? el("small", { class: "more-text" }, ` … ${count(characters)} characters`) : null;
  const said = kind === "absent" ? "" : text === "" && kind === "text" ? '""' : shown(text);
  return el("bdi", { ...attributes, class: `v ${kind} ${attributes.class || ""}` }, said, more);
}

/** How an expression writes a value; null where it cannot be written whole. */
export function literal([kind, text, characters]) {
  if (characters) return null;
  if (kind === "text") return JSON.stringify(text);
  return ["number", "boolean", "null"].includes(kind) ? text : null;
}

export const count = (number) => number.toLocaleString("en");

export function percent(share) {
  const number = 100 * share;
  return `${number.toFixed(number === 0 || number === 100 ? 0 : number && number < 0.1 ? 2 : 1)} %`;
}

export function short(number) {
  const size = Math.abs(number);
  if (size >= 1e15 || (size && size < 1e-3)) return number.toExponential(1);
  return number.toLocaleString("en", {
    maximumSignificantDigits: size >= 100 ? Math.max(3, Math.floor(Math.log10(size)) + 1) : 2,
  });
}

export function bytes(size) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  const at = Math.min(Math.floor(Math.log10(Math.max(size, 1)) / 3), units.length - 1);
  return `${(size / 1000 ** at).toLocaleString("en", { maximumFractionDigits: at > 2 ? 1 : 0 })} ${units[at]}`;
}

export const milliseconds = (number) => (number < 10 ? number.toFixed(1) : count(Math.round(number))) + " ms";

/** Say something for a moment, to those who see and to those who listen. */
export function say(text) {
  const said = $("said");
  said.textContent = text;
  said.classList.add("on");
  clearTimeout(say.timer);
  say.timer = setTimeout(() => said.classList.remove("on"), 2500);
}
