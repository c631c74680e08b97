"""Values of whole columns, taken for numbers and times, and casts in paths (`number(x)`, `json(x).level`).

log/codecs/casts.py says what casts mean. A locator of the codec finds the part of a path before its first cast; from
there it goes on here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitdb.common.paths import Cast, Path, Step, before_cast, keys_before
from jitdb.common.times import AUTO, DATE, FARTHEST, INSTANTS, LONG, UNITS, as_text, unit_and_zone, with_zone
from jitdb.common.values import ABSENT, FALSE, MAP, NULL, NUMBER, STRING, TRUE, UNDEFINED, number_of_text, split_number
from jitdb.common.zones import changes_of
from jitdb.indexes.kinds.kernels.seen import TEXTS
from jitdb.log.codecs import casts, containers
from jitdb.log.codecs.containers import Steps, list_values
from jitdb.log.codecs.fields.constants import DELETED, LIVE, SLACK
from jitdb.log.codecs.fields.located import FieldValues, Locator, RecordBatch
from jitdb.log.codecs.json.codec import CODEC
from jitdb.log.codecs.json.numbers import powers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.codecs.base import Codec

_JSON: Final = "json"
_BLANKS: Final = np.frombuffer(b" \t\r\n", np.uint8)
_WIDTH: Final = 30  # characters of a time of nanoseconds, with its Z
_FAR: Final = 2.0**63  # nanoseconds: times from there on are doubles


# --- numbers and times ----------------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def unit_of_kernels(unit: str | None) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """How values are read, as least_numbers() has it; None: as numbers."""
    number, zone = (None, "") if unit is None else unit_and_zone(unit)
    begins, aheads = (np.array(each, np.int64) for each in changes_of(zone))
    return -1 if number is None else UNITS.index(number), begins, aheads


def smallest_numbers(
    fields: Iterable[FieldValues], hi: NDArray[np.float64], lo: NDArray[np.int16], unit: str | None = None
) -> int:
    """Fill `hi` and `lo` with the smallest number that each record holds in the fields, or with the earliest time if
    there is a `unit` (jitdb.common.times); NaN and 0 where a record has none. Text that spells a number is that
    number. Gives bits of seen.py.
    """
    from jitdb.indexes.kinds.kernels.numbers import least_numbers

    looked, seen, kernel_unit = 0, 0, unit_of_kernels(unit)
    for values in fields:
        if not looked or values.kind.any():  # a field that no record has changes nothing
            if unit is not None and (values.kind == MAP).any():
                values, dates = _parted(values)
                in_dates = unit_of_kernels(with_zone("ms", unit_and_zone(unit)[1]))
                seen |= least_numbers(*with_numbers(dates).arrays, *in_dates, looked, hi, lo)
                for second, nano in INSTANTS:
                    values, instants = _without_instants(values, second, nano)
                    least_numbers(*instants.arrays, *unit_of_kernels("ns"), 1, hi, lo)  # nothing was guessed
                looked = 1
            numbers = with_numbers(values)
            seen |= least_numbers(*numbers.arrays, *kernel_unit, looked, hi, lo)
            if numbers is not values and unit is None:
                seen |= TEXTS
            looked = 1
    return seen


def _parted(values: FieldValues) -> tuple[FieldValues, FieldValues]:
    """The values without maps that have `$date`; and what these have under it, an entry a value, too."""
    is_map = values.kind == MAP
    dates = _inside(values, is_map, DATE)
    is_date: NDArray[np.bool_] = dates.kind != ABSENT
    if (dates.kind == MAP).any():
        longs = _inside(dates, dates.kind == MAP, LONG)
        there = longs.kind != ABSENT
        pairs: Iterable[tuple[Any, Any]] = zip(longs.arrays[1:], dates.arrays[1:], strict=True)
        columns: list[Any] = [np.where(there, long, date) for long, date in pairs]
        dates = FieldValues(dates.encoding, dates.buffer, *columns)
    dates = dates._replace(kind=np.where(dates.kind == NULL, np.uint8(MAP), dates.kind))  # null is no time there
    return values._replace(kind=np.where(is_date, np.uint8(ABSENT), values.kind)), dates


def _without_instants(values: FieldValues, *keys: str) -> tuple[FieldValues, FieldValues]:
    """The values without maps that are an instant, whose seconds and nanoseconds have these keys; and the nanoseconds
    since 1970 of these, an entry a value, too."""
    is_map: NDArray[np.bool_] = values.kind == MAP
    second, nano = (with_numbers(_inside(values, is_map, key)) for key in keys)
    whole, beyond = (np.where(part.kind == NUMBER, part.number, 0.0) for part in (second, nano))
    is_one = (second.kind == NUMBER) & ((nano.kind == NUMBER) | (nano.kind == ABSENT))
    is_one &= (whole == np.floor(whole)) & (beyond == np.floor(beyond))  # as are all numbers beyond 2**53
    is_one &= (abs(whole) < FARTHEST) & (beyond >= 0) & (beyond < 10**9)
    times = np.where(is_one, whole, 0.0).astype(np.int64) * 10**9 + np.where(is_one, beyond, 0.0).astype(np.int64)
    hi = times.astype(np.float64)
    kind = np.where(is_one, np.uint8(NUMBER), np.uint8(ABSENT))
    instants = values._replace(kind=kind, number=hi, length=(times - hi.astype(np.int64)).astype(values.length.dtype))
    return values._replace(kind=np.where(is_one, np.uint8(ABSENT), values.kind)), instants


def _inside(values: FieldValues, chosen: NDArray[np.bool_], key: str) -> FieldValues:
    """What the chosen ones have under the key, an entry a value."""
    only = values._replace(kind=np.where(chosen, values.kind, np.uint8(ABSENT)))
    return list_values(only, Steps.of((key,)), absent=True)[0]


def with_numbers(values: FieldValues) -> FieldValues:
    """The values, with the number in the place of each text that spells one; the same object where none does."""
    if not (values.kind == STRING).any():
        return values
    from jitdb.indexes.kinds.kernels.numbers import UNSURE, read_spelled

    kind, length, number = values.kind.copy(), values.length.copy(), values.number.copy()
    found, unsure = read_spelled(values.buffer, values.start, powers(), kind, length, number)
    for at in np.flatnonzero(kind == UNSURE).tolist() if unsure else ():
        spelled = number_of_text(values.payload(at).decode())
        assert spelled is not None  # the kernel saw a number
        number[at], length[at] = split_number(spelled)
        kind[at] = NUMBER
    return values._replace(kind=kind, length=length, number=number) if found else values


# --- casts in paths --------------------------------------------------------------------------------------------------


def locator_of(codec: Codec, paths: Sequence[Path]) -> Locator:
    """What finds these fields, each of which leads to one value at most."""
    firsts = [before_cast(path) for path in paths]
    return containers.locator_of(codec, paths) if firsts == list(paths) else CastLocator(codec, paths, firsts)


class CastLocator(Locator):
    """Finds the fields of a codec's records, and takes them for something else."""

    def __init__(self, codec: Codec, paths: Sequence[Path], firsts: Sequence[Path]) -> None:
        rows = {path: row for row, path in enumerate(dict.fromkeys(firsts))}
        self._parts = [(rows[first], path[len(first) :]) for first, path in zip(firsts, paths, strict=True)]
        self._inner = containers.locator_of(codec, list(rows))

    def fields(self, records: RecordBatch) -> tuple[list[FieldValues], int]:
        found, malformed = self._inner.fields(records)
        return [inside(found[row], rest) if rest else found[row] for row, rest in self._parts], malformed

    def values_at(self, records: RecordBatch, positions: NDArray[np.int64]) -> FieldValues:
        return self._inner.values_at(records, positions)

    def invalid(self, records: RecordBatch) -> NDArray[np.int64]:
        return self._inner.invalid(records)


