"""Displays in a real browser, among the rules that a notebook has for tables: seen, readable, and nothing runs."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from gallery import cells, page_of

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="displays are looked at in Chromium, and there is none")

# A notebook of each color, where the system prefers light; and a page without colors of its own where it prefers dark.
KINDS = {"light": ("light", False), "dark": ("dark", False), "plain, dark": ("plain", True)}

# What the page finds out about itself. A color is taken with all that is half transparent above it.
_LOOK = """<script>
addEventListener("load", () => {
  const parse = (text) => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const solid = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(at).backgroundColor);
      if (a > 0.5) return [r, g, b];
    }
    return matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255];
  };
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const contrast = (node, property) => {
    const [r, g, b, a = 1] = parse(getComputedStyle(node)[property]);
    let shown = a;
    for (let at = node; at; at = at.parentElement) shown *= Number(getComputedStyle(at).opacity);
    const back = solid(node), mixed = [r, g, b].map((c, at) => c * shown + back[at] * (1 - shown));
    const [low, high] = [light(back), light(mixed)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const all = (what) => [...document.querySelectorAll(what)];
  const least = (nodes, property) => Math.min(...nodes.map((node) => contrast(node, property)));
  const found = {
    hit: window.hit || 0,
    foreign: all(".jitdb img, .jitdb script, .jitdb h1, .jitdb a, .jitdb iframe, .jitdb u").length,
    displays: all(".jitdb").length,
    overflow: document.documentElement.scrollWidth - innerWidth,
    tall: Math.max(...all(".jitdb table:not(.jitdb-facts) tbody tr").map((row) => row.offsetHeight)),
    narrow: Math.min(...all(".jitdb td:first-child bdi").map((node) => node.offsetWidth)),
    text: least(all(".jitdb td, .jitdb th, .jitdb .jitdb-note, .jitdb b, .jitdb summary"), "color"),
    marks: least(all(".jitdb svg rect"), "fill"),
    labels: least(all(".jitdb svg text"), "fill"),
    striped: new Set(all(".jitdb tbody tr").map((row) => getComputedStyle(row).backgroundColor)).size,
    left: getComputedStyle(all(".jitdb td:not(.jitdb-n)")[0]).textAlign,
    covered: all(".jitdb tbody td").filter((cell) => cell.nextElementSibling && cell.scrollWidth > cell.clientWidth + 1
      && getComputedStyle(cell).overflowX === "visible").length,
    clipped: all(".jitdb summary").filter((each) => each.textContent.length < 20
      && each.scrollWidth > each.clientWidth + 1).length,
    crowded: all(".jitdb-chart").filter((chart) => {
      const boxes = [...chart.querySelectorAll("text")].map((text) => text.getBoundingClientRect()).slice(1);
      return boxes.some((box, at) => at && box.left < boxes[at - 1].right);
    }).length,
  };
  for (const each of all(".jitdb details")) each.open = true;
  found.unfolded = Math.max(...all(".jitdb details > pre").map((each) => each.offsetHeight));
  found.wide = document.documentElement.scrollWidth - innerWidth;
  const told = document.createElement("pre");
  told.id = "told";
  told.textContent = JSON.stringify(found);
  document.body.append(told);
});
</script>"""


def looked_at(folder: Path, theme: str, drawn: list[tuple[str, str]], *, dark: bool) -> subprocess.Popen[str]:
    """A browser that opens the page."""
    page = folder / f"{theme}-{dark}.html"
    page.write_text(page_of(drawn, theme, _LOOK))
    options = [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-component-update",
        "--disable-background-networking", "--disable-sync", f"--user-data-dir={folder / f'profile-{theme}-{dark}'}",
        "--window-size=900,900", "--virtual-time-budget=2000", "--dump-dom",
    ]  # fmt: skip
    options += ["--blink-settings=preferredColorScheme=0"] if dark else []
    assert CHROMIUM is not None
    asked = [CHROMIUM, *options, page.as_uri()]
    return subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What the pages of all themes found out; the browsers run side by side."""
    folder = tmp_path_factory.mktemp("pages")
    drawn = cells()
    running = {name: looked_at(folder, theme, drawn, dark=dark) for name, (theme, dark) in KINDS.items()}
    found = {}
    for name, process in running.items():
        page, _ = process.communicate(timeout=120)
        told = re.search(r'<pre id="told">(.*?)</pre>', page, re.DOTALL)
        assert told is not None, page[-2000:]
        found[name] = {**json.loads(html.unescape(told[1])), "cells": len(drawn)}
    return found


@pytest.mark.parametrize("theme", KINDS)
def test_displays_are_readable_and_nothing_of_a_record_runs(seen: dict[str, dict[str, Any]], theme: str) -> None:
    told = seen[theme]
    assert told["hit"] == 0  # no script of a record ran
    assert told["foreign"] == 0  # and no element of one is there
    assert told["displays"] == told["cells"] >= 20
    assert told["overflow"] <= 0
    assert told["wide"] <= 0  # not with everything unfolded either
    assert told["tall"] < 40  # pixels: long values are folded into one line
    assert told["unfolded"] < 400  # what is long is scrolled
    assert told["text"] > 4.5  # what WCAG asks for text
    assert told["labels"] > 4.5
    assert told["marks"] > 2.5
    assert told["striped"] == 1  # the notebook's stripes are not ours
    assert told["left"] == "left"
    assert told["covered"] == 0
    assert told["clipped"] == 0  # what is short is not cut where there is little room
    assert told["crowded"] == 0
