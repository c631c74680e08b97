"""A text whose field nobody knows, records to read, and pipes: jitdb beside ripgrep, jq, Miller and lnav.

Flights of flat.py (123 MB) and the requests of formats.py (69 MB), as whole processes; milliseconds, medians of
JITDB_BENCH_RUNS runs in turns. What is not installed is left out.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import jitdb

from ..measure import number, seconds
from .flat import flights
from .formats import log_of
from .tools import RUNS, Row

TOOLS: Final = ("jitdb", "rg", "jq", "Miller", "lnav")
_ME: Final = f"{sys.executable} -m jitdb"


class Task(NamedTuple):
    """What is done with each tool, as a line of a shell; `{}` stands for the file.

    forgets: before each run jitdb's indexes are dropped
    before:  of jitdb alone, not timed
    """

    name: str
    path: Path
    tools: dict[str, str]
    forgets: bool = False
    before: str = ""


def tasks() -> list[Task]:
    flat, requests = flights(), log_of("JSON Lines")
    find, other = f"{_ME} find {{}} ", f"{_ME} count {{}} '* contains \"no such text\"'"
    return [
        Task("a text, the first that is asked", flat, {"jitdb": find + "N14228", "rg": "rg N14228 {}"}, True),
        Task("another, in 111 records", flat, {"jitdb": find + "N14228", "rg": "rg N14228 {}"}, True, other),
        Task("another, in none", flat, {"jitdb": find + "N1422899", "rg": "rg N1422899 {} || true"}, True, other),
        Task("the same again", flat, {"jitdb": find + "N14228", "rg": "rg N14228 {}"}, False, find + "N14228"),
        Task("the ten newest errors, to read", requests, {
            "jitdb": f"{_ME} query {{}} 'level == \"error\"' --descending -n 10 --format pretty",
            "rg": "rg '\"level\": \"error\"' {} | tail -n 10",
            "jq": "jq -c 'select(.level == \"error\")' {} | tail -n 10",
            "Miller": "mlr --ijsonl --oxtab filter '$level == \"error\"' then tail -n 10 {}",
            "lnav": "lnav -n -c ':filter-in \"error\"' {} | tail -n 10",
        }, False, f"{_ME} query {{}} 'level == \"error\"' --descending -n 10"),
        Task("how many of each level, from a pipe", requests, {
            "jitdb": f"cat {{}} | {_ME} values - level",
            "jq": "cat {} | jq -r .level | sort | uniq -c", "Miller": "cat {} | mlr --ijsonl count-distinct -f level",
            "rg": "cat {} | rg -o '\"level\": \"[a-z]*' | sort | uniq -c",
        }),
    ]  # fmt: skip


def run() -> Iterator[Row]:
    yield Row("", list(TOOLS))
    yield Row("---", ["---"] * len(TOOLS))
    programs = {"rg": "rg", "jq": "jq", "Miller": "mlr", "lnav": "lnav"}
    for task in tasks():
        tools = {name: line for name, line in task.tools.items() if name == "jitdb" or shutil.which(programs[name])}
        times: dict[str, list[float]] = {name: [] for name in tools}
        for _ in range(RUNS):
            if task.forgets:
                jitdb.forget(task.path)
            if task.before:
                _shell(task.before, task.path)
            for name, line in tools.items():
                times[name].append(1e3 * seconds(_shell, line, task.path))
        yield Row(task.name, [number(statistics.median(times[tool])) if tool in times else "" for tool in TOOLS])


def _shell(line: str, path: Path) -> None:
    subprocess.run(["sh", "-c", line.replace("{}", str(path))], check=True, capture_output=True)
