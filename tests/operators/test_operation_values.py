"""The values and positions that operations hold: what becomes of what users write, and what is none."""

import enum
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jitdb.operators as operators
from jitdb.common.values import UNDEFINED
from jitdb.errors import QueryError
from jitdb.operators import (
    equal,
    field,
    gt,
    gte,
    lt,
    offsets,
    seqs,
)
from jitdb.operators.nodes.compare import Compare

# Values


class Colour(enum.StrEnum):
    RED = "red"

    def __str__(self):
        return "not the value"


class Level(enum.IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    ("given_value", "held"),
    [
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (np.str_("x"), "x"),
        (np.bytes_(b"x"), b"x"),
        (np.bool_(True), True),
        (np.float64(1.5), 1.5),
        (bytearray(b"x"), b"x"),
        (memoryview(b"x"), b"x"),
        ((1, (2,)), [1, [2]]),
        ([np.int64(1)], [1]),
        ({"a": (1,)}, {"a": [1]}),
    ],
)
def test_values_become_plain(given_value, held):
    value = equal("a", given_value).value
    assert value == held
    assert type(value) is type(held)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ({1, 2}, "cannot hold a set"),
        (object(), "cannot hold an object"),
        (1j, "cannot hold a complex"),
        (np.array([1, 2]), "tolist"),
        (np.datetime64("2020-01-01"), "cannot hold a date"),
        (np.longdouble(1), "cannot hold a longdouble"),
        ([UNDEFINED], "use absent"),
        ({(1, 2): 3}, "a key of a map"),
        ("\ud800", "lone surrogate"),
        (["\ud800"], "lone surrogate"),
        ({"\ud800": 1}, "lone surrogate"),
    ],
)
def test_values_that_no_record_holds(value, hint):
    with pytest.raises(QueryError, match=hint):
        equal("a", value)


def test_a_list_that_contains_itself():
    endless = []
    endless.append(endless)
    with pytest.raises(QueryError, match="more than 100 deep"):
        equal("a", endless)


def test_extension_values_can_be_asked_for():
    import msgpack

    assert equal("a", msgpack.ExtType(1, b"x")) != equal("a", msgpack.ExtType(2, b"x"))
    assert equal("a", [msgpack.Timestamp(1)]) == equal("a", [msgpack.Timestamp(1)])


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (True, "True is a bool"),
        (np.bool_(True), "True is a bool"),
        (math.nan, "NaN"),
        ("5", "as a time or a level only, and '5' is neither"),
        (None, "None is a NoneType"),
        ([1], "is a list"),
    ],
)
def test_only_numbers_are_compared(value, hint):
    for compare in (gt, gte, lt, operators.lte):
        with pytest.raises(QueryError, match=hint):
            compare(value, "a")


def test_swapped_arguments_of_a_comparison():
    with pytest.raises(QueryError, match=r"comes first, then the index: gt\(5, 'timestamp'\)"):
        gt("timestamp", 5)


def test_names_of_derived_indexes_and_fields_of_the_same_name():
    match gt(5, "timestamp"), gt(5, ("timestamp",)), field("timestamp") > 5:
        case Compare(index=derived), Compare(index=path), Compare(index=compared):
            assert (derived, path, compared) == ("timestamp", ("timestamp",), ("timestamp",))
    assert gt(2**70, "a").value == 2**70
    assert gt(math.inf, "a").value == math.inf


# Positions


@pytest.mark.parametrize(
    "positions",
    [
        [3, 1, 2],
        (3, 1, 2),
        range(1, 4),
        iter([1, 2, 3]),
        np.array([1, 2, 3]),
        np.array([1, 2, 3], dtype="u1"),
        np.array([[1], [2], [3]])[:, 0],
        [np.int32(1), 2, np.uint64(3)],
        {1, 2, 3},
    ],
)
def test_positions_from_any_iterable(positions):
    assert seqs(positions) == seqs([1, 2, 3])


def test_positions_from_a_bitmap():
    from pyroaring import BitMap

    assert seqs(BitMap([1, 2])) == seqs([1, 2])


@given(st.lists(st.integers(0, 2**64 - 1)))
def test_positions_keep_what_they_were_given(numbers):
    assert list(seqs(numbers)) == numbers
    assert len(offsets(numbers)) == len(numbers)
    assert np.frombuffer(seqs(numbers).packed, dtype="<u8").tolist() == numbers


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ([-1], "from 0 to .* not -1"),
        ([2**64], "from 0"),
        ([1.0], "1.0 is a float"),
        ([True], "True is a bool"),
        (["1"], "is a str"),
        (5, "an iterable"),
        ("12", "an iterable"),
        (np.array([[1, 2]]), "is a list"),
        (np.array([1.5]), "is a float"),
        (np.array(5), "an iterable"),
    ],
)
def test_positions_that_are_none(wrong, hint):
    for make in (seqs, offsets):
        with pytest.raises(QueryError, match=hint):
            make(wrong)
