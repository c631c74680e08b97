"""A codec that no kernel can read: msgpack, with every byte masked."""

from __future__ import annotations

from typing import Any, ClassVar

from jitdb.log.codecs import get_codec
from jitdb.log.codecs.base import Buffer, Codec

_MSGPACK = get_codec("msgpack")
_MASK = bytes(byte ^ 0x5A for byte in range(256))


def masked(data: Buffer) -> bytes:
    return bytes(data).translate(_MASK)


class Masked(Codec):
    name: ClassVar[str] = "masked"

    def encode(self, value: Any) -> bytes:
        return masked(_MSGPACK.encode(value))

    def decode(self, record: Buffer) -> Any:
        return _MSGPACK.decode(masked(record))

    def decode_at(self, record: Buffer, position: int) -> Any:
        return _MSGPACK.decode_at(masked(record), position)
