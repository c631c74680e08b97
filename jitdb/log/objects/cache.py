"""Where on this machine it is kept what is known of objects: a folder a bucket, and in it one an object or a place."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from jitdb.common.digests import blake2b
from jitdb.log.io import osfile
from jitdb.log.objects.urls import ObjectUrl

ROOT: Final = "root"  # a file with the URL of the bucket, or of the place


def cache_folder() -> Path:
    """What this user's logs have in the cache, whose folder the environment names."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if os.path.isabs(cache) else Path.home() / ".cache") / "jitdb"


def bucket_folder(url: ObjectUrl) -> Path:
    """That of the object's bucket; it need not exist."""
    return cache_folder() / "objects" / name_for(ObjectUrl.of(url.root))


def folder_for(url: ObjectUrl) -> Path:
    """That of an object, or of the place that objects lie below, in one of the bucket, which says what it is."""
    bucket = bucket_folder(url)
    note_root(bucket, url.root)
    return bucket / name_for(url)


def note_root(folder: Path, url: str) -> None:
    """Make the folder, if we may, with a file that says what it is of."""
    with suppress(OSError):  # where nothing can be written, an index that cannot be kept says so
        if not osfile.fs.exists(folder / ROOT):
            osfile.fs.make_folders(folder)
            osfile.fs.write_file(folder / ROOT, f"{url}\n".encode())


def name_for(path: Path | ObjectUrl) -> str:
    """The name of a folder for it, which tells a person what it is of."""
    name = re.sub(r"[^\w.=+-]", "_", path.name)[:64] if isinstance(path, ObjectUrl) else path.name
    return f"{name}-{blake2b(os.fsencode(path), digest_size=8).hexdigest()}"
