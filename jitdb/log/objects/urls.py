"""Names of objects in a store: s3://bucket/key, gs://bucket/key, az://container/key, https://host/path."""

from __future__ import annotations

import os
import re
from typing import Final

from jitdb.errors import InvalidArgument

#: The schemes that are understood, and the name that each goes by: logs are found again by their names.
SCHEMES: Final = {
    "s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "azure": "az", "abfs": "abfs", "abfss": "abfs",
    "http": "http", "https": "https",
}  # fmt: skip
AT_ONCE: Final = 4 << 20  # bytes of an object that a scan asks for at once

_URL: Final = re.compile(rf"({'|'.join(SCHEMES)})://([^/]*)/?(.*)", re.IGNORECASE | re.DOTALL)
_SECRET: Final = re.compile(r"[?#].*", re.DOTALL)


class ObjectUrl(str):
    """The name of an object. It is a text, as a path is; its key is taken as it stands, without escapes.

    root: the bucket, container or host, as a URL: "s3://bucket"
    key:  the object's name in it, without a slash at its beginning
    """

    __slots__ = ("key", "root")
    root: str
    key: str

    @classmethod
    def of(cls, text: str) -> ObjectUrl:
        """Raises InvalidArgument."""
        found = _URL.fullmatch(text)
        scheme, bucket, key = ("", "", "") if found is None else (SCHEMES[found[1].lower()], found[2], found[3])
        if not bucket:
            raise InvalidArgument(f"this URL names no bucket: {text}")
        if "@" in bucket and scheme != "abfs":
            raise InvalidArgument(
                "a URL has no name and password: credentials come from the environment",
                remedy="see docs/object-storage.md",
            )
        if scheme.startswith("http") and _SECRET.search(key):
            raise InvalidArgument(
                f"a URL with ? or # names no file that stays the same: {_SECRET.sub('?…', text)}",
                remedy="download it first",
            )
        self = cls(f"{scheme}://{bucket}/{key}")
        self.root, self.key = f"{scheme}://{bucket}", key
        return self

    @property
    def name(self) -> str:
        """The part of the key behind its last slash; of a bucket its name."""
        return self.key.rstrip("/").rpartition("/")[2] or self.root.rpartition("/")[2]

    @property
    def parent(self) -> str:
        """The URL of what it lies in."""
        folder = self.key.rstrip("/").rpartition("/")[0]
        return f"{self.root}/{folder}" if folder else self.root

    def at(self, key: str) -> ObjectUrl:
        """Another object of this bucket."""
        other = ObjectUrl(f"{self.root}/{key}")
        other.root, other.key = self.root, key
        return other


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether a path is the name of an object.

    >>> is_url("s3://bucket/a.ndjson"), is_url("logs/a.ndjson"), is_url("file.s3://x")
    (True, False, False)
    """
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None  # who opens it refuses what is no path
    return isinstance(name, str) and _URL.fullmatch(name) is not None


def folders_above(path: str) -> list[str]:
    """The folders in which a file, or an object, is, the nearest first.

    >>> folders_above("s3://logs/a/b.ndjson"), folders_above("/logs/b.ndjson")
    (['s3://logs/a', 's3://logs'], ['/logs', '/'])
    """
    root = ObjectUrl.of(path).root if is_url(path) else ""
    found = []
    while path != root and (above := os.path.dirname(path)) != path:
        found.append(above)
        path = above
    return found
