"""What is this file? For logs without a sidecar: their block size and codec, or a clear word on why it is no log.

Bytes are believed to be blocks when the chain of lengths in each of the first few ends in a zero header and
nothing but zeros follows it. Text, random bytes, and blocks of another size do not look like that. A damaged block
among others that are in order does not make a file something else.

The block size shows at the first gap: records of the first block end at a zero header, zeros follow up to its end, and
there the next block begins with a header that is not zero. With any other size in which all blocks are in order, the
records are the same; of a file with records in its first block only, the block is taken to be the whole file, as each
program writes whole blocks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from jitdb.errors import NotALog, Remedy
from jitdb.log.blocks.layout import (
    DEFAULT_BLOCK_SIZE,
    LARGEST_U16_BLOCK,
    MAX_BLOCK_SIZE,
    MIN_BLOCK_SIZE,
    header_size,
    round_up,
)
from jitdb.log.blocks.packing import is_zero, walk_block
from jitdb.log.codecs import Codec, get_codec, guess_codec
from jitdb.log.io.osfile import FileSystem

_SIZES: Final = tuple(1 << bits for bits in range(12, 21))  # tried after the default: 4 KiB to 1 MiB
_LOOKED_AT: Final = 4  # blocks with records that must be in order
_SAMPLE: Final = 48  # records that must suit the codec


class Sample(NamedTuple):
    """The first blocks of a file, read with some block size."""

    in_order: int  # blocks with records and nothing else
    damaged: int  # blocks with something else
    torn: bool  # only the file's last block is damaged, and only behind some records
    cut: bool  # and that by a length that leads out of it: so its records have no other end that could be a block's
    records: list[bytes]  # live ones, of the blocks that are in order; if there are none, of the others

    @property
    def tidy(self) -> bool:
        """No block is damaged."""
        return not self.damaged


def look(fs: FileSystem, fd: int, size: int, block_size: int) -> Sample:
    """Read the first few blocks that hold records."""
    header = header_size(block_size)
    sound: list[bytes] = []
    doubtful: list[bytes] = []
    in_order = damaged = 0
    torn = cut = False
    for begin in range(0, min(size, 64 * block_size), block_size):
        block = fs.read(fd, min(block_size, size - begin), begin)
        walk = walk_block(block, len(block), block_size)
        starts = [at + header for at in walk.positions]
        found = (block[at : at + length] for at, length in zip(starts, walk.lengths, strict=True))
        live = [record for record in found if not is_zero(record)]
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
    return Sample(in_order, damaged, torn, cut, (sound or doubtful)[:_SAMPLE])


def detect_block_size(fs: FileSystem, fd: int, path: Path, codec: Codec | None) -> int:
    """The block size of a file that has no sidecar. Raises NotALog, also where several sizes are as likely."""
    size = fs.size(fd)
    if size == 0:
        return DEFAULT_BLOCK_SIZE
    found = _whole(fs, fd, size, codec) or _likely(fs, fd, size, codec)
    if not found:
        raise not_a_log(fs, fd, path, None)
    if len(found) > 1:
        raise NotALog(
            f"it has no sidecar, and blocks of several sizes could be read in it ({', '.join(map(str, found))} bytes)",
            path=path,
            remedy=Remedy(
                f"pass the size that it was written with, block_size={found[0]} perhaps",
                f"pass the size that it was written with, --block-size {found[0]} perhaps",
            ),
            offset=0,
        )
    return found[0]


def _whole(fs: FileSystem, fd: int, size: int, codec: Codec | None) -> list[int]:
    """The sizes with which all of the first blocks are in order: one, or none, or one for each width of headers."""
    usual = (DEFAULT_BLOCK_SIZE, *_SIZES)
    found: dict[int, tuple[int, Sample]] = {}
    for block_size in dict.fromkeys([DEFAULT_BLOCK_SIZE, *_gaps(fs, fd, size), *usual]):
        if size % block_size == 0 and header_size(block_size) not in found:
            sample = look(fs, fd, size, block_size)
            # Nothing but zeros, and raw records in a file cut anywhere, speak for no odd size.
            is_odd = block_size not in usual and block_size & (block_size - 1) != 0
            if sample.tidy and (not is_odd or (sample.in_order and (block_size < size or _speak(sample, codec)))):
                found[header_size(block_size)] = block_size, sample
    if len(found) > 1:
        held = [each for each in found.values() if each[1].in_order] or [next(iter(found.values()))]
        return [size for size, sample in held if _speak(sample, codec)] or [size for size, _ in held]
    return [block_size for block_size, _ in found.values()]


def _likely(fs: FileSystem, fd: int, size: int, codec: Codec | None) -> list[int]:
    """The sizes for which most speaks, if damaged blocks are allowed for."""
    speaks: dict[int, int] = {}
    gaps = _gaps(fs, fd, size)
    divisors = (each for each in range(MIN_BLOCK_SIZE, min(size, DEFAULT_BLOCK_SIZE)) if size % each == 0)
    for block_size in dict.fromkeys([DEFAULT_BLOCK_SIZE, *gaps, *divisors, *_SIZES]):
        if size % block_size == 0 or block_size == DEFAULT_BLOCK_SIZE or block_size in gaps:
            sample = look(fs, fd, size, block_size)
            known = block_size in gaps or (sample.cut and block_size == DEFAULT_BLOCK_SIZE)
            # One block in order may be so by chance, if its records say nothing.
            if sample.in_order > max(1, sample.damaged) or (
                (sample.in_order > sample.damaged or (known and sample.torn)) and _speak(sample, codec)
            ):
                speaks[block_size] = sample.in_order - sample.damaged
    best = [block_size for block_size, points in speaks.items() if points == max(speaks.values())]
    return best[:1] if DEFAULT_BLOCK_SIZE in best else best


def _gaps(fs: FileSystem, fd: int, size: int) -> list[int]:
    """The block sizes that the first gap allows, with headers of either width."""
    found: list[int] = []
    for least, most in ((MIN_BLOCK_SIZE, LARGEST_U16_BLOCK), (LARGEST_U16_BLOCK + 1, MAX_BLOCK_SIZE)):
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


def check_block_size_fits(fs: FileSystem, fd: int, path: Path, block_size: int, codec: Codec | None) -> None:
    """Raise NotALog if a file without a sidecar is no log of this block size."""
    size = fs.size(fd)
    sample = look(fs, fd, size, block_size)
    # Who says both opens a torn log of raw records, for which nothing else can speak.
    is_said = codec is not None and codec.name == "raw" and sample.torn
    if not _is_log(sample, codec) and not (is_said and not _is_text(fs.read(fd, min(size, 4096), 0))):
        raise not_a_log(fs, fd, path, block_size)


def _is_log(sample: Sample, codec: Codec | None) -> bool:
    if sample.tidy or sample.in_order > sample.damaged:
        return True
    if not sample.torn or not sample.records:
        return False
    # The end of its only block, or of the second, is torn: the records must speak for it, and raw ones cannot.
    return _speak(sample, codec)


def _speak(sample: Sample, codec: Codec | None) -> bool:
    """Whether the records are values of the codec, or of one of ours."""
    if codec is None:
        return guess_codec(sample.records) is not None
    whole = sample.records[:-1] or sample.records
    return codec.name != "raw" and bool(whole) and all(map(codec.is_valid, whole))


def detect_codec(fs: FileSystem, fd: int, path: Path, block_size: int) -> Codec | None:
    """The codec of a file's first records; None if it has no live ones. Raises NotALog if they do not tell."""
    records = look(fs, fd, fs.size(fd), block_size).records
    if not records:
        return None
    name = guess_codec(records)
    if name is None:
        raise NotALog(
            f"its first {len(records)} records do not tell which codec they were written with (the record at the "
            f"beginning starts with {records[0][:16]!r})",
            path=path,
            remedy=Remedy("pass codec='bipf', 'msgpack' or 'raw'", "pass --codec bipf, msgpack or raw"),
            offset=0,
        )
    return get_codec(name)


