// Below the bars: what is different in a stretch of time, what messages look like, what numbers are like.
import { Failed, askOne } from "./api.js";
import { $, count, el, fill, milliseconds, percent, short, shown, styled, svg } from "./dom.js";
import { narrow } from "./question.js";
import { change, state } from "./state.js";
import { bars, focus } from "./timeline.js";
import { span, zone } from "./times.js";

let counts = { records: 0, patterns: null, numbers: 0 },
  asking = null,
  facets = [];

const stretch = () => (focus() ? `${span(...focus())}` : "");

const TABS = [
  ["", () => "Records", () => counts.records],
  ["why", () => (state.against ? "Compared" : focus() ? `Why ${stretch()}?` : "Why?"), () => null],
  ["patterns", () => "Patterns", () => counts.patterns],
  ["numbers", () => "Numbers", () => counts.numbers],
];

export function showTabs(found) {
  counts = { ...counts, ...found };
  const tabs = TABS.map(([name, title, number]) =>
    el(
      "button",
      {
        role: "tab",
        "aria-selected": String(state.tab === name),
        class: state.tab === name ? "on" : "",
        onclick: () => change({ tab: name }, true),
      },
      title(),
      number() == null ? "" : el("span", { class: "n" }, count(number())),
    ),
  );
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
  const box = $("findings"),
    wanted = { why, patterns, numbers }[state.tab];
  showTabs({});
  if (!wanted) return box.replaceChildren();
  return wanted(box, asking.signal);
}

function compareMenu() {
  document.dispatchEvent(new CustomEvent("compare"));
}

// --- why -------------------------------------------------------------------------------------------------------------

async function why(box, signal) {
  if (!focus() && !state.where && !state.against) {
    fill(
      box,
      el(
        "section",
        { class: "card" },
        el(
          "p",
          { class: "empty" },
          "What is different about some records? Drag over the bars with Shift, and those of this time are compared with all others; or ask a question, and its records are. With the keyboard: t, the arrow keys with Shift, W.",
        ),
      ),
    );
    return;
  }
  if (!box.querySelector(".why"))
    fill(box, el("section", { class: "card" }, el("p", { class: "empty", role: "status" }, "comparing")));
  try {
    const body = { where: state.where, since: state.since, until: state.until, against: state.against };
    const part = await askOne("why", focus() ? { ...body, from: state.from, to: state.to } : body, signal);
    if (signal.aborted) return;
    fill(box, drawnWhy(part));
    if (focus()) await patterns(box, signal, 5);
  } catch (error) {
    if (!signal.aborted)
      fill(
        box,
        el(
          "section",
          { class: "card" },
          el(
            "p",
            { class: "empty" },
            error instanceof Failed ? [error.message, error.part.remedy].filter(Boolean).join("; ") : String(error),
          ),
        ),
      );
  }
}

function drawnWhy(part) {
  const here = focus() ? `${stretch()} ${zone()}` : "of the question",
    there = state.against && !focus() ? `of ${state.against}` : focus() ? "of other times" : "of the others";
  const what = state.where ? "What is different in these" : "What is different";
  return el(
    "section",
    { class: "card why", "aria-label": "Findings" },
    el(
      "div",
      { class: "head" },
      el(
        "div",
        {},
        el("h2", {}, what),
        el(
          "p",
          {},
          el("span", {}, el("i", { class: "swatch here" }), `${count(part.here)} records ${here}`),
          el("span", {}, el("i", { class: "swatch" }), `${count(part.there)} ${shown(there)}`),
        ),
      ),
    ),
    ...part.groups.map(group),
    ...part.findings.map(finding),
    !part.findings.length &&
      el(
        "p",
        { class: "empty" },
        part.here ? "Nothing is more frequent here than chance would have it." : "There are no records here.",
      ),
    el(
      "p",
      { class: "foot" },
      `${count(part.compared)} values and intervals were compared in ${milliseconds(part.ms)}; shown is what chance would give in less than 1 of 100 such comparisons as a whole, by how far the shares are apart.`,
      part.left.length > 0 && ` Left out: ${part.left.map(shown).join(", ")}, which the question is about.`,
    ),
  );
}

function group({ share, other, said, where }) {
  return el(
    "div",
    { class: "group" },
    el(
      "p",
      {},
      el("b", {}, percent(share)),
      ` of them, and ${other ? percent(other) : "none"} of the others, have all of `,
      ...said.map((text) => el("span", { class: "chip" }, shown(text))),
    ),
    el("button", { class: "link", onclick: () => narrow(where) }, "Add to question"),
  );
}

function finding({ field, what, here, share, other, same, where }) {
  const track = (part) =>
    el(
      "span",
      {},
      el("span", { class: "track" }, styled(el("i"), { width: `${Math.max(0.6, 100 * part)}%` })),
      percent(part),
    );
  return el(
    "button",
    {
      class: "row",
      title: "ask for these",
      "aria-label": `${field} ${what}: ${percent(share)} here, ${percent(other)} elsewhere, ${count(here)} records`,
      onclick: () => narrow(where),
    },
    el(
      "span",
      { class: "name" },
      shown(field),
      same.length > 0 &&
        el("small", { class: "same" }, `${same.map(shown).join(", ")} ${same.length === 1 ? "says" : "say"} the same`),
    ),
    el("bdi", { class: "v" }, shown(what.replace(/^= /, ""))),
    el("span", { class: "two" }, track(share), track(other)),
    el("span", { class: "support" }, count(here)),
  );
}

