"""A Spark session with what jitdb wants of one: a Java, this Python, short ways between them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

from jitdb.spark_ext.errors import missing_packages
from jitdb.spark_ext.java import use_java

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
    """A session, or the one that there is.

    master: "local[4]", "local[2,3]" (each task is tried three times), "spark://host:7077", "yarn", "k8s://…"; None
            leaves it to spark-submit and spark-defaults.conf
    conf:   Spark's settings, by their names: session("local[2]", **{"spark.driver.memory": "4g"})

    Raises JavaMissing, SparkError where pyspark is not installed.
    """
    prepare_environment(master or "")
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise missing_packages(error) from error
    builder = SparkSession.builder.appName(app)
    if master is not None:
        builder = builder.master(master)
    for name, value in settings(master or "", conf).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


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


def is_local(master: str) -> bool:
    """Whether all of Spark runs on this machine.

    >>> is_local("local[2]"), is_local("local-cluster[2,1,512]"), is_local("yarn")
    (True, True, False)
    """
    return master.startswith("local")
