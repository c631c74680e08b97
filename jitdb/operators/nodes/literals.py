"""The values that a question may hold, checked and made plain; paths, values and functions as one would write them in
Python, or in expressions; and what to say of what is not ours.

A question is immutable and may outlive the list or array it was made from, so containers are copied. NumPy scalars
become the Python values they stand for.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from jitdb.common.paths import Path, format_path
from jitdb.common.values import EXTENSION, UNDEFINED, extension_parts, kind_of, text_bytes
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.nodes.instants import Instant, instant_of

MAX_VALUE_DEPTH: Final = 100  # lists and dicts within each other; deeper ones are no values but accidents

_PLAIN: Final = frozenset({type(None), bool, int, float, bytes})
_ALLOWED: Final = "None, bool, int, float, str, bytes, list and dict"


class Extension(NamedTuple):
    """An extension value of msgpack, as msgpack.ExtType holds it (which refuses the code -1 of timestamps)."""

    code: int
    data: bytes


def plain_value(value: Any, depth: int = 0) -> Any:
    """The value made of plain Python types; QueryError when a record cannot hold such a value.

    >>> plain_value(("a", bytearray(b"b"), {"c": 1.5}))
    ['a', b'b', {'c': 1.5}]
    >>> plain_value({1, 2})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    jitdb.errors.QueryError: a field cannot hold a set: {1, 2}; values are None, bool, int, ...
    """
    kind = type(value)
    if kind is str:
        return _checked_text(value)
    if kind in _PLAIN:
        return value
    if depth > MAX_VALUE_DEPTH:
        raise QueryError(f"a value nests lists and dicts more than {MAX_VALUE_DEPTH} deep")
    if isinstance(value, dict):
        return {_plain_key(key): plain_value(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item") and not is_numpy_time(value):  # a NumPy scalar
        item = value.item()
        if type(item) is not kind:
            return plain_value(item, depth + 1)
    elif _is_extension(value):
        extension_parts(value)
        return value
    elif isinstance(value, (list, tuple)):
        return [plain_value(item, depth + 1) for item in value]
    # Subclasses, such as the members of a StrEnum, whose own __str__ may say something else.
    if isinstance(value, str):
        return _checked_text(str.__str__(value))
    if isinstance(value, bytes):
        return bytes(memoryview(value))
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    raise QueryError(f"a field cannot hold {_a(kind)}: {shown(value)}", remedy=_hint(value))


def plain_bound(value: Any) -> int | float | Instant:
    """What to be above or below of: an int of any size, a float that is not NaN, or an instant.

    >>> plain_bound(2**80) == 2**80, plain_bound("2015-12-01")
    (True, '2015-12-01T00:00:00Z')
    >>> plain_bound(True)
    Traceback (most recent call last):
        ...
    jitdb.errors.QueryError: only numbers and times are above or below others, and True is a bool
    """
    if isinstance(value, Instant):
        return value
    if (instant := instant_of(value)) is not None:
        return instant
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item") and not is_numpy_time(value):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise QueryError(f"only numbers and times are above or below others, and {shown(value)} is {_a(type(value))}")
    if value != value:
        raise QueryError("no number is above or below NaN, so nothing can be compared with it")
    return float.__float__(value) if isinstance(value, float) else int.__int__(value)


def pack_positions(name: str, positions: Iterable[int]) -> bytes:
    """Non-negative integers, each as eight bytes, little-endian, in the order given.

    >>> pack_positions("seqs", [1, 256])
    b'\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00'
    """
    shapeless = getattr(positions, "ndim", 1) == 0  # a NumPy scalar says that it is iterable
    if shapeless or isinstance(positions, (str, bytes)) or not isinstance(positions, Iterable):
        raise QueryError(f"{name}() takes an iterable of non-negative integers, not {shown(positions)}")
    # tolist() of a NumPy array or an array.array gives Python integers in one call.
    given: list[Any] = positions.tolist() if hasattr(positions, "tolist") else list(positions)
    if set(map(type, given)) - {int}:
        given = [_integer(name, item) for item in given]
    try:
        packed = array("Q", given)
    except OverflowError:
        bad = next(item for item in given if not 0 <= item < 2**64)
        raise QueryError(f"{name}() takes integers from 0 to 2**64 - 1, not {shown(bad)}") from None
    if _BIG_ENDIAN:
        packed.byteswap()
    return packed.tobytes()


def unpack_positions(packed: bytes) -> array[int]:
    """The integers that `pack_positions` packed.

    >>> unpack_positions(pack_positions("seqs", [3, 1])).tolist()
    [3, 1]
    """
    positions = array("Q", packed)
    if _BIG_ENDIAN:
        positions.byteswap()
    return positions


_BIG_ENDIAN: Final = array("H", b"\x00\x01")[0] == 1


def _integer(name: str, item: Any) -> int:
    plain = item.item() if getattr(item, "ndim", None) == 0 else item
    if type(plain) is not int:
        raise QueryError(f"{name}() takes non-negative integers, and {shown(item)} is {_a(type(item))}")
    return plain


def _plain_key(key: Any) -> Any:
    if type(key) is str:
        return _checked_text(key)
    if isinstance(key, (list, tuple, dict)) or _is_extension(key):
        raise QueryError(f"a key of a map is a string, a number, bytes or None, not {shown(key)}")
    return plain_value(key)


def _checked_text(text: str) -> str:
    if not text.isascii():
        try:
            text_bytes(text)  # what no record can hold
        except UnicodeEncodeError:
            raise QueryError(f"the text {shown(text)} is not valid Unicode (a lone surrogate)") from None
    return text


def _is_extension(value: Any) -> bool:
    """Whether it is an extension value of msgpack (an ExtType or a Timestamp)."""
    return (hasattr(value, "code") and hasattr(value, "data")) or (
        hasattr(value, "to_bytes") and hasattr(value, "nanoseconds")
    )


def _hint(value: Any) -> str:
    if value is UNDEFINED:
        return "to find records without a field, use absent(path)"
    if hint := hint_of_time(value):
        return hint
    if hasattr(value, "tolist"):
        return "write it as a list: .tolist()"
    return f"values are {_ALLOWED}"


def _a(kind: type) -> str:
    return f"{'an' if kind.__name__[0] in 'aeiouAEIOU' else 'a'} {kind.__name__}"


def hint_of_time(value: Any) -> str | None:
    """What to say of a time of Python, NumPy or pandas where a record's value is meant; None for all else."""
    if not hasattr(value, "isoformat") and not is_numpy_time(value) and type(value).__name__ != "timedelta":
        return None
    return "records hold no times as such: compare one by <, <=, > and >=, or ask for the text or number that they hold"


def is_numpy_time(value: Any) -> bool:
    """Whether it is a NumPy time, whose plain value would be a number of unknown units."""
    return type(value).__name__ in ("datetime64", "timedelta64")


def describe_path(path: Path) -> str:
    """A path as Python text."""
    return repr(format_path(path))


def describe_index(index: str | Path) -> str:
    """What a range compares: the name of an index that the database derives, or a path."""
    is_named = isinstance(index, str) or index in (("timestamp",), ("sequence",))
    return repr(index) if is_named else describe_path(index)  # type: ignore[arg-type]


def written_index(index: str | Path) -> str:
    """The same as an expression writes it."""
    return f'index("{index}")' if isinstance(index, str) else format_path(index)


def describe_value(value: Any) -> str:
    """A value, or an instant, as Python text; an integer of more digits than Python writes is in hex.

    >>> describe_value([1, "a"]), describe_value([16**4000])[:5], describe_value(float("-inf"))
    ("[1, 'a']", '[0x10', "float('-inf')")
    """
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
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
    if isinstance(value, Instant):
        return repr(value)
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
