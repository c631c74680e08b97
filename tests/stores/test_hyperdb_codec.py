"""The codec of feeds: bytes to values and back, and every question over a feed's log."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from feed_records import (
    BROKEN,
    ENTRY,
    HEADER,
    VECTORS,
    feeds_of_vectors,
    field,
    messages,
    records_of_vectors,
    said_by,
    segments_in,
    values,
)
from hypothesis import given, settings
from own_codec import name_codecs, registered_here
from thoroughness import tries

import jitdb
from jitdb import JITDB, Log
from jitdb.common.values import value_key
from jitdb.errors import DecodeError, EncodeError
from jitdb.log.codecs import guess_codec
from jitdb.operators import absent, and_, equal, includes, not_, or_, predicate
from jitdb.operators import field as asked
from jitdb.stores.hyperdb.codec import HyperdbCodec
from jitdb.testing.codecs import CodecTests

ROOT = Path(__file__).parents[2]
CODEC = HyperdbCodec()
EXAMPLES = tries(60, 1000)


class TestHyperdb(CodecTests):
    tries = tries(20, 600)
    codec = CODEC
    values = values
    paths = (
        ("key",), ("value",), ("deleted",), ("trie",), ("clock",), ("inflate",), ("feeds",), ("contentFeed",),
        ("path",), ("path", "0"), ("path", "1"), ("path", "10"), ("protocol",), ("nowhere",), ("key", "0"),
    )  # fmt: skip


# --- one record ------------------------------------------------------------------------------------------------------


def test_vectors_round_trip_byte_for_byte() -> None:
    records = records_of_vectors()
    assert records
    for record in records:
        assert CODEC.encode(CODEC.decode(record)) == record


def test_vectors_split_keys_alike() -> None:
    hashes = [json.loads(file.read_text()) for file in VECTORS.glob("path-hashes*.json")]
    for case in [case for each in hashes for case in (*each["edge"], *each["keys"])]:
        found = CODEC.decode(CODEC.encode({"key": case["stored_key"], "trie": b""}))
        assert found["path"] == {str(number): each for number, each in enumerate(case["segments"])}
        assert segments_in(case["stored_key"]) == case["segments"]  # what the other tests go by


@settings(max_examples=EXAMPLES, deadline=None)
@given(messages)
def test_what_any_writer_says_is_read(written: list[Any]) -> None:
    record, said = b"".join(part.raw for part in written), said_by(written)
    if said is not None:
        assert CODEC.decode(record) == said
    else:
        with pytest.raises(DecodeError):
            CODEC.decode(record)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_record_is_refused_with_a_position(name: str) -> None:
    with pytest.raises(DecodeError) as caught:
        CODEC.decode(BROKEN[name])
    assert caught.value.position is not None
    assert 0 <= caught.value.position <= len(BROKEN[name])
    assert not CODEC.is_valid(BROKEN[name])


@pytest.fixture(scope="module")
def parse() -> Callable[[bytes], Any]:
    """What the library of protobuf's makers reads, by the schema of the format's document."""
    pytest.importorskip("google.protobuf", reason="protobuf is not installed")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="hyperdb.proto", package="hyperdb", syntax="proto2")
    feed = file.message_type.add(name="Feed")
    feed.field.add(name="key", number=1, type=kind.TYPE_BYTES, label=kind.LABEL_REQUIRED)
    entry = file.message_type.add(name="InflatedEntry")
    for number, (name, of, label) in enumerate([
        ("key", kind.TYPE_STRING, kind.LABEL_REQUIRED), ("value", kind.TYPE_BYTES, kind.LABEL_OPTIONAL),
        ("deleted", kind.TYPE_BOOL, kind.LABEL_OPTIONAL), ("trie", kind.TYPE_BYTES, kind.LABEL_REQUIRED),
        ("clock", kind.TYPE_UINT64, kind.LABEL_REPEATED), ("inflate", kind.TYPE_UINT64, kind.LABEL_OPTIONAL),
        ("feeds", kind.TYPE_MESSAGE, kind.LABEL_REPEATED), ("contentFeed", kind.TYPE_BYTES, kind.LABEL_OPTIONAL),
    ], start=1):  # fmt: skip
        entry.field.add(name=name, number=number, type=of, label=label)
    entry.field[6].type_name = ".hyperdb.Feed"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("hyperdb.InflatedEntry")).FromString


def as_said(message: Any) -> dict[str, Any]:
    """A message of the library as the codec has it, but for the path."""
    said = {"key": message.key, "deleted": message.deleted, "trie": message.trie, "clock": list(message.clock)}
    said |= {name: getattr(message, name) for name in ("value", "inflate", "contentFeed") if message.HasField(name)}
    return said | ({"feeds": [feed.key for feed in message.feeds]} if message.feeds else {})


@settings(max_examples=EXAMPLES, deadline=None)
@given(written=messages)
def test_protobufs_own_library_reads_the_same(parse: Any, written: list[Any]) -> None:
    record = b"".join(part.raw for part in written)
    try:
        found = CODEC.decode(record)
    except DecodeError:
        return
    if "protocol" not in found:
        assert as_said(parse(record)) == {name: found[name] for name in found if name != "path"}


@settings(max_examples=EXAMPLES, deadline=None)
@given(value=values)
def test_protobufs_own_library_writes_the_same(parse: Any, value: dict[str, Any]) -> None:
    record = CODEC.encode(value)
    if "protocol" not in value:
        assert parse(record).SerializeToString() == record


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "an entry of a feed is a dict"),
        (b"bytes", "an entry of a feed is a dict"),
        ({}, "key: every entry has one"),
        ({"key": "a"}, "trie: every entry has one"),
        ({"trie": b""}, "key: every entry has one"),
        ({"protocol": "hyperdrive"}, "the header of a feed"),
        ({"protocol": "hyperdb", "key": "a"}, "the header of a feed"),
        ({"key": b"a", "trie": b""}, "key: text"),
        ({"key": "\ud800", "trie": b""}, "key: .*not Unicode"),
        ({"key": "a", "trie": "text"}, "trie: bytes"),
        ({"key": "a", "trie": b"", "value": None}, "value: bytes"),
        ({"key": "a", "trie": b"", "value": "text"}, "value: bytes"),
        ({"key": "a", "trie": b"", "deleted": 1}, "deleted: True or False"),
        ({"key": "a", "trie": b"", "clock": 3}, "clock: a list"),
        ({"key": "a", "trie": b"", "clock": [-1]}, "clock: a whole number"),
        ({"key": "a", "trie": b"", "clock": [True]}, "clock: a whole number"),
        ({"key": "a", "trie": b"", "clock": [1.0]}, "clock: a whole number"),
        ({"key": "a", "trie": b"", "clock": [2**64]}, "clock: a whole number"),
        ({"key": "a", "trie": b"", "inflate": None}, "inflate: a whole number"),
        ({"key": "a", "trie": b"", "feeds": []}, "feeds: an entry names a feed"),
        ({"key": "a", "trie": b"", "feeds": ["text"]}, "feeds: bytes"),
        ({"key": "a", "trie": b"", "contentFeed": 1}, "contentFeed: bytes"),
        ({"key": "a/b", "trie": b"", "path": {"0": "a"}}, "path: that of the key"),
        ({"key": "a", "trie": b"", "type": "post"}, "an entry has no field 'type'"),
        ({"key": "a", "trie": b"", 7: "post"}, "an entry has no field 7"),
    ],
)
def test_what_is_no_entry_is_refused(value: Any, said: str) -> None:
    with pytest.raises(EncodeError, match=said):
        CODEC.encode(value)


def test_a_header_may_say_more() -> None:
    """As the document allows; and an entry may have the header's name for its key."""
    assert CODEC.decode(HEADER) == CODEC.decode(HEADER + field(2, b"an extension")) == {"protocol": "hyperdb"}
    assert CODEC.decode(HEADER + field(4, b""))["key"] == "hyperdb"


