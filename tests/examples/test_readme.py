"""The Python blocks of README.md run."""

import shutil

from doc_blocks import ROOT, Page


def test_the_blocks_of_the_readme(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "tests" / "data" / "ssb-5k.bipf", "ssb.bipf")
    Page.read(ROOT / "README.md").run()
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("91 LATESTMSG")
    assert rest == ["1"]
