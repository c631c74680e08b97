"""Every block of docs/python.md runs, and gives what its comments say."""

import os
import subprocess
import sys

import pytest
from doc_blocks import ROOT, Page

pytestmark = pytest.mark.slow

PAGE = Page.read(ROOT / "docs" / "python.md")


def test_the_program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert PAGE.run() > 20


@pytest.mark.parametrize("order", [("writer.py", "reader.py"), ("reader.py", "writer.py")])
def test_reading_beside_a_writer(tmp_path, order):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = {}
    for name in order:
        (tmp_path / name).write_text(PAGE.files[name])
        running[name] = subprocess.Popen(
            [sys.executable, name], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
        )
    said = {name: process.communicate(timeout=120)[0].strip() for name, process in running.items()}
    assert all(process.returncode == 0 for process in running.values())
    assert said == {"writer.py": "", "reader.py": "20 19"}


def test_every_file_is_run():
    assert set(PAGE.files) == {"writer.py", "reader.py"}