def test_feeds_are_known_by_their_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though nobody registered their codec: the package names it."""
    monkeypatch.syspath_prepend(name_codecs(tmp_path, broken="no.such.module:Codec").parent)
    with registered_here(alone=True):
        for feed in feeds_of_vectors():
            assert guess_codec(feed) == "hyperdb"
        assert guess_codec([HEADER]) == "hyperdb"
        assert guess_codec([ENTRY, ENTRY]) is None
        assert guess_codec([HEADER, ENTRY, b"something else"]) is None
        assert guess_codec([]) is None


def test_log_of_a_feed_is_one_without_its_sidecar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(name_codecs(tmp_path).parent)
    path = tmp_path / "feed.log"
    with Log(path, codec=CODEC, block_size=8192) as log:
        length = len(log.append_many([CODEC.decode(record) for record in max(feeds_of_vectors(), key=len)]))
    shutil.rmtree(tmp_path / "feed.log.jitdb")
    with registered_here(alone=True), jitdb.open(path, read_only=True) as db:
        assert (db.log.codec.name, db.count(asked("protocol") == "hyperdb")) == ("hyperdb", 1)
        assert db.count() == length


# --- a feed's log ----------------------------------------------------------------------------------------------------


def made(path: Path, records: list[bytes]) -> list[int]:
    """Put a log of these records there, as they are; their offsets."""
    with Log(path, codec="raw") as log:
        return log.append_many(records)


QUESTIONS: dict[str, tuple[Any, Callable[[dict[str, Any]], bool]]] = {
    "a segment": (equal(("path", "0"), "life"), lambda entry: entry.get("path", {}).get("0") == "life"),
    "a deeper one": (equal("path.2", "cat"), lambda entry: entry.get("path", {}).get("2") == "cat"),
    "no third segment": (absent("path.2"), lambda entry: "2" not in entry.get("path", {})),
    "the whole path": (equal("path", {"0": "life", "1": "plant"}), lambda entry: entry.get("key") == "life/plant"),
    "a key": (equal("key", "life/animal/cat"), lambda entry: entry.get("key") == "life/animal/cat"),
    "a value": (equal("value", b"meow"), lambda entry: entry.get("value") == b"meow"),
    "no value": (absent("value"), lambda entry: "value" not in entry),
    "deleted ones": (equal("deleted", True), lambda entry: entry.get("deleted") is True),
    "others": (not_(equal("deleted", True)), lambda entry: entry.get("deleted") is not True),
    "a late inflate": (asked("inflate") > 7, lambda entry: entry.get("inflate", 0) > 7),
    "a large number": (equal("inflate", 2**64 - 1), lambda entry: entry.get("inflate") == 2**64 - 1),
    "a number in the clock": (includes("clock", 2**53 + 1), lambda entry: 2**53 + 1 in entry.get("clock", ())),
    "a clock": (equal("clock", [3, 1]), lambda entry: entry.get("clock") == [3, 1]),
    "a feed": (includes("feeds", b"f" * 32), lambda entry: b"f" * 32 in entry.get("feeds", ())),
    "the header": (equal("protocol", "hyperdb"), lambda entry: "protocol" in entry),
    "a function": (
        predicate("key", lambda key: key.endswith("cat"), name="cats"),
        lambda entry: entry.get("key", "").endswith("cat"),
    ),
    "one or the other": (
        or_(equal("path.1", "plant"), and_(equal("path.0", "life"), equal("value", b"meow", prefix=True))),
        lambda entry: (
            entry.get("path", {}).get("1") == "plant"
            or (entry.get("path", {}).get("0") == "life" and entry.get("value") == b"meow")
        ),
    ),
}


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, dict[str, Any]]]:
    """A log of entries of all kinds, a broken one too, and by their offsets what is in each."""
    said: list[dict[str, Any]] = [{"protocol": "hyperdb"}]
    names = ["life", "life/plant", "life/animal", "life/animal/cat", "/life/animal/cat", "größe/x/cat", ""]
    for number in range(400):
        entry: dict[str, Any] = {"key": names[number % 7], "trie": bytes(number % 5), "deleted": number % 11 == 0,
                                 "clock": [[], [3, 1], [number, 2**53 + number % 2]][number % 3]}  # fmt: skip
        entry |= [{}, {"value": b"meow"}, {"value": b""}, {"value": bytes(500)}][number % 4]
        entry |= [{}, {"inflate": number % 10}, {"inflate": 2**64 - 1}][number % 3]
        entry |= {"feeds": [b"g" * 32, b"f" * 32], "contentFeed": b"c" * 32} if number % 50 == 0 else {}
        path = {str(place): each for place, each in enumerate(segments_in(entry["key"]))}
        said.append({**entry, "path": path})
    records = [CODEC.encode(entry) for entry in said]
    records[200], said[200] = b"broken", {}
    path = tmp_path_factory.mktemp("feeds") / "feed.log"
    return path, dict(zip(made(path, records), said, strict=True))


def matching(said: dict[int, dict[str, Any]], name: str) -> int:
    """How many entries a filter finds."""
    return sum(map(QUESTIONS[name][1], said.values()))


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_are_answered_as_a_filter_would(feed: Any, name: str) -> None:
    path, said = feed
    operation, matches = QUESTIONS[name]
    expected = [offset for offset, entry in said.items() if matches(entry)]
    assert 0 < len(expected) < len(said)
    with Log(path, codec=CODEC, read_only=True) as log:
        db = JITDB(log, "memory")
        assert db.explain(operation)["scan_bytes"] > 0
        assert sorted(db.all(operation, as_offsets=True)) == expected
        assert db.explain(operation)["scan_bytes"] == 0
        assert db.count(operation) == len(expected)
        if all(map(said.get, expected)):
            assert set(map(value_key, db.all(operation))) == {value_key(said[offset]) for offset in expected}


# --- with no further word --------------------------------------------------------------------------------------------


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Where the package is installed, as far as it tells of itself."""
    return name_codecs(tmp_path / "site")


