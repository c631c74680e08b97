"""The page docs/hyperdb.md does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from doc_blocks import ROOT, Page


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Page.read(ROOT / "docs" / "hyperdb.md").run()
