"""Batches in one line: `resourceLogs[].scopeLogs[].logRecords[]`. Each element of the path is a record.

Of keys that are there twice the last one counts, as json.loads has it. What is no map where a key is asked for, or
no array where elements are, has none; neither has a line without them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final, TypeAlias

from jitdb.common.paths import ANY, parse_path
from jitdb.errors import InvalidArgument, QueryError

Steps: TypeAlias = tuple[str | None, ...]  # a path (common/paths.py) of keys and ANY, which stands last

MOST: Final = 32  # steps

_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_read: Final = json.JSONDecoder()


def parse_each(given: str | Sequence[str | None] | None) -> Steps:
    """The steps of a path as text, or as a list of keys and "[]". Raises InvalidArgument.

    >>> parse_each("resource.logs[].records[]"), parse_each('["dotted.key"][]')
    (('resource', 'logs', None, 'records', None), ('dotted.key', None))
    >>> parse_each(["dotted.key", "[]"]), parse_each("[]"), parse_each(None)
    (('dotted.key', None), (None,), ())
    """
    if given is None or given == "":
        return ()
    try:
        path = parse_path(given if isinstance(given, str) else [ANY if step == "[]" else step for step in given])
    except QueryError:
        path = ()
    steps = tuple(step for step in path if step is ANY or isinstance(step, str))
    is_odd = isinstance(given, str) and "" in path and '""' not in given  # `.a[]`, as in jq, leads nowhere
    if not path or is_odd or steps != path or steps[-1] is not ANY or len(steps) > MOST:
        raise InvalidArgument(
            f"each is a path to the elements of arrays, of at most {MOST} steps, such as "
            f"'resourceLogs[].scopeLogs[].logRecords[]', not {given!r}"
        )
    return steps


def elements(line: bytes, steps: Steps) -> list[tuple[int, int]]:
    """Where the elements in a line begin and end, which the codec json can read.

    >>> elements(b'{"a": [1, {"b": 2}], "c": [3]}', ("a", None))
    [(7, 8), (10, 18)]
    """
    found: list[tuple[int, int]] = []
    _walk(line, line.decode("latin-1"), 0, steps, found)  # in which a character is a byte
    return found


def _past_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    assert blanks is not None
    return blanks.end()


def _walk(line: bytes, text: str, at: int, steps: Steps, found: list[tuple[int, int]]) -> int:
    """Where the value ends at which the steps begin."""
    at = _past_blanks(text, at)
    if not steps or text[at] != ("[" if steps[0] is None else "{"):
        end = _read.raw_decode(text, at)[1]
        if not steps:
            found.append((at, end))
        return end
    mark = len(found)
    at = _past_blanks(text, at + 1)
    while text[at] not in "]}":
        is_on_path = True
        if steps[0] is not None:
            _, end = _read.raw_decode(text, at)
            is_on_path = json.loads(line[at:end]) == steps[0]
            at = _past_blanks(text, _past_blanks(text, end) + 1)
            if is_on_path:
                del found[mark:]
        at = _walk(line, text, at, steps[1:], found) if is_on_path else _read.raw_decode(text, at)[1]
        at = _past_blanks(text, at)
        if text[at] == ",":
            at = _past_blanks(text, at + 1)
    return at + 1
