"""Whole processes: importing, a count with fresh indexes, a count that scans.

Those of flat records are told in processor time, which other work on the machine changes less, in turns with the
import of numpy.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from jitdb import Log

from .data import FOLDER, big_log
from .measure import Figure, median_ms
from .questions import INDEXES, forget_indexes

_EXPRESSION = 'value.content.type == "post"'


def _python(*arguments: str, **environment: str) -> None:
    subprocess.run(
        [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env={**os.environ, **environment}
    )


def _count(**environment: str) -> None:
    _python("-m", "jitdb", "count", str(big_log()), _EXPRESSION, "--indexes", str(INDEXES), **environment)


def flat_log() -> Path:
    """336,776 msgpack records of 20 fields each, 85 MB: made if it is not there."""
    path = FOLDER / "flat.log"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        with Log(path) as log:
            log.append_many(_flight(number) for number in range(336_776))
    return path


_CODES = ("UA", "B6", "EV", "DL", "AA", "MQ", "US", "9E", "WN", "VX", "FL", "AS", "F9", "YV", "HA", "OO")
_NUMBERS = ("dep", "sched_dep", "dep_delay", "arr", "sched_arr", "arr_delay", "flight", "air_time", "distance", "hour")


def _flight(number: int) -> dict[str, object]:
    """Keys in one order, numbers and short texts of few and of many values."""
    return {
        "year": 2013, "month": number // 28065 + 1, "day": number // 923 % 28 + 1,
        **{name: number * step % 1440 for step, name in enumerate(_NUMBERS, 7)},
        "carrier": _CODES[number * number % 16], "tailnum": f"N{number * 31 % 4043:05}", "origin": "JFK",
        "dest": f"D{number * 17 % 105:03}", "minute": number % 60, "time_hour": f"2013-01-01T{number % 24:02}:00:00Z",
        "timestamp": 1357017300000 + 93_600 * number,
    }  # fmt: skip


def _processor_ms(*arguments: str) -> float:
    """Of a whole process, user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _python(*arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def _beside_numpy(
    question: str, floor: str, aim: str, *arguments: str, before: Callable[[], object] = lambda: None
) -> Figure:
    """Medians of 15 pairs, after one that does not count."""
    pairs = []
    for _ in range(16):
        before()
        pairs.append((_processor_ms("-m", "jitdb", *arguments), _processor_ms("-c", "import numpy")))
    ours, numpy = (statistics.median(times) for times in zip(*pairs[1:], strict=True))
    return Figure(question, ours / 1e3, "s", "import numpy", numpy / 1e3, floor, aim)


def from_flat() -> list[Figure]:
    """Counts of one value in flat records."""
    path = flat_log()
    count = ("count", str(path), 'carrier == "AA"')

    def forget() -> None:
        shutil.rmtree(f"{path}.jitdb/indexes", ignore_errors=True)

    return [
        _beside_numpy("`jitdb count` of a new field, flat records, CPU", "0.33 x", "0.45 x", *count, before=forget),
        _beside_numpy("`jitdb count`, flat records, fresh indexes, CPU", "0.83 x", "2 x", *count),
    ]


def run() -> list[Figure]:
    bare = median_ms(lambda: _python("-c", "pass"), 9)
    numpy = median_ms(lambda: _python("-c", "import numpy"), 9)
    imported = median_ms(lambda: _python("-c", "import jitdb"), 9)
    unindexed = median_ms(_count, 5, forget_indexes)
    fresh = median_ms(_count, 9)
    return [
        Figure("`import jitdb`, whole process", imported / 1e3, "s", "python alone", bare / 1e3, "0.15 s", "0.1 s"),
        Figure("`jitdb count`, fresh indexes, whole process", fresh / 1e3, "s", "import numpy", numpy / 1e3,
               "0.3 s", "0.2 s"),
        Figure("`jitdb count`, unindexed, whole process", unindexed / 1e3, "s", "", None, "0.8 s", "0.45 s"),
        *from_flat(),
    ]  # fmt: skip
