"""What can be saved of a damaged block. Bytes in, bytes out; no I/O.

1. If one flipped bit explains the wrong CRC, and with it flipped back the block is in order, that is what was written.
2. Else the records that the codec accepts stay where they are, up to where the chain of lengths goes wrong. Behind it
   the next position is looked for from which a chain of valid records leads exactly to the block's end; what lies
   between, and every record that the codec refuses, becomes a deleted record, so that the chain is whole again.

Raw records cannot be told from other bytes: of a raw log, what lies behind a broken length is lost.
"""

from __future__ import annotations

from typing import NamedTuple

from jitdb.errors import DecodeError
from jitdb.log.blocks.block_format import Walk, header_reader, header_size, header_struct, is_zero, walk_block
from jitdb.log.blocks.checksum import crc32
from jitdb.log.codecs import Codec
from jitdb.log.sidecar.onebit import Flip, find_flip, flip_back

_DELETED, _LIVE = 1, 2


class DamagedBlock(NamedTuple):
    """A block as it was found."""

    data: bytes  # block_size of them
    used: int  # where its records end, if that is known: of the last block; else block_size
    expected: int | None  # crc32 of the first `used` bytes as they were written, if it is known

    @property
    def is_last(self) -> bool:
        """Whether it is the log's last block."""
        return self.used < len(self.data)


class RepairedBlock(NamedTuple):
    """A block as it shall be. Positions count from its beginning."""

    data: bytes
    end: int  # where its records end
    flip: Flip | None = None  # the bit that was put right
    restored: bool = False  # whether this is what was written
    kept: tuple[int, ...] = ()  # live records that are not certain to be what was written
    lost: tuple[int, ...] = ()  # deleted records in the place of what cannot be read

    def promise(self) -> str:
        """What repair will do, behind the word "repair".

        >>> RepairedBlock(b"", 0, kept=(0, 7)).promise()
        'keeps 2 records, which are not certain'
        """
        if self.flip is not None:
            return f"flips one bit back, at byte {self.flip.byte:,} of the block: {self._odds}"
        if self.restored:
            return "makes the bytes behind its records zero again; no record is touched"
        gone = (
            f", and makes a deleted record of what cannot be read (at {len(self.lost):,} places)" if self.lost else ""
        )
        return f"keeps {len(self.kept):,} records, which are not certain{gone}"

    @property
    def _odds(self) -> str:
        """What is known of the block once its bit is flipped back (see onebit.py)."""
        chance = (1 << 32) // (8 * len(self.data))
        return f"it fits its CRC then, which other damage does by chance in 1 of {chance:,}"

    def describe(self) -> str:
        """What was done, as a part of a sentence.

        >>> RepairedBlock(b"", 0, kept=(0, 7), lost=(20,)).describe()
        '2 records kept, not certain to be what was written; what cannot be read (1 place) became a deleted record'
        """
        if self.flip is not None:
            return f"one bit flipped back, at byte {self.flip.byte:,} of the block: {self._odds}"
        if self.restored:
            return "bytes behind its records made zero: it is what was written"
        places = f"{len(self.lost):,} place{'' if len(self.lost) == 1 else 's'}"
        gone = f"what cannot be read ({places}) became a deleted record" if self.lost else "all can be read"
        return f"{len(self.kept):,} records kept, not certain to be what was written; {gone}"


def repair_block(damaged: DamagedBlock, codec: Codec) -> RepairedBlock:
    """The best that can be made of it."""
    return _restore(damaged, codec) or _salvage(damaged, codec)


def is_sound(data: bytes, used: int, codec: Codec) -> bool:
    """Whether the chain of lengths is whole, only zeros follow it, and the codec accepts all live records."""
    walk = walk_block(data, used, len(data))
    return _is_whole(walk, data, used) and all(_states(walk, data, codec))


# --- one bit ---------------------------------------------------------------------------------------------------------


def _restore(damaged: DamagedBlock, codec: Codec) -> RepairedBlock | None:
    if damaged.expected is None:
        return None
    part = damaged.data[: damaged.used]
    difference = damaged.expected ^ crc32(part)
    flip = find_flip(len(part), difference) if difference else None
    if difference:
        if flip is None:
            return None
        part = flip_back(part, flip)
    data = part + bytes(len(damaged.data) - len(part))
    if not is_sound(data, damaged.used, codec):
        return None
    return RepairedBlock(data, walk_block(data, damaged.used, len(data)).end, flip, restored=True)


# --- records ---------------------------------------------------------------------------------------------------------


