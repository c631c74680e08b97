"""Which group each record is in, a part of the log at a time: by the codes of its values (coded.py).

What there is of each group is found by who asks; here is only which group, and which values the groups have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitdb.common import memory
from jitdb.common.sorting import each_once
from jitdb.engine.answering.coded import Coded, CodedPairs, numbered, ranked_values
from jitdb.operators.summaries.summary import LACKING, OTHERS, Ranked, ValuesIn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.engine.answering.coded_column import CodedColumn
    from jitdb.engine.answering.members import Members
    from jitdb.operators.summaries.arithmetic.numbers import Numbers

_CELLS: Final = 1 << 28  # pairs of a group and a value, each of which may have a bit of its own
_TOGETHER: Final = 1 << 20  # pairs, or bytes of such bits, that are looked at together
_SORTED: Final = 1 << 20  # pairs that wait to be told apart, where there may be more than that


def placing(columns: Sequence[Coded], values: Ranked) -> Callable[[Members], NDArray[np.int64]]:
    """What gives for each of some records the place of its values among these groups of them, which no field tells, or
    several do: see View.placing.
    """
    pairs = values.pairs
    if not columns:
        return lambda members: np.zeros(len(members), np.int64)
    held = [[keys[at] for keys, _ in pairs] for at in range(len(columns))]
    distinct = [dict(zip(dict.fromkeys(own), count(), strict=False)) for own in held]
    tables = [_places_by_code(column, column.code_of(list(own))) for column, own in zip(columns, distinct, strict=True)]
    of_groups = [np.array([number[key] for key in own], np.int64) for own, number in zip(held, distinct, strict=True)]

    def of(members: Members) -> NDArray[np.int64]:
        codes = [column.codes(members) for column in columns]
        both = [np.append(own, table[code]) + 1 for own, table, code in zip(of_groups, tables, codes, strict=True)]
        numbers, _ = numbered(both, [len(own) + 1 for own in distinct])
        groups, of_records = numbers[: len(pairs)], numbers[len(pairs) :]
        order = np.argsort(groups)
        near = np.append(order, 0)[np.searchsorted(groups[order], of_records)]
        found = np.where(np.append(groups, -1)[near] == of_records, near, OTHERS)
        for code in codes:
            found[code == 0] = LACKING
        return found

    return of


def places_by_code(column: Coded, values: Ranked) -> NDArray[np.int64]:
    """For each code of a column the place of its value among these; OTHERS where it is none, LACKING of no value."""
    pairs = values.pairs
    if isinstance(pairs, CodedPairs) and pairs.column is column:
        places = _places_by_code(column, pairs.codes)
    else:
        places = _places_by_code(column, column.code_of([key for (key,), _ in pairs]))
    places[0] = LACKING
    return places


def _places_by_code(column: Coded, codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each code of a column its place among these; OTHERS where it is none of them."""
    places = np.full(len(column), OTHERS)
    places[codes] = np.arange(len(codes))
    places[0] = OTHERS  # of values that no record has
    return places


def leading(
    column: CodedColumn,
    parts: Iterable[tuple[NDArray[np.uint32], Numbers]],
    weighed_by: str,
    limit: int,
    ascending: bool,
) -> Ranked | None:
    """The values that may be the first ones: see View.leading.

    parts: the code, and the number, of each of some records
    """
    from jitdb.operators.summaries.arithmetic.summary_kernels import add_spans, add_weights, find_leading

    which, total = ("count", "min", "max", "span").index(weighed_by), 0
    rows = np.zeros((len(column), 2))
    rows[:, 0] = np.nan if which else 0.0
    lows = np.full(len(column) if weighed_by == "span" else 0, np.nan)
    for codes, numbers in parts:
        total += len(codes)
        if not len(lows):
            add_weights(numbers.doubles, codes, which, rows)
        elif numbers.lo is None:
            add_spans(numbers.doubles, codes, lows, rows)
        else:
            return None  # the difference needs all digits
    if len(lows):
        rows[:, 0] -= lows
    found = np.empty(len(column), np.uint32)
    size, distinct = find_leading(rows, 1 if ascending else -1, np.empty(limit), found)
    if size < 0:
        return None
    counts = rows[:, 1].astype(np.int64)
    return ranked_values(column, counts, total, None, found[:size])._replace(distinct=distinct)


