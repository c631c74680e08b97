"""Codecs of one's own: the program of docs/format-codecs.md runs as it stands, and questions find their fields."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, ClassVar

import pytest
from codec_cases import CodecTests
from doc_blocks import ROOT
from doc_blocks import Page as DocPage
from hypothesis import strategies as st
from own_codec import Masked, masked, registered_here

import jitdb
from jitdb import JITDB, Log
from jitdb.errors import CodecError, DecodeError, EncodeError, QueryError
from jitdb.log import codecs
from jitdb.log.codecs.base import Buffer, Codec
from jitdb.log.codecs.msgpack.codec import find_span
from jitdb.operators import absent, equal, includes, predicate

pytestmark = pytest.mark.slow


class TestMasked(CodecTests):
    codec = Masked()


def test_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the codecs that it has locators for pass the tests that it names."""
    monkeypatch.chdir(tmp_path)
    known: dict[str, Any] = {}
    with registered_here(alone=True):
        assert DocPage.read(ROOT / "docs" / "format-codecs.md").run(known) == 10

        class TestSamples(CodecTests):
            codec = known["Samples"]()
            values = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=4).map(lambda each: {"samples": each})
            paths = (("samples",), ("nowhere",), ("samples", "0"))

        for name in [name for name in dir(CodecTests) if name.startswith("test_")]:
            for tests in (known["TestReadings"](), TestSamples()):
                folder = tmp_path / type(tests).__name__
                folder.mkdir(exist_ok=True)
                getattr(tests, name)(**({"tmp_path": folder} if name.startswith("test_a_log") else {}))


class TestJson(CodecTests):
    """JSON, found by decoding; what stands behind a position is not looked at."""

    class Json(Codec):
        name = "texts"

        def encode(self, value: Any) -> bytes:
            try:
                return json.dumps(value, allow_nan=False).encode()
            except (TypeError, ValueError, RecursionError) as error:
                raise EncodeError(str(error)) from error

        def decode(self, record: Buffer) -> Any:
            return self.decode_at(record, 0, whole=True)

        def decode_at(self, record: Buffer, position: int, whole: bool = False) -> Any:
            if not 0 <= position < len(record):
                raise DecodeError("outside")
            try:
                text = bytes(record[position:]).decode()
                value, end = json.JSONDecoder().raw_decode(text)
                json.dumps(value, ensure_ascii=False).encode()  # half a pair of surrogates is no text
            except (ValueError, RecursionError) as error:
                raise DecodeError(str(error)) from error
            if whole and end != len(text):
                raise DecodeError("bytes follow the value")
            return value

    codec = Json()


def test_a_registered_codec_is_known_by_its_name_and_by_its_records(tmp_path: Path) -> None:
    with registered_here():
        with Log(tmp_path / "log", codec=Masked()) as log:
            log.append({"a": 1})
        with pytest.raises(
            CodecError, match="there is no codec 'masked': jitdb knows msgpack, bipf, json, raw"
        ) as caught:
            Log(tmp_path / "log")
        assert caught.value.remedy is not None
        assert "register_codec" in caught.value.remedy.python
        jitdb.register_codec(Masked())
        jitdb.register_codec(Masked())
        with jitdb.open(tmp_path / "log", read_only=True) as db:
            assert db.count(equal("a", 1)) == 1
        shutil.rmtree(tmp_path / "log.jitdb")
        with Log(tmp_path / "log") as log:
            assert log.codec.name == "masked"
        with pytest.raises(CodecError, match="'masked' is that of another codec"):
            jitdb.register_codec(Dated.named("masked"))
        with pytest.raises(CodecError, match="jitdb's own"):
            jitdb.register_codec(OfThatName())


def test_a_package_names_its_codecs_in_its_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "masked-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Name: masked\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[jitdb.codecs]\nmasked = own_codec:Masked\nother = own_codec:Masked\n")
    monkeypatch.syspath_prepend(package.parent)
    with registered_here():
        assert type(codecs.get_codec("masked")) is Masked
        with pytest.raises(CodecError, match="makes no codec 'other'"):
            codecs.get_codec("other")


def colour(record: bytes, start: int) -> int | None:
    span = find_span(masked(record), ("colour",))
    return None if span is None else span[0]


