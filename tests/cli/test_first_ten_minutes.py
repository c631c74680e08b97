"""README.md's first lines and docs/ten-minutes.md, as a reader would type them: what they show is what comes."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_helpers import ROOT
from doc_blocks import Page
from page_examples import shows_what_happens

PAGES = {"README.md": 3, "docs/ten-minutes.md": 20}


@pytest.mark.parametrize("page", PAGES)
def test_every_line_of(page: str, shell, monkeypatch: pytest.MonkeyPatch) -> None:
    folder: Path = shell.folder
    (folder / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(folder)
    if page == "README.md":  # which says where its file comes from
        assert "`python3 examples/make_events.py events.ndjson`" in (ROOT / page).read_text()
        assert shell("python examples/make_events.py events.ndjson")[0] == 0
    assert shows_what_happens((ROOT / page).read_text(), shell, monkeypatch) >= PAGES[page]
    if page != "README.md":
        assert Page.read(ROOT / page).run() == 3
