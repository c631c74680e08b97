"""What a question costs as the log grows: CPU time and peak memory of whole processes, DuckDB on Parquet beside.

The flights of flat.py over and over, each time with other numbers, a unique id, one of so many users that each has
20 records, and a text: 250,000 and 2,500,000 records, 0.12 and 1.2 GB. JITDB_BENCH_GROWTH=250,2500,25000 (thousands)
asks 12 GB, too. First all fields that are asked are indexed; then each question is asked again, in a new process.
The last columns say how many times more the second size costs than the first, which has a tenth of the records.
"""

from __future__ import annotations

import gzip
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Final, NamedTuple

import jitdb

from ..data import FOLDER
from .flat import flights
from .tools import duckdb_command, jitdb_command

SIZES: Final = [1000 * int(size) for size in os.environ.get("JITDB_BENCH_GROWTH", "250,2500").split(",")]
RUNS: Final = int(os.environ.get("JITDB_BENCH_RUNS", "3"))
FILES: Final = 1200
PACKED: Final = 120  # files, gzipped
_ROWS: Final = 250_000  # of the flights
_PER_USER: Final = 20
_WORDS: Final = [
    a + b for a in ("cata", "pro", "re", "de", "in", "sy", "dia", "a") for b in ("log", "file", "fund", "ly")
]
_STATUSES: Final = ((2, 503), (20, 500), (60, 404), (1000, 200))  # of 1,000, so many less are of it or one before
_MASK: Final = (1 << 64) - 1


_WATCH: Final = """
import os, resource, subprocess, sys, time
begin = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, time.perf_counter() - begin, used.ru_maxrss / 1e3)
"""


class Task(NamedTuple):
    """A question, and what DuckDB is asked; LOG stands for the table, NEEDLE for a text of which each run has another.

    OUT stands for a file that is written.

    first: asked without indexes
    files: asked of as many records in so many files; of PACKED gzipped ones
    """

    name: str
    jitdb: list[str]
    sql: str
    first: bool = False
    files: int = 1


class Cost(NamedTuple):
    """What a process took: seconds of CPU, seconds, and megabytes at most."""

    cpu: float
    wall: float
    peak: float

    def text(self) -> str:
        return f"{self.cpu:.2f} s, {self.wall:.2f} s, {self.peak:,.0f} MB"


class Row(NamedTuple):
    cells: list[str]

    def row(self) -> str:
        return f"| {' | '.join(self.cells)} |"


def tasks() -> list[Task]:
    five = " or ".join(f"{name} == 7" for name in ("carrier", "dest", "tailnum", "dep_delay", "hour"))
    first = "select count(*) from LOG where carrier = 'UA'"
    return [
        Task("first count", ["count", 'carrier == "UA"'], first, first=True),
        Task("first count by five fields", ["count", five], first, first=True),
        Task("count again", ["count", 'carrier == "UA" and dest == "LAX"'],
             "select count(*) from LOG where carrier = 'UA' and dest = 'LAX'"),
        Task("the newest 10", ["query", 'carrier == "AA"', "--descending", "-n", "10"],
             "select * from LOG where carrier = 'AA' order by timestamp desc limit 10"),
        Task("one user of many", ["count", 'user == "u7"'], "select count(*) from LOG where \"user\" = 'u7'"),
        Task("most frequent of many users", ["values", "user", "-n", "10"],
             'select "user", count(*) as n from LOG group by 1 order by n desc limit 10'),
        Task("p99 by carrier", ["stats", "dep_delay", "--by", "carrier"],
             "select carrier, count(*), avg(dep_delay), stddev(dep_delay), min(dep_delay), max(dep_delay), "
             "quantile_disc(dep_delay, [0.5, 0.9, 0.99]) from LOG group by 1"),
        Task("sums by tail number", ["stats", "distance", "--by", "tailnum", "-n", "10"],
             "select tailnum, sum(distance), count(*) as n from LOG group by 1 order by n desc limit 10"),
        Task("p99 of one carrier by tail number", ["stats", "dep_delay", 'carrier == "AA"', "--by", "tailnum"],
             "select tailnum, quantile_disc(dep_delay, 0.99), count(*) as n from LOG where carrier = 'AA' group by 1"),
        Task("distinct users a day", ["stats", "user", "--distinct", "--every", "1d"],
             'select timestamp // 86400000, count(distinct "user") from LOG group by 1'),
        Task("a count a day", ["timeline", "--every", "1d"],
             "select timestamp // 86400000, count(*) from LOG group by 1"),
        Task("a rare text, another each time", ["count", 'text contains "NEEDLE"'],
             "select count(*) from LOG where contains(text, 'NEEDLE')"),
        Task("two columns as CSV", ["query", "--fields", "carrier,dep_delay", "--format", "csv", "-o", "OUT"],
             "copy (select carrier, dep_delay from LOG) to 'OUT' (format csv)"),
        Task("the five largest", ["query", "--sort", "-distance", "-n", "5"],
             "select * from LOG order by distance desc limit 5"),
        Task("the newest 10 of 1,200 files, first", ["query", "--descending", "-n", "10"],
             "select * from LOG order by timestamp desc limit 10", first=True, files=FILES),
        Task("the newest 10 of 1,200 files, again", ["query", "--descending", "-n", "10"],
             "select * from LOG order by timestamp desc limit 10", files=FILES),
        Task("a count of 1,200 files, again", ["count", 'carrier == "UA"'], first, files=FILES),
        Task("first count of 120 gzipped files", ["count", 'carrier == "UA"'], first, first=True, files=PACKED),
        Task("a count of 120 gzipped files, again", ["count", 'carrier == "UA"'], first, files=PACKED),
        Task("the newest 10 of 120 gzipped files, again", ["query", "--descending", "-n", "10"],
             "select * from LOG order by timestamp desc limit 10", files=PACKED),
    ]  # fmt: skip


