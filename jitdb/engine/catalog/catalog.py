"""All indexes of one database: opened when first asked for; whatever is wrong with a file is reported and repaired.

A fault found when a file is opened is not reported at once: another process may be writing to it. Such an index is
stale, so it is looked at again, with its lock held, before it is built: catch_up() does that.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from jitdb.common import memory
from jitdb.engine.catalog.copies import LastRecords
from jitdb.engine.catalog.log_content import fingerprinted
from jitdb.errors import IndexDamaged, IndexForeign, IndexWarning, LogSuperseded
from jitdb.indexes.files.file import Head, LogName, head_of, is_newer
from jitdb.indexes.files.folder import (
    Held,
    index_files,
    remove_index,
    remove_leftovers,
    remove_superseded,
    remove_void,
    take_locks,
)
from jitdb.indexes.files.index import Index
from jitdb.indexes.kinds.offsets import damaged_blocks, with_damaged
from jitdb.indexes.kinds.prefixes import hashes_of_bitmaps
from jitdb.indexes.kinds.set import journal_in
from jitdb.indexes.segment import BITMAPS, Segment
from jitdb.indexes.spec import OFFSETS, IndexSpec, deleted_spec
from jitdb.log.io import osfile

if TYPE_CHECKING:
    from jitdb.log.source import LogSource


class Catalog:
    """The indexes in `folder`; None keeps them in memory. Guarded by the engine's lock.

    They are kept in memory, too, where the log's identity is not stored: files could not be told from those of another
    log.

    `source` is the log, whose compactions are followed. `before`, the catalog of an earlier generation of it, hands
    over what it kept in memory. `quiet`: it is known that the log's bytes were changed, so there is no warning.
    """

    def __init__(
        self,
        folder: FilePath | None,
        log: LogName,
        *,
        stored: bool = True,
        source: LogSource | None = None,
        before: Catalog | None = None,
        quiet: bool = False,
    ) -> None:
        self.folder = folder if stored else None
        self._fs = osfile.fs
        self._log = log
        self._last = LastRecords(source) if source is not None else None
        self._shelf = None if source is None else source.shelf
        self._indexes: dict[IndexSpec, Index] = {}
        self._before: dict[IndexSpec, Index] = {}
        if before is not None and before._log._replace(generation=log.generation) == log:
            held = [index for index in before._indexes.values() if index.segments]
            kept = {index.spec: index for index in held if index.path is None or index.is_waiting}
            self._before = {**before._before, **kept}
        self._tidied: set[IndexSpec] = set()
        self._stored = stored
        self._warned_in_memory = folder is None  # that indexes are kept in memory
        self._warned_foreign = False  # whether it was warned of indexes of another log
        self._quiet = quiet

    def get(self, spec: IndexSpec) -> Index:
        """The index of this spec, empty when there is none yet or its file cannot be used as it is."""
        index = self._indexes.get(spec)
        if index is None:
            index = self._indexes[spec] = self._open(spec)
        return index

    def reached(self, spec: IndexSpec) -> int:
        """How far the index of this spec reaches. Keeps nothing of one that does not exist: texts name any number."""
        index = self._indexes.get(spec) or self._open(spec)
        if index.segments:
            self._indexes[spec] = index
        return index.reached

    def has_other(self, spec: IndexSpec) -> bool:
        """Whether there is another index of this form, opened or in a file."""
        if any(each.form == spec.form and each != spec and index.segments for each, index in self._indexes.items()):
            return True
        return any(
            path.name != spec.file_name() for path, _ in index_files(self._fs, self.folder, containing=f".{spec.form}-")
        )

    def let_go(self, specs: Iterable[IndexSpec]) -> None:
        for spec in specs:
            del self._indexes[spec]

    def drop_empty(self, known: int) -> bool:
        """Drop the empty ones among the indexes that were opened after so many; whether there were any."""
        fresh = islice(reversed(self._indexes.values()), len(self._indexes) - known)
        empty = [index.spec for index in fresh if not index.segments]
        self.let_go(empty)
        return bool(empty)

    def opened(self) -> Collection[Index]:
        """The indexes that were asked for so far."""
        return self._indexes.values()

    def everything(self) -> list[Index]:
        """All indexes of this log, whether anybody asked for them yet or not. The offsets of records come first."""
        return self._got({*self._specs(1 << 64), *self._indexes})

    def older(self) -> list[Index]:
        """Those of an earlier generation of the log. The offsets of records come first."""
        return self._got(self._specs(self._log.generation))

    def _specs(self, generation: int) -> set[IndexSpec]:
        """Of the indexes of generations before this one, in files or handed over."""
        heads = [head for _, head in index_files(self._fs, self.folder) if head is not None]
        ours = [head for head in heads if head.log.identity == self._log.identity and head.log.generation < generation]
        return {*(head.spec for head in ours), *self._before}

    def _got(self, specs: Iterable[IndexSpec]) -> list[Index]:
        return [self.get(spec) for spec in sorted(specs, key=lambda spec: (spec != OFFSETS, spec.file_name()))]

    def close(self) -> None:
        for index in self._indexes.values():
            index.close()

    # --- writing ---------------------------------------------------------------------------------------------------

    def lock(self, indexes: Iterable[Index]) -> Held | None:
        """The right to write to the files of these indexes; None while somebody else has it for one of them."""
        indexes = list(indexes)
        if self._is_gone():
            for index in indexes:  # they go on in memory: nobody would find their files
                index.path = None
        return take_locks(self._fs, self.folder, [index.path.name for index in indexes if index.path is not None])

    def append(self, index: Index, segment: Segment, early: bool = False) -> None:
        """Add a segment. An index that cannot be written goes on in memory, with a warning.

        `early`: see Index.append.
        Raises IndexDamaged when what the index holds already cannot be read.
        """
        if not self._stored:
            self._warn_in_memory(None, "the identity of the log cannot be stored beside it")
        if index.kind == BITMAPS and segment.kind != BITMAPS:
            self._try(index, lambda: index.turn(partial(hashes_of_bitmaps, as_map=index.spec.is_owned)))
        noted = self._noted(index, segment)
        if index.spec.form != "deleted":
            self.note_deletions()
        self._try(index, lambda: index.append(noted, early))

    def note_deletions(self) -> None:
        """Note in the index of deleted records, whose lock is to be held, how much of the journal others may know."""
        for index in self.fingerprint_indexes():
            self._try(index, partial(index.append, self._noted(index, index.segments[-1])))

    def fingerprint_indexes(self) -> list[Index]:
        """The index of deleted records, if it knows less of the journal of deletions than there is: appending to others
        takes its lock, too.
        """
        if self._last is None:
            return []
        index = self._indexes.get(deleted_spec(self._last.log.foreign_change_token()))
        known = journal_in(index.segments[-1].meta) if index is not None and index.segments else None
        with suppress(LogSuperseded):  # the next to ask the log hears that
            if index is not None and known is not None and known != self._last.deletions.now():
                return [index]
        return []

    def note(self, end: int, crc: int) -> None:
        """The CRC-32 of the record of the log that ends at this byte, so that it need not be read for it."""
        if self._last is not None:
            self._last.keep(end, crc)

    def _noted(self, index: Index, segment: Segment) -> Segment:
        """The segment with what tells its log, as it is now, from another copy or state of it."""
        if index.spec.form == "deleted" and self._last is not None:
            segment = fingerprinted(self._last.log, self._last.deletions, segment)
        return segment if index.path is None or self._last is None else self._last.noted(segment)

    def keep(self, indexes: Iterable[Index]) -> None:
        """Write the files of these also where no record has a value. Raises IndexDamaged."""
        for index in indexes:
            self._try(index, index.keep)

    def finish(self, indexes: Iterable[Index]) -> None:
        """Remove what was saved early from the files of these indexes. Raises IndexDamaged."""
        for index in indexes:
            self._try(index, index.finish)

    def list_damaged(self, blocks: Sequence[int], block_size: int) -> None:
        """Note in the index of offsets, whose lock is to be held, that these blocks of the log are damaged.

        A block that the index does not reach is noted by the scan that reaches it.
        """
        index = self.get(OFFSETS)
        segments = [
            with_damaged(each, [block for block in blocks if each.first_offset <= block * block_size < each.end_offset])
            for each in index.segments
        ]
        if damaged_blocks(segments) != damaged_blocks(index.segments):
            self._try(index, lambda: index.replace(segments))

    def cut(self, index: Index, offset: int) -> None:
        """Forget the segments that hold records of this byte of the log, or later ones."""
        kept = [segment for segment in index.segments if segment.end_offset <= offset]
        if len(kept) < len(index.segments):
            index.reach(0)
            self._try(index, lambda: index.replace(kept))

    def take_over(self, index: Index, segments: Sequence[Segment]) -> None:
        """Begin an index of deleted records, if nobody writes to it, with the segments of that of the same content."""
        held = self.lock([index])
        if held is not None:
            with held:
                if not self.catch_up(index) and not index.segments:
                    self._try(index, lambda: index.replace(segments))

    def discard(self, index: Index, reason: IndexDamaged) -> None:
        """Drop a damaged index; the next question builds it again. Its lock is to be held."""
        if self._is_moved(index):
            index.path = None
            index.clear()
            return
        self._drop(index)
        warnings.warn(IndexWarning(f"{reason.reason}. The index is rebuilt", path=reason.path), stacklevel=2)

    def discard_all(self) -> None:
        """Forget all indexes that are open. Their locks are to be held."""
        for index in self._indexes.values():
            self._drop(index)

    def tidy(self, indexes: Iterable[Index]) -> None:
        """Remove the files that these indexes, now up to date, have made worthless."""
        for index in indexes:
            if index.path is not None and index.spec not in self._tidied:
                if not self._tidied:
                    remove_leftovers(self._fs, index.path.parent)
                self._tidied.add(index.spec)
                index.remove_spans()
                remove_superseded(self._fs, index.path, Head(self._log, index.spec))
                if index.spec.form == "deleted" and self._is_rotated:
                    remove_void(self._fs, index.path.parent, self._log)

    def _drop(self, index: Index) -> None:
        path = index.path
        if path is not None:
            found = head_of(self._fs, path)
            if found is not None and is_newer(found, Head(self._log, index.spec)):
                index.path = None
            else:
                self._try(index, lambda: remove_index(self._fs, path))
        index.clear()

    # --- reading ---------------------------------------------------------------------------------------------------

    def _open(self, spec: IndexSpec) -> Index:
        path = self.folder / spec.file_name() if self.folder is not None else None
        if path is not None and self._shelf is not None:
            self._shelf.fetch(path)
        index = Index(spec, self._log, path, self._fs)
        try:
            self._checked(index, index.load)
        except (IndexDamaged, LogSuperseded):
            index.clear()  # for now
        except OSError as error:
            self._warn_in_memory(path, f"cannot be read ({error.strerror})")
            return Index(spec, self._log, None, self._fs)
        return index

    def _checked(self, index: Index, take: Callable[[], bool]) -> bool:
        """Read the file by `take`, and give what that gives. Raises as it does, and IndexForeign where the index is of
        a copy of the log; then nothing of it is kept.
        """
        found = take()
        if self._last is not None:
            try:
                self._last.check(index)
            except IndexForeign:
                self.check_same()
                index.clear()
                raise
        return found

    def check_same(self) -> None:
        """Raise LogSuperseded if the log is another one by now: what was read may be of either."""
        log = self._last.log if self._last is not None else None
        if log is not None and (log.identity, log.generation) != self._log[:2]:
            raise LogSuperseded("it was compacted or replaced since its indexes were opened", path=log.path)

    def glance(self, index: Index) -> bool:
        """As catch_up, while another process may be writing: takes what is readable, without a warning for the rest."""
        known = bool(index.segments)
        try:
            return self._checked(index, index.catch_up)
        except (IndexDamaged, LogSuperseded, OSError):
            return known and not index.segments

    def catch_up(self, index: Index) -> bool:
        """With its lock held: take over what other processes made of the file, and what was of an earlier generation.

        True when what the index said before may not hold any more. Raises LogSuperseded.
        """
        try:
            replaced = self._checked(index, index.catch_up)
        except IndexForeign as foreign:
            self._take_foreign(index, foreign)
            return True
        except IndexDamaged as damage:
            self.discard(index, damage)
            return True
        except OSError as error:
            self._warn_in_memory(index.name, f"cannot be read ({error.strerror})")
            index.path = None
            return False
        if index.damage is not None:
            found, index.damage = index.damage, None
            warnings.warn(
                IndexWarning(f"{found.reason}. The rest of the index is rebuilt", path=found.path), stacklevel=2
            )
        old = self._before.get(index.spec)
        if old is not None and not index.segments:
            self._carry(index, old)
        self._before.pop(index.spec, None)
        return replaced

    def _take_foreign(self, index: Index, foreign: IndexForeign) -> None:
        """The file is of another log, or of another generation of this one, or built from other bytes of it."""
        if foreign.generation in (None, self._log.generation):
            self._drop(index)
            is_known = self._quiet and foreign.generation is not None
            if not (self._warned_foreign or is_known or self._is_rotated):  # once for all of them
                self._warned_foreign = True
                text = (
                    "indexes of another log, of this one before it was replaced or its bytes were changed or repaired, "
                    "or of another copy of it, are built anew"
                )
                warnings.warn(IndexWarning(text, path=self.folder), stacklevel=3)
        elif foreign.generation < self._log.generation:  # else it is kept in memory, see Index.rewrite
            self._before.pop(index.spec, None)
            older = self._log._replace(generation=foreign.generation)
            old = Index(index.spec, older, index.path, self._fs)
            index.clear()
            self._carry(index, old)

    def _carry(self, index: Index, old: Index) -> None:
        """Take over what an earlier generation knew, if the compactions since then are known."""
        from jitdb.engine.catalog.carry import carried

        if self._last is None:
            return
        index.wait_as(old)
        try:
            if old.path is not None:
                old.load()
            segments = carried(self._last.log, self._last, self.get(OFFSETS), old)
            self.check_same()
        except (IndexDamaged, OSError) as damage:
            self.check_same()
            said = damage.reason if isinstance(damage, IndexDamaged) else osfile.reason(damage)
            warnings.warn(IndexWarning(f"{said}. The index is rebuilt", path=old.name), stacklevel=4)
            return
        if segments:
            noted = [self._noted(index, segment) for segment in segments]
            self._try(index, lambda: index.replace(noted))
        memory.give_back()  # the next index takes as many arrays

    @property
    def _is_rotated(self) -> bool:
        """Whether other programs rotate the log; then the first process to notice renames its folder, too."""
        return self._last is not None and not self._last.log.framing.is_blocked

    def _is_gone(self) -> bool:
        """Whether the sidecar of a log that others rotate is not at its place any more."""
        if self.folder is None or self._last is None or not self._is_rotated:
            return False
        sidecar = self._last.log.sidecar
        return self.folder.parent == sidecar and not self._fs.exists(sidecar)

    def _is_moved(self, index: Index) -> bool:
        """Whether the folder of a log that others rotate was renamed: the file is gone, or another log's."""
        if not self._is_rotated or index.path is None:
            return False
        head = head_of(self._fs, index.path)
        return not self._fs.exists(index.path) if head is None else head.log.identity != self._log.identity

    # --- warning ---------------------------------------------------------------------------------------------------

    def _try(self, index: Index, write: Callable[[], None]) -> None:
        """Write; if that fails, keep the index in memory. It can be built again, so questions go on."""
        try:
            write()
        except OSError as error:
            if not (self._is_rotated and isinstance(error, FileNotFoundError | NotADirectoryError)):
                self._warn_in_memory(index.name, f"cannot be written ({error.strerror})")
            index.path = None  # its folder may have gone along with a file that was renamed
        except IndexForeign:
            index.path = None  # its file is that of a newer generation of the log

    def _warn_in_memory(self, path: str | FilePath | None, reason: str) -> None:
        """Warn, once for all indexes, that they are not kept."""
        if not self._warned_in_memory:
            self._warned_in_memory = True
            text = f"{reason}: indexes that cannot be written are kept in memory and are lost with this process"
            warnings.warn(IndexWarning(text, path=path), stacklevel=3)
