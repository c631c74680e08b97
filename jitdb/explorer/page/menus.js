// What asks for a choice: copies, exports, the period, columns, keys.
import { ask } from "./api.js";
import { $, count, el, fill, say, shown } from "./dom.js";
import { fieldNames } from "./facets.js";
import { copy } from "./records.js";
import { change, state } from "./state.js";
import { iso, localZone, zone } from "./times.js";

const KEYS = [
  ["/", "the question"],
  ["Tab, ↓ ↑", "take a completion, go through them"],
  ["Enter", "ask"],
  ["t", "the bars over time: ← → move, with Shift choose, Enter zooms, W asks why"],
  ["j k", "the next record, the one before"],
  ["Enter", "opens the record"],
  ["1 2 3 4 5", "what to look at below the bars"],
  ["b", "the field that the bars tell apart"],
  ["p", "the period"],
  ["c", "copy as command, as Python"],
  ["e", "export"],
  ["f", "follow"],
  ["z", "times in UTC, or of this place"],
  ["Alt ←", "back"],
  ["?", "this"],
];

function dialog(title, ...inside) {
  const box = $("dialog");
  fill(
    box,
    el(
      "form",
      { method: "dialog" },
      el(
        "div",
        { class: "head" },
        el("h2", { id: "dialog-title" }, title),
        el("button", { class: "ghost", "aria-label": "close" }, "×"),
      ),
    ),
    ...inside,
  );
  if (!box.open) box.showModal();
  return box;
}

export function startMenus() {
  $("dialog").addEventListener("click", (event) => {
    if (event.target === $("dialog")) $("dialog").close();
  });
}

export function copyMenu(said) {
  const one = (title, text, what) =>
    el(
      "section",
      {},
      el("h3", {}, title),
      el("pre", { tabindex: 0 }, shown(text).replaceAll("\\u000a", "\n")),
      el("button", { class: "go", onclick: () => copy(text, what) }, "Copy"),
    );
  dialog(
    "The same elsewhere",
    one("In a shell", said.command, "the command"),
    one("In Python", said.python.replace(/\n$/, ""), "the program"),
    el(
      "section",
      {},
      el("h3", {}, "In this browser"),
      el(
        "p",
        { class: "dim" },
        "The address of this page holds all of it; it works in this tab as long as jitdb explore runs.",
      ),
    ),
  );
}

export function exportMenu(total, command, name) {
  const told = el("p", { class: "dim", role: "status" });
  const button = el("button", { class: "go", onclick: () => save(told, button, name) }, "Save as NDJSON");
  dialog(
    "Export",
    el(
      "section",
      {},
      el("p", {}, `${count(total)} records, the newest first, a line of JSON each.`),
      total > 100_000 && el("p", {}, "A browser saves the first 100,000; a shell all of them:"),
      total > 100_000 && el("pre", {}, shown(`${command} -o records.ndjson.gz`)),
      button,
      told,
    ),
  );
}

