"""What the columns of a table are: which field of a record each one holds, or what else of it; asked for, or inferred.

    seq, offset    the record's ordinal and where it lies in the log
    timestamp      the earliest time in the fields that say when it was made; as a number, the smallest number there
    *              the whole record
    a path         that field

In a table's schema, a column says its field in its metadata, `{"jitdb": {"path": […]}}`. One without is a column of the
option `columns`, one of the three above, or else its name is the path.

Inferred, every path at which the sample holds something other than a map becomes a column, in the order in which paths
turn up, of the type that docs/spark.md tells ("Types").
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from jitdb.common.paths import MAX_DEPTH, Path, format_path, keys_before, parse_path, single, split_paths
from jitdb.common.values import ABSENT, ARRAY, BYTES, FALSE, NULL, NUMBER, STRING, TRUE, UNDEFINED, kind_of, value_at
from jitdb.errors import QueryError

CORE: Final = ("seq", "offset", "timestamp")
WHOLE: Final = "*"
METADATA: Final = "jitdb"
MOST_KEYS: Final = 64

_NUMBERS: Final = {"long", "double"}
_CORE_TYPES: Final = {"seq": "long", "offset": "long", "timestamp": "double", WHOLE: "string"}


class ColumnSource(NamedTuple):
    """What a column holds: one of CORE, WHOLE, or the field at `path` (then `core` is empty)."""

    core: str = ""
    path: Path = ()
    unless_map: bool = False  # null where the field holds a map, whose fields have columns of their own

    def metadata(self) -> dict[str, Any]:
        """How a schema says it."""
        if self.core:
            return {METADATA: {"core": self.core}}
        return {METADATA: {"path": list(self.path), **({"unless_map": True} if self.unless_map else {})}}


class ColumnRequest(NamedTuple):
    """A column that was asked for. `type` is one of Spark's, in its own words; empty: found by looking."""

    name: str
    source: ColumnSource
    type: str = ""


# --- asked for -------------------------------------------------------------------------------------------------------


def asked_columns(columns: str | Sequence[Any] | Mapping[str, Any] | None) -> list[ColumnRequest] | None:
    """The columns that the option, or the argument, asks for. None: whatever the records hold.

    >>> asked_columns("value.author, value.content.type")[1].source.path
    ('value', 'content', 'type')
    >>> asked_columns({"name": ["user", "name"], "at": ("when", "timestamp")})[1].type
    'timestamp'

    Text is a list of paths with commas between, or JSON. In a list, an item is a path with dots, or a list of keys; in
    a map, names are mapped to paths, or to tuples of a path and a type. `*` is the whole record.
    Raises QueryError.
    """
    if columns is None:
        return None
    if isinstance(columns, str):
        columns = _read(columns)
    if isinstance(columns, Mapping):
        return [_named(str(name), what) for name, what in columns.items()]
    if isinstance(columns, Sequence):
        return [_listed(item) for item in columns]
    raise QueryError(f"columns are a list of paths, or a map of names to paths, not {columns!r}")


def to_form(asked: Sequence[ColumnRequest]) -> str:
    """The option's text for these columns."""
    return json.dumps([{"name": each.name, "type": each.type, **each.source.metadata()[METADATA]} for each in asked])


def source_of(name: str, metadata: Mapping[str, Any] | None, asked: Sequence[ColumnRequest] | None) -> ColumnSource:
    """What a column of a schema holds."""
    form = (metadata or {}).get(METADATA)
    if isinstance(form, Mapping):
        return _from_form(form)
    for each in asked or ():
        if each.name == name:
            return each.source
    return ColumnSource(core=name) if name in CORE else ColumnSource(path=_path_of(name))


def _read(text: str) -> Any:
    if text.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise QueryError(f"the option columns is no JSON: {error}") from error
    return [part for part in split_paths(text) if part]


