"""Records of a format as JSON texts, many at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from shlex import quote
from time import gmtime, strftime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from jitdb.errors import NotALog, Remedy
from jitdb.log.codecs.fields.constants import LIVE, MAX_NESTING, SLACK
from jitdb.log.codecs.fields.located import RecordBatch, Scratch
from jitdb.log.lines.formats.headers import table_of
from jitdb.log.lines.formats.kernels.kinds import (
    BODY,
    CRI,
    DOCKER,
    FIELD,
    FOLDS,
    LEVELED,
    LOGFMT,
    LTSV,
    PATTERN,
    RENAMES,
    SAVE,
    SKIPS,
    SPANS,
    STAMPED,
    TABLE,
    TEXT,
)
from jitdb.log.lines.formats.kernels.rendering import begins, count_fitting, join_lines, match_ends, render
from jitdb.log.lines.formats.kernels.writing import ESCAPE
from jitdb.log.lines.formats.pattern import compile_pattern
from jitdb.log.lines.formats.table import OTHERS

if TYPE_CHECKING:
    from jitdb.log.blocks.checksum import Bytes, Ints
    from jitdb.log.lines.formats.row import Format
    from jitdb.log.objects.door import Location

_STEPS: Final = 1 << 20  # branches that a match may have open
_WIDER: Final = 2  # the same as ESCAPE of what is JSON already: `{}` becomes null
_LINE: Final = 1 << 22  # bytes of a line that a pattern with several ways is tried on, at most
_OWN: Final = 256  # bytes of a record beside its fields: keys that a kernel writes itself
_MOST: Final = (1 << 31) - 1  # bytes of a buffer: places in it are 31 bits
_WORTH: Final = 1 << 18  # bytes of records that are rendered at once


class _Tables(NamedTuple):
    """What kernels need to know of a format: its program, the classes of that, its fields, and their keys."""

    program: Ints
    classes: Bytes
    fields: Ints
    keys: Bytes


def _tables(row: Format) -> _Tables:
    return _of_table(row) if row.how == TABLE else _of_pattern(row)


def _others_beside(row: Format) -> Format:
    """The format of lines that are none of this one, and yet records: with times in the field in which this one has
    them."""
    kinds = {row.time if name == "time" else name: kind for name, kind in OTHERS.kinds.items()}
    return OTHERS._replace(pattern=OTHERS.pattern.replace("<time>", f"<{row.time}>"), kinds=MappingProxyType(kinds))


def _of_pattern(row: Format) -> _Tables:
    program = compile_pattern(row.pattern)
    leads = 1 + program.names.index(row.leads) if row.leads else 0
    lines = SPANS * row.spans | FOLDS * row.folds | SKIPS * row.skips
    code = [(program.splits, len(program.names), leads, lines), *program.code]
    bits = b"".join(bits.to_bytes(32, "little") for bits in program.classes) or bytes(32)
    classes = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
    names = program.names if row.path is None else tuple(key for _, key in row.path.around)
    keys = [f'"{name}":'.encode() for name in names]
    fields = _fields(keys, [row.kinds.get(name, TEXT) for name in names])
    fields.sort(key=lambda field: field[3] in (BODY, LEVELED))
    return _Tables(_numbers(code), classes, _numbers(fields), _joined(keys))


def _times_written(row: Format) -> int:
    """How often a byte of a line is written at most: once by each group in which it is, and in containers as text."""
    deepest = depth = 0
    for operation, slot, *_ in () if row.how == TABLE else compile_pattern(row.pattern).code:
        if operation == SAVE:
            depth += -1 if slot % 2 else 1
            deepest = max(deepest, depth)
    return max(1, deepest + (row.how in (CRI, DOCKER, STAMPED)))


def _of_table(row: Format) -> _Tables:
    table = table_of(row.name, row.pattern)
    texts = np.frombuffer(table.header + table.unset + table.empty + bytes(SLACK), np.uint8)
    fields = _numbers(_fields(table.keys, table.kinds))
    return _Tables(np.array(table.program, np.int64), texts, fields, _joined(table.keys))


class Renderer:
    """Of one format. Not safe for threads: each has its own.

    changed: gives when the file was changed last, in nanoseconds: for times without a year
    path:    of the file, for errors
    """

    def __init__(self, row: Format, changed: Callable[[], int], path: Location | None = None) -> None:
        self._how, self._changed, self._path = row.how, changed, path
        self._own, self._other = _tables(row), _tables(_others_beside(row))
        fields = max(len(self._own.fields), len(self._other.fields)) // FIELD
        splits = max(0 if row.how == TABLE else int(self._own.program[0]), int(self._other.program[0]))
        self._slots = np.full(max(2, 2 * fields), -1, np.int64)
        self._stack, self._levels = np.empty(_STEPS, np.int64), np.empty(MAX_NESTING + 1, np.int64)
        self._seen = np.empty((splits * _LINE >> 6) + 1, np.uint64)
        self._out, self._spare = Scratch(), Scratch()
        self._escape = _WIDER if row.path is not None else ESCAPE * _times_written(row)
        self._room = max(len(self._own.keys), len(self._other.keys)) + 8 * fields + _OWN

    def _latest(self) -> int:
        """Year and month behind which no time without a year is, such as 202611."""
        return int(strftime("%Y%m", gmtime(self._changed() // 10**9)))

    @property
    def _machine(self) -> tuple[Any, ...]:
        return *self._own[:2], *self._other[:2], self._slots, self._stack, self._seen

    def begins(self, data: Bytes, before: tuple[int, int], line: tuple[int, int]) -> bool:
        """Whether a line begins a record, behind another one (empty: none). Both are places in `data`."""
        return bool(begins(self._how, data, *before, *line, *self._machine))

    def join(
        self, data: Bytes, before: tuple[int, int], starts: Ints, lengths: Ints, states: Bytes, count: int
    ) -> tuple[int, int, int]:
        """See join_lines."""
        return join_lines(self._how, data, *before, starts, lengths, states, count, *self._machine)

    def going_on(self, data: Bytes, before: tuple[int, int], starts: Ints, ends: Ints) -> int:
        """How many of these lines belong to the record that the line before them is of."""
        count = 0
        while count < len(starts) and data[before[0] : before[1]][:2].tobytes() in (
            b"",
            b"\r",
        ):  # for join() it is none
            line = int(starts[count]), int(ends[count])
            if self.begins(data, before, line):
                return count
            before, count = line, count + 1
        starts, lengths, left = starts[count:].copy(), ends[count:] - starts[count:], len(starts) - count
        records, left_out, _ = self.join(data, before, starts, lengths, np.full(left, LIVE, np.uint8), left)
        return count + (left_out if records else left)

    def render(self, records: RecordBatch) -> RecordBatch:
        """The same records as JSON texts. The next call uses their memory again."""
        total, count = int(records.lengths.sum()), len(records)
        size = self._escape * total + self._room * count + SLACK
        if size > _MOST:
            return self._shorter(records)
        out = self._out.room(size)
        longest = int(records.lengths.max()) if count else 0
        spare = self._spare.room(longest + 2 * SLACK)
        places, sizes = np.empty(count, np.int64), np.empty(count, np.int64)
        end = render(
            self._how, records.buffer, records.starts, records.lengths, records.states,
            *self._own, *self._other, self._latest(),
            out, places, sizes, spare, self._slots, self._stack, self._seen, self._levels,
        )  # fmt: skip
        out[end : end + SLACK] = 0
        if self._how == TABLE and self._slots[0] >= 0:
            self._refuse(records)
        return RecordBatch(out, places, sizes, records.states, records.offsets)

    def fitting(self, lines: list[bytes]) -> int:
        """How many of these lines are of the format itself."""
        if self._how not in (PATTERN, LOGFMT, LTSV):
            return sum(map(bool, self.rendered(lines)))
        batch = RecordBatch.of([*lines, bytes(SLACK)])
        places = batch.buffer, batch.starts[:-1], batch.lengths[:-1]
        return count_fitting(self._how, *places, *self._own[:2], self._slots, self._stack, self._seen)

    def reached(self, lines: list[bytes]) -> list[bool]:
        """Of lines one behind the other whether each is within a record of the format, which is a pattern."""
        data, firsts, starts, lengths = self._joined(lines)
        count = len(starts)
        ends = np.empty(count, np.int64)
        match_ends(data, starts, lengths, *self._own[:2], self._slots, self._stack, self._seen, ends)
        owners = starts.searchsorted(firsts, "right") - 1
        return (firsts < ends[owners]).tolist()  # type: ignore[no-any-return]

    def begun(self, lines: list[bytes]) -> list[bool]:
        """Of lines one behind the other whether each begins a record."""
        _, firsts, starts, _ = self._joined(lines)
        return np.isin(firsts, starts).tolist()  # type: ignore[no-any-return]

    def _joined(self, lines: list[bytes]) -> tuple[Bytes, Ints, Ints, Ints]:
        """The bytes of lines one behind the other, where each begins, and where the records do, with their lengths."""
        sizes = np.array([len(line) for line in lines], np.int64)
        firsts = np.cumsum(sizes + 1) - sizes - 1
        data = np.frombuffer(b"\n".join(lines) + bytes(SLACK), np.uint8)
        starts, lengths = firsts.copy(), sizes
        count, _, _ = self.join(data, (0, 0), starts, lengths, np.full(len(lines), LIVE, np.uint8), len(lines))
        return data, firsts, starts[:count], lengths[:count]

    def _refuse(self, records: RecordBatch) -> None:
        """Raise NotALog for a table that cannot be read on from one of these rows."""
        number, found = self._slots[:2].tolist()
        self._slots[0] = -1
        place = "" if records.offsets is None else f" at byte {records.offsets[number]:,}"
        if found == RENAMES:
            first = "#Software" if self._own.classes.tobytes().startswith(b"#Fields:") else "#separator"
            command = f"csplit -z {quote(str(self._path or 'FILE'))} '/^{first}/' '{{*}}'"
            raise NotALog(
                f"the line{place} names other fields than the header",
                path=self._path, remedy=f"split the file, each part is a log: {command}",
            )  # fmt: skip
        raise NotALog(
            f"in the row{place} a value goes on in the next line, so that rows cannot be told in place",
            path=self._path, remedy=None if self._path is None else Remedy.importing(self._path),
        )  # fmt: skip

    def _shorter(self, records: RecordBatch) -> RecordBatch:
        """The same without the records that have no room: these are none."""
        lengths = np.where(records.lengths > _MOST // (2 * self._escape), 0, records.lengths)
        assert int(lengths.sum()) < int(records.lengths.sum()), "a batch of many long records"
        return self.render(RecordBatch(records.buffer, records.starts, lengths, records.states, records.offsets))

    def rendered(self, records: list[bytes]) -> list[bytes]:
        """The same of a few records."""
        found = self._rendered(records)
        return [found.record(number) for number in range(len(records))]

    def refuses(self, record: bytes) -> bool:
        """Whether it is no record, though it should be one: a header should not."""
        found = self._rendered([record])
        return bool(found.states[0] == LIVE and not found.lengths[0])

    def _rendered(self, records: list[bytes]) -> RecordBatch:
        batch = RecordBatch.of([*records, bytes(SLACK)])
        return self.render(RecordBatch(batch.buffer, batch.starts[:-1], batch.lengths[:-1], batch.states[:-1]))


def _fields(keys: Sequence[bytes], kinds: Sequence[int]) -> list[tuple[int, ...]]:
    """Of each field its number, where its key stands, the size of that, and what it is."""
    starts = np.cumsum([0, *map(len, keys)]).tolist()
    return [(number, starts[number], len(key), kinds[number]) for number, key in enumerate(keys)]


def _numbers(rows: Sequence[Sequence[int]]) -> Ints:
    return np.array(rows, np.int64).reshape(-1)


def _joined(keys: Sequence[bytes]) -> Bytes:
    return np.frombuffer(b"".join(keys) + bytes(SLACK), np.uint8)
