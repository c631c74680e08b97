// One state, which is the address; each change of it is asked of the server, and every part is drawn as it comes.
import { Failed, ask, takeToken } from "./api.js";
import { $, bytes, count, milliseconds, percent } from "./dom.js";
import { beginFacets, closeDrawer, showFacets, takeFacet } from "./facets.js";
import { showFindings, showTabs, takeNumbers } from "./findings.js";
import {
  byMenu,
  columnMenu,
  compareMenu,
  copyMenu,
  exportMenu,
  helpMenu,
  periodMenu,
  startMenus,
  toggleZone,
} from "./menus.js";
import { showNotes, showQuestion, showWrong, startQuestion } from "./question.js";
import { closeRecords, showRecords } from "./records.js";
import { change, onChange, state } from "./state.js";
import { bars, focus, markFocus, showTimeline, startTimeline } from "./timeline.js";
import { day, span, zone } from "./times.js";

const QUESTION = ["where", "since", "until"];
const SLOW = 1000; // milliseconds between two looks at a log that grows

let asking = null,
  following = null,
  said = null,
  log = null,
  shownTime = null,
  columns = [],
  total = 0,
  facets = [],
  counted = 0;

async function look(wanted = ["count", "timeline", "records", "facets"], skip = 0) {
  asking?.abort();
  const mine = (asking = new AbortController());
  document.body.classList.add("asking");
  try {
    const [since, until] = wanted.length === 1 && wanted[0] === "records" ? recordTimes() : [state.since, state.until];
    await ask(
      "look",
      {
        where: state.where,
        since,
        until,
        by: state.by,
        zone: zone(),
        bars: bars(),
        columns: state.columns,
        parts: wanted,
        skip,
        as_of: skip ? said?.as_of || null : null,
      },
      (part) => {
        if (!mine.signal.aborted) take(part);
      },
      mine.signal,
    );
    if (!wanted.includes("facets")) return;
    showFindings();
    if (focus()) look(["records"]);
  } catch (error) {
    if (!mine.signal.aborted) fail(error);
  } finally {
    if (asking === mine) {
      document.body.classList.remove("asking");
      $("progress").hidden = true;
    }
  }
}

/** The time of the records in the list: that of the question, or the stretch of it that is asked about. */
const recordTimes = () => (focus() ? [state.from, state.to] : [state.since, state.until]);

const TAKE = {
  question(part) {
    showWrong(null);
    const isWhole = part.parts.includes("facets");
    if (!isWhole) return;
    said = part;
    beginFacets();
    facets = [];
    showHead();
  },
  count(part) {
    total = part.count;
    showCount(part);
    showTabs({ records: part.count });
  },
  timeline(part) {
    shownTime = part.low == null ? null : [part.low, part.high];
    if (part.log) log = part.log;
    showHead();
    showTimeline(part);
  },
  records(part) {
    columns = part.columns;
    showRecords(part, focus() || (state.since || state.until ? shownTime : null));
  },
  facet(part) {
    takeFacet(part);
    facets.push(part);
  },
  facets(part) {
    showFacets(part);
    takeNumbers(facets.filter((each) => each.kind === "numbers"));
    showTabs({});
    if (part.sampled && !part.more) {
      beginFacets();
      facets = [];
    }
  },
  progress(part) {
    if (!part.total) return;
    $("progress").hidden = false;
    $("progress").value = part.done / part.total;
    const unit =
      part.unit === "bytes"
        ? `${bytes(part.done)} of ${bytes(part.total)}`
        : `${count(part.done)} of ${count(part.total)} files`;
    $("took").textContent = `reading the log: ${unit}`;
  },
  done(part) {
    if (part.parts.includes("facets"))
      $("took").textContent = `count ${milliseconds(counted)} · all of it ${milliseconds(part.ms)}`;
  },
};

function take(part) {
  TAKE[part.part]?.(part);
}

function showHead() {
  const { files, bytes: size } = said.about;
  document.title = `${said.title} – jitdb`;
  $("title").textContent = said.title;
  const facts = [
    files > 1 ? `${count(files)} files` : "",
    size ? bytes(size) : "",
    log
      ? `${day(log[0], true)}${day(log[0]) === day(log[1] - 1) ? "" : ` – ${day(log[1] - 1, true)}`} (${zone()})`
      : "",
  ];
  $("about").textContent = facts.filter(Boolean).join(" · ");
  const isPart = state.since || state.until;
  $("period").textContent = shownTime ? `${span(...shownTime)} ${zone()}` : "all times";
  $("period").classList.toggle("part", Boolean(isPart));
}

