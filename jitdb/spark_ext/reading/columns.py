"""What the columns of a table are: which field of a record each one holds, or what else of it.

    seq, offset    the record's ordinal and where it lies in the log
    timestamp      the smallest number in the fields that say when it was made, as in the declared order
    *              the whole record
    a path         that field

In a table's schema, a column says its field in its metadata, `{"jitdb": {"path": […]}}`. One without is a column of the
option `columns`, one of the three above, or else its name is the path.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from jitdb.common.paths import Path, parse_path
from jitdb.errors import QueryError

CORE: Final = ("seq", "offset", "timestamp")
WHOLE: Final = "*"
METADATA: Final = "jitdb"


class Source(NamedTuple):
    """What a column holds: one of CORE, WHOLE, or the field at `path` (then `core` is empty)."""

    core: str = ""
    path: Path = ()
    unless_map: bool = False  # null where the field holds a map, whose fields have columns of their own

    def metadata(self) -> dict[str, Any]:
        """How a schema says it."""
        if self.core:
            return {METADATA: {"core": self.core}}
        return {METADATA: {"path": list(self.path), **({"unless_map": True} if self.unless_map else {})}}


class Asked(NamedTuple):
    """A column that was asked for. `type` is one of Spark's, in its own words; empty: found by looking."""

    name: str
    source: Source
    type: str = ""


def asked_columns(columns: str | Sequence[Any] | Mapping[str, Any] | None) -> list[Asked] | None:
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
        return [_from_form(item) for item in columns]
    raise QueryError(f"columns are a list of paths, or a map of names to paths, not {columns!r}")


def to_form(asked: Sequence[Asked]) -> str:
    """The option's text for these columns."""
    return json.dumps([{"name": each.name, "type": each.type, **each.source.metadata()[METADATA]} for each in asked])


def source_of(name: str, metadata: Mapping[str, Any] | None, asked: Sequence[Asked] | None) -> Source:
    """What a column of a schema holds."""
    form = (metadata or {}).get(METADATA)
    if isinstance(form, Mapping):
        return _source(form)
    for each in asked or ():
        if each.name == name:
            return each.source
    return Source(core=name) if name in CORE else Source(path=parse_path(name))


def _read(text: str) -> Any:
    if text.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except ValueError as error:
            raise QueryError(f"the option columns is no JSON: {error}") from error
    return [part.strip() for part in text.split(",") if part.strip()]


def _from_form(item: Any) -> Asked:
    if isinstance(item, Mapping):
        if "name" not in item:
            raise QueryError(f"a column has a name: {item!r}")
        return Asked(str(item["name"]), _source(item), str(item.get("type") or ""))
    if isinstance(item, str):
        return Asked("record" if item == WHOLE else item, _at(item))
    path = parse_path(item)
    return Asked(".".join(path), Source(path=path))


def _named(name: str, what: Any) -> Asked:
    if isinstance(what, str):
        return Asked(name, _at(what))
    if isinstance(what, tuple) and len(what) == 2:
        path, kind = what
        return Asked(name, _at(path), str(kind))
    return Asked(name, _at(what))


def _at(path: Any) -> Source:
    if path == WHOLE:
        return Source(core=WHOLE)
    if isinstance(path, str) and path in CORE:
        return Source(core=path)
    return Source(path=parse_path(path))


def _source(form: Mapping[str, Any]) -> Source:
    if form.get("core"):
        return Source(core=str(form["core"]))
    return Source(path=parse_path(form["path"]), unless_map=bool(form.get("unless_map")))
