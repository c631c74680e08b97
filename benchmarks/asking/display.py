"""What a notebook shows of a log of 5 GB: in a process of its own each, which has opened the log and shown nothing yet.

With indexes that are up to date, as questions left them, and without any. The first display of a process imports what
draws it; the later ones are told of, too.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import jitdb
from jitdb.operators import field

from ..data import FOLDER
from ..files.flat import flights
from ..measure import Figure

BYTES: Final = 5_000_000_000
RUNS: Final = 7

_SHOW: Final = """
import json, sys, time
def ms(work):
    begin = time.perf_counter(); work(); return 1e3 * (time.perf_counter() - begin)
imported = ms(lambda: __import__("jitdb"))
import jitdb
db = jitdb.open(sys.argv[1], sys.argv[2] or None, read_only=True)
show = db._repr_mimebundle_
print(json.dumps([imported, ms(show), ms(show)]))
"""


def run() -> Iterator[Figure]:
    """Figures of both."""
    path = _big()
    with jitdb.open(path, read_only=True) as db:
        db.query(field("carrier") == "UA").page(1)
        db.value_counts("origin")
        db.histogram("dep_delay")
    none = str(FOLDER / "no-indexes")
    for indexes, which, aim in (("", "with fresh indexes", "50 ms"), (none, "without an index", "300 ms")):
        imported, first, again = _medians(path, indexes)
        yield Figure(f"display of a log of 5 GB {which}", first, "ms", aim=aim)
        yield Figure(f"the same again {which}", again, "ms")
    yield Figure("`import jitdb`", imported, "ms")


def _medians(path: Path, indexes: str) -> list[float]:
    """Milliseconds of the import, of the first display, and of the second."""
    asked = [sys.executable, "-c", _SHOW, str(path), indexes]
    taken = [json.loads(subprocess.run(asked, check=True, capture_output=True).stdout) for _ in range(RUNS)]
    return [statistics.median(times) for times in zip(*taken, strict=True)]


def _big() -> Path:
    """Flat records over and over."""
    path = FOLDER / "display.ndjson"
    if not path.exists() or path.stat().st_size < BYTES:
        lines = flights().read_bytes()
        with open(path, "wb") as file:
            for _ in range(-(-BYTES // len(lines))):
                file.write(lines)
    return path
