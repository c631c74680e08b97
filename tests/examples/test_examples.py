"""What is in examples/ runs: scripts as a user would start them, notebooks in a real kernel."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


# What Spark and its Java say of themselves, whatever is asked of them; the last three are of a worker whose further
# rows nobody wants any more.
SPARKS_OWN = (
    r"WARNING: (Using incubator modules|package sun\.security\.action not).*",
    r"Using Spark's default log4j profile: .*",
    r"(Setting default|To adjust) log(ging)? level .*",
    r".*FutureWarning: PySpark does not yet fully support pandas.*",
    r"  require_minimum_pandas_version\(\)",
    r"\S+ \S+ WARN (NativeCodeLoader|Utils|ResolveWriteToStream): .*",
    r"Traceback \(most recent call last\):",
    r'  File ".*/pyspark/daemon\.py", line \d+, in (manager|worker)',
    r"BrokenPipeError: \[Errno 32\] Broken pipe",
)


def is_sparks(line: str) -> bool:
    return any(re.fullmatch(pattern, line) for pattern in SPARKS_OWN)


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_script(script: Path) -> None:
    with_spark = script.name.startswith("spark_")
    if with_spark and find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed: pip install 'jitdb[spark]'")
    finished = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=240, check=False)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout
    assert not [line for line in finished.stderr.splitlines() if not (with_spark and is_sparks(line))]


@pytest.mark.parametrize("notebook", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.name)
def test_notebook(notebook: Path) -> None:
    document = nbformat.read(notebook, as_version=4)
    done = NotebookClient(document, timeout=120, resources={"metadata": {"path": str(EXAMPLES)}}).execute()
    results = [output for cell in done.cells for output in cell.get("outputs", []) if output.output_type != "stream"]
    assert len(results) >= 5
    assert not [output for output in results if output.output_type == "error"]
