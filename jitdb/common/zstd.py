"""zstd (RFC 8878): Python's own, which the package backports.zstd brings to versions before 3.14."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

if sys.version_info >= (3, 14):
    from compression.zstd import (
        CompressionParameter,
        DecompressionParameter,
        ZstdCompressor,
        ZstdDecompressor,
        ZstdError,
    )
else:
    from backports.zstd import (
        CompressionParameter,
        DecompressionParameter,
        ZstdCompressor,
        ZstdDecompressor,
        ZstdError,
    )

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ZstdDecompressor", "ZstdError", "compressor", "decompressed", "decompressor"]

_WINDOW: Final = 27  # of two, the power: bytes that a frame may make us hold, as zstd's own tool has it


def compressor(level: int, *, has_sum: bool = False) -> Callable[[bytes | bytearray | memoryview], bytes]:
    """What makes one frame of each text, which says how long that is. Not safe for threads."""
    parameters: dict[int, int] = {
        CompressionParameter.compression_level: level,
        CompressionParameter.checksum_flag: int(has_sum),
    }
    made = ZstdCompressor(options=parameters)
    return lambda text: made.compress(text, ZstdCompressor.FLUSH_FRAME)


def decompressor() -> ZstdDecompressor:
    """Of one frame, which may come in parts. Not safe for threads."""
    return ZstdDecompressor(options={DecompressionParameter.window_log_max: _WINDOW})


def decompressed(frame: bytes | memoryview, most: int) -> bytes:
    """The text of a frame. Raises ZstdError, also where the frame is cut off or holds more than so many bytes."""
    stream = decompressor()
    text = stream.decompress(frame, most + 1)
    if len(text) > most:
        raise ZstdError(f"it holds more than {most:,} bytes of text")
    if not stream.eof:
        raise ZstdError("it is cut off")
    return text
