"""What is in a record? The registry of codecs; ours are imported when they are first asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Final

from jitdb.common.formats import CODECS
from jitdb.common.words import shown
from jitdb.errors import CodecError, Remedy
from jitdb.log.codecs.base import Codec

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["CODEC_NAMES", "Codec", "find_codec", "get_codec", "guess_codec", "register_codec"]

CODEC_NAMES: Final = tuple(CODECS)  # of jitdb's own

_SAMPLE: Final = 48  # records that a guess is built on; about a millisecond
_UNKNOWN: Final = Remedy(
    "register one of that name (jitdb.register_codec), or pass an object of its class as codec=",
    "install the package that has it, which names it in its entry points (jitdb.codecs)",
)
_ENTRY_POINTS: Final = "jitdb.codecs"  # where an installed package names its codecs

_registered: Final[dict[str, Codec]] = {}


def get_codec(codec: str | Codec) -> Codec:
    """The codec of that name; a codec object is given back as it is. Raises CodecError for an unknown name, or
    for an own codec with the name of one of ours.

    >>> get_codec("bipf").decode(get_codec("bipf").encode({"a": 1}))
    {'a': 1}
    """
    if isinstance(codec, Codec):
        if codec.name in CODEC_NAMES and type(codec) is not type(find_codec(codec.name)):
            raise CodecError(f"the name {codec.name!r} is that of jitdb's own codec", remedy="choose another name")
        return codec
    found = find_codec(codec) if isinstance(codec, str) else None
    if found is None:
        names = ", ".join((*CODEC_NAMES, *sorted(_registered)))
        raise CodecError(f"there is no codec {shown(codec)}: jitdb knows {names}", remedy=_UNKNOWN)
    return found


def find_codec(name: str) -> Codec | None:
    """The codec of that name, of ours, registered, or named by an installed package; None where there is none.

    Raises CodecError where the package's is no codec of that name.
    """
    if name in CODECS:
        found: Codec = import_module(f"jitdb.log.codecs.{CODECS[name]}").CODEC
        return found
    if name not in _registered:
        from importlib.metadata import entry_points  # which takes a while

        for entry in entry_points(group=_ENTRY_POINTS, name=name):
            register_codec(_made(entry))
    return _registered.get(name)


def _made(entry: EntryPoint) -> Codec:
    """The codec that a package names. Raises CodecError where it is none of that name."""
    made = entry.load()()
    if not isinstance(made, Codec) or made.name != entry.name:
        raise CodecError(f"the entry point {entry.value!r} of {_ENTRY_POINTS} makes no codec {entry.name!r}")
    return made


def register_codec(codec: Codec) -> None:
    """Let logs of this codec be opened without passing it, and be known by their first records, in this process.

    Raises CodecError for the name of one of ours, or of another one that is registered.
    """
    get_codec(codec)
    known = _registered.setdefault(codec.name, codec)
    if type(known) is not type(codec):
        raise CodecError(f"the name {codec.name!r} is that of another codec that is registered: {known!r}")


def guess_codec(records: Iterable[bytes]) -> str | None:
    """The codec that a log's first records were written with, or None when that cannot be told.

    One of ours, or of those registered: the only one whose `looks_like` says so. Where none does, those that installed
    packages name are asked. Deleted records (all zeros) say nothing and are passed over.

    >>> guess_codec([get_codec("msgpack").encode({"type": "post"})])
    'msgpack'
    >>> guess_codec([b"a line of text"]) is None
    True
    """
    live = (record for record in records if record.count(0) < len(record))
    sample = list(islice(live, _SAMPLE))
    fitting = _fitting(map(get_codec, (*CODEC_NAMES, *_registered)), sample)
    if sample and not fitting:
        fitting = _fitting(_packaged(tuple(sys.path)), sample)
    return fitting[0] if len(fitting) == 1 else None


def _fitting(codecs: Iterable[Codec], sample: list[bytes]) -> list[str]:
    return [codec.name for codec in codecs if codec.looks_like(sample)]


@lru_cache(maxsize=1)
def _packaged(folders: tuple[str, ...]) -> list[Codec]:
    """The codecs that packages in these folders name; one that cannot be had here is no guess."""
    from importlib.metadata import entry_points

    found: dict[str, Codec] = {}
    for entry in entry_points(group=_ENTRY_POINTS):
        with suppress(ImportError, AttributeError, CodecError):
            found.setdefault(entry.name, _made(entry))
    return list(found.values())
