"""A place in a set of logs, as text: `logs:` and an object of JSON, from the logs' paths to places in them.

Such a place is the log's own cursor; behind it, of a file of lines, `/STOP.DIGEST` may tell the text that was read up
to a byte (members/read_text.py), by which a copy is known that was compressed meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from jitdb.common.words import shown
from jitdb.engine.cursor import parse_cursor
from jitdb.errors import QueryError
from jitdb.logset.members.read_text import ReadText

_HEAD: Final = "logs:"


class LogPlace(NamedTuple):
    """cursor: of the log
    text:   that was read of it, if that is known
    """

    cursor: str
    text: ReadText | None = None

    def __str__(self) -> str:
        return self.cursor if self.text is None else f"{self.cursor}/{self.text.stop}.{self.text.ends.hex()}"

    @classmethod
    def parse(cls, text: str) -> LogPlace:
        """Raises QueryError, ValueError."""
        cursor, _, read = text.partition("/")
        parse_cursor(cursor)
        stop, _, ends = read.partition(".")
        return cls(cursor, ReadText(int(stop), b"", bytes.fromhex(ends)) if read else None)


def set_cursor(places: Mapping[str, LogPlace]) -> str:
    """Its text.

    >>> set_cursor({"a.log": LogPlace("000102030405060708090a0b0c0d0e0f.1.5.320")})
    'logs:{"a.log":"000102030405060708090a0b0c0d0e0f.1.5.320"}'
    """
    return _HEAD + json.dumps(
        {path: str(place) for path, place in places.items()}, separators=(",", ":"), sort_keys=True
    )


def is_set_cursor(text: str) -> bool:
    """Whether it is one, or means to be."""
    return text.startswith(_HEAD)


def parse_set_cursor(text: str) -> dict[str, LogPlace]:
    """The places in logs, by their paths. Raises QueryError.

    >>> parse_set_cursor('logs:{"a.log": "000102030405060708090a0b0c0d0e0f.1.5.320"}')["a.log"].cursor
    '000102030405060708090a0b0c0d0e0f.1.5.320'
    """
    try:
        found = json.loads(text[len(_HEAD) :]) if isinstance(text, str) and is_set_cursor(text) else None
        if isinstance(found, dict) and all(isinstance(place, str) for place in found.values()):
            return {path: LogPlace.parse(place) for path, place in found.items()}
    except ValueError:
        pass
    raise QueryError(
        f"this is no cursor of several logs: {shown(text)}",
        remedy="it is what `.cursor` of a live query to a set of logs gives, kept as it is",
    )
