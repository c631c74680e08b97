"""Places that outlive a process, as text: in a log, and in files that are followed.

`IDENTITY.GENERATION.SEQ.OFFSET` is a place in a log: the records before it are done with. The identity is in hex, the
others are decimal. In the generation that it was made in, the offset counts: it is right whatever is found damaged.
After a compaction the seq counts, and the log says how many of the records before it are still there.

`logs:` and a JSON list is a place in files that are followed, with an entry for each; so is `lines:`, where one name is
followed.

    [PATH, DEVICE, INODE, STOP, AT, HEAD, TAIL]   a file of lines, read up to the byte STOP. Its text is known by two
                                                  digests, in hex, of what lies before the byte AT (stamp.py), the end
                                                  of the line that was read last; AT, HEAD and TAIL follow once
                                                  more where a copy of the file may have less than that
    [PATH, CURSOR]                                a log of jitdb's, and a place in it

An older form, `logs:{PATH: CURSOR}`, is read as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.common.words import shown
from jitdb.errors import QueryError

if TYPE_CHECKING:
    from jitdb.log.lines.files.stamp import SeenText
    from jitdb.log.source import LogSource

_FORM: Final = r"([0-9a-f]{32})\.(\d{1,10})\.(\d{1,20})\.(\d{1,20})"
UNKNOWN: Final = -1  # the seq of a place before which nobody counted the records yet
_MOST: Final = 1 << 63  # bytes, or records


class Cursor(NamedTuple):
    """All records that begin before `offset` are done with: `seq` of them, deleted ones counted."""

    identity: bytes
    generation: int
    seq: int
    offset: int

    def __str__(self) -> str:
        return f"{self.identity.hex()}.{self.generation}.{self.seq}.{self.offset}"

    def lost(self, log: LogSource) -> str:
        """Why the log as it is now does not know this place, in words; empty where it does."""
        if self.offset == 0:
            return ""  # an empty log gets its identity with its first record
        if self.identity != log.identity:
            return "it is of another log, or of this one before it was truncated, replaced or repaired"
        if self.generation == log.generation:
            if self.offset <= log.durable_end:
                return ""
            return (
                f"it is behind the end of the log, which has {log.durable_end:,} bytes as it is seen here: refresh() "
                f"shows more, unless this is an older copy"
            )
        if self.seq == UNKNOWN or log.removals(self.generation) is None:
            return (
                f"the log was compacted since, and it is not known any more which records went (generation "
                f"{self.generation} then, {log.generation} now)"
            )
        return ""

    def rank(self, log: LogSource, rank: Callable[[int], int]) -> int:
        """How many of the records, as they are now, come before the place; `rank` tells it of a byte of the log.

        Raises QueryError when that is not known.
        """
        reason = self.lost(log)
        if reason:
            raise QueryError(
                f"the cursor {self} is no place in this log: {reason}",
                path=log.path,
                remedy="begin anew, with live(old=True) or without `after`",
            )
        if self.offset == 0:
            return 0
        return rank(self.offset) if self.generation == log.generation else self.moved_seq(log)

    def moved_seq(self, log: LogSource) -> int:
        """Its seq after the compactions since then. It must not be lost."""
        from jitdb.log.sidecar.removals import new_seq

        return new_seq(log.removals(self.generation) or [], self.seq)


def parse_cursor(text: str) -> Cursor:
    """The place that a cursor's text names. Raises QueryError.

    >>> str(parse_cursor("000102030405060708090a0b0c0d0e0f.1.5.320"))
    '000102030405060708090a0b0c0d0e0f.1.5.320'
    """
    found = re.fullmatch(_FORM, text) if isinstance(text, str) else None
    if found is None or max(map(int, found.groups()[1:])) >= _MOST:
        raise QueryError(
            f"this is no cursor: {shown(text)}", remedy="it is what `.cursor` of a live query gives, kept as it is"
        )
    identity, generation, seq, offset = found.groups()
    return Cursor(bytes.fromhex(identity), int(generation), int(seq), int(offset))


# --- files that are followed -----------------------------------------------------------------------------------------

MANY: Final = "logs:"
ONE: Final = "lines:"


class TextPlace(NamedTuple):
    """A file of lines, read up to `stop`. Its text: before that, and what at least a copy of it has."""

    path: str
    key: tuple[int, ...]
    stop: int
    seen: SeenText
    looked: SeenText


class LogPlace(NamedTuple):
    """A place in the log that was at this path."""

    path: str
    cursor: Cursor

    def entry(self) -> str:
        """As JSON."""
        return json.dumps([self.path, str(self.cursor)], separators=(",", ":"))


def cursor_of(head: str, entries: Iterable[str]) -> str:
    """The text of a place, from its entries, which are JSON."""
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
    except (ValueError, TypeError, AttributeError, RecursionError):
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
    inode, stop, *told = rest
    bounds = ((place, 64), (inode, 64), (stop, 63), *((at, 63) for at in told[::3]))
    if len(told) not in (3, 6) or not all(isinstance(each, int) and 0 <= each < 1 << bits for each, bits in bounds):
        raise TypeError
    from jitdb.log.lines.files.stamp import SeenText

    seen, looked = (
        SeenText(at, bytes.fromhex(head), bytes.fromhex(tail))  # type: ignore[arg-type]
        for at, head, tail in (told[:3], told[-3:])
    )
    return TextPlace(path, (place, inode), stop, seen, looked)  # type: ignore[arg-type]


def place_in(text: str, log: LogSource) -> Cursor:
    """The place in this log that a cursor names: one of the log alone, or of files that were followed.

    Raises QueryError.
    """
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
