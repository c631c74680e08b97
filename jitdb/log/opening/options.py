"""Which block size and codec a log has: what its sidecar says, what the caller says, what the records say."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from jitdb.errors import NotALog, Remedy
from jitdb.log.blocks.layout import DEFAULT_BLOCK_SIZE, check_block_size
from jitdb.log.codecs import Codec, get_codec
from jitdb.log.io.osfile import FileSystem
from jitdb.log.opening import detect
from jitdb.log.sidecar.journal import CLOSED, Entry
from jitdb.log.sidecar.meta import Meta

DEFAULT_CODEC = "msgpack"


class OpenOptions(NamedTuple):
    """What the caller of Log(...) asked for; None: whatever it is."""

    codec: Codec | None
    block_size: int | None

    @classmethod
    def of(cls, codec: str | Codec | None, block_size: int | None) -> OpenOptions:
        """Raises CodecError for an unknown codec, LogError for an impossible block size."""
        return cls(
            None if codec is None else get_codec(codec),
            None if block_size is None else check_block_size(block_size),
        )


class LogFormat(NamedTuple):
    """How to read the log."""

    block_size: int
    codec: Codec
    codec_name: str  # of the log; another than the codec's if the log is opened as raw bytes


def resolve_format(
    fs: FileSystem, fd: int, path: Path, options: OpenOptions, known: Meta | None, base: Entry | None
) -> LogFormat:
    """Find it out. `known` and `base` are what the sidecar says, if there is one. Raises NotALog."""
    size = fs.size(fd)
    if known is not None and base is not None and (base.end > 0 or (base.kind != CLOSED and size > 0)):
        return _as_known(fs, fd, path, options, known)
    if size == 0:
        block_size = options.block_size or (known.block_size if known else DEFAULT_BLOCK_SIZE)
        codec = options.codec or get_codec(known.codec if known else DEFAULT_CODEC)
        return LogFormat(block_size, codec, codec.name)
    # Nothing in the file is of our writing: the records have a word in it.
    block_size = _block_size(fs, fd, path, options, known)
    if options.codec is not None:
        detect.check_codec(fs, fd, path, block_size, options.codec)
        if known is not None and options.codec.name == "raw":
            return LogFormat(block_size, options.codec, known.codec)
        return LogFormat(block_size, options.codec, options.codec.name)
    if known is not None:
        try:
            codec = get_codec(known.codec)
            detect.check_codec(fs, fd, path, block_size, codec)
        except NotALog:
            pass  # the sidecar was made when the log was empty: find out
        else:
            return LogFormat(block_size, codec, codec.name)
    found = detect.detect_codec(fs, fd, path, block_size) or get_codec(DEFAULT_CODEC)
    return LogFormat(block_size, found, found.name)


def _block_size(fs: FileSystem, fd: int, path: Path, options: OpenOptions, known: Meta | None) -> int:
    if options.block_size is not None:
        detect.check_block_size_fits(fs, fd, path, options.block_size, options.codec)
        return options.block_size
    if known is not None and detect.look(fs, fd, fs.size(fd), known.block_size).tidy:
        return known.block_size
    return detect.detect_block_size(fs, fd, path, options.codec)


def _as_known(fs: FileSystem, fd: int, path: Path, options: OpenOptions, known: Meta) -> LogFormat:
    if options.block_size not in (None, known.block_size):
        raise NotALog(
            f"its blocks are of {known.block_size:,} bytes, not of {options.block_size:,}",
            path=path,
            remedy=Remedy.without("block_size"),
        )
    codec = options.codec
    if codec is None:
        codec = get_codec(known.codec)
    elif codec.name != known.codec and "raw" not in (codec.name, known.codec):
        raise NotALog(
            f"its records are {known.codec}, not {codec.name}",
            path=path,
            remedy=Remedy.option("codec", known.codec, ", or leave it out"),
        )
    elif codec.name != known.codec:
        detect.check_codec(fs, fd, path, known.block_size, codec)
    return LogFormat(known.block_size, codec, known.codec)
