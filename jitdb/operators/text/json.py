"""Operations as JSON, to ship a question to another process.

    {"op": "equal", "path": ["value", "content", "type"], "value": "post", "options": {"prefix": 32}}
    {"op": "includes", "path": [...], "value": ..., "pluck": ["link"]}
    {"op": "absent", "path": [...]}
    {"op": "starts_with", "path": [...], "value": "@6CAx"}  or "ends_with", "contains", "like", "matches";
                                                          "ignore_case": true
    {"op": "gt", "index": "timestamp", "value": 5}        or "index": ["value", "sequence"],
                                                          "value": "2026-11-01T12:00:00Z"
    {"op": "between", "index": ["n"], "low": 1, "high": 5}
    {"op": "seqs", "seqs": [1, 2]}                        or "offsets"
    {"op": "and", "args": [...]}                          or "or"
    {"op": "not", "arg": {...}}
    {"op": "everything"}

A path is a list of keys, of positions in arrays, and of null for any element, or text: "items[].sku".
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

from jitdb.common.paths import plain_step
from jitdb.common.spelling import nearest
from jitdb.common.times import as_text
from jitdb.common.values import EXTENSION, extension_parts, kind_of
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.nodes.instants import Instant
from jitdb.operators.nodes.literals import MAX_VALUE_DEPTH, Extension
from jitdb.operators.nodes.operation import MAX_NESTING, OPTIONAL, VALUES, Operation
from jitdb.operators.nodes.table import OPERATORS
from jitdb.operators.text.expression import refuse_functions

_PLAIN_BITS: Final = 2_000  # of an integer, about 600 digits: Python itself may be set to read no more than 640


def to_json(operation: Operation) -> dict[str, Any]:
    """The operation as dicts, lists, strings and numbers, ready for `json.dumps`.

    >>> from jitdb.operators import equal, not_
    >>> to_json(not_(equal("type", b"x")))
    {'op': 'not', 'arg': {'op': 'equal', 'path': ['type'], 'value': {'$bytes': 'eA=='}}}
    """
    refuse_functions(operation, "has no JSON form")
    return _written(operation)


def _written(operation: Operation) -> dict[str, Any]:
    parts = {key: getattr(operation, key) for key in operation.arguments}
    written = {key: _part_to_json(key, part) for key, part in parts.items() if part is not None or key in VALUES}
    keywords = operation.keywords()
    if keywords and OPERATORS[operation.op].takes == "options":
        keywords = {"options": keywords}
    return {"op": operation.op, **written, **keywords}


def _part_to_json(key: str, part: Any) -> Any:
    match key:
        case "args":
            return [_written(arg) for arg in part]
        case "arg":
            return _written(part)
    if key in VALUES:
        return _value_to_json(part)
    return list(map(plain_step, part)) if isinstance(part, tuple) else part


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
    if not isinstance(op, str) or op not in OPERATORS:
        raise _unknown(op, form)
    make, kind, _, takes = OPERATORS[op]
    arguments = [_argument(form, key, depth) for key in kind.arguments]
    options: dict[str, Any] = _part({"options": {}, **form}, "options", dict) if takes == "options" else {}
    if takes == "ignore_case" and takes in form:
        options = {takes: form[takes]}
    if not all(isinstance(name, str) for name in options):
        raise QueryError(f"options in JSON have names, not {shown(options)}")
    return make(*(arguments[0] if kind.arguments == ("args",) else arguments), **options)


def _argument(form: dict[str, Any], name: str, depth: int) -> Any:
    match name:
        case "args":
            return [_read(arg, depth + 1) for arg in _part(form, name, list)]
        case "arg":
            return _read(_part(form, name, dict), depth + 1)
        case "index":
            return _part(form, name)
        case "path":
            return _part(form, name, (list, str))
    if name == OPTIONAL:
        return form.get(name)
    return _value_from_json(_part(form, name)) if name in VALUES else _part(form, name, list)


def _unknown(op: object, form: dict[str, Any]) -> QueryError:
    if op is None and "type" in form:  # as JavaScript has it, with functions and encoded values in it
        return QueryError("the operation's name stands under 'op', in small letters, as in {'op': 'everything'}")
    plain = re.sub("(?=[A-Z])", "_", op[:40]).lower().removeprefix("slow_") if isinstance(op, str) else ""
    near = nearest(plain, OPERATORS)
    hint = f"did you mean {near!r}?" if near else f"there are {', '.join(OPERATORS)}"
    return QueryError(f"no operation is called {shown(op)} in JSON; {hint}")


def _part(form: dict[str, Any], key: str, kind: type[object] | tuple[type[object], ...] = object) -> Any:
    if key not in form or not isinstance(form[key], kind):
        shape = "an object" if kind is dict else "a value" if kind is object else "an array"
        raise QueryError(f"the operation {shown(form.get('op'))} in JSON needs {key!r}, {shape}: {shown(form)}")
    return form[key]


def _value_to_json(value: Any) -> Any:
    if isinstance(value, Instant):
        return as_text(value.time)
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


def _extension_from_json(content: Any) -> Extension:
    code, data = content
    if type(code) is not int or not -128 <= code <= 127:
        raise ValueError(f"an extension code is one signed byte, not {shown(code)}")
    return Extension(code, base64.b64decode(data, validate=True))


def _map_from_json(content: Any, depth: int) -> dict[Any, Any]:
    return {_value_from_json(key, depth): _value_from_json(item, depth) for key, item in content}


_TAGS: Final[dict[str, Callable[[Any, int], Any]]] = {
    "$float": lambda content, depth: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[content],
    "$int": lambda content, depth: int(content, 16),
    "$bytes": lambda content, depth: base64.b64decode(content, validate=True),
    "$map": _map_from_json,
    "$extension": lambda content, depth: _extension_from_json(content),
}
