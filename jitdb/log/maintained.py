"""What a log adds whose bytes are ours: the last of the steps in source.py."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from jitdb.log.source import LogSource

if TYPE_CHECKING:
    from jitdb.log.compaction.compact import Compaction
    from jitdb.log.repair.report import LogReport, RepairReport

    Progress = Callable[[int, int], object]  # bytes done, of so many


class MaintainedSource(LogSource):
    """A log whose bytes are ours: records can be deleted, and go for good; damage can be found and put right."""

    @abstractmethod
    def delete_many(self, offsets: Iterable[int], generation: int | None = None) -> None:
        """Delete the records at these offsets, all or none; of this generation of the log only. Raises LogError."""

    @abstractmethod
    def flush(self) -> None:
        """Return when all that was done to it is on the disk. Raises LogError."""

    @abstractmethod
    def compact(self, progress: Progress | None = None) -> Compaction:
        """Remove deleted records for good, and give their room back. Raises LogCorrupt, LogError."""

    @abstractmethod
    def verify(self, progress: Progress | None = None) -> LogReport:
        """Read the whole log, and tell what is not as it was written; changes nothing. Raises LogError."""

    @abstractmethod
    def repair(self, progress: Progress | None = None) -> RepairReport:
        """Verify the log, and put right what can be put right. Raises LogError."""
