"""All indexes of one database: opened when first asked for, and whatever is wrong with a file told and mended."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path as FilePath

from jitdb.errors import IndexDamaged, IndexForeign, IndexWarning
from jitdb.indexes.index import Index, LogName
from jitdb.indexes.prefix import hashes_of_bitmaps
from jitdb.indexes.segment import BITMAPS, Segment
from jitdb.indexes.spec import IndexSpec


class Catalog:
    """The indexes in `folder`; None keeps them in memory. Guarded by the engine's lock.

    So are they kept where the log's identity is not stored: files could not be told from those of another log.
    """

    def __init__(self, folder: FilePath | None, log: LogName, *, stored: bool = True) -> None:
        self.folder = folder
        self._log = log
        self._stored = stored
        self._indexes: dict[IndexSpec, Index] = {}
        self._told = folder is None  # that indexes are kept in memory
        self._foreign = False  # whether it was told of indexes of another log

    def get(self, spec: IndexSpec) -> Index:
        """The index of this spec, empty when there is none yet or its file cannot be used."""
        index = self._indexes.get(spec)
        if index is None:
            index = self._indexes[spec] = self._open(spec)
        return index

    def opened(self) -> Iterable[Index]:
        """The indexes that were asked for so far."""
        return self._indexes.values()

    def append(self, index: Index, segment: Segment) -> None:
        """Add a segment. An index that cannot be written goes on in memory, with a warning.

        Raises IndexDamaged when what the index holds already cannot be read.
        """
        if not self._stored:
            self._tell("the identity of the log cannot be stored beside it")
        if index.kind == BITMAPS and segment.kind != BITMAPS:
            self._try(index, lambda: index.replace([hashes_of_bitmaps(s, index.spec.elements) for s in index.segments]))
        self._try(index, lambda: index.append(segment))

    def discard(self, index: Index, reason: IndexDamaged) -> None:
        """Forget an index that turned out damaged; the next question builds it again."""
        self._drop(index)
        warnings.warn(f"{reason}. The index is rebuilt.", IndexWarning, stacklevel=2)

    def discard_all(self) -> None:
        """Forget all indexes that are open."""
        for index in list(self._indexes.values()):
            self._drop(index)

    def _drop(self, index: Index) -> None:
        fresh = Index(index.spec, self._log, index.path)
        self._try(fresh, lambda: remove(fresh.path))
        self._indexes[index.spec] = fresh

    def _open(self, spec: IndexSpec) -> Index:
        path = self.folder / spec.file_name() if self.folder is not None and self._stored else None
        if spec.form == "deleted" and path is not None:
            # Each change by another program asks for a new one.
            remove_others(path, f"*.{spec.form}-*.index")
            remove_leftovers(path.parent)
        index = Index(spec, self._log, path)
        try:
            index.load()
        except IndexForeign:
            self._drop(index)
            if not self._foreign:  # once for all of them
                self._foreign = True
                warnings.warn(
                    f"{self.folder}: indexes of another log, or of this one before it was replaced, are built anew",
                    IndexWarning,
                    stacklevel=2,
                )
            return self._indexes[spec]
        except IndexDamaged as damage:
            self.discard(index, damage)
            return self._indexes[spec]
        except OSError as error:
            self._tell(f"{path} cannot be read ({error.strerror})")
            return Index(spec, self._log, None)
        if index.damage is not None:
            warnings.warn(f"{index.damage}. The rest of the index is rebuilt.", IndexWarning, stacklevel=2)
        return index

    def _try(self, index: Index, write: Callable[[], None]) -> None:
        """An index can be built again: whatever keeps its file from being written does not keep it from answering."""
        try:
            write()
        except OSError as error:
            self._tell(f"{index.name} cannot be written ({error.strerror})")
            index.path = None

    def _tell(self, reason: str) -> None:
        """Say once for all indexes that they are not kept."""
        if not self._told:
            self._told = True
            warnings.warn(
                f"{reason}: indexes that cannot be written are kept in memory and are lost with this process",
                IndexWarning,
                stacklevel=3,
            )


def remove_others(path: FilePath, pattern: str) -> None:
    """Remove the files in this file's folder that have such names, but for this one."""
    with suppress(OSError):  # what stays there costs room, and no answer
        for other in path.parent.glob(pattern):
            if other.name != path.name:
                other.unlink(missing_ok=True)


def remove_leftovers(folder: FilePath) -> None:
    """Remove the half-written files of processes that are gone: NAME.PID-NUMBER.tmp."""
    with suppress(OSError):
        for leftover in folder.glob("*.index.*-*.tmp"):
            pid = leftover.name.split(".")[-2].split("-")[0]
            if pid.isdigit() and not is_running(int(pid)):
                leftover.unlink(missing_ok=True)


def is_running(pid: int) -> bool:
    """Whether there is a process of this number."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def remove(path: FilePath | None) -> None:
    """Remove a file, if it is there."""
    if path is not None:
        path.unlink(missing_ok=True)
