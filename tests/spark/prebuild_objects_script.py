"""Run by test_spark_objects.py: python prebuild_objects_script.py URL FOLDER. A program of its own, because Spark's
processes keep the environment in which they begin, and credentials stand there.
"""

from __future__ import annotations

import json
import sys

from jitdb.spark_ext import prebuild, read_log, session

url, folder = sys.argv[1:]
spark = session("local[2]", **{"spark.ui.enabled": "false", "spark.log.level": "ERROR"})
first = prebuild(spark, url, fields=["level"], indexes=["n"], folder=folder, range_bytes="5k")
again = prebuild(spark, url, fields=["level"], indexes=["n"], folder=folder)
rows = read_log(spark, url, ["n"], 'level == "error" and n >= 1500', index_folder=folder).count()
print(json.dumps({"first": [first.tasks, first.records, str(first)], "again": [again.tasks, str(again)], "rows": rows}))
spark.stop()
