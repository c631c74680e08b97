"""A Spark session with what jitdb wants of one: a Java, this Python, short ways between them."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from jitdb.spark_ext.errors import missing_packages
from jitdb.spark_ext.java import use_java
from jitdb.spark_ext.masters import is_local, likely_master

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ALWAYS: Final = {
    # Python workers are reached by a socket file: a task costs 5 ms instead of 25.
    "spark.python.unix.domain.socket.enabled": "true",
}
_ON_ONE_MACHINE: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def session(master: str | None = None, *, app: str = "jitdb", **conf: Any) -> SparkSession:
    """A session, or the one that there is: its settings stay, but for those of `conf` that can change while it runs.

    master: "local[4]", "local[2,3]" (each task is tried three times), "spark://host:7077", "yarn", "k8s://…"; None
            leaves it to spark-submit and spark-defaults.conf, or else it is all cores of this machine
    conf:   Spark's settings, by their names: session("local[2]", **{"spark.driver.memory": "4g"})

    Raises JavaMissing, SparkError where pyspark is not installed.
    """
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise missing_packages(error) from error
    likely = likely_master(master, conf)
    has_python = "PYSPARK_PYTHON" in os.environ
    prepare_environment(likely)
    there = SparkSession.getActiveSession()
    if there is not None and not conf:
        return there
    wanted = {"spark.app.name": app, **settings(likely, conf)}
    if master is not None:
        wanted["spark.master"] = master
    _start_java(wanted)
    builder = SparkSession.builder
    for name, value in wanted.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    if not has_python and SparkContext._active_spark_context is not None:
        keep_python(SparkContext._active_spark_context)
    return made


def _start_java(conf: dict[str, Any]) -> None:
    """Start Spark's Java if none runs, as the builder of a session would.

    A Ctrl-C in the middle of it would leave a Java that nobody is connected to, for ever: it comes when it is there,
    and ends it then, or with the program.
    """
    from pyspark import SparkConf, SparkContext

    with held_back():
        SparkContext._ensure_initialized(conf=SparkConf().setAll([(name, str(conf[name])) for name in conf]))


@contextmanager
def held_back() -> Iterator[None]:
    """A Ctrl-C meanwhile comes at the end."""
    if threading.current_thread() is not threading.main_thread():
        yield  # no signal interrupts other threads
        return
    came: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda *told: came.append(told))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came and callable(before):
        before(*came[0])


def settings(master: str, conf: dict[str, Any]) -> dict[str, Any]:
    """All settings of a session; `conf` is what the user wants."""
    return {**_ALWAYS, **(_ON_ONE_MACHINE if is_local(master) else {}), **conf}


def prepare_environment(master: str) -> None:
    """Set what Spark reads from the environment when its Java starts. What the user has set stays."""
    use_java()
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # Workers run on this machine: any other Python than this one may lack the packages.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def keep_python(context: Any) -> None:
    """Workers on this machine run this Python, also where only Spark knew that they would be here."""
    if is_local(context.master):
        context.pythonExec = sys.executable
