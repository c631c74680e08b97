// How many records when: columns, in the colors of a field's values; a stretch of them to look into, or to ask why.
import { $, count, el, shown, svg } from "./dom.js";
import { change, state } from "./state.js";
import { clock, day, iso, isSameDay, shift, span, tick, zone } from "./times.js";

const LEFT = 38,
  TOP = 12,
  BOTTOM = 20;
const STEPS = [
  1e-3, 1e-2, 0.1, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5,
  36e5, 72e5, 108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5, 2592e6, 7776e6, 31536e6, 157680e6, 31536e7,
];
const LEVELS = { error: 0, warn: 1, info: 4, debug: 6 };

const compact = new Intl.NumberFormat("en", { notation: "compact" });

let line = null,
  drag = null,
  cursor = -1,
  drawnNow = null;

export const bars = () => Math.max(24, Math.min(120, Math.floor(($("time").clientWidth - LEFT) / 8)));

export function showTimeline(part) {
  line = part;
  cursor = -1;
  draw();
}

/** Show the stretch that is asked about. */
export function markFocus() {
  if (drawnNow) mark(drawnNow, focus());
}

export function startTimeline() {
  addEventListener("resize", () => line && draw());
}

/** The stretch that is asked about, in milliseconds; null where there is none. */
export function focus() {
  return state.from && state.to ? [Date.parse(state.from), Date.parse(state.to)] : null;
}

function series() {
  const used = new Set();
  const colors = line.names.map(([, , level]) => {
    let at = LEVELS[level] ?? 0;
    while (used.has(at)) at = (at + 1) % 7;
    used.add(at);
    return `c${at}`;
  });
  const found = line.names.map(([, text], at) => ({
    name: shown(text) || '""',
    color: colors[at],
    counts: line.counts[at],
  }));
  const isAll = !line.names.length;
  if (line.others.some(Boolean))
    found.push({ name: isAll ? "records" : "others", color: isAll ? "c4" : "c7", counts: line.others });
  return found;
}

function draw() {
  const box = $("time"),
    all = series();
  box.hidden = !line.starts.length && !line.low;
  if (box.hidden) return;
  const title = line.by
    ? ["by ", el("button", { class: "link", onclick: chooseBy, title: "another field (b)" }, line.by)]
    : [el("button", { class: "link", onclick: chooseBy }, "by a field")];
  const untimed = line.untimed ? `${count(line.untimed)} without a time · ` : "";
  box.replaceChildren(
    el(
      "div",
      { class: "legend" },
      el("b", {}, "Records "),
      el("span", {}, ...title),
      ...all
        .filter(() => line.names.length)
        .map((each) => el("span", { class: "key" }, el("i", { class: each.color }), each.name)),
      el("span", { class: "space" }),
      el("span", { class: "dim wide" }, `${untimed}${line.every} a bar · drag: zoom, shift-drag: why`),
    ),
    chart(all, box.clientWidth - 28),
  );
}

function chooseBy() {
  document.dispatchEvent(new CustomEvent("choose-by"));
}

function chart(all, width) {
  const height = width < 500 ? 130 : 150,
    low = line.low,
    high = line.high,
    room = width - LEFT;
  const x = (ms) => LEFT + (room * (ms - low)) / (high - low || 1);
  const ends = [...line.starts.slice(1), line.end];
  const totals = line.starts.map((_, at) => all.reduce((sum, each) => sum + each.counts[at], 0));
  const step = niceStep(Math.max(1, ...totals)),
    top = Math.ceil(Math.max(1, ...totals) / step) * step;
  const y = (number) => TOP + (height - TOP - BOTTOM) * (1 - number / top);
  const picture = svg("svg", {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    tabindex: 0,
    role: "group",
    "aria-label":
      `${count(totals.reduce((sum, each) => sum + each, 0))} records in ${totals.length} steps of ${line.every}, ${zone()}. ` +
      "Arrow keys move over the bars, with Shift they choose some; Enter zooms, W asks why.",
  });
  const chosen = svg("g", { class: "chosen" });
  for (let number = 0; number <= top; number += step) {
    picture.append(
      svg("line", { class: "rule", x1: LEFT, x2: width, y1: y(number), y2: y(number) }),
      svg(
        "text",
        { x: LEFT - 6, y: y(number) + 4, "text-anchor": "end" },
        number >= 1e4 ? compact.format(number) : count(number),
      ),
    );
  }
  picture.append(chosen);
  line.starts.forEach((start, at) => {
    const left = Math.max(x(start), LEFT),
      right = Math.min(x(ends[at]), width);
    let below = 0;
    for (const each of all) {
      if (!each.counts[at]) continue;
      const tall = y(below) - y(below + each.counts[at]);
      below += each.counts[at];
      picture.append(
        svg("rect", {
          class: each.color,
          x: left + 0.5,
          width: Math.max(0.8, right - left - 1),
          y: y(below),
          height: Math.max(tall, 0.7),
        }),
      );
    }
  });
  axis(picture, x, width, height);
  const label = svg("text", { class: "label", y: TOP - 2 });
  picture.append(label);
  const draft = { picture, chosen, label, x, width, height, ends, totals, all };
  drawnNow = draft;
  mark(draft, focus());
  interact(draft);
  return picture;
}

function niceStep(most) {
  const size = 10 ** Math.floor(Math.log10(most));
  return Math.max(1, most / size > 4 ? 2 * size : most / size > 2 ? size : size / 2);
}

