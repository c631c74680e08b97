"""Arrays and maps among located values: what their payloads hold, by the encoding that FieldValues names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from jitdb.common.paths import Path
from jitdb.common.values import MAP, UNDEFINED, value_key, value_of_key
from jitdb.errors import DecodeError
from jitdb.log.codecs.fields.constants import BIPF, KEYS
from jitdb.log.codecs.fields.located import FieldValues

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FIRST_ROOM: Final = 1 << 16  # elements that there is room for before it grows


def decode_container(encoding: int, kind: int, payload: bytes) -> Any:
    """The array or map (`kind`) whose payload this is; UNDEFINED when it is malformed inside, as `find` has it.

    >>> from jitdb.common.values import ARRAY
    >>> decode_container(BIPF, ARRAY, b"\\x06\\x08a")
    [None, 'a']
    """
    if encoding == KEYS:
        return value_of_key(bytes([kind]) + payload)
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


class Pluck(NamedTuple):
    """A path inside the elements of an array, as the kernel takes it: where each key begins, its bytes, all keys."""

    starts: NDArray[np.int32]
    sizes: NDArray[np.int32]
    keys: NDArray[np.uint8]

    @classmethod
    def of(cls, path: Path) -> Pluck:
        """The empty path stands for the elements themselves."""
        keys = [key.encode() for key in path]
        sizes = np.fromiter(map(len, keys), np.int32, len(keys))
        starts = (np.cumsum(sizes) - sizes).astype(np.int32)
        return cls(starts, sizes, np.frombuffer(b"".join(keys) or b"\0", np.uint8))


def list_elements(values: FieldValues, pluck: Pluck) -> tuple[FieldValues, NDArray[np.int32]]:
    """The elements of the arrays among the values, and which value owns each; what is no array is its own."""
    from jitdb.log.codecs import container_kernels

    count = len(values.kind)
    room = max(_FIRST_ROOM, count)
    parts: list[list[Any]] = []
    first = 0
    while True:
        begin = first
        types: tuple[Any, ...] = (np.int32, np.uint8, np.int32, np.int32, np.float64)
        out: list[Any] = [np.empty(room, kind) for kind in types]
        first, written = container_kernels.elements(*values, first, count, *pluck, *out)
        parts.append([array[:written] for array in out])
        if first >= count:
            break
        if first == begin:  # one array has more elements than there is room for
            room *= 2
    owner, *columns = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
    return FieldValues(values.encoding, values.buffer, *columns), owner
