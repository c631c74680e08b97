"""What a prebuild tells of itself when it is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jitdb.common.words import counted, size_in_words


@dataclass(frozen=True, slots=True)
class Built:
    """One index, as prebuild() left it."""

    file: str
    records: int
    bytes: int
    is_new: bool  # whether there was anything to do


@dataclass(frozen=True, slots=True)
class Summary:
    """What a prebuild did; str() of it is for people. Seconds, bytes."""

    path: str
    scanned: int
    records: int
    tasks: int
    malformed: int
    damaged: tuple[int, ...]  # numbers of blocks of the log, of which all records or some are left out
    scan_seconds: float
    write_seconds: float
    indexes: tuple[Built, ...]

    def __str__(self) -> str:
        if not self.tasks:
            return f"{self.path}: nothing to do, {len(self.indexes)} indexes are up to date"
        rate = self.scanned / max(self.scan_seconds, 1e-9)
        lines = [
            f"{self.path}: {self.records:,} records, {size_in_words(self.scanned)} in "
            f"{counted(self.tasks, 'task', 'tasks')}, "
            f"{self.scan_seconds:.1f} s ({size_in_words(int(rate))}/s); indexes merged and written in "
            f"{self.write_seconds:.1f} s"
        ]
        lines += [
            f"  {size_in_words(each.bytes):>10}  {each.file}{'' if each.is_new else ' (was up to date)'}"
            for each in self.indexes
        ]
        if self.malformed:
            lines.append(f"  {self.malformed:,} records are malformed: they have no fields, or not all")
        if self.damaged:
            lines.append(f"  damaged blocks: {len(self.damaged):,}, the first is {self.damaged[0]:,}")
        return "\n".join(lines)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What a notebook shows."""
        printer.text(str(self))
