"""Which field an operator looks at, a path or a function that finds the position in the record's bytes; and how the
index of that field shall be kept. Saying nothing lets jitdb choose.


| option          | values       | meaning                                                                |
| --------------- | ------------ | ---------------------------------------------------------------------- |
| `prefix`        | True or 32   | keep the first 32 bits of the field of every record                    |
|                 | False        | keep bitmaps, however many values there are                            |
| `prefix_offset` | bytes, 0 up  | where the 32 bits begin (past a common `%` or `@`); implies `prefix`   |
| `use_map`       | True, False  | the prefixes inverted, for sparse fields; implies `prefix`             |
| `index_all`     | True, False  | bitmaps of all values of the field in one pass                         |
| `index_type`    | a name       | a separate index of that name; needed where the field is a function    |
| `version`       | 0 and up     | of that function: raise it where the function changes, and the index   |
|                 |              | is built anew (`predicate` has a `version` of its own)                 |

Two option sets that differ never share an index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Final, TypeAlias, TypedDict

from jitdb.common.arguments import function
from jitdb.common.immutable import Immutable
from jitdb.common.paths import Path, Step, parse_path, single
from jitdb.common.spelling import did_you_mean
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.indexes.spec import Form, IndexSpec
from jitdb.operators.nodes.literals import function_name

PREFIX_BITS: Final = 32


class Options(TypedDict, total=False):
    """The keywords that `equal`, `includes`, `predicate` and `absent` take, and those that take a path alone."""

    prefix: bool | int | None
    prefix_offset: int
    use_map: bool
    index_all: bool
    index_type: str | None


class FieldKeywords(Options, total=False):
    """The same for those where a function may find the field."""

    version: int


def _checked_prefix(prefix: Any) -> int | None:
    # `1 == True` and `0 == False`: compare by identity, so that prefix=1 is not taken for prefix=True.
    if prefix is None or prefix is False or (type(prefix) is int and prefix == 0):
        return None if prefix is None else 0
    if prefix is True or (type(prefix) is int and prefix == PREFIX_BITS):
        return PREFIX_BITS
    raise QueryError(f"prefix is True, False or 32 (bits), not {shown(prefix)}")


class FieldOptions(Immutable):
    """Checked options. `prefix` is 32 (a prefix index), 0 (bitmaps) or None (jitdb chooses).

    >>> FieldOptions(prefix=True) == FieldOptions(prefix=32)
    True
    >>> FieldOptions(use_map=True).prefix, FieldOptions(prefix=False).prefix, FieldOptions().prefix
    (32, 0, None)
    """

    __slots__ = __match_args__ = ("prefix", "prefix_offset", "use_map", "index_all", "index_type", "version")

    prefix: int | None
    prefix_offset: int
    use_map: bool
    index_all: bool
    index_type: str | None
    version: int

    def __init__(
        self,
        prefix: int | None = None,
        prefix_offset: int = 0,
        use_map: bool = False,
        index_all: bool = False,
        index_type: str | None = None,
        version: int = 0,
    ) -> None:
        self._keep(prefix, prefix_offset, use_map, index_all, index_type, version)
        object.__setattr__(self, "prefix", self._checked())

    def _checked(self) -> int | None:
        """Raise QueryError where they do not go together; gives `prefix`."""
        prefix = _checked_prefix(self.prefix)
        offset = self.prefix_offset
        if type(offset) is not int or offset < 0:
            raise QueryError(f"prefix_offset is a number of bytes, 0 or more, not {shown(offset)}")
        if offset >= 1 << 31:
            raise QueryError(f"prefix_offset is at most 2**31 - 1 bytes, not {shown(offset)}")
        for name in ("use_map", "index_all"):
            if not isinstance(getattr(self, name), bool):
                raise QueryError(f"{name} is True or False, not {shown(getattr(self, name))}")
        if self.index_type is not None and (not isinstance(self.index_type, str) or not self.index_type):
            raise QueryError(f"index_type is the name of an index, such as 'author', not {shown(self.index_type)}")
        if type(self.version) is not int or not 0 <= self.version < 1 << 63:
            raise QueryError(f"version is an integer from 0 to 2**63 - 1, not {shown(self.version)}")
        if self.version and self.index_type is None:
            raise QueryError("version is that of the function that index_type stands for: a path needs none")

        wants_prefix = "use_map=True" if self.use_map else f"prefix_offset={offset}" if offset else ""
        if wants_prefix and prefix == 0:
            raise QueryError(f"{wants_prefix} is about a prefix index, but prefix={self.prefix!r} rules one out")
        if wants_prefix:
            prefix = PREFIX_BITS
        if self.index_all and prefix:
            raise QueryError(
                "index_all=True asks for bitmaps of all values, and "
                f"{wants_prefix or 'prefix=' + repr(self.prefix)} for a prefix index, which has all "
                "values in it already",
                remedy="leave one of them out",
            )
        return prefix

    def given(self) -> dict[str, Any]:
        """What differs from the defaults, as keywords that make the same options again.

        >>> FieldOptions(prefix_offset=1).given()
        {'prefix': 32, 'prefix_offset': 1}
        """
        if self is DEFAULT_OPTIONS:
            return {}
        values = {name: getattr(self, name) for name in OPTION_NAMES}
        return {name: value for name, value in values.items() if value != getattr(DEFAULT_OPTIONS, name)}

    @property
    def identity(self) -> tuple[Any, ...]:
        """A hashable stand-in, different for every two option sets that differ."""
        return self._parts()


DEFAULT_OPTIONS: Final = FieldOptions()
OPTION_NAMES: Final = FieldOptions.__match_args__


# Keywords that only one operator takes: suggested like the others where they are misspelt.
_OWN_KEYWORDS: Final = {"includes": ("pluck",), "predicate": ("name",)}


def refuse_more(caller: str, more: tuple[object, ...]) -> None:
    """Complain of arguments behind those that the operator `caller` takes."""
    if more:
        raise QueryError(f"{caller}() takes options as keywords, as in prefix=32, not {shown(more[0])}")


def make_options(caller: str, options: dict[str, Any]) -> FieldOptions:
    """The keywords given to the operator `caller`, checked.

    >>> make_options("equal", {"useMap": True})
    Traceback (most recent call last):
        ...
    jitdb.errors.QueryError: equal() has no option 'useMap'; did you mean use_map?
    """
    if not options:
        return DEFAULT_OPTIONS
    for name in options:
        if name not in OPTION_NAMES:
            raise QueryError(f"{caller}() has no option {shown(name)}", remedy=_suggest(caller, name))
    return FieldOptions(**options)


def _suggest(caller: str, name: str) -> str:
    snake = "".join("_" + char.lower() if char.isupper() else char for char in name).strip("_")
    names = (*_OWN_KEYWORDS.get(caller, ()), *OPTION_NAMES)
    return did_you_mean(snake, names, f"the options are {', '.join(names)}")


PathLike: TypeAlias = str | Sequence[Step]

#: A function `(record, start) -> position` of a field's value in the record's bytes; None or -1 when absent.
Seek: TypeAlias = Callable[[bytes, int], int | None]

FieldLike: TypeAlias = PathLike | Seek


class FieldRef(Immutable):
    """A field, at a `path` or where the function `seek` points, and how its index shall be kept."""

    __slots__ = ("identity", "options", "path", "seek", "spec")
    __match_args__ = ("path", "options", "seek")

    path: Path | None
    options: FieldOptions
    seek: Seek | None
    identity: ClassVar[Any]  # of each: which field, with the options; a function is known by its `index_type`
    spec: ClassVar[IndexSpec]  # of each: the index of its values

    def __init__(self, path: Path | None, options: FieldOptions, seek: Seek | None) -> None:
        self._keep(path, options, seek)
        object.__setattr__(self, "identity", (path, options.identity))
        object.__setattr__(self, "spec", spec_of(path, options))

    @property
    def paths(self) -> tuple[Path, ...]:
        """The path, if it is not found by a function."""
        return () if self.path is None else (self.path,)


def spec_of(path: Path | None, options: FieldOptions, elements: bool = False, pluck: Path = ()) -> IndexSpec:
    """The index of a field's values, or of the values of its elements."""
    paths = () if path is None else (path,)
    spec = IndexSpec("auto", paths, options.index_type, elements, pluck, version=options.version)
    if options.prefix is None and not options.index_all:
        return spec
    if not options.prefix:
        return spec._replace(form="bitmap")
    # A prefix index has one entry a record: where a record may own more, it is a map.
    form: Form = "prefix_map" if options.use_map or spec.is_owned else "prefix"
    return spec._replace(form=form, prefix_offset=options.prefix_offset)


