"""Operations are values: equal when they ask the same, never changed, clear when they are wrong."""

import copy
import functools
import math
import pickle

import numpy as np
import pytest
from any_operation import operations, values
from hypothesis import given

import jitdb.operators as operators
from jitdb.common.values import UNDEFINED, value_key
from jitdb.errors import QueryError
from jitdb.operators import (
    absent,
    and_,
    contains,
    ends_with,
    equal,
    everything,
    field,
    gt,
    gte,
    includes,
    like,
    lt,
    matches,
    not_,
    offsets,
    or_,
    predicate,
    seqs,
    slow_absent,
    slow_equal,
    slow_includes,
    slow_predicate,
    starts_with,
)
from jitdb.operators.nodes.operation import MAX_NESTING, And, Not, Or

A, B, C = equal("a", 1), equal("b", 2), equal("c", 3)


NAMES = {name: getattr(operators, name) for name in operators.__all__}


def seek(record, start):
    return -1


def is_even(value):
    return value % 2 == 0


# Identity


@pytest.mark.parametrize("other", [True, "1", b"1", [1], None, 2, {"a": 1}])
def test_values_of_different_kinds_differ(other):
    assert equal("a", 1) != equal("a", other)
    assert len({equal("a", 1), equal("a", other)}) == 2


@pytest.mark.parametrize("same", [1.0, np.int8(1), np.float32(1), np.array(1)])
def test_numbers_that_are_equal_are_the_same(same):
    assert equal("a", 1) == equal("a", same)
    assert hash(equal("a", 1)) == hash(equal("a", same))


def test_false_is_not_zero_and_null_is_not_absent():
    assert equal("a", False) != equal("a", 0)
    assert equal("a", None) != absent("a")
    assert equal("a", UNDEFINED) == absent("a")
    assert equal("a", -0.0) == equal("a", 0)


def test_nan_equals_nan():
    assert equal("a", math.nan) == equal("a", -math.nan)


def test_keys_with_dots_are_not_paths():
    assert equal(("a.b",), 1) != equal("a.b", 1)
    assert equal(("a", "b"), 1) == equal(["a", "b"], 1) == equal("a.b", 1)


@pytest.mark.parametrize(
    "options",
    [
        {"prefix": True},
        {"prefix": False},
        {"prefix_offset": 1},
        {"prefix_offset": 2},
        {"use_map": True},
        {"use_map": True, "prefix_offset": 1},
        {"index_all": True},
        {"index_type": "x"},
        {"index_type": "y"},
    ],
)
def test_options_that_differ_never_share_an_identity(options):
    others = [{}, {"prefix": 32, "index_type": "z"}, {"prefix_offset": 3}]
    assert all(equal("a", 1, **options) != equal("a", 1, **other) for other in others)
    assert equal("a", 1, **options) == equal("a", 1, **options)


def test_different_operators_differ():
    made = [
        equal("a", 1),
        includes("a", 1),
        includes("a", 1, pluck="b"),
        absent("a"),
        starts_with("a", "1"),
        starts_with("a", b"1"),
        starts_with("a", "1", ignore_case=True),
        contains("a", "1"),
        contains("a", "1", ignore_case=True),
        contains("a", b"1"),
        ends_with("a", "1"),
        like("a", "1"),
        matches("a", "1"),
        gt(1, "a"),
        gte(1, "a"),
        seqs([1]),
        offsets([1]),
        everything(),
        not_(A),
        A & B,
        A | B,
        gt(1, "timestamp"),
        gt(1, ("timestamp",)),
        predicate("a", is_even),
        predicate("a", is_even, version=1),
        predicate("a", is_even, "odd"),
    ]
    assert len(set(made)) == len(made)


def test_order_and_repeats_mean_nothing():
    assert A & B & C == C & (B & A)
    assert A | B | A == B | A
    assert seqs([3, 1, 3]) == seqs([1, 3])
    assert and_(A, or_(B, C)) == and_(or_(C, B), A)


def test_functions_are_known_by_name():
    assert equal(seek, 1, index_type="x") == equal(lambda record, start: 0, 1, index_type="x")
    assert equal(seek, 1, index_type="x") != equal("x", 1)
    assert predicate("a", is_even) == predicate("a", lambda value: True, "is_even")


