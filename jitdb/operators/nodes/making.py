"""The functions that make operations of what users write, which is checked here.

The second argument of gt, gte, lt and lte is the path of any field that holds numbers or times, or `declared_time` or
`declared_sequence`: what a record declares in the fields that the database was told of. In the words of the ancestor
these are `"timestamp"` and `"sequence"`; a field that is itself called so, at the top of the record, is written as a
tuple: `("timestamp",)`. Records without a number there are in none of the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, Never, ParamSpec, TypeAlias, Unpack

from jitdb.common.arguments import function
from jitdb.common.values import UNDEFINED
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.nodes.describe import not_an_operation
from jitdb.operators.nodes.field_ref import FieldKeywords, FieldLike, Options, PathLike, as_field, as_path, refuse_more
from jitdb.operators.nodes.instants import Instant
from jitdb.operators.nodes.literals import pack_positions, plain_bound, plain_value
from jitdb.operators.nodes.operations import (
    Absent,
    And,
    Compare,
    Comparison,
    Equal,
    Everything,
    Includes,
    Offsets,
    Operation,
    Or,
    Predicate,
    Seqs,
    StartsWith,
    TextMatch,
    TextOperator,
    combine,
)
from jitdb.operators.nodes.texts import MOST_FLOATING, expression, floating_size, steps_of

if TYPE_CHECKING:
    from datetime import date

P = ParamSpec("P")

#: What a field can be above or below of: a number; or a time, as text (RFC 3339), a datetime or a date.
Bound: TypeAlias = "float | str | date | Instant"


def equal(field: FieldLike, value: Any, *more: Never, **options: Unpack[FieldKeywords]) -> Operation:
    """The records whose field holds `value`. Numbers are equal when numerically equal; true is not 1.

    `field` is a path, or a function `(record, start) -> position` together with `index_type=`.
    Options: prefix, prefix_offset, use_map, index_all, index_type, version (see jitdb.operators.nodes.field_ref).

    >>> equal("value.content.type", "post")
    equal('value.content.type', 'post')
    >>> equal("value.content.root", "%abc", prefix=32, prefix_offset=1)
    equal('value.content.root', '%abc', prefix=32, prefix_offset=1)
    >>> equal("value.content.type", None) == absent("value.content.type")  # null is there
    False
    """
    refuse_more("equal", more)
    ref = as_field("equal", field, options)
    return Absent(ref) if value is UNDEFINED else Equal(ref, plain_value(value))


def includes(
    field: FieldLike, value: Any, pluck: PathLike | None = None, **options: Unpack[FieldKeywords]
) -> Operation:
    """The records whose field is an array with `value` in it, or is `value` itself.

    With `pluck`, a path inside each element: the array has an element whose field there holds `value`.

    >>> includes("value.content.recps", "@bob")
    includes('value.content.recps', '@bob')
    >>> includes("value.content.mentions", "%abc", pluck="link")
    includes('value.content.mentions', '%abc', pluck='link')
    """
    ref = as_field("includes", field, options)
    keys = None if pluck is None else as_path("pluck of includes", pluck)
    return Includes(ref, plain_value(value), keys)


def absent(field: FieldLike, *more: Never, **options: Unpack[FieldKeywords]) -> Operation:
    """The records without this field. A field that holds null is there: `equal(path, None)` finds it.

    >>> absent("value.content.root")
    absent('value.content.root')
    """
    refuse_more("absent", more)
    return Absent(as_field("absent", field, options))


def starts_with(path: PathLike, prefix: str | bytes, *, ignore_case: bool = False) -> Operation:
    """The records whose field is text (or, for a prefix of bytes, bytes) that begins with `prefix`.

    `ignore_case`: here and below, texts are compared as `str.casefold` has them.

    >>> starts_with("value.author", "@6CAx")
    starts_with('value.author', '@6CAx')
    """
    found = _text_match("starts_with", path, prefix, ignore_case, "text or bytes to begin with")
    return found if found.ignore_case else StartsWith(found.path, found.value)


def ends_with(path: PathLike, suffix: str | bytes, *, ignore_case: bool = False) -> Operation:
    """The records whose field is text (or bytes) that ends with `suffix`.

    >>> ends_with("file", ".png", ignore_case=True)
    ends_with('file', '.png', ignore_case=True)
    """
    return _text_match("ends_with", path, suffix, ignore_case, "text or bytes to end with")


def contains(path: PathLike, part: str | bytes, *, ignore_case: bool = False) -> Operation:
    """The records whose field is text (or bytes) that has `part` somewhere in it. Of arrays, see `includes`.

    >>> contains("message", "timeout")
    contains('message', 'timeout')
    """
    return _text_match("contains", path, part, ignore_case, "text or bytes to contain")


def like(path: PathLike, pattern: str, *, ignore_case: bool = False) -> Operation:
    """The records whose field is text that is like an SQL pattern: `%` stands for any characters, `_` for one; behind a
    backslash they are meant as such, as is a backslash.

    >>> like("name", "A%")
    like('name', 'A%')
    """
    return _text_match("like", path, pattern, ignore_case, "a pattern such as 'A%'")


def matches(path: PathLike, pattern: str, *, ignore_case: bool = False) -> Operation:
    """The records whose field is text in which the regular expression `pattern` is found, as RE2 has them: no pattern
    takes more time than is linear in the text. Needs `pip install 'jitdb[regex]'`.

    >>> matches("url", "^/api/v[0-9]+/")
    matches('url', '^/api/v[0-9]+/')
    """
    return _text_match("matches", path, pattern, ignore_case, "a regular expression")


def _text_match(op: TextOperator, path: PathLike, value: object, ignore_case: object, wanted: str) -> TextMatch:
    keys, plain = as_path(op, path), plain_value(value)
    is_bytes = isinstance(plain, bytes) and op not in ("like", "matches")
    if not isinstance(plain, str) and not is_bytes:
        raise QueryError(f"{op}() takes {wanted}, not {shown(value)}")
    if not isinstance(ignore_case, bool):
        raise QueryError(f"ignore_case is True or False, not {shown(ignore_case)}")
    if is_bytes and ignore_case:
        raise QueryError(f"bytes have no case: {op}() of bytes takes no ignore_case")
    if op == "matches":
        expression(plain, ignore_case)
    elif isinstance(plain, str):
        size = floating_size(steps_of(op, plain))
        if size > MOST_FLOATING:
            raise QueryError(f"{op}() looks for at most {MOST_FLOATING:,} characters anywhere, not {size:,}")
    return TextMatch(op, keys, plain, ignore_case)


def predicate(
    field: FieldLike,
    fn: Callable[[Any], object],
    name: str | None = None,
    *,
    version: int = 0,
    **options: Unpack[Options],
) -> Operation:
    """The records of whose field `fn(value)` is true. Records without the field are never asked about.

    The answers are kept in an index that is known by `name` (default: the function's own). Where the
    function changes, raise `version`, and the index is built anew.

    >>> def is_long(text):
    ...     return isinstance(text, str) and len(text) > 1000
    >>> predicate("value.content.text", is_long)
    predicate('value.content.text', is_long)
    >>> predicate("value.content.text", lambda text: len(text) > 1000)
    Traceback (most recent call last):
        ...
    jitdb.errors.QueryError: the index of a predicate is known by its name; give name='...' or a named function
    """
    ref = as_field("predicate", field, options)
    function("predicate() takes a function of the field's value", fn, 1)
    if name is None:
        name = getattr(fn, "__name__", "")
        if name == "<lambda>" or not name:
            raise QueryError(
                "the index of a predicate is known by its name", remedy="give name='...' or a named function"
            )
    if not isinstance(name, str) or not name:
        raise QueryError(f"the name of a predicate is a string that is not empty, not {shown(name)}")
    if type(version) is not int or not 0 <= version < 1 << 63:
        raise QueryError(f"the version of a predicate is an integer from 0 to 2**63 - 1, not {shown(version)}")
    return Predicate(ref, fn, name, version)


def _of_path(make: Callable[Concatenate[FieldLike, P], Operation]) -> Callable[Concatenate[PathLike, P], Operation]:
    """The same with a path alone, as the JavaScript module has it; compiled here, and no longer slow."""

    @wraps(make)
    def of_path(path: PathLike, /, *arguments: P.args, **options: P.kwargs) -> Operation:
        return make(as_path(f"slow_{make.__name__}", path), *arguments, **options)

    return of_path


slow_equal = _of_path(equal)
slow_includes = _of_path(includes)
slow_absent = _of_path(absent)
slow_predicate = _of_path(predicate)

DERIVED_INDEXES: Final = ("timestamp", "sequence")


class Declared:
    """A number that records declare, to be compared. Not a field: the database says which fields it is taken from.

    >>> (declared_time >= 1_600_000_000_000) & (declared_sequence < 10)
    and_(gte(1600000000000, 'timestamp'), lt(10, 'sequence'))
    """

    __slots__ = ("index", "name")

    def __init__(self, name: str, index: str) -> None:
        self.name = name
        self.index = index

    def __lt__(self, value: Bound) -> Operation:
        return _compare("lt", value, self)

    def __le__(self, value: Bound) -> Operation:
        return _compare("lte", value, self)

    def __gt__(self, value: Bound) -> Operation:
        return _compare("gt", value, self)

    def __ge__(self, value: Bound) -> Operation:
        return _compare("gte", value, self)

    def __repr__(self) -> str:
        return self.name


#: When a record was made: the field(s) that the database knows as `timestamp`, the earliest time in them.
declared_time: Final = Declared("declared_time", "timestamp")

#: Which record of its author it is: the field that the database knows as `sequence`.
declared_sequence: Final = Declared("declared_sequence", "sequence")


def gt(value: Bound, index: PathLike | Declared) -> Operation:
    """The records whose number, or time, is above `value`.

    >>> gt(1_600_000_000_000, "timestamp")
    gt(1600000000000, 'timestamp')
    """
    return _compare("gt", value, index)


def gte(value: Bound, index: PathLike | Declared) -> Operation:
    """The records whose number, or time, is `value` or above.

    >>> gte(10, "sequence")
    gte(10, 'sequence')
    """
    return _compare("gte", value, index)


def lt(value: Bound, index: PathLike | Declared) -> Operation:
    """The records whose number, or time, is below `value`.

    >>> lt(0, "value.content.vote.value")
    lt(0, 'value.content.vote.value')
    """
    return _compare("lt", value, index)


def lte(value: Bound, index: PathLike | Declared) -> Operation:
    """The records whose number, or time, is `value` or below.

    >>> lte(1.5, ("timestamp",))
    lte(1.5, ('timestamp',))
    """
    return _compare("lte", value, index)


def _compare(op: Comparison, value: object, index: object) -> Operation:
    if isinstance(value, str) and isinstance(index, (int, float)):
        raise QueryError(f"the number comes first, then the index: {op}({shown(index)}, {shown(value)})")
    bound = plain_bound(value)
    name = index.index if isinstance(index, Declared) else index
    if isinstance(name, str) and name in DERIVED_INDEXES:
        if name == "sequence" and isinstance(bound, Instant):
            raise QueryError(f"a sequence is a number, and {bound!r} a time")
        return Compare(op, name, bound)
    return Compare(op, as_path(op, name), bound)


def seqs(values: Iterable[int]) -> Operation:
    """The records with these ordinals (0-based, deleted ones counted). Order and repeats mean nothing.

    Any iterable of integers will do: a list, a NumPy array, a bitmap. None is no record at all.

    >>> seqs([11, 13, 17])
    seqs([11, 13, 17])
    >>> seqs([1, 1, 2]) == seqs([2, 1])
    True
    """
    return Seqs(pack_positions("seqs", values))


def offsets(values: Iterable[int]) -> Operation:
    """The records that begin at these bytes of the log. Seqs are faster: they need no look-up.

    >>> offsets([0, 341])
    offsets([0, 341])
    """
    return Offsets(pack_positions("offsets", values))


def and_(*operations: Operation | None) -> Operation:
    """The records of which all `operations` are true. None stands for a condition left out.

    >>> from jitdb.operators import equal, gt
    >>> and_(equal("value.content.type", "vote"), gt(10, "sequence"))
    and_(equal('value.content.type', 'vote'), gt(10, 'sequence'))
    >>> and_(equal("value.content.type", "vote"), None)
    equal('value.content.type', 'vote')
    """
    given = tuple(operation for operation in operations if operation is not None)
    if given:
        return combine(And, given)
    if operations:
        return Everything()
    raise QueryError("and_() needs at least one operation", remedy="for all records write everything()")


def or_(*operations: Operation | None) -> Operation:
    """The records of which at least one of `operations` is true. None stands for a condition left out.

    >>> from jitdb.operators import equal
    >>> or_(equal("value.author", "@alice"), equal("value.author", "@bob"))
    or_(equal('value.author', '@alice'), equal('value.author', '@bob'))
    """
    given = tuple(operation for operation in operations if operation is not None)
    if given:
        return combine(Or, given)
    raise QueryError(
        "or_() needs at least one operation", remedy="for no records write not_(everything()), for all everything()"
    )


def not_(operation: Operation) -> Operation:
    """The live records of which `operation` is not true, those without its field among them.

    >>> from jitdb.operators import equal
    >>> not_(equal("value.content.type", "post"))
    not_(equal('value.content.type', 'post'))
    """
    if not isinstance(operation, Operation):
        raise QueryError(f"not_() takes one operation, and {not_an_operation(operation)}")
    return ~operation


def everything() -> Operation:
    """Every live record.

    >>> everything()
    everything()
    """
    return Everything()
