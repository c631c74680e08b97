"""Where the wanted fields of a run of records lie: what `locate` fills and every index builder reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)

# The state of one record, as a walk over a block finds it.
LIVE = 0
DELETED = 1


class Located(NamedTuple):
    """Four arrays of shape [fields, records] that say what each field holds, independent of the codec.

    kind:   uint8, a kind of jitdb.common.values; ABSENT where the record is deleted or lacks the field
    start:  int32, where the payload of a string, bytes, array, map or extension begins in the scanned buffer
    length: int32, its bytes; of a NUMBER the rest `lo`
    number: float64, the `hi` of a NUMBER (jitdb.common.values explains the pair); unset for other kinds

    An array's payload is its elements one after the other, a map's its keys and values.
    """

    kind: NDArray[np.uint8]
    start: NDArray[np.int32]
    length: NDArray[np.int32]
    number: NDArray[np.float64]


def fitted(located: Located, records: int) -> Located:
    """The same memory as room for fewer records; contiguous, so that the kernels are compiled for one layout."""
    fields = located.kind.shape[0]

    def part(array: NDArray[Scalar]) -> NDArray[Scalar]:
        return array.reshape(-1)[: fields * records].reshape(fields, records)

    return Located(part(located.kind), part(located.start), part(located.length), part(located.number))


def empty_located(fields: int, records: int) -> Located:
    """Room for `records` records; untouched pages of it cost no memory."""
    shape = (fields, records)
    return Located(
        np.empty(shape, np.uint8),
        np.empty(shape, np.int32),
        np.empty(shape, np.int32),
        np.empty(shape, np.float64),
    )
