"""Decoding the payload of a container, as the kernels locate it: without the head that says its type and size."""

from __future__ import annotations

from typing import Any

from jitdb.errors import DecodeError
from jitdb.log.codecs.base import Codec
from jitdb.values import ARRAY, UNDEFINED, hashable


def decode_payload(codec: Codec, kind: int, payload: bytes) -> Any:
    """The array or map (`kind`) whose payload this is; UNDEFINED when it is malformed inside, as `find` has it.

    >>> from jitdb.log.codecs import get_codec
    >>> decode_payload(get_codec("bipf"), ARRAY, b"\\x06\\x08a")
    [None, 'a']
    """
    items: list[Any] = []
    position = 0
    try:
        while position < len(payload):
            value, position = _decode_one(codec, payload, position)
            items.append(value)
        return items if kind == ARRAY else dict(zip(map(hashable, items[::2]), items[1::2], strict=True))
    except (DecodeError, TypeError, ValueError):
        return UNDEFINED


def _decode_one(codec: Codec, payload: bytes, position: int) -> tuple[Any, int]:
    if codec.name == "bipf":
        from jitdb.log.codecs.bipf_decode import decode_span

        return decode_span(payload, position)
    from jitdb.log.codecs.msgpack_walk import check

    end = check(payload, position)
    return codec.decode(payload[position:end]), end
