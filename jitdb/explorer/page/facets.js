// The fields and their values, each with + and -: only these, not these.
import { ask } from "./api.js";
import { $, cell, count, el, fill, literal, short, shown, styled } from "./dom.js";
import { narrow, refine } from "./question.js";
import { change, state } from "./state.js";

const SHOWN = 5;
const UNFOLDED = 14; // fields that show their values unasked
let facets = new Map(),
  about = null,
  sought = "";
const opened = new Map(); // fields of which more values are shown
const unfolded = new Map(); // fields that were folded or unfolded by hand, and which

export function beginFacets() {
  facets = new Map();
}

export function takeFacet(part) {
  facets.set(part.field, part);
}

export function fieldNames() {
  return [...facets.keys()];
}

/** Show them; `part` says what they leave unsaid. */
export function showFacets(part) {
  about = part;
  for (const [field, found] of opened)
    if (facets.has(field) && found.asked === asked()) facets.set(field, found.part);
    else opened.delete(field);
  if (!part.more)
    for (const field of part.many || []) if (unfolded.get(field) && !opened.has(field)) open({ field, values: [] });
  const find =
    $("find") ||
    el("input", {
      id: "find",
      type: "search",
      placeholder: "Find a field or value",
      "aria-label": "Find a field or value",
      oninput: (event) => {
        sought = event.target.value.toLowerCase();
        list();
      },
    });
  if (!find.isConnected)
    $("facets").replaceChildren(el("div", { class: "find" }, find), el("div", { id: "facet-list" }));
  list();
  chips();
}

const asked = () => JSON.stringify([state.where, state.since, state.until]);

function list() {
  const kept = document.activeElement?.dataset?.at;
  const place = new Map((about.order || []).map((field, at) => [field, at]));
  const many = (about.many || []).filter((field) => !facets.has(field)).map((field) => ({ field, kind: "many" }));
  const ordered = [...facets.values(), ...many].sort(
    (one, other) => (place.get(one.field) ?? 0) - (place.get(other.field) ?? 0),
  );
  const found = ordered.filter(isSought).map((part, at) => drawn(part, at));
  fill(
    $("facet-list"),
    ...found,
    about.more > 0 && el("p", { class: "empty" }, `counting ${about.more} more fields`),
    unsaid(),
  );
  if (kept) [...$("facet-list").querySelectorAll("[data-at]")].find((node) => node.dataset.at === kept)?.focus();
}

function isSought(part) {
  const has = (text) => text.toLowerCase().includes(sought);
  return has(part.field) || (part.values || []).some(([, text]) => has(text));
}

function drawn(part, at) {
  if (part.kind === "many") return el("section", { class: "facet folded" }, head(part, "many values", false));
  const isNamed = part.kind === "values" && part.on.length + part.off.length > 0;
  const isOpen = unfolded.get(part.field) ?? (at < UNFOLDED || isNamed || Boolean(sought));
  if (isOpen) return part.kind === "numbers" ? numbers(part) : values(part);
  return el("section", { class: "facet folded" }, head(part, part.kind === "numbers" ? "number" : many(part), false));
}

function head(part, told, isOpen = true) {
  const fold = () => {
    unfolded.set(part.field, !isOpen);
    if (part.kind === "many") open({ field: part.field, values: [] });
    else list();
  };
  const by = () => change({ by: state.by === part.field ? "-" : part.field }, true);
  return el(
    "h3",
    { id: `f-${part.field}` },
    el(
      "button",
      {
        class: "name",
        "data-at": `fold ${part.field}`,
        "aria-expanded": String(isOpen),
        onclick: fold,
        title: isOpen ? "fold" : "show its values",
      },
      shown(part.field),
    ),
    part.kind === "values" &&
      el(
        "button",
        {
          class: "by",
          "data-at": `by ${part.field}`,
          "aria-pressed": String(state.by === part.field),
          "aria-label": `bars by ${part.field}`,
          title: "tell its values apart over time",
          onclick: by,
        },
        "▤",
      ),
    el("span", {}, told),
  );
}

const many = (part) => `${count(part.distinct)} ${part.distinct === 1 ? "value" : "values"}`;

function values(part) {
  const named = [...part.on, ...part.off];
  const told = part.on.length ? `${part.on.length} of ${count(part.distinct)}` : many(part);
  const most = Math.max(1, ...part.values.map((value) => value.at(-1)));
  const isOn = (value) => part.on.includes(literal(value.slice(0, -1)));
  const rows = [...part.values]
    .sort((one, other) => isOn(other) - isOn(one))
    .map((value) => row(part, value, most, named.length > 0));
  const more = part.distinct - part.values.filter((value) => value.at(-1)).length;
  return el(
    "section",
    { class: "facet", "aria-labelledby": `f-${part.field}` },
    head(part, told),
    ...rows,
    more > 0 &&
      el(
        "button",
        { class: "more", "data-at": `more ${part.field}`, onclick: () => open(part) },
        `${count(more)} more`,
      ),
    part.values.length > SHOWN &&
      opened.has(part.field) &&
      el(
        "button",
        {
          class: "more",
          onclick: () => {
            opened.delete(part.field);
            document.dispatchEvent(new CustomEvent("look"));
          },
        },
        "fewer",
      ),
    part.missing > 0 && el("div", { class: "dim" }, `${count(part.missing)} without it`),
  );
}

