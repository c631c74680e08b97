// The records: a line each, which opens into all its fields; what came before one, and what belongs to it.
import { askOne } from "./api.js";
import { $, cell, count, el, fill, literal, say, shown } from "./dom.js";
import { refine } from "./question.js";
import { change, state } from "./state.js";
import { clock, day, isSameDay, span, zone } from "./times.js";

const MANY = 400; // fields of a record that are drawn at first
const LONG = 2000; // characters of a value that are
const ROWS = 50;
// Fields whose value records share that belong together.
const TOGETHER = /(^|[._"-])(trace|request|correlation|session|transaction|span|job|order|user|req|tx)[._-]?id"?\]?$/i;

let page = null,
  rows = [],
  names = [];
const opened = new Map(); // what is shown below a line, by the place of its record

export function showRecords(part, range) {
  page = part;
  if (!part.skip) rows = part.rows;
  else rows = rows.slice(0, part.skip).concat(part.rows);
  names = part.columns;
  draw(range);
}

let lastRange = null;

function draw(range = lastRange) {
  lastRange = range;
  const box = $("records"),
    kept = document.activeElement?.dataset?.place;
  const when = range ? `Records of ${span(...range)} ${zone()}` : "Records";
  const shownDay =
    rows.length > 0 && rows.every(({ time }) => time != null) && isSameDay(rows[0].time, rows.at(-1).time);
  const left = page.total - rows.length;
  fill(
    box,
    el(
      "div",
      { class: "head" },
      el(
        "h2",
        {},
        when,
        rows.some(({ time }) => time != null) ? ", newest first" : "",
        el("small", {}, shownDay && rows.length ? ` ${day(rows[0].time, true)}` : ""),
      ),
      el(
        "button",
        { class: "link", onclick: () => document.dispatchEvent(new CustomEvent("choose-columns")) },
        "columns",
      ),
    ),
    columnHeads(),
    ...rows.flatMap((row) => drawn(row, shownDay)),
    !rows.length && el("p", { class: "empty" }, "No record matches."),
    left > 0 &&
      rows[0]?.place != null &&
      el(
        "button",
        {
          class: "more wide",
          onclick: () => document.dispatchEvent(new CustomEvent("more-records", { detail: rows.length })),
        },
        `${count(Math.min(left, ROWS))} more of ${count(left)}`,
      ),
  );
  if (kept) box.querySelector(`[data-place='${CSS.escape(kept)}']`)?.focus();
}

const grid = () => (names.length > 4 ? "cells many" : `cells n${names.length}`);
const isTimed = () => rows.some(({ time }) => time != null);

function columnHeads() {
  if (!state.columns.length && names.length < 5) return "";
  return el(
    "div",
    { class: `row heads ${grid()}${isTimed() ? "" : " untimed"}` },
    isTimed() && el("span", { class: "t" }, "time"),
    ...names.map((name) => el("span", {}, shown(name) || "record")),
  );
}

function drawn(row, shownDay) {
  const key = JSON.stringify(row.place),
    below = opened.get(key);
  const line = lineOf(row, shownDay, {
    class: below ? "open" : "",
    "aria-expanded": row.place == null ? null : String(Boolean(below)),
    "data-place": key,
    disabled: row.place == null,
    onclick: () => toggle(row),
  });
  return below ? [line, below] : [line];
}

function lineOf(row, shownDay, attributes) {
  const time = row.time == null ? "" : shownDay ? clock(row.time) : `${day(row.time)} ${clock(row.time, 1)}`;
  const cells = row.cells.map((value, at) =>
    cell(value, {
      class:
        at === names.length - 1 ? "last" : row.level && at === 0 && !state.columns.length ? `level ${row.level}` : "",
    }),
  );
  return el(
    "button",
    { ...attributes, class: `row ${grid()} ${isTimed() ? "" : "untimed"} ${attributes.class}` },
    isTimed() && el("span", { class: "t" }, time),
    ...cells,
  );
}

async function toggle(row) {
  const key = JSON.stringify(row.place);
  if (opened.delete(key)) {
    draw();
    return;
  }
  const box = el("div", { class: "record" });
  opened.set(key, box);
  await show(row, box);
  draw();
}

/** All of a record. */
async function show(row, box) {
  try {
    const found = await askOne("record", { place: row.place });
    box.replaceChildren(tree(found), acts(row, found, box));
  } catch (error) {
    box.replaceChildren(el("p", { class: "empty" }, error.message));
  }
}

/** Fields of a record; each value can be asked for, or left out. */
function tree(found) {
  const list = el("div", { class: "tree" });
  const more = (from, to) => list.append(...found.fields.slice(from, to).map((field) => fieldOf(field)));
  more(0, MANY);
  if (found.fields.length <= MANY) return list;
  const button = el(
    "button",
    {
      class: "more wide",
      onclick: () => {
        button.remove();
        more(MANY, found.fields.length);
      },
    },
    `${count(found.fields.length - MANY)} more fields`,
  );
  return el("div", {}, list, button);
}

function fieldOf([path, ...value]) {
  const said = literal(value),
    isLong = value[1].length > LONG;
  const shownValue = isLong ? [value[0], value[1].slice(0, LONG), value[2] || value[1].length] : value;
  const held = cell(shownValue);
  const whole =
    isLong &&
    el(
      "button",
      {
        class: "link",
        onclick: (event) => {
          held.replaceWith(cell(value));
          event.target.remove();
        },
      },
      "all of it",
    );
  return el(
    "div",
    { class: "field" },
    el("button", { class: "key", title: "a column of its own", onclick: () => column(path) }, shown(path) || "record"),
    held,
    whole,
    said !== null &&
      path &&
      el(
        "span",
        { class: "act" },
        el(
          "button",
          {
            title: "only these",
            "aria-label": `only ${path} ${value[1]}`.slice(0, 200),
            onclick: () => refine(path, said, "only"),
          },
          "+",
        ),
        el(
          "button",
          {
            title: "not these",
            "aria-label": `without ${path} ${value[1]}`.slice(0, 200),
            onclick: () => refine(path, said, "not"),
          },
          "−",
        ),
      ),
  );
}

function column(path) {
  const chosen = state.columns.length ? state.columns : names;
  change({ columns: chosen.includes(path) ? chosen.filter((name) => name !== path) : [path, ...chosen] }, true);
  say(chosen.includes(path) ? `${path} is no column any more` : `${path} is a column now`);
}

function acts(row, found, box) {
  const ids = found.fields
    .filter(([path, ...value]) => TOGETHER.test(path) && literal(value) && value[1].length > 3)
    .slice(0, 3);
  const all = ([path, ...value]) =>
    el(
      "button",
      {
        class: "ghost",
        onclick: () => change({ where: `${path} == ${literal(value)}`, since: "", until: "", from: "", to: "" }),
      },
      `All of this ${shown(path)}`,
    );
  const before = (same) => () => around(row, box, same);
  return el(
    "div",
    { class: "acts" },
    el("button", { class: "ghost", onclick: before("") }, "What came before it"),
    ...ids
      .slice(0, 1)
      .map(([path]) =>
        el("button", { class: "ghost", onclick: before(path) }, `Before it, of the same ${shown(path)}`),
      ),
    ...ids.map(all),
    found.json && el("button", { class: "ghost", onclick: () => copy(found.json, "the record") }, "Copy JSON"),
    el(
      "button",
      {
        class: "ghost",
        title: "the file, and the byte where the record begins",
        onclick: () => copy(`${found.file}@${found.offset}`, "the place"),
      },
      "Copy place",
    ),
  );
}

/** The records around one, newest first, the one among them marked. */
async function around(row, box, same, before = 15, after = 3) {
  box.querySelector(".around")?.remove();
  try {
    const part = await askOne("context", {
      place: row.place,
      before,
      after,
      same: same || null,
      columns: state.columns,
    });
    const lines = part.rows.map((each) =>
      lineOf(each, false, {
        class: each.match ? "match" : "",
        onclick: (event) => openBelow(event.currentTarget, each),
      }),
    );
    const further =
      before < 200 &&
      el("button", { class: "link", onclick: () => around(row, box, same, Math.min(200, before * 4), after) }, "more");
    box.append(
      el(
        "div",
        { class: "around" },
        el(
          "div",
          { class: "head" },
          el(
            "h2",
            {},
            same ? `What came before it, of the same ${shown(same)}` : "What came before it, of all records",
          ),
          further,
        ),
        ...lines,
      ),
    );
  } catch (error) {
    box.append(el("p", { class: "empty around" }, error.message));
  }
}

/** Open a record below its line in another list, or close it. */
function openBelow(line, row) {
  if (row.match) return;
  const below = line.nextElementSibling;
  const isOpen = below?.classList.contains("record");
  line.setAttribute("aria-expanded", String(!isOpen));
  if (isOpen) {
    below.remove();
    return;
  }
  const box = el("div", { class: "record" });
  line.after(box);
  show(row, box);
}

export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} is in the clipboard`);
  } catch {
    say("the browser does not let this page write into the clipboard");
  }
}

/** Forget what is open: it is of another question. */
export function closeRecords() {
  opened.clear();
}