def run() -> Iterator[Row]:
    yield Row(["", *(f"{tool}, {size / 1e6:g} million" for size in SIZES for tool in ("jitdb", "DuckDB")), "growth"])
    yield Row(["---"] * (2 * len(SIZES) + 2))
    places = {(size, files): log_of(size, files) for size in SIZES for files in (1, FILES, PACKED)}
    tables = {size: _parquet(size, places[size, 1]) for size in SIZES}
    for task in tasks():
        cells, costs = [], []
        for size in SIZES:
            for _ in range(0 if task.first else 2):  # indexes what it needs; a text from the second on
                _jitdb(task, places[size, task.files])
            ours = _median([_jitdb(task, places[size, task.files]) for _ in range(RUNS)])
            theirs = _median([_duckdb(task, tables[size]) for _ in range(RUNS)])
            cells += [ours.text(), theirs.text()]
            costs.append(ours)
        growth = [f"{b.cpu / a.cpu:.1f}, {b.peak / a.peak:.1f}" for a, b in pairwise(costs)]
        yield Row([task.name, *cells, "; ".join(growth)])
    kept = [sum(each.bytes for each in jitdb.kept(places[size, 1])) for size in SIZES]
    held = [
        number for size, bytes_ in zip(SIZES, kept, strict=True) for number in (bytes_, tables[size].stat().st_size)
    ]
    yield Row(["MB beside the file", *(f"{number / 1e6:,.0f}" for number in held), ""])


def _jitdb(task: Task, path: Path) -> Cost:
    if task.first:
        jitdb.forget(path)
    return _cost(jitdb_command(list(map(_filled, task.jitdb)), path))


def _duckdb(task: Task, table: Path) -> Cost:
    statement = task.sql.replace("LOG", f"read_parquet('{table}')")
    return _cost(duckdb_command(f"set threads = 2; {_filled(statement)}"))


def _filled(words: str) -> str:
    """With another rare text, and where to write."""
    text = f"/{random.choice(_WORDS)}/{random.randrange(10_000, 100_000)} "
    return words.replace("NEEDLE", text).replace("OUT", str(FOLDER / "growth.out"))


def _cost(command: list[str]) -> Cost:
    # By way of a small process: what the system calls the peak of a process is at least what its parent held.
    told = subprocess.run([sys.executable, "-S", "-c", _WATCH, *command], check=True, stdout=subprocess.PIPE, text=True)
    return Cost(*map(float, told.stdout.split()))


def _median(costs: list[Cost]) -> Cost:
    return Cost(*map(statistics.median, zip(*costs, strict=True)))


def log_of(size: int, files: int) -> Path:
    """So many records as one file, or as several of a folder, gzipped if they are PACKED; made if it is not there."""
    path = FOLDER / f"growth-{size}{ {1: '.ndjson', PACKED: '-packed'}.get(files, '') }"
    if not path.exists():
        temporary = path.with_suffix(".tmp")
        if files > 1:
            temporary.mkdir(parents=True)
        lines = _lines(size)
        for number in range(files):
            name = f"{number:04}.ndjson{'.gz' if files == PACKED else ''}"
            with (gzip.open if files == PACKED else open)(temporary / name if files > 1 else temporary, "wt") as file:
                file.writelines(islice(lines, -(-size // files)))
        temporary.rename(path)
    return path


def _lines(size: int) -> Iterator[str]:
    with open(flights()) as file:
        rows = [_parts(line) for line in islice(file, _ROWS)]
    users = max(1, size // _PER_USER)
    for number in range(size):
        round_, at = divmod(number, _ROWS)
        begin, tail, end = rows[at]
        one = _mixed(number)
        two = _mixed(one)
        words = _WORDS[one >> 8 & 31], _WORDS[two >> 8 & 31], _WORDS[two >> 16 & 31]
        status = next(status for below, status in _STATUSES if (two >> 40) % 1000 < below)
        time = 1_700_000_000_000 + number * 100 + one % 5000
        text = (
            f"GET /api/{words[0]}/{(one >> 16) % 100_000} {status} "
            f"took {(one >> 40) % 3000} ms for {words[1]} {words[2]}"
        )
        tail = f"{tail}-{round_}" if tail and round_ else tail
        yield f'{begin}{tail}{end}{time}, "id": "{one:016x}", "user": "u{two % users}", "text": "{text}"}}\n'


def _parts(line: str) -> tuple[str, str, str]:
    """What is before the tail number, the number, and what is behind it up to the time; without one, all is before."""
    line = line[: line.index('"timestamp": ') + len('"timestamp": ')]
    begin, mark, rest = line.partition('"tailnum": "')
    tail, quote, end = rest.partition('"')
    return begin + mark, tail, quote + end


def _mixed(number: int) -> int:
    """A number as by chance, by splitmix64."""
    number = (number + 0x9E3779B97F4A7C15) & _MASK
    number = ((number ^ number >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ number >> 27) * 0x94D049BB133111EB) & _MASK
    return number ^ number >> 31


def _parquet(size: int, path: Path) -> Path:
    table = FOLDER / f"growth-{size}.parquet"
    if not table.exists():
        subprocess.run(
            duckdb_command(f"copy (from read_json_auto('{path}')) to '{table}' (format parquet)"), check=True
        )
    return table
