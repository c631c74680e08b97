"""A prebuild over Spark Connect, server and all in this process tree. Run by test_spark_connect.py."""

from __future__ import annotations

import sys
from pathlib import Path

from engine_helpers import QUESTIONS, make_log
from range_cases import files_of, merged_files

from jitdb import Log
from jitdb.operators import equal, predicate
from jitdb.spark_ext import prebuild
from jitdb.spark_ext.errors import CopyDiffers, SparkError
from jitdb.spark_ext.sessions import prepare_environment


def main(folder: Path) -> None:
    from pyspark.sql import SparkSession

    prepare_environment("local")
    spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        path = folder / "x.log"
        make_log(path, 3000)
        wanted = {3, 5}
        questions = [*QUESTIONS, predicate("value.sequence", lambda value: value % 7 in wanted, name="some")]
        questions.append(equal("value.content.text", "text 1"))
        summary = prebuild(spark, path, operations=questions, range_bytes=80 * 1024)
        print(summary)
        assert summary.tasks > 3
        with Log(path, read_only=True) as log:
            assert files_of(log.sidecar / "indexes") == merged_files(log, folder / "locally", questions)
        try:
            prebuild(spark, path.as_uri(), fields=["a"])
        except SparkError as error:
            print(error)
        else:
            raise AssertionError
        told_of_copies(spark, folder)
        print("the same files")
    finally:
        spark.stop()


def told_of_copies(spark: object, folder: Path) -> None:
    from test_spark_prebuild import Substituting

    make_log(folder / "y.log", 100)
    operation = predicate("value.author", Substituting(folder / "y.log", None), name="all")
    try:
        prebuild(spark, folder / "y.log", operations=[operation])  # type: ignore[arg-type]
    except CopyDiffers as error:
        print(error)
    else:
        raise AssertionError


if __name__ == "__main__":
    main(Path(sys.argv[1]))
