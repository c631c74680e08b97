"""A place in files that are followed, as text: `logs:` and a JSON list, with an entry for each of them; `lines:` where
one name is followed.

    [PATH, DEVICE, INODE, STOP, AT, HEAD, TAIL]   a file of lines, read up to the byte STOP. Its text is known by two
                                                  digests, in hex, of what lies before the byte AT (seen_text.py)
    [PATH, CURSOR]                                a log of jitdb's, and a place in it (engine/cursor.py)

An older form, `logs:{PATH: CURSOR}`, is read as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.common.words import shown
from jitdb.engine.cursor import Cursor, parse_cursor
from jitdb.errors import QueryError
from jitdb.log.lines.files.seen_text import SeenText

if TYPE_CHECKING:
    from jitdb.log.source import LogSource

MANY: Final = "logs:"
ONE: Final = "lines:"


class TextPlace(NamedTuple):
    """A file of lines, read up to `stop`."""

    path: str
    key: tuple[int, ...]
    stop: int
    seen: SeenText


class LogPlace(NamedTuple):
    """A place in the log that was at this path."""

    path: str
    cursor: Cursor

    def entry(self) -> str:
        """As JSON."""
        return json.dumps([self.path, str(self.cursor)], separators=(",", ":"))


def cursor_of(head: str, entries: Iterable[str]) -> str:
    """Its text, of entries that are JSON."""
    return f"{head}[{','.join(filter(None, entries))}]"


def is_cursor_of_files(text: str) -> bool:
    """Whether it is one, or means to be."""
    return isinstance(text, str) and text.startswith((MANY, ONE))


def parse_files_cursor(text: str, head: str) -> list[TextPlace | LogPlace]:
    """The places that a cursor with this head has. Raises QueryError.

    >>> parse_files_cursor('logs:[["a.log",1,7,90,90,"0011","2233"]]', MANY)[0].stop
    90
    """
    try:
        found = json.loads(text[len(head) :]) if isinstance(text, str) and text.startswith(head) else None
        if isinstance(found, dict):
            return [LogPlace(path, parse_cursor(place.partition("/")[0])) for path, place in found.items()]
        if isinstance(found, list):
            return [_parsed(*entry) for entry in found]
    except (ValueError, TypeError, AttributeError):
        pass
    raise QueryError(
        f"this is no cursor of {'several logs' if head == MANY else 'a file of lines'}: {shown(text)}",
        remedy="it is what `.cursor` of a live query gives, kept as it is",
    )


def _parsed(path: str, place: int | str, *rest: int | str) -> TextPlace | LogPlace:
    if not isinstance(path, str):
        raise TypeError
    if not rest:
        return LogPlace(path, parse_cursor(place))  # type: ignore[arg-type]
    inode, stop, at, head, tail = rest
    if not all(isinstance(number, int) and number >= 0 for number in (place, inode, stop, at)):
        raise TypeError
    seen = SeenText(at, bytes.fromhex(head), bytes.fromhex(tail))  # type: ignore[arg-type]
    return TextPlace(path, (place, inode), stop, seen)  # type: ignore[arg-type]


def place_in(text: str, log: LogSource) -> Cursor:
    """The place in this log that a cursor tells, of it alone or of files that were followed. Raises QueryError."""
    if not is_cursor_of_files(text):
        return parse_cursor(text)

    def read(size: int, offset: int) -> bytes:
        data = bytearray(size)
        return bytes(data[: log.read_blocks(offset, offset + size, memoryview(data))])

    for place in parse_files_cursor(text, ONE if text.startswith(ONE) else MANY):
        if isinstance(place, LogPlace):
            if place.cursor.identity == log.identity:
                return place.cursor
        elif place.stop <= log.durable_end and place.seen.fits(read):
            return Cursor(log.identity, log.generation, 0, place.stop)
    raise QueryError(
        "the cursor tells no place in this log, or of this one before it was truncated or replaced",
        path=log.path,
        remedy="begin anew, with live(old=True) or without `after`",
    )
