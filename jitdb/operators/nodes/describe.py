"""Paths, values and functions as one would write them in Python."""

from __future__ import annotations

import math
from typing import Any

from jitdb.common.paths import Path, format_path


def describe_path(path: Path) -> str:
    """A path as Python text."""
    dotted = format_path(path)
    return dotted if dotted.startswith("(") and dotted == repr(path) else repr(dotted)


def describe_number(value: int | float) -> str:
    """A number as Python text; infinities too.

    >>> describe_number(1.5), describe_number(float("-inf"))
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


def function_name(fn: object) -> str:
    """The name of a function, for people."""
    return str(getattr(fn, "__name__", None) or type(fn).__name__)


def seek_name(fn: object) -> str:
    """What a function in the place of a path is called in errors."""
    return f"the seek function {function_name(fn)}"
