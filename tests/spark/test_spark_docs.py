"""Every block of docs/spark.md runs, in one session, and gives what its comments say."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from doc_blocks import ROOT, Page

PAGE = Page.read(ROOT / "docs" / "spark.md")


def test_the_page(spark: Any, javas_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(javas_folder)
    shutil.copy(ROOT / "tests" / "data" / "ssb-5k.bipf", "ssb.log")
    assert PAGE.run() == 13


def test_the_program_for_spark_submit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (name,) = PAGE.files
    monkeypatch.setattr("sys.argv", [name, "--help"])
    with pytest.raises(SystemExit) as ended:
        exec(compile(PAGE.files[name], name, "exec"), {})
    assert ended.value.code == 0
    assert "jitdb prebuild LOG" in capsys.readouterr().out
