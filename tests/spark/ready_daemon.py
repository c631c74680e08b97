"""Spark's daemon of Python workers, which has imported what each of them would (conftest.py)."""

import importlib
import sys
from contextlib import suppress

import pyspark.daemon

#: What a worker needs to plan, read, write, and build.
JITDB = (
    "spark_ext.data_source", "spark_ext.reading.planning", "spark_ext.reading.line_reader", "spark_ext.writing.job",
    "spark_ext.streaming.stream", "spark_ext.building.scanning", "engine.database", "engine.building.scan",
    "log.codecs.json.codec", "log.codecs.msgpack.codec",
)  # fmt: skip

if __name__ == "__main__":
    for name in (sys.argv[1], "pandas", "pyarrow", *(f"jitdb.{module}" for module in JITDB)):
        with suppress(ImportError):  # the worker's own tells that, if it needs it
            importlib.import_module(name)
    pyspark.daemon.manager()
