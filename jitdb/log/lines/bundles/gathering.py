"""Which bundles hold these files, and how the others go into some: round by round, as texts find room in memory.

A bundle goes on where its last files are what they were: a scan of what is new begins in the block in which they end.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.common.formats import ENDINGS
from jitdb.log.io import osfile
from jitdb.log.lines.bundles.bundle import ENDS, Bundle, BundledFile, Kind, files_in, lstamp
from jitdb.log.lines.bundles.bundled_lines import BundledLines, BundleFraming
from jitdb.log.lines.bundles.looking import Candidate, TimeOf, head_of, look_at, may_join
from jitdb.log.lines.bundles.stores import homes, may_grow, stored_at, stored_bundles
from jitdb.log.lines.bundles.texts import AT_ONCE
from jitdb.log.lines.files.stamp import Stamp
from jitdb.log.lines.keeping.cached import make_room, used
from jitdb.log.lines.keeping.known import locked
from jitdb.log.lines.line_log import BLOCK
from jitdb.log.objects.urls import folders_above, is_url

LEAST: Final = 8  # files of a new bundle: fewer are asked one by one
LARGEST: Final = 1 << 30  # bytes of text in a bundle, about: so much is scanned again at most when files are gone
MOST: Final = 1 << 16  # files of a bundle

_SOON_MADE: Final = 64 << 20  # bytes of text: of a bundle with less another one is made, rather than not let it grow
_QUIET: Final = 600_000_000_000  # nanoseconds without a change, after which a file that was written to goes in
_REQUESTS: Final = 64  # objects that are asked for before they are looked at
_AHEAD: Final = 4  # files that are looked at before they are needed


class Where(NamedTuple):
    """Where bundles may lie, and what files are asked on their own.

    stores:   the stores in which bundles of a folder's files may lie, each with the folder that it belongs to
    store_of: where new ones are made of files below a folder; None: in memory
    has_own:  whether the file at this path has indexes of its own
    time_of:  see there
    may_read: raises where so many bytes of objects below a URL may not be read
    """

    stores: Callable[[str], Iterable[Path]]
    store_of: Callable[[str], Path | None]
    has_own: Callable[[str], bool]
    time_of: TimeOf
    may_read: Callable[[int, str], object] = lambda size, url: None


class Grown(NamedTuple):
    """A bundle, and the numbers of its files that are new."""

    bundle: Bundle
    numbers: range


class Gathering:
    """The bundles of some files.

    paths:  of the files, links resolved
    alone:  the stamps of files that are to be asked on their own
    memory: bundles that are kept in memory
    """

    def __init__(self, paths: Sequence[str], where: Where, alone: set[Stamp], memory: dict[bytes, Bundle]) -> None:
        self._where, self._alone, self._memory = where, alone, memory
        self.stamps = {path: stamp for path in paths if (stamp := lstamp(path)) is not None}
        self._by_inode = {stamp[:2]: path for path, stamp in self.stamps.items()}
        self._listed: dict[str, dict[int, tuple[str, Stamp]]] = {}
        self._bundles: dict[bytes, Bundle] = {}
        self._changed: set[tuple[int, ...] | str] = set()  # the inodes and paths of what was changed in a bundle
        self._find()

    @property
    def bundles(self) -> list[Bundle]:
        """Those that have a text."""
        return [bundle for bundle in self._bundles.values() if bundle.kind.form is not None]

    def _find(self) -> None:
        folders = {os.path.dirname(path) for path in self.stamps}
        tops = dict.fromkeys(above for folder in folders for above in (folder, *folders_above(folder)))
        for bundle in list(self._memory.values()):
            self._take(bundle)
        for folder in tops:
            for store in self._where.stores(folder):
                damaged = list[Path]()
                for bundle in stored_bundles(folder, store, damaged=damaged):
                    if self._is_asked(bundle):
                        self._take(bundle)
                for place in damaged:
                    _clear(folder, place)

    def _is_asked(self, bundle: Bundle) -> bool:
        return any(
            file.name and (bundle.path_of(file) in self.stamps or file.stamp[:2] in self._by_inode)
            for file in bundle.files
        )

    def _take(self, stored: Bundle) -> None:
        """See how it is now; one of which little is left is removed."""
        bundle = self._now(stored)
        if 2 * bundle.live < bundle.size or (bundle.size < _SOON_MADE and _ends_dead(bundle)):
            self._memory.pop(bundle.identity, None)
            made = remade(bundle)
            if made is not None:
                self._keep(made)
            return
        names = [file.name for file in stored.files]
        if any(file.name and file.name != name for file, name in zip(bundle.files, names, strict=True)):
            bundle = self._renamed(bundle)
        self._keep(bundle)

    def _keep(self, bundle: Bundle) -> None:
        self._bundles[bundle.identity] = bundle
        if bundle.place is not None and is_url(bundle.folder):
            used(bundle.place)
            make_room()
        if bundle.place is None:
            self._memory[bundle.identity] = bundle

    def _now(self, bundle: Bundle) -> Bundle:
        """With the names of now; without the name of a file that is another one, or gone."""
        files = list(bundle.files)
        for number, file in enumerate(files):
            if not file.name:
                self._changed.add(file.stamp[:2])
            else:
                path = os.path.join(bundle.folder, file.name)
                stamp = self.stamps[path] if path in self.stamps else file.now_in(bundle.folder)
                if stamp != file.stamp:
                    files[number] = self._followed(bundle.folder, file)
        return bundle._replace(files=tuple(files))

    def _followed(self, folder: str, file: BundledFile) -> BundledFile:
        path = self._by_inode.get(file.stamp[:2])
        stamp = None if path is None else self.stamps[path]
        if path is None:
            top = os.path.dirname(os.path.join(folder, file.name))
            if top not in self._listed:
                self._listed[top] = files_in(top)
            name, stamp = self._listed[top].get(file.stamp.inode, ("", None))
            path = os.path.join(top, name)
        is_it = stamp is not None and file.is_renamed(stamp) and path.startswith(os.path.join(folder, ""))
        if not is_it or stamp is None:
            self._changed |= {file.stamp[:2], os.path.join(folder, file.name)}
            return file._replace(name="")
        return file._replace(name=os.path.relpath(path, folder), stamp=stamp)

    def _renamed(self, bundle: Bundle) -> Bundle:
        if bundle.place is None:
            return bundle
        with suppress(OSError), locked(bundle.place.parent):
            stored = stored_at(bundle.folder, bundle.place)
            if stored is not None:
                bundle = self._now(stored)
                bundle.write()
        return bundle

    # Those that are in none

    def unread(self) -> list[str]:
        """The paths of those that rounds() would read."""
        wanted = self._wanted()
        return wanted if self.bundles or len(wanted) >= LEAST else []

    def rounds(self) -> Iterator[list[Grown]]:
        """Put the other files into bundles. What it gives is to be scanned before the next one is asked for: the texts
        of these files are in memory until then. Raises OSError.
        """
        wanted = self._wanted()
        if not self.bundles and len(wanted) < LEAST:
            return
        of_stores = sum(self.stamps[path].size for path in wanted if is_url(path))
        if of_stores:
            self._where.may_read(of_stores, next(filter(is_url, wanted)))
        home_of = homes(sorted({os.path.dirname(path) for path in wanted}))
        pending = defaultdict[tuple[str, Kind], list[Candidate]](list)
        held = 0
        for folder, candidate in self._looked(wanted, home_of):
            pending[folder, candidate.kind].append(candidate)
            held += candidate.held or self._read_of(os.path.join(folder, candidate.file.name))
            if held >= AT_ONCE:
                yield self._put(pending, is_last=False)
                held = 0
        if pending:
            yield self._put(pending, is_last=True)

    def _wanted(self) -> list[str]:
        """The paths of files that are in no bundle, and may be."""
        inside = {path for bundle in self._bundles.values() for path in bundle.paths()}
        now = time.time_ns()
        return sorted(
            path
            for path, stamp in self.stamps.items()
            if path not in inside
            and may_join(path, stamp.size)
            and stamp not in self._alone
            and (now - stamp.mtime > _QUIET or not self._is_written(path, stamp))
        )

    def _is_written(self, path: str, stamp: Stamp) -> bool:
        """Whether somebody may go on to write the file: it was changed in a bundle, or has indexes of its own."""
        return path in self._changed or stamp[:2] in self._changed or self._where.has_own(path)

    def _looked(self, paths: Sequence[str], home_of: dict[str, str]) -> Iterator[tuple[str, Candidate]]:
        """What a look at each shows, in their order; compressed ones, and objects, are looked at side by side."""
        coming = deque[tuple[str, Future[Candidate | None] | Candidate | None]]()
        asked_for = 0
        with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
            for number, path in enumerate(paths):
                if is_url(path):
                    asked_for = self._ask_for(paths, max(asked_for, number), number)
                home = home_of[os.path.dirname(path)]
                look = home, path[len(home) :].lstrip("/")
                ahead = _AHEAD if is_url(path) or path.endswith(ENDINGS) else 0
                found = pool.submit(look_at, *look, self._where.time_of) if ahead else None
                coming.append((home, found or look_at(*look, self._where.time_of)))
                while len(coming) > ahead:
                    yield from _done(*coming.popleft())
            for home, each in coming:
                yield from _done(home, each)

    def _ask_for(self, paths: Sequence[str], begin: int, now: int) -> int:
        """Ask for the objects from this one on that will be looked at soon; gives the first that was not asked for."""
        from jitdb.log.objects.files import FILES

        size = sum(map(self._read_of, paths[now:begin]))
        while begin < min(now + _REQUESTS, len(paths)) and size < AT_ONCE:
            path = paths[begin]
            if is_url(path):
                whole, read = self.stamps[path].size, self._read_of(path)
                FILES.ahead(path, 0, read)
                if read < whole:
                    FILES.ahead(path, whole - ENDS, whole)
                size += read
            begin += 1
        return begin

    def _read_of(self, path: str) -> int:
        """Bytes of an object that a look reads."""
        if not is_url(path):
            return 0
        size = self.stamps[path].size
        return size if path.endswith(ENDINGS) else min(size, head_of(path, size))

    def _put(self, pending: dict[tuple[str, Kind], list[Candidate]], *, is_last: bool) -> list[Grown]:
        """Into bundles; too few of a kind wait for others."""
        grown = list[Grown]()
        for (folder, kind), found in list(pending.items()):
            store = self._where.store_of(folder)
            with nullcontext() if store is None else locked(store):
                there = self._there(folder, store)
                held = {file.stamp for bundle in there for file in bundle.files if file.name}
                fresh = sorted((each for each in found if each.file.stamp not in held), key=lambda each: each.file.name)
                like = [bundle for bundle in there if bundle.kind == kind]
                if len(fresh) >= LEAST or like:
                    grown += self._appended(folder, store, kind, fresh, like)
                    del pending[folder, kind]
        if is_last:
            pending.clear()
        return [each for each in grown if each.bundle.kind.form is not None]

    def _there(self, folder: str, store: Path | None) -> list[Bundle]:
        """The bundles of a store, as they are now."""
        if store is None:
            return list(self._memory.values())
        there = [self._now(bundle) for bundle in stored_bundles(folder, store)]
        self._bundles.update((bundle.identity, bundle) for bundle in there)
        return there

    def _appended(
        self, folder: str, store: Path | None, kind: Kind, fresh: Sequence[Candidate], like: Sequence[Bundle]
    ) -> Iterator[Grown]:
        growing = [bundle for bundle in like if bundle.place is None or may_grow(bundle)]
        bundle = next((each for each in reversed(growing) if not _ends_dead(each)), None)
        framing = BundleFraming(Bundle(folder, None, b"", kind))
        files, size = list[BundledFile](), 0
        last: bytes | None = None  # line of the files so far
        for candidate in fresh:
            if bundle is None or bundle.size + size + candidate.file.size > LARGEST or len(bundle.files) >= MOST:
                yield from self._written(bundle, files)
                identity = os.urandom(16)
                bundle = Bundle(folder, None if store is None else store / identity.hex(), identity, kind)
                files, size, last = [], 0, None
            if framing.joins and (files or bundle.files):
                last = BundledLines(bundle).last_line() if last is None else last
                if not framing.begins(last, candidate.first):
                    self._alone.add(candidate.file.stamp)
                    continue
            files.append(candidate.file)
            size, last = size + candidate.file.size, candidate.last
        yield from self._written(bundle, files)

    def _written(self, bundle: Bundle | None, files: Sequence[BundledFile]) -> Iterator[Grown]:
        if bundle is None or not files:
            return
        names = {file.name for file in files}
        before = [file._replace(name="") if file.name in names else file for file in bundle.files]
        grown = bundle._replace(files=(*before, *files))
        if grown.place is not None:
            grown.write()
        self._keep(grown)
        yield Grown(grown, range(len(before), len(grown.files)))


def remade(bundle: Bundle, alone: Collection[Stamp] = ()) -> Bundle | None:
    """Another bundle of those of its files that are what they were; None where these are looked at anew.

    alone: the stamps of files that are to be asked on their own, as long as they are what they were
    """
    files = tuple(file for file in bundle.files if file.name and file.stamp not in alone)
    left = [BundledFile(file.name, file.stamp) for file in bundle.files if file.name and file.stamp in alone]
    made = bundle._replace(identity=os.urandom(16), files=files) if files else None
    if made is not None and BundleFraming(made).joins:
        made = None  # which lines belong together, the next look at them says
    if bundle.place is None:
        return made
    store = bundle.place.parent
    with suppress(OSError), locked(store):
        if stored_at(bundle.folder, bundle.place) is None:
            return None  # another process did so
        if left:
            _leave_alone(bundle, left, store)
        if made is not None:
            made = made._replace(place=store / made.identity.hex())
            made.write()
        osfile.fs.remove(bundle.place)
        return made
    return None


def _leave_alone(bundle: Bundle, files: Sequence[BundledFile], store: Path) -> None:
    """Note that these are asked on their own."""
    kind = Kind(bundle.kind.access)
    noted = next((each for each in stored_bundles(bundle.folder, store) if each.kind == kind), None)
    if noted is None:
        identity = os.urandom(16)
        noted = Bundle(bundle.folder, store / identity.hex(), identity, kind)
    noted._replace(files=(*noted.files, *files)).write()


def _done(home: str, found: Future[Candidate | None] | Candidate | None) -> Iterator[tuple[str, Candidate]]:
    candidate = found.result() if isinstance(found, Future) else found
    if candidate is not None:
        yield home, candidate


def _ends_dead(bundle: Bundle) -> bool:
    """Whether a file in the block in which it ends is not what it was."""
    begins = bundle.begins()
    last = begins[-1] // BLOCK * BLOCK
    ends = zip(reversed(bundle.files), reversed(begins), strict=False)
    for file, end in ends:
        if end <= last:
            return False
        if not file.name:
            return True
    return False


def _clear(folder: str, place: Path) -> None:
    """Remove what cannot be read as a bundle."""
    with suppress(OSError), locked(place.parent):
        if stored_at(folder, place) is None:
            osfile.fs.remove(place)
