"""Places in a log: as they are typed, and as `jitdb tail --cursor` keeps them in a file.

A place is a cursor: of one log, or of files that are followed (engine/cursor.py). A file holds
it with a checksum: `CURSOR crc32:XXXXXXXX` and a newline.
"""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Final

from jitdb.cli.failures import Failure
from jitdb.common.zlib import crc32

if TYPE_CHECKING:
    from jitdb.log.source import LogSource

_SUMMED: Final = r"(l(?:og|ine)s:[\[{].*[\]}]|\S+)(?:\s+crc32:([0-9a-f]{8}))?"

_OF_FILES: Final = ("logs:", "lines:")  # the heads of cursors of files that are followed


def cursor(text: str) -> str:
    """A type for argparse: a cursor, with or without its checksum.

    >>> cursor("000102030405060708090a0b0c0d0e0f.1.5.320")
    '000102030405060708090a0b0c0d0e0f.1.5.320'
    """
    found = read_place(text)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"a cursor is expected, such as `jitdb tail --cursor FILE` keeps, not {text!r}"
        )
    return found


def check_as_of(log: LogSource, place: int | str | None) -> None:
    """Raises Failure if --as-of is no state of this log."""
    if isinstance(place, str):
        check_place(log, place, "--as-of", "cursors of this log are those that `jitdb tail --cursor` keeps for it")
    elif place is not None and not -1 <= place < log.durable_end:
        raise Failure(
            f"--as-of {place}: this is no place in {log.path.name}, which has {log.durable_end} bytes",
            "`jitdb query --offsets` prints offsets; -1 is before the first record",
        )


def check_place(log: LogSource | None, text: str | None, source: str, remedy: str) -> None:
    """Raises Failure if the cursor is no place in this log (None: in several logs); `source` is where it came from."""
    if text is None or (log is None and is_of_many(text)):
        return
    if log is None:
        raise Failure(f"{source}: this is a place in one log, and these are several", remedy)
    if is_of_many(text):
        raise Failure(f"{source}: this is a place in several logs, and {log.path.name} is one", remedy)
    if log.is_rotated and text.startswith(_OF_FILES):
        return
    from jitdb.engine.cursor import parse_cursor

    reason = "it is one in a file of lines" if text.startswith(_OF_FILES) else parse_cursor(text).lost(log)
    if reason:
        raise Failure(f"{source}: this is no place in {log.path.name}: {reason}", remedy)


def read_place(text: str) -> str | None:
    """The cursor in a text; None if it holds none, or the checksum does not fit.

    >>> read_place(written("000102030405060708090a0b0c0d0e0f.1.5.320"))
    '000102030405060708090a0b0c0d0e0f.1.5.320'
    >>> read_place("000102030405060708090a0b0c0d0e0f.1.7.320 crc32:39c2dd06")
    """
    from jitdb.engine.cursor import parse_cursor
    from jitdb.errors import QueryError

    found = re.fullmatch(_SUMMED, text.strip())
    if found is None or (found[2] is not None and found[2] != _sum(found[1])):
        return None
    try:
        head = found[1].partition(":")[0] + ":"
        if head in _OF_FILES:
            from jitdb.engine.cursor import parse_files_cursor

            parse_files_cursor(found[1], head)
            return found[1]
        return str(parse_cursor(found[1]))
    except QueryError:
        return None


def is_of_many(place: str) -> bool:
    """Whether it is a place in several logs, by its head."""
    return place.startswith("logs:")


def written(cursor: str) -> str:
    """The line of a file that keeps the cursor.

    >>> written("000102030405060708090a0b0c0d0e0f.1.5.320")
    '000102030405060708090a0b0c0d0e0f.1.5.320 crc32:39c2dd06\\n'
    """
    return f"{cursor} crc32:{_sum(cursor)}\n"


def _sum(cursor: str) -> str:
    return f"{crc32(cursor.encode()):08x}"
