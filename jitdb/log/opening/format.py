"""Which block size and codec a log has: by its sidecar, by what the caller says, by the file's bytes.

Bytes are taken for blocks if the chain of lengths in each of the first few ends in a zero header, and only zeros
follow: text, random bytes, and blocks of another size do not look like that. The block size shows at the first gap: the
first block's records are followed by zeros, and then the second block begins with a header that is not zero. With any
other size in which all blocks are in order, the records are the same.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.common.formats import CODECS, WITH_FIELDS, either
from jitdb.errors import NotALog, Remedy
from jitdb.log.blocks.block_format import (
    DEFAULT_BLOCK_SIZE,
    LARGEST_U16_BLOCK,
    MAX_BLOCK_SIZE,
    MIN_BLOCK_SIZE,
    check_block_size,
    header_size,
    is_zero,
    round_up,
    walk_block,
)
from jitdb.log.codecs import Codec, get_codec, guess_codec
from jitdb.log.io.osfile import FileSystem
from jitdb.log.sidecar.journal import CLOSED, Entry
from jitdb.log.sidecar.meta import Meta

DEFAULT_CODEC = "msgpack"

_SIZES: Final = (DEFAULT_BLOCK_SIZE, *(1 << bits for bits in range(12, 21)))  # tried: 4 KiB to 1 MiB
_LOOKED_AT: Final = 4  # blocks with records that must be in order
_SAMPLE: Final = 48  # records that must suit the codec


class OpenOptions(NamedTuple):
    """What the caller of Log(...) asked for; None: whatever the log has.

    files: through which the log is read and written; None: those of the system
    """

    codec: Codec | None
    block_size: int | None
    files: FileSystem | None = None

    @classmethod
    def of(cls, codec: str | Codec | None, block_size: int | None, files: FileSystem | None = None) -> OpenOptions:
        """Raises CodecError for an unknown codec, LogError for an impossible block size."""
        return cls(
            None if codec is None else get_codec(codec),
            None if block_size is None else check_block_size(block_size),
            files,
        )


class LogFormat(NamedTuple):
    block_size: int
    codec: Codec
    codec_name: str  # of the log, also if it is opened as raw bytes


def resolve_format(
    fs: FileSystem, fd: int, path: Path, options: OpenOptions, known: Meta | None, base: Entry | None
) -> LogFormat:
    """`known` and `base` are what the sidecar says, if there is one. Raises NotALog."""
    size = fs.size(fd)
    if known is not None and base is not None and (base.end > 0 or (base.kind != CLOSED and size > 0)):
        return _as_known(fs, fd, path, options, known)
    if size == 0:
        block_size = options.block_size or (known.block_size if known else DEFAULT_BLOCK_SIZE)
        codec = options.codec or get_codec(known.codec if known else DEFAULT_CODEC)
        return LogFormat(block_size, codec, codec.name)
    # We wrote nothing in this file, so the records are looked at.
    block_size = _block_size(fs, fd, path, options, known)
    records = _look(fs, fd, block_size).records
    if options.codec is not None:
        _check_codec(path, records, options.codec)
        name = options.codec.name if known is None or options.codec.name != "raw" else known.codec
        return LogFormat(block_size, options.codec, name)
    if known is not None:
        with suppress(NotALog):  # the sidecar may have been made when the log was empty
            codec = get_codec(known.codec)
            _check_codec(path, records, codec)
            return LogFormat(block_size, codec, codec.name)
    found = _detect_codec(path, records)
    return LogFormat(block_size, found, found.name)


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
        _check_codec(path, _look(fs, fd, known.block_size).records, codec)
    return LogFormat(known.block_size, codec, known.codec)


def _detect_codec(path: Path, records: list[bytes]) -> Codec:
    """The codec of the first records. Raises NotALog if it is not clear."""
    name = guess_codec(records) if records else DEFAULT_CODEC
    if name is None:
        raise NotALog(
            f"its first {len(records)} records do not tell which codec they were written with",
            path=path,
            remedy=Remedy(f"pass codec={either(map(repr, CODECS))}", f"pass --codec {either(CODECS)}"),
            offset=0,
        )
    return get_codec(name)


def _check_codec(path: Path, records: list[bytes], codec: Codec) -> None:
    """Raise NotALog if the first records are not of this codec."""
    wrong = [record for record in records if not codec.is_valid(record)]
    if 2 * len(wrong) > len(records):  # one damaged record is no other codec
        name = guess_codec(records)
        raise NotALog(
            f"its first records are not {codec.name}" + (f", they look like {name}" if name else ""),
            path=path,
            remedy=Remedy.option("codec", name) if name else "pass the codec it was written with",
        )


class _Sample(NamedTuple):
    """The first blocks of a file that hold records, read with some block size."""

    in_order: int  # blocks with records and nothing else
    damaged: int  # blocks with something else
    torn: bool  # only the file's last block is damaged, and only behind some records
    cut: bool  # and a length leads out of it, so no end of a block can be there
    records: list[bytes]  # live ones, of the blocks that are in order; if there are none, of the others

    def speaks(self, codec: Codec | None) -> bool:
        """Whether the records are values of the codec, or of one of ours. Raw records never are."""
        if codec is None:
            return guess_codec(self.records) is not None
        whole = self.records[:-1] or self.records
        return codec.name != "raw" and bool(whole) and all(map(codec.is_valid, whole))

    def is_log(self, codec: Codec | None) -> bool:
        """Whether these are blocks of this size. If one is torn, the records must be values of the codec."""
        return not self.damaged or self.in_order > self.damaged or (self.torn and self.speaks(codec))


def _look(fs: FileSystem, fd: int, block_size: int) -> _Sample:
    size, header = fs.size(fd), header_size(block_size)
    sound: list[bytes] = []
    doubtful: list[bytes] = []
    in_order = damaged = 0
    torn = cut = False
    for begin in range(0, min(size, 64 * block_size), block_size):
        block = fs.read(fd, min(block_size, size - begin), begin)
        walk = walk_block(block, len(block), block_size)
        live = [record for record in walk.records(block, header) if not is_zero(record)]
        if walk.fault or not is_zero(block[walk.end :]):
            doubtful += live
            torn = not damaged and begin + block_size >= size and bool(walk.positions)
            cut = torn and walk.fault
            damaged += 1
        else:
            sound += live
            in_order += bool(walk.positions)
        if in_order >= _LOOKED_AT + 2 * damaged or damaged > _LOOKED_AT + in_order:
            break
    return _Sample(in_order, damaged, torn, cut, (sound or doubtful)[:_SAMPLE])


def _block_size(fs: FileSystem, fd: int, path: Path, options: OpenOptions, known: Meta | None) -> int:
    codec, given = options.codec, options.block_size
    if given is not None:
        sample = _look(fs, fd, given)
        # With both given, a torn log of raw records is opened: nothing else could show that it is one.
        is_said = codec is not None and codec.name == "raw" and sample.torn and not _is_text(fs.read(fd, 4096, 0))
        if not sample.is_log(codec) and not is_said:
            raise _not_a_log(fs, fd, path, given)
        return given
    if known is not None and not _look(fs, fd, known.block_size).damaged:
        return known.block_size
    return _detect_block_size(fs, fd, path, codec)


def _detect_block_size(fs: FileSystem, fd: int, path: Path, codec: Codec | None) -> int:
    """The most likely block size of a file without a sidecar. Raises NotALog, also if two are equally likely."""
    size, gaps = fs.size(fd), _gaps(fs, fd)
    found: dict[int, tuple[bool, bool, int]] = {}
    for block_size in dict.fromkeys([DEFAULT_BLOCK_SIZE, *gaps, *_SIZES]):
        whole = size % block_size == 0
        if whole or block_size in (DEFAULT_BLOCK_SIZE, *gaps):
            sample = _look(fs, fd, block_size)
            tidy, speaks = whole and not sample.damaged, sample.speaks(codec)
            # Zeros alone, and raw records in a file cut anywhere, are no evidence for an odd size. A single block may
            # be in order by chance.
            usual, several = block_size in _SIZES and tidy, sample.in_order > max(1, sample.damaged)
            is_end = sample.torn and (sample.cut or block_size in gaps)
            if usual or several or (speaks and (sample.in_order > sample.damaged or is_end)):
                found[block_size] = tidy, speaks, sample.in_order - sample.damaged
    best = [block_size for block_size, points in found.items() if points == max(found.values())]
    several = len({header_size(block_size) for block_size in best}) > 1
    if not best or (several and not max(found.values())[1]):
        raise _not_a_log(fs, fd, path, None)
    return best[0]


def _gaps(fs: FileSystem, fd: int) -> list[int]:
    """The block sizes that the first gap allows, with headers of either width."""
    size = fs.size(fd)
    found: list[int] = []
    for least, most in (
        (MIN_BLOCK_SIZE, LARGEST_U16_BLOCK),
        (LARGEST_U16_BLOCK + 1, MAX_BLOCK_SIZE),
    ):
        header = header_size(most)
        if int.from_bytes(fs.read(fd, header, 0), "little") > most:
            continue  # as a rule, and nothing more is read
        data = fs.read(fd, min(size, most + header), 0)
        walk = walk_block(data, len(data), most)
        if walk.fault or not walk.positions:
            continue
        rest = len(data[walk.end :].lstrip(b"\0"))
        # The low bytes of a length may be zero.
        sizes = [len(data) - rest - zeros for zeros in range(header)] if rest else [size]
        found += [each for each in sizes if max(least, walk.end + header) <= each <= most]
    return found


def _not_a_log(fs: FileSystem, fd: int, path: Path, block_size: int | None) -> NotALog:
    """The error, which says what the file seems to be instead."""
    size, head = fs.size(fd), fs.read(fd, 4096, 0)
    if _is_text(head):
        if head.lstrip()[:1] in (b"{", b"["):
            return NotALog(
                "this is JSON text, not a block-aligned log",
                path=path,
                offset=0,
                remedy=Remedy.importing(path),
            )
        return NotALog("this is a text file, not a block-aligned log", path=path, offset=0)
    sizes = [*_gaps(fs, fd), *(each for each in _SIZES if size % each == 0), min(size, MAX_BLOCK_SIZE)]
    for other in sizes:
        sample = _look(fs, fd, max(other, MIN_BLOCK_SIZE))
        if other in (block_size, 0) or sample.damaged:
            continue
        if block_size is not None:
            what = f"its blocks are not of {block_size:,} bytes, but could be of {other:,}"
            more = ", or none and it is found"
        else:
            found = "all its records are deleted" if sample.in_order else "it is nothing but zeros"
            found = f"there are no records of {either(WITH_FIELDS)} in it" if sample.records else found
            what = f"it has no sidecar, and {found}, so nothing tells the size of its blocks"
            more = ", or what else it was written with" + (", and the codec" if sample.records else "")
        return NotALog(what, path=path, offset=0, remedy=Remedy.option("block_size", other, more))
    size_tried = block_size or DEFAULT_BLOCK_SIZE
    block = fs.read(fd, size_tried, 0)
    walk = walk_block(block, len(block), size_tried)
    length = int.from_bytes(block[walk.end : walk.end + header_size(size_tried)], "little")
    at = f"other bytes follow the end of the first block's records at byte {walk.end}"
    if walk.fault:
        at = f"the length at byte {walk.end} ({length:,}) leads out of its block of {size_tried:,} bytes"
    rest = "" if size == round_up(size, DEFAULT_BLOCK_SIZE) else ", and its size is no multiple of 65,536 bytes"
    tried = f"{block_size:,} bytes" if block_size else "16 bytes to 16 MiB"
    return NotALog(
        f"this is binary, and no log of jitdb's (blocks of {tried} were tried): {at}{rest}",
        path=path,
        offset=0,
        remedy=Remedy.without("block_size")
        if block_size
        else Remedy(
            "if it is a log, pass its block_size=; `jitdb import` reads JSON Lines, CSV, Parquet and Arrow",
            "if it is a log, pass its --block-size; `jitdb import` reads JSON Lines, CSV, Parquet and Arrow",
        ),
    )


def _is_text(head: bytes) -> bool:
    if not head or 0 in head:
        return False
    try:
        head[: max(1, len(head) - 3)].decode()
    except UnicodeDecodeError as error:
        return error.start >= len(head) - 7 and len(head) > 16
    return True
