"""Records that are bytes and nothing more: stored as they are, without fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from jitdb.common.paths import Keys
from jitdb.common.values import UNDEFINED
from jitdb.errors import DecodeError, EncodeError
from jitdb.log.codecs.base import Buffer, Codec

if TYPE_CHECKING:
    from jitdb.log.codecs.fields.located import Locator


class RawCodec(Codec):
    """Bytes in, the same bytes out.

    >>> RawCodec().decode(RawCodec().encode(b"as it is"))
    b'as it is'
    """

    name: ClassVar[str] = "raw"
    writes_utf8: ClassVar[bool] = True

    def encode(self, value: Any) -> bytes:
        """`value` as bytes. Raises EncodeError unless it is bytes, a bytearray or a memoryview."""
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        raise EncodeError(f"the raw codec stores bytes, not a value of type {type(value).__name__}")

    def decode(self, record: Buffer) -> bytes:
        return bytes(record)

    def decode_at(self, record: Buffer, position: int) -> bytes:
        if not 0 <= position < len(record):
            raise DecodeError(f"position {position} lies outside a record of {len(record)} bytes", position=position)
        return bytes(record[position:])

    def find(self, record: Buffer, path: Keys) -> Any:
        return UNDEFINED if path else bytes(record)

    def is_valid(self, record: Buffer) -> bool:
        return True

    def looks_like(self, records: Sequence[bytes]) -> bool:
        return False

    def locator(self, paths: Sequence[Keys]) -> Locator:
        from jitdb.log.codecs.fields.decoding import Fieldless  # with numpy

        return Fieldless(self, paths)


CODEC = RawCodec()
