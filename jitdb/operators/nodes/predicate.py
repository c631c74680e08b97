"""`predicate`: a function of the user says so of the field's value."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Unpack

from jitdb.common.arguments import function
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.indexes.spec import IndexSpec, Requirement
from jitdb.operators.nodes.equal import FieldOperation
from jitdb.operators.nodes.field_ref import FieldLike, Options, as_field
from jitdb.operators.nodes.literals import function_name
from jitdb.operators.nodes.operation import Answering, Core, Identity, Operation

if TYPE_CHECKING:
    from pyroaring import BitMap


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


class Predicate(FieldOperation):
    """The function says so of the field's value. It is known by `name`; a new `version` is a new index."""

    __slots__ = __match_args__ = ("field", "fn", "name", "version")
    op = "predicate"
    arguments = ("path", "fn")

    fn: Callable[[Any], object]
    name: str
    version: int

    def _identify(self) -> Identity:
        return (self.op, self.field.identity, self.name, self.version)

    @property
    def function(self) -> tuple[str, str]:
        return "a predicate holds a function, which", "ask for what can be compared"

    def keywords(self) -> dict[str, Any]:
        named = {} if function_name(self.fn) == self.name else {"name": self.name}
        return {**named, **({"version": self.version} if self.version else {}), **super().keywords()}

    def holds(self, value: Any) -> bool:
        return bool(self.fn(value))

    @property
    def spec(self) -> IndexSpec:
        index_type = self.field.options.index_type
        return IndexSpec("predicate", self.field.paths, index_type, name=self.name, version=self.version)

    def need(self, core: Core) -> Requirement:
        return Requirement(self.spec, self.field.seek, self.fn)

    def answer(self, asked: Answering) -> BitMap:
        return asked.marked()
