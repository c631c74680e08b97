"""A Python process of Spark with another jitdb than the driver, or none: it says so, before it does anything."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jitdb
from jitdb import Log

pytest.importorskip("pyspark")

from pyspark import cloudpickle

from jitdb.spark_ext import prebuild
from jitdb.spark_ext.data_source import JitdbDataSource
from jitdb.spark_ext.errors import VersionDiffers, worker_error
from jitdb.spark_ext.options import as_options
from jitdb.spark_ext.versions import sealed

#: What unpickles standard input, as Spark's Python processes do, and tells what it got.
RECEIVES = "import pickle, sys; print(type(pickle.load(sys.stdin.buffer)).__name__)"
WITHOUT = f"import sys; sys.modules['jitdb'] = None; {RECEIVES}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Log(tmp_path / "x.log") as log:
        log.append_many([{"n": n} for n in range(1000)])
    return tmp_path / "x.log"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return another_jitdb(tmp_path / "other")


def another_jitdb(folder: Path) -> Path:
    """Where a jitdb of another version is found."""
    (folder / "jitdb").mkdir(parents=True)
    (folder / "jitdb" / "__init__.py").write_text('__version__ = "0.1.7"\n')
    return folder


def source(path: Path) -> JitdbDataSource:
    return JitdbDataSource(options={**as_options(None, {"n": ("n", "long")}, None, {}), "path": str(path)})


SENT: dict[str, Callable[[Path], Any]] = {
    "function": lambda path: sealed(len),
    "source": lambda path: sealed(JitdbDataSource),
    "LogReader": lambda path: source(path).reader(source(path).schema()),
    "LogStreamReader": lambda path: source(path).streamReader(source(path).schema()),
    "LogWriter": lambda path: JitdbDataSource(options={"path": str(path.with_name("y.log"))}).writer(
        source(path).schema(), False
    ),
}
HERE = {"function": "builtin_function_or_method", "source": "ABCMeta"}


def received(sent: object, program: str, *folders: Path) -> subprocess.CompletedProcess[bytes]:
    """What becomes of it in a Python of its own."""
    found = os.pathsep.join([*map(str, folders), *sys.path])
    environment = {**os.environ, "PYTHONPATH": found}
    return subprocess.run(
        [sys.executable, "-P", "-c", program],
        input=cloudpickle.dumps(sent),
        env=environment,
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize("name", SENT)
def test_what_is_sent(path: Path, other: Path, name: str) -> None:
    sent = SENT[name](path)
    there = received(sent, RECEIVES)
    assert there.stdout.decode().strip() == HERE.get(name, name), there.stderr
    for program, folders, got in (
        (RECEIVES, [other], rf"jitdb 0\.1\.7 in {other}/jitdb/__init__\.py"),
        (WITHOUT, [], "no jitdb"),
    ):
        told = received(sent, program, *folders).stderr.decode()
        error = worker_error(told)
        assert type(error) is VersionDiffers, told
        with pytest.raises(VersionDiffers, match=rf"expected jitdb {jitdb.__version__}, .* got {got}; install the"):
            raise error
        assert f"jitdb.spark_ext.errors.VersionDiffers: {error.reason}" in told


@pytest.mark.parametrize("name", SENT)
def test_here_it_is_what_it_was(path: Path, name: str) -> None:
    sent = SENT[name](path)
    for dumps in (pickle.dumps, cloudpickle.dumps):
        got = pickle.loads(dumps(sent))
        assert got in (len, JitdbDataSource) or vars(got) == {**vars(sent), "_stream": None} or vars(got) == vars(sent)


def test_workers_of_another_version(spark: Any, path: Path, other: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(spark.sparkContext.environment, "PYTHONPATH", str(other))
    with pytest.raises(VersionDiffers, match=r"got jitdb 0\.1\.7"):
        prebuild(spark, path, fields=["n"])
    assert not list(path.with_name("x.log.jitdb").glob("indexes/*.index"))
    monkeypatch.delitem(spark.sparkContext.environment, "PYTHONPATH")
    assert prebuild(spark, path, fields=["n"]).records == 1000
