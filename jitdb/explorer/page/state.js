// What the page shows, in its address: so it can be gone back from, kept as a bookmark, and opened again.

const LISTS = ["columns"];
const TEXTS = ["where", "since", "until", "by", "tab", "from", "to", "zone", "against", "of"];

export const state = read();
const listeners = [];

function read() {
  const said = new URLSearchParams(location.hash.slice(1));
  const found = {};
  for (const name of TEXTS) found[name] = said.get(name) || "";
  for (const name of LISTS) found[name] = said.getAll(name);
  return found;
}

function address() {
  const said = new URLSearchParams();
  for (const name of TEXTS) if (state[name]) said.set(name, state[name]);
  for (const name of LISTS) for (const each of state[name]) said.append(name, each);
  return said.size ? `#${said}` : location.pathname;
}

/** Call `listener(changed)` with the names of what changed, whenever something did. */
export function onChange(listener) {
  listeners.push(listener);
}

/** Change what is shown. `quietly`: going back passes over it. */
export function change(parts, quietly = false) {
  const changed = Object.keys(parts).filter((name) => String(parts[name]) !== String(state[name]));
  if (!changed.length) return;
  Object.assign(state, parts);
  history[quietly ? "replaceState" : "pushState"](null, "", address());
  for (const listener of listeners) listener(changed);
}

addEventListener("popstate", () => {
  const before = { ...state };
  Object.assign(state, read());
  const changed = Object.keys(state).filter((name) => String(before[name]) !== String(state[name]));
  if (changed.length) for (const listener of listeners) listener(changed);
});
