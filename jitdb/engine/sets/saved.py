"""Sets of records under names, a file each in the folder `sets` of the log's sidecar; docs/sets.md has the bytes.

A set cannot be made again as an index can: so it is durable when it was put in, one flipped bit is put back, and what
is damaged otherwise is an error that says which, never another set. Whoever asks for one has it as of the log as it is;
compact() writes all of them anew, and the log knows of 64 compactions what they removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from jitdb.common.words import shown
from jitdb.engine.sets.record_set import LogRecordSet
from jitdb.errors import LogCorrupt, LogError, QueryError, SetNotFound
from jitdb.log.io import osfile
from jitdb.log.io.filenames import INDEXES, SETS
from jitdb.log.sidecar import sets
from jitdb.operators.sets import NamedSets

if TYPE_CHECKING:
    from jitdb.engine.manager import IndexManager

_LONGEST: Final = 240  # bytes of a file's name, without the suffix


class SavedSets(NamedSets[LogRecordSet]):
    """Those of one log. Where its indexes are kept in memory, so are they."""

    def __init__(self, manager: IndexManager) -> None:
        self._manager, self._log = manager, manager.log
        self._held: dict[str, LogRecordSet] = {}
        self._folder: Path | None = None
        if manager.folder is not None:
            usual = manager.folder == self._log.sidecar / INDEXES
            self._folder = self._log.sidecar / SETS if usual else manager.folder / SETS

    def __getitem__(self, name: str) -> LogRecordSet:
        """Raises SetNotFound, LogCorrupt for a damaged file."""
        if self._folder is None:
            found = self._held.get(name)
        else:
            path = self._path(name)
            data = osfile.fs.read_if_there(path)
            found = None if data is None else self._decoded(data, path)
        if found is None:
            raise SetNotFound(f"no set is kept as {shown(name)}", path=self._log.path, remedy=self._others())
        return found

    def __setitem__(self, name: str, value: LogRecordSet) -> None:
        """It is durable then. Raises QueryError for a set of another log, LogError where it cannot be written."""
        if not isinstance(value, LogRecordSet):
            raise QueryError(f"what is kept by a name is a set of records of this log, not {shown(value)}")
        renewed = LogRecordSet(self._manager, value.log, value.generation, value.packed).renewed()
        if self._folder is None:
            self._held[name] = renewed
            return
        path = self._path(name)
        if not self._log.identity_is_stored:
            raise LogError(
                "its identity cannot be kept, so nothing that belongs to it would be found", path=self._log.path
            )
        try:
            osfile.fs.make_folders(self._folder)
            data = sets.encode(sets.NamedRecords(renewed.generation, renewed.log, renewed.packed))
            osfile.fs.replace_file(path, data)
            osfile.fs.sync_folder(self._folder)
        except OSError as error:
            raise LogError(f"the set {name!r} cannot be kept: {osfile.reason(error)}", path=path) from error

    def __delitem__(self, name: str) -> None:
        """Raises SetNotFound, LogError where it cannot be removed."""
        if self._folder is None:
            if self._held.pop(name, None) is None:
                raise SetNotFound(f"no set is kept as {shown(name)}", path=self._log.path, remedy=self._others())
            return
        try:
            osfile.fs.unlink(self._path(name))
        except (FileNotFoundError, NotADirectoryError):
            raise SetNotFound(f"no set is kept as {shown(name)}", path=self._log.path, remedy=self._others()) from None
        except OSError as error:
            raise LogError(f"the set {name!r} cannot be removed: {osfile.reason(error)}", path=self._folder) from error

    def __contains__(self, name: object) -> bool:
        return name in list(iter(self))

    def __iter__(self) -> Iterator[str]:
        """The names, in their order."""
        if self._folder is None:
            return iter(sorted(self._held))
        names: list[str] = []
        with suppress(FileNotFoundError, NotADirectoryError):
            names = osfile.fs.listdir(self._folder)
        return iter(sorted(unquote(name.removesuffix(sets.SUFFIX)) for name in names if name.endswith(sets.SUFFIX)))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def carry(self) -> None:
        """Write those anew that are of an earlier generation of the log, so that it need not be remembered for them."""
        for name in self:
            with suppress(LogCorrupt, QueryError, SetNotFound):  # who asks for it is told
                found = self[name]
                if found.generation != self._log.generation:
                    self[name] = found

    def _path(self, name: object) -> Path:
        assert self._folder is not None
        if not isinstance(name, str) or not name:
            raise QueryError(f"the name of a set is text, not {shown(name)}")
        file = quote(name, safe="", errors="surrogateescape").replace(".", "%2E")
        if len(file) > _LONGEST:
            raise QueryError(f"the name of a set is too long: {shown(name)}", remedy="240 letters and digits fit")
        return self._folder / f"{file}{sets.SUFFIX}"

    def _decoded(self, data: bytes, path: Path) -> LogRecordSet:
        found = sets.decode(data, path)
        return LogRecordSet(self._manager, found.identity, found.generation, found.seqs)

    def _others(self) -> str:
        names = list(iter(self))
        return f"there are {', '.join(map(repr, names[:10]))}" if names else "there is none yet"
