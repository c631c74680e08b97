// Below the bars: what is different in a stretch of time, what messages look like, what numbers are like.
import { $, count, el, short, shown } from "./dom.js";
import { change, state } from "./state.js";
import { focus } from "./timeline.js";
import { span } from "./times.js";

let counts = { records: 0, patterns: null, numbers: 0 }, asking = null, facets = [];

const stretch = () => (focus() ? `${span(...focus())}` : "");

const TABS = [
  ["", () => "Records", () => counts.records],
  ["why", () => (state.against ? "Compared" : focus() ? `Why ${stretch()}?` : "Why?"), () => null],
  ["patterns", () => "Patterns", () => counts.patterns],
  ["numbers", () => "Numbers", () => counts.numbers],
];

export function showTabs(found) {
  counts = { ...counts, ...found };
  const tabs = TABS.map(([name, title, number]) => el("button", {
    role: "tab", "aria-selected": String(state.tab === name), class: state.tab === name ? "on" : "", onclick: () => change({ tab: name }, true),
  }, title(), number() == null ? "" : el("span", { class: "n" }, count(number()))));
  $("tabs").replaceChildren(...tabs, el("button", { class: "compare", onclick: () => compareMenu() }, "Compare with…"));
}

export function takeNumbers(parts) {
  facets = parts;
  counts.numbers = parts.length;
}

/** Show what the tab is about. */
export function showFindings() {
  asking?.abort();
  asking = new AbortController();
  const box = $("findings"), wanted = { numbers }[state.tab];
  showTabs({});
  if (!wanted) return box.replaceChildren();
  return wanted(box, asking.signal);
}

function compareMenu() {
  document.dispatchEvent(new CustomEvent("compare"));
}

// --- numbers ---------------------------------------------------------------------------------------------------------

function numbers() {
  const names = ["p50", "p95", "p99"];
  const rows = facets.map((part) => {
    const picked = Object.fromEntries(part.quantiles);
    return el("tr", {}, el("th", { scope: "row" }, shown(part.field)), el("td", {}, count(part.total - part.missing)), el("td", {}, short(part.low)),
      ...names.map((name) => el("td", {}, name in picked ? short(picked[name]) : "")), el("td", {}, short(part.high)));
  });
  $("findings").replaceChildren(el("section", { class: "card table" }, el("table", {},
    el("thead", {}, el("tr", {}, ...["field", "records", "min", ...names, "max"].map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, ...rows))));
}