def _listed(item: Any) -> ColumnRequest:
    if isinstance(item, Mapping):
        if "name" not in item:
            raise QueryError(f"a column has a name: {item!r}")
        return ColumnRequest(str(item["name"]), _from_form(item), str(item.get("type") or ""))
    if isinstance(item, str):
        return ColumnRequest("record" if item == WHOLE else item, _source_at(item))
    path = _path_of(item)
    return ColumnRequest(_name_of(path), ColumnSource(path=path))


def _named(name: str, what: Any) -> ColumnRequest:
    if isinstance(what, tuple) and len(what) == 2:
        return ColumnRequest(name, _source_at(what[0]), str(what[1]))
    return ColumnRequest(name, _source_at(what))


def _source_at(path: Any) -> ColumnSource:
    if isinstance(path, str) and path in (*CORE, WHOLE):
        return ColumnSource(core=path)
    return ColumnSource(path=_path_of(path))


def _path_of(given: Any) -> Path:
    return single(parse_path(given), "a column")


def _name_of(path: Path) -> str:
    """Keys with dots between, as Spark's users write them; the metadata knows where one key ends."""
    return ".".join(map(str, path)) if path == keys_before(path) else format_path(path)


def _from_form(form: Mapping[str, Any]) -> ColumnSource:
    if form.get("core"):
        return ColumnSource(core=str(form["core"]))
    return ColumnSource(path=_path_of(form["path"]), unless_map=bool(form.get("unless_map")))


# --- inferred --------------------------------------------------------------------------------------------------------


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

    def columns(self, path: Path = ()) -> Iterable[tuple[Path, Seen]]:
        """The paths that become columns, and what the sample holds there."""
        if path and (self.kinds or not self.is_table):
            yield path, self
        if self.is_table:
            for key, below in self.below.items():
                yield from below.columns((*path, key))


def inferred(records: Iterable[Any], core: Sequence[str] = CORE, time: str = "double") -> list[ColumnRequest]:
    """The columns of records like these, behind those of `core`; `time` is the type of the declared time."""
    root = Seen()
    for record in records:
        if isinstance(record, dict):
            root.look(record)
    taken = {name.lower() for name in core}
    types = {**_CORE_TYPES, "timestamp": time}
    found = [ColumnRequest(name, ColumnSource(core=name), types[name]) for name in core]
    if not root.is_table:
        return [*found, ColumnRequest("record", ColumnSource(core=WHOLE), "string")]
    for path, seen in root.columns():
        name = _name_of(path)
        while name.lower() in taken:
            name += "_"
        taken.add(name.lower())
        found.append(ColumnRequest(name, ColumnSource(path=path, unless_map=seen.is_table), seen.type))
    return found


def typed(
    asked: Sequence[ColumnRequest], records: Iterable[Any], core: Sequence[str] = CORE, time: str = "double"
) -> list[ColumnRequest]:
    """The columns of `core`, then those that were asked for, with the types of the sample where they have none; `time`
    is the type of the declared time.
    """
    types = {**_CORE_TYPES, "timestamp": time}
    seen = {each.source.path: Seen() for each in asked if not each.type and not each.source.core}
    for record in records if seen else ():
        for path, found_there in seen.items():
            found_there.look(_field_of(record, path))
    names = {each.name for each in asked}
    found = [ColumnRequest(name, ColumnSource(core=name), types[name]) for name in core if name not in names]
    return found + [each if each.type else each._replace(type=_type_at(seen, each.source, types)) for each in asked]


def _type_at(seen: Mapping[Path, Seen], source: ColumnSource, types: Mapping[str, str]) -> str:
    if source.core:
        return types[source.core]
    there = seen[source.path]
    return "string" if there.is_map else there.type


def _field_of(record: Any, path: Path) -> Any:
    """The field of a record; None where there is none."""
    found = value_at(record, path)
    return None if found is UNDEFINED else found


def _is_name(key: Any) -> bool:
    """Whether a column can be called so: text that is UTF-8, where other bytes are surrogates."""
    return isinstance(key, str) and (key.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in key))


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
    return "other"  # an extension value, a map in an array