function showCount(part) {
  const box = $("count"),
    isSample = part.sampled > 0;
  box.replaceChildren(
    Object.assign(document.createElement("b"), { textContent: count(part.count) }),
    ` of ${count(part.total)}${isSample ? " sampled" : ""} · ${percent(part.total ? part.count / part.total : 0)}`,
  );
  counted = part.ms;
  $("took").textContent = isSample ? "reading the log" : `count ${milliseconds(counted)}`;
  $("exact").textContent = isSample ? "a sample, until the log was read once" : "exact, no sampling";
  document.body.classList.remove("stale");
  document.body.classList.toggle("sampled", isSample);
  showNotes(part.notes);
}

/** What is wrong stands under the question; below it still stands the answer of the one before, and says so. */
function fail(error) {
  if (error.name === "AbortError") return;
  document.body.classList.add("stale");
  showNotes([]);
  $("exact").textContent = "the answer of the question before";
  if (error instanceof Failed) showWrong(error.part);
  else showWrong({ reason: `the answer broke off: ${error.message}` });
}

// --- to follow -------------------------------------------------------------------------------------------------------

async function follow() {
  if (following) {
    following.abort();
    return;
  }
  const mine = (following = new AbortController());
  shownFollowing(true);
  let due = 0;
  try {
    await ask(
      "tail",
      { where: state.where, since: state.since, until: state.until },
      (part) => {
        if (part.part !== "news" || due) return;
        due = setTimeout(() => {
          due = 0;
          look();
        }, SLOW);
      },
      mine.signal,
    );
  } catch (error) {
    if (!mine.signal.aborted) fail(error);
  }
  clearTimeout(due);
  if (following === mine) {
    following = null;
    shownFollowing(false);
  }
}

function shownFollowing(is) {
  $("follow").setAttribute("aria-pressed", String(is));
  $("follow").textContent = is ? "following" : "follow";
}

async function followAnew() {
  if (!following) return;
  following.abort();
  following = null;
  follow();
}

// --- keys ------------------------------------------------------------------------------------------------------------

const KEYS = {
  "/": () => $("where").focus(),
  t: () => document.querySelector("#time svg")?.focus(),
  b: byMenu,
  p: () => periodMenu(...(log || [null, null])),
  c: () => copyMenu(said),
  e: () => $("export").click(),
  f: follow,
  z: toggleZone,
  "?": helpMenu,
  j: () => step(1),
  k: () => step(-1),
  1: () => change({ tab: "" }, true),
  2: () => change({ tab: "why" }, true),
  3: () => change({ tab: "patterns" }, true),
  4: () => change({ tab: "numbers" }, true),
  5: () => document.querySelector("#tabs .compare")?.click(),
};

function step(by) {
  const lines = [...document.querySelectorAll("#records > .row[data-place]")];
  const at = lines.indexOf(document.activeElement);
  lines[at < 0 ? 0 : Math.max(0, Math.min(lines.length - 1, at + by))]?.focus();
}

function keyed(event) {
  if (event.key === "Escape") closeDrawer();
  const isTyped =
    event.target.closest("input, textarea") || $("dialog").open || event.ctrlKey || event.metaKey || event.altKey;
  const act = isTyped ? null : KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

function start() {
  takeToken();
  // What stood behind the token is the state: it is read when the address has the token no more.
  startQuestion();
  startTimeline();
  startMenus();
  $("follow").addEventListener("click", follow);
  $("copy").addEventListener("click", () => copyMenu(said));
  $("export").addEventListener("click", () => exportMenu(total, said.command, said.title));
  $("help").addEventListener("click", helpMenu);
  $("period").addEventListener("click", () => periodMenu(...(log || [null, null])));
  addEventListener("keydown", keyed);
  addEventListener("pointerdown", (event) => {
    if (!event.target.closest("#facets, #fields")) closeDrawer();
  });
  document.addEventListener("choose-by", byMenu);
  document.addEventListener("choose-columns", () => columnMenu(columns));
  document.addEventListener("more-records", (event) => look(["records"], event.detail));
  document.addEventListener("look", () => look());
  document.addEventListener("compare", compareMenu);
  onChange((changed) => {
    showQuestion();
    if (changed.some((name) => QUESTION.includes(name))) {
      closeRecords();
      look();
      followAnew();
    } else if (changed.some((name) => ["by", "zone"].includes(name)))
      look(["timeline", ...(changed.includes("zone") ? ["records"] : [])]);
    else if (changed.some((name) => ["columns", "from", "to"].includes(name))) look(["records"]);
    if (changed.some((name) => ["from", "to"].includes(name))) markFocus();
    if (changed.some((name) => ["tab", "from", "to", "against", "of"].includes(name))) showFindings();
  });
  if (!state.where && matchMedia("(hover: hover)").matches) $("where").focus({ preventScroll: true });
  look();
}

start();
