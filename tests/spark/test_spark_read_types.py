"""Types within types, below Spark: variants and structs in arrays and maps, promises of no nulls, narrow positions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reading_cases import table_rows

from jitdb import Log
from jitdb.errors import QueryError

pytest.importorskip("pyspark")

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    VariantType,
    VariantVal,
)

from jitdb.common.values import UNDEFINED
from jitdb.spark_ext.errors import RecordMismatch
from jitdb.spark_ext.reading.schema import layout_of

VARIANT, LONG, STRING = VariantType(), LongType(), StringType()


def of(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def log_of(path: Path, records: list[Any], codec: str = "msgpack") -> list[int]:
    with Log(path, codec=codec) as log:
        return log.append_many(records)


def python(value: Any) -> Any:
    """What a cell says; a variant is the value that it holds."""
    if isinstance(value, dict) and set(value) == {"value", "metadata"} and isinstance(value["metadata"], bytes):
        return VariantVal(value["value"], value["metadata"]).toPython()
    if isinstance(value, dict):
        return {key: python(item) for key, item in value.items()}
    if isinstance(value, list):
        return [python(item) for item in value]
    return (value[0], python(value[1])) if isinstance(value, tuple) else value


# --- variants --------------------------------------------------------------------------------------------------------

KEYS_OF_A_VARIANT = {"value": "x", "metadata": "y"}  # what a variant is made of, as a record's own


@pytest.mark.parametrize(
    ("kind", "held", "expected"),
    [
        (VARIANT, KEYS_OF_A_VARIANT, KEYS_OF_A_VARIANT),
        (
            ArrayType(VARIANT),
            [KEYS_OF_A_VARIANT, {"q": [1]}, 5, None, "t"],
            [KEYS_OF_A_VARIANT, {"q": [1]}, 5, None, "t"],
        ),
        (MapType(STRING, VARIANT), {"k": {"q": 1}, "l": [2]}, [("k", {"q": 1}), ("l", [2])]),
        (of(v=VARIANT), {"v": {"q": 1}}, {"v": {"q": 1}}),
        (ArrayType(of(v=VARIANT)), [{"v": [1, "x"]}, {}], [{"v": [1, "x"]}, {"v": None}]),
        (MapType(STRING, ArrayType(VARIANT)), {"k": [1, {"a": True}]}, [("k", [1, {"a": True}])]),
        (ArrayType(ArrayType(VARIANT)), [[1], [{"value": 2}]], [[1], [{"value": 2}]]),
    ],
)
@pytest.mark.parametrize("codec", ["msgpack", "bipf"])
def test_variants_wherever_they_stand(tmp_path: Path, codec: str, kind: DataType, held: Any, expected: Any) -> None:
    log_of(tmp_path / "x.log", [{"a": held}, {"a": None}, {}], codec)
    rows = table_rows(tmp_path / "x.log", schema=of(a=kind))
    assert [python(row["a"]) for row in rows] == [expected, None, None]


# --- arrays of what is decoded ---------------------------------------------------------------------------------------


def test_arrays_of_structs(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    offsets = log_of(path, [{"a": [[{"n": 1, "m": 2}], []]}, {"a": 5}, {"a": [[{"n": 1}, 7]]}, {"a": [3]}])
    schema = of(a=ArrayType(ArrayType(of(n=LONG))))
    rows = table_rows(path, schema=schema, mode="PERMISSIVE")
    assert [row["a"] for row in rows] == [[[{"n": 1}], []], None, [[{"n": 1}, None]], [None]]
    with pytest.raises(RecordMismatch) as caught:
        table_rows(path, schema=schema)
    assert caught.value.offset == offsets[1]


def test_undefined_is_no_element(tmp_path: Path) -> None:
    log_of(tmp_path / "x.log", [{"a": [UNDEFINED, {"n": 1}, UNDEFINED], "b": [UNDEFINED, 2]}], "bipf")
    rows = table_rows(tmp_path / "x.log", schema=of(a=ArrayType(of(n=LONG)), b=ArrayType(LONG)))
    assert rows == [{"a": [{"n": 1}], "b": [2]}]


@pytest.mark.parametrize(
    ("kind", "slow"),
    [
        (LONG, False), (ArrayType(ArrayType(STRING)), False), (of(a=LONG, b=ArrayType(LONG)), False),
        (MapType(STRING, LONG), True), (VARIANT, True), (ArrayType(of(a=LONG)), True),
        (ArrayType(ArrayType(VARIANT)), True), (of(a=of(b=MapType(STRING, LONG))), True), (of(a=VARIANT), True),
    ],
)  # fmt: skip
def test_which_columns_are_decoded_record_by_record(kind: DataType, slow: bool) -> None:
    assert layout_of(of(x=LONG, a=kind), None, ()).is_slow is slow


# --- promises --------------------------------------------------------------------------------------------------------

NEVER_NULL = StructType([StructField("n", LONG, nullable=False)])


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (ArrayType(LONG, containsNull=False), "an element"),
        (MapType(STRING, LONG, valueContainsNull=False), "a map's value"),
        (ArrayType(NEVER_NULL), "the field 'n'"),
        (MapType(STRING, ArrayType(of(m=NEVER_NULL))), "the field 'n'"),
        (of(a=ArrayType(ArrayType(LONG, containsNull=False))), "an element"),
    ],
)
def test_what_is_within_arrays_and_maps_promises_nothing(kind: DataType, words: str) -> None:
    with pytest.raises(QueryError, match=f"where {words} cannot be null"):
        layout_of(of(a=kind), None, ())


def test_the_whole_record_promises_nothing() -> None:
    whole = StructType([StructField("a", NEVER_NULL, True, {"jitdb": {"core": "*"}})])
    with pytest.raises(QueryError, match="the field 'n' cannot be null"):
        layout_of(whole, None, ())
    assert layout_of(of(a=NEVER_NULL), None, ()).nodes[0].children[0].nullable is False  # which is checked


# --- positions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ByteType(), ShortType(), IntegerType(), LONG, DoubleType(), STRING, VARIANT])
def test_positions_as_other_types(tmp_path: Path, kind: DataType) -> None:
    path = tmp_path / "x.log"
    offsets = log_of(path, [{"n": number, "text": "x" * 300} for number in range(300)])
    most = {"tinyint": 127, "smallint": 32767}.get(kind.simpleString(), 1 << 31)
    text = str if kind == STRING else int
    for name, places in [("seq", range(300)), ("offset", offsets)]:
        rows = table_rows(path, schema=StructType([StructField(name, kind)]), mode="PERMISSIVE")
        assert [python(row[name]) for row in rows] == [text(place) if place <= most else None for place in places]
        misfits = [offset for offset, place in zip(offsets, places, strict=True) if place > most]
        if misfits:
            with pytest.raises(RecordMismatch, match=f"does not fit the column {name!r}") as caught:
                table_rows(path, schema=StructType([StructField(name, kind)]))
            assert caught.value.offset == misfits[0]


def test_positions_beyond_what_a_double_counts() -> None:
    import numpy as np
    import pyarrow as pa

    from jitdb.common.values import NUMBER
    from jitdb.log.codecs.arrow_columns import column
    from jitdb.log.codecs.fields.constants import KEYS
    from jitdb.log.codecs.fields.located import FieldValues
    from jitdb.spark_ext.reading.batches import halves

    numbers = np.array([2**53 + 1, 2**53 - 1, 2**62 + 255, 2**31], np.int64)
    hi, lo = halves(numbers)
    values = FieldValues(
        KEYS, np.empty(0, np.uint8), np.full(4, NUMBER, np.uint8), np.zeros(4, np.int32), lo.astype("i4"), hi
    )
    assert column(pa.int64(), values, lambda wrong: None).to_pylist() == numbers.tolist()
    assert column(pa.string(), values, lambda wrong: None).to_pylist() == list(map(str, numbers.tolist()))
