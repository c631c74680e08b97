"""The scripts of examples/ run as a user would start them; of notebooks, see test_notebooks.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
