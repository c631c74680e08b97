"""The locator of the codec json: fields in the records' own bytes where they stand there, else written anew.

Kernels find them (locate_kernels.py). Text with escapes, and arrays and maps, are written into a buffer of their own,
with all other payloads of that field: arrays and maps as in msgpack. Records, and values, that the kernels leave are
decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitdb.common.paths import Keys
from jitdb.common.values import ABSENT, MAP, NUMBER, STRING, kind_of, split_number, text_bytes, value_at
from jitdb.errors import DecodeError, QueryError
from jitdb.log.codecs.compiled import build_trie
from jitdb.log.codecs.fields.automaton_kernels import LAST_SEEN
from jitdb.log.codecs.fields.constants import LIVE, MAX_NESTING, MSGPACK, SLACK
from jitdb.log.codecs.fields.decoding import Decoder, DecodingLocator
from jitdb.log.codecs.fields.located import FieldValues, RecordBatch, Rows
from jitdb.log.codecs.json.locate_kernels import locate_texts
from jitdb.log.codecs.json.numbers import powers
from jitdb.log.codecs.json.payload_kernels import FRAME, GROWTH, write_payloads
from jitdb.log.codecs.json.read import WRITTEN
from jitdb.log.codecs.json.text import OPEN_MAP
from jitdb.log.codecs.locate_kernels import DOUBTFUL, FINE

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORTH: Final = 1 << 16  # bytes of a buffer: one of fewer is copied, if there is no SLACK behind its last record
_ESCAPE: Final = 6  # bytes of JSON that one byte of a key takes, at most: \u0061


class JsonLocator(DecodingLocator):
    """Finds the fields of records that are JSON texts."""

    def __init__(self, codec: Decoder, paths: Sequence[Keys]) -> None:
        super().__init__(codec, paths)
        self._trie = build_trie(paths)
        longest = int(self._trie.key_length.max())
        self._scratch = np.zeros(LAST_SEEN + len(self._trie.field), np.int64)
        self._text = np.empty(_ESCAPE * longest + SLACK, np.uint8)
        self._rows = Rows.empty(len(paths), 0)
        self._stack = np.empty(FRAME * MAX_NESTING, np.int64)

    def fields(self, records: RecordBatch) -> tuple[list[FieldValues], int]:
        if not len(self._rows.kind):
            return [], 0
        self._rows = self._rows.with_room(len(records))
        rows = self._rows.fitted(len(records))
        buffer, verdicts, wrong = self._locate(records, rows)
        held: dict[tuple[int, int], Any] = {}
        if DOUBTFUL in verdicts:
            for number in np.flatnonzero(verdicts == DOUBTFUL).tolist():
                try:
                    value = self._codec.decode(records.record(number))
                except DecodeError:
                    wrong += 1
                    continue
                self._put(value, rows, number, held)
        return [
            self._written(buffer, row, held, *columns) for row, columns in enumerate(zip(*rows, strict=True))
        ], wrong

    def values_at(self, records: RecordBatch, positions: NDArray[np.int64]) -> FieldValues:
        """Of whole records, which mostly are maps, by the kernel that writes maps."""
        live = records.states == LIVE
        if not len(records) or not bool((positions[live] == 0).all()):
            return super().values_at(records, positions)
        count = len(records)
        buffer, verdicts, _ = self._locate(records, Rows.empty(len(self._paths), count))
        is_map = live & (verdicts == FINE) & (records.lengths > 0)
        is_map[is_map] = buffer[records.starts[is_map]] == OPEN_MAP
        kind = np.where(is_map, MAP + WRITTEN, ABSENT).astype(np.uint8)
        length = np.where(is_map, records.lengths, 0).astype(np.int32)
        held: dict[tuple[int, int], Any] = {}
        for at in np.flatnonzero(live & ~is_map & (positions == 0)).tolist():
            with suppress(DecodeError):
                value = self._codec.decode_at(records.record(at), 0)
                if not isinstance(value, dict):
                    return super().values_at(records, positions)
                kind[at], held[0, at] = MAP + WRITTEN, value
        return self._written(buffer, 0, held, kind, records.starts.astype(np.int32), length, np.zeros(count))

    def invalid(self, records: RecordBatch) -> NDArray[np.int64]:
        _, verdicts, _ = self._locate(records, Rows.empty(len(self._paths), len(records)))
        for number in np.flatnonzero(verdicts == DOUBTFUL).tolist():
            if self._codec.is_valid(records.record(number)):
                verdicts[number] = FINE
        return np.flatnonzero((records.states == LIVE) & (verdicts != FINE))

    def _locate(self, records: RecordBatch, rows: Rows) -> tuple[NDArray[np.uint8], NDArray[np.uint8], int]:
        """Fill the rows. Gives the buffer that they speak of, a verdict on each record, and how many are malformed."""
        buffer, verdicts = records.buffer, np.empty(len(records), np.uint8)
        if len(records) and len(buffer) < _WORTH:
            short = SLACK - (len(buffer) - int((records.starts + records.lengths).max()))
            if short > 0:
                buffer = np.concatenate([buffer, np.zeros(short, np.uint8)])
        wrong = locate_texts(
            buffer, records.starts, records.lengths, records.states, *self._trie, *rows, self._scratch, verdicts,
            self._text, powers(),
        )  # fmt: skip
        return buffer, verdicts, wrong

    def _put(self, value: Any, rows: Rows, number: int, held: dict[tuple[int, int], Any]) -> None:
        """Put what a decoded record holds into the rows; values with a payload into `held`, by field and record."""
        for row, path in enumerate(self._paths):
            found = value_at(value, path)
            kind = kind_of(found)
            if kind == NUMBER:
                rows.number[row, number], rows.length[row, number] = split_number(found)
            else:
                rows.length[row, number] = 0
            if kind >= STRING:
                held[row, number] = found
                kind += WRITTEN
            rows.kind[row, number] = kind

    def _written(
        self, buffer: NDArray[np.uint8], row: int, held: dict[tuple[int, int], Any],
        kind: NDArray[np.uint8], start: NDArray[np.int32], length: NDArray[np.int32], number: NDArray[np.float64],
    ) -> FieldValues:  # fmt: skip
        """The values of a field, with their payloads in one buffer."""
        if not (kind >= WRITTEN).any():
            return FieldValues(MSGPACK, buffer, kind, start, length, number)
        payloads = {at: _payload(found) for (of, at), found in held.items() if of == row}
        room = GROWTH * int(length[kind >= STRING].sum(dtype=np.int64)) + sum(map(len, payloads.values())) + SLACK
        if room >= 2**31:
            raise QueryError(f"the values of {len(kind):,} records may take {room:,} bytes, more than 2,147,483,647")
        out = np.empty(room, np.uint8)
        at, end = 0, 0
        while True:
            at, end = write_payloads(buffer, kind, start, length, at, out, end, powers(), self._stack)
            if at == len(kind):
                return FieldValues(MSGPACK, out, kind, start, length, number)
            payload = payloads.get(at)
            if payload is None:
                payload = _payload(self._codec.decode(buffer[start[at] : start[at] + length[at]].tobytes()))
            out[end : end + len(payload)] = np.frombuffer(payload, np.uint8)
            kind[at] -= WRITTEN
            start[at], length[at] = end, len(payload)
            at, end = at + 1, end + len(payload)


def _payload(value: Any) -> bytes:
    """Of text its UTF-8, of an array or a map what it holds, as in msgpack."""
    if isinstance(value, str):
        return text_bytes(value)
    from jitdb.log.codecs.msgpack.codec import CODEC  # with msgpack, which most files need not

    whole = CODEC.encode(value)
    return whole[1 if len(value) < 16 else 3 if len(value) < 1 << 16 else 5 :]
