"""Blocks with flipped bits, and what is said and answered of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine_helpers import check, oracle_of

from jitdb import JITDB, Log
from jitdb.log.blocks.block_format import walk_block
from jitdb.operators import equal

SIZE = 4096
LATER = equal("value.content.text", "text 3")  # a question that is not among QUESTIONS


@contextmanager
def silence() -> Iterator[None]:
    """No warning at all."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@contextmanager
def told(*patterns: str) -> Iterator[None]:
    """Just these warnings, in this order."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield
    texts = [str(each.message) for each in seen]
    assert len(texts) == len(patterns), texts
    for text, pattern in zip(texts, patterns, strict=True):
        assert pattern in text, texts


def flip(path: Path, place: int, bit: int = 0, *, keep_time: bool = True) -> None:
    """Flip a bit, as a disk does: nobody has written to the file."""
    stat = path.stat()
    with open(path, "r+b") as file:
        file.seek(place)
        [byte] = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ 1 << bit]))
    if keep_time:
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def records_of(path: Path, block: int, size: int = SIZE) -> list[int]:
    """The offsets of the records that are found in a block."""
    data = path.read_bytes()[block * size : (block + 1) * size]
    return [block * size + position for position in walk_block(data, size, size).positions]


def check_without(db: JITDB, log: Log, block: int) -> None:
    """All answers are the oracle's, the records of this block left out."""
    check(db, oracle_of(log, records_of(log.path, block, log.block_size)))


ASK = """
import json, sys, warnings
from jitdb import JITDB, Log
from engine_helpers import QUESTIONS
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    with Log(sys.argv[1], read_only=True) as log:
        db = JITDB(log)
        counts = [db.count(question) for question in QUESTIONS]
print(json.dumps([counts, [str(each.message) for each in seen]]))
"""


def ask_elsewhere(path: Path) -> tuple[list[int], list[str]]:
    """What another process counts, and what it is warned of."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent.parent), *sys.path])}
    run = subprocess.run(
        [sys.executable, "-c", ASK, str(path)], env=environment, check=True, capture_output=True, text=True
    )
    counts, texts = json.loads(run.stdout)
    return counts, texts