// --- patterns --------------------------------------------------------------------------------------------------------

const HOLES = /(<(?:num|hex|uuid|ip|time|id|\*|\.\.\.)>)/;

/** What messages look like; below findings only the first ones, those of the stretch of time in front. */
async function patterns(box, signal, most = 0) {
  if (!most && !box.querySelector(".patterns"))
    fill(
      box,
      el(
        "section",
        { class: "card" },
        el("p", { class: "empty", role: "status" }, "reading what the messages look like"),
      ),
    );
  let found;
  try {
    const part = await askOne(
      "patterns",
      { where: state.where, since: state.since, until: state.until, bars: bars(), limit: 200 },
      signal,
    );
    if (signal.aborted) return;
    showTabs({ patterns: part.distinct });
    found = drawnPatterns(part, most);
  } catch (error) {
    if (signal.aborted) return;
    found = el("section", { class: "card" }, el("p", { class: "empty" }, error.message));
  }
  if (!most) box.replaceChildren(found);
  else box.append(found);
}

function drawnPatterns(part, most) {
  const inside = within(part),
    here = (row) => row.counts.reduce((sum, number, at) => sum + (inside(at) ? number : 0), 0);
  const rows = part.rows.map((row) => ({ ...row, here: focus() ? here(row) : 0 }));
  const all = rows.reduce((sum, row) => sum + row.here, 0),
    rest = rows.reduce((sum, row) => sum + row.count - row.here, 0);
  const apart = (row) => row.here / (all || 1) - (row.count - row.here) / (rest || 1);
  if (focus()) rows.sort((one, other) => apart(other) - apart(one));
  const shownRows = most ? rows.slice(0, most) : rows;
  return el(
    "section",
    { class: "card patterns", "aria-label": "Patterns" },
    el(
      "div",
      { class: "head" },
      el("h2", {}, "What they say", el("small", {}, part.field ? ` ${shown(part.field)}` : "")),
      most > 0 &&
        el(
          "button",
          { class: "link", onclick: () => change({ tab: "patterns" }, true) },
          `all ${count(part.distinct)} patterns of ${shown(part.field)}`,
        ),
    ),
    ...shownRows.map((row) => pattern(row, inside)),
    !part.rows.length && el("p", { class: "empty" }, "No record has a text that says what happened."),
    !most &&
      part.distinct > rows.length &&
      el("p", { class: "foot" }, `${count(part.distinct - rows.length)} more are rarer.`),
  );
}

/** Whether a step of time is in the stretch that is asked about. */
function within(part) {
  const stretchNow = focus();
  return (at) => Boolean(stretchNow) && part.starts[at] >= stretchNow[0] && part.starts[at] < stretchNow[1];
}

function pattern(row, inside) {
  const text = row.text
    .split(HOLES)
    .filter(Boolean)
    .map((piece) =>
      HOLES.test(piece)
        ? el("span", { class: "hole" }, piece === "<*>" || piece === "<...>" ? "…" : piece.slice(1, -1))
        : shown(piece),
    );
  const only = focus() && row.here === row.count;
  return el(
    "button",
    { class: "row", title: "ask for these", onclick: () => narrow(row.where) },
    el("span", { class: "n" }, count(row.count)),
    spark(row.counts, inside),
    el("bdi", { class: "v" }, ...text, only && el("span", { class: "new" }, "only in this time")),
  );
}

function spark(counts, inside) {
  const width = 110,
    each = Math.max(1, Math.ceil(counts.length / 36)),
    bins = [];
  for (let at = 0; at < counts.length; at += each)
    bins.push([
      counts.slice(at, at + each).reduce((sum, number) => sum + number, 0),
      inside(Math.min(at + (each >> 1), counts.length - 1)),
    ]);
  const most = Math.max(1, ...bins.map(([number]) => number)),
    wide = width / Math.max(bins.length, 1);
  return svg(
    "svg",
    { width, height: 20, viewBox: `0 0 ${width} 20`, "aria-hidden": "true" },
    ...(bins.filter(([number]) => number).length
      ? bins.map(([number, isHere], at) =>
          svg("rect", {
            class: isHere ? "here" : null,
            x: at * wide,
            width: Math.max(0.8, wide - 0.6),
            y: 20 - (19 * number) / most,
            height: number ? Math.max(0.8, (19 * number) / most) : 0,
          }),
        )
      : []),
  );
}

// --- numbers ---------------------------------------------------------------------------------------------------------

function numbers() {
  const names = ["p50", "p95", "p99"];
  const rows = facets.map((part) => {
    const picked = Object.fromEntries(part.quantiles);
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, shown(part.field)),
      el("td", {}, count(part.total - part.missing)),
      el("td", {}, short(part.low)),
      ...names.map((name) => el("td", {}, name in picked ? short(picked[name]) : "")),
      el("td", {}, short(part.high)),
    );
  });
  $("findings").replaceChildren(
    el(
      "section",
      { class: "card table" },
      el(
        "table",
        {},
        el(
          "thead",
          {},
          el("tr", {}, ...["field", "records", "min", ...names, "max"].map((name) => el("th", { scope: "col" }, name))),
        ),
        el("tbody", {}, ...rows),
      ),
    ),
  );
}
