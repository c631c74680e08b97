"""A codec of one's own: the program of docs/format-codecs.md runs as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from doc_blocks import ROOT, Page


def test_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Page.read(ROOT / "docs" / "format-codecs.md").run() == 6
