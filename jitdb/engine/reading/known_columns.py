"""Which fields the records have, as columns, and of which types: what all their values say, kept in a file.

The file `columns` lies with the indexes: JSON, and its CRC. It names the log as they do, and says up to which byte its
records were looked at, so only newer ones are looked at again. Deleted records stay in it: a column may be wider than
it had to be. It cannot make an answer wrong: a value that is not of its column's type is an error. Where the file is
missing, damaged or of another log, all records are looked at.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from jitdb.engine.reading.arrow_tables import Column, note_all
from jitdb.engine.reading.field_batches import ROWS, FieldBatches, LeafPaths
from jitdb.log.blocks.checksum import SIZE, is_sealed, seal
from jitdb.log.io import osfile
from jitdb.operators.nodes.operation import EVERYTHING
from jitdb.operators.nodes.positions import Stretches
from jitdb.operators.nodes.selection import named
from jitdb.operators.question import Question

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable

    from jitdb.common.paths import Keys, Path
    from jitdb.engine.declared_time import Times
    from jitdb.engine.manager import IndexManager
    from jitdb.indexes.files.file import LogName

Columns: TypeAlias = "dict[Path, Column]"

FILE: Final = "columns"  # on disk: never change
_VERSION: Final = 1  # raise it when the types of columns follow from other rules


class KnownColumns:
    """The columns of one log. Each `look` sees what came since the one before, of whichever process."""

    def __init__(self, manager: IndexManager) -> None:
        self._manager = manager
        self._held: dict[str, Any] = {}  # what was seen, as the file has it

    def look(self, times: Times, cancel: threading.Event | None) -> Columns:
        """All fields that any record has, in the order in which they come. `times`: the fields that may hold numbers
        which are times. Raises QueryError for too many fields, LogError, QueryCancelled.
        """
        manager = self._manager
        while True:
            name, end = manager.ask(EVERYTHING, False, cancel, lambda _: (manager.name, manager.log.durable_end))
            path = None if manager.folder is None or not manager.log.identity_is_stored else manager.folder / FILE
            of = _named(name, times)
            begin, columns = _taken(self._held, of, times, end)
            if begin < end:
                begin, columns = _taken(_read(path), of, times, end)
            if begin < end:
                _look(manager, (begin, end), columns, times, cancel)
                if manager.name != name:
                    continue  # it was compacted, or is another one
            written = [[list(keys), column.written()] for keys, column in columns.items()]
            self._held = {"of": of, "end": end, "columns": written}
            if begin < end:
                _write(path, self._held)
            return columns


def _look(
    manager: IndexManager, part: tuple[int, int], columns: Columns, times: Times, cancel: threading.Event | None
) -> None:
    """Look at the records of a part of the log, too."""
    asked = Question(operation=Stretches((part,)), sort_by="arrival")
    found = LeafPaths(manager, asked, cancel, cast("Iterable[Keys]", columns)).look()
    selection = named(found)
    for name, path in selection:
        if path not in columns:
            columns[path] = Column(name, path, times)
    pages = FieldBatches(manager, asked.changed(select=selection, limit=ROWS), cancel, lambda *_: None)
    looked_at = [columns[path] for _, path in selection]
    for batch in pages.batches() if selection else ():
        note_all(looked_at, batch)


def _taken(held: dict[str, Any], of: list[Any], times: Times, end: int) -> tuple[int, Columns]:
    """Up to which byte records were looked at, and their columns, if it was this log."""
    if held.get("of") != of or held["end"] > end:
        return 0, {}
    columns: Columns = {}
    for path, written in held["columns"]:
        columns[tuple(path)] = column = Column("", tuple(path), times)
        column.take(written)
    return held["end"], columns


def _read(path: FilePath | None) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        data = None if path is None else osfile.fs.read_if_there(path)
        if data is not None and is_sealed(data):
            held: dict[str, Any] = json.loads(data[:-SIZE])
            return held
    return {}


def _write(path: FilePath | None, held: dict[str, Any]) -> None:
    """Where it cannot be written, the next process looks again."""
    if path is not None:
        with suppress(OSError):
            osfile.fs.make_folders(path.parent)
            osfile.fs.replace_file(path, seal(json.dumps(held).encode()))


def _named(name: LogName, times: Times) -> list[Any]:
    """What must be the same: the log, its bytes, and which numbers are times."""
    paths = [list(path) for path in times.paths]
    return [_VERSION, name.identity.hex(), name.generation, name.content.hex(), paths, times.unit]