@given(values, values)
def test_equality_is_equality_of_values(one, other):
    assert (equal("a", one) == equal("a", other)) == (value_key(one) == value_key(other))


@given(operations)
def test_copies_and_pickles_are_equal(operation):
    assert pickle.loads(pickle.dumps(operation)) == operation
    assert copy.deepcopy(operation) == operation
    assert hash(copy.copy(operation)) == hash(operation)


@given(operations)
def test_repr_is_what_one_would_write(operation):
    assert eval(repr(operation), {**NAMES, "nan": math.nan, "inf": math.inf}) == operation


def test_repr_of_many_seqs_is_short():
    assert repr(seqs(range(1000))).endswith("18, 19, … 1,000 in all])")
    assert repr(equal(seek, 1, index_type="x")) == "equal(seek, 1, index_type='x')"
    assert repr(predicate("a", is_even, version=2)) == "predicate('a', is_even, version=2)"


# Immutability


@pytest.mark.parametrize("operation", [A, A & B, ~A, seqs([1]), everything(), gt(1, "a"), absent("a")])
def test_nothing_can_be_changed(operation):
    for name in ("path", "args", "packed", "value", "index", "arg"):
        if hasattr(operation, name):
            with pytest.raises(AttributeError):
                setattr(operation, name, 1)
            with pytest.raises(AttributeError):
                delattr(operation, name)
    assert not hasattr(operation, "__dict__")


def test_a_list_changed_later_does_not_change_the_question():
    tags = ["a", {"b": [1]}]
    asked = equal("tags", tags)
    tags[1]["b"].append(2)
    assert asked == equal("tags", ["a", {"b": [1]}])
    numbers = np.array([1, 2])
    chosen = seqs(numbers)
    numbers[0] = 9
    assert list(chosen) == [1, 2]


# Combining


def test_combinators_flatten():
    assert (A & B & C).args == (A, B, C)
    assert and_(and_(A, B), and_(C)).args == (A, B, C)
    assert or_(A, or_(B, C)).args == (A, B, C)
    assert isinstance(A & (B | C), And)
    assert isinstance((A & B) | C, Or)


def test_one_operation_stays_itself():
    assert and_(A) is A
    assert or_(A) is A
    assert and_(None, A) is A
    assert or_(A, None) is A
    assert ~~A is A
    assert isinstance(~A, Not)


def test_conditions_left_out():
    assert and_(None, None) == everything()
    with pytest.raises(QueryError, match="at least one operation; for no records write not_"):
        or_(None)
    with pytest.raises(QueryError, match="at least one operation; for all records write everything"):
        and_()


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (True, "compare a field"),
        ([A, B], r"put a star before it"),
        (equal, "equal is a function: was it meant to be called"),
        ("a = 1", "equality is written"),
        (field("a"), "is no operation"),
    ],
)
def test_what_is_no_operation_is_refused(wrong, hint):
    for combine in (lambda: and_(A, wrong), lambda: or_(wrong, A), lambda: not_(wrong)):
        with pytest.raises(QueryError, match=hint):
            combine()


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: A and B,
        lambda: not A,
        lambda: 1 < field("a") < 5,
        lambda: [] if gt(1, "a") else None,
        lambda: seqs([]) or A,
    ],
)
def test_an_operation_is_neither_true_nor_false(mistake):
    with pytest.raises(QueryError, match=r"& \| ~"):
        mistake()


