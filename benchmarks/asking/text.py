"""What is looked for in messages that all differ: in one scan, without a dictionary; by processor time, on one thread.

The peer is `grep -c`, which looks for the same in the whole lines.
"""

from __future__ import annotations

import os
import random
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import jitdb
from jitdb.operators import contains, like, matches
from jitdb.operators.nodes.operation import Operation

from ..data import FOLDER
from ..measure import Figure, median_ms_each

RECORDS: Final = 600_000
RUNS: Final = 5


def run() -> Iterator[Figure]:
    """Figures of each operator the first time, and of the first of them again."""
    path = _messages()
    size = path.stat().st_size
    asked: dict[str, Callable[[str], Operation]] = {
        "contains": lambda part: contains("message", part),
        "icontains": lambda part: contains("message", part, ignore_case=True),
        "like": lambda part: like("message", f"%{part}%7"),
        "matches": lambda part: matches("message", f"{part}\\w+ 7"),
    }
    grep = size / 1e9 / _cpu(lambda: subprocess.run(["grep", "-c", "zzq", path], capture_output=True), children=True)
    jitdb.forget(path)
    with jitdb.open(path, read_only=True, threads=1, progress=False) as db:
        db.warns_empty = False
        db.count(contains("level", "x"))  # so that there are the indexes that all questions need
        for name, made in asked.items():
            times = [_cpu(lambda part=f"zz{number}q": db.count(made(part))) for number in range(RUNS)]  # noqa: B023
            peer = ("grep -c", grep) if name == "contains" else ("", None)
            speed = size / 1e9 / statistics.median(times)
            yield Figure(f"`{name}`, the first time", speed, "GB/s", *peer, aim="1 GB/s", better="more")
        question = contains("message", "zz0q")
        yield Figure("`contains`, again", median_ms_each(lambda: db.count(question)), "ms", aim="1 ms")


def _cpu(work: Callable[[], object], children: bool = False) -> float:
    """Seconds of the processor."""
    if not children:
        begin = time.process_time()
        work()
        return time.process_time() - begin
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _messages() -> Path:
    """Lines of a program that says something else each time, 200 MB."""
    path = FOLDER / "messages.ndjson"
    if not path.exists():
        made = random.Random(5)
        words = ["".join(made.choices("abcdefghijklmnopqrstuvwxyz", k=made.randint(2, 11))) for _ in range(5000)]
        with open(f"{path}.tmp", "w") as file:
            for number in range(RECORDS):
                text = " ".join(made.choices(words, k=38))
                file.write(f'{{"time":{number},"level":"info","message":"{text} {number}"}}\n')
        os.rename(f"{path}.tmp", path)
    return path
