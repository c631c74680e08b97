"""What a scan hands to the index builders: one run of records, with the wanted fields located in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jitdb.common.immutable import Immutable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jitdb.log.codecs.fields.located import Located


class FieldValues(NamedTuple):
    """One field of a run of records: rows of `Located` (there explained) and the buffer they point into."""

    buffer: NDArray[np.uint8]
    kind: NDArray[np.uint8]
    start: NDArray[np.int32]
    length: NDArray[np.int32]
    number: NDArray[np.float64]


class Chunk(Immutable):
    """A run of whole records.

    buffer:  the scanned bytes
    offsets: int64, where each record begins in the log
    starts, lengths: int64, each record's bytes in the buffer
    states:  uint8, LIVE or DELETED
    located: the asked fields, [fields, records]
    values:  the bytes that `located` points into: the buffer, but for a codec of one's own
    """

    __slots__ = __match_args__ = ("buffer", "offsets", "starts", "lengths", "states", "located", "values")

    buffer: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    states: NDArray[np.uint8]
    located: Located
    values: NDArray[np.uint8]

    def __init__(
        self,
        buffer: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        starts: NDArray[np.int64],
        lengths: NDArray[np.int64],
        states: NDArray[np.uint8],
        located: Located,
        values: NDArray[np.uint8],
    ) -> None:
        self._keep(buffer, offsets, starts, lengths, states, located, values)

    def __len__(self) -> int:
        return len(self.states)

    def field(self, row: int) -> FieldValues:
        kind, start, length, number = self.located
        return FieldValues(self.values, kind[row], start[row], length[row], number[row])
