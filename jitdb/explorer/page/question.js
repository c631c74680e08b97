// The question: typed with colors and completion, what is wrong with it below.
import { ask, askOne } from "./api.js";
import { $, el, fill, shown } from "./dom.js";
import { change, state } from "./state.js";

const PIECES =
  /("(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)|(\b\d[\w.]*)|(==|!=|<=|>=|[<>]|\b(?:and|or|not|in|is|contains|icontains|starts_with|ends_with|like|matches|absent|present|between)\b)|([\p{L}_@][\p{L}\p{N}_.@$[\]-]*)/gu;
const KINDS = ["p-string", "p-number", "p-operator", "p-field"];

let offers = [],
  chosen = -1,
  from = 0,
  asking = null;

export function startQuestion() {
  const where = $("where");
  where.addEventListener("input", () => {
    paint();
    complete();
  });
  where.addEventListener("keydown", keyed);
  where.addEventListener("scroll", () => {
    $("painted").scrollLeft = where.scrollLeft;
  });
  where.addEventListener("blur", () => setTimeout(close, 150));
  $("question").addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  addEventListener("resize", fit);
  showQuestion();
}

/** Show the question of the state. */
export function showQuestion() {
  if ($("where").value.trim() !== state.where) $("where").value = state.where;
  paint();
}

/** Show what is wrong with it; null: nothing. */
export function showWrong(part) {
  const box = $("wrong");
  box.hidden = !part;
  $("where").setAttribute("aria-invalid", String(Boolean(part)));
  if (!part) return;
  const notes = (part.notes || []).map((note) => {
    const meant = /^did you mean: (.*)$/s.exec(note);
    return meant
      ? el("button", { type: "button", onclick: () => change({ where: meant[1] }) }, `did you mean  ${meant[1]}`)
      : el("p", {}, note);
  });
  const lines = part.reason.split("\n");
  fill(
    box,
    el("p", {}, [part.path, lines[0]].filter(Boolean).join(": ")),
    lines.length > 1 && el("pre", {}, lines.slice(1).map(shown).join("\n")),
    ...notes,
    part.remedy && el("p", { class: "dim" }, part.remedy),
  );
}

/** Show what is to be known of the answer; questions in it, between backquotes, can be asked. */
export function showNotes(notes) {
  const box = $("notes");
  box.hidden = !notes.length;
  fill(
    box,
    ...notes.map((note) =>
      el(
        "p",
        {},
        ...shown(note)
          .split("`")
          .map((text, at) => (at % 2 ? el("code", {}, text) : text)),
      ),
    ),
  );
}

function submit() {
  asking?.abort();
  close();
  change({ where: $("where").value.trim() });
  showQuestion();
}

function paint() {
  const text = $("where").value,
    painted = $("painted");
  painted.replaceChildren();
  let at = 0;
  for (const found of text.matchAll(PIECES)) {
    painted.append(text.slice(at, found.index));
    const kind = KINDS[found.slice(1).findIndex((group) => group !== undefined)];
    painted.append(el("span", { class: kind }, found[0]));
    at = found.index + found[0].length;
  }
  painted.append(text.slice(at), "\u200b");
  fit();
}

/** As many lines as the text takes. */
function fit() {
  const where = $("where");
  where.style.height = "auto";
  where.style.height = `${where.scrollHeight}px`;
}

// --- completion ------------------------------------------------------------------------------------------------------

async function complete() {
  asking?.abort();
  asking = new AbortController();
  const where = $("where"),
    at = where.selectionStart;
  if (!where.value.slice(0, at).trim()) return close();
  try {
    const offer = await askOne("complete", { text: where.value, at }, asking.signal);
    const begun = where.value.slice(offer.from, at);
    show(
      offer.texts.filter((text) => text !== begun),
      offer.from,
    );
  } catch {
    close(); // asked anew, or a text that is too long: completion says nothing of errors
  }
  return undefined;
}

function show(texts, start) {
  offers = texts.slice(0, 12);
  from = start;
  chosen = -1;
  const list = $("offers"),
    where = $("where");
  list.hidden = !offers.length;
  where.setAttribute("aria-expanded", String(Boolean(offers.length)));
  where.removeAttribute("aria-activedescendant");
  list.replaceChildren(
    ...offers.map((text, at) =>
      el(
        "li",
        {
          id: `offer-${at}`,
          role: "option",
          "aria-selected": "false",
          onpointerdown: (event) => {
            event.preventDefault();
            take(at);
          },
        },
        shown(text),
      ),
    ),
  );
}

const close = () => show([], 0);

function choose(at) {
  const items = [...$("offers").children];
  items[chosen]?.setAttribute("aria-selected", "false");
  chosen = (at + items.length) % items.length;
  items[chosen].setAttribute("aria-selected", "true");
  items[chosen].scrollIntoView({ block: "nearest" });
  $("where").setAttribute("aria-activedescendant", `offer-${chosen}`);
}

function take(at) {
  const where = $("where"),
    end = where.selectionStart,
    text = offers[at];
  where.setRangeText(text, from, end, "end");
  close();
  paint();
  where.focus();
}

function keyed(event) {
  const isOpen = offers.length > 0;
  if (event.key === "Enter" && !event.shiftKey) {
    event.preventDefault();
    if (isOpen && chosen >= 0) take(chosen);
    else submit();
  } else if (isOpen && event.key === "ArrowDown") {
    event.preventDefault();
    choose(chosen + 1);
  } else if (isOpen && event.key === "ArrowUp") {
    event.preventDefault();
    choose(chosen < 0 ? -1 : chosen - 1);
  } else if (isOpen && event.key === "Tab" && !event.shiftKey) {
    event.preventDefault();
    take(Math.max(chosen, 0));
  } else if (event.key === "Escape") {
    if (isOpen) close();
    else showQuestion();
  } else if (event.key === " " && event.ctrlKey) {
    event.preventDefault();
    complete();
  }
}

// --- the same with a condition more, or less -------------------------------------------------------------------------

/** Ask with a value of a field only, too, not, or no longer. */
export async function refine(field, value, how) {
  await refined({ field, value, how });
}

/** Ask with another condition. */
export async function narrow(more) {
  await refined({ more });
}

async function refined(body) {
  try {
    await ask("refine", { where: state.where, ...body }, (part) => {
      if (part.part === "refined") change({ where: part.where });
    });
  } catch (error) {
    showWrong(error.part || { reason: String(error) });
  }
}
