"""Lines of JSON to records, many at once: the kernel of kernels.py, with its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jitdb.log.codecs.fields.constants import SLACK
from jitdb.log.codecs.json import kernels, keys
from jitdb.log.codecs.json.numbers import powers

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Transcoded(NamedTuple):
    """The records of some lines, up to one that is left to Python, or all."""

    data: NDArray[np.uint8]  # the records, one behind the other; the next call overwrites them
    lengths: NDArray[np.int64]  # (n,) bytes of each
    lines: NDArray[np.int64]  # (n,) which line each was, counted from 0
    done: int  # lines that are records now, or blank
    position: int  # where the next one begins
    is_left: bool  # whether that one is left


class Transcoder:
    """Makes the records that the codec would make of what json reads. Not safe for threads."""

    def __init__(self, codec: str, largest: int, *, tagged: bool) -> None:
        """codec: "msgpack" or "bipf"; largest: bytes of a record; tagged: what export wrote of others is left."""
        self._format = int(codec == "bipf"), int(tagged), largest
        self._keys = (
            np.zeros(kernels.STATE, np.int64),
            np.empty(keys.NODES * keys.NODE, np.int64),
            np.empty(keys.SLOTS, np.int64),
        )
        self._key_bytes = np.empty(keys.KEY_BYTES, np.uint8)
        self._room = np.empty(0, np.uint8)
        self._lengths = np.empty(kernels.MOST_RECORDS, np.int64)
        self._lines = np.empty(kernels.MOST_RECORDS, np.int64)
        self._powers = powers()
        with np.errstate(over="ignore"):
            kernels.begin_keys(*self._keys)

    def transcode(self, data: bytearray, begin: int, end: int) -> Transcoded:
        """The records of the lines data[begin:end], which ends with a newline; SLACK bytes lie behind it.

        Of very many lines, only the first ones are done.
        """
        buffer = np.frombuffer(data, np.uint8)
        wanted = kernels.GROWTH * (end - begin) + SLACK
        if len(self._room) < wanted:
            self._room = np.empty(wanted, np.uint8)  # of which little is ever touched
        with np.errstate(over="ignore"):  # uncompiled, it computes with numpy's words
            why, count, done, position, used = kernels.transcode(
                buffer, begin, end, self._room, *self._format, self._powers,
                *self._keys, self._key_bytes, self._lengths, self._lines,
            )  # fmt: skip
        return Transcoded(
            self._room[:used], self._lengths[:count], self._lines[:count], done, position, why == kernels.LEFT
        )
