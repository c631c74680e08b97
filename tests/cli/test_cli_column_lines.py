"""Columns as lines of text say what csv and json say of the same values, one by one."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import EXAMPLES

from jitdb.cli.output.column_lines import objects, separated
from jitdb.cli.output.separated import cell_text, separated_lines
from jitdb.common.json_text import line_of
from jitdb.common.values import ABSENT, NUMBER, UNDEFINED, value_key
from jitdb.engine.reading.selecting import CodedValues, FieldBatch
from jitdb.log.codecs.fields.located import FieldValues

_texts = st.text(st.sampled_from('a ,"\t\r\n\\=+-@\uff1d\uff0d\x00\x1f\x7fé\U0001f600'), max_size=6) | st.sampled_from(
    ["", "caf\udce9", "\\ud800", "plain words", "x" * 300, "ÿ" * 40]
)
_whole = st.integers(-(2**63), 2**64 - 1) | st.sampled_from([0, 2**53, -(2**62), 2**62, 2**63, 10**15, 10**18])
_decimals = st.builds(lambda number, power: number / 10**power, st.integers(-(10**16), 10**16), st.integers(0, 18))
_floats = st.floats() | _decimals | st.sampled_from([1e-4, 9.9e-5, 1e15, 1e16, 0.1 + 0.2, 5e-324])
_scalars = st.one_of(
    st.none(), st.booleans(), st.just(UNDEFINED), _texts, _whole, _floats, st.binary(max_size=5)
)  # fmt: skip
_values = _scalars | st.lists(st.integers() | _texts, max_size=3) | st.dictionaries(_texts, st.integers(), max_size=2)
_rows = st.integers(1, 3).flatmap(lambda width: st.lists(st.tuples(*[_values] * width), max_size=8))


def batch_of(rows: list[tuple[Any, ...]], names: list[str]) -> FieldBatch:
    fields = [FieldValues.of_keys(list(map(value_key, column))) for column in zip(*rows, strict=True)]
    if not rows:
        fields = [FieldValues.of_keys([]) for _ in names]
    nowhere = np.full(len(rows), -1)
    return FieldBatch(tuple((name, (name,)) for name in names), nowhere, nowhere, fields)


def cell(value: Any) -> Any:
    if value is UNDEFINED:
        return None
    return value if type(value) in (str, int, float, type(None)) else cell_text(value)


@given(_rows, st.sampled_from(["csv", "tsv"]), st.booleans())
@settings(max_examples=8 * EXAMPLES)
def test_cells_are_those_of_csv(rows: list[tuple[Any, ...]], form: str, escaping: bool) -> None:
    names = [f"c{number}" for number in range(len(rows[0]) if rows else 2)]
    batch = batch_of(rows, names)
    held = zip(*(batch.column(number) for number in range(len(names))), strict=True)
    wanted = separated_lines([names], form, escaping) + separated_lines(
        (map(cell, row) for row in held), form, escaping
    )
    assert b"".join(separated(names, [batch], form, escaping)) == wanted


@given(_rows)
@settings(max_examples=8 * EXAMPLES)
def test_objects_are_those_of_json(rows: list[tuple[Any, ...]]) -> None:
    names = ['a"b', "é", "$bytes"][: len(rows[0]) if rows else 2]
    batch = batch_of(rows, names)
    assert b"".join(objects(names, [batch])) == b"".join(map(line_of, batch.rows()))
    nowhere = np.full(2 * len(rows), -1)
    coded = FieldBatch(batch.selection, nowhere, nowhere, list(map(twice, batch.fields)))
    assert b"".join(objects(names, [coded, batch, coded])) == b"".join(map(line_of, 5 * batch.rows()))


def twice(values: FieldValues) -> CodedValues:
    """Each of the values, and all of them once more, by their places among more values."""
    return CodedValues(values, np.tile(np.arange(len(values.kind)), 2).astype(np.uint8))


def test_few_coded_values_behind_many_others() -> None:
    """Codes of a byte, of cells that have larger numbers."""
    count = 600
    plain = FieldValues.of_keys(list(map(value_key, range(count))))
    coded = CodedValues(FieldValues.of_keys([value_key("x"), value_key("y")]), np.arange(count, dtype=np.uint8) % 2)
    nowhere = np.full(count, -1)
    batch = FieldBatch((("a", ("a",)), ("b", ("b",))), nowhere, nowhere, [plain, coded])
    wanted = "a,b\n" + "".join(f"{number},{'xy'[number % 2]}\n" for number in range(count))
    assert b"".join(separated(["a", "b"], [batch], "csv", escaping=False)).decode() == wanted


@given(st.lists(_floats | _whole, min_size=1))
@settings(max_examples=8 * EXAMPLES)
def test_numbers_are_written_as_python_writes_them(numbers: list[float]) -> None:
    batch = batch_of([(number, 0) for number in numbers], ["a", "b"])
    text = b"".join(separated(["a", "b"], [batch], "csv", escaping=False)).decode()
    assert text.splitlines()[1:] == [f"{number!r},0" for number in batch.column(0)]


@pytest.mark.parametrize("bits", [0x3FB999999999999A + step for step in range(-8, 9)])
def test_neighbours_of_a_short_decimal(bits: int) -> None:
    (number,) = struct.unpack("<d", struct.pack("<q", bits))
    values = FieldValues.of_keys([value_key(number)])
    assert values.kind.tolist() == [NUMBER] != [ABSENT]
    batch = FieldBatch((("a", ("a",)),), np.zeros(1), np.zeros(1, np.int64), [values])
    assert b"".join(separated(["a"], [batch], "csv", escaping=False)) == f"a\n{number!r}\n".encode()
