"""Where does a compaction that async-append-only-log began go on? Found by trying (layout.py says why)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Final

from jitdb.log.opening.unfinished.blocks import Blocks, Place, Record

_AHEAD: Final = 32  # blocks that the state may be ahead of the log; seen: 2
_SECTOR: Final = 512  # bytes of which a write that was cut short leaves all or none


class Search:
    """The places where rewriting may go on, of which the file names one."""

    def __init__(self, blocks: Blocks, named: Place) -> None:
        self._blocks = blocks
        self._named = named

    def places(self) -> list[Place]:
        """Those that explain what is in the log."""
        found = {place[:2]: place for place in [*self._ahead(), *self._as_named()]}
        return list(found.values())

    def _as_named(self) -> Iterator[Place]:
        """The place that the file names, if all before it was moved as it says."""
        blocks, (block, offset, named_image) = self._blocks, self._named
        if offset is None:
            if blocks.is_filled(block, None) and blocks.ends_with(block, blocks.live(block)):
                yield self._named
            return
        home = offset // blocks.size
        images = [named_image, blocks.raw(block)] if home == block else [blocks.raw(home)]
        for image in images[: 1 if images[0] == images[-1] else 2]:  # half of the image may not be written
            parsed = blocks.parse(image, home)
            coming = [record for record in parsed.live if record.offset >= offset]
            if not parsed.sound or not coming or coming[0].offset != offset:
                continue
            moved = blocks.live(block if home == block else block + 1, offset, (home, image))
            place = Place(block, offset, image)
            if blocks.is_filled(block, coming[0]) and blocks.ends_with(block, moved) and self._explains(place):
                yield place
                return

    def _explains(self, place: Place) -> bool:
        """Whether the block to be rewritten is as it was, or will be, or was being written."""
        assert place.offset is not None
        blocks, block = self._blocks, place.block
        home, now = place.offset // blocks.size, blocks.raw(block)
        filled = next(blocks.fill(place)).data
        if now == filled or (home == block and now == place.image):
            return True
        if home > block and blocks.block(block).sound:
            return blocks.ends_with(block, blocks.live(block, place.offset))
        same = next((at for at in range(blocks.size) if now[at] != filled[at]), blocks.size)
        written = same - same % _SECTOR
        return written > 0 and (home > block or now[written:] == place.image[written:])

    def _ahead(self) -> Iterator[Place]:
        """The places from which blocks that the file counts as rewritten are still to be filled."""
        blocks, (block, before, _) = self._blocks, self._named
        if before is None and block < blocks.count:
            return  # the last block is written before the file says that nothing is left
        first = max(blocks.first, block - _AHEAD)
        window: deque[Record] = deque()
        count = room = 0
        for record in blocks.live(first, before):
            window.append(record)
            count += 1
            room += len(record.data)
            while room > _AHEAD * blocks.size:
                room -= len(window.popleft().data)
        for begin in range(block - 1, first - 1, -1):
            own = count - sum(len(blocks.block(number).live) for number in range(first, begin))
            yield from self._from_block(begin, list(window)[-own:] if own else [], own)

    def _from_block(self, begin: int, last: list[Record], count: int) -> Iterator[Place]:
        """Places in block `begin`: of its `count` records, and those behind it, these are the last that were moved."""
        blocks = self._blocks
        longest = max((len(record.data) for record in last), default=0)
        newest = blocks.block(begin - 1).live[-1:] if begin > blocks.first else []
        room, left = 0, self._named.block - begin
        for number in range(len(last) - 1, -1, -1):
            room += len(last[number].data)
            moved = count - len(last) + number
            if room > left * blocks.room:
                return
            if room <= (left - 1) * (blocks.room - longest):
                continue
            if moved and not (newest and number and last[number - 1].data == newest[0].data):
                continue
            offset = last[number].offset
            copies = islice(blocks.live(begin, self._named.offset), moved)
            if not blocks.is_filled(begin, last[number]) or not blocks.ends_with(begin, copies):
                continue
            place = self._reaches(Place(begin, offset, blocks.raw(offset // blocks.size)))
            if place is not None:
                yield place

    def _reaches(self, place: Place) -> Place | None:
        """If filling from here comes to the named place: the first place where blocks change."""
        changed: Place | None = None
        block, offset, _ = self._named
        for filled in self._blocks.fill(place):
            if changed is None and not self._blocks.holds(place.block, filled.data):
                changed = place
            place = filled.following
            if place.block == block:
                # That nothing is left is announced while blocks are not written only if the last one stays as it was.
                fits = place.offset == offset and (offset is not None or filled.stays)
                return (changed or place) if fits else None
        return None

    def is_distinct(self, place: Place) -> bool:
        """Whether no record is there twice, of those near the named block if they are filled from this place."""
        blocks, block = self._blocks, self._named.block
        before = blocks.live(max(blocks.first, block - _AHEAD - 1), place.block * blocks.size)
        records = [record.data for record in before]
        if place.offset is not None:
            for filled in blocks.fill(place):
                records += [record.data for record in blocks.parse(filled.data, 0).live]
                if filled.following.block > block:
                    break
        return len(set(records)) == len(records)
