"""The formats that jitdb knows, a row each: those of records, and what files of lines are compressed with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

# The codecs, by their names: their modules in log/codecs, each of which has a CODEC.
CODECS: Final = {"msgpack": "msgpack.codec", "bipf": "bipf.codec", "json": "json.codec", "raw": "raw"}
WITH_FIELDS: Final = tuple(name for name in CODECS if name != "raw")


class Compression(NamedTuple):
    """
    ending: of the names of such files
    starts: what they begin with, one of these

    log/lines/files has a module `NAME_file` with the class that reads them, FILE.
    """

    ending: str
    starts: tuple[bytes, ...]


_SKIPPED: Final = tuple(bytes([0x50 + number]) + b"\x2a\x4d\x18" for number in range(16))  # frames without text
COMPRESSIONS: Final = {
    "gzip": Compression(".gz", (b"\x1f\x8b\x08",)),  # RFC 1952, and the one method that there is
    "zstd": Compression(".zst", (b"\x28\xb5\x2f\xfd", *_SKIPPED)),  # RFC 8878
}
ENDINGS: Final = tuple(each.ending for each in COMPRESSIONS.values())
LONGEST_START: Final = 4


def compression_of(head: bytes, name: str = "") -> str:
    """How a file that begins so is compressed; empty where it is not. Of an empty file, its name tells.

    >>> compression_of(bytes.fromhex("1f8b0800")), compression_of(b"", "a.ndjson.zst"), compression_of(b'{"a', "a.gz")
    ('gzip', 'zstd', '')
    """
    for kind, each in COMPRESSIONS.items():
        if head.startswith(each.starts) if head else name.endswith(each.ending):
            return kind
    return ""


def without_ending(name: str) -> str:
    """A file's name without the ending of a compression.

    >>> without_ending("a.csv.zst")
    'a.csv'
    """
    return next((name.removesuffix(ending) for ending in ENDINGS if name.endswith(ending)), name)


def either(names: Iterable[str]) -> str:
    """Names in a sentence.

    >>> either(["one", "two", "three"])
    'one, two or three'
    """
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last
