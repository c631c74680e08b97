"""Values of records as JSON text. What JSON cannot say is written in one of two ways:

| value                            | line_of, which read_tagged reads back        | json_of, as Spark's to_json       |
| -------------------------------- | -------------------------------------------- | --------------------------------- |
| bytes                            | {"$bytes": base64}                           | base64                            |
| NaN, Infinity, -Infinity         | {"$number": "NaN"}, "Infinity", "-Infinity"  | "NaN", "Infinity", "-Infinity"    |
| bipf's undefined                 | {"$undefined": true}                         | null                              |
| an extension value of msgpack    | {"$ext": [code, base64]}                     | the same                          |
| a map with a key that is no text | {"$map": [[key, value], …]}                  | the JSON of the key as its key    |
| a map that looks like a tag      | {"$map": [[key, value]]}                     | as it is                          |
| bytes in text that are no UTF-8  | escapes \\udc80 to \\udcff, as Python does   | U+FFFD                            |
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable
from typing import Any, Final

from jitdb.common.values import EXTENSION, UNDEFINED, extension_parts, hashable, kind_of
from jitdb.errors import EncodeError

_PLAIN: Final = frozenset({str, int, bool, type(None)})

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")).encode
_encode_ascii = json.JSONEncoder(allow_nan=False, check_circular=False, separators=(",", ":")).encode


def line_of(value: Any) -> bytes:
    """One record as a line of UTF-8 that ends in a newline. Every value that a log can hold has one.

    >>> line_of({"a": 1, "b": b"xy"})
    b'{"a":1,"b":{"$bytes":"eHk="}}\\n'
    """
    if not _is_plain(value):
        value = _tagged(value)
    try:
        return _encode(value).encode() + b"\n"
    except UnicodeEncodeError:
        return _encode_ascii(value).encode() + b"\n"


def json_of(value: Any) -> str:
    """The JSON text of a record's value, or of a part of one.

    >>> json_of({"a": [1, 2.5, None], "b": b"xy", 3: float("nan")})
    '{"a":[1,2.5,null],"b":"eHk=","3":"NaN"}'
    """
    try:
        return well_formed(_encode(value))
    except (TypeError, ValueError):  # JSON cannot say all of it
        return well_formed(_encode(_untagged(value)))


def well_formed(text: str) -> str:
    """The text with bytes that are no UTF-8 replaced.

    >>> well_formed("a\\udcff")
    'a\\ufffd'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return text


def _is_plain(value: Any) -> bool:
    """Whether JSON can say it as it is."""
    kind = type(value)
    if kind is dict:
        if len(value) == 1 and next(iter(value)) in _READERS:
            return False
        for key, item in value.items():
            if type(key) is not str or (type(item) not in _PLAIN and not _is_plain(item)):
                return False
        return True
    if kind is list:
        return all(type(item) in _PLAIN or _is_plain(item) for item in value)
    if kind is float:
        return math.isfinite(value)
    return kind in _PLAIN


def _tagged(value: Any) -> Any:
    """The value with tags for what JSON cannot say.

    >>> _tagged({1: float("nan")})
    {'$map': [[1, {'$number': 'NaN'}]]}
    """
    if _is_plain(value):
        return value
    if isinstance(value, (list, tuple)) and kind_of(value) != EXTENSION:
        return [_tagged(item) for item in value]
    if not isinstance(value, dict):
        tag, text = _said(value)
        return {tag: text}
    if all(type(key) is str for key in value) and not (len(value) == 1 and next(iter(value)) in _READERS):
        return {key: _tagged(item) for key, item in value.items()}
    return {"$map": [[_tagged(key), _tagged(item)] for key, item in value.items()]}


def _untagged(value: Any) -> Any:
    """The value with the words of Spark's to_json for what JSON cannot say."""
    if value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, dict):
        return {key if isinstance(key, str) else _key(key): _untagged(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and kind_of(value) != EXTENSION:
        return [_untagged(item) for item in value]
    tag, text = _said(value)
    return {tag: text} if tag == "$ext" else None if tag == "$undefined" else text


def _key(key: Any) -> str:
    plain = _untagged(key)
    return plain if isinstance(plain, str) else _encode(plain)


def _said(value: Any) -> tuple[str, Any]:
    """The tag, and the text, of a value that JSON cannot say."""
    if isinstance(value, float):
        return "$number", "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "$bytes", base64.b64encode(value).decode()
    if value is UNDEFINED:
        return "$undefined", True
    code, data = extension_parts(value)
    return "$ext", [code, base64.b64encode(data).decode()]


def read_tagged(value: dict[str, Any]) -> Any:
    """An `object_hook` for json: turns tags back into the values that they stand for.

    Raises EncodeError where a tag holds something else.
    """
    if len(value) == 1:
        key, inner = next(iter(value.items()))
        reader = _READERS.get(key)
        if reader is not None:
            try:
                return reader(inner)
            except (ValueError, TypeError, KeyError, binascii.Error) as error:
                raise EncodeError(f"{key} holds {inner!r:.80}, which it cannot stand for ({error})") from error
    return value


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _extension(parts: list[Any]) -> Any:
    from msgpack import ExtType

    code, text = parts
    return tuple.__new__(ExtType, (int(code), _bytes(text)))  # the constructor refuses codes that a log may hold


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "$bytes": _bytes,
    "$number": {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.__getitem__,
    "$undefined": lambda _: UNDEFINED,
    "$ext": _extension,
    "$map": lambda pairs: {hashable(key): item for key, item in pairs},
}
