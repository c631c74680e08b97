"""The page docs/spool.md does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from doc_blocks import ROOT, Page

from jitdb import Log
from jitdb.stores.spool import Spool


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Page.read(ROOT / "docs" / "spool.md").run()


def test_its_record(tmp_path: Path) -> None:
    lines = [line for line in (ROOT / "docs" / "spool.md").read_text().splitlines() if line.startswith("    ")]
    start = next(number for number, line in enumerate(lines) if line.startswith("    84  "))
    told = bytes.fromhex("".join(line[4:47].replace(" ", "") for line in lines[start : start + 5]))
    assert len(told) == 45
    with Spool(tmp_path, create=True) as spool:
        spool.store(b"friends", b"ada-----", 1, 0, b"hello")
    with Log(tmp_path / f"{b'friends'.hex()}.log", read_only=True) as log:
        assert [record.value for record in log.stream(raw=True)] == [told]
