"""The notebooks of examples/ run from top to bottom, and say what is kept in them.

`JITDB_NOTEBOOKS=keep` in front of pytest keeps what they say now. Cells with the tag `varies` are run and not compared.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parents[2] / "examples"
KEEP = os.environ.get("JITDB_NOTEBOOKS") == "keep"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
_FOLDER = re.compile(r"/\S*/jitdb-\w{8}\b")  # where a notebook works
_DURATION = re.compile(r"\b[\d.,]+ (?:ns|µs|ms|s)\b")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if path.stem.startswith("spark"):
        pytest.importorskip("pyspark")
        monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")  # as tests/spark has it
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    kept = nbformat.read(path, as_version=4)
    fresh = nbformat.read(path, as_version=4)
    client = NotebookClient(
        fresh, timeout=240, record_timing=False, coalesce_streams=True, resources={"metadata": {"path": str(EXAMPLES)}}
    )
    client.execute()
    for cell in fresh.cells:
        cell["outputs"] = [_without_places(output) for output in cell.get("outputs", ())]
        if cell.cell_type != "code":
            del cell["outputs"]
    if KEEP:
        fresh.metadata["language_info"] = {"name": "python"}
        nbformat.write(fresh, path)
        return
    assert len(list(_texts(kept))) > 4
    for before, now in zip(kept.cells, fresh.cells, strict=True):
        if "varies" not in before.metadata.get("tags", ()):
            assert list(_said(now)) == list(_said(before)), before.source


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_kept(path: Path) -> None:
    text = path.read_text()
    assert len(text) < 200_000
    assert not re.findall(r"/(?:home|root|work|Users|tmp)/(?!jitdb\b)[\w.-]*", text)
    notebook = nbformat.read(path, as_version=4)
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")
    assert not [each for cell in notebook.cells for each in cell.get("outputs", ()) if each.output_type == "error"]
    assert '"image/png": ' not in text


def _without_places(output: Any) -> Any:
    """The folder that a notebook worked in has no name."""
    for place in (output, output.get("data", {})):
        for name, value in place.items():
            if isinstance(value, str):
                place[name] = _FOLDER.sub("/tmp/jitdb", value)
    return output


def _texts(notebook: Any) -> Iterator[str]:
    for cell in notebook.cells:
        yield from _said(cell)


def _said(cell: Any) -> Iterator[str]:
    """What its outputs say as text, without how long it took, and without a bar that was drawn and taken away."""
    for output in cell.get("outputs", ()):
        if output.output_type == "display_data" and not any(output.data.values()):
            continue
        text = output.get("text") or output.get("data", {}).get("text/plain", "")
        yield _DURATION.sub("… ms", text)
