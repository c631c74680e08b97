"""docs/format-index.md says what the code does, byte for byte."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from index_cases import make_bitmaps, make_prefixes
from pyroaring import BitMap

from jitdb.common.values import KIND_NAMES, value_key
from jitdb.engine.answering.coded_column import REPEATED, WORTH_KEEPING
from jitdb.indexes import hashing, segment
from jitdb.indexes.files.file import LogName
from jitdb.indexes.files.index import FAN_IN, Index
from jitdb.indexes.hashing import hash_key
from jitdb.indexes.kinds.bitmaps import FEW_VALUES, MAX_VALUE_BYTES, MAX_VALUES, RECORDS_A_VALUE
from jitdb.indexes.kinds.codes import codes_segment
from jitdb.indexes.kinds.dictionary import DictionaryColumn, dictionary_keys, values_of_keys
from jitdb.indexes.kinds.grams import Rows
from jitdb.indexes.kinds.kernels.grams import ROWS
from jitdb.indexes.spec import IndexSpec
from jitdb.indexes.vocabulary import Vocabulary

TEXT = (Path(__file__).parents[2] / "docs" / "format-index.md").read_text()


def test_the_example(tmp_path: Path) -> None:
    rows = re.findall(r"^    ([0-9a-f]{4})  ((?:[0-9a-f]{2} )*[0-9a-f]{2})(?:  .*)?$", TEXT, re.MULTILINE)
    example = b""
    for address, row in rows:
        assert int(address, 16) == len(example)
        example += bytes.fromhex(row)
    spec = IndexSpec("auto", (("type",),))
    index = Index(spec, LogName(bytes(range(16)), 1), tmp_path / spec.file_name())
    index.append(make_bitmaps([b"\0", value_key("post")], [BitMap([2]), BitMap([0, 3])], (0, 4, 0, 57)))
    assert f"`{spec.file_name()}`, has {len(example)} bytes" in TEXT
    assert (tmp_path / spec.file_name()).read_bytes() == example


@pytest.mark.parametrize(
    ("shown", "value"),
    [
        ('"post"', "post"),
        ("300", 300),
        ("2**53 + 1", 2**53 + 1),
        ('[1, "a"]', [1, "a"]),
        ('{"b": null, "a": true}', {"b": None, "a": True}),
    ],
)
def test_keys(shown: str, value: object) -> None:
    assert f"    {shown:<22} {value_key(value).hex(' ')}\n" in TEXT


@pytest.mark.parametrize(
    ("shown", "value"),
    [
        ('hash of "post"', "post"),
        ("hash of 300", 300),
        ("hash of []", []),
        ('hash of [1, "a"]', [1, "a"]),
        ('hash of {"b": null, "a": true}', {"b": None, "a": True}),
    ],
)
def test_hashes(shown: str, value: object) -> None:
    assert f"    {shown:<22} {hash_key(value_key(value)):016x}\n" in TEXT


@pytest.mark.parametrize("gram", ["9f3a", "time", "/api"])
def test_rows_of_grams(gram: str) -> None:
    shown = f'row of "{gram}"'
    assert f"    {shown:<22} {max(Rows.of([gram.encode()]))[0]}\n" in TEXT
    assert f"of {ROWS:,} rows" in TEXT


def test_numbers_that_never_change() -> None:
    assert f"SPAN = {segment.SPAN:,} *" in TEXT
    kinds = ("PREFIXES", "PREFIX_MAP", "NUMBERS", "OFFSETS", "SET", "GRAMS")
    versions = {name: segment.LAYOUTS[getattr(segment, name)].version for name in kinds}
    assert versions == {"PREFIXES": 3, "PREFIX_MAP": 3, "NUMBERS": 13, "OFFSETS": 3, "SET": 1, "GRAMS": 2}
    assert "13 of NUMBERS, 3 of OFFSETS, PREFIXES and PREFIX_MAP, 2 of GRAMS, 1 of the others" in TEXT
    assert f"zone of {segment.ZONE:,} records" in TEXT
    for name in ("BITMAPS", "PREFIXES", "PREFIX_MAP", "NUMBERS", "OFFSETS", "SET", "DICTIONARY", "GRAMS", "CODES"):
        assert f"{getattr(segment, name)} {name}" in TEXT
    assert f"P1 = {hashing.P1:#x}, P2 = {hashing.P2:#x}" in TEXT
    kinds = "".join(re.findall(r"^\| (\d.*?) \|", TEXT.split("| kind * |")[1], re.MULTILINE))
    for number, name in enumerate(KIND_NAMES):
        assert f"{number} {name}" in kinds


def test_a_bucket() -> None:
    made = make_prefixes(BitMap([1, 2]), np.array([0, 0x61626364, 7], np.uint32), 1, (0, 3, 0, 100))
    assert f"    {bytes(made.blob(1)).hex(' ')}\n" in TEXT


def test_codes() -> None:
    made = Vocabulary()
    for keys in ((b"\5a", b"\5b"), (b"\5b", b"\5c")):
        dictionary = DictionaryColumn(values_of_keys(keys), np.array([1, 2], np.uint32), 0).segment((0, 2, 0, 100))
        before, numbers = len(made), made.number(dictionary_keys(dictionary))
        found = codes_segment(dictionary, before, numbers, made.keys.between(before, len(made)))
    assert numbers.tolist() == [2, 3]
    shown = [bytes(found.blob(number)).hex(" ") for number in range(4)]
    assert f"blob 0 of the second   {shown[0]}\n" in TEXT
    for number in (1, 2, 3):
        assert f"    blob {number}                 {shown[number]}\n" in TEXT
    assert f"{WORTH_KEEPING:,} values or more" in TEXT
    assert REPEATED == 2  # "in two segments or more"


def test_limits() -> None:
    assert (FAN_IN, FEW_VALUES, RECORDS_A_VALUE) == (8, 256, 16)
    assert (MAX_VALUES, MAX_VALUE_BYTES) == (65_536, 16 << 20)
    # In the middle of a scan, at a full span, only these two are looked at: the others must not be lower there.
    assert segment.SPAN // RECORDS_A_VALUE >= MAX_VALUES


def test_the_spec(tmp_path: Path) -> None:
    names = re.findall(r"^\| `(\w+)` \| `(.*?)` \|", TEXT, re.MULTILINE)
    defaults = IndexSpec("auto")
    fields = {name: json.loads(default if name != "form" else f'"{default}"') for name, default in names}
    assert list(fields) == list(IndexSpec._fields)
    for name, default in fields.items():
        held = getattr(defaults, name)
        assert (list(held) if isinstance(held, tuple) else held) == default
