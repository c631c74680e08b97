"""The session that people and tests get."""

from __future__ import annotations

import sys
from typing import Any


def test_workers_run_this_python(spark: Any) -> None:
    found = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect()
    assert found == [sys.executable]
