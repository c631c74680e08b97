"""One page with every display there is, of plain and of hostile values, as a notebook would show them.

`python tests/display/gallery.py FOLDER` writes it there, in the colors of a light and of a dark notebook.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import jitdb
from jitdb.operators import field

HOSTILE = [
    "<script>window.hit = 1</script>", "<img src=x onerror='window.hit = 1'>", '"><svg onload="window.hit = 1">',
    "</style></table></details><h1>out</h1>", "مرحبا بالعالم <b>شارع</b>", "שלום עולם 123", "\u202eevil\u202c",
    "\x1b[31mred\x00",
    "x" * 10_000_000, "日本語のテキスト", "", "two\nlines", "javascript:window.hit = 1", "$x^2$",
    "e\u0301\u0301\u0301\u0301" * 30,
    {"<b>": {"deep": ["<i>"] * 500}}, [1, [2, [3]]], None, 10**400, b"<u>",
]  # fmt: skip

_FAILURE = "upstream is gone: connection to 10.0.3.7:443 was reset by the peer, 3 attempts"

# What JupyterLab says of tables and text in outputs, as far as it could be in the way, and its colors of each theme.
_NOTEBOOK = """
body { margin: 0; padding: 12px 18px; background: var(--jp-layout-color0); color: var(--jp-content-font-color1);
  font-family: system-ui, sans-serif; font-size: 13px; line-height: 1.5 }
.jp-RenderedHTMLCommon { color: var(--jp-content-font-color1); font-size: 14px; line-height: 1.6; padding-right: 20px }
.jp-RenderedHTMLCommon table { border-collapse: collapse; border-spacing: 0; border: none;
  font-size: 12px; table-layout: fixed;
  margin-left: auto; margin-bottom: 1em; margin-right: auto }
.jp-RenderedHTMLCommon td, .jp-RenderedHTMLCommon th, .jp-RenderedHTMLCommon tr { vertical-align: middle; padding: .5em;
  line-height: normal; white-space: normal; max-width: none; border: none; text-align: right }
.jp-RenderedHTMLCommon thead { border-bottom: 1px solid var(--jp-border-color1); vertical-align: bottom }
.jp-RenderedHTMLCommon tbody tr:nth-child(odd) { background: var(--jp-layout-color2) }
.jp-RenderedHTMLCommon pre, .jp-RenderedHTMLCommon code { border: 0; padding: 1px 5px;
  background: var(--jp-layout-color2) }
.in { font: 12px ui-monospace, monospace; margin: 18px 0 4px; padding: 5px 8px; background: var(--jp-cell);
  border: 1px solid var(--jp-border-color1) }
