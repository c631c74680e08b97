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

_ALL_ZERO: Final = "a record of nothing but zero bytes cannot be stored: that is how a deleted record looks"
_NUMPY_FROM: Final = 512  # records; below, plain loops place them sooner than numpy is imported and called


class RecordRules:
    """The rules of one log, whose records have at most `largest` bytes."""

    def __init__(self, path: Path, largest: int) -> None:
        self._path = path
        self.largest = largest

    def valid(self, records: list[Any]) -> tuple[list[bytes], list[int] | npt.NDArray[np.int64]]:
        """The records as bytes, and their lengths, an array of many. Raises InvalidRecord, RecordTooLarge."""
        valid: list[bytes] = records
        if set(map(type, valid)) - {bytes}:
            valid = [self._bytes(record) for record in valid]
        lengths: list[int] | npt.NDArray[np.int64] = list(map(len, valid))
        if len(valid) >= _NUMPY_FROM:
            import numpy as np

            lengths = np.array(lengths, np.int64)
        if valid:
            self._check_lengths(lengths)
        if 0 in bytes(map(itemgetter(0), valid)) and any(map(is_zero, valid)):
            raise InvalidRecord(_ALL_ZERO, path=self._path)
        return valid, lengths

    def check_encoded(self, data: npt.NDArray[np.uint8], lengths: npt.NDArray[np.int64]) -> None:
        """As valid(), of records one behind the other."""
        if not len(lengths):
            return
        self._check_lengths(lengths)
        if int(lengths.sum()) > len(data):
            raise InvalidRecord(f"{int(lengths.sum()):,} bytes of records are not in {len(data):,}", path=self._path)
        starts = lengths.cumsum() - lengths
        for number in (data[starts] == 0).nonzero()[0].tolist():
            if not data[starts[number] : starts[number] + lengths[number]].any():
                raise InvalidRecord(_ALL_ZERO, path=self._path)

    def _check_lengths(self, lengths: list[int] | npt.NDArray[np.int64]) -> None:
        if isinstance(lengths, list):
            shortest, longest = min(lengths), max(lengths)
        else:
            shortest, longest = int(lengths.min()), int(lengths.max())
        if shortest <= 0:
            raise InvalidRecord("an empty record cannot be stored: its length, 0, ends a block", path=self._path)
        if longest > self.largest:
            raise RecordTooLarge(path=self._path, size=longest, limit=self.largest)

    def _bytes(self, record: Any) -> bytes:
        if isinstance(record, (bytes, bytearray, memoryview)):
            return bytes(record)
        raise InvalidRecord(f"a record is bytes, not {type(record).__name__}", path=self._path)
