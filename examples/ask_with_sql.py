"""Ask a log with Polars, and in SQL with DuckDB: python examples/ask_with_sql.py

Both hand their conditions down to jitdb, which finds the records by its indexes.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import polars as pl

from jitdb.tables import scan_jitdb

with tempfile.TemporaryDirectory(prefix="jitdb-") as folder:
    path = Path(folder, "events.ndjson")
    subprocess.run([sys.executable, Path(__file__).with_name("make_events.py"), path], check=True)

    frame = scan_jitdb(path, times="us")
    slow = frame.filter(pl.col("level") == "error", pl.col("ms") > 1000)
    print(slow.group_by("service").agg(pl.len(), pl.col("ms").max()).sort("len", descending=True).collect())

    asked = """
        select service, count(*) as errors, round(avg(ms)) as ms
        from frame
        where level = 'error' and time >= timestamptz '2026-11-20T12:00:00Z'
        group by service order by errors desc, service limit 3
    """
    for _ in range(2):  # the second time from indexes alone
        begin = time.perf_counter()
        rows = duckdb.sql(asked).fetchall()
        print(f"{rows} in {1e3 * (time.perf_counter() - begin):.0f} ms")
