"""Rows of Arrow's tables as records of msgpack, many at once: the bytes that the codec makes of each."""

from __future__ import annotations

import datetime
import math
import random
from typing import Any

import numpy as np
import pytest

from jitdb.log.codecs import get_codec
from jitdb.log.codecs.table_rows import packed_rows, values_of_rows

pa = pytest.importorskip("pyarrow")
CODEC = get_codec("msgpack")


def packed(batch: Any) -> list[bytes]:
    found = packed_rows(batch)
    assert found is not None
    data, lengths = found
    ends = np.cumsum(lengths).tolist()
    assert len(data) == (ends[-1] if ends else 0)
    return [data[begin:end].tobytes() for begin, end in zip([0, *ends], ends, strict=False)]


def assert_as_encoded(batch: Any) -> None:
    assert packed(batch) == [CODEC.encode(row) for row in values_of_rows(batch)]


EDGES = sorted({sign * ((1 << bits) + near) for bits in range(64) for near in (-1, 0, 1) for sign in (1, -1)})
WHOLE = [each for each in EDGES if -(1 << 63) <= each < 1 << 63]
NUMBERS = [0.0, -0.0, 1.5, math.pi, 5e-324, 1.7976931348623157e308, math.inf, -math.inf]
TEXTS = ["", "a", "ä" * 15, "x" * 31, "x" * 32, "y" * 255, "y" * 256, "z" * 65535, "z" * 65536, "\x00", "🦊"]


def test_edges_of_each_form() -> None:
    columns: dict[str, tuple[list[Any], Any]] = {
        "whole": (WHOLE, pa.int64()), "small": ([*range(-128, 128)], pa.int8()), "byte": ([*range(256)], pa.uint8()),
        "double": (NUMBERS, pa.float64()), "single": ([1.5, -0.1, math.inf], pa.float32()),
        "word": ([True, False], pa.bool_()), "text": (TEXTS, pa.string()), "large": (TEXTS, pa.large_string()),
        "binary": ([each.encode() for each in TEXTS], pa.binary()),
        "day": ([datetime.date.min, datetime.date(1970, 1, 1), datetime.date.max], pa.date32()),
        "at": ([0, -1, 1_700_000_000_123_456], pa.timestamp("us", "UTC")),
    }  # fmt: skip
    for name, (values, kind) in columns.items():
        column = pa.array([None, *values, None], pa.int64() if name == "at" else kind).cast(kind)
        assert_as_encoded(pa.RecordBatch.from_arrays([column], names=[name]))
        assert_as_encoded(pa.RecordBatch.from_arrays([column.slice(1)], names=["a name of more than thirty-one bytes"]))


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 300])
def test_so_many_columns(count: int) -> None:
    columns = [pa.array([number, None, number]) for number in range(count)]
    assert_as_encoded(pa.RecordBatch.from_arrays(columns, names=[f"c{number}" for number in range(count)]))


def chosen_batch(chosen: random.Random, rows: int) -> Any:
    """Columns of chosen kinds, from the middle of longer ones."""
    makers: list[Any] = [
        lambda: pa.array([chosen.choice([None, *WHOLE]) for _ in range(rows + 9)], pa.int64()),
        lambda: pa.array([chosen.choice([None, *NUMBERS]) for _ in range(rows + 9)], pa.float64()),
        lambda: pa.array([chosen.choice([None, *TEXTS[:7]]) for _ in range(rows + 9)], pa.string()),
        lambda: pa.array([chosen.choice([None, True, False]) for _ in range(rows + 9)], pa.bool_()),
        lambda: pa.array(["a", None, "b"] * (rows + 9), pa.string()).dictionary_encode()[: rows + 9],
    ]
    columns = [chosen.choice(makers)().slice(chosen.randrange(9), rows) for _ in range(chosen.randrange(1, 20))]
    return pa.RecordBatch.from_arrays(columns, names=[f"{'n' * chosen.randrange(40)}{n}" for n in range(len(columns))])


def test_chosen_rows() -> None:
    chosen = random.Random(5)
    for _ in range(60):
        assert_as_encoded(chosen_batch(chosen, chosen.choice([0, 1, 7, 100])))


def test_what_is_left_to_the_codec() -> None:
    for column in (pa.array([[1]]), pa.array([{"a": 1}]), pa.array([2**63], pa.uint64()), pa.nulls(2)):
        assert packed_rows(pa.RecordBatch.from_arrays([column], names=["a"])) is None
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert packed_rows(twice) is None
    bad = pa.array([b"\xff"]).view(pa.string())
    assert packed_rows(pa.RecordBatch.from_arrays([bad], names=["a"])) is None
