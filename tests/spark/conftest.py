"""One Spark session for all tests of this folder; without pyspark they are skipped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent.parent
INSTALLED = find_spec("pyspark") is not None

#: For a session that leaves the machine alone.
QUICK = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
}

#: A Java that starts fast, also in processes that tests start: it compiles little, and has few threads.
QUICK_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
for _name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS", "SPARK_DAEMON_JAVA_OPTS"):
    os.environ.setdefault(_name, QUICK_JAVA)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not INSTALLED:
        here = Path(__file__).parent
        for item in items:
            if here in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="pyspark is not installed: pip install 'jitdb[spark]'"))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Two workers on this machine; a task that fails is tried twice."""
    from jitdb.spark_ext import session

    # Workers find what the tests import as the tests do.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(TESTS), str(TESTS / "spark")])
    made = session("local[2,2]", app="jitdb tests", **QUICK)
    made.sparkContext.setLogLevel("ERROR")
    yield made
    made.stop()
