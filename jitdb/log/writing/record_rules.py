"""What can be stored as a record: bytes, some, not too many, not all of them zero."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jitdb.errors import InvalidRecord, RecordTooLarge
from jitdb.log.blocks.packing import is_zero

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_NUMPY_FROM: Final = 512  # records; below, plain loops place them sooner than numpy is imported and called


class RecordRules:
    """The rules of one log, whose records have at most `largest` bytes."""

    def __init__(self, path: Path, largest: int) -> None:
        self._path = path
        self.largest = largest

    def valid(self, records: list[Any]) -> tuple[list[bytes], list[int] | npt.NDArray[np.int64]]:
        """The records as bytes, and their lengths: an array where there are many, which C loops then go over.

        Raises InvalidRecord, RecordTooLarge.
        """
        valid: list[bytes] = records
        if set(map(type, valid)) - {bytes}:
            valid = [self._bytes(record) for record in valid]
        if not valid:
            return [], []
        shortest, longest, lengths = _lengths(valid)
        self._check_lengths(shortest, longest)
        if 0 in bytes(map(itemgetter(0), valid)) and any(map(is_zero, valid)):
            raise self._all_zero()
        return valid, lengths

    def check_encoded(self, data: npt.NDArray[np.uint8], lengths: npt.NDArray[np.int64]) -> None:
        """As valid(), of records one behind the other."""
        if not len(lengths):
            return
        self._check_lengths(int(lengths.min()), int(lengths.max()))
        if int(lengths.sum()) > len(data):
            raise InvalidRecord(f"{int(lengths.sum()):,} bytes of records are not in {len(data):,}", path=self._path)
        starts = lengths.cumsum() - lengths
        for number in (data[starts] == 0).nonzero()[0].tolist():
            if not data[starts[number] : starts[number] + lengths[number]].any():
                raise self._all_zero()

    def _check_lengths(self, shortest: int, longest: int) -> None:
        if shortest <= 0:
            raise InvalidRecord("an empty record cannot be stored: its length, 0, ends a block", path=self._path)
        if longest > self.largest:
            raise RecordTooLarge(path=self._path, size=longest, limit=self.largest)

    def _all_zero(self) -> InvalidRecord:
        return InvalidRecord(
            "a record of nothing but zero bytes cannot be stored: that is how a deleted record looks",
            path=self._path,
        )

    def _bytes(self, record: Any) -> bytes:
        if isinstance(record, (bytes, bytearray, memoryview)):
            return bytes(record)
        raise InvalidRecord(f"a record is bytes, not {type(record).__name__}", path=self._path)


def _lengths(records: list[bytes]) -> tuple[int, int, list[int] | npt.NDArray[np.int64]]:
    if len(records) < _NUMPY_FROM:
        lengths = list(map(len, records))
        return min(lengths), max(lengths), lengths
    import numpy as np

    many = np.fromiter(map(len, records), np.int64, len(records))
    return int(many.min()), int(many.max()), many
