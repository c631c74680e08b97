"""Which fields are worth counting, by a sample of records: those whose values repeat, and those of numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from jitdb.common.paths import CASTS, Path, before_cast
from jitdb.common.values import ARRAY, MAP, number_of, value_key
from jitdb.operators.nodes.field_ref import PathLike, as_path
from jitdb.operators.summaries.fields import walk
from jitdb.operators.summaries.summary import S, Summary

if TYPE_CHECKING:
    from jitdb.operators.nodes.operation import Operation

SAMPLE: Final = 1000  # records
_MOST: Final = 100  # fields: those that most records have
_FEW: Final = 20  # numbers: as many different ones are values like any others
_ENOUGH: Final = 50  # values of a sample that say something of all
_PAIRS: Final = 5  # of equal values in a thousand: then there are about 100,000 different ones
_NUMBERS: Final = 0.9  # of a field's values, that are numbers
#: Fields with numbers that are names of things: of them, values say more than sizes.
_NAMES: Final = re.compile(r"(?i:(?:^|[._-])(?:id|pid|tid|uid|gid|port|code|status|line|version))$|[a-z](?:Id|ID)$")


class FacetFields(NamedTuple):
    """Fields of records.

    values:  those whose values are counted; of messages, their patterns are
    numbers: those that have many numbers, which are measured
    unique:  those of which hardly two records have the same value: neither
    order:   those of values and of numbers, as records have them
    """

    values: tuple[Path, ...] = ()
    numbers: tuple[Path, ...] = ()
    unique: tuple[Path, ...] = ()
    order: tuple[Path, ...] = ()

    @property
    def plain(self) -> frozenset[Path]:
        """All of them, without what is made of their values."""
        return frozenset(map(before_cast, (*self.order, *self.unique)))

    def with_more(self, others: FacetFields) -> FacetFields:
        """With those of the others that are not among them."""
        more = others.without(self.plain)
        return FacetFields(*(own + other for own, other in zip(self, more, strict=True)))

    def without(self, paths: Collection[Path]) -> FacetFields:
        """Those that look into none of these."""
        return FacetFields(*(tuple(path for path in some if before_cast(path) not in paths) for some in self))


def facet_fields(
    records: Iterable[Any],
    is_time: Callable[[Path, Any], bool] = lambda *_: False,
    known: Collection[Path] = (),
) -> FacetFields:
    """Those of these records.

    is_time: whether a value of a field is a time, which is none of these
    known:   fields that are left out, because it is known what they are

    >>> facet_fields([{"level": "info", "ms": n / 7, "id": f"{n:x}"} for n in range(200)])
    FacetFields(values=(('level',),), numbers=(('ms',),), unique=(('id',),), order=(('level',), ('ms',)))
    """
    values: dict[Path, Counter[bytes]] = {}
    numbers: Counter[Path] = Counter()
    for record in records:
        for path, value, kind in walk(record):
            if kind not in (MAP, ARRAY) and path not in known and not is_time(path, value):
                values.setdefault(path, Counter())[value_key(value)] += 1
                numbers[path] += number_of(value) is not None
    most = set(sorted(values, key=lambda path: -values[path].total())[:_MOST])
    kinds: dict[Path, str] = {}
    for path, of_field in values.items():
        holds = _kind_of(path, of_field, numbers[path])
        if path in most:
            kinds |= {path: holds} if holds != "messages" else {(*path, CASTS["pattern"]): "values"}
    of_values, of_numbers, unique = (
        tuple(path for path in kinds if kinds[path] == kind) for kind in ("values", "numbers", "unique")
    )
    return FacetFields(of_values, of_numbers, unique, tuple(path for path in kinds if kinds[path] != "unique"))


def _kind_of(path: Path, counts: Counter[bytes], numbers: int) -> str:
    total = counts.total()
    is_name = isinstance(path[-1], str) and _NAMES.search(path[-1]) is not None
    if numbers >= _NUMBERS * total and len(counts) > _FEW and not is_name:
        return "numbers"
    if total < _ENOUGH:
        return "values"
    pairs = sum(count * (count - 1) // 2 for count in counts.values())
    singles = [key for key, count in counts.items() if count == 1]
    if 2 * len(singles) > total and 2 * sum(key.count(b" ") > 1 for key in singles) > len(singles):
        return "messages"
    return "unique" if pairs < _PAIRS * (total / SAMPLE) ** 2 else "values"


# --- what is asked of them -------------------------------------------------------------------------------------------


class Database(Protocol):
    """What a summary asks of a database beforehand."""

    def facet_fields(self, where: Operation) -> FacetFields:
        """The fields worth counting, of records that match among others."""

    def condition(self, where: Operation) -> Operation:
        """The condition with what its tasks give."""


class OfFields(Summary[S]):
    """What is asked of many fields at once. `fields`: these; None: those worth it, until ready() says which."""

    __slots__ = ()

    fields: FacetFields | tuple[Path, ...] | None

    @property
    def named(self) -> tuple[Path, ...]:
        return () if self.fields is None or isinstance(self.fields, FacetFields) else self.fields

    @property
    def known(self) -> FacetFields:
        assert isinstance(self.fields, FacetFields)
        return self.fields

    @property
    def values_of(self) -> tuple[Path, ...]:
        return self.known.values

    @property
    def columns(self) -> tuple[Path, ...]:
        return self.known.numbers


def named_fields(name: str, fields: Sequence[PathLike] | FacetFields | None) -> Any:
    """The paths of these fields. Raises QueryError."""
    if fields is None or isinstance(fields, FacetFields):
        return fields
    return tuple(as_path(name, field) for field in fields)


def chosen_fields(
    database: Database, fields: FacetFields | Sequence[Path] | None, where: Operation
) -> FacetFields:  # fmt: skip
    """The fields that are worth it of records that match; of some named ones, how each is looked at."""
    if isinstance(fields, FacetFields):
        return fields
    known = database.facet_fields(where)
    if fields is None:
        return known
    return FacetFields(
        tuple(path for path in fields if path not in known.numbers),
        tuple(path for path in fields if path in known.numbers),
        (),
        tuple(fields),
    )
