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
from jitdb.log.codecs.fields.constants import SLACK
from jitdb.log.codecs.fields.located import RecordBatch, Scratch
from jitdb.log.codecs.json.search_kernels import UNSURE, search_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.codecs.base import Codec

# The bytes that JSON may write otherwise though they need no escape: quotes, both slashes, control characters.
_WRITTEN_OTHERWISE: Final = re.compile(rb'[\0-\x1f"\\/\x7f]')
_WORDS: Final = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_NUMBER: Final = re.compile(r"[-+0-9.eE]+")
_TOKEN: Final = re.compile(rb'("(?:[^"\\]|\\.)*")\s*(:?)|[^\s,:{}\[\]"]+', re.DOTALL)


class Search:
    """Looks for a text in batches of records of one codec. It serves one thread.

    anchor: a part of the text that stands as such in the bytes of each record which holds it (where case is ignored, in
            letters of any case), but for records in which something of `odd` stands (search_kernels.py); empty where
            nothing of it need stand there: then all records are decoded
    """

    def __init__(self, codec: Codec, text: str, ignore_case: bool) -> None:
        self._codec, self._text, self.ignore_case = codec, text, ignore_case
        needle = (text.casefold() if ignore_case else text).encode("utf-8", "surrogateescape")
        self.anchor = anchor = self._anchor_of(needle)
        self.odd = self._oddities()
        self._needle, self._anchor = _array(needle), _array(anchor)
        self._wanted = wanted_byte(anchor[0], ignore_case) | wanted_byte(anchor[-1], ignore_case) << 16 if anchor else 0
        self._padded, self._scratch = Scratch(), Scratch()

    def _anchor_of(self, needle: bytes) -> bytes:
        if self._codec.is_json:
            return max(_WRITTEN_OTHERWISE.split(needle), key=len)
        if not self._codec.writes_utf8:
            return b""
        is_of_word = any(needle.decode("utf-8", "replace").lower() in word.lower() for word in _WORDS)
        if is_of_word or _NUMBER.fullmatch(self._text) or (self.ignore_case and self._codec.name != "raw"):
            return b""  # a number or a word may be it, which stand as other bytes
        return needle

    def _oddities(self) -> int:
        odd = 0
        if self._codec.is_json:
            odd = kernels.ESCAPED_ASCII if self.anchor.isascii() and not self.ignore_case else kernels.ESCAPED
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
        _, found = self._marked(records.buffer, end, records.starts, records.lengths, records.states)
        return found.view(np.bool_)

    def _marked(
        self, buffer: NDArray[np.uint8], end: int, starts: NDArray[np.int64], lengths: NDArray[np.int64],
        states: NDArray[np.uint8],
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:  # fmt: skip
        """The buffer, or a copy with bytes behind `end` that kernels may look at; which records may hold the text."""
        room = end + SLACK + len(self._anchor)
        if len(buffer) < room:
            padded = self._padded.room(room)
            padded[:end], padded[end:] = buffer[:end], 0
            buffer = padded
        found = np.empty(len(starts), np.uint8)
        kernels.mark_records(
            buffer, starts, lengths, states, self._anchor, self._wanted, self.ignore_case, self.odd, found
        )
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
