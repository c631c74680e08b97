"""Writing rows with Spark: processor time beside Parquet and JSON, of the same cached rows.

    python -m benchmarks.spark.writing FLIGHTS.ndjson

The least of three runs each, after one that does not count. Parquet is written without compression, as the log is.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from typing import Any

from ..data import FOLDER
from .processor import Spent, measured

SCHEMA = (
    "year int, month int, day int, dep_time int, carrier string, flight int, tailnum string, origin string, "
    "dest string, distance double, dep_delay double, arr_delay double, time_hour string"
)
RUNS = 4


def least(write: Callable[[], Any]) -> Spent:
    """What the cheapest run spent."""
    spent: list[Spent] = []
    for _ in range(RUNS):
        with measured(spent):
            write()
    return min(spent[1:], key=lambda each: each.total)


def main(path: str) -> None:
    """All figures, as a table."""
    from jitdb.spark_ext import register, session

    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    spark = session("local[2]", **quiet, **{"spark.sql.parquet.compression.codec": "none"})
    rows = spark.read.schema(SCHEMA).json(path).repartition(4).cache()
    print(f"{rows.count():,} rows of 13 columns\n\n| format | CPU | of it Java, workers |\n| --- | --- | --- |")
    register(spark)
    place = FOLDER / "written"

    def into(form: str, **options: str) -> None:
        spent = least(lambda: rows.write.format(form).options(**options).mode("overwrite").save(f"{place}.{form}"))
        name = " ".join([form, *options.values()])
        print(f"| {name} | {spent.total:.2f} | {spent.java:.2f}, {spent.workers:.2f} |", flush=True)

    into("parquet")
    into("json")
    into("jitdb", codec="json")
    into("jitdb", codec="msgpack")
    spark.stop()
    for left in FOLDER.glob("written.*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()


if __name__ == "__main__":
    main(sys.argv[1])
