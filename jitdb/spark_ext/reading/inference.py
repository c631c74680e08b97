"""The columns and types that the records of a sample suggest.

Every path at which the sample holds something other than a map becomes a column, named with dots, in the order in which
paths turn up. Its type:

    true and false                        boolean
    whole numbers that fit 64 bits        long; with any others among them, double
    text                                  string
    bytes                                 binary
    arrays of one of these kinds          array of it; an array of anything else, string (JSON)
    several kinds, extension values       string: text as it is, all else as JSON
    nothing but null                      string

A path that holds maps and other things too has a column for the others, which is null where there is a map. A map with
more than 64 different keys in the sample is a string (JSON): its keys are data. A key that is no text, or no UTF-8,
gets no column. A name that is taken already, in whatever case, gets underscores behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from jitdb.common.paths import MAX_DEPTH, Path
from jitdb.common.values import ABSENT, ARRAY, BYTES, FALSE, NULL, NUMBER, STRING, TRUE, kind_of
from jitdb.spark_ext.reading.columns import CORE, WHOLE, Asked, Source
from jitdb.spark_ext.reading.json_text import well_formed

MOST_KEYS: Final = 64

_NUMBERS: Final = {"long", "double"}
_CORE_TYPES: Final = {"seq": "long", "offset": "long", "timestamp": "double", WHOLE: "string"}


@dataclass(slots=True)
class Seen:
    """What the sample holds at one path."""

    kinds: set[str] = field(default_factory=set)  # types of values that are no maps
    is_map: bool = False
    below: dict[str, Seen] = field(default_factory=dict)

    def look(self, value: Any, depth: int = 0) -> None:
        """Take in one value."""
        if isinstance(value, dict):
            self.is_map = True
            for key, item in value.items():
                if _is_name(key) and depth < MAX_DEPTH - 1 and len(self.below) <= MOST_KEYS:
                    self.below.setdefault(key, Seen()).look(item, depth + 1)
            return
        self.kinds.add(_type_of(value))

    @property
    def is_table(self) -> bool:
        """Whether its maps' keys are names of fields."""
        return self.is_map and 0 < len(self.below) <= MOST_KEYS

    @property
    def type(self) -> str:
        """What a column must be to hold what was seen."""
        kinds = self.kinds - {""}
        if not kinds or (self.is_map and not self.is_table):
            return "string"
        if kinds <= _NUMBERS:
            return "double" if "double" in kinds else "long"
        if all(kind.startswith("array<") for kind in kinds):
            inner = {kind[len("array<") : -1] for kind in kinds} - {""}
            return f"array<{Seen(inner).type}>" if len(inner) < 2 or inner <= _NUMBERS else "string"
        return kinds.pop() if len(kinds) == 1 and "other" not in kinds else "string"


def inferred(records: Iterable[Any], core: Sequence[str] = CORE) -> list[Asked]:
    """The columns of records like these, behind those of `core`."""
    root = Seen()
    for record in records:
        if isinstance(record, dict):
            root.look(record)
    taken = {name.lower() for name in core}
    found = [Asked(name, Source(core=name), _CORE_TYPES[name]) for name in core]
    if not root.is_table:
        return [*found, Asked("record", Source(core=WHOLE), "string")]
    for path, seen in _columns(root, ()):
        name = ".".join(path)
        while name.lower() in taken:
            name += "_"
        taken.add(name.lower())
        found.append(Asked(name, Source(path=path, unless_map=seen.is_table), seen.type))
    return found


def typed(asked: Sequence[Asked], records: Iterable[Any], core: Sequence[str] = CORE) -> list[Asked]:
    """The columns of `core`, then those that were asked for, with the types of the sample where they have none."""
    seen = {each.source.path: Seen() for each in asked if not each.type and not each.source.core}
    for record in records if seen else ():
        for path, found_there in seen.items():
            found_there.look(_at(record, path))
    names = {each.name for each in asked}
    found = [Asked(name, Source(core=name), _CORE_TYPES[name]) for name in core if name not in names]
    return found + [each if each.type else each._replace(type=_type_of_column(seen, each.source)) for each in asked]


def _type_of_column(seen: Mapping[Path, Seen], source: Source) -> str:
    if source.core:
        return _CORE_TYPES[source.core]
    there = seen[source.path]
    return "string" if there.is_map else there.type


def _at(record: Any, path: Path) -> Any:
    """The field of a record; None where there is none."""
    for key in path:
        record = record.get(key) if isinstance(record, dict) else None
    return record


def _columns(seen: Seen, path: Path) -> Iterable[tuple[Path, Seen]]:
    if path and (seen.kinds or not seen.is_table):
        yield path, seen
    if seen.is_table:
        for key, below in seen.below.items():
            yield from _columns(below, (*path, key))


def _is_name(key: Any) -> bool:
    """Whether a column can be called so: text that is UTF-8."""
    return isinstance(key, str) and (key.isascii() or well_formed(key) is key)


def _type_of(value: Any) -> str:
    """The type of a value that is no map; empty for what says nothing."""
    kind = kind_of(value)
    if kind in (ABSENT, NULL):
        return ""
    if kind in (TRUE, FALSE):
        return "boolean"
    if kind == NUMBER:
        return "long" if isinstance(value, int) and -(1 << 63) <= value < 1 << 63 else "double"
    if kind in (STRING, BYTES):
        return "string" if kind == STRING else "binary"
    if kind == ARRAY:
        inner = {_type_of(item) for item in value} - {""}
        if len(inner) < 2 or inner == _NUMBERS:
            only = "double" if len(inner) == 2 else "".join(inner)
            return "other" if only.startswith(("array", "other")) else f"array<{only}>"
        return "other"
    return "other"  # an extension value, a map in an array
