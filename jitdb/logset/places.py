"""A place in a set of logs, as text: `logs:` and an object of JSON, from the logs' paths to their own cursors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from jitdb.common.words import shown
from jitdb.engine.cursor import parse_cursor
from jitdb.errors import QueryError

_HEAD: Final = "logs:"


def set_cursor(places: Mapping[str, str]) -> str:
    """Its text.

    >>> set_cursor({"a.log": "000102030405060708090a0b0c0d0e0f.1.5.320"})
    'logs:{"a.log":"000102030405060708090a0b0c0d0e0f.1.5.320"}'
    """
    return _HEAD + json.dumps(places, separators=(",", ":"), sort_keys=True)


def is_set_cursor(text: str) -> bool:
    """Whether it is one, or means to be."""
    return text.startswith(_HEAD)


def parse_set_cursor(text: str) -> dict[str, str]:
    """The places in logs, by their paths. Raises QueryError.

    >>> parse_set_cursor('logs:{"a.log": "000102030405060708090a0b0c0d0e0f.1.5.320"}')
    {'a.log': '000102030405060708090a0b0c0d0e0f.1.5.320'}
    """
    try:
        found = json.loads(text[len(_HEAD) :]) if isinstance(text, str) and is_set_cursor(text) else None
    except ValueError:
        found = None
    if isinstance(found, dict) and all(isinstance(place, str) for place in found.values()):
        for place in found.values():
            parse_cursor(place)
        return found
    raise QueryError(
        f"this is no cursor of several logs: {shown(text)}",
        remedy="it is what `.cursor` of a live query to a set of logs gives, kept as it is",
    )