def inside(values: FieldValues, path: Path) -> FieldValues:
    """What a path that leads to one value finds in each of the values: an entry each."""
    return list_inside(values, path, absent=True)[0]


def list_inside(
    values: FieldValues, path: Path, *, included: Path | None = None, absent: bool = False
) -> tuple[FieldValues, NDArray[np.int32]]:
    """What a path, in which casts may stand, leads to in each of the values, and which of them owns it, ascending.

    included: then each element of an array found there, and in it this path; what is no array as it is
    absent:   a value in which it leads nowhere owns an entry that is ABSENT
    """
    runs = list(_runs(path))
    if len(runs) == 1 and runs[0][0] is None:
        return list_values(values, Steps.of(path, included=included), absent=absent)
    count = len(values.kind)
    owners = np.arange(count, dtype=np.int32)
    for number, (cast, steps) in enumerate(runs):
        is_last = number == len(runs) - 1
        if cast is not None and cast.name == _JSON:
            keys = keys_before(steps)
            values, steps = _of_json(values, keys), steps[len(keys) :]
        elif cast is not None:
            values = _CASTS[cast.name](values)
        if steps or (is_last and included is not None):
            more = Steps.of(steps, included=included if is_last else None)
            values, places = list_values(values, more, absent=True)
            owners = owners[places]
    keep: NDArray[np.bool_] = values.kind != ABSENT
    if absent:  # one entry of each that has nothing else
        lacking = np.ones(count, np.bool_)
        lacking[owners[keep]] = False
        keep |= lacking[owners] & (np.diff(owners, prepend=-1) > 0)
    if keep.all():
        return values, owners
    columns: list[Any] = [column[keep] for column in values.arrays[1:]]
    return FieldValues(values.encoding, values.buffer, *columns), owners[keep]


