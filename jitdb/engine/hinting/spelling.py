"""What was probably meant by a field that nobody has, guessed from those that some records have. Knows no log."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import chain, islice
from typing import Any, Final

from jitdb.common.paths import ANY, Path, Step
from jitdb.common.spelling import nearest

_DEPTH: Final = 8  # keys in a path
_ELEMENTS: Final = 8  # of an array
_FIELDS: Final = 20_000  # fields looked at; records with ids for keys have no end of them


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
    others = [other for other in reversed(list(known)) if other != path]
    for keys in (slice(None), slice(-1, None)):
        names = {_words(other[keys]): other for other in others}
        if near := nearest(_words(path[keys]), names, 0.7):
            return _with_positions(names[near], path)
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