function row(part, value, most, isNarrowed) {
  const number = value.at(-1),
    said = literal(value.slice(0, -1)),
    field = part.field;
  const isOn = part.on.includes(said),
    isOff = part.off.includes(said);
  const label = `${field} ${value[1]}, ${count(number)}`;
  const bar = styled(el("i"), { width: `${(100 * number) / most}%` });
  const at = (act) => `${act} ${field} ${said}`;
  const only = () => refine(field, said, isOn || isOff ? "drop" : "only");
  return el(
    "div",
    { class: `value${isOn ? " on" : ""}${isOff ? " off" : ""}${isNarrowed && !isOn ? " other" : ""}` },
    bar,
    el(
      "button",
      {
        class: "what",
        "data-at": at("="),
        disabled: said === null,
        onclick: only,
        "aria-pressed": String(isOn),
        "aria-label": label,
        title: value[1].slice(0, 300),
      },
      cell(value.slice(0, -1)),
      el("em", {}, count(number)),
    ),
    said !== null &&
      el(
        "span",
        { class: "act" },
        el(
          "button",
          {
            "data-at": at("+"),
            "aria-label": `also ${label}`,
            title: "these, too",
            onclick: () => refine(field, said, isOn ? "drop" : "also"),
          },
          "+",
        ),
        el(
          "button",
          {
            "data-at": at("-"),
            "aria-label": `without ${label}`,
            title: "not these",
            onclick: () => refine(field, said, isOff ? "drop" : "not"),
          },
          "−",
        ),
      ),
  );
}

function numbers(part) {
  const most = Math.max(1, ...part.bars.map(([, , number]) => number));
  const picked = Object.fromEntries(part.quantiles);
  const told = ["p50", "p95", "p99"]
    .filter((name) => name in picked)
    .map((name) => `${name} ${short(picked[name])}`)
    .join(" · ");
  const bars = part.bars.map(([low, high, number]) =>
    el(
      "button",
      {
        class: "bar",
        title: `${short(low)} to ${short(high)}: ${count(number)}`,
        tabindex: -1,
        "aria-label": `${part.field} from ${short(low)} to ${short(high)}, ${count(number)}`,
        onclick: () => narrow(`${part.field} >= ${low} and ${part.field} < ${high}`),
      },
      styled(el("i"), { height: `${number ? Math.max(4, (100 * number) / most) : 0}%` }),
    ),
  );
  return el(
    "section",
    { class: "facet", "aria-labelledby": `f-${part.field}` },
    head(part, part.scale === "log" ? "number, log scale" : "number"),
    el("div", { class: "bars" }, ...bars),
    el("div", { class: "ends" }, el("span", {}, short(part.low)), el("b", {}, told), el("span", {}, short(part.high))),
  );
}

function unsaid() {
  const { same = [], unique = [] } = about || {};
  const nothing = !same.length && !unique.length;
  return nothing
    ? ""
    : el(
        "section",
        { class: "facet dim" },
        same.length > 0 &&
          el(
            "p",
            {},
            "The same in all of these: ",
            same.map(([field, value]) => `${shown(field)} = ${shown(value[1])}`).join(", "),
          ),
        unique.length > 0 && el("p", {}, "Nearly unique, not counted: ", unique.map(shown).join(", ")),
      );
}

/** Of a narrow screen: a row of fields, each of which opens. */
function chips() {
  const chip = (field) => el("button", { onclick: () => drawer(field) }, shown(field));
  fill(
    $("fields"),
    el("button", { onclick: () => drawer("") }, el("b", {}, `☰ ${facets.size} fields`)),
    ...[...facets.keys()].slice(0, 12).map(chip),
  );
}

function drawer(field) {
  const box = $("facets"),
    isOpen = box.classList.toggle("open", !(box.classList.contains("open") && box.dataset.field === field));
  box.dataset.field = field;
  if (isOpen && field) document.getElementById(`f-${field}`)?.scrollIntoView({ block: "center" });
}

export const closeDrawer = () => $("facets").classList.remove("open");

async function open(part) {
  await ask(
    "facet",
    {
      where: state.where,
      since: state.since,
      until: state.until,
      field: part.field,
      limit: part.values.length > SHOWN ? 1000 : part.values.length ? 50 : SHOWN,
    },
    (found) => {
      if (found.part !== "facet") return;
      if (part.values.length) opened.set(part.field, { asked: asked(), part: found });
      facets.set(part.field, found);
      list();
    },
  );
}
