"""The peers, on the same records and the same machine: the JavaScript jitdb, DuckDB, numpy's sum of the file."""

from __future__ import annotations

import json
import mmap
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import jitdb

from .data import FOLDER, REPEATS, big_log

HERE = Path(__file__).parent
THREADS = 2


@cache
def js_figures(runs: int = 3) -> dict[str, float]:
    """What benchmarks/js_jitdb/bench.js prints, the median of some processes; {} without node."""
    if shutil.which("npm") is None:
        return {}
    home = FOLDER / "js_jitdb"
    shutil.copytree(HERE / "js_jitdb", home, dirs_exist_ok=True)
    if not (home / "node_modules").exists():
        subprocess.run(["npm", "install", "--no-package-lock", "--silent"], cwd=home, check=True)
    found = []
    for _ in range(runs):
        printed = subprocess.run(
            ["node", "bench.js", big_log(), FOLDER / "js-indexes"], cwd=home, check=True, capture_output=True, text=True
        )
        found.append(json.loads(printed.stdout.splitlines()[-1]))
    return {
        name: float(np.median([row[name] for row in found]))
        for name, value in found[0].items()
        if isinstance(value, (int, float))
    }


@cache
def ndjson(repeats: int = REPEATS) -> Path:
    """The records of the big log as newline-delimited JSON."""
    log = big_log(repeats)
    path = FOLDER / f"{log.stem}.ndjson"
    if not path.exists():
        temporary = path.with_suffix(".tmp")
        with jitdb.open(log, "memory", read_only=True) as db, open(temporary, "w") as file:
            for record in db.log.stream():
                file.write(json.dumps(record.value, ensure_ascii=False) + "\n")
        temporary.rename(path)
    return path


@cache
def duck() -> Any:
    """A DuckDB connection with two threads."""
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"set threads = {THREADS}")
    connection.execute("set preserve_insertion_order = true")
    return connection


# `content` is text where it is encrypted, so it has no one type: DuckDB reads `value` as JSON and looks inside.
_SHAPE = "columns = {key: 'varchar', timestamp: 'double', value: 'json'}"
TYPE = "json_extract_string(value, '$.content.type')"


def duck_ndjson(where: str) -> int:
    """A count straight from the NDJSON file."""
    found = duck().execute(
        f"select count(*) from read_json('{ndjson()}', format = 'newline_delimited', {_SHAPE}) where {where}"
    )
    return int(found.fetchone()[0])


@cache
def duck_table() -> str:
    """The name of an in-memory table with the asked fields as columns."""
    duck().execute(
        f"create table big as select {TYPE} as type, json_extract_string(value, '$.author') as author, "
        "least(timestamp, cast(json_extract(value, '$.timestamp') as double)) as time, key "
        f"from read_json('{ndjson()}', format = 'newline_delimited', {_SHAPE})"
    )
    return "big"


def sum_of_file() -> int:
    """The floor: numpy's sum of the mapped file."""
    with open(big_log(), "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        numbers = np.frombuffer(mapped, np.uint64)
        total = int(numbers.sum())
        del numbers
    return total
