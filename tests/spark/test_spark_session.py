"""The session that people and tests get."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from jitdb.spark_ext.sessions import held_back, session


def test_workers_run_this_python(spark: Any) -> None:
    found = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect()
    assert found == [sys.executable]


def test_a_second_session_is_the_first(spark: Any, capfd: pytest.CaptureFixture[str]) -> None:
    assert session().sparkContext is spark.sparkContext
    assert session("local[1]").sparkContext.master == "local[2,2]"
    assert capfd.readouterr().err == ""


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
