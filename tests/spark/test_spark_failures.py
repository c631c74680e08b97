"""What goes wrong on workers, or for want of a package, is told as an error of jitdb."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import traceback
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import make_log

from jitdb import errors
from jitdb.errors import JitdbError, NotALog, QueryError, Remedy, from_json
from jitdb.spark_ext import errors as spark_errors
from jitdb.spark_ext import jitdb_errors
from jitdb.spark_ext.errors import CopyDiffers, RecordMismatch, sends_errors, worker_error


def test_jitdb_errors(spark: Any, tmp_path: Path) -> None:
    from jitdb.spark_ext import read_log

    path = str(tmp_path / "x.log")
    make_log(tmp_path / "x.log", 30)
    with pytest.raises(NotALog, match="there is no such file"), jitdb_errors():
        read_log(spark, str(tmp_path / "nope.log"))
    with pytest.raises(QueryError) as query, jitdb_errors():
        read_log(spark, path, ["value.author"], "value.author = 3")
    assert str(query.value) == CARET
    with pytest.raises(RecordMismatch, match="does not fit the column 'a'") as mismatch, jitdb_errors():
        read_log(spark, path, {"a": ("value.author", "int")}).collect()
    assert (mismatch.value.path, mismatch.value.offset, mismatch.value.column) == (path, 0, "a")
    assert mismatch.value.remedy is not None


CARET = "equality is written `==`, not `=`\n  value.author = 3\n               ^"
JAVA = "\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:572)"


def sent_by_a_worker(error: JitdbError) -> str:
    """What Python's traceback makes of it in a worker, and Java of that."""

    @sends_errors
    def fails() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        fails()
    told = "".join(traceback.format_exception(raised.value))
    return f"[PYTHON_EXCEPTION] Failed:\n\n{told}\n{JAVA}\n\nDriver stacktrace:\n{JAVA}\n SQLSTATE: 38000"


def test_of_several_errors_the_last() -> None:
    text = "".join(
        map(
            sent_by_a_worker,
            [
                NotALog("a"),
                CopyDiffers("b"),
            ],
        )
    )
    found = worker_error(f"{text}\njitdb.errors.QueryError: c")
    assert (type(found), str(found)) == (CopyDiffers, "b")


def test_what_a_worker_gives_one_by_one() -> None:
    @sends_errors
    def gives() -> Iterator[int]:
        yield 1
        raise NotALog("a")

    given = gives()
    assert next(given) == 1
    with pytest.raises(NotALog) as raised:
        next(given)
    assert isinstance(worker_error("".join(traceback.format_exception(raised.value))), NotALog)


def test_here_nothing_is_sent() -> None:
    @sends_errors
    def fails() -> None:
        raise NotALog("a")

    with pytest.raises(NotALog) as raised, jitdb_errors():
        fails()
    assert traceback.format_exception_only(raised.value) == ["jitdb.errors.NotALog: a\n"]


def errors_of(*modules: Any) -> Iterator[type[JitdbError]]:
    for module in modules:
        yield from (
            each for each in vars(module).values() if isinstance(each, type) and issubclass(each, JitdbError)
        )  # fmt: skip


@pytest.mark.parametrize("kind", sorted(set(errors_of(errors, spark_errors)), key=repr))
def test_every_error_has_its_attributes(kind: type[JitdbError]) -> None:
    """Those that it has when it is raised here: sent through Spark, pickled, or copied."""
    given = {
        "reason": CARET, "path": "/a/x.log", "remedy": Remedy("pass codec='bipf'", "pass --codec bipf"), "pid": 7,
        "offset": 1_205, "position": 3, "block": 2, "expected": 5, "got": "words", "generation": 4, "column": "x.y",
        "size": 9, "limit": 5,
    }  # fmt: skip
    wanted = signature(kind.__init__).parameters
    here = kind(**{name: given[name] for name in given if name in wanted})
    for there in (pickle.loads(pickle.dumps(here)), copy.copy(here), worker_error(sent_by_a_worker(here))):
        assert type(there) is kind
        assert str(there) == str(here)
        assert attributes(there) == attributes(here)


def attributes(error: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(error).items() if name != "__notes__"}


def test_an_error_of_a_later_version() -> None:
    form = {**NotALog("words", path="a").to_json(), "kind": "NotYetKnown", "more": 3}
    found = from_json(form)
    assert (type(found), str(found), vars(found)["more"]) == (JitdbError, "a: words", 3)


@pytest.mark.parametrize("missing", ["pyspark", "pyarrow"])
def test_a_package_that_is_missing(missing: str) -> None:
    script = f"import sys; sys.modules[{missing!r}] = None; from jitdb.spark_ext import read_log"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("jitdb.spark_ext.errors.SparkError: ")
    assert last.endswith("Spark is an extra of jitdb: pip install 'jitdb[spark]'")
