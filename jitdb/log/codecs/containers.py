"""Arrays and maps among located values: what their payloads hold, by the encoding that FieldValues names; and fields by
paths that go into them. There a codec's locator finds the keys that a path begins with, and kernels go on from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from jitdb.common.paths import Path, keys_before
from jitdb.common.values import ABSENT, MAP, UNDEFINED, value_key, value_of_key, values_at
from jitdb.errors import DecodeError
from jitdb.log.codecs.fields.constants import ENCODINGS, KEYS
from jitdb.log.codecs.fields.located import FieldValues, Locator, RecordBatch, known_encoding

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.codecs.base import Buffer, Codec

FIRST_ROOM: Final = 1 << 16  # elements that there is room for before it grows


def decode_container(encoding: int, kind: int, payload: bytes) -> Any:
    """The array or map (`kind`) whose payload this is; UNDEFINED when it is malformed inside, as `find` has it.

    Raises CodecError for an unknown encoding.

    >>> from jitdb.common.values import ARRAY
    >>> from jitdb.log.codecs.fields.constants import BIPF
    >>> decode_container(BIPF, ARRAY, b"\\x06\\x08a")
    [None, 'a']
    """
    if encoding == KEYS:
        return value_of_key(bytes([kind]) + payload)
    decode = import_module(f"jitdb.log.codecs.{ENCODINGS[known_encoding(encoding)]}").decode_parts
    try:
        return decode(payload, kind == MAP)
    except (DecodeError, TypeError, ValueError):
        return UNDEFINED


def container_key(encoding: int, kind: int, payload: bytes) -> bytes:
    """The key (value_key) of the array or map whose payload this is."""
    return bytes([kind]) + payload if encoding == KEYS else value_key(decode_container(encoding, kind, payload))


class Steps(NamedTuple):
    """A path inside located values, as the kernel takes it.

    what:         of each step a position in an array, or KEY, ANY or EACH (container_kernels)
    starts, sizes: of a key, its bytes in `keys`
    """

    what: NDArray[np.int32]
    starts: NDArray[np.int32]
    sizes: NDArray[np.int32]
    keys: NDArray[np.uint8]

    @classmethod
    def of(cls, path: Path, *, included: Path | None = None) -> Steps:
        """`included`: then each element of an array found there, and in it this path; what is no array as it is."""
        from jitdb.log.codecs.container_kernels import ANY, EACH, KEY

        steps = (*path, *(() if included is None else (EACH, *included)))
        what = [KEY if isinstance(step, str) else ANY if step is None else step for step in steps]
        if included is not None:
            what[len(path)] = EACH
        keys = [step.encode() if isinstance(step, str) else b"" for step in steps]
        sizes = np.fromiter(map(len, keys), np.int32, len(keys))
        starts = (np.cumsum(sizes) - sizes).astype(np.int32)
        return cls(np.array(what, np.int32), starts, sizes, np.frombuffer(b"".join(keys) or b"\0", np.uint8))


def list_values(values: FieldValues, steps: Steps, *, absent: bool = False) -> tuple[FieldValues, NDArray[np.int32]]:
    """What the path leads to in each of the values, and which of them owns it, ascending.

    absent: a value in which it leads nowhere owns an entry that is ABSENT

    Raises CodecError for an unknown encoding.
    """
    from jitdb.log.codecs import container_kernels

    known_encoding(values.encoding)
    count = len(values.kind)
    stack = np.empty(3 * (len(steps.what) + 1), np.int64)
    room = max(FIRST_ROOM, count)
    parts: list[list[Any]] = []
    first = 0
    while True:
        begin = first
        types: tuple[Any, ...] = (np.int32, np.uint8, np.int32, np.int32, np.float64)
        out: list[Any] = [np.empty(room, kind) for kind in types]
        first, written = container_kernels.values_inside(*values, first, count, *steps, absent, stack, *out)
        parts.append([array[:written] for array in out])
        if first >= count:
            break
        if first == begin:  # one array has more elements than there is room for
            room *= 2
    owner, *columns = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
    return FieldValues(values.encoding, values.buffer, *columns), owner


# --- fields by paths that go into them --------------------------------------------------------------------------------


def locator_of(codec: Codec, paths: Sequence[Path]) -> Locator:
    """What finds these fields, each of which leads to one value at most; the empty path is the whole record."""
    keys = [keys_before(path) for path in paths]
    return codec.locator(keys) if list(paths) == keys and () not in keys else PathLocator(codec, paths)


def values_in(codec: Codec, record: Buffer, path: Path) -> Iterator[Any]:
    """All that a path leads to in one record."""
    keys = keys_before(path)
    found = codec.find(record, keys)
    return iter(()) if found is UNDEFINED else values_at(found, path[len(keys) :])


class PathLocator(Locator):
    """Finds the fields of a codec's records, also those within arrays."""

    def __init__(self, codec: Codec, paths: Sequence[Path]) -> None:
        found = dict.fromkeys(keys_before(path) for path in paths)
        self._is_whole = found.pop((), True) is None  # whether a path begins within the record itself
        rows = {keys: row for row, keys in enumerate(found)}
        self._parts = [
            (rows.get(keys, -1), Steps.of(path[len(keys) :]) if path != keys else None)
            for path, keys in ((path, keys_before(path)) for path in paths)
        ]
        self._inner = codec.locator(list(found))

    def fields(self, records: RecordBatch) -> tuple[list[FieldValues], int]:
        found, malformed = self._inner.fields(records)
        if self._is_whole:
            whole = self._inner.values_at(records, np.zeros(len(records), np.int64))
            wrong = self._inner.invalid(records)
            whole.kind[wrong] = ABSENT
            malformed = len(wrong)
            found.append(whole)  # where the number -1 finds it
        return [found[row] if steps is None else _one_each(found[row], steps) for row, steps in self._parts], malformed

    def values_at(self, records: RecordBatch, positions: NDArray[np.int64]) -> FieldValues:
        return self._inner.values_at(records, positions)

    def invalid(self, records: RecordBatch) -> NDArray[np.int64]:
        return self._inner.invalid(records)


def _one_each(values: FieldValues, steps: Steps) -> FieldValues:
    """What a path that leads to one value finds in each of the values: an entry each."""
    found, owners = list_values(values, steps)
    kind = np.full(len(values.kind), ABSENT, np.uint8)
    start, length = np.zeros(len(kind), np.int32), np.zeros(len(kind), np.int32)
    number = np.zeros(len(kind))
    kind[owners], start[owners], length[owners], number[owners] = found.kind, found.start, found.length, found.number
    return FieldValues(values.encoding, values.buffer, kind, start, length, number)
