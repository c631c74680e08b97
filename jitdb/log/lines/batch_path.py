"""Where the elements of a batch are in its line, and what is around them, in plain Python.

line_kernels.py does the same of many lines; this is for lines of which a kernel is not certain.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple, TypeAlias

from jitdb.common.paths import Path

KeySteps: TypeAlias = tuple[tuple[str, ...] | None, ...]

SEPARATOR: Final = b"\x1e"  # behind what is around an element, where it is put before it: no JSON has this byte

_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_read: Final = json.JSONDecoder()
_NOTHING: Final = (-1, -1)  # where a thing is that is not there


class BatchPath(NamedTuple):
    """Where the elements of a batch are.

    steps:  of each map on the way the keys that lead on, of which the last one that is there counts; None: an array
    around: what belongs to each element, too: the step of the map in which it is, and its key
    """

    steps: KeySteps
    around: tuple[tuple[int, str], ...] = ()

    @property
    def first(self) -> Path:
        """The path through the first of the keys of each step."""
        return tuple(None if keys is None else keys[0] for keys in self.steps)


class Element(NamedTuple):
    """Where an element begins and ends in its line, and what is around it: -1 and -1 where there is no such thing."""

    begin: int
    end: int
    around: tuple[tuple[int, int], ...] = ()


def elements(line: bytes, path: BatchPath) -> list[Element]:
    """Where the elements in a line are, which the codec json can read.

    >>> elements(b'{"a": [1, {"b": 2}], "c": [3]}', BatchPath((("a",), None), ((0, "c"),)))
    [Element(begin=7, end=8, around=((26, 29),)), Element(begin=10, end=18, around=((26, 29),))]
    """
    found: list[Element] = []
    _walk(line, line.decode("latin-1"), 0, path, 0, found)  # in which a character is a byte
    return found


def with_around(line: bytes, element: Element) -> bytes:
    """An element as a format's renderer takes it: behind what is around it (line_kernels.gather_around)."""
    around = b"".join(line[max(begin, 0) : max(end, 0)] + SEPARATOR for begin, end in element.around)
    return around + line[element.begin : element.end]


def _past_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    assert blanks is not None
    return blanks.end()


def _walk(line: bytes, text: str, at: int, path: BatchPath, step: int, found: list[Element]) -> int:
    """Where the value ends at which this step begins."""
    at = _past_blanks(text, at)
    if step == len(path.steps) or text[at] != ("[" if path.steps[step] is None else "{"):
        end = _read.raw_decode(text, at)[1]
        if step == len(path.steps):
            found.append(Element(at, end, (_NOTHING,) * len(path.around)))
        return end
    mark, keys, beside = len(found), path.steps[step], dict[str, tuple[int, int]]()
    at = _past_blanks(text, at + 1)
    while text[at] not in "]}":
        key = ""
        is_on_path = True
        if keys is not None:
            _, end = _read.raw_decode(text, at)
            key = json.loads(line[at:end])
            is_on_path = key in keys
            at = _past_blanks(text, _past_blanks(text, end) + 1)
            if is_on_path:
                del found[mark:]
        begin = at
        at = _walk(line, text, at, path, step + 1, found) if is_on_path else _read.raw_decode(text, at)[1]
        beside[key] = begin, at
        at = _past_blanks(text, at)
        if text[at] == ",":
            at = _past_blanks(text, at + 1)
    if any(level == step for level, _ in path.around):
        found[mark:] = [_beside(element, path, step, beside) for element in found[mark:]]
    return at + 1


def _beside(element: Element, path: BatchPath, step: int, beside: dict[str, tuple[int, int]]) -> Element:
    """An element with what the map of this step holds of what is around it."""
    pairs = zip(path.around, element.around, strict=True)
    return element._replace(
        around=tuple(beside.get(key, _NOTHING) if level == step else span for (level, key), span in pairs)
    )
