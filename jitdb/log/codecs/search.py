"""Which records hold a text in any of their values.

A value is a text, or a number, true, false or null, whose text is that of the record where it is JSON, and else what
JSON writes for it; of bytes, the text's UTF-8 is looked for. Keys are no values. `holds_anywhere` is the rule for a
decoded record; a key that stands twice in a map of JSON counts with both of its values.

Kernels mark the records in which a part of the text stands in its bytes; of JSON another kernel goes through the values
of these. What is left to Python is decoded.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitdb.common.anywhere import holds_anywhere, holds_in
from jitdb.errors import DecodeError
from jitdb.log.codecs.fields import search_kernels as kernels
from jitdb.log.codecs.fields.constants import DELETED, SLACK
from jitdb.log.codecs.fields.located import RecordBatch, Scratch
from jitdb.log.codecs.json.search_kernels import UNSURE, search_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.codecs.base import Codec

# The bytes that JSON writes otherwise, or may: quotes, backslashes, control characters. A slash may have a backslash.
_WRITTEN_OTHERWISE: Final = re.compile(rb'[\0-\x1f"\\\x7f]')
_MANY: Final = 8  # records of which one or more is marked: then another look takes less than to go through them
_WORDS: Final = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_NUMBER: Final = re.compile(r"[-+0-9.eE]+")
_TOKEN: Final = re.compile(rb'("(?:[^"\\]|\\.)*")\s*(:?)|[^\s,:{}\[\]"]+', re.DOTALL)


class Search:
    """Looks for a text in batches of records of one codec. It serves one thread.

    parts:  those of the text that stand as such in the bytes of each record which holds it (where case is ignored, in
            letters of any case), but for records in which something of `odd_of(parts)` stands (search_kernels.py)
    anchor: the longest of them, which is looked for; empty where nothing of the text need stand there: then all records
            are decoded
    """

    def __init__(self, codec: Codec, text: str, ignore_case: bool) -> None:
        self._codec, self._text, self.ignore_case = codec, text, ignore_case
        needle = (text.casefold() if ignore_case else text).encode("utf-8", "surrogateescape")
        self.parts = sorted(self._parts_of(needle), key=len, reverse=True)
        self.anchor = self.parts[0]
        self._needle = _array(needle)
        self._padded, self._scratch = Scratch(), Scratch()

    def _parts_of(self, needle: bytes) -> list[bytes]:
        if self._codec.is_json:
            return _WRITTEN_OTHERWISE.split(needle)
        if not self._codec.writes_utf8:
            return [b""]
        is_of_word = any(needle.decode("utf-8", "replace").lower() in word.lower() for word in _WORDS)
        if is_of_word or _NUMBER.fullmatch(self._text) or (self.ignore_case and self._codec.name != "raw"):
            return [b""]  # a number or a word may be it, which stand as other bytes
        return [needle]

    def odd_of(self, *parts: bytes) -> int:
        """What may stand in a record instead of these parts of the text."""
        odd = 0
        if self._codec.is_json:
            is_ascii = all(map(bytes.isascii, parts)) and not self.ignore_case
            odd = kernels.ESCAPED_ASCII if is_ascii else kernels.ESCAPED
            odd |= kernels.ESCAPED_SLASH * any(b"/" in part for part in parts)
        return odd | (kernels.NO_ASCII if self.ignore_case else 0)

    def __call__(self, records: RecordBatch) -> NDArray[np.bool_]:
        """Which of the records hold the text; no deleted one does."""
        if not len(records):
            return np.zeros(0, np.bool_)
        end = int(records.starts[-1] + records.lengths[-1])
        buffer, found = self._marked(records.buffer, end, records.starts, records.lengths, records.states)
        unsure = np.flatnonzero(found)
        if self._codec.is_json and len(unsure):
            text = self._scratch.room(int(records.lengths[unsure].max()) + SLACK)
            many = search_values(buffer, records.starts, records.lengths, self._needle, self.ignore_case, text, found)
            unsure = np.flatnonzero(found == UNSURE) if many else unsure[:0]
        for number in unsure.tolist():
            found[number] = self._holds(records.record(number))
        return found.view(np.bool_)

    def may_be_in(self, records: RecordBatch) -> NDArray[np.bool_]:
        """Of which records the bytes may hold the text: False is certain."""
        end = int(records.starts[-1] + records.lengths[-1])
        buffer, found = self._marked(records.buffer, end, records.starts, records.lengths, records.states)
        for part in self.parts[1:]:
            if part and found.any():
                states = np.where(found, records.states, DELETED)
                _, found = self._marked(buffer, end, records.starts, records.lengths, states, part)
        return found.view(np.bool_)

    def _marked(
        self, buffer: NDArray[np.uint8], end: int, starts: NDArray[np.int64], lengths: NDArray[np.int64],
        states: NDArray[np.uint8], part: bytes | None = None,
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:  # fmt: skip
        """The buffer, or a copy with bytes behind `end` that kernels may look at; which records may hold the part."""
        part, is_json = self.anchor if part is None else part, self._codec.is_json
        room = end + SLACK + len(self.anchor)
        if len(buffer) < room:
            padded = self._padded.room(room)
            padded[:end], padded[end:] = buffer[:end], 0
            buffer = padded
        found = np.empty(len(starts), np.uint8)
        wanted = wanted_byte(part[0], self.ignore_case) | wanted_byte(part[-1], self.ignore_case) << 16 if part else 0
        kernels.mark_records(
            buffer, starts, lengths, states, _array(part), wanted, self.ignore_case, self.odd_of(part), found
        )
        if is_json and b"/" in part and _MANY * np.count_nonzero(found) > len(found):  # their slashes have backslashes
            between = max(part.split(b"/"), key=len)
            states = np.where(found, states, DELETED)
            return self._marked(buffer, end, starts, lengths, states, between) if between else (buffer, found)
        return buffer, found

    def _holds(self, record: bytes) -> bool:
        try:
            value: Any = self._codec.decode(record)
        except DecodeError:
            return False
        if not self._codec.is_json:
            return holds_anywhere(value, self._text, self.ignore_case)
        for found in _TOKEN.finditer(record):
            if not found[2]:
                text = json.loads(found[1]) if found[1] else found[0].decode()
                if holds_in(text, self._text, self.ignore_case):
                    return True
        return False


def _array(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(bytearray(data), np.uint8)


def wanted_byte(byte: int, fold: bool) -> int:
    """A byte, and above it the bit that capital letters lack, if it is a letter and case is ignored."""
    return byte | (0x2000 if fold and chr(byte).isascii() and chr(byte).isalpha() else 0)
