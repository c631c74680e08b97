"""Spark's daemon of Python workers, which has imported what each of them would (conftest.py).

PySpark comes from where it is installed, not from the archives that Spark names first: each worker would read their
tables of contents twenty times (`importlib.invalidate_caches()`), which takes it longer than most tasks of tests.
"""

import importlib
import os
import sys
from contextlib import suppress

for place in filter(os.path.isfile, sys.path.copy()):
    sys.path.remove(place)
    sys.path_importer_cache.pop(place, None)

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
    importlib.import_module("pyspark.daemon").manager()
