"""What is in a record? The registry of codecs; each is imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from itertools import islice
from typing import Final

from jitdb.common.words import shown
from jitdb.errors import CodecError, DecodeError
from jitdb.log.codecs.base import Codec

__all__ = ["CODEC_NAMES", "Codec", "get_codec", "guess_codec"]

_MODULES: Final = {"bipf": "bipf.codec", "msgpack": "msgpack.codec", "raw": "raw"}
CODEC_NAMES: Final = tuple(_MODULES)

_SAMPLE: Final = 48  # records that a guess is built on; about a millisecond


def get_codec(codec: str | Codec) -> Codec:
    """The codec of that name; a codec object is given back as it is. Raises CodecError for an unknown name, or
    for an own codec with the name of one of ours.

    >>> get_codec("bipf").decode(get_codec("bipf").encode({"a": 1}))
    {'a': 1}
    """
    if isinstance(codec, Codec):
        if codec.name in CODEC_NAMES and type(codec) is not type(get_codec(codec.name)):
            raise CodecError(f"the name {codec.name!r} is that of jitdb's own codec", remedy="call yours otherwise")
        return codec
    if not isinstance(codec, str) or codec not in CODEC_NAMES:
        raise CodecError(f"there is no codec {shown(codec)}; jitdb knows {', '.join(CODEC_NAMES)}")
    found: Codec = import_module(f"jitdb.log.codecs.{_MODULES[codec]}").CODEC
    return found


def guess_codec(records: Iterable[bytes]) -> str | None:
    """The codec that a log's first records were written with, or None when that cannot be told.

    'bipf' or 'msgpack' when every record looked at is valid in that codec, and only in that one, and is a map, and
    they are not all empty (an empty map is one byte, too little to go by).
    Deleted records (all zeros) say nothing and are passed over.

    >>> guess_codec([get_codec("msgpack").encode({"type": "post"})])
    'msgpack'
    >>> guess_codec([b"a line of text"]) is None
    True
    """
    live = (record for record in records if record.count(0) < len(record))
    sample = list(islice(live, _SAMPLE))
    fitting = [name for name in ("bipf", "msgpack") if _are_maps(get_codec(name), sample)]
    return fitting[0] if len(fitting) == 1 else None


def _are_maps(codec: Codec, records: list[bytes]) -> bool:
    """Whether all records are maps in this codec, and one of them has a key."""
    try:
        values = [codec.decode(record) for record in records]
    except DecodeError:
        return False
    return all(isinstance(value, dict) for value in values) and any(values)
