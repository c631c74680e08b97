"""What the driver needs of a log that only Hadoop can read: its sidecar, and the first and last blocks, by which it is
known. They are fetched into a local folder of the same shape, a sparse file for the log; the driver works there as on
any log, and the indexes that it made are sent back.

There are no locks on such a file system. So a sidecar that is there is the log's writer's alone, and nothing is sent to
a log that has become another one meanwhile; of two prebuilds at a time, the later one's index files stay.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.errors import LogCorrupt
from jitdb.log.io import filenames, osfile
from jitdb.log.sidecar import journal, meta
from jitdb.spark_ext.errors import LogChanged, SparkError
from jitdb.spark_ext.range_source import Fingerprint

if TYPE_CHECKING:
    from jitdb.spark_ext.building.hadoop import Remote, Stamp

EDGE: Final = 1 << 20  # bytes that are fetched of both ends of a log, or two blocks if they are larger
_WORDS: Final = (filenames.META, filenames.COMMIT, filenames.DELETIONS)  # what a writer says of the bytes in the log
_CHANGING: Final = (
    *filenames.NEXT_FILES,
    filenames.REDO,
)  # there only while a writer changes more of the log than its end
_LOOKS: Final = 20  # at a log that is written at this very moment
_PAUSE: Final = 0.1  # seconds between them
_SIDECAR: Final = filenames.SIDECAR_SUFFIX
_INDEXES: Final = f"{_SIDECAR}/{filenames.INDEXES}"


class _LocalStamp(NamedTuple):
    """What tells a local file from what it was before."""

    inode: int
    size: int
    time: int


class Stage:
    """A log on a Hadoop file system, and its image in a local folder, at `path`."""

    def __init__(self, remote: Remote, path: Path, known: meta.Meta | None) -> None:
        """known: what the sidecar says the log is; None where it has none"""
        self.remote = remote
        self.path = path
        self._known = known
        self._sidecar = filenames.sidecar_path(path)
        self._fetched = _stamps(self._sidecar)
        self._fingerprint: Fingerprint | None = None

    def begin(self, end: int, block_size: int) -> None:
        """Note what the log is before its bytes up to `end` are scanned.

        Raises SparkError where it is not the one that its sidecar tells of, as opening the image has found out.
        """
        if self._known is not None and meta.read(osfile.fs, self._sidecar / filenames.META) != self._known:
            raise SparkError(
                "it is not the log that its sidecar tells of, another program changed it",
                path=self.remote.uri,
                remedy=f"open it once with Log(path) where it lies, or remove {self.remote.uri}{_SIDECAR}, and "
                "start again",
            )
        if self._fingerprint is None:  # another scan is of the same log
            self._fingerprint = Fingerprint.by(self.remote.read, end, block_size)
            self._block_size = block_size

    def send_back(self) -> None:
        """Send the index files that were made, and the sidecar where there was none. Raises LogChanged, SparkError."""
        self._check()
        now = _stamps(self._sidecar)
        made = [name for name in now if name.endswith(".index") and self._fetched.get(name) != now[name]]
        if self._known is None:
            there = self.remote.files(_SIDECAR)
            made = [name for name in (filenames.META, filenames.COMMIT) if name in now and name not in there] + made
        for name in made:
            self.remote.send(self._sidecar / name, f"{_SIDECAR}/{name}")

    def _check(self) -> None:
        """Whether the log is still the one that was scanned. Raises LogChanged, SparkError."""
        uri, scanned = self.remote.uri, self._fingerprint
        if scanned is None:
            return
        with tempfile.TemporaryDirectory(prefix="jitdb-") as folder:
            if _fetch_meta(self.remote, Path(folder)) != self._known:
                raise LogChanged(
                    "it was compacted, truncated or replaced while it was scanned", path=uri, remedy="start again"
                )
        size = self.remote.size()
        if size < scanned.end:
            raise LogChanged(
                f"it was truncated or replaced while it was scanned, expected {scanned.end:,} bytes or "
                f"more, got {size:,}",
                path=uri,
                remedy="start again",
            )
        found = Fingerprint.by(self.remote.read, scanned.end, self._block_size)
        if found != scanned:
            raise LogChanged(
                f"its first or last block changed while it was scanned, expected digest {scanned.digest}, "
                f"got {found.digest}: it was replaced, or a record there was deleted",
                path=uri,
                remedy="start again",
            )


@contextmanager
def staged(remote: Remote, block_size: int | None, indexes: Callable[[str], bool] | None) -> Iterator[Stage]:
    """The log as a local file of which only both ends are there, with its sidecar; indexes made there are sent back.

    indexes: by their names, which of its index files are gone on from; None: they are kept elsewhere, and none is made

    Raises LogError where there is no log, LogChanged when it became another one meanwhile, SparkError.
    """
    remote.size()  # is there a log at all?
    with tempfile.TemporaryDirectory(prefix="jitdb-") as folder:
        path = Path(folder) / remote.uri.rstrip("/").rpartition("/")[2]
        _fetch_rest(remote, filenames.sidecar_path(path), indexes or (lambda name: False))
        known = _fetch_steady(remote, path, block_size)
        if indexes is not None or known is None:  # before everything is scanned, not after
            remote.check_writable(_INDEXES)
        stage = Stage(remote, path, known)
        yield stage
        stage.send_back()


def _fetch_rest(remote: Remote, sidecar: Path, is_index: Callable[[str], bool]) -> None:
    """Copy what is needed of the sidecar and may be older than the log: all of it tells which log it is of."""
    for folder, target, is_needed in (
        (_SIDECAR, sidecar, _is_of_the_log),
        (_INDEXES, sidecar / filenames.INDEXES, is_index),
    ):
        names = [name for name in remote.files(folder) if not name.startswith(".")]
        if names:
            target.mkdir(exist_ok=True, parents=True)
        for name in filter(is_needed, names):
            remote.fetch(f"{folder}/{name}", target / name)


def _is_of_the_log(name: str) -> bool:
    """Whether a file of the sidecar says something of the log that is not fetched later."""
    return name not in (*_WORDS, *_CHANGING, filenames.LOCK) and not filenames.is_set_aside(name)


def _fetch_steady(remote: Remote, path: Path, block_size: int | None) -> meta.Meta | None:
    """Copy the words of the log's writer, and then the ends of the log: all as they were at one moment.

    The words come first: a log may go on behind them, and may not end before them. Gives what the sidecar says.
    """
    sidecar = filenames.sidecar_path(path)
    for _ in range(_LOOKS):
        words = _words(remote)
        if not words.keys() & {*_CHANGING}:
            try:
                known = _fetch_words(remote, sidecar, words)
                size = remote.size()
                _fetch_edges(remote, path, size, max(EDGE, 2 * (block_size or (known.block_size if known else 0))))
                modified = remote.time()
            except SparkError:
                if _words(remote) == words:
                    raise
            else:
                if _words(remote) == words:
                    _set_time(path, sidecar, modified, known)
                    return known
        time.sleep(_PAUSE)
    raise LogChanged(
        "it is written, compacted or repaired at this very moment, again and again",
        path=remote.uri,
        remedy="start the job when that has ended. What a writer that died left half done is finished by "
        "opening it with Log(path) where it lies",
    )


def _words(remote: Remote) -> dict[str, Stamp]:
    """Which files there are that change with the log, and how they look."""
    every = remote.files(_SIDECAR)
    return {name: stamp for name, stamp in every.items() if name in (*_WORDS, *_CHANGING)}


def _fetch_words(remote: Remote, sidecar: Path, words: dict[str, Stamp]) -> meta.Meta | None:
    for name in _WORDS:
        (sidecar / name).unlink(missing_ok=True)
        if name != filenames.META and name in words:
            sidecar.mkdir(exist_ok=True)
            remote.fetch(f"{_SIDECAR}/{name}", sidecar / name)
    return _fetch_meta(remote, sidecar)


def _fetch_meta(remote: Remote, folder: Path) -> meta.Meta | None:
    """Copy what the sidecar says the log is, if it says anything. Raises SparkError."""
    target = folder / filenames.META
    if filenames.META in remote.files(_SIDECAR):
        folder.mkdir(exist_ok=True)
        remote.fetch(f"{_SIDECAR}/{filenames.META}", target)
    try:
        return meta.read(osfile.fs, target)
    except LogCorrupt as error:
        raise SparkError(
            f"{remote.uri}{_SIDECAR}/{filenames.META}: damaged, expected {error.expected}, got {error.got}",
            remedy=f"open the log once with Log(path) where it lies, or remove {remote.uri}{_SIDECAR}, and start again",
        ) from error


def _fetch_edges(remote: Remote, path: Path, size: int, edge: int) -> None:
    with open(path, "wb") as file:
        file.write(remote.read(0, min(size, edge)))
        if size > edge:
            begin = max(edge, size - edge)
            file.seek(begin)
            file.write(remote.read(begin, size - begin))


def _stamps(sidecar: Path) -> dict[str, _LocalStamp]:
    found = {}
    for path in sidecar.rglob("*"):
        if path.is_file():
            status = path.stat()
            stamp = _LocalStamp(status.st_ino, status.st_size, status.st_mtime_ns)
            found[str(path.relative_to(sidecar))] = stamp
    return found


def _set_time(path: Path, sidecar: Path, modified: int, known: meta.Meta | None) -> None:
    """Give the file the time that its last writer noted: a copy of a log is not a log that another program changed."""
    if known is not None:
        reader = journal.JournalReader(osfile.fs, sidecar / filenames.COMMIT, known.generation)
        try:
            base = reader.poll().base
        finally:
            reader.close()
        modified = base.stamp if base is not None and base.stamp else modified
    os.utime(path, ns=(modified, modified))
