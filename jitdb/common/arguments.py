"""Checks of the arguments of public functions: an error names the argument at once."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable
from functools import wraps
from threading import TIMEOUT_MAX
from typing import Any, Final, ParamSpec, TypeVar

from jitdb.common.words import shown
from jitdb.errors import InvalidArgument, JitdbError, QueryError

P = ParamSpec("P")
T = TypeVar("T")

ENDS: Final = (StopIteration, StopAsyncIteration)


def whole_number(meaning: str, number: Any, least: int = 0, error: type[JitdbError] = QueryError) -> int:
    """An integer, of Python or of numpy, of at least `least`.

    >>> whole_number("a page has a size", 3)
    3
    >>> whole_number("a page has a size", -3)
    Traceback (most recent call last):
        ...
    jitdb.errors.QueryError: a page has a size, 0 or more, not -3
    """
    if type(number) is int and number >= least:
        return number
    try:
        found = least - 1 if isinstance(number, bool) else operator.index(number)
    except TypeError:
        found = least - 1
    if found < least:
        raise error(f"{meaning}, {least} or more, not {shown(number)}")
    return found


def flag(name: str, value: Any, error: type[JitdbError] = QueryError) -> bool:
    """True or False, of Python or numpy. Raises for other values, such as the text "no", which is true to Python."""
    if value is True or value is False:
        return value
    if getattr(getattr(value, "dtype", None), "kind", "") == "b" and getattr(value, "ndim", 1) == 0:
        return bool(value)
    raise error(f"{name} is True or False, not {shown(value)}")


def check_interval(seconds: Any) -> float:
    """How long to wait before a flush. Raises InvalidArgument for what no thread can wait."""
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 <= seconds <= TIMEOUT_MAX:
        return float(seconds)
    raise InvalidArgument(f"flush_interval is a number of seconds, from 0 to {TIMEOUT_MAX:,.0f}, not {shown(seconds)}")


def function(meaning: str, given: Any, takes: int, error: type[JitdbError] = QueryError) -> None:
    """Raise `error` unless it can be called with so many arguments, as far as its signature is known."""
    if not callable(given):
        raise error(f"{meaning}, not {shown(given)}")
    import inspect  # late: it is large, and few questions have functions

    try:
        signature = inspect.signature(given)
    except (TypeError, ValueError):
        return  # a function in C without a signature
    try:
        signature.bind(*[None] * takes)
    except TypeError:
        what = "1 argument" if takes == 1 else f"{takes} arguments"
        raise error(f"{meaning}: it is called with {what}, and {shown(given)} takes {signature}") from None


def is_list(values: Any) -> bool:
    """Whether it is an iterable of several values. Text, bytes and dicts are one value."""
    one = isinstance(values, (str, bytes, bytearray, memoryview, dict)) or getattr(values, "ndim", 1) == 0
    return not one and isinstance(values, Iterable)


def progress_function(given: Callable[[int, int], object] | None) -> Callable[[int, int], object]:
    """A function of bytes done and bytes in all; for None one that does nothing. Raises InvalidArgument."""
    if given is None:
        return lambda done, total: None
    function("progress is a function of bytes done and bytes in all", given, 2, InvalidArgument)
    return given


def file_path(path: Any) -> str:
    """The path as text. Raises InvalidArgument if no file can have this name."""
    text = path if isinstance(path, str) else os.fspath(path) if isinstance(path, os.PathLike) else None
    if not isinstance(text, str):
        hint = ": os.fsdecode() makes text of bytes" if isinstance(path if text is None else text, bytes) else ""
        raise InvalidArgument(f"a path is text or a Path, not {shown(path)}{hint}")
    try:
        if b"\0" not in os.fsencode(text):
            return text
    except UnicodeEncodeError:
        pass
    raise InvalidArgument(f"no file can be called {shown(text)}")


def failure(what: str, error: BaseException, kind: type[JitdbError] = QueryError) -> BaseException:
    """What to raise when a function of the user raised `error`: the same, but an error instead of StopIteration, which
    Python's loops and futures would take for the end of the answer.
    """
    if not isinstance(error, ENDS):
        return error
    failed = kind(
        f"{what} raised {type(error).__name__}, which ends loops",
        remedy="is there a next() of what may be empty? next(..., None) gives None then",
    )
    failed.__cause__ = error
    return failed


def failing(function: Callable[P, T], what: str, kind: type[JitdbError] = QueryError) -> Callable[P, T]:
    """A function of the user that raises `kind` instead of StopIteration (see failure)."""

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return function(*arguments, **named)
        except ENDS as error:
            raise failure(what, error, kind) from error

    return call
