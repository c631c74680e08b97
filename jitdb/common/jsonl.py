"""Records as lines of JSON, and back. What JSON has no word for is written as a map with one key:

    | value                            | in JSON                                              |
    | -------------------------------- | ---------------------------------------------------- |
    | bytes                            | {"$bytes": base64}                                   |
    | NaN, Infinity, -Infinity         | {"$number": "NaN"}, "Infinity", "-Infinity"          |
    | bipf's undefined                 | {"$undefined": true}                                 |
    | an extension value of msgpack    | {"$ext": [code, base64]}                             |
    | a map with a key that is no text | {"$map": [[key, value], …]}                          |
    | a map that looks like one of the above | {"$map": [[key, value]]}, so that nothing is ambiguous |
    | bytes in text that are no UTF-8  | escapes \\udc80 to \\udcff, as Python writes them    |

`read_tagged` turns them back; the records are then what they were.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable
from typing import Any, Final

from jitdb.common.values import EXTENSION, UNDEFINED, extension_parts, kind_of
from jitdb.errors import EncodeError

_PLAIN: Final = frozenset({str, int, bool, type(None)})

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")).encode
_encode_ascii = json.JSONEncoder(allow_nan=False, check_circular=False, separators=(",", ":")).encode


def line_of(value: Any) -> bytes:
    """One record as a line of UTF-8 that ends in a newline. Every value that a log can hold has one.

    >>> line_of({"a": 1, "b": b"xy"})
    b'{"a":1,"b":{"$bytes":"eHk="}}\\n'
    """
    if not is_plain(value):
        value = tagged(value)
    try:
        return _encode(value).encode() + b"\n"
    except UnicodeEncodeError:
        return _encode_ascii(value).encode() + b"\n"


def is_plain(value: Any) -> bool:
    """Whether JSON can say it as it is."""
    kind = type(value)
    if kind is dict:
        if len(value) == 1 and next(iter(value)) in _READERS:
            return False
        for key, item in value.items():
            if type(key) is not str or (type(item) not in _PLAIN and not is_plain(item)):
                return False
        return True
    if kind is list:
        return all(type(item) in _PLAIN or is_plain(item) for item in value)
    if kind is float:
        return math.isfinite(value)
    return kind in _PLAIN


def tagged(value: Any) -> Any:
    """The value with all that JSON lacks replaced (see the head of this file).

    >>> tagged({1: float("nan")})
    {'$map': [[1, {'$number': 'NaN'}]]}
    """
    if is_plain(value):
        return value
    if isinstance(value, float):
        return {"$number": "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"$bytes": base64.b64encode(value).decode()}
    if value is UNDEFINED:
        return {"$undefined": True}
    if kind_of(value) == EXTENSION:
        code, data = extension_parts(value)
        return {"$ext": [code, base64.b64encode(data).decode()]}
    if isinstance(value, (list, tuple)):
        return [tagged(item) for item in value]
    if all(type(key) is str for key in value) and not (len(value) == 1 and next(iter(value)) in _READERS):
        return {key: tagged(item) for key, item in value.items()}
    return {"$map": [[tagged(key), tagged(item)] for key, item in value.items()]}


def read_tagged(value: dict[str, Any]) -> Any:
    """An `object_hook` for json: the maps that `tagged` wrote, turned back.

    Raises EncodeError when one of these keys holds something else.
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


def _number(name: str) -> float:
    return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}[name]


def _undefined(_: Any) -> Any:
    return UNDEFINED


def _extension(parts: list[Any]) -> Any:
    from msgpack import ExtType

    code, text = parts
    # The constructor refuses the reserved codes; what a log held can be written again.
    return tuple.__new__(ExtType, (int(code), _bytes(text)))


def _map(pairs: list[list[Any]]) -> dict[Any, Any]:
    return {_hashable(key): item for key, item in pairs}


def _hashable(key: Any) -> Any:
    return tuple(_hashable(part) for part in key) if isinstance(key, list) else key


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "$bytes": _bytes, "$number": _number, "$undefined": _undefined, "$ext": _extension, "$map": _map,
}  # fmt: skip