def test_the_package_names_it(feed: Any, installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, said = feed
    monkeypatch.syspath_prepend(installed)
    with registered_here(alone=True):
        with Log(tmp_path / "x.log", codec="hyperdb") as log:
            log.append_many(filter(None, said.values()))
        with jitdb.open(tmp_path / "x.log", read_only=True) as db:
            assert type(db.log.codec) is HyperdbCodec
            assert db.count(equal("path.0", "life")) == matching(said, "a segment")


def test_every_command_knows_it(feed: Any, installed: Path, tmp_path: Path) -> None:
    _, said = feed
    with Log(tmp_path / "feed.log", codec=CODEC) as log:
        log.append_many(filter(None, said.values()))
    settings = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": os.pathsep.join((str(installed), str(ROOT)))}}

    def say(*command: str) -> str:
        done = subprocess.run([sys.executable, "-m", "jitdb", *command], capture_output=True, text=True, **settings)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert say("count", "feed.log", 'path.0 == "life"') == f"{matching(said, 'a segment')}\n"
    assert json.loads(say("info", "feed.log", "--json"))["codec"] == "hyperdb"
    (line, *_) = say("query", "feed.log", 'value == b"meow" and not deleted == true', "-n", "1").splitlines()
    assert json.loads(line)["value"] == {"$bytes": "bWVvdw=="}
    assert "life/animal/cat" in say("query", "feed.log", "--format", "table", "--fields", "key,value,clock,path.2")
    assert "sound" in say("verify", "feed.log")
    say("export", "feed.log", "-o", "all.ndjson")
    say("import", "all.ndjson", "copy.log", "--codec", "hyperdb", "--tagged", "-q")
    with Log(tmp_path / "feed.log", codec=CODEC) as log, Log(tmp_path / "copy.log", codec=CODEC) as copy:
        assert sorted(log.get_raw(each.offset) for each in log.stream()) == sorted(
            copy.get_raw(each.offset) for each in copy.stream()
        )
