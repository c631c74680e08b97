"""What if it does not fit one machine? A Spark cluster builds the same index files, and reads logs as tables.

    from jitdb.spark_ext import prebuild, read_log, session

    spark = session("local[*]")
    print(prebuild(spark, "ssb.log", fields=["value.content.type", "value.author"]))
    read_log(spark, "ssb.log", ["value.author"], 'value.content.type == "post"').show()

Needs `pip install 'jitdb[spark]'`. Importing this package alone imports no pyspark.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from jitdb.spark_ext.errors import missing_packages

__all__ = ["explain_log", "jitdb_errors", "prebuild", "push_down", "read_log", "register", "session"]

_LAZY = {
    "explain_log": "jitdb.spark_ext.data_source",
    "jitdb_errors": "jitdb.spark_ext.errors",
    "prebuild": "jitdb.spark_ext.building.prebuild",
    "push_down": "jitdb.spark_ext.pushdown",
    "read_log": "jitdb.spark_ext.data_source",
    "register": "jitdb.spark_ext.data_source",
    "session": "jitdb.spark_ext.sessions",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        try:
            return getattr(import_module(_LAZY[name]), name)
        except ModuleNotFoundError as error:
            raise missing_packages(error) from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
