"""`sets/NAME.set`: records of the log that a user gave a name. docs/sets.md describes the bytes.

They cannot be made again from the log, so a damaged one is never removed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from pyroaring import BitMap

from jitdb.errors import LogCorrupt
from jitdb.log.sidecar.framing import Frame

# On disk: never change.
MAGIC: Final = b"JITDBSET"
VERSION: Final = 1
SUFFIX: Final = ".set"
FRAME: Final = Frame(MAGIC, "II16s", open_ended=True)


class NamedRecords(NamedTuple):
    """The seqs, a roaring bitmap, that records had in this generation of the log of this identity."""

    generation: int
    identity: bytes
    seqs: bytes


def encode(records: NamedRecords) -> bytes:
    return FRAME.pack(VERSION, *records)


def decode(data: bytes, path: Path) -> NamedRecords:
    """Raises LogCorrupt."""
    fields = FRAME.unpack(data)
    if fields is None:
        raise LogCorrupt(
            "the set is damaged",
            path=path,
            expected=f"bytes that begin with {MAGIC!r} and end with a matching CRC",
            got=f"{len(data):,}: {data[:8]!r}…",
            remedy="make it again and keep it under the same name, or delete that",
        )
    version, *parts = fields
    found = NamedRecords(*parts)
    try:
        if version != VERSION:
            raise ValueError(f"version {version}")
        BitMap.deserialize(found.seqs)
    except (ValueError, IndexError) as error:  # the second is raised for bytes that are no bitmap
        raise LogCorrupt("the set is of a kind that this jitdb does not know", path=path, got=str(error)) from error
    return found
