"""`moved-GENERATION`: which records a compaction removed. With it, a record that is known by its old seq is found.

docs/format-log.md describes its bytes. It has the removed seqs, and where the records of each block ended. With that, a
list of old offsets gives the length of every record, and so its new offset: the remaining records are put into blocks
one after the other, each into the first one in which it fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pyroaring import BitMap64

from jitdb.errors import LogCorrupt
from jitdb.log.io.filenames import moved_name
from jitdb.log.io.osfile import FileSystem
from jitdb.log.sidecar.framing import Frame
from jitdb.log.sidecar.meta import Meta

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# On disk: never change.
MAGIC: Final = b"JITDBMOV"
VERSION: Final = 1
_FRAME: Final = Frame(MAGIC, "II16sQQQ", open_ended=True)
_SMALLEST: Final = 3  # bytes of a record: its header, and one of its own


class Removals(NamedTuple):
    generation: int  # that the log has since
    identity: bytes
    records: int  # before, deleted ones counted
    removed: BitMap64  # their seqs before
    block_ends: bytes  # u32 little-endian per block before: where its records ended

    @property
    def ends(self) -> npt.NDArray[np.uint32]:
        import numpy as np

        return np.frombuffer(self.block_ends, "<u4")

    def new_seq(self, seq: int) -> int:
        """How many of the records before `seq` are still there: the seq that the record has now, if it is."""
        return seq - int(self.removed.rank(seq - 1)) if seq > 0 else 0


def new_seq(removals: Sequence[Removals], seq: int) -> int:
    """Removals.new_seq over several compactions, the oldest first."""
    for each in removals:
        seq = each.new_seq(seq)
    return seq


def encode(removals: Removals) -> bytes:
    removed = removals.removed.serialize()
    sizes = (removals.records, len(removed), len(removals.block_ends) // 4)
    return _FRAME.pack(VERSION, removals.generation, removals.identity, *sizes, removed + removals.block_ends)


def decode(data: bytes, path: Path) -> Removals:
    version, generation, identity, records, size, blocks, rest = _FRAME.check(data, path)
    if version != VERSION or len(rest) != size + 4 * blocks:
        raise LogCorrupt("of an unknown kind", path=path, expected=f"version {VERSION}", got=version)
    try:
        removals = Removals(generation, identity, records, BitMap64.deserialize(rest[:size]), rest[size:])
    except (ValueError, IndexError) as error:  # raised for bytes that are no bitmap
        raise LogCorrupt(f"damaged: {error}", path=path, expected="a set of seqs") from error
    if (removals.removed and removals.removed.max() >= records) or _SMALLEST * records > int(
        removals.ends.sum(dtype="u8")
    ):
        raise LogCorrupt("damaged", path=path, expected="the seqs of records in these blocks", got=f"{records} records")
    return removals


def read(fs: FileSystem, path: Path) -> Removals | None:
    """None if there is no such file, or it is damaged."""
    try:
        return decode(fs.read_file(path), path)
    except (FileNotFoundError, NotADirectoryError, LogCorrupt):
        return None


def read_since(fs: FileSystem, sidecar: Path, now: Meta, generation: int) -> list[Removals] | None:
    """The compactions from this generation of the log to the present one, oldest first; None if one is not known."""
    found: list[Removals] = []
    for number in range(generation + 1, now.generation + 1):
        each = read(fs, sidecar / moved_name(number))
        if each is None or (each.generation, each.identity) != (number, now.identity):
            return None
        found.append(each)
    return found if generation <= now.generation else None