def _salvage(damaged: DamagedBlock, codec: Codec) -> RepairedBlock:
    data, used = damaged.data, damaged.used
    walk = walk_block(data, used, len(data))
    states = _states(walk, data, codec)
    work = _BlockBuilder(damaged)
    if _is_whole(walk, data, used):
        work.take(walk, states, len(states))
        return work.image(walk.end)
    # Records that are refused, with none behind them that is not, are what a wrong length leads to.
    good = max((number + 1 for number, state in enumerate(states) if state), default=0)
    work.take(walk, states, good)
    at = walk.positions[good - 1] + work.header + walk.lengths[good - 1] if good else 0
    following = _resynchronize(damaged, at + work.header + 1, codec, _are_maps(walk, states, data, codec))
    if following is None:
        return work.image(work.give_up(at))
    work.bridge(at, following, codec)
    rest = walk_block(data[following:], used - following, len(data))
    rest = Walk([following + at for at in rest.positions], rest.lengths, following + rest.end, False)
    work.take(rest, _states(rest, data, codec), len(rest.positions))
    return work.image(rest.end)


class _BlockBuilder:
    """A block in the making."""

    def __init__(self, damaged: DamagedBlock) -> None:
        self.header = header_size(len(damaged.data))
        self._damaged = damaged
        self._data = bytearray(damaged.data)
        self._pack = header_struct(len(damaged.data)).pack
        self._kept: list[int] = []
        self._lost: list[int] = []

    def take(self, walk: Walk, states: list[int], count: int) -> None:
        """The first records of the walk: what the codec refuses becomes a deleted record."""
        for position, length, state in zip(walk.positions[:count], walk.lengths, states, strict=False):
            if state == _LIVE:
                self._kept.append(position)
            elif state != _DELETED:
                self._lose(position, position + self.header + length)

    def bridge(self, start: int, stop: int, codec: Codec) -> None:
        """What lies between two chains: one record, of which only the length may be wrong, or one that is lost."""
        if codec.is_valid(bytes(self._data[start + self.header : stop])):
            self._data[start : start + self.header] = self._pack(stop - start - self.header)
            self._kept.append(start)
        else:
            self._lose(start, stop)

    def give_up(self, start: int) -> int:
        """All from here on is lost; gives where the records end."""
        data, used = self._damaged.data, self._damaged.used
        least = start + self.header + 1
        stop = used if self._damaged.is_last else len(data[: len(data) - self.header].rstrip(b"\0"))
        if start == 0:
            stop = max(stop, least)  # a block of the log's end must hold something
        if stop < least:
            return start
        self._lose(start, stop)
        return stop

    def _lose(self, start: int, stop: int) -> None:
        self._data[start:stop] = self._pack(stop - start - self.header) + bytes(stop - start - self.header)
        self._lost.append(start)

    def image(self, end: int) -> RepairedBlock:
        """The block, its records ending at `end`."""
        self._data[end:] = bytes(len(self._data) - end)
        return RepairedBlock(bytes(self._data), end, kept=tuple(self._kept), lost=tuple(self._lost))


def _is_whole(walk: Walk, data: bytes, used: int) -> bool:
    ends = walk.end == used if used < len(data) else True
    return not walk.fault and ends and is_zero(data[walk.end :])


def _states(walk: Walk, data: bytes, codec: Codec) -> list[int]:
    """_LIVE, _DELETED, or 0 for what the codec refuses."""
    return [
        _DELETED if is_zero(record) else _LIVE if codec.is_valid(record) else 0
        for record in walk.records(data, header_size(len(data)))
    ]


def _are_maps(walk: Walk, states: list[int], data: bytes, codec: Codec) -> bool:
    """Whether all records that were found are maps: then others, which may be found by chance, must be maps too."""
    records = zip(walk.records(data, header_size(len(data))), states, strict=True)
    return all(_is_map(record, codec) for record, state in records if state == _LIVE)


def _is_map(record: bytes, codec: Codec) -> bool:
    try:
        return isinstance(codec.decode(record), dict)
    except DecodeError:
        return False


def _resynchronize(damaged: DamagedBlock, low: int, codec: Codec, maps: bool) -> int | None:
    """The first position, from `low` on, where a live record begins from which a chain leads exactly to the end."""
    if codec.name == "raw":
        return None
    data, used = damaged.data, damaged.used
    read, header = header_reader(len(data)), header_size(len(data))
    last = used if damaged.is_last else len(data) - header
    first_end = used if damaged.is_last else len(data.rstrip(b"\0"))
    if first_end > last:
        return None
    leads = bytearray(last + 1)  # whether a chain from here leads to the end
    leads[first_end:] = b"\1" * (last + 1 - first_end)
    found = None
    for position in range(last - header - 1, low - 1, -1):
        (length,) = read(data, position)
        after = position + header + length
        if length == 0 or after > last or not leads[after]:
            continue
        record = data[position + header : after]
        if is_zero(record):
            leads[position] = 1
        elif _is_map(record, codec) if maps else codec.is_valid(record):
            leads[position] = 1
            found = position
    return found
