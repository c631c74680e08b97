"""Small logs that are damaged one way after the other: what the tests of verify and repair share.

`every_flip` is the campaign: larger ones than the tests make call it with other sizes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jitdb.log import Log


@dataclass(frozen=True)
class Snapshot:
    """All files of a closed log, and what its records are."""

    log: Path
    files: dict[Path, bytes]
    stamp: int  # modification time of the log, nanoseconds
    records: dict[int, Any]  # live ones, by offset
    deleted: tuple[int, ...]

    @property
    def sidecar(self) -> Path:
        return self.log.with_name(self.log.name + ".jitdb")

    def restore(self) -> None:
        """Put all files back as they were; others are removed."""
        for path in sorted(self.sidecar.rglob("*"), reverse=True):
            if path.is_file() and path not in self.files:
                path.unlink()
        for path, data in self.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() or path.read_bytes() != data:
                path.write_bytes(data)
        self.touch()

    def touch(self) -> None:
        """A disk that forgets does not change the modification time."""
        os.utime(self.log, ns=(self.stamp, self.stamp))

    def damage(self, path: Path, data: bytes) -> None:
        path.write_bytes(data)
        self.touch()

    def flip(self, path: Path, bit: int) -> None:
        data = bytearray(self.files[path])
        data[bit // 8] ^= 1 << bit % 8
        self.damage(path, bytes(data))


def make_log(
    folder: Path, codec: str, *, block_size: int = 256, records: int = 14, deleted: tuple[int, ...] = (2, 9)
) -> Snapshot:
    """A log of some blocks, with deletions in a sealed block and in the last one, closed."""
    path = folder / "a.log"
    with Log(path, codec=codec, block_size=block_size) as log:
        offsets = log.append_many([value(codec, number) for number in range(records)])
        log.flush()
        for number in deleted:
            log.delete(offsets[number])
            log.flush()
    return snapshot(path)


def value(codec: str, number: int) -> Any:
    fields = {"n": number, "type": ("post", "vote", "contact")[number % 3], "text": "x" * (number * 7 % 23)}
    return b"record %d of some bytes" % number if codec == "raw" else fields


def snapshot(path: Path) -> Snapshot:
    """Of a closed log."""
    with Log(path, read_only=True) as log:
        offsets = [offset for batch in log.stream_batches() for offset in batch.offsets.tolist()]
        records = {record.offset: record.value for record in log.stream()}
    side = path.with_name(path.name + ".jitdb")
    found = {path: path.read_bytes()} | {each: each.read_bytes() for each in side.rglob("*") if each.is_file()}
    deleted = tuple(offset for offset in offsets if offset not in records)
    return Snapshot(path, found, path.stat().st_mtime_ns, records, deleted)


def every_flip(shot: Snapshot, step: int = 1, names: tuple[str, ...] = ()) -> Iterator[tuple[str, int]]:
    """Flip one bit of one file after the other (each `step`-th); the log is as it was again after each."""
    for path in sorted(shot.files):
        if path.name == "lock" or (names and path.name not in names):
            continue  # the lock's text is the pid of a writer that is gone: it means nothing
        for bit in range(0, 8 * len(shot.files[path]), step):
            shot.flip(path, bit)
            yield path.name, bit
            shot.restore()
