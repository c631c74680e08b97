"""Decoding the payload of a container, as the kernels locate it: without the head that says its type and size."""

from __future__ import annotations

from typing import Any

from jitdb.common.values import MAP, UNDEFINED
from jitdb.errors import DecodeError
from jitdb.log.codecs.base import Codec


def decode_payload(codec: Codec, kind: int, payload: bytes) -> Any:
    """The array or map (`kind`) whose payload this is; UNDEFINED when it is malformed inside, as `find` has it.

    >>> from jitdb.log.codecs import get_codec
    >>> from jitdb.common.values import ARRAY
    >>> decode_payload(get_codec("bipf"), ARRAY, b"\\x06\\x08a")
    [None, 'a']
    """
    try:
        if codec.name == "bipf":
            from jitdb.log.codecs.bipf.decode import decode_body

            return decode_body(payload, kind == MAP)
        from jitdb.log.codecs.msgpack.codec import decode_parts

        return decode_parts(payload, kind == MAP)
    except (DecodeError, TypeError, ValueError):
        return UNDEFINED