def test_nesting_has_a_limit():
    deep = A
    for _ in range(MAX_NESTING // 2):
        deep = (deep & B) | C
    with pytest.raises(QueryError, match="more than 100 deep"):
        deep & B
    assert deep.nesting == MAX_NESTING
    assert hash(deep) == hash(pickle.loads(pickle.dumps(deep)))
    assert repr(deep)
    wide = or_(*(equal("a", number) for number in range(10_000)))
    assert wide.nesting == 1


# Options and targets


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"prefx": 32}, "did you mean prefix?"),
        ({"useMap": True}, "did you mean use_map?"),
        ({"prefixOffset": 1}, "did you mean prefix_offset?"),
        ({"indexType": "x"}, "did you mean index_type?"),
        ({"banana": 1}, "the options are prefix, prefix_offset, use_map, index_all, index_type"),
        ({"prefix": 1}, "prefix is True, False or 32"),
        ({"prefix": 16}, "prefix is True, False or 32"),
        ({"prefix": "32"}, "prefix is True, False or 32"),
        ({"prefix_offset": -1}, "0 or more, not -1"),
        ({"prefix_offset": True}, "0 or more, not True"),
        ({"prefix_offset": 1.0}, "0 or more"),
        ({"use_map": 1}, "use_map is True or False"),
        ({"index_all": None}, "index_all is True or False"),
        ({"index_type": 5}, "the name of an index"),
        ({"index_type": ""}, "the name of an index"),
        ({"prefix": False, "use_map": True}, "use_map=True is about a prefix index"),
        ({"prefix": 0, "prefix_offset": 2}, "prefix_offset=2 is about a prefix index"),
        ({"prefix": 32, "index_all": True}, "leave one of them out"),
        ({"use_map": True, "index_all": True}, "use_map=True for a prefix index"),
    ],
)
def test_options_that_cannot_be(options, hint):
    for make in (lambda: equal("a", 1, **options), lambda: absent("a", **options)):
        with pytest.raises(QueryError, match=hint):
            make()


def test_own_keywords_are_suggested_too():
    with pytest.raises(QueryError, match=r"did you mean pluck\?"):
        includes("a", 1, plukc="b")


def test_options_imply_a_prefix():
    asked = [equal("a", 1, **options) for options in ({"use_map": True}, {"prefix_offset": 3}, {}, {"prefix": False})]
    assert [each.field.options.prefix for each in asked] == [32, 32, None, 0]


@pytest.mark.parametrize("make", [equal, includes, lambda field, value: absent(field)])
def test_a_function_needs_an_index_type(make):
    with pytest.raises(QueryError, match="index_type="):
        make(seek, 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda path: slow_equal(path, 1),
        lambda path: slow_includes(path, 1),
        slow_absent,
        lambda path: slow_predicate(path, is_even),
        lambda path: starts_with(path, "x"),
        lambda path: gt(1, path),
    ],
)
def test_where_only_paths_will_do(make):
    for wrong in (seek, 5, None):
        with pytest.raises(QueryError, match="takes a path"):
            make(wrong)
    for wrong in ("", (), ("a", 1.5), ("a", True), ("a", -1), "a[x]", "a[-1]", "a[0]b", ("a", 2**31)):
        with pytest.raises(QueryError, match=r"path|positions"):
            make(wrong)


def test_slow_names_are_the_same_operations():
    assert slow_equal("a", 1, prefix=32) == equal("a", 1, prefix=32)
    assert slow_includes("a", 1, pluck="b") == includes("a", 1, pluck="b")
    assert slow_absent("a", index_type="x") == absent("a", index_type="x")
    assert slow_predicate("a", is_even, version=1) == predicate("a", is_even, version=1)


@pytest.mark.parametrize(
    "nameless",
    [lambda value: True, functools.partial(is_even), type("Call", (), {"__call__": lambda self, value: True})()],
)
def test_predicates_need_a_name(nameless):
    with pytest.raises(QueryError, match=r"give name='...' or a named function"):
        predicate("a", nameless)
    assert predicate("a", nameless, name="x").name == "x"


@pytest.mark.parametrize(
    ("options", "hint"),
    [({"fn": 5}, "a function of the field's value"), ({"name": ""}, "not empty"), ({"name": 5}, "is a string")]
    + [({"version": wrong}, "the version of a predicate") for wrong in (-1, True, "1", 1.0)],
)
def test_predicates_that_cannot_be(options, hint):
    with pytest.raises(QueryError, match=hint):
        predicate("a", **{"fn": is_even, **options})


# field(...)


