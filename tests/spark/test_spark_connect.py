"""prebuild() over Spark Connect on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def test_the_same_files_over_connect(tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)])}
    done = subprocess.run(
        [sys.executable, HERE / "connect_script.py", tmp_path],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert "the same files" in done.stdout
    assert "Spark Connect has no way to read a log by URI" in done.stdout
    assert "has no such file" in done.stdout
