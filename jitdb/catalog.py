"""All indexes of one database: opened when first asked for, and whatever is wrong with a file told and mended."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path as FilePath

from jitdb.errors import IndexDamaged, IndexWarning
from jitdb.indexes.index import Index, LogName
from jitdb.indexes.prefix import hashes_of_bitmaps
from jitdb.indexes.segment import BITMAPS, Segment
from jitdb.indexes.spec import IndexSpec


class Catalog:
    """The indexes in `folder`; None keeps them in memory. Guarded by the engine's lock."""

    def __init__(self, folder: FilePath | None, log: LogName) -> None:
        self.folder = folder
        self._log = log
        self._indexes: dict[IndexSpec, Index] = {}

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
        if self._indexes.get(index.spec) is not index:
            return  # discarded while it was built; the next question builds it again
        if index.kind == BITMAPS and segment.kind != BITMAPS:
            self._try(index, lambda: index.replace([hashes_of_bitmaps(s, index.spec.elements) for s in index.segments]))
        self._try(index, lambda: index.append(segment))

    def discard(self, index: Index, reason: IndexDamaged) -> None:
        """Forget an index that turned out damaged; the next question builds it again."""
        self._indexes[index.spec] = fresh = Index(index.spec, self._log, index.path)
        self._try(fresh, lambda: remove(fresh.path))
        warnings.warn(f"{reason}. The index is rebuilt.", IndexWarning, stacklevel=2)

    def _open(self, spec: IndexSpec) -> Index:
        path = None if self.folder is None else self.folder / spec.file_name()
        index = Index(spec, self._log, path)
        try:
            index.load()
        except IndexDamaged as damage:
            self.discard(index, damage)
            index = self._indexes[spec]
        except OSError as error:
            warnings.warn(f"{path}: cannot be read ({error}); the index is kept in memory", IndexWarning, stacklevel=2)
            index = Index(spec, self._log, None)
        return index

    def _try(self, index: Index, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            index.path = None
            warnings.warn(
                f"{index.name}: cannot be written ({error.strerror}); from now on the index is kept in memory and is "
                f"lost with this process",
                IndexWarning,
                stacklevel=2,
            )


def remove(path: FilePath | None) -> None:
    """Remove a file, if it is there."""
    if path is not None:
        path.unlink(missing_ok=True)
