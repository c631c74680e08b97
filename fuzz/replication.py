"""Replication with one who lies: frames as they come over a stream, and records of any bytes, which the liar signed.

A database of an honest writer, who authorized the liar, hears them. It may refuse them; what the honest writer wrote
is there afterwards, and can be written, when the database is opened again, too.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final
from unittest.mock import patch

from jitdb.errors import JitdbError
from jitdb.stores.hyperdb import HyperDB
from jitdb.stores.hyperdb.errors import ReplicationFailed
from jitdb.stores.hyperdb.replication.session import Session
from jitdb.stores.hyperdb.replication.stream import FRAME_MOST, _message, framed
from jitdb.stores.hyperdb.signing import heads
from jitdb.stores.hyperdb.signing.keys import KeyPair, is_signed

_HONEST: Final = bytes(range(32))
_LIAR: Final = bytes(range(1, 33))
_WRITTEN: Final = {"a": b"1", "a/b": b"2", "c": b"3"}
_MOST_ANSWERS: Final = 64  # to one message
_HEARING: Final[dict[Path, HyperDB]] = {}


def heard(place: Path, data: bytes) -> None:
    """Opening a database takes long: one in which nothing came is used for the next bytes, too."""
    hearing = _HEARING.pop(place, None) or _opened(place)
    lengths = hearing.lengths()
    with _all_signed():
        with suppress(JitdbError):
            _listen(hearing, data)
        if hearing.lengths() == lengths:
            _HEARING[place] = hearing
            return
        with hearing:
            _check(hearing, b"4")
        with HyperDB(place / "heard") as db:
            _check(db, b"5")


def _opened(place: Path) -> HyperDB:
    shutil.rmtree(place / "heard", ignore_errors=True)
    shutil.copytree(_told(place) / "honest", place / "heard")
    return HyperDB(place / "heard")


def _listen(db: HyperDB, data: bytes) -> None:
    """Take in the frames, and say what there is to say between them, as a stream does (stream.py)."""
    session = Session(db)
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        if size > FRAME_MOST:
            raise ReplicationFailed("the frame is too large")
        if size:
            session.receive(_message(data[at + 4 : at + 4 + size]))
        at += 4 + size
        for _ in range(_MOST_ANSWERS):
            answer = session.next_message()
            if answer is None:
                break
            framed(answer)
    session.check()


def _check(db: HyperDB, value: bytes) -> None:
    assert {(node.key, node.value) for node in db.history()} >= _WRITTEN.items()
    for key in _WRITTEN:  # the liar may write there, too
        db.get(key)
    db.list()
    db.damage()
    db.put("ours", value)
    assert [node.value for node in db.get("ours")] == [value]


@contextmanager
def _all_signed() -> Iterator[None]:
    """Have the liar sign whatever there is."""
    liar = KeyPair.of(_LIAR).public

    def signed(message: bytes, signature: bytes, public: bytes) -> bool:
        return public == liar or is_signed(message, signature, public)

    with patch.object(heads, "is_signed", signed):
        yield


@cache
def _told(place: Path) -> Path:
    """The database of the honest writer, and that of the liar, which has all of it."""
    told = place / "told"
    with HyperDB(told / "honest", create=True, secret=_HONEST) as honest:
        honest.batch(_WRITTEN.items())
        honest.authorize(KeyPair.of(_LIAR).public)
        with HyperDB(told / "liar", honest.key, secret=_LIAR) as liar:
            honest.replicate(liar)
            liar.put("a/b", b"lie")
            liar.put("d", b"x" * 40)
            liar.delete("c")
    return told


def seeds(place: Path) -> Sequence[bytes]:
    """What the liar says to the honest writer, all of it, and each message behind the greeting."""
    said: list[bytes] = []
    with _opened(place) as honest, HyperDB(place / "told" / "liar") as liar:
        left, right = Session(honest), Session(liar)
        while not (left.is_done and right.is_done):
            for giving, taking in ((left, right), (right, left)):
                message = giving.next_message()
                if message is not None:
                    taking.receive(message)
                    said += [framed(message)] if giving is right else []
    return [b"".join(said), *(said[0] + each for each in said[1:])]
