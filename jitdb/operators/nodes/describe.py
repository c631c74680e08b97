"""Paths, values and functions as one would write them in Python, or expressions; what to say of what is not ours."""

from __future__ import annotations

import math
from typing import Any

from jitdb.common.paths import Path, format_path
from jitdb.common.values import EXTENSION, kind_of
from jitdb.common.words import shown
from jitdb.errors import QueryError


def describe_path(path: Path) -> str:
    """A path as Python text."""
    return repr(format_path(path))


def describe_bound(value: Any) -> str:
    """A number or an instant as Python text; infinities too.

    >>> describe_bound(1.5), describe_bound(float("-inf"))
    ('1.5', "float('-inf')")
    """
    return f"float('{value}')" if value in (math.inf, -math.inf) else describe_value(value)


def describe_value(value: Any) -> str:
    """A value as Python text, also where it holds an integer of more digits than Python writes: that is in hex.

    >>> describe_value([1, "a"]), describe_value([16**4000])[:5]
    ("[1, 'a']", '[0x10')
    """
    try:
        return repr(value)
    except ValueError:
        if isinstance(value, int):
            return hex(value)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{describe_value(key)}: {describe_value(item)}' for key, item in value.items())}}}"
    return f"[{', '.join(map(describe_value, value))}]"


def written_value(value: Any) -> str:
    """A value as an expression writes it. Raises QueryError for what has no text.

    >>> print(written_value([1.5, float("nan"), {"a": None}]))
    [1.5, float("nan"), {'a': None}]
    """
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value!r}")'
    if isinstance(value, list):
        return f"[{', '.join(map(written_value, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written_value(key)}: {written_value(item)}" for key, item in value.items()) + "}"
    if kind_of(value) == EXTENSION:
        raise QueryError(f"an extension value cannot be written as text: {shown(value)}")
    return describe_value(value)


def function_name(fn: object) -> str:
    """The name of a function, for people."""
    return str(getattr(fn, "__name__", None) or type(fn).__name__)


def seek_name(fn: object) -> str:
    """What a function in the place of a path is called in errors."""
    return f"the seek function {function_name(fn)}"


def not_an_operation(thing: object) -> str:
    """What to say of a thing that stands where an operation is expected."""
    text = shown(thing)
    if callable(thing):
        return f"{function_name(thing)} is a function: was it meant to be called?"
    if isinstance(thing, (list, tuple)):
        return f"{text} is a {type(thing).__name__}: put a star before it, as in or_(*operations)"
    if isinstance(thing, str):
        return f"{text} is no operation but text: an expression is read by jitdb.operators.parse_expression({text})"
    if isinstance(thing, bool):
        return f"{text} is a bool: compare a field(...), as in field('value.content.type') == 'post'"
    return f"{text} is no operation; operations are made by equal(...), includes(...), gt(...) and so on"
