"""Saving the records of a damaged block. Bytes in, bytes out; no I/O.

Up to where the chain of lengths breaks, records that the codec accepts stay where they are. After it, the next position
is searched from which a chain of valid records leads exactly to the block's end. What lies between, and each record
that the codec refuses, becomes a deleted record, so that the chain is whole again.

Raw records cannot be told from other bytes: in a raw log, what follows a broken length is lost.
"""

from __future__ import annotations

from typing import NamedTuple

from jitdb.errors import DecodeError
from jitdb.log.blocks.block_format import Walk, header_reader, header_size, header_struct, is_zero, walk_block
from jitdb.log.blocks.checksum import crc32
from jitdb.log.codecs import Codec


class DamagedBlock(NamedTuple):
    """A damaged block."""

    data: bytes  # block_size of them
    used: int  # where its records end, if that is known: of the last block; else block_size
    expected: int | None  # crc32 of the first `used` bytes as they were written, if it is known

    @property
    def end_of_records(self) -> int:
        """Where its records end, if their chain is whole: with the last byte that is not zero."""
        is_last = self.used < len(self.data)
        return self.used if is_last else len(self.data[: -header_size(len(self.data))].rstrip(b"\0"))


class RepairedBlock(NamedTuple):
    """A repaired block. Positions count from its beginning."""

    data: bytes
    end: int  # where its records end
    restored: bool = False  # whether it is what was written
    kept: tuple[int, ...] = ()  # live records that are not certain to be what was written
    lost: tuple[int, ...] = ()  # deleted records that replace unreadable bytes

    def promise(self) -> str:
        """What repair will do, behind the word "repair".

        >>> RepairedBlock(b"", 0, kept=(0, 7)).promise()
        'keeps 2 records, which are not certain'
        """
        if self.restored:
            return "makes the bytes behind its records zero again; no record is touched"
        gone = (
            f", and makes a deleted record of what cannot be read (at {len(self.lost):,} places)" if self.lost else ""
        )
        return f"keeps {len(self.kept):,} records, which are not certain{gone}"

    def describe(self) -> str:
        """What was done, as a part of a sentence.

        >>> RepairedBlock(b"", 0, kept=(0, 7), lost=(20,)).describe()
        '2 records kept, not certain to be what was written; what cannot be read (1 place) became a deleted record'
        """
        if self.restored:
            return "bytes behind its records made zero: it is what was written"
        places = f"{len(self.lost):,} place{'' if len(self.lost) == 1 else 's'}"
        gone = f"what cannot be read ({places}) became a deleted record" if self.lost else "all can be read"
        return f"{len(self.kept):,} records kept, not certain to be what was written; {gone}"


def is_sound(data: bytes, used: int, codec: Codec) -> bool:
    """Whether the chain of lengths is whole, only zeros follow it, and the codec accepts all live records."""
    walk = walk_block(data, used, len(data))
    records = walk.records(data, header_size(len(data)))
    return _is_whole(walk, data, used) and all(is_zero(record) or codec.is_valid(record) for record in records)


def _is_whole(walk: Walk, data: bytes, used: int) -> bool:
    ends = walk.end == used if used < len(data) else True
    return not walk.fault and ends and is_zero(data[walk.end :])


def repair_block(damaged: DamagedBlock, codec: Codec) -> RepairedBlock:
    """The block with all records that can be saved."""
    data, used, header = damaged.data, damaged.used, header_size(len(damaged.data))
    written = data[:used].ljust(len(data), b"\0")
    if damaged.expected == crc32(data[:used]) and is_sound(written, used, codec):
        return RepairedBlock(written, walk_block(written, used, len(data)).end, restored=True)
    salvage = _Salvage(damaged, codec)
    walk = walk_block(data, used, len(data))
    if _is_whole(walk, data, used):
        return salvage.image(salvage.take(0, walk))
    # Refused records at the end of the chain are other bytes, to which a wrong length led.
    states = [is_zero(record) or codec.is_valid(record) for record in walk.records(data, header)]
    good = max((number + 1 for number, state in enumerate(states) if state), default=0)
    at = salvage.take(0, Walk(walk.positions[:good], walk.lengths[:good], 0, False))
    following = salvage.find_chain(at + header + 1)
    if following is None:
        return salvage.image(salvage.give_up(at))
    salvage.bridge(at, following)
    return salvage.image(salvage.take(following, walk_block(data[following:], used - following, len(data))))