def check_codec(fs: FileSystem, fd: int, path: Path, block_size: int, codec: Codec) -> None:
    """Raise NotALog if the first records are not of this codec."""
    records = look(fs, fd, fs.size(fd), block_size).records
    wrong = [record for record in records if not codec.is_valid(record)]
    if 2 * len(wrong) > len(records):  # a damaged record among others is no other codec
        name = guess_codec(records)
        raise NotALog(
            f"its first records are not {codec.name} (a record starts with {wrong[0][:16]!r})"
            + (f", they look like {name}" if name else ""),
            path=path,
            remedy=Remedy.option("codec", name) if name else "pass the codec it was written with",
        )


def not_a_log(fs: FileSystem, fd: int, path: Path, block_size: int | None) -> NotALog:
    """The error that says best what the file is instead."""
    size = fs.size(fd)
    head = fs.read(fd, min(size, 4096), 0)
    if _is_text(head):
        if head.lstrip()[:1] in (b"{", b"["):
            return NotALog(
                "this is JSON text, not a block-aligned log",
                path=path,
                offset=0,
                remedy=f"make a log of it with: jitdb import {path.name} {path.with_suffix('.log').name}",
            )
        return NotALog(f"this is a text file, not a block-aligned log (it begins {head[:32]!r})", path=path, offset=0)
    if block_size is None:
        silent = _silent(fs, fd, path, size)
        if silent is not None:
            return silent
    else:
        for other in _whole(fs, fd, size, None):
            if other != block_size:
                return NotALog(
                    f"its blocks are not of {block_size:,} bytes, but could be of {other:,}",
                    path=path,
                    offset=0,
                    remedy=Remedy.option("block_size", other, ", or none and it is found"),
                )
    at = _fault(head, fs.read(fd, min(size, block_size or DEFAULT_BLOCK_SIZE), 0), block_size or DEFAULT_BLOCK_SIZE)
    rest = "" if size == round_up(size, DEFAULT_BLOCK_SIZE) else ", and its size is no multiple of 65,536 bytes"
    tried = f"{block_size:,} bytes" if block_size else "16 bytes to 16 MiB"
    return NotALog(
        f"this is not a block-aligned log of blocks of {tried}: {at}{rest}",
        path=path,
        offset=0,
        remedy=Remedy(
            "if it is a log with blocks of another size, pass block_size=",
            "if it is a log with blocks of another size, pass --block-size",
        ),
    )


