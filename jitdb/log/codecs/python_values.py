"""Located values as Python's objects, whichever codec wrote them; nothing else of their records is decoded.

A whole number is an int, be it written 2 or 2.0: fields hold numbers, of which both are the same one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitdb.common.values import ABSENT, ARRAY, FALSE, MAP, NULL, NUMBER, STRING, TRUE, UNDEFINED, value_of_key
from jitdb.log.codecs.containers import decode_container

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.codecs.fields.located import FieldValues

_TOP: Final = 2.0**63
_NEAR: Final = 1 << 16  # bytes in which texts lie that are taken with all that lies between them
_CONSTANTS: Final = {NULL: None, FALSE: False, TRUE: True}


def exact_integers(values: FieldValues) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The numbers that are whole and fit 64 bits, exactly (0 in the place of others), and which these are."""
    hi, lo = values.number, values.length.astype(np.int64)
    fits = values.kind == NUMBER
    with np.errstate(invalid="ignore"):
        fits &= (hi >= -_TOP) & (hi <= _TOP) & (hi == np.floor(hi))
    at_top = fits & (hi == _TOP)
    fits &= ~at_top | (lo < 0)
    # 2**63 is no int64: one less, and the rest one more.
    base = np.where(fits & ~at_top, hi, 0.0).astype(np.int64)
    base[at_top] = np.iinfo(np.int64).max
    return np.where(fits, base + np.where(fits, lo + at_top, 0), 0), fits


def larger_naturals(values: FieldValues) -> NDArray[np.bool_]:
    """Which numbers are whole, from 2**63 to 2**64 - 1."""
    hi, lo = values.number, values.length
    found: NDArray[np.bool_] = values.kind == NUMBER
    with np.errstate(invalid="ignore"):
        found &= (hi > _TOP) | ((hi == _TOP) & (lo >= 0))
        found &= (hi < 2 * _TOP) | ((hi == 2 * _TOP) & (lo < 0))
    return found


def python_values(values: FieldValues, absent: Any = UNDEFINED) -> list[Any]:
    """All of them, in order; `absent` where there is none."""
    found = np.full(len(values.kind), absent, object)
    for kind in np.unique(values.kind).tolist():
        if kind == ABSENT:
            continue
        mask = values.kind == kind
        if kind == NUMBER:
            _put_numbers(values, mask, found)
        elif kind in _CONSTANTS:
            found[mask] = _CONSTANTS[kind]
        elif kind == STRING:
            places = np.flatnonzero(mask)
            found[places] = _texts(values, places)
        else:
            for number in np.flatnonzero(mask).tolist():
                found[number] = python_value(values, number)
    return found.tolist()


def python_value(values: FieldValues, number: int) -> Any:
    """One of them, which is there."""
    kind = int(values.kind[number])
    if kind == NUMBER:
        hi, lo = float(values.number[number]), int(values.length[number])
        return int(hi) + lo if lo or (abs(hi) <= _TOP and hi == int(hi)) else hi
    if kind in (ARRAY, MAP):
        return decode_container(values.encoding, kind, values.payload(number))
    return value_of_key(bytes([kind]) + (values.payload(number) if kind > NUMBER else b""))


def _put_numbers(values: FieldValues, mask: NDArray[np.bool_], found: NDArray[np.object_]) -> None:
    exact, fits = exact_integers(values)
    found[fits] = exact[fits].tolist()
    rest = mask & ~fits
    if rest.any():
        large = rest & ((values.length != 0) | (np.abs(values.number) == _TOP))
        found[rest & ~large] = values.number[rest & ~large].tolist()
        for number in np.flatnonzero(large).tolist():  # from 2**63 on
            found[number] = python_value(values, number)


def _texts(values: FieldValues, places: NDArray[np.int64]) -> list[str]:
    starts = values.start[places]
    ends = starts + values.length[places]
    first, last = int(starts.min()), int(ends.max())
    if last - first > max(_NEAR, 2 * int(values.length[places].sum(dtype=np.int64))):
        data, ends = _gathered(values, places)
        starts = ends[:-1]
        ends = ends[1:]
    else:
        data = values.buffer[first:last].tobytes()
        starts, ends = starts - first, ends - first
    pairs = zip(starts.tolist(), ends.tolist(), strict=True)
    if data.isascii():
        text = data.decode("ascii")
        return [text[start:end] for start, end in pairs]
    return [data[start:end].decode("utf-8", "surrogateescape") for start, end in pairs]


def _gathered(values: FieldValues, places: NDArray[np.int64]) -> tuple[bytes, NDArray[np.int32]]:
    """The payloads one behind the other, where much lies between them, and where each begins; last, where they end."""
    from jitdb.log.codecs.container_kernels import gather

    lengths, bounds = values.length[places], np.empty(len(places) + 1, np.int32)
    out = np.empty(int(lengths.sum(dtype=np.int64)), np.uint8)
    gather(values.buffer, values.start[places], lengths, np.ones(len(places), np.bool_), bounds, out)
    return out.tobytes(), bounds
