"""What was probably meant by a field that nobody has, or by a value that a field never has. Knows no log.

A field is guessed from those that some records have; a value from how people write the number for its text, or the
text in another case.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice
from typing import Any, Final

from jitdb.common.paths import ANY, Path, Step

_DEPTH: Final = 8  # keys in a path
_ELEMENTS: Final = 8  # of an array
_FIELDS: Final = 20_000  # fields looked at; records with ids for keys have no end of them
_WORDS: Final = {"true": True, "false": False, "null": None, "none": None}


def fields_in(records: Iterable[Any]) -> dict[Path, Any]:
    """The paths in these records, in the order in which they come, and the first value of each."""
    found: dict[Path, Any] = {}
    for path, value in islice(chain.from_iterable(map(_walk, records)), _FIELDS):
        found.setdefault(path, value)
    return found


def _walk(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if path:
        yield path, value
    if isinstance(value, dict) and len(path) < _DEPTH:
        for key, item in value.items():
            if isinstance(key, str):
                yield from _walk(item, (*path, key))
    elif isinstance(value, list) and len(path) < _DEPTH:
        for item in value[:_ELEMENTS]:
            yield from _walk(item, (*path, ANY))


def is_known(path: Path, known: Container[Path]) -> bool:
    """Whether it is one of these fields, which say of elements of arrays only that there are any."""
    return tuple(ANY if isinstance(step, int) else step for step in path) in known


def nearest_field(path: Path, known: Iterable[Path]) -> Path | None:
    """The field that was probably meant: one of a similar name, or one deeper whose last key is similar.

    Where only dots and brackets differ, it is certain: a key with a dot in it, elements of an array.

    >>> nearest_field(("tpye",), [("type",), ("user", "name")])
    ('type',)
    >>> nearest_field(("name",), [("type",), ("user", "name")])
    ('user', 'name')
    >>> nearest_field(("log", "level"), [("log.level",)])
    ('log.level',)
    >>> nearest_field(("items", "0", "sku"), [("items", None, "sku")])
    ('items', 0, 'sku')
    """
    import difflib

    others = [other for other in reversed(list(known)) if other != path]
    for keys in (slice(None), slice(-1, None)):
        names = {_words(other[keys]): other for other in others}
        close = difflib.get_close_matches(_words(path[keys]), names, n=1, cutoff=0.7)
        if close:
            return _with_positions(names[close[0]], path)
    return None


def _words(path: Path) -> str:
    """A path without what tells keys and elements apart."""
    return ".".join(str(step) for step in path if not _is_position(step)).lower()


def _is_position(step: Step) -> bool:
    return not isinstance(step, str) or step.isdecimal()


def _with_positions(meant: Path, path: Path) -> Path:
    """The field that was meant, with the positions that were written in the place of any."""
    positions = [int(step) for step in path if step is not ANY and _is_position(step)]
    if len(positions) != meant.count(ANY):
        return meant
    return tuple(positions.pop(0) if step is ANY else step for step in meant)


def other_values(value: Any) -> Iterator[Any]:
    """What else a person may have meant, the likeliest first.

    >>> list(other_values("180")), list(other_values(180)), list(other_values("True"))
    ([180], ['180'], [True, 'true', 'TRUE'])
    >>> list(other_values("eu west"))
    ['EU WEST', 'Eu west', 'Eu West']
    """
    if value is None or isinstance(value, bool):
        yield from (str(value).lower(), str(value), *(["null", ""] if value is None else []))
    elif isinstance(value, (int, float)):
        with suppress(ValueError):  # of thousands of digits Python makes no text
            yield str(value)
    elif isinstance(value, str):
        if value.lower() in _WORDS:
            yield _WORDS[value.lower()]
        number = _number(value)
        if number is not None:
            yield number
        spellings = (value.lower(), value.upper(), value.capitalize(), value.title(), value.strip())
        yield from (other for other in dict.fromkeys(spellings) if other != value)


def _number(text: str) -> int | float | None:
    for read in (int, float):
        try:
            number = read(text)
        except ValueError:
            continue
        return number if math.isfinite(number) else None
    return None
