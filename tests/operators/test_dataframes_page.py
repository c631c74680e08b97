"""Every block of docs/dataframes.md runs, and gives what its comments say."""

import pytest
from doc_blocks import ROOT, Page

for library in ("pyarrow", "pandas", "polars", "duckdb"):
    pytest.importorskip(library)


def test_the_program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Page.read(ROOT / "docs" / "dataframes.md").run() >= 8
