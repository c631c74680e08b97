"""Python's variables: `{name}` or `$name` in an expression or a word, and the databases that lines name."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from jitdb.cli.expressions import is_expression
from jitdb.cli.failures import UsageError
from jitdb.common.paths import format_path
from jitdb.common.spelling import nearest
from jitdb.engine.database import JITDB
from jitdb.logset import LogSet
from jitdb.operators.nodes.field import Field
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.queries import Query
from jitdb.operators.text.expression import format_expression, format_value

Names: TypeAlias = Mapping[str, Any]

_NAMED: Final = r"\{([A-Za-z_]\w*(?:\.\w+|\[[^\[\]{}]*\])*)\}|\$([A-Za-z_]\w*)"
_PLACE: Final = re.compile(_NAMED)
_PLACE_OR_TEXT: Final = re.compile(rf"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|{_NAMED}""")


def in_expression(text: str, names: Names) -> str:
    r"""The expression with the variables' values as it writes values; what stands in quotes is text and stays so.

    Operations and queries stand for what they ask, fields of `field()` for their paths. Raises UsageError, QueryError.

    >>> in_expression('user == {who} and n > $least and text == "{who}"', {"who": 'a"b', "least": 3})
    'user == \'a"b\' and n > 3 and text == "{who}"'
    """

    def fill(found: re.Match[str]) -> str:
        return found[0] if found[1] else _literal(_value(found[2] or found[3], names))

    return _PLACE_OR_TEXT.sub(fill, text)


def in_word(word: str, names: Names) -> str:
    """A word of a line: where it is an expression, as there; else with the values as text, lists with commas between.

    >>> in_word("{folder}/*.ndjson", {"folder": "logs"}), in_word("$columns", {"columns": ["time", "user.name"]})
    ('logs/*.ndjson', 'time,user.name')
    """
    if is_expression(word):
        return in_expression(word, names)
    return _PLACE.sub(lambda found: _text(_value(found[1] or found[2], names)), word)


def database_named(name: str, names: Names) -> JITDB | LogSet | None:
    """The open database that a variable holds."""
    found = names.get(name)
    return found if isinstance(found, (JITDB, LogSet)) else None


def databases(names: Names) -> list[str]:
    """The variables that hold one."""
    return [name for name in names if not name.startswith("_") and database_named(name, names) is not None]


def _value(text: str, names: Names) -> Any:
    """What stands between the braces: a name, with attributes and elements behind it."""
    name = re.match(r"\w+", text)
    assert name is not None
    if name[0] not in names:
        meant = nearest(name[0], names)
        guess = f"; did you mean {{{meant}}}?" if meant else ""
        raise UsageError(f"there is no variable {name[0]}{guess}")
    try:
        return eval(text, {"__builtins__": {}}, dict(names))
    except Exception as error:
        raise UsageError(f"{{{text}}} has no value: {type(error).__name__}: {error}") from error


def _literal(value: Any) -> str:
    if isinstance(value, Query):
        value = value.question.operation
    if isinstance(value, Operation):
        return f"({format_expression(value)})"
    return format_path(value.path) if isinstance(value, Field) else format_value(value)


def _text(value: Any) -> str:
    if isinstance(value, Query):
        value = value.question.operation
    if isinstance(value, Operation):
        return format_expression(value)
    if isinstance(value, Field):
        return format_path(value.path)
    if isinstance(value, (list, tuple)):
        return ",".join(map(_text, value))
    isoformat = getattr(value, "isoformat", None)
    return isoformat() if isoformat is not None else os.fspath(value) if isinstance(value, os.PathLike) else str(value)