def _runs(path: Path) -> Iterator[tuple[Cast | None, Path]]:
    """The parts of a path that begin with a cast each, but for the first."""
    cast: Cast | None = None
    steps: list[Step] = []
    for step in path:
        if isinstance(step, Cast):
            if cast is not None or steps:
                yield cast, tuple(steps)
            cast, steps = step, []
        else:
            steps.append(step)
    yield cast, tuple(steps)


def _of_json(values: FieldValues, keys: tuple[str, ...]) -> FieldValues:
    """What the JSON in texts has under these keys; of no keys the whole of it."""
    is_text = values.kind == STRING
    buffer = np.concatenate([values.buffer, np.zeros(SLACK, np.uint8)])
    starts = np.where(is_text, values.start, 0).astype(np.int64)
    lengths = np.where(is_text, values.length, 0).astype(np.int64)
    if not keys:  # a whole record begins with its first character
        written = np.append(np.flatnonzero(~np.isin(buffer, _BLANKS)), len(buffer))
        blanks = np.minimum(written[np.searchsorted(written, starts)] - starts, lengths)
        starts, lengths = starts + blanks, lengths - blanks
    states = np.where(is_text, np.uint8(LIVE), np.uint8(DELETED))
    batch = RecordBatch(buffer, starts, lengths, states)
    locator = containers.locator_of(CODEC, [keys])
    (found,), _ = locator.fields(batch)
    found.kind[locator.invalid(batch)] = ABSENT
    return found


def _numbers(values: FieldValues) -> FieldValues:
    values = with_numbers(values)
    return values._replace(kind=np.where(values.kind == NUMBER, values.kind, np.uint8(ABSENT)))


def _durations(values: FieldValues) -> FieldValues:
    from jitdb.indexes.kinds.kernels.lengths import read_lengths
    from jitdb.indexes.kinds.kernels.numbers import UNSURE

    kind, length, number = values.kind.copy(), values.length.copy(), values.number.copy()
    unsure = read_lengths(values.buffer, values.start, kind, length, number)
    for at in np.flatnonzero(kind == UNSURE).tolist() if unsure else ():
        seconds = casts.READ["duration"](values.payload(at).decode())
        kind[at] = ABSENT if seconds is UNDEFINED else NUMBER
        number[at], length[at] = (0.0, 0) if seconds is UNDEFINED else split_number(seconds)
    return values._replace(kind=kind, length=length, number=number)