class Pairs:
    """Pairs of a group and a value that were seen, each once."""

    def __init__(self, values: int) -> None:
        self._values = -(-values // 8) * 8  # so the bits of a group begin with a byte
        self._seen: NDArray[np.uint8] | None = np.zeros(0, np.uint8)  # a bit for each, the lowest first
        self._sorted = np.empty(0, np.int64)
        self._waiting: list[NDArray[np.int64]] = []

    def add(self, groups: NDArray[np.int64], values: NDArray[np.uint32], most: int) -> None:
        """Of so many groups in all; a group below 0, and the value 0, are none."""
        from jitdb.operators.summaries.arithmetic.summary_kernels import mark_bits

        size = most * self._values // 8
        if self._seen is not None and size <= memory.work(_CELLS // 8):
            if size > len(self._seen):
                self._seen = np.append(self._seen, np.zeros(size - len(self._seen), np.uint8))
            mark_bits(groups, values, self._values, self._seen)
            return
        there = (groups >= 0) & (values != 0)
        pairs = groups[there] * self._values + values[there]
        if self._seen is not None:
            self._sorted, self._seen = np.concatenate([self._sorted, *_set_bits(self._seen)]), None
        self._waiting.append(each_once(pairs))
        if sum(map(len, self._waiting)) > max(_SORTED, len(self._sorted)):
            self._sort()

    def _sort(self) -> None:
        self._sorted = each_once(np.concatenate([self._sorted, *self._waiting]))
        self._waiting.clear()

    def counts(self, groups: int) -> NDArray[np.int64]:
        """How many pairs each of so many groups has."""
        from jitdb.operators.summaries.arithmetic.summary_kernels import count_bits

        if self._waiting:
            self._sort()
        found = np.zeros(groups, np.int64)
        if self._seen is not None:
            count_bits(self._seen, self._values // 8, found)
            return found
        for pairs in _parts(self._sorted):
            found += np.bincount(pairs // self._values, minlength=groups)
        return found

    def all(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """The groups, and the values."""
        if self._waiting:
            self._sort()
        groups, values = [np.empty(0, np.uint32)], [np.empty(0, np.uint32)]
        for pairs in _parts(self._sorted) if self._seen is None else _set_bits(self._seen):
            groups.append((pairs // self._values).astype(np.uint32))
            values.append((pairs % self._values).astype(np.uint32))
        return np.concatenate(groups), np.concatenate(values)


def _parts(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    return (array[begin : begin + _TOGETHER] for begin in range(0, len(array), _TOGETHER))


def _set_bits(bits: NDArray[np.uint8]) -> Iterator[NDArray[np.int64]]:
    """The places of those that are set, some at a time."""
    for at, some in enumerate(_parts(bits)):
        yield np.flatnonzero(np.unpackbits(some, bitorder="little")) + 8 * _TOGETHER * at


def values_in(column: Coded, parts: Iterable[tuple[Members, NDArray[np.int64]]], *, has_keys: bool) -> ValuesIn:
    """Which values the records of each group have; `parts`: of some records each, and the number of their groups."""
    from jitdb.operators.summaries.arithmetic.summary_kernels import count_groups

    seen, counts = Pairs(len(column)), np.zeros(2, np.int64)
    for members, own in parts:
        codes = column.codes(members)
        counts = np.append(counts, np.zeros(max(0, int(own.max(initial=-1)) + 3 - len(counts)), np.int64))
        count_groups(own, codes, counts)
        seen.add(own, codes, len(counts) - 2)
    keys: list[bytes] | None = None
    pairs: Callable[[], tuple[NDArray[Any], NDArray[Any]]] = seen.all
    if has_keys:  # of those values alone that are there
        groups, values = seen.all()
        held, numbers = np.unique(values, return_inverse=True)
        keys = list(map(column.key, held.tolist()))
        pairs = lambda: (groups, numbers)  # noqa: E731
    return ValuesIn(seen.counts(len(counts) - 2), pairs, counts[2:], int(counts[1]), keys)
