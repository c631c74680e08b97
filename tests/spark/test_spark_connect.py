"""All of jitdb's Spark over Spark Connect, on loopback: connect_script.py asks and compares."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def test_a_client_of_spark_connect(tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)])}
    done = subprocess.run(
        [sys.executable, HERE / "connect_script.py", tmp_path],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines()[-1] == "all is well"