def _times(values: FieldValues) -> FieldValues:
    count = len(values.kind)
    hi, lo = np.empty(count), np.empty(count, np.int16)
    smallest_numbers([values], hi, lo, AUTO)
    is_near = np.abs(hi) < _FAR
    nanoseconds = np.where(is_near, hi, 0.0).astype(np.int64) + np.where(is_near, lo, 0)
    texts = np.zeros((count, _WIDTH), np.uint8)
    written = np.datetime_as_string(nanoseconds.view("datetime64[ns]")).astype(f"S{_WIDTH - 1}")
    texts[:, :-1] = written.view(np.uint8).reshape(count, _WIDTH - 1)
    rests = texts[:, 20:-1] > ord("0")  # digits of the fraction, up to the last that counts
    length = np.where(rests.any(axis=1), 29 - rests[:, ::-1].argmax(axis=1), 19)
    texts[np.arange(count), length] = ord("Z")
    kind = np.where(is_near, np.uint8(STRING), np.uint8(ABSENT))
    found = FieldValues(
        values.encoding, texts.ravel(), kind, (np.arange(count) * _WIDTH).astype(np.int32),
        (length + 1).astype(np.int32), np.zeros(count),
    )  # fmt: skip
    return _with_texts(found, np.flatnonzero(~is_near & np.isfinite(hi)), lambda at: as_text(float(hi[at])))


def _texts(values: FieldValues) -> FieldValues:
    kept = (STRING, NUMBER, TRUE, FALSE)
    values = values._replace(kind=np.where(np.isin(values.kind, kept), values.kind, np.uint8(ABSENT)))
    words = {TRUE: "true", FALSE: "false"}

    def text(at: int) -> str:
        if values.kind[at] != NUMBER:
            return words[int(values.kind[at])]
        hi, lo = float(values.number[at]), int(values.length[at])
        return casts.text_of_number(int(hi) + lo if lo else hi)

    return _with_texts(values, np.flatnonzero((values.kind != STRING) & (values.kind != ABSENT)), text)


def _with_texts(values: FieldValues, places: NDArray[np.int64], text: Callable[[int], str]) -> FieldValues:
    """The values, with texts in these places; equal values are asked for their text once."""
    if not len(places):
        return values
    seen = np.zeros(len(places), [("kind", np.uint8), ("hi", np.int64), ("lo", np.int32)])
    seen["kind"], seen["lo"] = values.kind[places], np.where(values.kind[places] == NUMBER, values.length[places], 0)
    seen["hi"] = np.where(values.kind[places] == NUMBER, values.number[places], 0.0).view(np.int64)
    is_alike = bool((values.kind[places] != ABSENT).all())
    firsts, groups = np.arange(len(places)), np.arange(len(places))
    if is_alike:
        _, firsts, groups = np.unique(seen, return_index=True, return_inverse=True)
    written = [text(at).encode() for at in places[firsts].tolist()]
    sizes = np.fromiter(map(len, written), np.int64, len(written))
    starts = len(values.buffer) + np.cumsum(sizes) - sizes
    kind, start, length = values.kind.copy(), values.start.copy(), values.length.copy()
    kind[places], start[places], length[places] = STRING, starts[groups], sizes[groups]
    buffer = np.concatenate([values.buffer, np.frombuffer(b"".join(written), np.uint8)])
    return values._replace(buffer=buffer, kind=kind, start=start, length=length)


def _patterns(values: FieldValues) -> FieldValues:
    from jitdb.log.codecs.masks import masked  # few questions are about patterns

    return masked(values)


_CASTS: Final[dict[str, Callable[[FieldValues], FieldValues]]] = {
    "number": _numbers, "time": _times, "duration": _durations, "text": _texts, "pattern": _patterns,
}  # fmt: skip
