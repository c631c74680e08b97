"""Values of records as JSON text, whatever they hold.

The text has the words of Spark's own `to_json`: bytes as base64, "NaN", a key that is no text as its JSON; beside these
{"$ext": [code, base64]} for msgpack's extension values, and null for bipf's undefined.
"""

from __future__ import annotations

import base64
import json
import math
from typing import Any, Final

from jitdb.common.values import EXTENSION, UNDEFINED, extension_parts, kind_of

_encode: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))


def json_of(value: Any) -> str:
    """The JSON text of a record's value, or of a part of one.

    >>> json_of({"a": [1, 2.5, None], "b": b"xy", 3: float("nan")})
    '{"a":[1,2.5,null],"b":"eHk=","3":"NaN"}'
    """
    try:
        return well_formed(_encode.encode(value))
    except (TypeError, ValueError):  # something in it that JSON lacks
        return well_formed(_encode.encode(_plain(value)))


def well_formed(text: str) -> str:
    """The text, where bytes that are no UTF-8 are replaced.

    >>> well_formed("a\\udcff")
    'a\\ufffd'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return text


def _plain(value: Any) -> Any:
    """The value with all that JSON lacks replaced."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if value is UNDEFINED:
        return None
    if kind_of(value) == EXTENSION:
        code, data = extension_parts(value)
        return {"$ext": [code, base64.b64encode(data).decode()]}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key if isinstance(key, str) else _key(key): _plain(item) for key, item in value.items()}
    return value


def _key(key: Any) -> str:
    plain = _plain(key)
    return plain if isinstance(plain, str) else _encode.encode(plain)