class _Salvage:
    """A block in the making."""

    def __init__(self, damaged: DamagedBlock, codec: Codec) -> None:
        self._damaged, self._codec = damaged, codec
        self._header = header_size(len(damaged.data))
        self._data = bytearray(damaged.data)
        self._kept: list[int] = []
        self._lost: list[int] = []
        self._only_maps = True  # so far; then what find_chain() accepts must be maps, too

    def take(self, start: int, walk: Walk) -> int:
        """Keep the records of a chain from `start` on that the codec accepts; gives where the chain ends."""
        for position, length in zip(walk.positions, walk.lengths, strict=True):
            at, start_of = start + position, start + position + self._header
            record = bytes(self._data[start_of : start_of + length])
            if is_zero(record):
                continue
            if self._codec.is_valid(record):
                self._kept.append(at)
                self._only_maps = self._only_maps and _is_map(record, self._codec)
            else:
                self._lose(at, start_of + length)
        return start + (walk.positions[-1] + self._header + walk.lengths[-1] if walk.positions else 0)

    def find_chain(self, low: int) -> int | None:
        """The first position, from `low` on, of a live record from which a chain leads exactly to the block's end."""
        if self._codec.name == "raw":
            return None
        data, read, header = self._damaged.data, header_reader(len(self._damaged.data)), self._header
        first_end = self._damaged.end_of_records
        last = self._damaged.used if self._damaged.used < len(data) else len(data) - header
        leads = bytearray(last + 1)  # per position: whether a chain from it leads to the end
        leads[first_end:] = b"\1" * (last + 1 - first_end)
        is_value = _is_map if self._only_maps else _is_valid
        found = None
        for position in range(last - header - 1, low - 1, -1):
            (length,) = read(data, position)
            after = position + header + length
            if length and after <= last and leads[after]:
                record = data[position + header : after]
                if is_zero(record):
                    leads[position] = 1
                elif is_value(record, self._codec):
                    leads[position], found = 1, position
        return found

    def bridge(self, start: int, stop: int) -> None:
        """What lies between two chains becomes one record: a valid one whose length was wrong, or a deleted one."""
        if self._codec.is_valid(bytes(self._data[start + self._header : stop])):
            self._write_length(start, stop)
            self._kept.append(start)
        else:
            self._lose(start, stop)

    def give_up(self, start: int) -> int:
        """Give up all bytes from here on; gives where the records end."""
        least = start + self._header + 1
        stop = self._damaged.end_of_records
        if start == 0:
            stop = max(stop, least)  # the last block must hold a record
        if stop < least:
            return start
        self._lose(start, stop)
        return stop

    def _lose(self, start: int, stop: int) -> None:
        self._data[start + self._header : stop] = bytes(stop - start - self._header)
        self._write_length(start, stop)
        self._lost.append(start)

    def _write_length(self, start: int, stop: int) -> None:
        header = header_struct(len(self._data)).pack(stop - start - self._header)
        self._data[start : start + self._header] = header

    def image(self, end: int) -> RepairedBlock:
        """The block, its records ending at `end`."""
        self._data[end:] = bytes(len(self._data) - end)
        return RepairedBlock(bytes(self._data), end, kept=tuple(self._kept), lost=tuple(self._lost))


def _is_valid(record: bytes, codec: Codec) -> bool:
    return codec.is_valid(record)


def _is_map(record: bytes, codec: Codec) -> bool:
    try:
        return isinstance(codec.decode(record), dict)
    except DecodeError:
        return False
