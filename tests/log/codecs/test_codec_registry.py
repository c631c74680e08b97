"""Which codec: by name, or by looking at records; and raw, which has nothing to look at."""

from __future__ import annotations

import doctest
import importlib
import os
import random
import re
import subprocess
import sys
from typing import Any

import pytest
from codec_cases import DATA, json_maps, maps, records_of
from hypothesis import given
from hypothesis import strategies as st

from jitdb.common.values import UNDEFINED
from jitdb.errors import CodecError, DecodeError, EncodeError
from jitdb.log.codecs import CODEC_NAMES, Codec, get_codec, guess_codec

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", CODEC_NAMES)
def test_a_codec_by_name(name: str) -> None:
    codec = get_codec(name)
    assert isinstance(codec, Codec)
    assert codec.name == name
    assert get_codec(name) is codec
    assert get_codec(codec) is codec
    assert repr(codec) == f"<codec {name}>"


@pytest.mark.parametrize("name", ["", "JSON", "BIPF", "os", "base", "bipf_format", None, 5])
def test_an_unknown_codec(name: Any) -> None:
    with pytest.raises(CodecError, match="msgpack, bipf, json, raw"):
        get_codec(name)


def test_codecs_are_imported_when_asked_for() -> None:
    program = (
        "import sys, jitdb.log.codecs; sys.exit(any(name.startswith(('msgpack', 'numba')) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], env={**os.environ}, check=False).returncode == 0


@given(values=st.lists(maps, min_size=1, max_size=20).filter(any))
def test_random_maps_are_told_apart(values: list[dict[str, Any]]) -> None:
    for name in ("bipf", "msgpack"):
        assert guess_codec([get_codec(name).encode(value) for value in values]) == name


@given(values=st.lists(json_maps, min_size=1, max_size=20).filter(any))
def test_random_maps_of_json_are_told_apart(values: list[dict[str, Any]]) -> None:
    assert guess_codec([get_codec("json").encode(value) for value in values]) == "json"


def test_thousands_of_single_records_are_told_apart() -> None:
    bipf, msgpack = get_codec("bipf"), get_codec("msgpack")
    for record in records_of("ssb-5k.bipf"):
        assert not msgpack.is_valid(record)
        assert not bipf.is_valid(msgpack.encode(bipf.decode(record)))
    assert guess_codec(records_of("ssb-5k.bipf")) == "bipf"


def test_random_bytes_are_no_codec() -> None:
    chance = random.Random(3)
    for _ in range(3000):
        assert guess_codec([chance.randbytes(chance.randint(1, 40)) for _ in range(8)]) is None


@pytest.mark.parametrize(
    "records",
    [
        [],
        [bytes(5), bytes(100)],
        [b"type: post", b"type: vote"],
        [b"{}", b"{}"],
        [b"a", b"b"],
        [get_codec("bipf").encode([1, 2])],
        [get_codec("bipf").encode({}), get_codec("msgpack").encode({})],
        [get_codec("msgpack").encode(5)],
        [b"\x05", b"\x05"],
        [b"\x80"],
    ],
    ids=[
        "nothing",
        "deleted",
        "text",
        "json {}",
        "letters",
        "bipf array",
        "mixed",
        "msgpack scalar",
        "bipf {}",
        "msgpack {}",
    ],
)
def test_when_unsure_none(records: list[bytes]) -> None:
    assert guess_codec(records) is None


def test_deleted_records_say_nothing() -> None:
    for name in ("bipf", "msgpack"):
        record = get_codec(name).encode({"a": 1})
        assert guess_codec([bytes(9), record, bytes(40)]) == name
    assert guess_codec(records_of("ssb-5k-deleted.bipf")) == "bipf"


def test_only_the_first_records_are_looked_at() -> None:
    record = get_codec("msgpack").encode({"a": 1})
    assert guess_codec([record] * 100 + [b"\xc1"]) == "msgpack"


def test_raw() -> None:
    raw = get_codec("raw")
    for value in (b"abc", bytearray(b"abc"), memoryview(b"abc")):
        assert raw.encode(value) == b"abc"
        assert raw.decode(value) == b"abc"
        assert type(raw.encode(value)) is type(raw.decode(value)) is bytes
        assert raw.find(value, ("a",)) is UNDEFINED
        assert raw.decode_at(value, 1) == b"bc"
        assert raw.is_valid(value)
    with pytest.raises(EncodeError, match=r"stores bytes, not .* str"):
        raw.encode("abc")
    with pytest.raises(DecodeError):
        raw.decode_at(b"abc", 4)


MODULES = ["", ".raw", ".msgpack.codec", ".bipf.codec", ".bipf.format", ".bipf.encode", ".bipf.decode"]


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_in_the_docstrings(module: str) -> None:
    assert doctest.testmod(importlib.import_module(f"jitdb.log.codecs{module}")).failed == 0


def test_the_worked_examples_in_the_docs() -> None:
    page = (DATA.parents[1] / "docs" / "format-codecs.md").read_text()
    value = {"type": "post", "n": 300, "ok": [True, None, 0.5]}
    sections = page.split("\n## ")
    for name in ("bipf", "msgpack"):
        section = next(part for part in sections if part.startswith(name))
        lines = re.findall(r"(?m)^    +((?:[0-9a-f]{2} )+) ", section)
        assert bytes.fromhex("".join(lines)) == get_codec(name).encode(value)
