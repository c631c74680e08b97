"""Every block of docs/exploring.md runs, and gives what its comments say."""

from doc_blocks import ROOT, Page


def test_the_program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Page.read(ROOT / "docs" / "exploring.md").run() >= 2