"""
THEMES = {
    "light": "--jp-layout-color0: #fff; --jp-layout-color2: #eee; --jp-content-font-color1: rgba(0, 0, 0, .87); "
    "--jp-border-color1: #bdbdbd; --jp-brand-color1: #1976d2; --jp-cell: #f5f5f5; color-scheme: light",
    "dark": "--jp-layout-color0: #111; --jp-layout-color2: #424242; --jp-content-font-color1: #fff; "
    "--jp-border-color1: #616161; --jp-brand-color1: #2196f3; --jp-cell: #212121; color-scheme: dark",
    "plain": "color-scheme: light dark; --jp-layout-color0: Canvas; --jp-content-font-color1: CanvasText; "
    "--jp-cell: transparent",
}  # fmt: skip


def events(path: Path, count: int = 3000) -> Path:
    """Records of some days, in JSON Lines."""
    chance = random.Random(7)
    lines = []
    for number in range(count):
        level = chance.choices(["info", "warn", "error"], [8, 2, 1 + 4 * (number // 300 == 6)])[0]
        record = {
            "time": (datetime(2026, 11, 20) + timedelta(seconds=58 * number)).isoformat() + "Z",
            "level": level,
            "service": chance.choices(["web", "search", "checkout"], [5, 3, 2])[0],
            "ms": round(chance.lognormvariate(4, 1.1), 1),
            "user": {"name": chance.choice(["ada", "grace", "linus", "李"]), "id": chance.randrange(10**6)},
            "message": _FAILURE if level == "error" else f"request {number} done",
            "tags": ["a", "b"],
        }  # fmt: skip
        lines.append(json.dumps(record))
    path.write_text("\n".join(lines) + "\n")
    return path


def shown(folder: Path) -> Iterator[tuple[str, Any]]:
    """What is in a cell, and what it gives."""
    db = jitdb.open(events(folder / "events.ndjson"))
    errors = db.query(field("level") == "error").descending()
    yield "db", db
    yield 'errors = db.query(field("level") == "error").descending()', errors
    yield "errors.explain()", errors.explain()
    page = errors.page(20)
    yield "errors", errors
    yield "page", page
    yield 'db.value_counts("service")', db.value_counts("service")
    yield 'db.group_count("service", "level")', db.group_count("service", "level")
    yield 'db.histogram("ms")', db.histogram("ms")
    yield "errors.timeline()", errors.timeline(every="2h")
    yield 'db.timeline(every="1h", by="level")', db.timeline(every="1h", by="level")
    yield 'db.stats_by("ms", "service")', db.stats_by("ms", "service")
    yield 'db.count_distinct("ms", every="1h")', db.count_distinct("ms", every="1h")
    yield (
        'db.patterns(field="message", new_since="2026-11-20T12:00")',
        db.patterns(field="message", new_since="2026-11-20T12:00"),
    )
    yield 'db.share("status >= 500", every="1h")', db.share("status >= 500", every="1h")
    yield "db.facets()", db.facets()
    yield "errors.difference()", errors.difference()
    yield "db", db
    yield "db.indexes()", db.indexes()
    yield "db.verify()", _report(folder)
    hostile = jitdb.Log(folder / "hostile.log", block_size=16 << 20)
    for number, value in enumerate(HOSTILE):
        hostile.append(
            {"number": number, "value": value if not isinstance(value, int) else str(value), "<k>": "&lt;", "עברית": 1}
        )
    hostile.flush()
    bad = jitdb.JITDB(hostile)
    yield "hostile", bad
    yield "hostile.query().page(20)", bad.query().sort_by_arrival().page(10)
    yield "hostile.query().start_from(10).page(20)", bad.query().sort_by_arrival().start_from(10).page(10)
    yield 'hostile.query().select("value", "<k>")', bad.query().sort_by_arrival().select("number", "value").page(10)
    yield 'hostile.value_counts("value")', bad.value_counts("value")
    yield 'hostile.patterns(field="value")', bad.patterns(field="value")
    yield "hostile.facets()", bad.facets()
    yield 'hostile.difference("number < 4")', bad.difference("number < 4")
    bad.close()
    db.close()
    yield 'jitdb.open_many("*.ndjson")', jitdb.open_many(str(folder / "*.ndjson"))


def _report(folder: Path) -> Any:
    with jitdb.Log(folder / "small.log") as log:
        log.append_many([{"a": number} for number in range(5000)])
        log.flush()
        db = jitdb.JITDB(log)
        db.count(field("a") == 1)
        return db.verify()


def page_of(cells: list[tuple[str, str]], theme: str, script: str = "") -> str:
    """The page, with what a test wants to run in it."""
    from html import escape

    body = "".join(
        f'<div class="in">{escape(code)}</div><div class="jp-RenderedHTMLCommon">{html}</div>' for code, html in cells
    )
    return (
        f'<!doctype html><html><meta charset="utf-8"><title>displays</title><style>:root {{ {THEMES[theme]} }}'
        f"{_NOTEBOOK}</style><body>{body}{script}</body></html>"
    )


def cells() -> list[tuple[str, str]]:
    """The code and the HTML of each."""
    with tempfile.TemporaryDirectory() as folder:
        return [(code, value._repr_html_()) for code, value in shown(Path(folder))]


if __name__ == "__main__":
    drawn = cells()
    for name in THEMES:
        (Path(sys.argv[1]) / f"{name}.html").write_text(page_of(drawn, name))
