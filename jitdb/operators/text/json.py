"""Operations as JSON, to ship a question to another process.

    {"op": "equal", "path": ["value", "content", "type"], "value": "post", "options": {"prefix": 32}}
    {"op": "includes", "path": [...], "value": ..., "pluck": ["link"]}
    {"op": "absent", "path": [...]}
    {"op": "starts_with", "path": [...], "value": "@6CAx"}
    {"op": "gt", "index": "timestamp", "value": 5}        or "index": ["value", "sequence"]
    {"op": "seqs", "seqs": [1, 2]}                        or "offsets"
    {"op": "and", "args": [...]}                          or "or"
    {"op": "not", "arg": {...}}
    {"op": "everything"}

A value that JSON has is written as itself. The others are an object with one key: {"$bytes": base64},
{"$map": [[key, value], ...]}, {"$float": "nan" | "inf" | "-inf"}, {"$extension": [code, base64]}, and
{"$int": "0x..."} for an integer of more digits than a reader of JSON must take.
Functions cannot be shipped: predicates, seek functions, deferred() and live_seqs() are refused.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable
from typing import Any, Final

from jitdb.common.values import EXTENSION, extension_parts, kind_of
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.nodes.combine import and_, everything, not_, or_
from jitdb.operators.nodes.equality import absent, equal, includes, starts_with
from jitdb.operators.nodes.literals import MAX_VALUE_DEPTH, Extension
from jitdb.operators.nodes.operations import (
    MAX_NESTING,
    Absent,
    And,
    Compare,
    Equal,
    Everything,
    FieldOperation,
    Includes,
    Not,
    Offsets,
    Operation,
    Or,
    Predicate,
    Seqs,
    StartsWith,
    not_an_operation,
)
from jitdb.operators.nodes.positions import offsets, seqs
from jitdb.operators.nodes.ranges import gt, gte, lt, lte
from jitdb.operators.tasks.deferred import Deferred
from jitdb.operators.tasks.live_seqs import LiveSeqs

_PLAIN_BITS: Final = 2_000  # of an integer, about 600 digits: Python itself may be set to read no more than 640


def to_json(operation: Operation) -> dict[str, Any]:
    """The operation as dicts, lists, strings and numbers, ready for `json.dumps`.

    >>> from jitdb.operators import equal, not_
    >>> to_json(not_(equal("type", b"x")))
    {'op': 'not', 'arg': {'op': 'equal', 'path': ['type'], 'value': {'$bytes': 'eA=='}}}
    """
    match operation:
        case And(args) | Or(args):
            return {"op": operation.name, "args": [to_json(arg) for arg in args]}
        case Not():
            return {"op": "not", "arg": to_json(operation.arg)}
        case Predicate():
            raise QueryError(f"a predicate holds a function, which has no JSON form: {operation!r}")
        case Deferred():
            raise QueryError(f"a task has no JSON form: {operation!r}", remedy="ship the operation that it gives")
        case LiveSeqs():
            raise QueryError(
                f"a source of seqs has no JSON form: {operation!r}", remedy="ship seqs(...) that are known by now"
            )
        case Equal():
            return _leaf("equal", operation, value=_value_to_json(operation.value))
        case Includes():
            pluck = {} if operation.pluck is None else {"pluck": list(operation.pluck)}
            return _leaf("includes", operation, value=_value_to_json(operation.value), **pluck)
        case Absent():
            return _leaf("absent", operation)
        case StartsWith():
            return {
                "op": "starts_with", "path": list(operation.path), "value": _value_to_json(operation.prefix),
            }  # fmt: skip
        case Compare(op, index, value):
            where = index if isinstance(index, str) else list(index)
            return {"op": op, "index": where, "value": _value_to_json(value)}
        case Seqs() | Offsets():
            return {"op": operation.name, operation.name: list(operation)}
        case Everything():
            return {"op": "everything"}
    raise QueryError(f"only an operation has a JSON form, and {not_an_operation(operation)}")


def from_json(form: Any) -> Operation:
    """The operation that `to_json` wrote, checked like one that a user writes.

    >>> from_json({"op": "equal", "path": ["value", "content", "type"], "value": "post"})
    equal('value.content.type', 'post')
    """
    return _read(form, 0)


def _read(form: Any, depth: int) -> Operation:
    if depth > MAX_NESTING:
        raise QueryError(f"operations are nested more than {MAX_NESTING} deep")
    if not isinstance(form, dict):
        raise QueryError(f"an operation in JSON is an object with the key 'op', not {shown(form)}")
    op = form.get("op")
    if not isinstance(op, str):
        raise _unknown(op, form)
    if op in ("and", "or"):
        args = [_read(arg, depth + 1) for arg in _part(form, "args", list)]
        return and_(*args) if op == "and" else or_(*args)
    if op == "not":
        return not_(_read(_part(form, "arg", dict), depth + 1))
    if op not in _READERS:
        raise _unknown(op, form)
    return _READERS[op](form)


def _unknown(op: object, form: dict[str, Any]) -> QueryError:
    if op is None and "type" in form:  # as JavaScript has it, with functions and encoded values in it
        return QueryError("the operation's name stands under 'op', in small letters, as in {'op': 'everything'}")
    names = [*_READERS, "and", "or", "not"]
    plain = re.sub("(?=[A-Z])", "_", op[:40]).lower().removeprefix("slow_") if isinstance(op, str) else ""
    import difflib

    close = difflib.get_close_matches(plain, names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names)}"
    return QueryError(f"no operation is called {shown(op)} in JSON; {hint}")


def _leaf(op: str, operation: FieldOperation, **rest: Any) -> dict[str, Any]:
    if operation.field.path is None:
        raise QueryError(f"a seek function has no JSON form: {operation!r}", remedy="use a path")
    options = operation.field.options.given()
    return {"op": op, "path": list(operation.field.path), **rest, **({"options": options} if options else {})}


def _read_equal(form: dict[str, Any]) -> Operation:
    return equal(_path(form), _value_from_json(_part(form, "value")), **_options(form))


def _read_includes(form: dict[str, Any]) -> Operation:
    value = _value_from_json(_part(form, "value"))
    return includes(_path(form), value, form.get("pluck"), **_options(form))


def _read_absent(form: dict[str, Any]) -> Operation:
    return absent(_path(form), **_options(form))


def _read_starts_with(form: dict[str, Any]) -> Operation:
    return starts_with(_path(form), _value_from_json(_part(form, "value")))


def _reader_of_comparison(make: Callable[..., Operation]) -> Callable[[dict[str, Any]], Operation]:
    return lambda form: make(_value_from_json(_part(form, "value")), _part(form, "index"))


_READERS: Final[dict[str, Callable[[dict[str, Any]], Operation]]] = {
    "equal": _read_equal,
    "includes": _read_includes,
    "absent": _read_absent,
    "starts_with": _read_starts_with,
    "gt": _reader_of_comparison(gt),
    "gte": _reader_of_comparison(gte),
    "lt": _reader_of_comparison(lt),
    "lte": _reader_of_comparison(lte),
    "seqs": lambda form: seqs(_part(form, "seqs", list)),
    "offsets": lambda form: offsets(_part(form, "offsets", list)),
    "everything": lambda form: everything(),
}


def _path(form: dict[str, Any]) -> list[str]:
    path = _part(form, "path", list)
    return list(path)


def _options(form: dict[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = _part({"options": {}, **form}, "options", dict)
    if not all(isinstance(name, str) for name in options):
        raise QueryError(f"options in JSON have names, not {shown(options)}")
    return options


def _part(form: dict[str, Any], key: str, kind: type[object] = object) -> Any:
    if key not in form or not isinstance(form[key], kind):
        shape = "an array" if kind is list else "an object" if kind is dict else "a value"
        raise QueryError(f"the operation {shown(form.get('op'))} in JSON needs {key!r}, {shape}: {shown(form)}")
    return form[key]


def _value_to_json(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": repr(value)}
    if type(value) is int and value.bit_length() > _PLAIN_BITS:
        return {"$int": hex(value)}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    if isinstance(value, dict):
        return {"$map": [[_value_to_json(key), _value_to_json(item)] for key, item in value.items()]}
    if kind_of(value) == EXTENSION:
        code, data = extension_parts(value)
        return {"$extension": [code, base64.b64encode(data).decode("ascii")]}
    if isinstance(value, list):
        return [_value_to_json(item) for item in value]
    return value


def _value_from_json(form: Any, depth: int = 0) -> Any:
    if depth > MAX_VALUE_DEPTH:
        raise QueryError(f"a value nests lists and dicts more than {MAX_VALUE_DEPTH} deep")
    if isinstance(form, list):
        return [_value_from_json(item, depth + 1) for item in form]
    if not isinstance(form, dict):
        return form
    try:
        ((tag, content),) = form.items()
        return _TAGS[tag](content, depth + 1)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, QueryError):  # it speaks of a value inside this one
            raise
        raise QueryError(f"no value in JSON looks like {shown(form)} (one of {', '.join(_TAGS)})") from error


def _float_from_json(content: Any, depth: int) -> float:
    return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[content]


def _int_from_json(content: Any, depth: int) -> int:
    return int(content, 16)


def _bytes_from_json(content: Any, depth: int) -> bytes:
    return base64.b64decode(content, validate=True)


def _map_from_json(content: Any, depth: int) -> dict[Any, Any]:
    return {_value_from_json(key, depth): _value_from_json(item, depth) for key, item in content}


def _extension_from_json(content: Any, depth: int) -> Extension:
    code, data = content
    if type(code) is not int or not -128 <= code <= 127:
        raise ValueError(f"an extension code is one signed byte, not {shown(code)}")
    return Extension(code, base64.b64decode(data, validate=True))


_TAGS: Final[dict[str, Callable[[Any, int], Any]]] = {
    "$float": _float_from_json,
    "$int": _int_from_json,
    "$bytes": _bytes_from_json,
    "$map": _map_from_json,
    "$extension": _extension_from_json,
}
