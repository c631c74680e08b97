"""Logs in object storage: whole processes that ask a store on this machine which answers after 20 ms and sends 200 MB a
second, and how many requests they make. Polars and, where its extension can be had, DuckDB beside.

2.5 GB of the flights of flat.py, each with a number: in 25 objects, and gzipped in 5,000. JITDB_BENCH_OBJECTS=250 (MB)
takes less.
"""

from __future__ import annotations

import gzip
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import cycle, islice
from pathlib import Path
from typing import Final, NamedTuple

from tests.objects.bucket import Bucket, serving

from ..data import FOLDER
from .flat import flights

SIZE: Final = int(os.environ.get("JITDB_BENCH_OBJECTS", "2500")) * 1_000_000
LATENCY: Final = 0.02  # seconds
RATE: Final = 200_000_000  # bytes a second
NEW: Final = 10  # objects that come later
_KEYS: Final = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
_POLARS: Final = """
import sys, polars
from polars import col
frame = polars.scan_ndjson(sys.argv[1], infer_schema_length=100)
print(frame.filter(col("carrier") == "UA").select(polars.len()).collect().item())
"""
_DUCKDB: Final = """
import os, sys, duckdb
db = duckdb.connect()
db.execute("load httpfs")
host = os.environ["AWS_ENDPOINT_URL"].removeprefix("http://")
db.execute(f"set s3_endpoint='{host}'; set s3_use_ssl=false; set s3_url_style='path'")
db.execute("set s3_access_key_id='key'; set s3_secret_access_key='secret'")
print(db.sql(f"select count(*) from read_json_auto('{sys.argv[1]}') where carrier = 'UA'").fetchone()[0])
"""


class Row(NamedTuple):
    cells: list[str]

    def row(self) -> str:
        return f"| {' | '.join(self.cells)} |"


def run() -> Iterator[Row]:
    yield Row(["objects", "question", "seconds", "of processor time", "requests", "MB read"])
    root = FOLDER / "objects"
    for count, ending in ((25, ""), (5000, ".gz")):
        folder = root / f"logs/n{count}-{SIZE // 1_000_000}"
        size = _make(folder, count, ending)
        with serving(root, LATENCY, RATE) as bucket:
            yield from _asked(bucket, f"s3://logs/{folder.name}/", f"{count:,}, {size / 1e6:,.0f} MB", ending)


def _make(folder: Path, count: int, ending: str) -> int:
    """The objects, unless they are there; bytes of all of them."""
    if not folder.is_dir():
        aside = folder.with_name(f"{folder.name}.new")
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        lines = cycle(flights().read_bytes().splitlines(keepends=True))
        number = 0
        for each in range(count + NEW):
            part, size = [], 0
            for line in lines:
                part.append(b'{"n":%d,%b' % (number, line[1:]))
                number, size = number + 1, size + len(line) + 10
                if size >= SIZE // count:
                    break
            _write(aside / _name(each, ending), b"".join(part))
        aside.rename(folder)
    for late in sorted(folder.iterdir())[count:]:
        late.rename(folder.parent / f".{folder.name}-{late.name}")
    return sum(path.stat().st_size for path in folder.iterdir())


def _name(number: int, ending: str) -> str:
    return f"{number:05d}.ndjson{ending}"


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)


def _asked(bucket: Bucket, place: str, what: str, ending: str) -> Iterator[Row]:
    cache = FOLDER / "objects-cache"
    shutil.rmtree(cache, ignore_errors=True)
    environment = {**os.environ, **_KEYS, "AWS_ENDPOINT_URL": bucket.url, "XDG_CACHE_HOME": str(cache)}
    environment.update(AWS_ALLOW_HTTP="true", AWS_ENDPOINT=bucket.url)
    for_all = [f"{place}*.ndjson{ending}", 'carrier == "UA"']

    def row(question: str, command: list[str]) -> Row:
        bucket.asked.clear()
        sent, begin = bucket.sent, time.perf_counter()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        took = time.perf_counter() - begin
        cells = [f"{took:.2f} s", f"{used:.2f} s", f"{len(bucket.asked):,}", f"{(bucket.sent - sent) / 1e6:,.0f}"]
        return Row([what, question, *cells])

    ask = [sys.executable, "-m", "jitdb"]
    yield row("first count", [*ask, "count", *for_all])
    yield row("count again", [*ask, "count", *for_all])
    late = sorted(Path(bucket.root, "logs").glob(f".{place.rstrip('/').rpartition('/')[2]}-*"))
    for path in islice(late, NEW):
        path.rename(Path(bucket.root, place.removeprefix("s3://"), path.name.partition("-")[2]))
    yield row("count after ten new objects", [*ask, "count", *for_all])
    yield row("the first question for one record", [*ask, "query", for_all[0], "n == 1234567"])
    yield row("another one", [*ask, "query", for_all[0], "n == 2345678"])
    for name, program in (("Polars, count", _POLARS), ("DuckDB, count", _DUCKDB)):
        with suppress(subprocess.CalledProcessError):
            yield row(name, [sys.executable, "-c", program, for_all[0]])