def test_a_function_that_finds_the_field(tmp_path: Path) -> None:
    colours: list[Any] = ["red", "blue", None, ["red", "green"], 7]
    with Log(tmp_path / "log", codec=Masked()) as log:
        log.append_many([*({"colour": each} for each in colours), {}])
        log.flush()
        db = JITDB(log)
        assert db.count(equal(colour, "red", index_type="colour")) == 1
        assert db.count(includes(colour, "red", index_type="colour")) == 2
        assert db.count(absent(colour, index_type="colour")) == 1
        assert db.count(predicate(colour, lambda value: value == 7, name="seven", index_type="colour")) == 1


def test_a_record_that_is_none_is_told_of_and_has_no_fields(tmp_path: Path) -> None:
    with Log(tmp_path / "log", codec="raw") as log:
        log.append_many([Masked().encode({"a": 1}), masked(b"\xc1 no msgpack"), Masked().encode({})])
    with Log(tmp_path / "log", codec=Masked()) as log:
        db = JITDB(log)
        assert (db.count(equal("a", 1)), db.count(absent("a"))) == (1, 2)


class Dated(Masked):
    name = "dated"

    @classmethod
    def named(cls, name: str) -> Codec:
        return type("Other", (cls,), {"name": name})()  # type: ignore[no-any-return]

    def decode(self, record: Any) -> Any:
        found = super().decode(record)
        return {"a": {1, 2}} if found == {"a": "a set"} else found


def test_a_field_that_is_no_value(tmp_path: Path) -> None:
    with Log(tmp_path / "log", codec=Dated()) as log:
        log.append_many([{"a": 1}, {"a": "a set"}])
        log.flush()
        with pytest.raises(QueryError, match=r"the codec 'dated' finds a value of type set, which cannot be asked for"):
            JITDB(log).count(equal("a", 1))


class Replacing(Masked):
    """Finds in the place of some text what no log can hold."""

    name = "replacing"
    value: ClassVar[Any] = None

    def decode(self, record: Any) -> Any:
        return {name: self.value if found == "odd" else found for name, found in super().decode(record).items()}

    def decode_at(self, record: Any, position: int) -> Any:
        found = super().decode_at(record, position)
        return self.value if found == "odd" else found


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, 10**400, "half \ud800", [1, {"deep": 2**70}], {1, 2}])
@pytest.mark.parametrize("name", ["timestamp", "colour"])
def test_the_record_of_what_cannot_be_asked_for_is_named(
    tmp_path: Path, value: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Replacing, "value", value)
    with Log(tmp_path / "log", codec=Replacing(), block_size=256) as log:
        offsets = log.append_many([{name: number} for number in range(100)] + [{name: "odd"}, {name: 1}])
        log.delete(offsets[3])
        log.flush()
        said = rf"in the record at offset {offsets[100]} the codec 'replacing' finds .*which cannot be asked for"
        with pytest.raises(QueryError, match=said):
            JITDB(log).all(equal(name, 1))
        with pytest.raises(QueryError, match=said):
            JITDB(log).count(equal(colour if name == "colour" else name, 1, index_type="odd"))


@pytest.mark.parametrize("value", [2**64 - 1, -(2**63), 2**53 + 1])
def test_large_integers_are_located_exactly(tmp_path: Path, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Replacing, "value", value)
    with Log(tmp_path / "log", codec=Replacing()) as log:
        offsets = log.append_many([{"timestamp": each} for each in (1, "odd", value - 1 if value > 0 else value + 1)])
        log.flush()
        db = JITDB(log, time_unit="number")
        assert db.all(equal("timestamp", value), as_offsets=True) == offsets[1:2]
        ordered = [offsets[0], offsets[2], offsets[1]] if value > 0 else [offsets[1], offsets[2], offsets[0]]
        assert db.all(as_offsets=True) == ordered


class OfThatName(Masked):
    name = "msgpack"


def test_it_has_a_name_of_its_own(tmp_path: Path) -> None:
    """The kernels, and whoever opens the log by its name, would take the records for what they are not."""
    with pytest.raises(CodecError, match="the name 'msgpack' is that of jitdb's own codec; choose another name"):
        Log(tmp_path / "log", codec=OfThatName())
    assert not any(tmp_path.iterdir())
