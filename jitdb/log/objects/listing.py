"""Which objects a URL means: one, those of a pattern, or all below a folder."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, pairwise
from typing import Final

from jitdb.common.zlib import crc32
from jitdb.errors import LogError, library
from jitdb.log.io import osfile
from jitdb.log.objects.cache import bucket_folder, folder_for, name_for
from jitdb.log.objects.files import FILES, Found
from jitdb.log.objects.stores import as_os_error, store_of
from jitdb.log.objects.urls import ObjectUrl

_PAGE: Final = 1000  # names, in an answer of a store
_RUN: Final = 900  # names between two marks: some may come between them
_AT_ONCE: Final = 16  # requests for names at the same time
_MARKS: Final = "marks"
_MAGIC: Final = re.compile(r"[*?[]")
_LAST: Final = "\U0010ffff"


def has_pattern(url: ObjectUrl) -> bool:
    return _MAGIC.search(url.key) is not None


def is_folder(url: ObjectUrl) -> bool:
    """Whether objects lie below it: by its name, or, if it is no object, by a look into the store. Raises OSError."""
    if not url.key or url.key.endswith("/"):
        return True
    if url.root.startswith("http"):
        return False
    return next(_between(url.at(f"{url.key}/")), None) is not None


def objects_below(url: ObjectUrl) -> list[Found]:
    """All whose URLs begin so. Raises OSError."""
    return list(_listed(url))


def names_several(url: ObjectUrl) -> bool:
    """Whether it is a pattern, or the name of what objects lie below. Raises LogError."""
    if has_pattern(url):
        return True
    try:
        return not url.key or url.key.endswith("/") or (not FILES.exists(url) and is_folder(url))
    except OSError as error:
        raise LogError(error.strerror or str(error), path=url) from error


def objects_at(url: ObjectUrl) -> list[Found]:
    """The objects at this place now, by their keys. Raises LogError.

    A pattern has the signs of those of files: `*`, `?`, `[…]` and `**`. Objects without a byte, with which some tools
    mark folders, and hidden ones are left out where nobody named them.
    """
    try:
        if has_pattern(url):
            begin = url.key[: _MAGIC.search(url.key).start()]  # type: ignore[union-attr]
            fits = re.compile(_regex(url.key), re.DOTALL).fullmatch
            place = url.at(begin)
            named = [found for found in _kept(place, _listed(place)) if fits(found.url.key)]
            return named or _of_this_name(url)
        if url.key and not url.key.endswith("/"):
            if named := _of_this_name(url):
                return named
            url = url.at(f"{url.key}/")
        below = _kept(url, _listed(url))
    except OSError as error:
        raise LogError(error.strerror or str(error), path=url) from error
    if not below:
        raise LogError("there is no such object, and none below it", path=url)
    return below


def _of_this_name(url: ObjectUrl) -> list[Found]:
    """The object whose name it is, as it stands, if there is one. Raises OSError."""
    try:
        return [FILES.found(url)]
    except FileNotFoundError:
        return []


def _kept(begin: ObjectUrl, listed: Iterator[Found]) -> list[Found]:
    """Those that are logs, perhaps, of all whose URLs begin so."""
    every = list(listed)
    FILES.told(begin, every)
    _keep_marks(begin, every)
    return [found for found in every if found.size and not found.url.name.startswith(".")]


def _listed(url: ObjectUrl) -> Iterator[Found]:
    """Those whose keys begin as this one does, by their keys. Raises OSError."""
    marks = _marks(url)
    if not marks:
        return _between(url)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        runs = pool.map(lambda ends: list(_between(url, *ends)), pairwise(["", *marks, ""]))
        return iter(list(chain.from_iterable(runs)))


def _between(url: ObjectUrl, after: str = "", last: str = "") -> Iterator[Found]:
    """Those of these keys behind one, up to another. Raises OSError."""
    if url.root.startswith("http"):
        raise OSError(errno.ENOTSUP, "the files of a web server cannot be listed: name one", url)
    folder, _, begin = url.key.rpartition("/")
    obstore, store = library("obstore"), store_of(url)
    # A store takes whole folders; what comes before the beginning of a name is passed over by the store itself.
    if not after and begin and _has_order(url):
        after = f"{url.key[:-1]}{chr(ord(url.key[-1]) - 1)}{_LAST}"
    offset = {"offset": after} if after else {}
    stop = last or (f"{url.key}{_LAST}" if url.key and _has_order(url) else "")
    try:
        for page in obstore.list(store, folder or None, chunk_size=_PAGE, **offset):
            for said in page:
                key = said["path"]
                if stop and key > stop:
                    return
                if key.startswith(url.key):
                    yield Found.of(url.at(key), said)
    except Exception as error:
        raise as_os_error(error, url) from None


# Where to begin several requests for names at the same time, each the next names behind one that was there last time.
# Nothing depends on it: whatever names these are, all of one run come before those of the next. The file `marks` is the
# CRC-32 of the rest in hexadecimal digits, and the keys, in their order, a line each.


def _marks(url: ObjectUrl) -> list[str]:
    """Keys, in their order; none if it was not listed before, or all fits into one answer."""
    if not _has_order(url):
        return []
    data = osfile.fs.read_if_there(bucket_folder(url) / name_for(url) / _MARKS) or b""
    crc, _, text = data.partition(b"\n")
    return text.decode().split("\n") if crc == _crc(text) else []


def _keep_marks(url: ObjectUrl, found: Sequence[Found]) -> None:
    """So that the next listing takes as long as one answer; where they cannot be written, it takes longer."""
    if len(found) <= _PAGE or not _has_order(url):
        return
    keys = [each.url.key for each in found[_RUN::_RUN]]
    if keys != _marks(url) and not any("\n" in key for key in keys):
        with suppress(OSError):
            folder = folder_for(url)
            osfile.fs.make_folders(folder)
            text = "\n".join(keys).encode()
            osfile.fs.replace_file(folder / _MARKS, _crc(text) + b"\n" + text)


def _crc(text: bytes) -> bytes:
    return b"%08x" % crc32(text)


def _has_order(url: ObjectUrl) -> bool:
    """Whether the store lists by names: directory buckets of S3 do not, and servers of files need not."""
    return url.root.startswith(("s3://", "gs://")) and not url.root.endswith("--x-s3")


def _regex(pattern: str) -> str:
    """A pattern of keys, as glob understands one of paths.

    >>> _regex("a/**/b-[!0-9]*.json")
    'a/(?:[^/]+/)*b\\\\-[^0-9][^/]*\\\\.json'
    """
    parts, at = [], 0
    while at < len(pattern):
        if pattern.startswith("**/", at) and (at == 0 or pattern[at - 1] == "/"):
            parts.append("(?:[^/]+/)*")
            at += 3
        elif pattern[at:] == "**" and (at == 0 or pattern[at - 1] == "/"):
            parts.append(".+")
            at += 2
        elif pattern[at] == "*":
            parts.append("[^/]*")
            at += 1
        elif pattern[at] == "?":
            parts.append("[^/]")
            at += 1
        elif pattern[at] == "[" and (end := pattern.find("]", at + 2)) > 0:
            inside = pattern[at + 1 : end].replace("\\", "\\\\")
            parts.append(f"[{'^' + inside[1:] if inside.startswith('!') else inside}]")
            at = end + 1
        else:
            parts.append(re.escape(pattern[at]))
            at += 1
    return "".join(parts)
