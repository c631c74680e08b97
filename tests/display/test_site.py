"""The site of docs/ in a real browser: no page scrolls sideways, code is readable, and links read as words."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from doc_blocks import ROOT
from test_in_browser import CHROMIUM

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="the site is looked at in Chromium, and there is none"),
]

WIDTHS = (390, 768, 1024, 1200, 1440, 1500, 1600, 1690, 1920)  # phones, and both sides of each step of the theme

# Opens each page in a frame of each width, and looks at it once.
_LOOK = """<!doctype html><script>
const light = (color) => color.map((c) => c / 255)
  .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
  .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const solid = (node) => {
  for (let at = node; at; at = at.parentElement) {
    const [r, g, b, a = 1] = parse(getComputedStyle(at).backgroundColor);
    if (a > 0.5) return [r, g, b];
  }
  return [255, 255, 255];
};
const contrast = (node) => {
  const colors = [parse(getComputedStyle(node).color).slice(0, 3), solid(node)];
  const [low, high] = colors.map(light).sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
};
const found = { wide: [], pale: {}, names: [], spans: 0 };
const look = async (page) => {
  const frame = document.createElement("iframe");
  const loaded = new Promise((done) => frame.addEventListener("load", done));
  frame.src = page;
  frame.style = "height: 900px; border: 0";
  document.body.append(frame);
  await loaded;
  const inner = frame.contentDocument, root = inner.documentElement;
  for (const width of WIDTHS) {
    frame.style.width = width + "px";
    if (root.scrollWidth > width) found.wide.push([page, width, root.scrollWidth]);
  }
  for (const link of inner.querySelectorAll("article a"))
    if (/\\.md(#.*)?$/.test(link.textContent)) found.names.push([page, link.textContent]);
  for (const node of inner.querySelectorAll(".highlight span")) {
    if (!node.textContent.trim()) continue;
    found.spans += 1;
    const ratio = contrast(node); // WCAG AA asks for 4.5
    if (ratio < 4.5) found.pale[node.className] = ratio;
  }
  frame.remove();
};
addEventListener("load", async () => {
  for (const page of PAGES) await look(page);
  const told = document.createElement("pre");
  told.id = "told";
  told.textContent = JSON.stringify(found);
  document.body.append(told);
});
</script><body></body>"""


def looked_at(site: Path, folder: Path, *, dark: bool) -> dict[str, Any]:
    pages = sorted(page.name for page in site.glob("*.html"))
    look = site / f"look-{dark}.html"
    look.write_text(_LOOK.replace("WIDTHS", json.dumps(WIDTHS)).replace("PAGES", json.dumps(pages)))
    assert CHROMIUM is not None
    options = [
        "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
        f"--user-data-dir={folder}", "--allow-file-access-from-files", "--window-size=2000,900", "--timeout=120000",
        "--virtual-time-budget=600000", "--dump-dom",
    ]  # fmt: skip
    options += ["--blink-settings=preferredColorScheme=0"] if dark else []
    page = subprocess.run([CHROMIUM, *options, look.as_uri()], capture_output=True, text=True, timeout=180).stdout
    look.unlink()
    told = re.search(r'<pre id="told">(.*?)</pre>', page, re.DOTALL)
    assert told is not None, page[-2000:]
    found: dict[str, Any] = json.loads(html.unescape(told[1]))
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, "-m", "sphinx", "-q", "-E", ROOT / "docs", folder], check=True)
    return folder


@pytest.mark.parametrize("dark", [False, True])
def test_the_site_fits_and_is_readable(site: Path, tmp_path: Path, dark: bool) -> None:
    told = looked_at(site, tmp_path, dark=dark)
    assert told.pop("spans") > 1000
    assert told == {"wide": [], "pale": {}, "names": []}
