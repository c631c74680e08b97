"""Which master a session will have. Java reads its environment when it starts, so that must be known before."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any, Final

_MASTER: Final = re.compile(r"""(?:--master|\bspark\.master)[\s=:]+["']?([^\s"']+)""")
_ELSEWHERE: Final = re.compile(r"--remote\b|\bspark\.remote\b|--properties-file\b")  # says it in words of its own


def is_local(master: str) -> bool:
    """Whether all of Spark runs on this machine.

    >>> is_local("local[2]"), is_local("local-cluster[2,1,512]"), is_local("yarn")
    (True, True, False)
    """
    return master.startswith("local")


def likely_master(master: str | None, conf: Mapping[str, Any]) -> str:
    """The master of a session that the program wants with these; empty where only Spark will know it.

    Where the program names none, Spark looks into the same places in this order; if none of them names one, it takes
    all cores of this machine.
    """
    wanted = master or conf.get("spark.master")
    if wanted:
        return str(wanted)
    if _is_running() or "PYSPARK_GATEWAY_PORT" in os.environ:  # or spark-submit has started it
        return ""
    if "SPARK_REMOTE" in os.environ or "spark.remote" in conf:
        return ""
    for said in (os.environ.get("PYSPARK_SUBMIT_ARGS", ""), _defaults()):
        if _ELSEWHERE.search(said):
            return ""
        if found := _MASTER.findall(said):
            return str(found[-1])
    return os.environ.get("MASTER") or "local[*]"


def _is_running() -> bool:
    pyspark = sys.modules.get("pyspark")
    return pyspark is not None and pyspark.SparkContext._active_spark_context is not None


def _defaults() -> str:
    """What spark-defaults.conf says, without its comments."""
    folder = os.environ.get("SPARK_CONF_DIR")
    if not folder:
        from pyspark.find_spark_home import _find_spark_home

        folder = os.path.join(_find_spark_home(), "conf")
    try:
        with open(os.path.join(folder, "spark-defaults.conf"), encoding="utf-8", errors="replace") as file:
            return "".join(line for line in file if not line.lstrip().startswith("#"))
    except OSError:
        return ""  # there need not be one, and Spark passes over one that it cannot read
