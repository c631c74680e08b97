"""Streaming, random access, and the memory of a first scan."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import deque
from pathlib import Path

from jitdb import Log

from ..data import FOLDER, big_log
from ..measure import Figure, per_second
from ..questions import INDEXES, forget_indexes
from .writing import remove

COUNT = 1_000_000

_SCAN = """
import sys
import jitdb
from jitdb.operators import equal

def resident(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name)) / 1024

db = jitdb.open(sys.argv[1], sys.argv[2], read_only=True)
import numpy, pyroaring, jitdb.engine.building.scan, jitdb.log.blocks.walk_kernels
import jitdb.log.codecs.locate_kernels, jitdb.indexes.kinds.set_builders
before = resident("VmRSS")
db.count(equal("value.content.type", "post"))
print(resident("VmHWM") - before)
"""


def run() -> list[Figure]:
    path = small_records()
    with Log(path, read_only=True) as log:
        raw = per_second(lambda: deque(log.stream(raw=True), 0), COUNT)
        batches = per_second(lambda: deque(log.stream_batches(), 0), COUNT, 9)
        offsets = [record.offset for record in log.stream(raw=True)]
        chosen = random.Random(1).sample(offsets, 200_000)

        def get_all() -> None:
            get = log.get_raw
            for offset in chosen:
                get(offset)

        get_all()
        gets = per_second(get_all, len(chosen))
    remove(path)
    return [
        Figure("stream of raw records, 150 bytes", raw, "/s", "", None, "2,000,000", "4,000,000", "more"),
        Figure(
            "stream of batches of offsets and lengths", batches, "/s", "", None, "30,000,000", "100,000,000", "more"
        ),
        Figure("get by random offset, raw, warm", gets, "/s", "", None, "300,000", "1,000,000", "more"),
        Figure(
            "memory of a first scan, peak, the indexes' 15 MB included", memory(), "MB", "", None, "250 MB", "100 MB"
        ),
    ]


def small_records() -> Path:
    """A log of COUNT records of 150 bytes."""
    path = FOLDER / "small-records.log"
    remove(path)
    with Log(path, codec="raw") as log:
        log.append_many([b"\x01" + random.randbytes(149)] * COUNT)
    return path


def memory() -> float:
    """How much the peak of a fresh process rises by its first scan."""
    forget_indexes()
    printed = subprocess.run(
        [sys.executable, "-c", _SCAN, big_log(), INDEXES], check=True, capture_output=True, text=True
    )
    return float(printed.stdout)
