"""A fresh database over the big log, as the benchmarks ask it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import jitdb
from jitdb import JITDB
from jitdb.operators import equal

from .data import FOLDER, big_log
from .peers import THREADS

INDEXES = FOLDER / "indexes"
POST = equal("value.content.type", "post")
FIVE = [
    equal(path, "post")
    for path in (
        "value.content.type",
        "value.author",
        "value.content.channel",
        "value.content.root",
        "value.content.vote.link",
    )
]


def forget_indexes() -> None:
    """Remove the index files."""
    shutil.rmtree(INDEXES, ignore_errors=True)


def open_big() -> JITDB:
    """The big log with its index files, if there are any."""
    return jitdb.open(big_log(), INDEXES, read_only=True, threads=THREADS, progress=False)


@contextmanager
def indexed() -> Iterator[JITDB]:
    """The big log with type and author indexed in this process."""
    with open_big() as db:
        db.prepare(*FIVE[:2])
        yield db


def some_author(db: JITDB) -> str:
    """An author of posts."""
    author: str = db.paginate(POST, limit=1, descending=True).data[0]["value"]["author"]
    return author
