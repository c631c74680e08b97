"""What if it does not fit one machine? A Spark cluster builds the same index files, and reads logs as tables.

    from jitdb.spark_ext import prebuild, session

    spark = session("local[*]")
    print(prebuild(spark, "ssb.log", fields=["value.content.type", "value.author"]))

Needs `pip install 'jitdb[spark]'`. Importing this package alone imports no pyspark.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["prebuild", "session"]

_LAZY = {"prebuild": "jitdb.spark_ext.prebuilding", "session": "jitdb.spark_ext.sessions"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
