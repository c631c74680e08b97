"""Streaming, random access, and the memory of a first scan."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import deque

from jitdb import Log

from .data import big_log
from .measure import Figure, per_second
from .questions import INDEXES, forget_indexes

_SCAN = """
import sys
import jitdb
from jitdb.operators import equal

def resident(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name)) / 1024

db = jitdb.open(sys.argv[1], sys.argv[2], read_only=True)
import numpy, pyroaring, numba, jitdb.scan, jitdb.log.kernels, jitdb.log.codecs.bipf_kernels, jitdb.indexes.field_builder
before = resident("VmRSS")
db.count(equal("value.content.type", "post"))
print(resident("VmHWM") - before)
"""


def run() -> list[Figure]:
    with Log(big_log(), codec="bipf", read_only=True) as log:
        records = sum(1 for _ in log.stream(raw=True))
        raw = per_second(lambda: deque(log.stream(raw=True), 0), records)
        batches = per_second(lambda: deque(log.stream_batches(), 0), records)
        offsets = [record.offset for record in log.stream(raw=True)]
        chosen = random.Random(1).sample(offsets, 100_000)

        def get_all() -> None:
            get = log.get_raw
            for offset in chosen:
                get(offset)

        get_all()
        gets = per_second(get_all, len(chosen))
    return [
        Figure("stream of raw records", raw, "/s", "", None, "2,000,000", "4,000,000", "more"),
        Figure(
            "stream of batches of offsets and lengths", batches, "/s", "", None, "30,000,000", "100,000,000", "more"
        ),
        Figure("get by random offset, raw, warm", gets, "/s", "", None, "300,000", "1,000,000", "more"),
        Figure(
            "memory of a first scan, peak, the indexes' 15 MB included", memory(), "MB", "", None, "250 MB", "100 MB"
        ),
    ]


def memory() -> float:
    """How much the peak of a fresh process rises by its first scan."""
    forget_indexes()
    printed = subprocess.run(
        [sys.executable, "-c", _SCAN, big_log(), INDEXES], check=True, capture_output=True, text=True
    )
    return float(printed.stdout)