function axis(picture, x, width, height) {
  const { low, high } = line,
    wanted = width < 500 ? 4 : 8;
  const step = STEPS.find((each) => (high - low) / each <= wanted) || STEPS.at(-1);
  const away = Math.abs(low) < 8e15 ? shift(low) : 0;
  let last = -Infinity;
  for (let at = Math.ceil((low + away) / step) * step - away; at <= high; at += step) {
    const place = x(at);
    if (place > width - 40 || place - last < 44) continue;
    last = place;
    picture.append(
      svg("text", { x: place, y: height - 5, "text-anchor": place < LEFT + 20 ? "start" : "middle" }, tick(at, step)),
    );
  }
  picture.append(svg("text", { class: "zone", x: width, y: height - 5, "text-anchor": "end" }, zone()));
}

function mark({ chosen, x, height }, stretch) {
  chosen.replaceChildren();
  if (!stretch) return;
  const [left, right] = stretch.map((ms) => Math.max(LEFT, x(ms)));
  chosen.append(
    svg("rect", { x: left, y: 0, width: Math.max(1, right - left), height: height - BOTTOM }),
    ...[left, right].map((at) => svg("line", { x1: at, x2: at, y1: 0, y2: height - BOTTOM })),
  );
}

// --- to look into a stretch ------------------------------------------------------------------------------------------

function interact(draft) {
  const { picture, x, width } = draft;
  const at = (event) => {
    const box = picture.getBoundingClientRect();
    const place = Math.max(0, Math.min(1, ((event.clientX - box.left) * (width / box.width) - LEFT) / (width - LEFT)));
    return line.low + place * (line.high - line.low);
  };
  picture.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    drag = { start: at(event), x: event.clientX, why: event.shiftKey };
    picture.setPointerCapture(event.pointerId);
  });
  picture.addEventListener("pointermove", (event) => {
    if (drag) mark(draft, snapped(draft, drag.start, at(event)));
    else
      tell(
        draft,
        line.starts.findIndex((start, number) => start <= at(event) && at(event) < draft.ends[number]),
      );
  });
  picture.addEventListener("pointerup", (event) => {
    const begun = drag;
    drag = null;
    if (!begun) return;
    if (Math.abs(event.clientX - begun.x) < 4) return mark(draft, focus());
    const stretch = snapped(draft, begun.start, at(event));
    if (event.pointerType === "touch") offer(draft, stretch);
    else (begun.why || event.shiftKey ? askWhy : zoomTo)(stretch);
    return undefined;
  });
  picture.addEventListener("pointercancel", () => {
    drag = null;
    mark(draft, focus());
  });
  picture.addEventListener("pointerleave", () => {
    if (!drag) tell(draft, -1);
  });
  picture.addEventListener("keydown", (event) => keyed(event, draft));
}

/** Whole bars. */
function snapped({ ends }, one, other) {
  const [low, high] = one < other ? [one, other] : [other, one];
  const first = line.starts.findLast((start) => start <= low) ?? line.low;
  const last = ends.find((end) => end >= high) ?? line.high;
  return [Math.max(first, line.low), Math.min(Math.max(last, first), line.high)];
}

function tell({ label, x, width, ends, totals, all }, at) {
  if (at < 0) return label.replaceChildren();
  const [start, end] = [line.starts[at], ends[at]];
  const when = isSameDay(line.low, line.high - 1)
    ? `${clock(start, end - start < 6e4 ? 1 : 0)}`
    : `${day(start)}, ${clock(start, 0)}`;
  const each = line.names.length
    ? all
        .filter(({ counts }) => counts[at])
        .map(({ name, counts }) => `${name} ${count(counts[at])}`)
        .join(", ")
    : "";
  label.textContent = `${when} ${zone()}: ${count(totals[at])}${each ? ` (${each})` : ""}`;
  const place = x(start);
  label.setAttribute("x", place < width / 2 ? place : Math.min(place, width));
  label.setAttribute("text-anchor", place < width / 2 ? "start" : "end");
  return undefined;
}

function offer(draft, stretch) {
  document.querySelector(".offer")?.remove();
  mark(draft, stretch);
  const choose = (act) => () => {
    bar.remove();
    act(stretch);
  };
  const bar = el(
    "div",
    { class: "offer" },
    el("span", {}, `${span(...stretch)} ${zone()}`),
    el("button", { class: "ghost", onclick: choose(zoomTo) }, "Zoom in"),
    el("button", { class: "ghost", onclick: choose(askWhy) }, "Why?"),
  );
  $("time").append(bar);
}

function keyed(event, draft) {
  const last = line.starts.length - 1;
  const moves = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
  const stretch = draft.stretch || focus();
  if (event.key in moves) {
    const before = Math.max(cursor, 0);
    cursor = Math.max(0, Math.min(last, cursor < 0 ? 0 : cursor + moves[event.key]));
    draft.anchor = event.shiftKey ? (draft.anchor ?? before) : undefined;
    const [first, end] = [Math.min(draft.anchor ?? cursor, cursor), Math.max(draft.anchor ?? cursor, cursor)];
    draft.stretch = [line.starts[first], draft.ends[end]];
    mark(draft, draft.stretch);
    tell(draft, cursor);
    $("said").textContent = draft.label.textContent;
  } else if (event.key === "Enter" && stretch) zoomTo(stretch);
  else if (event.key.toLowerCase() === "w" && stretch) askWhy(stretch);
  else if (event.key === "Escape") {
    draft.stretch = null;
    change({ from: "", to: "" });
    mark(draft, null);
  } else return;
  event.preventDefault();
  event.stopPropagation();
}

function zoomTo([low, high]) {
  change({ since: iso(low), until: iso(high), from: "", to: "", tab: state.tab === "why" ? "" : state.tab });
}

function askWhy([low, high]) {
  change({ from: iso(low), to: iso(high), against: "", tab: "why" });
}
