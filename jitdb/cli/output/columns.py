"""Which fields are worth a column: in many of the records, short, not always the same, telling by their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Path = tuple[str, ...]

_COLUMNS: Final = 5  # in 80 characters
_MOST: Final = 12
_DEPTH: Final = 5  # keys in a path
_SAMPLE: Final = 200  # records looked at

# Last keys of fields that people look for first.
TELLING: Final = {
    "timestamp": 9, "time": 9, "date": 9, "ts": 8, "type": 8, "kind": 7, "level": 8, "status": 7, "name": 7,
    "author": 6, "user": 6, "text": 6, "message": 6, "msg": 6, "title": 6, "sequence": 5, "id": 4, "path": 5,
}  # fmt: skip
TIMES: Final = frozenset({"timestamp", "time", "date", "ts"})


@dataclass(slots=True)
class _Seen:
    """What a field held in the sample."""

    count: int = 0
    length: int = 0
    blanks: int = 0
    distinct: set[str] = field(default_factory=set)

    @property
    def is_prose(self) -> bool:
        return self.blanks * 2 > self.count and self.length / self.count > 24


def columns_in(width: int) -> int:
    """How many columns a table of `width` characters has.

    >>> columns_in(80), columns_in(120), columns_in(300)
    (5, 7, 12)
    """
    return max(_COLUMNS, min(_COLUMNS + (width - 80) // 20, _MOST))


def choose_columns(records: Sequence[Any], most: int = _COLUMNS) -> list[Path]:
    """The paths of at most `most` fields: times first, then as they stand in the records, texts last.

    Fields that half of the records lack are chosen only where others do not fill the table.

    >>> choose_columns([{"id": 1, "text": "hello", "time": 5}, {"id": 2, "time": 6}])
    [('time',), ('id',), ('text',)]
    >>> choose_columns([17, "text"])
    [('',)]
    """
    sample = records[:_SAMPLE]
    seen: dict[Path, _Seen] = {}
    for record in sample:
        for path, value in leaves(record):
            found = seen.setdefault(path, _Seen())
            text = str(value)
            found.count += 1
            found.length += len(text)
            found.blanks += " " in text
            found.distinct.add(text[:64])
    scores = {path: _score(path, found, len(sample)) for path, found in seen.items()}
    best = sorted(scores, key=lambda path: (2 * seen[path].count <= len(sample), -scores[path], len(path)))
    chosen: list[Path] = []
    for path in best:
        # Of timestamp and value.timestamp one is enough.
        if len(chosen) < most and scores[path] > 0 and path[-1] not in {other[-1] for other in chosen}:
            chosen.append(path)
    chosen = chosen or best[:most] or [("",)]
    order = list(seen)
    return sorted(
        chosen, key=lambda path: (path[-1] not in TIMES, path in seen and seen[path].is_prose, _place(order, path))
    )


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Paths and values of the text, numbers and booleans in maps within maps."""
    if isinstance(value, dict):
        if len(path) < _DEPTH:
            for key, item in value.items():
                if isinstance(key, str) and key and "." not in key and "," not in key:
                    yield from leaves(item, (*path, key))
    elif not path:
        yield ("",), value
    elif isinstance(value, (str, int, float, bool)):
        yield path, value


def _place(order: list[Path], path: Path) -> int:
    return order.index(path) if path in order else len(order)


def _score(path: Path, found: _Seen, sample: int) -> float:
    presence = found.count / sample
    opaque = found.length / found.count > 24 and not found.is_prose
    same = len(found.distinct) == 1 and sample > 3
    score = 4 * presence + TELLING.get(path[-1].lower(), 0) - 0.5 * len(path)
    return score - 4 * opaque - 6 * same - 6 * (presence < 0.2)
