"""The session that people and tests get."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jitdb import Log
from jitdb.spark_ext.sessions import (
    held_back,
    keep_python,
    likely_master,
    prepare_environment,
    session,
    settings,
)


def test_workers_run_this_python(spark: Any) -> None:
    found = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect()
    assert found == [sys.executable]


def test_a_second_session_is_the_first(spark: Any, capfd: pytest.CaptureFixture[str]) -> None:
    assert session().sparkContext is spark.sparkContext
    assert session("local[1]").sparkContext.master == "local[2,2]"
    assert capfd.readouterr().err == ""


# --- who names the master --------------------------------------------------------------------------------------------


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine on which nobody has said anything about Spark, and none runs."""
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE", "MASTER", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setattr("jitdb.spark_ext.sessions._is_running", lambda: False)
    return monkeypatch


def test_where_nobody_names_a_master_it_is_this_machine(nobody: pytest.MonkeyPatch) -> None:
    assert likely_master(None, {}) == "local[*]"
    nobody.delenv("SPARK_CONF_DIR")
    assert likely_master(None, {}) == "local[*]"  # of the pyspark that is installed
    assert settings("local[*]", {})["spark.driver.host"] == "127.0.0.1"
    for name in ("SPARK_LOCAL_IP", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        nobody.setenv(name, "")  # as it was, afterwards
        nobody.delenv(name)
    nobody.setattr("jitdb.spark_ext.sessions.use_java", lambda: "java")
    prepare_environment(likely_master(None, {}))
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("name", "said", "expected"),
    [
        ("PYSPARK_GATEWAY_PORT", "4711", ""),
        ("SPARK_REMOTE", "sc://host", ""),
        ("MASTER", "yarn", "yarn"),
        ("PYSPARK_SUBMIT_ARGS", "--master yarn pyspark-shell", "yarn"),
        ("PYSPARK_SUBMIT_ARGS", "--conf 'spark.master=k8s://h' --name x pyspark-shell", "k8s://h"),
        ("PYSPARK_SUBMIT_ARGS", "--properties-file x.conf pyspark-shell", ""),
        ("PYSPARK_SUBMIT_ARGS", "--driver-memory 2g pyspark-shell", "local[*]"),
    ],
)
def test_who_names_a_master_in_the_environment(nobody: pytest.MonkeyPatch, name: str, said: str, expected: str) -> None:
    nobody.setenv(name, said)
    assert likely_master(None, {}) == expected
    assert likely_master("local[3]", {}) == likely_master(None, {"spark.master": "local[3]"}) == "local[3]"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("spark.master                     spark://host:7077", "spark://host:7077"),
        ("  spark.master=local[2]", "local[2]"),
        ("# spark.master yarn", "local[*]"),
        ("spark.remote sc://host", ""),
        ("spark.driver.memory 4g", "local[*]"),
    ],
)
def test_spark_defaults_name_a_master(nobody: pytest.MonkeyPatch, tmp_path: Path, line: str, expected: str) -> None:
    (tmp_path / "spark-defaults.conf").write_text(f"# what all programs get\nspark.x 1\n{line}\n")
    assert likely_master(None, {}) == expected
    nobody.setenv("PYSPARK_SUBMIT_ARGS", "--master yarn pyspark-shell")
    assert likely_master(None, {}) == "yarn"


def test_a_session_that_runs_keeps_its_settings(spark: Any) -> None:
    assert likely_master(None, {}) == ""


def test_local_workers_run_this_python_also_where_only_spark_knew() -> None:
    here, there = (SimpleNamespace(master=master, pythonExec="python3") for master in ("local[*]", "yarn"))
    keep_python(here)
    keep_python(there)
    assert (here.pythonExec, there.pythonExec) == (sys.executable, "python3")


def test_a_ctrl_c_comes_when_java_is_there() -> None:
    """In the middle of starting it, it would leave a Java that nobody is connected to."""
    steps = []
    before = signal.getsignal(signal.SIGINT)

    def start() -> None:
        with held_back():
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("started")
        steps.append("not interrupted")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert steps == ["started"]
    assert signal.getsignal(signal.SIGINT) is before
    other = threading.Thread(target=lambda: held_back().__enter__())  # where no signals come, and none can be set
    other.start()
    other.join()


def test_a_relative_path_is_one_of_this_program(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from engine_helpers import make_log

    from jitdb.spark_ext import read_log

    make_log(tmp_path / "x.log", 30)
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert read_log(spark, "x.log", ["value.author"]).count() == read_log(spark, Path("x.log")).count() > 0
    assert "replaced" not in capfd.readouterr().err  # the format is made known once


def test_two_sessions_of_one_program(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark asks the active session whether a name is taken."""
    from jitdb.spark_ext import read_log

    with Log(tmp_path / "x.log") as log:
        log.append_many([{"n": n} for n in range(5)])
    monkeypatch.setattr(type(spark), "_instantiatedSession", spark)  # a new one takes its place
    other = spark.newSession()
    for each in (spark, other, spark, other, spark):
        assert read_log(each, tmp_path / "x.log", ["n"]).count() == 5