def _silent(fs: FileSystem, fd: int, path: Path, size: int) -> NotALog | None:
    """The error for a file that is in order with some block size, though nothing in it speaks for one."""
    for block_size in dict.fromkeys([*_gaps(fs, fd, size), min(size, MAX_BLOCK_SIZE)]):
        if block_size >= MIN_BLOCK_SIZE and (sample := look(fs, fd, size, block_size)).tidy:
            found, python, shell = "it is nothing but zeros", "", ""
            if sample.records:
                found = "there are no records of msgpack or bipf in it"
                python, shell = " and codec=", " and --codec"
            elif sample.in_order:
                found = "all its records are deleted"
            return NotALog(
                f"it has no sidecar, and {found}, so nothing tells the size of its blocks",
                path=path,
                offset=0,
                remedy=Remedy(
                    f"if it is a log, pass block_size={block_size}{python}, or what else it was written with",
                    f"if it is a log, pass --block-size {block_size}{shell}, or what else it was written with",
                ),
            )
    return None


def _fault(head: bytes, block: bytes, block_size: int) -> str:
    walk = walk_block(block, len(block), block_size)
    header = header_size(block_size)
    length = int.from_bytes(block[walk.end : walk.end + header], "little")
    if walk.fault:
        return f"the length at byte {walk.end} ({length:,}) leads out of its block of {block_size:,} bytes"
    return f"other bytes follow the end of the first block's records at byte {walk.end}"


def _is_text(head: bytes) -> bool:
    if not head or 0 in head:
        return False
    try:
        head[: max(1, len(head) - 3)].decode()
    except UnicodeDecodeError as error:
        return error.start >= len(head) - 7 and len(head) > 16
    return True
