"""Indexes that many machines share: what one keeps of a log in its cache, in a store.

    PLACE/manifest       which files there are, and of which parts; put only where nobody else put another one meanwhile
    PLACE/parts/HASH     the bytes of a part, at most 4 MiB, named by their hash; they never change

The manifest is JSON:

    {"version": 1, "logs": {FOLDER: [IDENTITY, {FILE: [[HASH, SIZE], ...]}]}}

IDENTITY is the log's, hex. FOLDER is the log's folder in the cache (lines/keeping/places.py), which is called alike
everywhere, and FILE the path of a file in it. Files that grow keep their first parts, so that only what is new is sent.
A process that ends before it puts its manifest leaves parts that nobody asks for, and nothing that is believed.

The cache of this machine stays what is asked: a file comes from the store when it is not there, and goes there once it
is built.
"""

from __future__ import annotations

import json
import os
import threading
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from jitdb.common.digests import blake2b
from jitdb.common.forking import fork_safe
from jitdb.errors import InvalidArgument, LogError, LogWarning, library
from jitdb.log.io import osfile
from jitdb.log.io.filenames import LINES, LINES_LOCK, SPANS, temporary_name
from jitdb.log.objects.stores import as_os_error, store_of
from jitdb.log.objects.urls import ObjectUrl

_PART: Final = 4 << 20  # bytes
_DIGEST: Final = 20  # bytes of a hash
_SMALL: Final = 1 << 16  # bytes of a file that comes with the first look
_TRIES: Final = 16  # at a manifest that others put meanwhile
_THREADS: Final = 8
_LOCKS: Final = (LINES_LOCK, "lock")  # files that are of this machine alone

Parts: TypeAlias = "list[list[Any]]"
Files: TypeAlias = "dict[str, Parts]"


class SharedLog(NamedTuple):
    """What is shared of one log: its files, and the identity of the object that they are of, hex."""

    identity: str
    files: Files


_NOTHING: Final = SharedLog("", {})


class Shelf:
    """See the head of this file. Safe for threads.

    root: the folder on this machine in which the logs' folders are
    told: gets what is put of each log, by its folder, in the place of the manifest: another process enters it there
    """

    def __init__(self, place: str, root: Path, told: dict[str, SharedLog] | None = None) -> None:
        self._place, self._root, self._told = ObjectUrl.of(place.rstrip("/")), root, told
        self._tag: str | None = None  # of the manifest; None: there is none
        self._logs: dict[str, SharedLog] | None = None
        self._is_told = False
        self._lock = fork_safe(threading.Lock())  # held while the manifest is read or put

    def pull(self, folder: Path) -> None:
        """What tells of the log, if this machine knows nothing of it yet. Raises LogError."""
        there = self._files(folder)
        if not osfile.fs.exists(folder / LINES):
            small = [name for name, parts in there.items() if sum(size for _, size in parts) <= _SMALL]
            self._fetch(folder, sorted(small, key=lambda name: name == LINES))  # last: it says that all is there

    def fetch(self, path: Path) -> None:
        """This file of a log, if it is not there, with those that lie in files of their own. Raises LogError."""
        folder = self._folder_of(path)
        if folder is not None and not osfile.fs.exists(path):
            spans = (path.parent / SPANS / path.stem).relative_to(folder).as_posix()
            more = [name for name in self._files(folder) if name.startswith(f"{spans}.")]
            self._fetch(folder, [*more, path.relative_to(folder).as_posix()])

    def publish(self, folder: Path, identity: bytes) -> None:
        """Put what is new of a log. Where that may not be, the cache of this machine has it."""
        try:
            self._publish(folder, identity.hex())
        except OSError as error:
            if not self._is_told:
                self._is_told = True
                said = f"indexes are not shared: {error.strerror or error}"
                warnings.warn(LogWarning(said, path=self._place), stacklevel=3)

    def enter(self, logs: Mapping[str, SharedLog]) -> None:
        """Put into the manifest what other processes put of these logs. Raises LogError."""
        try:
            with self._lock:
                self._load()
                self._enter(logs)
        except OSError as error:
            said = f"indexes are not shared: {error.strerror or error}"
            raise LogError(said, path=self._place) from error

    # Reading

    def _files(self, folder: Path) -> Files:
        with self._lock:
            if self._logs is None:
                try:
                    self._load()
                except OSError as error:
                    said = f"shared indexes cannot be read: {error.strerror or error}"
                    raise LogError(said, path=self._place) from error
        assert self._logs is not None
        return self._logs.get(self._name(folder), _NOTHING).files

    def _name(self, folder: Path) -> str:
        return folder.relative_to(self._root).as_posix()

    def _folder_of(self, path: Path) -> Path | None:
        """The log's folder in which a file lies; None of another place."""
        if self._logs is None or not path.is_relative_to(self._root):
            return None
        above = (each for each in path.parents if each.is_relative_to(self._root))
        return next((each for each in above if self._name(each) in self._logs), None)

    def _load(self) -> None:
        obstore = library("obstore")
        key = f"{self._place.key}/manifest".lstrip("/")
        try:
            got = obstore.get(store_of(self._place), key)
            data, tag = bytes(got.bytes()), got.meta["e_tag"] or ""
        except FileNotFoundError:
            self._tag, self._logs = None, {}
            return
        except Exception as error:
            raise as_os_error(error, self._place.at(key)) from None
        self._tag, self._logs = tag, _parsed(data, self._place.at(key))

    def _fetch(self, folder: Path, names: list[str]) -> None:
        there = self._files(folder)
        for name in names:
            parts = there.get(name)
            if parts is None:
                continue
            path = folder / name
            try:
                data = b"".join(self._parts(parts))
                osfile.fs.make_folders(path.parent)
                temporary = path.with_name(temporary_name(path.name))
                osfile.fs.write_file(temporary, data)
                osfile.fs.rename(temporary, path)
            except OSError as error:
                raise LogError(f"a shared index cannot be read: {error.strerror or error}", path=self._place) from error

    def _parts(self, parts: Parts) -> Iterator[bytes]:
        obstore, store = library("obstore"), store_of(self._place)

        def read(digest: str) -> bytes:
            key = self._key(digest)
            try:
                data = bytes(obstore.get(store, key).bytes())
            except Exception as error:
                raise as_os_error(error, self._place.at(key)) from None
            if _hash(data) != digest:
                raise OSError(None, "it is not what was put there", self._place.at(key))
            return data

        with ThreadPoolExecutor(_THREADS) as pool:
            yield from pool.map(read, [digest for digest, _ in parts])

    def _key(self, digest: str) -> str:
        return f"{self._place.key}/parts/{digest}".lstrip("/")

    # Writing

    def _publish(self, folder: Path, identity: str) -> None:
        files = {name: _cut(data) for name, data in _contents(folder)}
        known = self._files(folder)
        new = {name: parts for name, parts in files.items() if known.get(name) != parts}
        if not new:
            return
        held = {digest for log in (self._logs or {}).values() for parts in log.files.values() for digest, _ in parts}
        self._put_parts(folder, new, held)
        log = {self._name(folder): SharedLog(identity, files)}
        if self._told is not None:
            self._told.update(log)
            return
        with self._lock:
            self._enter(log)

    def _enter(self, logs: Mapping[str, SharedLog]) -> None:
        for _ in range(_TRIES):
            if self._put_manifest(logs):
                return
            self._load()
        raise OSError(None, "others change it again and again", self._place)

    def _put_parts(self, folder: Path, new: Files, held: set[str]) -> None:
        obstore, store = library("obstore"), store_of(self._place)

        def put(digest: str, data: bytes) -> None:
            try:
                obstore.put(store, self._key(digest), data, mode="create", use_multipart=False)
            except Exception as error:
                if not isinstance(error, library("obstore.exceptions").AlreadyExistsError):
                    raise as_os_error(error, self._place) from None

        with ThreadPoolExecutor(_THREADS) as pool:
            sent = []
            for name, parts in new.items():
                data, at = osfile.fs.read_file(folder / name), 0
                for digest, size in parts:
                    if digest not in held:
                        held.add(digest)
                        sent.append(pool.submit(put, digest, data[at : at + size]))
                    at += size
            for each in sent:
                each.result()

    def _put_manifest(self, new: Mapping[str, SharedLog]) -> bool:
        """Put it with these logs in the place of the one that was read; False where that is another one by now."""
        obstore = library("obstore")
        logs = dict(self._logs or {})
        logs |= {name: _joined(logs.get(name, _NOTHING), log) for name, log in new.items()}
        data = json.dumps({"version": 1, "logs": logs}, separators=(",", ":")).encode()
        key = f"{self._place.key}/manifest".lstrip("/")
        mode: Any = "create" if self._tag is None else {"e_tag": self._tag}
        exceptions = library("obstore.exceptions")
        try:
            put = obstore.put(store_of(self._place), key, data, mode=mode, use_multipart=False)
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
            return False
        except Exception as error:
            raise as_os_error(error, self._place.at(key)) from None
        self._tag, self._logs = put["e_tag"] or "", logs
        return True