# Programs ask about few fields, many times. The bound keeps one that makes paths up from growing forever.
_parse = lru_cache(maxsize=4096)(parse_path)


@lru_cache(maxsize=4096)
def _plain_field(path: PathLike) -> FieldRef:
    return FieldRef(parse_path(path), DEFAULT_OPTIONS, None)


def as_path(caller: str, path: PathLike | object) -> Path:
    """The steps of a path.

    >>> as_path("gt", "value.sequence")
    ('value', 'sequence')
    """
    if isinstance(path, str):
        return _parse(path)
    if isinstance(path, (tuple, list)):
        return parse_path(path)
    if callable(path):
        raise QueryError(
            f"{caller}() takes a path such as 'value.content.type', not the function {function_name(path)}"
        )
    raise QueryError(f"{caller}() takes a path such as 'value.content.type', not {shown(path)}")


def as_single_path(caller: str, path: PathLike | object) -> Path:
    """The steps of a path that leads to one value of a record at most."""
    return single(as_path(caller, path), f"a field of {caller}()")


def as_field(caller: str, field: FieldLike, options: Any) -> FieldRef:
    """The path or the function, with the options, checked."""
    if not options and (type(field) is str or (type(field) is tuple and all(type(step) is str for step in field))):
        return _plain_field(field)
    checked = make_options(caller, options)
    if isinstance(field, str) or not callable(field):
        return FieldRef(as_path(caller, field), checked, None)
    if checked.index_type is None:
        raise QueryError(
            f"{caller}() looks where the function {function_name(field)} points, and an index needs a name",
            remedy="give index_type='...' (a path such as 'value.content.type' needs none, and is faster)",
        )
    function(f"{caller}() takes a path, or a function (record, start) that finds a field", field, 2)
    return FieldRef(None, checked, field)
