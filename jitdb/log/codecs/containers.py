"""Arrays and maps among located values: what their payloads hold, by the encoding that FieldValues names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from jitdb.common.paths import Path
from jitdb.common.values import MAP, UNDEFINED, value_key, value_of_key
from jitdb.errors import DecodeError
from jitdb.log.codecs.fields.constants import BIPF, KEYS
from jitdb.log.codecs.fields.located import FieldValues, known_encoding

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIRST_ROOM: Final = 1 << 16  # elements that there is room for before it grows


def decode_container(encoding: int, kind: int, payload: bytes) -> Any:
    """The array or map (`kind`) whose payload this is; UNDEFINED when it is malformed inside, as `find` has it.

    Raises CodecError for an unknown encoding.

    >>> from jitdb.common.values import ARRAY
    >>> decode_container(BIPF, ARRAY, b"\\x06\\x08a")
    [None, 'a']
    """
    if encoding == KEYS:
        return value_of_key(bytes([kind]) + payload)
    known_encoding(encoding)
    try:
        if encoding == BIPF:
            from jitdb.log.codecs.bipf.decode import decode_body

            return decode_body(payload, kind == MAP)
        from jitdb.log.codecs.msgpack.codec import decode_parts

        return decode_parts(payload, kind == MAP)
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
