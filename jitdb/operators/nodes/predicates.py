"""Any question at all: a function is asked about the field's value, once per record, and remembered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

from jitdb.common.arguments import function
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.nodes.field_ref import FieldLike, as_field
from jitdb.operators.nodes.operations import Operation, Predicate
from jitdb.operators.nodes.options import Options


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
