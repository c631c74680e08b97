"""The Python blocks of README.md run."""

import subprocess
import sys

from doc_blocks import ROOT, Page


def test_the_blocks_of_the_readme(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, ROOT / "examples" / "make_events.py", "events.ndjson"], check=True)
    Page.read(ROOT / "README.md").run()
    first, *rest = capsys.readouterr().out.splitlines()
    assert f"# {first}" in (ROOT / "README.md").read_text()
    assert rest == ["1"]
