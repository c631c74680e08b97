"""Records, the fields found in them, which every index builder reads, and the locator that finds them.

The boundary is one call for some ten thousand records, with plain arrays on both sides: a compiled kernel, a library
and plain Python fit behind it alike. What the fields found are taken for follows from their kinds and from the encoding
of arrays and maps that they name, so nobody above asks which codec it was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np

from jitdb.common.immutable import Immutable
from jitdb.common.values import NUMBER
from jitdb.errors import CodecError, QueryError
from jitdb.log.codecs.fields.constants import ENCODINGS, KEYS, LIVE

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NUMBER: Final = Struct("<dh")
_MOST_BYTES: Final = 2**31 - 1


class Scratch:
    """Memory that is used again for one batch after the other: fresh pages cost as much as reading into them."""

    def __init__(self) -> None:
        self._held = np.empty(0, np.uint8)

    def room(self, size: int) -> NDArray[np.uint8]:
        """uint8 [size]; what was there before is not any more."""
        if not size <= len(self._held) <= 4 * size:
            self._held = np.empty(size + size // 4, np.uint8)
        return self._held[:size]


class RecordBatch(Immutable):
    """A run of whole records.

    buffer:          uint8, the bytes they lie in
    starts, lengths: int64, each record's bytes in the buffer
    states:          uint8, LIVE or DELETED
    offsets:         int64, where each begins in the log; None where nobody knows
    """

    __slots__ = __match_args__ = ("buffer", "starts", "lengths", "states", "offsets")

    buffer: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    states: NDArray[np.uint8]
    offsets: NDArray[np.int64] | None

    def __init__(
        self,
        buffer: NDArray[np.uint8],
        starts: NDArray[np.int64],
        lengths: NDArray[np.int64],
        states: NDArray[np.uint8],
        offsets: NDArray[np.int64] | None = None,
    ) -> None:
        self._keep(buffer, starts, lengths, states, offsets)

    @classmethod
    def of(cls, records: Sequence[bytes]) -> Self:
        """Live records, one behind the other.

        >>> RecordBatch.of([b"one", b"other"]).starts.tolist()
        [0, 3]
        """
        buffer = np.frombuffer(bytearray().join(records), np.uint8)  # writable, as a scan's: kernels are compiled once
        lengths = np.fromiter(map(len, records), np.int64, len(records))
        return cls(buffer, np.cumsum(lengths) - lengths, lengths, np.zeros(len(records), np.uint8))

    def __len__(self) -> int:
        return len(self.states)

    def record(self, number: int) -> bytes:
        """The bytes of one."""
        start = int(self.starts[number])
        return self.buffer[start : start + int(self.lengths[number])].tobytes()

    def live(self) -> list[int]:
        """The numbers of the records that are not deleted."""
        numbers: list[int] = np.flatnonzero(self.states == LIVE).tolist()
        return numbers


class FieldValues(NamedTuple):
    """What some records (or elements of arrays) hold in one field: an entry each, whichever codec wrote them.

    encoding: KEYS, BIPF or MSGPACK (constants.py): how arrays and maps lie in the buffer; one for all values of a codec
    buffer:   uint8, where payloads lie: the records' own, or another one
    kind:     uint8, a kind of jitdb.common.values; ABSENT where the record is deleted or lacks the field
    start:    int32, where the payload of a string, bytes, array, map or extension begins in the buffer
    length:   int32, its bytes; of a NUMBER the rest `lo`; 0 of null, false and true, which have no payload
    number:   float64, the `hi` of a NUMBER (jitdb.common.values explains the pair); unset for other kinds

    The payload of a string is its UTF-8, of an extension its code and its data; an array's is its elements one after
    the other, a map's its keys and values.
    """

    encoding: int
    buffer: NDArray[np.uint8]
    kind: NDArray[np.uint8]
    start: NDArray[np.int32]
    length: NDArray[np.int32]
    number: NDArray[np.float64]

    @classmethod
    def of_keys(cls, keys: Sequence[bytes]) -> Self:
        """The values that have these keys (value_key); that of UNDEFINED stands for nothing. Raises QueryError.

        >>> values = FieldValues.of_keys([b"\\x05text", b"\\x00"])
        >>> values.kind.tolist(), values.payload(0)
        ([5, 0], b'text')
        """
        count = len(keys)
        kind = np.fromiter((key[0] for key in keys), np.uint8, count)
        length = np.fromiter((len(key) - 1 for key in keys), np.int64, count)
        starts, _ = starts_of(length + 1)
        number = np.zeros(count)
        for at in np.flatnonzero(kind == NUMBER).tolist():
            number[at], length[at] = _NUMBER.unpack(keys[at][1:])
        buffer = np.frombuffer(bytearray().join(keys) or bytearray(1), np.uint8)
        return cls(KEYS, buffer, kind, starts + np.int32(1), length.astype(np.int32), number)

    @property
    def arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32],
                              NDArray[np.float64]]:  # fmt: skip
        """All but the encoding, as kernels take them that look into no array or map."""
        return self[1:]

    def payload(self, number: int) -> bytes:
        """The payload of one value that is neither a number nor one of null, false and true."""
        start = int(self.start[number])
        return self.buffer[start : start + int(self.length[number])].tobytes()


def known_encoding(encoding: int) -> int:
    """The same number, for a kernel, which cannot raise. Raises CodecError where it is none of ENCODINGS.

    >>> known_encoding(KEYS)
    0
    """
    if encoding not in ENCODINGS:
        raise CodecError(f"{encoding} is no encoding of arrays and maps (FieldValues.encoding)")
    return encoding


def starts_of(sizes: NDArray[np.int64]) -> tuple[NDArray[np.int32], int]:
    """Where payloads of these sizes begin, one behind the other, and their size together. Raises QueryError.

    >>> starts_of(np.array([3, 0, 2]))
    (array([0, 3, 3], dtype=int32), 5)
    """
    ends = np.cumsum(sizes, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    if total > _MOST_BYTES:
        raise QueryError(f"the values of {len(sizes):,} records take {total:,} bytes, more than {_MOST_BYTES:,}")
    return (ends - sizes).astype(np.int32), total


class Rows(NamedTuple):
    """What kernels fill: arrays of shape [fields, records], whose rows are those of FieldValues."""

    kind: NDArray[np.uint8]
    start: NDArray[np.int32]
    length: NDArray[np.int32]
    number: NDArray[np.float64]

    @classmethod
    def empty(cls, fields: int, records: int) -> Rows:
        """Room for `records` records; untouched pages of it cost no memory."""
        shape = (fields, records)
        return cls(
            np.empty(shape, np.uint8), np.empty(shape, np.int32), np.empty(shape, np.int32), np.empty(shape, np.float64)
        )

    def with_room(self, records: int) -> Rows:
        """These, or others with room for so many records, and for some more."""
        fields, room = self.kind.shape
        return self if records <= room else Rows.empty(fields, 1 << (records - 1).bit_length())

    def fitted(self, records: int) -> Rows:
        """The same memory as room for fewer records; contiguous, so that the kernels are compiled for one layout."""
        shape = (self.kind.shape[0], records)
        parts: Iterator[Any] = (array.reshape(-1)[: shape[0] * records].reshape(shape) for array in self)
        return Rows(*parts)


class Locator(ABC):
    """Finds some fields in batches of records. It serves one thread, and may use the memory of a call in the next."""

    @abstractmethod
    def fields(self, records: RecordBatch) -> tuple[list[FieldValues], int]:
        """What each record holds under each path, a FieldValues a path; and how many live records are malformed.

        A deleted record has no fields. A malformed one has those, or none, that the codec's `find` gives. Raises
        QueryError where a value is none that can be asked for.
        """

    @abstractmethod
    def values_at(self, records: RecordBatch, positions: NDArray[np.int64]) -> FieldValues:
        """What `decode_at` finds at one position in each record; nothing where that is none, such as -1."""

    @abstractmethod
    def invalid(self, records: RecordBatch) -> NDArray[np.int64]:
        """The numbers of the live records that are no values of the codec."""
