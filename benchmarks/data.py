"""The log that the benchmarks ask: 615,000 records, 524 MB, made from the 5,000 real ones of tests/data/ssb-5k.bipf.

The real records are repeated 123 times. Each repetition is made a later, different part of one history: its timestamps
move on by the fixture's whole span, four characters of each message's key differ, and so do four of each author's in
one of 20 ways. All else (types, texts, links, sizes) is as it was. The log lies in a folder of its own under the
system's temporary one and is made once.

    python -m benchmarks.data      # makes it, prints where it is
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jitdb.log.blocks.walk_kernels import walk
from jitdb.log.codecs import get_codec
from jitdb.log.codecs.fields.located import RecordBatch

REPEATS = 123
AUTHOR_WAYS = 20
FIXTURE = Path(__file__).parent.parent / "tests" / "data" / "ssb-5k.bipf"
FOLDER = Path(os.environ.get("JITDB_BENCH_DIR", Path(tempfile.gettempdir()) / "jitdb-benchmarks"))
_PATHS = [("timestamp",), ("value", "timestamp"), ("key",), ("value", "author")]
_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)


def big_log(repeats: int = REPEATS) -> Path:
    """The path of the log, which is made if it is not there."""
    path = FOLDER / f"ssb-{repeats}.bipf"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        with open(temporary, "wb") as file:
            for part in _parts(np.fromfile(FIXTURE, np.uint8), repeats):
                part.tofile(file)
        os.replace(temporary, path)
    return path


def _parts(data: NDArray[np.uint8], repeats: int) -> Iterator[NDArray[np.uint8]]:
    room = len(data) // 3
    starts, lengths = np.empty(room, np.int64), np.empty(room, np.int64)
    states, faults = np.empty(room, np.uint8), np.empty(room, np.int64)
    count, _ = walk(data, len(data), 1 << 16, 2, starts, lengths, states, faults)
    records = RecordBatch(data, starts[:count], lengths[:count], states[:count])
    fields, _ = get_codec("bipf").locator(_PATHS).fields(records)
    places = np.array([values.start for values in fields], np.int64)
    times = np.array([values.number for values in fields[:2]])
    span = times[0].max() - times[0].min() + 1
    eight, four = np.arange(8), np.arange(1, 5)
    for repeat in range(repeats):
        part = data.copy()
        for row in range(2):
            moved = np.ascontiguousarray(times[row] + repeat * span).view(np.uint8).reshape(-1, 8)
            part[places[row][:, None] + eight] = moved
        part[places[2][:, None] + four] = _mark(repeat)
        part[places[3][:, None] + four] = _mark(repeat % AUTHOR_WAYS)
        yield part


def _mark(number: int) -> NDArray[np.uint8]:
    return _ALPHABET[[(number >> shift) & 63 for shift in (18, 12, 6, 0)]]


if __name__ == "__main__":
    print(big_log())
