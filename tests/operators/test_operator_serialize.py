"""Operations survive the way through JSON; what is no operation is refused on arrival."""

import json
from pathlib import Path

import msgpack
import pytest
from any_operation import operations
from hypothesis import given

from jitdb.errors import QueryError
from jitdb.operators import (
    absent,
    and_,
    equal,
    from_json,
    gt,
    gte,
    includes,
    lt,
    lte,
    not_,
    offsets,
    or_,
    predicate,
    seqs,
    to_json,
)

CASES = json.loads((Path(__file__).parent.parent / "data" / "cases.json").read_text())


@given(operations)
def test_round_trip(operation):
    assert from_json(json.loads(json.dumps(to_json(operation), allow_nan=False))) == operation


def test_extension_values():
    operation = equal("a", [msgpack.ExtType(3, b"x"), msgpack.Timestamp(5, 1)])
    assert from_json(json.loads(json.dumps(to_json(operation)))) == operation


def test_functions_are_refused():
    with pytest.raises(QueryError, match="a predicate holds a function, which has no JSON form"):
        to_json(and_(equal("a", 1), predicate("a", str.isupper)))
    with pytest.raises(QueryError, match="a seek function has no JSON form"):
        to_json(absent(lambda record, start: 0, index_type="x"))


@pytest.mark.parametrize(
    ("form", "hint"),
    [
        (None, "an object with the key 'op'"),
        ([], "an object with the key 'op'"),
        ({}, "no operation is called None"),
        ({"op": "glob"}, "no operation is called 'glob'"),
        ({"op": "contains", "path": ["a"], "value": "x", "ignore_case": 1}, "ignore_case is True or False"),
        ({"op": "matches", "path": ["a"], "value": "("}, "no regular expression"),
        ({"op": ["and"]}, "no operation is called"),
        ({"op": "and"}, "needs 'args', an array"),
        ({"op": "and", "args": []}, "at least one operation"),
        ({"op": "or", "args": [5]}, "an object with the key 'op'"),
        ({"op": "not", "arg": []}, "needs 'arg', an object"),
        ({"op": "equal", "path": ["a"]}, "needs 'value', a value"),
        ({"op": "equal", "path": 5, "value": 1}, "needs 'path', an array"),
        ({"op": "equal", "path": [1.5], "value": 1}, "field path"),
        ({"op": "equal", "path": [-1], "value": 1}, "positions in arrays count from 0"),
        ({"op": "equal", "path": "a[x]", "value": 1}, "in the brackets of a path"),
        ({"op": "equal", "path": [], "value": 1}, "field path"),
        ({"op": "equal", "path": ["a"], "value": 1, "options": {"prefx": 1}}, "did you mean prefix?"),
        ({"op": "equal", "path": ["a"], "value": 1, "options": 5}, "needs 'options', an object"),
        ({"op": "equal", "path": ["a"], "value": {"x": 1}}, "no value in JSON looks like"),
        ({"op": "equal", "path": ["a"], "value": {"$bytes": "?"}}, "no value in JSON looks like"),
        ({"op": "equal", "path": ["a"], "value": {"$bytes": 5}}, "no value in JSON looks like"),
        ({"op": "equal", "path": ["a"], "value": {"$map": [1]}}, "no value in JSON looks like"),
        ({"op": "equal", "path": ["a"], "value": {"$float": "1"}}, "no value in JSON looks like"),
        ({"op": "equal", "path": ["a"], "value": {"$float": []}}, "no value in JSON looks like"),
        ({"op": "equal", "path": ["a"], "value": {"$extension": [300, "eA=="]}}, "no value in JSON looks like"),
        ({"op": "includes", "path": ["a"], "value": 1, "pluck": 5}, "takes a path"),
        ({"op": "gt", "index": "timestamp", "value": "5"}, "as a time or a level only, and '5' is neither"),
        ({"op": "gt", "value": 5}, "needs 'index'"),
        ({"op": "seqs", "seqs": [-1]}, "from 0"),
        ({"op": "seqs", "seqs": "12"}, "needs 'seqs', an array"),
        ({"op": "starts_with", "path": ["a"], "value": 5}, "text or bytes"),
    ],
)
def test_what_is_no_operation(form, hint):
    with pytest.raises(QueryError, match=hint.replace("?", r"\?")):
        from_json(form)


def test_depth_is_limited():
    form = {"op": "everything"}
    for _ in range(5_000):
        form = {"op": "not", "arg": form}
    with pytest.raises(QueryError, match="more than 100 deep"):
        from_json(form)
    value = 1
    for _ in range(5_000):
        value = [value]
    with pytest.raises(QueryError, match="more than 100 deep"):
        from_json({"op": "equal", "path": ["a"], "value": value})


def operation_of(case):
    """The question of a case that was put to the JavaScript module."""
    opts = dict(case.get("opts", {}))
    names = {"useMap": "use_map", "prefixOffset": "prefix_offset", "indexAll": "index_all", "indexType": "index_type"}
    options = {names.get(name, name): value for name, value in opts.items()}
    match case["op"]:
        case "and":
            return and_(*map(operation_of, case["args"]))
        case "or":
            return or_(*map(operation_of, case["args"]))
        case "not":
            return not_(operation_of(case["arg"]))
        case "equal":
            return equal(case["path"], case["value"], **options)
        case "includes":
            return includes(case["path"], case["value"], **options)
        case "absent":
            return absent(case["path"], **options)
        case "predicate":
            return predicate(case["path"], lambda value: True, case["name"])
        case "seqs" | "offsets":
            return {"seqs": seqs, "offsets": offsets}[case["op"]](case["values"])
        case op:
            return {"gt": gt, "gte": gte, "lt": lt, "lte": lte}[op](case["value"], case["index"])


def test_every_question_of_the_recorded_cases_can_be_asked():
    asked = [operation_of(case["where"]) for case in CASES if case["where"]]
    assert asked
    for operation in asked:
        if "predicate(" not in repr(operation):
            assert from_json(to_json(operation)) == operation
