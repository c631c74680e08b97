"""The page docs/logging.md does what it says."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import structlog
from doc_blocks import ROOT, Page

import jitdb


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        assert Page.read(ROOT / "docs" / "logging.md").run() == 2
        for handler in root.handlers:
            handler.close()
        structlog.get_config()["processors"][1].sink.close()
    finally:
        root.handlers[:] = before
        root.setLevel(level)
        structlog.reset_defaults()
    assert "login" in capsys.readouterr().out
    with jitdb.open("events.log", read_only=True) as db:
        assert [event["user"] for event in db.query()] == ["ada"]
