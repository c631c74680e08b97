"""`db.fields`: the fields that records have, by name, for questions and for the Tab key; all of it from a sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.paths import ANY, Path, format_path
from jitdb.common.spelling import did_you_mean
from jitdb.common.values import value_at
from jitdb.display.shown import Shown
from jitdb.errors import JitdbError
from jitdb.operators.nodes.field import Field
from jitdb.operators.nodes.field_ref import PathLike, as_path
from jitdb.operators.summaries.fields import Fields, fields_of

if TYPE_CHECKING:
    from jitdb.display.parts import Display

_SAMPLE: Final = 200  # records: a person waits
_PAGE: Final = 1000  # records read at a time
_LONGEST: Final = 80  # characters of a value that is offered
_MOST: Final = 100  # values that are


def all_records(database: Any) -> Iterator[Any]:
    """Those of a database, in the order of its log."""
    for page in database.pages(limit=_PAGE, sort_by="arrival"):
        yield from page.data


class FieldNames(Shown):
    """The fields of a log. Called, it tells of them (how many records have which, with which values); each is there
    under its name, as a Field to ask with:

        db.fields.user.name == "ada"
        db.fields["log.level"] == "error"

    sample: gives so many records, from all over the log
    state:  what is another one once the log has changed
    every:  gives all of them
    """

    def __init__(
        self,
        sample: Callable[[int], list[Any]],
        state: Callable[[], Hashable],
        every: Callable[[], Iterable[Any]] = tuple,
    ) -> None:
        self._sample, self._state, self._every = sample, state, every
        self._held: tuple[Hashable, list[Any], Fields] | None = None

    def __call__(self, sample: int | None = 1000) -> Fields:
        """Which fields the records have: paths, kinds, how many have them, examples. Of a sample, of about so many
        records; None: of all, each of which is decoded.
        """
        return fields_of(self._every() if sample is None else self._sample(sample))

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
        return [value for (_, value), _ in counts.most_common(_MOST)]

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
        """For the Tab key, which is told of no error."""
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
            self._held = (state, records, fields_of(records))
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
