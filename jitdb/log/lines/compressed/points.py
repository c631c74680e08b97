"""Finding places in a gzip file from which it can be decompressed, and decompressing from one, by indexed_gzip.

What was found is exported by it in a format of its own, and what it is to know imported in that: its head, a row a
point, and the windows.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from jitdb.log.lines.compressed.stored import Stored, View, library

SPACING: Final = 1 << 20  # bytes of text between points, about

AT_ONCE: Final = 64  # points whose windows are in memory
_WINDOW: Final = 1 << 15  # bytes of text that deflate looks back
_READ: Final = 1 << 16  # bytes of the file that are read at a time
_MAGIC: Final = b"GZIDX"
_HEAD: Final = struct.Struct("<5sBBQQIII")  # magic, version, 0, sizes of file and text, spacing, window, points
_ROW: Final = struct.Struct("<QQBB")  # stored, text, bits, whether it has a window


class Point(NamedTuple):
    """A place in the text, and where it is stored: the first byte from there on, and how many bits of the byte before.

    window: the 32 KiB of text before it; none where a member begins
    """

    text: int
    stored: int
    bits: int = 0
    window: bytes = b""


def find_points(stored: Stored, begin: Point, end: Point) -> Iterator[Point]:
    """Points between two places, about SPACING apart. A member begins at the one, and none is cut off by the other.

    Raises LogError, OSError.
    """
    size, text = end.stored - begin.stored, end.text - begin.text
    file = _opened(stored, begin.stored, size)
    wanted = reached = 0
    while reached < text:
        _tried(stored, begin.stored, file.seek, min(reached + SPACING, text))
        last = max((each for each, _ in file.seek_points()), default=0)
        is_last = last <= reached or last >= text
        reached = last
        if not is_last and file.npoints < AT_ONCE:
            continue
        points = _exported(file)
        for point in points:
            if wanted <= point.text < text:
                wanted = point.text + SPACING
                yield point._replace(text=begin.text + point.text, stored=begin.stored + point.stored)
        if is_last:
            return
        file = _opened(stored, begin.stored, size, points[-2:])


def read_from(stored: Stored, point: Point, end: Point, size: int, offset: int) -> bytes:
    """This part of the text, between a point and the end of whole members. Raises LogError, OSError."""
    file = _opened(stored, 0, end.stored, [point, end], end.text)
    _tried(stored, point.stored, file.seek, offset)
    data: bytes = _tried(stored, point.stored, file.read, size)
    if len(data) < size:
        raise stored.corrupt(f"what is compressed from byte {point.stored:,} on is too short", point.stored)
    return data


def _opened(stored: Stored, begin: int, size: int, points: Sequence[Point] = (), text: int = 0) -> Any:
    """A reader of these stored bytes, which knows the points; `text`: how long their text is, if that is known."""
    view = View(stored, begin, begin + size)
    file = library("gzip", stored.path).indexed_gzip._IndexedGzipFile(
        fileobj=view, spacing=SPACING, window_size=_WINDOW, readbuf_size=_READ, skip_crc_check=True, auto_build=not text
    )
    if points:
        head = _HEAD.pack(_MAGIC, 1, 0, size, text, SPACING, _WINDOW, len(points))
        rows = b"".join(_ROW.pack(each.stored, each.text, each.bits, bool(each.window)) for each in points)
        windows = b"".join(each.window for each in points)
        file.import_index(fileobj=io.BytesIO(head + rows + windows))
    return file


def _exported(file: Any) -> list[Point]:
    out = io.BytesIO()
    file.export_index(fileobj=out)
    data = out.getvalue()
    count = _HEAD.unpack_from(data)[-1]
    at = _HEAD.size + count * _ROW.size
    points = []
    for stored, text, bits, has_window in _ROW.iter_unpack(data[_HEAD.size : at]):
        points.append(Point(text, stored, bits, data[at : at + _WINDOW] if has_window else b""))
        at += _WINDOW if has_window else 0
    return points


def _tried(stored: Stored, offset: int, call: Any, argument: int) -> Any:
    try:
        return call(argument)
    except OSError as error:  # indexed_gzip's own errors are such; those of the file are their causes
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from error
        raise stored.corrupt(f"what is compressed from byte {offset:,} on cannot be read ({error})", offset) from error
