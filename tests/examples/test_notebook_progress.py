"""The progress bar in a real notebook kernel."""

from __future__ import annotations

from typing import Any

import nbformat
from nbclient import NotebookClient

_WORK = """
import time
from jitdb.engine.progress import Bar
bar = Bar("indexing big.log", 10_000_000)
with bar:
    for step in range(14):
        bar(step * 500_000)
        time.sleep(0.1)
"""


def outputs_of(cell: str) -> list[Any]:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    done = NotebookClient(notebook, timeout=60).execute()
    return list(done.cells[0].outputs)


def test_the_bar_is_a_line_that_goes_when_the_work_is_done() -> None:
    (output,) = outputs_of(_WORK)
    assert output.output_type == "display_data"
    assert output.data["text/plain"] == ""


def test_the_bar_says_how_far_the_work_is() -> None:
    (output,) = outputs_of(_WORK.replace("with bar:", "if True:"))
    assert "indexing big.log ██" in output.data["text/plain"]
    assert "% of 10 MB" in output.data["text/plain"]