def _joined(theirs: SharedLog, ours: SharedLog) -> SharedLog:
    """The files of both: of one that both have the longer one, for it knows more. Those of another object of this name
    are of no use any more.
    """
    if theirs.identity != ours.identity:
        return ours
    longer = {name: max(parts, theirs.files.get(name, []), key=_size) for name, parts in ours.files.items()}
    return SharedLog(ours.identity, {**theirs.files, **longer})


def _size(parts: Parts) -> int:
    return sum(size for _, size in parts)


def _parsed(data: bytes, url: ObjectUrl) -> dict[str, SharedLog]:
    try:
        found = json.loads(data)
        logs = {folder: SharedLog(str(identity), dict(files)) for folder, (identity, files) in found["logs"].items()}
        files = [each for log in logs.values() for each in log.files.items()]
        parts = [part for _, parts in files for part in parts]
        is_one = (
            found["version"] == 1
            and all(map(_is_path, (*logs, *(name for name, _ in files))))
            and all(digest.isalnum() and int(size) >= 0 for digest, size in parts)
        )
    except (ValueError, TypeError, LookupError, AttributeError):
        is_one = False
    if not is_one:
        raise InvalidArgument("it is no manifest of shared indexes", path=url, remedy="name another place for indexes")
    return logs


def _is_path(name: str) -> bool:
    """Whether it stays below the folder that it is a name in."""
    return bool(name) and not name.startswith("/") and not {"", ".", ".."} & set(name.split("/")) and "\0" not in name


def _cut(data: bytes) -> Parts:
    return [[_hash(part), len(part)] for at in range(0, len(data), _PART) if (part := data[at : at + _PART])]


def _hash(data: bytes) -> str:
    return blake2b(data, digest_size=_DIGEST).hexdigest()


def _contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The files in it, by their paths from there on."""
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not (Path(top, name) / LINES).exists()]  # of other forms
        for name in sorted(names):
            if name not in _LOCKS and not name.endswith(".tmp"):
                path = Path(top, name)
                with suppress(FileNotFoundError):
                    yield path.relative_to(folder).as_posix(), osfile.fs.read_file(path)
