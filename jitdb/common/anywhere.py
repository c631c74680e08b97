"""Whether a decoded record holds a text in any of its values: the rule of `* contains "text"`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from jitdb.common.json_text import json_of
from jitdb.common.paths import ANY, Path
from jitdb.common.values import ARRAY, EXTENSION, MAP, UNDEFINED, extension_parts, kind_of


def holds_anywhere(value: Any, text: str, ignore_case: bool = False) -> bool:
    """Whether a value in it holds the text.

    >>> record = {"user": {"id": 17, "name": "Ann"}, "tags": ["a", None]}
    >>> [text for text in ("nn", "7", "null", "user") if holds_anywhere(record, text)]
    ['nn', '7', 'null']
    """
    return any(holds_in(found, text, ignore_case) for _, found in texts_in(value))


def texts_in(value: Any, path: Path = ()) -> Iterator[tuple[Path, str | bytes]]:
    """Each value within the value, arrays and maps apart, as text; and the path that leads to it.

    >>> list(texts_in({"a": [1, {"b": "x"}]}))
    [(('a', None), '1'), (('a', None, 'b'), 'x')]
    """
    kind = kind_of(value)
    if kind == MAP:
        for key, held in value.items():
            yield from texts_in(held, (*path, key if isinstance(key, str) else json_of(key)))
    elif kind == ARRAY:
        for held in value:
            yield from texts_in(held, (*path, ANY))
    elif kind == EXTENSION:
        yield path, extension_parts(value)[1]
    else:
        yield path, value if isinstance(value, (str, bytes)) else "null" if value is UNDEFINED else json.dumps(value)


def holds_in(held: str | bytes, text: str, ignore_case: bool) -> bool:
    """Whether one value holds the text: of bytes, its UTF-8, as it stands."""
    if isinstance(held, bytes):
        return text.encode("utf-8", "surrogateescape") in held
    return text.casefold() in held.casefold() if ignore_case else text in held
