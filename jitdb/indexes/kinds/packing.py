"""Columns of numbers in few bytes. Most columns hold whole numbers of a small range, decimals with few digits, or times
in whole milliseconds. A *code* of one, two or four bytes a record is then enough, and the number is computed from it.

A column is packed only if every number comes back bit by bit; all others keep their pairs of hi and lo.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Pairs = tuple[NDArray[np.float64], NDArray[np.int16] | None]

PAIRS, WHOLE, DECIMAL = range(3)  # How. On disk: never change
_PACKING: Final = struct.Struct("<BBBxIq")
_PLACES: Final = (10, 100, 1000, 10**4, 10**6)
_FEW: Final = 1000  # numbers that are looked at before all are
_WIDTHS: Final = (0, 1, 2, 4)


class Packing(NamedTuple):
    """How the numbers of a column are written.

    how:   PAIRS: as they are; WHOLE: base + step * code; DECIMAL: (base + code) / step
    width: bytes of a code; 0: all are equal
    gaps:  whether some records have no number, which is the highest code of that width; with width 0: none has one
    """

    how: int
    width: int
    gaps: bool
    step: int
    base: int

    def pack(self) -> bytes:
        return _PACKING.pack(*self)

    @classmethod
    def of(cls, data: bytes) -> Packing:
        how, width, gaps, step, base = _PACKING.unpack(data)
        return cls(how, width, bool(gaps), step, base)

    @property
    def is_known(self) -> bool:
        """Whether packed() can have written it."""
        if self.how == PAIRS:
            return self == NONE
        return self.how in (WHOLE, DECIMAL) and self.width in _WIDTHS and self.step > 0

    @property
    def none(self) -> int:
        """The code of a record that has no number; -1: each has one."""
        return _highest(self.width) if self.gaps else -1

    def number(self, code: int) -> int | float:
        """The number of a code that has one: an int where it is whole."""
        whole = self.base + (self.step if self.how == WHOLE else 1) * code
        found = whole if self.how == WHOLE else float(whole) / self.step
        return int(found) if found == found // 1 else found

    def unpacked(self, data: Any, count: int, has_rests: bool) -> Pairs:
        """The numbers, computed from the bytes of their codes. Raises ValueError if there are not `count` codes."""
        import numpy as np

        from jitdb.indexes.kinds.kernels.numbers import unpack_numbers

        hi, lo = np.empty(count), np.empty(count if has_rests else 0, np.int16)
        codes = np.zeros(count, np.uint32)
        if self.width:
            codes[:] = np.frombuffer(data, f"<u{self.width}")
        unpack_numbers(codes, self.none, self.base, self.step, self.how == DECIMAL, hi, lo)
        return hi, lo if has_rests else None


META_SIZE: Final = _PACKING.size
NONE: Final = Packing(PAIRS, 0, False, 0, 0)


def packed(hi: NDArray[np.float64], lo: NDArray[np.int16] | None, are_whole: bool) -> tuple[Packing, NDArray[Any]]:
    """The packing of a column, and its codes; NONE, and no codes, if these would not give every number back.

    are_whole: whether all numbers are whole
    """
    import numpy as np

    from jitdb.indexes.kinds.kernels.numbers import measure_numbers, pack_numbers

    no_codes: NDArray[Any] = np.empty(0, np.uint8)
    rests, found = np.empty(0, np.int16) if lo is None else lo, np.empty(4, np.int64)
    places = 1 if are_whole else _places_of(hi) if lo is None else 0
    if not places or not measure_numbers(hi, rests, places, found):
        return NONE, no_codes
    low, high, gaps, step = found.tolist()
    if low > high:
        return Packing(WHOLE, 0, True, 1, 0), no_codes
    divisor = step if are_whole and high - low > _highest(2) else 1
    width = next((width for width in _WIDTHS[gaps:] if (high - low) // divisor <= _highest(width) - gaps), 0)
    if not width and high > low:
        return NONE, no_codes
    packing = Packing(WHOLE if are_whole else DECIMAL, width, bool(gaps), divisor if are_whole else places, low)
    codes = np.empty(len(hi) if width else 0, np.uint32)
    if width:
        pack_numbers(hi, rests, places, low, divisor, _highest(width), codes)
    return packing, codes.astype(f"<u{width or 1}", copy=False)


def _highest(width: int) -> int:
    """The highest code of so many bytes."""
    return (1 << 8 * width) - 1


def _places_of(hi: NDArray[np.float64]) -> int:
    """The power of ten that makes the first numbers whole; 0 if none of _PLACES does."""
    import numpy as np

    few = hi[:_FEW][np.isfinite(hi[:_FEW])]
    with np.errstate(over="ignore"):
        return next((each for each in _PLACES if (np.rint(few * each) / each == few).all()), 0)
