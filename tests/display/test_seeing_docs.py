"""The Python of docs/notebook.md about seeing runs, and gives what the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import jitdb
from jitdb.operators import field

PAGE = Path(__file__).parents[2] / "docs" / "notebook.md"


def test_its_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install 'jitdb[plot]'")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    record = {"time": "2026-11-20T08:00:00Z", "level": "error", "user": {"name": "ada"}}
    (tmp_path / "events.ndjson").write_text(json.dumps(record) + "\n")
    section = PAGE.read_text().partition("## Seeing")[2].partition("## Cells of questions")[0]
    blocks = re.findall("```python\n(.*?)```", section, flags=re.DOTALL)
    assert len(blocks) == 3
    with jitdb.open("events.ndjson", "memory") as db:
        known: dict[str, Any] = {"db": db, "errors": db.query(field("level") == "error")}
        for block in blocks:
            exec(block, known)
        assert (known["told"].pays_after, known["told"].is_ready) == (1, False)
        assert known["ax"].get_ylabel() == "records"
        assert (tmp_path / "levels.pdf").stat().st_size > 5000
        assert db.query(db.fields.level == "error", db.fields.user.name == "ada").count() == 1
        assert db.fields.values("level") == ["error"]
