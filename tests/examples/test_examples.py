"""What is in examples/ runs: scripts as a user would start them, notebooks in a real kernel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
# Those of Spark: tests/spark/test_cli_prebuild.py.
SCRIPTS = sorted(path for path in EXAMPLES.glob("*.py") if not path.name.startswith("spark_"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_script(script: Path, tmp_path: Path) -> None:
    finished = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout
    assert not finished.stderr


@pytest.mark.parametrize("notebook", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.name)
def test_notebook(notebook: Path) -> None:
    document = nbformat.read(notebook, as_version=4)
    done = NotebookClient(document, timeout=120, resources={"metadata": {"path": str(EXAMPLES)}}).execute()
    results = [output for cell in done.cells for output in cell.get("outputs", []) if output.output_type != "stream"]
    assert len(results) >= 5
    assert not [output for output in results if output.output_type == "error"]
