"""What goes wrong on workers, or for want of a package, is told as an error of jitdb."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import make_log

from jitdb.errors import NotALog, QueryError
from jitdb.spark_ext import told
from jitdb.spark_ext.errors import RecordMismatch


def test_told(spark: Any, tmp_path: Path) -> None:
    from jitdb.spark_ext import read_log

    path = str(tmp_path / "x.log")
    make_log(tmp_path / "x.log", 30)
    with pytest.raises(NotALog, match="there is no such file"), told():
        read_log(spark, str(tmp_path / "nope.log"))
    with pytest.raises(QueryError, match="equality is written"), told():
        read_log(spark, path, ["value.author"], "value.author = 3")
    with pytest.raises(RecordMismatch, match="does not fit the column 'a'"), told():
        read_log(spark, path, {"a": ("value.author", "int")}).collect()


@pytest.mark.parametrize("missing", ["pyspark", "pyarrow"])
def test_a_package_that_is_missing(missing: str) -> None:
    script = f"import sys; sys.modules[{missing!r}] = None; from jitdb.spark_ext import read_log"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("jitdb.spark_ext.errors.SparkError: ")
    assert last.endswith("Spark is an extra of jitdb: pip install 'jitdb[spark]'")