async function save(told, button, name) {
  const parts = [];
  button.disabled = true;
  try {
    await ask("export", { where: state.where, since: state.since, until: state.until }, (part) => {
      if (part.part !== "lines") return;
      parts.push(part.lines);
      told.textContent = `${count(part.sent)} of ${count(Math.min(part.total, 100_000))}`;
    });
    const address = URL.createObjectURL(new Blob(parts, { type: "application/x-ndjson" }));
    el("a", {
      href: address,
      download: `${name.replace(/\.(ndjson|jsonl?|log)(\.\w+)?$/, "")}-records.ndjson`,
    }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  } catch (error) {
    told.textContent = error.message;
  }
  button.disabled = false;
}

export function periodMenu(low, high) {
  const field = (name, text, value) =>
    el(
      "label",
      {},
      text,
      el("input", { name, value, placeholder: low == null ? "" : iso(name === "since" ? low : high) }),
    );
  const form = el(
    "form",
    {
      onsubmit: (event) => {
        event.preventDefault();
        const said = new FormData(form);
        change({ since: said.get("since").trim(), until: said.get("until").trim(), from: "", to: "" });
        $("dialog").close();
      },
    },
    field("since", "from", state.since),
    field("until", "until (not in it)", state.until),
    el(
      "p",
      { class: "dim" },
      "2026-11-20T14:00 is UTC, 2026-11-20T14:00+01:00 an hour earlier; 2h, 7d are ago; 14:00, today, yesterday are by the clock of this machine.",
    ),
    el(
      "div",
      { class: "acts" },
      el("button", { class: "go" }, "Ask"),
      el(
        "button",
        {
          type: "button",
          class: "ghost",
          onclick: () => {
            change({ since: "", until: "", from: "", to: "" });
            $("dialog").close();
          },
        },
        "All of the log",
      ),
      el(
        "button",
        {
          type: "button",
          class: "ghost",
          onclick: () => {
            toggleZone();
            $("dialog").close();
          },
        },
        zone() === "UTC" ? `Times of ${localZone()}` : "Times in UTC",
      ),
    ),
  );
  dialog("Which time", form);
}

export function toggleZone() {
  change({ zone: zone() === "UTC" && localZone() !== "UTC" ? localZone() : "" }, true);
  say(`times of ${zone()}`);
}

export function columnMenu(now) {
  const input = el("input", { name: "columns", value: now.join(", "), "aria-label": "columns", list: "column-names" });
  const form = el(
    "form",
    {
      onsubmit: (event) => {
        event.preventDefault();
        change(
          {
            columns: input.value
              .split(",")
              .map((name) => name.trim())
              .filter(Boolean),
          },
          true,
        );
        $("dialog").close();
      },
    },
    input,
    el(
      "p",
      { class: "dim" },
      "Fields with commas between them; a field of a record that is open is added by its name.",
    ),
    el(
      "div",
      { class: "chips" },
      ...fieldNames().map((name) =>
        el(
          "button",
          {
            type: "button",
            class: "chip",
            onclick: () => {
              input.value = [
                ...input.value
                  .split(",")
                  .map((each) => each.trim())
                  .filter((each) => each && each !== name),
                name,
              ].join(", ");
            },
          },
          shown(name),
        ),
      ),
    ),
    el(
      "div",
      { class: "acts" },
      el("button", { class: "go" }, "Show"),
      el(
        "button",
        {
          type: "button",
          class: "ghost",
          onclick: () => {
            change({ columns: [] }, true);
            $("dialog").close();
          },
        },
        "The usual ones",
      ),
    ),
  );
  dialog("Columns", form);
}

export function compareMenu() {
  const input = el("input", {
    name: "against",
    value: state.against,
    placeholder: 'service == "web"',
    "aria-label": "compare with",
  });
  const form = el(
    "form",
    {
      onsubmit: (event) => {
        event.preventDefault();
        change({ against: input.value.trim(), from: "", to: "", tab: "why" });
        $("dialog").close();
      },
    },
    el("p", {}, "What the records of the question have more often than the records of another one:"),
    input,
    el("p", { class: "dim" }, "Nothing here: all others. To compare a time, drag over the bars with Shift."),
    el("div", { class: "acts" }, el("button", { class: "go" }, "Compare")),
  );
  dialog("Compare with", form);
}

export function byMenu() {
  const choose = (name) => {
    change({ by: name }, true);
    $("dialog").close();
  };
  dialog(
    "Bars by",
    el(
      "div",
      { class: "chips" },
      el("button", { class: "chip", onclick: () => choose("-") }, "no field"),
      ...fieldNames().map((name) =>
        el(
          "button",
          { class: "chip", "aria-pressed": String(state.by === name), onclick: () => choose(name) },
          shown(name),
        ),
      ),
    ),
  );
}

export function helpMenu() {
  dialog(
    "Keys",
    el("dl", {}, ...KEYS.flatMap(([key, what]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, what)])),
  );
}