def test_field_makes_the_same_operations():
    a = field("a")
    assert (a == 1) == equal("a", 1)
    assert (a != 1) == not_(equal("a", 1))
    assert [a > 1, a >= 1, a < 1] == [gt(1, "a"), gte(1, "a"), lt(1, "a")]
    assert (a > 1) == gt(1, "a")
    assert (a == UNDEFINED) == absent("a")
    assert a.isin([]) == not_(everything())
    assert a.isin(["x"]) == equal("a", "x")
    assert (field("a")["b.c"] == 1) == equal(("a", "b.c"), 1)
    assert (field("a.b", "c") == 1) == equal(("a.b", "c"), 1)
    assert (field(("a.b", "c")) == 1) == equal(("a.b", "c"), 1)
    assert a.matches(is_even) == predicate("a", is_even)


@pytest.mark.parametrize(
    ("mistake", "hint"),
    [
        (lambda a: a == 1 & a == 2, "parentheses around each comparison"),
        (lambda a: a & (a == 1), "parentheses"),
        (lambda a: (a == 1) | a, "is no operation"),
        (lambda a: ~a, "compare it"),
        (lambda a: bool(a), "compare it"),
        (lambda a: a == a, "not with another field"),
        (lambda a: a < a, "not with another field"),
        (lambda a: a < "x", "as a time or a level only, and 'x' is neither"),
        (lambda a: a[-1], "count from 0"),
        (lambda a: a[1:], "a key, a position or `:`"),
        (lambda a: a[True], "a tuple of keys and positions"),
        (lambda a: a.isin("abc"), "takes a list of values"),
        (lambda a: a.isin(5), "takes a list of values"),
        (lambda a: a.starts_with(5), "text or bytes"),
        (lambda a: a.matches(lambda value: True), "give name="),
        (lambda a: a.matches("("), "no regular expression of RE2"),
        (lambda a: a.matches("x", "name"), "neither a name nor a version"),
        (lambda a: a.contains(5), "text or bytes to contain, not 5"),
        (lambda a: a.contains(b"x", ignore_case=True), "bytes have no case"),
        (lambda a: a.ends_with("x", ignore_case=1), "ignore_case is True or False"),
        (lambda a: a.like(b"x"), "a pattern such as 'A%'"),
        (lambda a: a.like("x\\"), "ends with a backslash"),
    ],
)
def test_mistakes_with_fields(mistake, hint):
    with pytest.raises(QueryError, match=hint):
        mistake(field("a"))


def test_a_field_is_not_iterable():
    with pytest.raises(TypeError):
        list(field("a"))


PLAIN = (None, 0, False, False, None, 0)


SEQS = b"\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0"


@pytest.mark.parametrize(
    ("operation", "identity"),
    [
        (equal("a.b", "x"), ("equal", (("a", "b"), PLAIN), b"\x05x")),
        (
            equal("a", 1.0, prefix_offset=1, use_map=True),
            ("equal", (("a",), (32, 1, True, False, None, 0)), b"\x04\x00\x00\x00\x00\x00\x00\xf0?\x00\x00"),
        ),
        (
            equal(seek, None, index_type="t", version=2),
            ("equal", (None, (None, 0, False, False, "t", 2)), b"\x01"),
        ),
        (includes("a", b"x", "b.c"), ("includes", (("a",), PLAIN), b"\x06x", ("b", "c"))),
        (predicate("a", str.isupper, version=3), ("predicate", (("a",), PLAIN), "isupper", 3)),
        (absent(("a.b", "c"), prefix=False), ("absent", (("a.b", "c"), (0, 0, False, False, None, 0)))),
        (starts_with("a", "x"), ("starts_with", ("a",), b"\x05x", False)),
        (field("a").contains("x", ignore_case=True), ("contains", ("a",), b"\x05x", True)),
        (gt(5, "timestamp"), ("gt", "timestamp", b"\x04\x00\x00\x00\x00\x00\x00\x14@\x00\x00")),
        (field("timestamp") <= 1.5, ("lte", ("timestamp",), b"\x04\x00\x00\x00\x00\x00\x00\xf8?\x00\x00")),
        (not_(seqs([2, 1]) | everything()), ("not", ("or", frozenset({("seqs", SEQS), ("everything",)})))),
    ],
)
def test_identities_are_made_of_the_parts(operation, identity):
    assert operation.identity == identity
