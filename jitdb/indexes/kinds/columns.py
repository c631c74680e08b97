"""Dictionaries and columns of numbers as they lie in segments, read without numpy, whose import takes longer than to
count the codes of some records one by one. dictionary.py and numbers.py have all else.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import compress, pairwise
from typing import Any, Final

from pyroaring import BitMap

from jitdb.common.values import value_of_key
from jitdb.indexes.kinds import packing
from jitdb.indexes.kinds.bitmaps import ABSENT_KEY, records_with
from jitdb.indexes.kinds.content import Shape
from jitdb.indexes.kinds.kernels.seen import ALL, OTHERS
from jitdb.indexes.kinds.packing import Packing
from jitdb.indexes.segment import BITMAPS, DICTIONARY, NUMBERS, ZONE, Segment

ENDS, HEAP, CODES = range(3)  # blobs of a dictionary
HAS_RESTS: Final = 1  # flags of a column. On disk: never change
ALL_WHOLE: Final = 2
_META: Final = struct.Struct("<ddI")
_META_SIZE: Final = _META.size + packing.META_SIZE
_ALL: Final = slice(None)
SOME: Final = 8  # records without a field that are looked at, of the first and of the last
_FEW: Final = 1 << 16  # codes that are counted in less time than kernels take to load
_COUNT: Final = "jitdb_indexes_kinds_kernels_dictionary_count_codes"
_SELECT: Final = "jitdb_indexes_kinds_kernels_dictionary_select_codes"
_UNSIGNED: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}  # by bytes


def unchecked(segment: Segment, number: int, kind: int | str, places: slice = _ALL) -> array[Any]:
    """The numbers of a blob, of a type of `array` or of so many bytes each. They may name what the segment has not.

    Raises IndexDamaged.
    """
    found = array(kind if isinstance(kind, str) else _UNSIGNED[kind])
    blob = segment.changed(is_inside=_anything).blob(number)
    first, end, _ = places.indices(len(blob) // found.itemsize)
    found.frombytes(memoryview(blob)[first * found.itemsize : end * found.itemsize])
    if sys.byteorder == "big":
        found.byteswap()
    return found


def _anything(segment: Segment, number: int, blob: bytes) -> bool:
    return True


def _counts(codes: array[int]) -> array[int]:
    """How often each code of one byte, or two, is there."""
    counts = array("q", bytes(8 << 8 * codes.itemsize))
    if len(codes) < _FEW or not _counted_by_kernel(codes, counts):
        for code, count in Counter(codes).items():
            counts[code] = count
    return counts


def _counted_by_kernel(codes: array[int], counts: array[int]) -> bool:
    from jitdb.common.kernels import called_plainly

    no_places = array("I")
    return called_plainly(_COUNT, array("B", codes.tobytes()), codes.itemsize, 0, len(codes), no_places, counts)


def are_few(segment: Segment) -> bool:
    """Whether its values, or numbers, have codes of two bytes at most."""
    if segment.kind == DICTIONARY:
        return code_width(count_of(segment)) <= 2
    return packing_of(segment) != packing.NONE and packing_of(segment).width <= 2


# --- dictionaries ----------------------------------------------------------------------------------------------------


def count_of(segment: Segment) -> int:
    """How many values a DICTIONARY segment has."""
    return int.from_bytes(segment.meta, "little")


def code_width(count: int) -> int:
    """Bytes of a code, of so many values."""
    return 1 if count < 1 << 8 else 2 if count < 1 << 16 else 4


class DictionaryShape(Shape):
    """That of a dictionary."""

    @staticmethod
    def fits(segment: Segment) -> bool:
        lengths = [*segment.table.lengths]
        if len(segment.meta) != 4 or len(lengths) != 3:
            return False
        count = count_of(segment)
        return lengths[ENDS::2] == [4 * count, code_width(count) * segment.count]

    @staticmethod
    def is_inside(segment: Segment, number: int, blob: bytes) -> bool:
        if number == HEAP:
            return True
        import numpy as np

        count = count_of(segment)
        if number == CODES:
            codes = np.frombuffer(blob, f"<u{code_width(count)}")
            return not len(codes) or int(codes.max()) <= count
        ends = np.frombuffer(blob, "<u4").astype(np.int64)
        ascend = bool((np.diff(ends, prepend=0) > 0).all())
        return ascend and (int(ends[-1]) if count else 0) == segment.table.lengths[HEAP]

    @staticmethod
    def is_void(segment: Segment) -> bool:
        return not count_of(segment)


def counted_keys(segment: Segment) -> Iterator[tuple[bytes, int]]:
    """The key of each value of a dictionary (are_few), that of an absent one first, and how many records have it.

    Raises IndexDamaged.
    """
    counts, keys = _counts(unchecked(segment, CODES, code_width(count_of(segment)))), value_keys(segment)
    if sum(counts[: 1 + len(keys)]) != segment.count:
        raise segment.damage("a code without a value")
    yield from zip([ABSENT_KEY, *keys], counts, strict=False)


def value_keys(segment: Segment) -> list[bytes]:
    """Those of the values of a dictionary: that of code n at n - 1. Raises IndexDamaged."""
    heap, ends = bytes(segment.blob(HEAP)), [0, *unchecked(segment, ENDS, 4)]
    if ends[-1] != len(heap) or not all(begin < end for begin, end in pairwise(ends)):
        raise segment.damage("a value without a key")
    return [heap[begin:end] for begin, end in pairwise(ends)]


# --- numbers ---------------------------------------------------------------------------------------------------------


def number_range(segment: Segment) -> tuple[float, float, int]:
    """Smallest and largest hi (inf, -inf when there is no number) and the flags."""
    low, high, flags = _META.unpack_from(segment.meta)
    return low, high, flags


def packing_of(segment: Segment) -> Packing:
    """How its numbers are written."""
    return Packing.of(segment.meta[_META.size :])


def head_of(low: float, high: float, flags: int, how: Packing) -> bytes:
    """What a segment of numbers has as its meta."""
    return _META.pack(low, high, flags) + how.pack()


def seen_by(segment: Segment) -> int:
    """What the scan of a column saw: bits of seen.py."""
    return number_range(segment)[2] & ALL


class NumbersShape(Shape):
    """That of a column of numbers."""

    @staticmethod
    def fits(segment: Segment) -> bool:
        if len(segment.meta) != _META_SIZE or not packing_of(segment).is_known:
            return False
        how, rests = packing_of(segment), []
        if how == packing.NONE and number_range(segment)[2] & HAS_RESTS:
            rests = [2 * segment.count]
        width = 8 if how == packing.NONE else how.width
        return [*segment.table.lengths] == [width * segment.count, *rests, 16 * -(-segment.count // ZONE)]

    @staticmethod
    def is_void(segment: Segment) -> bool:
        low, high, flags = number_range(segment)
        return low > high and not flags & OTHERS


def counted_numbers(segment: Segment) -> Iterator[tuple[int | float | None, int]]:
    """Each number of a packed column (are_few), None for none, and how many records have it. Raises IndexDamaged."""
    how = packing_of(segment)
    for code, count in enumerate(_counts(_codes(segment))):
        if count:
            yield None if code == how.none else how.number(code), count


def whole_numbers(segment: Segment, begin: int, end: int) -> list[int | None]:
    """The numbers of its records from one place to another, of a column in which all are whole; None for none.

    Raises IndexDamaged.
    """
    how, places = packing_of(segment), slice(begin, end)
    if how != packing.NONE:
        none, base, step = how.none, how.base, how.step
        return [None if code == none else base + step * code for code in _codes(segment, places)]
    hi, rests = unchecked(segment, 0, "d", places), array("h", bytes(2 * (end - begin)))
    if number_range(segment)[2] & HAS_RESTS:
        rests = unchecked(segment, 1, "h", places)
    return [int(number) + rest if number == number else None for number, rest in zip(hi, rests, strict=True)]


def _codes(segment: Segment, places: slice = _ALL) -> array[int]:
    """Of its records, in their order. Raises IndexDamaged."""
    width = packing_of(segment).width
    return unchecked(segment, 0, width, places) if width else array("B", bytes(segment.count))[places]


def tells_lacking(segments: Sequence[Segment]) -> bool:
    """Whether an index with these segments tells some_lacking()."""
    kinds = {segment.kind for segment in segments}
    return kinds == {BITMAPS} or (len(kinds) == 1 and kinds <= {DICTIONARY, NUMBERS} and all(map(are_few, segments)))


def some_lacking(segments: Sequence[Segment], count: int) -> list[int]:
    """The first and the last few records without the field, so many of each, by an index that tells it; and the last
    record, which may have it. None where each has it.

    Raises IndexDamaged.
    """
    if segments and segments[0].kind == BITMAPS:
        records = records_with(segments, ABSENT_KEY)
        found = [*records[:count], *records[max(count, len(records) - count) :]]
    else:
        each = [seqs for segment in segments if (seqs := _lacking(segment))]
        found = list(each[0][:count]) if each else []
        found += [seq for seq in (each[-1][-count:] if each else ()) if seq > found[-1]]
    return [*found, *({segments[-1].end_seq - 1} - set(found))] if found else []


def _lacking(segment: Segment) -> array[int]:
    """The records of a segment with few codes that have none."""
    is_dictionary = segment.kind == DICTIONARY
    codes = unchecked(segment, CODES, code_width(count_of(segment))) if is_dictionary else _codes(segment)
    none, wanted = 0 if is_dictionary else packing_of(segment).none, bytearray(1 << 8 * codes.itemsize)
    if none >= 0:
        wanted[none] = 1
    return _selected(segment, codes, wanted) if none >= 0 else array("I")


def records_where(segment: Segment, holds: Callable[[Any], bool]) -> BitMap:
    """The records whose value, or number, this is true of, by few codes (are_few). Raises IndexDamaged."""
    if segment.kind == DICTIONARY:
        codes, keys = unchecked(segment, CODES, code_width(count_of(segment))), value_keys(segment)
    else:
        codes, how = _codes(segment), packing_of(segment)
    wanted = bytearray(1 << 8 * codes.itemsize)
    for code in (code for code, count in enumerate(_counts(codes)) if count):
        if segment.kind != DICTIONARY:
            wanted[code] = code != how.none and holds(how.number(code))
        elif code > len(keys):
            raise segment.damage("a code without a value")
        else:
            wanted[code] = code != 0 and holds(value_of_key(keys[code - 1]))
    return BitMap(_selected(segment, codes, wanted)) if any(wanted) else BitMap()


def _selected(segment: Segment, codes: array[int], wanted: bytearray) -> array[int]:
    """The records of a segment whose code is wanted (1)."""
    from jitdb.common.kernels import called_plainly

    seqs, found = array("I", bytes(4 * len(codes))), array("q", [0])
    given = array("B", codes.tobytes()), codes.itemsize, array("B", wanted), segment.first_seq, seqs, found
    if len(codes) >= _FEW and called_plainly(_SELECT, *given):
        return seqs[: found[0]]
    return array("I", compress(range(segment.first_seq, segment.end_seq), map(wanted.__getitem__, codes)))


def zone_extremes(segment: Segment) -> Iterator[tuple[float, float]]:
    """Bounds of hi in each zone: -inf below where a record has none, and above where none has. Raises IndexDamaged."""
    ends = unchecked(segment, len(segment.table) - 1, "d")
    half = len(ends) // 2
    return zip(ends[:half], ends[half:], strict=True)
