"""JSON Lines where they lie, beside whoever else reads such files: first counts as CPU time, one field and five.

Three files of some 120 MB: the flights (flat), the messages of the big log (nested), and records that hold each of
twenty fields or not, by chance (irregular). "In a process" is a process that has asked once already, of which the
median of some further first counts is taken: jitdb's indexes are removed before each. What is not installed is left
out, and said. Then 300 files of a megabyte are counted, beside one that holds the same lines. JITDB_BENCH_RUNS is how
many runs a median is of.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

import jitdb

from ..data import FOLDER
from ..measure import Figure
from ..peers import ndjson
from .flat import flights

RUNS: Final = int(os.environ.get("JITDB_BENCH_RUNS", "5"))
_NESTED: Final = 28  # times the messages of the fixture
_IRREGULAR: Final = 400_000  # records
_FILES: Final = 300  # of a megabyte each
_TYPE: Final = "json_extract_string(value, '$.content.type')"

_TIMED: Final = """
import statistics, sys, time
def timed(count, runs, before=lambda: None):
    taken = []
    for _ in range(runs + 1):
        before()
        cpu, wall = time.process_time(), time.perf_counter()
        found = count()
        taken.append((time.process_time() - cpu, time.perf_counter() - wall))
    print(found, *(statistics.median(each) for each in zip(*taken[1:])))
"""


class Case(NamedTuple):
    """A file and a question, in everybody's words. `line`: what grep looks for, where that is the same question."""

    name: str
    path: Path
    jitdb: str
    duckdb: str
    polars: str = ""
    line: str = ""


def cases() -> list[Case]:
    flat, nested, irregular = flights(), ndjson(_NESTED), irregular_lines()
    one = Case(
        "flat, one field", flat, 'carrier == "UA"', "select count(*) from read_json_auto('{}') where carrier = 'UA'",
        "pl.col('carrier') == 'UA'", '"carrier": "UA"',
    )  # fmt: skip
    five = Case(
        "flat, five fields", flat,
        'carrier == "UA" and origin == "EWR" and month == 3 and dest == "SFO" and hour == 9',
        "select count(*) from read_json_auto('{}') where carrier = 'UA' and origin = 'EWR' and month = 3 "
        "and dest = 'SFO' and hour = 9",
        "(pl.col('carrier') == 'UA') & (pl.col('origin') == 'EWR') & (pl.col('month') == 3) "
        "& (pl.col('dest') == 'SFO') & (pl.col('hour') == 9)",
    )  # fmt: skip
    inside = Case(
        "nested, one field", nested, 'value.content.type == "post"',
        "select count(*) from read_json('{}', format = 'newline_delimited', columns = {{value: 'json'}}) "
        f"where {_TYPE} = 'post'",
    )  # fmt: skip
    some = Case(
        "irregular, one field", irregular, 'field_7 == "c"',
        "select count(*) from read_json_auto('{}') where field_7 = 'c'", "pl.col('field_7') == 'c'",
        '"field_7": "c"',
    )  # fmt: skip
    return [one, five, inside, some]


def irregular_lines() -> Path:
    path = FOLDER / "irregular.ndjson"
    if not path.exists():
        chance = random.Random(7)
        temporary = path.with_suffix(".tmp")
        with open(temporary, "w") as file:
            for number in range(_IRREGULAR):
                record: dict[str, object] = {"id": number}
                for field in range(20):
                    if chance.random() < 0.5:
                        record[f"field_{field}"] = chance.choice("abcdefgh") if field % 2 else chance.randrange(10**6)
                record["text"] = "x" * chance.randrange(120)
                file.write(json.dumps(record) + "\n")
        temporary.rename(path)
    return path


def _forget(path: Path) -> None:
    jitdb.forget(path)


def _in_process(program: str) -> tuple[int, float, float]:
    """The count, and the milliseconds of CPU and of wall time of a further one."""
    done = subprocess.run([sys.executable, "-c", _TIMED + program], check=True, capture_output=True, text=True)
    found, cpu, wall = done.stdout.split()[-3:]
    return int(found), 1e3 * float(cpu), 1e3 * float(wall)


