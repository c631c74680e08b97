"""Which fields records have, by a sample of them: `db.fields`, for questions and for the Tab key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.common.paths import ANY, Path, format_path
from jitdb.common.spelling import did_you_mean
from jitdb.common.values import ABSENT, ARRAY, KIND_NAMES, MAP, kind_of, value_at, value_key
from jitdb.common.words import counted
from jitdb.display.cells import cell
from jitdb.display.sheet import Sheet
from jitdb.display.shown import Shown
from jitdb.errors import JitdbError
from jitdb.operators.nodes.field import Field
from jitdb.operators.nodes.field_ref import PathLike, as_path
from jitdb.operators.summaries.summary import Listed

if TYPE_CHECKING:
    from jitdb.display.parts import Display

_DEPTH: Final = 8  # keys in a path
_MOST: Final = 10_000  # fields: records with ids for keys have no end of them
_LOOKED_AT: Final = 20_000  # fields, again and again: as above
_ELEMENTS: Final = 100  # of an array, that are looked at
_EXAMPLES: Final = 3
_EXAMPLE: Final = 30  # characters of one
_NAMES: Final = {2: "boolean", 3: "boolean"}  # false and true are one to people
_SAMPLE: Final = 200  # records: a person waits
_PAGE: Final = 1000  # records read at a time
_LONGEST: Final = 80  # characters of a value that is offered
_OFFERED: Final = 100  # values that are


class Logs(NamedTuple):
    """Of how many logs records were looked at, and how many there are; whether as many of each, however many it has."""

    sampled: int
    every: int
    evenly: bool = False


ONE: Final = Logs(1, 1)


class FieldSeen(NamedTuple):
    """A field of some of the records.

    kinds:    how many values of which kind there are, the most frequent first: of elements (`tags[]`) many a record
    examples: some of the values, but maps
    """

    path: Path
    count: int  # type: ignore[assignment]  # records that have it
    kinds: Mapping[str, int]
    examples: tuple[Any, ...]


class Fields(Listed[FieldSeen]):
    """The fields of `total` records that were looked at, of so many `logs`, to be gone through.

    >>> [(field.path, field.count) for field in fields_of([{"a": 1}, {"a": "x", "b": {"c": None}}])]
    [(('a',), 2), (('b',), 1), (('b', 'c'), 1)]
    """

    __slots__ = __match_args__ = ("rows", "total", "logs")

    logs: Logs

    def sheet(self) -> Sheet:
        rows = [
            [format_path(field.path), ", ".join(field.kinds), field.count / self.total, _examples_text(field.examples)]
            for field in self
        ]
        records, (some, every, evenly) = counted(self.total, "record", "records"), self.logs
        of_logs = "" if every == 1 else f" of {counted(some, 'log', 'logs')}{f' of {every:,}' if some < every else ''}"
        footer = f"{records}{of_logs} looked at{', as many of each: shares are of these' if evenly else ''}"
        return Sheet(["field", "kinds", "share", "examples"], rows, None, {"total": self.total}, footer)

    def plain_sheet(self) -> Sheet:
        """With the number of values of each kind, and the examples as they are."""
        rows = [
            [format_path(field.path), dict(field.kinds), field.count / self.total, list(field.examples)]
            for field in self
        ]
        return self.sheet()._replace(rows=rows)


def _examples_text(examples: Sequence[Any]) -> str:
    """Some values in one line."""
    shown = map(cell, examples)
    return ", ".join(text if len(text) <= _EXAMPLE else text[: _EXAMPLE - 1] + "…" for text in shown)


class _Seen:
    def __init__(self) -> None:
        self.records = 0
        self.latest = -1  # record that has it
        self.kinds: dict[str, int] = {}
        self.examples: dict[bytes, Any] = {}

    def take(self, record: int, value: Any, kind: int) -> None:
        self.records += record != self.latest
        self.latest = record
        name = _NAMES.get(kind, KIND_NAMES[kind])
        self.kinds[name] = self.kinds.get(name, 0) + 1
        if kind != MAP and len(self.examples) < _EXAMPLES:
            self.examples.setdefault(value_key(value), value)


def fields_of(records: Iterable[Any], logs: Logs = ONE) -> Fields:
    """Those of these records, of so many logs."""
    seen: dict[Path, _Seen] = {}
    total = 0
    for record in records:
        for path, value, kind in walk(record):
            if path in seen or len(seen) < _MOST:
                seen.setdefault(path, _Seen()).take(total, value, kind)
        total += 1
    rows = []
    for path, found in seen.items():
        kinds = dict(sorted(found.kinds.items(), key=lambda pair: -pair[1]))
        rows.append(FieldSeen(path, found.records, kinds, tuple(found.examples.values())))
    return Fields(tuple(rows), total, logs)


def walk(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any, int]]:
    """The fields in a value, each with what it holds and the kind of that."""
    kind = kind_of(value)
    if path and kind != ABSENT:
        yield path, value, kind
    if kind == MAP and len(path) < _DEPTH:
        for key, item in value.items():
            if isinstance(key, str):
                yield from walk(item, (*path, key))
    elif kind == ARRAY and path and len(path) < _DEPTH:
        for item in value[:_ELEMENTS]:
            yield from walk(item, (*path, ANY))


def fields_in(records: Iterable[Any]) -> dict[Path, Any]:
    """The paths in these records, in the order in which they come, and the first value of each."""
    found: dict[Path, Any] = {}
    for path, value, _ in islice((each for record in records for each in walk(record)), _LOOKED_AT):
        found.setdefault(path, value)
    return found


def all_records(database: Any) -> Iterator[Any]:
    """Those of a database, in the order of its log."""
    for page in database.pages(limit=_PAGE, sort_by="arrival"):
        yield from page.data


class FieldNames(Shown):
    """The fields of a log. A call describes them (how many records have which, with which values); each is an attribute
    of its name, as a Field to ask with:

        db.fields.user.name == "ada"
        db.fields["log.level"] == "error"

    sample: gives so many records, from all over the log
    state:  what is another one once the log has changed
    every:  gives all of them
    logs:   of how many logs these are, of a sample of so many records or, None, of all
    """

    def __init__(
        self,
        sample: Callable[[int], list[Any]],
        state: Callable[[], Hashable],
        every: Callable[[], Iterable[Any]] = tuple,
        logs: Callable[[int | None], Logs] = lambda _: ONE,
    ) -> None:
        self._sample, self._state, self._every, self._logs = sample, state, every, logs
        self._held: tuple[Hashable, list[Any], Fields] | None = None

    def __call__(self, sample: int | None = 1000) -> Fields:
        """Which fields the records have: paths, kinds, how many have them, examples. Of a sample, of about so many
        records; None: of all, each of which is decoded.
        """
        records = self._every() if sample is None else self._sample(sample)
        return fields_of(records, self._logs(sample))

    def names(self) -> list[str]:
        """The paths of the fields that some records have."""
        return [format_path(field.path) for field in self._known()[1]]

    def values(self, path: PathLike) -> list[Any]:
        """Some values of the field: text that is short, numbers, true and false, those first that many records have."""
        keys = as_path("values", path)
        counts: Counter[tuple[type, Any]] = Counter()
        for record in self._known()[0]:
            value = value_at(record, keys)
            for each in value if isinstance(value, list) and ANY in keys else [value]:
                if isinstance(each, (str, int, float)) and len(str(each)[: _LONGEST + 1]) <= _LONGEST:
                    counts[type(each), each] += 1
        return [value for (_, value), _ in counts.most_common(_OFFERED)]

    def keys_in(self, path: Path) -> list[str]:
        """The keys that stand at this place in some records."""
        below = (field.path for field in self._known()[1] if len(field.path) == len(path) + 1)
        return [str(found[-1]) for found in below if found[:-1] == path and isinstance(found[-1], str)]

    def __getitem__(self, path: PathLike) -> NamedField:
        return NamedField(as_path("fields", path), self)

    def __getattr__(self, name: str) -> NamedField:
        if name.startswith("_"):
            raise AttributeError(name)
        return _inside(self, (), name, f"no record of a sample has a field {name!r}: db.fields[{name!r}] asks anyway")

    def __dir__(self) -> Iterator[str]:
        yield from ("names", "values")
        yield from filter(str.isidentifier, self._keys_there(()))

    def _ipython_key_completions_(self) -> list[str]:
        with suppress(JitdbError, OSError):
            return self.names()
        return []

    def _keys_there(self, path: Path) -> list[str]:
        """For the Tab key: completion never raises."""
        with suppress(JitdbError, OSError):
            return self.keys_in(path)
        return []

    def __repr__(self) -> str:
        return str(self)

    def _display(self) -> Display:
        return self._known()[1]._display()

    def _known(self) -> tuple[list[Any], Fields]:
        state = self._state()
        if self._held is None or self._held[0] != state:
            records = self._sample(_SAMPLE)
            self._held = (state, records, fields_of(records, self._logs(_SAMPLE)))
        return self._held[1:]


class NamedField(Field):
    """A field that knows which fields are inside it."""

    __slots__ = ("_names",)
    _names: FieldNames

    def __init__(self, path: Path, names: FieldNames) -> None:
        super().__init__(path)
        self._names = names

    def __getitem__(self, step: str | int | slice) -> NamedField:
        return NamedField(super().__getitem__(step).path, self._names)

    def __getattr__(self, name: str) -> NamedField:  # type: ignore[override]
        if name.startswith("_"):
            raise AttributeError(name)
        return _inside(self._names, self.path, name, f"no record of a sample has {format_path((*self.path, name))!r}")

    def __dir__(self) -> Iterator[str]:
        yield from (name for name in super().__dir__() if not name.startswith("_"))
        yield from filter(str.isidentifier, self._names._keys_there(self.path))

    def _ipython_key_completions_(self) -> list[str]:
        return self._names._keys_there(self.path)


def _inside(names: FieldNames, path: Path, name: str, otherwise: str) -> NamedField:
    """The field of this name there. Raises AttributeError where no record of the sample has it."""
    there = names.keys_in(path)
    if name in there:
        return NamedField((*path, name), names)
    meant = did_you_mean(name, there)
    raise AttributeError(f"{otherwise}; {meant}" if meant else otherwise, name=name)
