"""The order of values of any kind, of many at once.

    numbers < times as text < other text < false < true < bytes < arrays, maps and extensions

Text that spells a number is that number. Times are those of jitdb/common/times.py, by the moment that they say
(timestamps of msgpack among them); text goes by code points, which is the order of its UTF-8; arrays, maps and
extensions are all alike. null, NaN and a missing field have no place: sorting puts them last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitdb.common.times import AUTO, time_of
from jitdb.common.values import (
    ABSENT,
    BYTES,
    EXTENSION,
    FALSE,
    MAP,
    NULL,
    NUMBER,
    STRING,
    TRUE,
    number_of,
    split_number,
    value_of_key,
)
from jitdb.indexes.kinds.casting import smallest_numbers, with_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.codecs.fields.located import FieldValues

OF_NUMBERS, OF_TIMES, _OF_TEXT, _OF_FALSE, _OF_TRUE, _OF_BYTES, _OF_OTHERS, _NOWHERE = range(8)
_GROUPS: Final = np.full(256, _OF_OTHERS, np.uint8)
for _kind, _group in (
    (NUMBER, OF_NUMBERS), (STRING, _OF_TEXT), (FALSE, _OF_FALSE), (TRUE, _OF_TRUE), (BYTES, _OF_BYTES),
    (NULL, _NOWHERE), (ABSENT, _NOWHERE),
):  # fmt: skip
    _GROUPS[_kind] = _group
_WORD: Final = 8  # bytes of text that are compared at once
_HEAD: Final = 7  # bytes of a value by which most are told apart without making objects


def place_of_key(key: bytes) -> tuple[Any, ...] | None:
    """What orders the value with this key (value_key): the lesser comes first, and equal ones tie. None: no place."""
    group = int(_GROUPS[key[0]])
    value: Any = value_of_key(key) if key[0] in (NUMBER, STRING, EXTENSION, MAP) else None
    number = number_of(value)
    if number is not None:
        return (OF_NUMBERS, *split_number(number)) if number == number else None
    if group == _NOWHERE:
        return None
    time = time_of(value)
    if time is not None:
        return (OF_TIMES, *split_number(time))
    return (group, key[1:]) if group in (_OF_TEXT, _OF_BYTES) else (group,)


def ranks_of(values: FieldValues) -> NDArray[np.float64]:
    """A number for each value (encoding KEYS), which are in the order of the values; NaN for one without a place."""
    values = with_numbers(values)
    count = len(values.kind)
    group, hi, lo = _GROUPS[values.kind], np.zeros(count), np.zeros(count, np.int16)
    numbers = group == OF_NUMBERS
    hi[numbers], lo[numbers] = values.number[numbers], values.length[numbers]
    group[numbers & np.isnan(hi)] = _NOWHERE
    _find_times(values, group, hi, lo)
    for texts in (group == _OF_TEXT, group == _OF_BYTES):
        hi[texts] = text_places(values.buffer, values.start[texts], values.length[texts])
    ranks = np.full(count, np.nan)
    order = np.lexsort((lo, hi, group))
    order = order[: count - np.count_nonzero(group == _NOWHERE)]
    if len(order):
        ranks[order] = np.cumsum(_differs(group[order], hi[order], lo[order]))
    return ranks


def _find_times(
    values: FieldValues, group: NDArray[np.uint8], hi: NDArray[np.float64], lo: NDArray[np.int16]
) -> None:  # fmt: skip
    may_be = (values.kind == STRING) | (values.kind == EXTENSION) | (values.kind == MAP)
    if not may_be.any():
        return
    kind = np.where(may_be, values.kind, np.uint8(ABSENT))
    when, rest = np.empty(len(kind)), np.empty(len(kind), np.int16)
    smallest_numbers([values._replace(kind=kind)], when, rest, AUTO)
    times = ~np.isnan(when)
    group[times], hi[times], lo[times] = OF_TIMES, when[times], rest[times]


def text_places(
    buffer: NDArray[np.uint8], start: NDArray[np.int32], length: NDArray[np.int32]
) -> NDArray[np.int64]:  # fmt: skip
    """How many of these texts are less than each: eight bytes are compared at once, of those alike so far the next.

    >>> text = np.frombuffer(b"banana", np.uint8)
    >>> text_places(text, np.array([0, 1, 3, 2]), np.array([6, 3, 3, 1])).tolist()  # banana, ana, ana, n
    [2, 0, 0, 3]
    """
    padded = np.concatenate([buffer, np.zeros(_WORD, np.uint8)])
    words = np.ndarray((len(buffer) + 1,), ">u8", padded, strides=(1,))  # those that begin at each byte
    places = np.zeros(len(start), np.int64)
    alike, at = np.arange(len(start)), 0
    while len(alike):
        left = np.clip(length[alike] - at, 0, _WORD)
        beyond = (8 * (_WORD - left)).astype(np.uint64)  # bits that are of the next text
        begins = np.minimum(start[alike].astype(np.int64) + at, len(buffer))
        word = words[begins].astype(np.uint64) >> beyond << beyond
        order = np.lexsort((left, word, places[alike]))
        alike, left, word = alike[order], left[order], word[order]
        before = places[alike]
        numbers = np.arange(len(alike))
        of_group = np.maximum.accumulate(np.where(_differs(before), numbers, 0))
        of_run = np.maximum.accumulate(np.where(_differs(before, word, left), numbers, 0))
        places[alike] = before + (of_run - of_group)
        single = np.bincount(of_run, minlength=len(alike))[of_run] == 1
        alike = alike[~single & (left == _WORD)]
        at += _WORD
    return places


def _differs(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each row is another than the one before it, in any of the columns; the first is."""
    changed = np.ones(len(columns[0]), np.bool_)
    changed[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return changed


# --- the order of rows --------------------------------------------------------------------------------------------
#
# Of those that as many records have: by kind, then numbers by size, and all others by their bytes (in_order()).


def places_in_order(values: FieldValues) -> NDArray[np.int64]:
    """Where each of these values (encoding KEYS), all different, stands among them in the order of in_order()."""
    is_number = values.kind == NUMBER
    is_nan = is_number & (values.number != values.number)
    hi = np.where(is_nan, np.inf, np.where(is_number, values.number, 0.0))
    lo = np.where(is_nan, 1, np.where(is_number, values.length, 0))
    texts = np.flatnonzero(~is_number)
    places = np.zeros(len(hi), np.int64)
    places[texts] = text_places(values.buffer, values.start[texts], values.length[texts])
    order = np.lexsort((places, lo, hi, values.kind))
    places[order] = np.arange(len(order))
    return places


def may_be_first(values: FieldValues, wanted: int) -> NDArray[np.bool_]:
    """Which of these values may be among the first `wanted` of them: those that are, and few others."""
    kinds = values.kind.astype(np.uint64)
    heads = np.zeros(len(kinds), np.uint64)
    is_number = values.kind == NUMBER
    bits = values.number.astype("<f8").view(np.uint64)
    bits = np.where(bits >> np.uint64(63), ~bits, bits | np.uint64(1 << 63)) >> np.uint64(8)
    starts, lengths = (column.astype(np.int64) for column in (values.start, values.length))
    for place in range(_HEAD):
        inside = (lengths > place) & ~is_number
        byte = values.buffer[np.where(inside, starts + place, 0)].astype(np.uint64)
        heads = (heads << np.uint64(8)) | np.where(inside, byte, 0).astype(np.uint64)
    heads = (kinds << np.uint64(56)) | np.where(is_number, bits, heads)
    return np.asarray(heads <= np.partition(heads, wanted - 1)[wanted - 1])