def _programs(case: Case) -> dict[str, str]:
    path = str(case.path)
    known = {
        "jitdb": f"import jitdb\nfrom jitdb.operators.text.expression import parse_expression\n"
        f"question = parse_expression({case.jitdb!r})\n"
        f"def count():\n    with jitdb.open({path!r}) as db:\n        return db.count(question)\n"
        f"timed(count, {RUNS}, lambda: jitdb.forget({path!r}))",
        "duckdb": f"import duckdb\nduckdb.execute('set threads = 2')\n"
        f"timed(lambda: duckdb.sql({case.duckdb.format(path)!r}).fetchall()[0][0], {RUNS})",
        "polars": f"import polars as pl\n"
        f"timed(lambda: pl.scan_ndjson({path!r}).filter({case.polars})"
        f".select(pl.len()).collect().item(), {RUNS})",
        "chdb": f"import chdb\ntimed(lambda: int(str(chdb.query("
        f"{case.duckdb.replace('read_json_auto', 'file').format(path)!r}))), {RUNS})",
    }
    wanted = {"jitdb", "duckdb", *(("polars", "chdb") if case.polars else ())}
    return {name: known[name] for name in known if name in wanted and find_spec(name)}


def _process(command: list[str], before: Callable[[], object] = lambda: None) -> float:
    """Milliseconds of CPU of a whole process: the median."""
    taken = []
    for _ in range(RUNS):
        before()
        begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime)
    return 1e3 * statistics.median(taken)


def _of(case: Case) -> Iterator[Figure]:
    found = {name: _in_process(program) for name, program in _programs(case).items()}
    counts = {name: each[0] for name, each in found.items()}
    assert len(set(counts.values())) == 1, counts
    _, cpu, wall = found.pop("jitdb")
    for name, (_, peer_cpu, peer_wall) in found.items():
        yield Figure(f"{case.name}: first count in a process, CPU", cpu, "ms", name, peer_cpu)
        yield Figure(f"{case.name}: the same, wall", wall, "ms", name, peer_wall)
    for name in ("grep", "rg"):
        if case.line and shutil.which(name):
            peer = _process([name, "-c", case.line, str(case.path)])
            yield Figure(f"{case.name}: first count in a process, CPU", cpu, "ms", f"{name} -c", peer)
    size = sum(kept.bytes for kept in jitdb.kept(case.path))
    yield Figure(f"{case.name}: indexes, of the file", 100 * size / case.path.stat().st_size, "%")


def _many() -> tuple[Path, Path]:
    """A folder of files, and a file with all of their lines."""
    folder, whole = FOLDER / "many-files", FOLDER / "many-files.ndjson"
    if not whole.exists():
        folder.mkdir(exist_ok=True)
        text, begin = flights().read_bytes(), 0
        temporary = whole.with_suffix(".tmp")
        with open(temporary, "wb") as file:
            for number in range(_FILES):
                begin = 0 if begin + (2 << 20) > len(text) else begin
                end = text.index(b"\n", begin + (1 << 20)) + 1
                (folder / f"{number:04}.ndjson").write_bytes(text[begin:end])
                file.write(text[begin:end])
                begin = end
        temporary.rename(whole)
    return folder, whole


def _of_many() -> Iterator[Figure]:
    """Files that are small, beside one: the first time, and again by a set that is opened anew."""
    folder, whole = _many()
    program = (
        "import jitdb\nfrom jitdb.operators import field\n"
        "def count():\n    with jitdb.open_many({path!r}) as logs:\n"
        "        return logs.count(field('carrier') == 'UA')\n"
        "def forget():\n    jitdb.forget({path!r})\n"
        "timed(count, {runs}, {before})"
    )
    for what, before in (("first count", "forget"), ("count again, opened anew", "lambda: None")):
        many, one = (_in_process(program.format(path=str(path), runs=RUNS, before=before)) for path in (folder, whole))
        assert many[0] == one[0]
        yield Figure(f"{_FILES} files of 1 MB: {what}, CPU", many[1], "ms", "one file", one[1])


def run() -> Iterator[Figure]:
    """Told one by one: a run takes some minutes."""
    for case in cases():
        yield from _of(case)
        if case.name == "flat, one field":
            whole = [sys.executable, "-m", "jitdb", "count", str(case.path), case.jitdb]
            taken = _process(whole, partial(_forget, case.path))
            numpy = _process([sys.executable, "-c", "import numpy"])
            yield Figure("flat, one field: whole process, CPU", taken, "ms", "import numpy", numpy)
        _forget(case.path)
    yield from _of_many()
    for name in ("polars", "chdb"):
        if not find_spec(name):
            print(f"{name} is not installed, and left out", file=sys.stderr)
