"""What goes wrong on workers, or for want of a package, is told as an error of jitdb."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import make_log

from jitdb import errors
from jitdb.errors import DecodeError, JitdbError, LogCorrupt, NotALog, QueryError
from jitdb.spark_ext import errors as spark_errors
from jitdb.spark_ext import told
from jitdb.spark_ext.errors import CopyDiffers, RecordMismatch, SparkError
from jitdb.spark_ext.failures import worker_error


def test_told(spark: Any, tmp_path: Path) -> None:
    from jitdb.spark_ext import read_log

    path = str(tmp_path / "x.log")
    make_log(tmp_path / "x.log", 30)
    with pytest.raises(NotALog, match="there is no such file"), told():
        read_log(spark, str(tmp_path / "nope.log"))
    with pytest.raises(QueryError) as query, told():
        read_log(spark, path, ["value.author"], "value.author = 3")
    assert str(query.value) == CARET
    with pytest.raises(RecordMismatch, match="does not fit the column 'a'") as mismatch, told():
        read_log(spark, path, {"a": ("value.author", "int")}).collect()
    assert (mismatch.value.offset, mismatch.value.column) == (0, "a")


CARET = "equality is written `==`, not `=`\n  value.author = 3\n               ^"
JAVA = "\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:572)"


@pytest.mark.parametrize(
    "behind",
    [
        "", "\n", "\n SQLSTATE: 38000", f"\n{JAVA}\n", f"\n\n{JAVA}", f"\nDriver stacktrace:\n{JAVA}",
        "\nCaused by: java.lang.Exception", "\n\nJVM stacktrace:\norg.apache", "\n=== Streaming Query ===\nName: 3",
        "\n\nCurrent Committed Offsets: {}", "\nDuring handling of the above exception, another exception occurred:",
    ],
)  # fmt: skip
def test_all_lines_of_a_message_and_no_more(behind: str) -> None:
    found = worker_error(
        f"[PYTHON] Failed: Traceback (most recent call last):\njitdb.errors.QueryError: {CARET}{behind}"
    )
    assert (type(found), str(found)) == (QueryError, CARET)


def test_of_several_errors_the_last() -> None:
    found = worker_error(
        "jitdb.errors.NotALog: a\nmore\njitdb.spark_ext.errors.CopyDiffers: b\nJob: jitdb.errors.E: c\n"
    )
    assert (type(found), str(found)) == (CopyDiffers, "b")


def errors_of(*modules: Any) -> Iterator[type[JitdbError]]:
    for module in modules:
        yield from (
            each for each in vars(module).values() if isinstance(each, type) and issubclass(each, JitdbError)
        )  # fmt: skip


@pytest.mark.parametrize("kind", sorted(set(errors_of(errors, spark_errors)), key=repr))
def test_every_error_has_its_attributes(kind: type[JitdbError]) -> None:
    """Those that it has when it is raised here."""
    given = {"message": "words", "path": "/a/x.log", "size": 9, "limit": 5}
    wanted = signature(kind.__init__).parameters
    here = kind("words") if "args" in wanted else kind(**{name: given[name] for name in given if name in wanted})
    told = worker_error(f"{kind.__module__}.{kind.__name__}: {here}")
    assert type(told) is kind
    assert str(told) == str(here)
    assert set(vars(told)) == set(vars(here))
    assert getattr(told, "path", None) == getattr(here, "path", None)


def test_places_are_told(tmp_path: Path) -> None:
    for here in [
        RecordMismatch("/a: the record at offset 1,205 does not fit the column 'x.y': …", column="x.y", offset=1205),
        LogCorrupt("block 3 is damaged: the length at offset 1,536 leads out", path="/a/b", offset=1536, block=3),
        DecodeError("/a: the record at offset 7 cannot be decoded: …", offset=7),
        SparkError("nothing"),
    ]:
        told = worker_error(f"Py4JJavaError: …\n{type(here).__module__}.{type(here).__name__}: {here}\n{JAVA}")
        assert vars(told) == vars(here)


@pytest.mark.parametrize("missing", ["pyspark", "pyarrow"])
def test_a_package_that_is_missing(missing: str) -> None:
    script = f"import sys; sys.modules[{missing!r}] = None; from jitdb.spark_ext import read_log"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("jitdb.spark_ext.errors.SparkError: ")
    assert last.endswith("Spark is an extra of jitdb: pip install 'jitdb[spark]'")
