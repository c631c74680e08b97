"""What reads bytes that others wrote: each parser as a function of bytes, which raises what a user must never see.

A parser may refuse its bytes with an error of jitdb.errors. Any other error is a finding, and so is an answer that a
slower way does not give. `SEEDS` are bytes to begin from; bytes that found something are added to them.
"""

from __future__ import annotations

import atexit
import gzip
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import jitdb
from fuzz import replication
from jitdb.common.paths import format_path, parse_path
from jitdb.common.times import time_of_text
from jitdb.common.values import value_at, value_key
from jitdb.common.zstd import compressor
from jitdb.engine.reading.arrow_tables import _FAR, _times
from jitdb.engine.text_tests import Texts, joined, matcher_of
from jitdb.errors import DecodeError, EncodeError, JitdbError
from jitdb.indexes import segment as index_segment
from jitdb.indexes.files import segment_reader
from jitdb.indexes.kinds.content import content_type
from jitdb.log.codecs import get_codec
from jitdb.log.codecs.fields.located import FieldValues, RecordBatch
from jitdb.log.codecs.masks import mask_of
from jitdb.log.codecs.python_values import python_values
from jitdb.log.lines.formats.pattern import compile_pattern
from jitdb.log.lines.formats.table import BY_NAME
from jitdb.operators import equal, like, matches
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.text.expression import format_expression, parse_expression
from jitdb.operators.text.json import from_json, to_json
from jitdb.stores.cable.message import decode_message, encode_message
from jitdb.stores.cable.post import decode_post, encode_post
from jitdb.stores.hyperdb.format.entry import decode_entry, encode_entry
from tests.mask_oracle import mask


class Target(NamedTuple):
    """run: takes the bytes; seeds: makes the bytes to begin from"""

    run: Callable[[bytes], object]
    seeds: Callable[[], Sequence[bytes]]


@cache
def folder() -> Path:
    """For files that are read, of this process; in memory where that can be had."""
    shared = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(prefix="jitdb-fuzz-", dir=shared if shared.is_dir() else None))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


# --- questions -------------------------------------------------------------------------------------------------------


def expressions(data: bytes) -> None:
    with suppress(JitdbError):
        operation = parse_expression(data.decode("utf-8", "replace"))
        assert parse_expression(format_expression(operation)).identity == operation.identity


def json_questions(data: bytes) -> None:
    with suppress(ValueError, RecursionError):
        form = json.loads(data)
        with suppress(JitdbError):
            operation = from_json(form)
            assert from_json(to_json(operation)).identity == operation.identity


def paths(data: bytes) -> None:
    with suppress(JitdbError):
        path = parse_path(data.decode("utf-8", "replace"))
        assert parse_path(format_path(path)) == path


def times(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    found = _times(FieldValues.of_keys([value_key(text)]), 0)
    assert (int(found.times[0]) if found.fits[0] else None) == _within(time_of_text(text)), text


def _within(time: int | None) -> int | None:
    return time if time is not None and abs(float(time)) < _FAR else None


def patterns(data: bytes) -> None:
    with suppress(JitdbError):
        compile_pattern(data.decode("utf-8", "replace"))


def masks(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    assert mask_of(text) == mask(text)


def text_tests(make: Callable[..., Operation], data: bytes) -> None:
    """A line is the pattern, the others are texts: looked at all at once, and one by one."""
    pattern, *lines = data.split(b"\n")
    texts = [line.decode("utf-8", "surrogateescape") for line in lines]
    for ignore_case in (False, True):
        with suppress(JitdbError):
            asked = make("a", pattern.decode("utf-8", "surrogateescape"), ignore_case=ignore_case)
            expected = [asked.holds(text) for text in texts]
            test = matcher_of(asked)
            found = joined([test(part) for part in Texts.of([*map(value_key, texts)]).parts()])
            assert found.tolist() == expected, (asked, texts)


# --- files -----------------------------------------------------------------------------------------------------------


def lines(data: bytes) -> None:
    """The first byte says which format is asked for; of the last ones the file is."""
    formats = [None, *BY_NAME]
    path = folder() / "lines.log"
    path.write_bytes(data[1:])
    _asked(path, format=formats[data[0] % len(formats)] if data else None)


def compressed(ending: str, data: bytes) -> None:
    path = folder() / f"lines.ndjson.{ending}"
    path.write_bytes(data)
    _asked(path)


def logs(data: bytes) -> None:
    """The first byte says which file of a log is these bytes."""
    place = folder() / "opened"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(_a_log(), place)
    files = sorted(path for path in place.rglob("*") if path.is_file())
    files[data[0] % len(files) if data else 0].write_bytes(data[1:])
    for read_only in (True, False):
        with suppress(JitdbError), jitdb.open(place / "log", "memory", read_only=read_only, progress=False) as db:
            db.all(sort_by="arrival")
            db.verify()


@cache
def _a_log() -> Path:
    place = folder() / "made"
    place.mkdir()
    with jitdb.Log(place / "log") as log:
        offsets = [log.append({"a": number, "b": {"c": "x" * number}}) for number in range(20)]
        log.flush()
        log.delete(offsets[3])
        log.flush()
    return place


def _asked(path: Path, **settings: Any) -> None:
    """Ask a file, and compare with its records, decoded."""
    with suppress(JitdbError), jitdb.open(path, "memory", progress=False, **settings) as db:
        records = db.all(sort_by="arrival")
        assert db.count() == len(records)
        fields = {name: value for record in records[:2] if isinstance(record, dict) for name, value in record.items()}
        for name, value in list(fields.items())[:3]:
            wanted = value_key(value)
            expected = sum(value_key(value_at(record, (name,))) == wanted for record in records)
            assert db.count(equal((name,), value)) == expected, (name, value)


# --- records ---------------------------------------------------------------------------------------------------------

_FIELDS: Final = [("a",), ("b", "c")]


def codec(name: str, data: bytes) -> None:
    """A locator finds what decoding does, and both refuse the same bytes."""
    held = get_codec(name)
    batch = RecordBatch.of([data])
    try:
        value = held.decode(data)
    except DecodeError:
        assert not held.is_valid(data)
        assert len(held.locator([]).invalid(batch)) == 1
        held.locator(_FIELDS).fields(batch)
        return
    assert not len(held.locator([]).invalid(batch))
    fields, _ = held.locator(_FIELDS).fields(batch)
    for path, found in zip(_FIELDS, fields, strict=True):
        expected = value_at(value, path)
        assert value_key(python_values(found)[0]) == value_key(expected), (path, expected)
    with suppress(EncodeError):  # bipf writes no NaN
        assert value_key(held.decode(held.encode(value))) == value_key(value)


# --- indexes ---------------------------------------------------------------------------------------------------------


def segments(data: bytes) -> None:
    """Segments whose checksums are right, whoever made them."""
    with _without_sums(), suppress(JitdbError, EOFError):
        segment, _ = segment_reader.read_segment(lambda at, size: data[at : at + size], 0, len(data), "fuzzed")
        if segment.count <= _MOST_RECORDS:
            segment.verify()
            content_type(segment.kind).is_void(segment)
            content_type(segment.kind).of(segment)


_MOST_RECORDS: Final = 1 << 16  # a segment may have 2**20, and takes as long


@contextmanager
def _without_sums() -> Iterator[None]:
    def none(data: object, before: int = 0) -> int:
        return 0

    with patch.object(segment_reader, "crc32", none), patch.object(index_segment, "crc32", none):
        yield


def _index_seeds() -> list[bytes]:
    """A segment of each kind."""
    path = folder() / "indexed.ndjson"
    records = [{"a": n % 3, "b": f"t{n}", "n": n * 1.5, "at": f"2026-11-20T08:00:{n % 60:02}Z"} for n in range(400)]
    path.write_text("".join(f"{json.dumps(each)}\n" for each in records))
    with _without_sums(), jitdb.open(path, "memory", progress=False) as db:
        for asked in ("a == 1", 'b == "t1"', "n > 5", 'at > "2026-11-20"', 'b contains "9"', '* contains "t39"'):
            db.count(asked)
        db.value_counts("b")
        held = [segment for index in db._manager.opened() for segment in index.segments]
        return [b"".join(map(bytes, segment.parts())) for segment in held]


# --- stores ----------------------------------------------------------------------------------------------------------


def stored(decode: Callable[[bytes], Any], encode: Callable[[Any], bytes], data: bytes) -> None:
    with suppress(JitdbError):
        found = decode(data)
        assert decode(encode(found)) == found


def _vectors(name: str) -> list[bytes]:
    """Texts in hex in the vectors of the tests."""
    found: list[bytes] = []

    def look(held: Any) -> None:
        if isinstance(held, str) and len(held) >= 8 and len(held) < 2000:
            with suppress(ValueError):
                found.append(bytes.fromhex(held))
        elif isinstance(held, (list, dict)):
            for each in held.values() if isinstance(held, dict) else held:
                look(each)

    for path in sorted((Path(__file__).parents[1] / "tests" / "data" / "vectors").glob(f"{name}*/*.json")):
        look(json.loads(path.read_text()))
    return sorted(set(found), key=len)[:200]


# --- the table -------------------------------------------------------------------------------------------------------

_RECORDS: Final = [{"a": 1, "b": {"c": [None, True, -1.5, "ä", {"x": 2**40}]}}, {"b": {"c": "t"}, "a": "x" * 40}, {}]
_TEXT: Final = (
    b'{"a": 1, "b": {"c": "x"}}\n{"a": "1", "t": "2026-11-20T08:00:00Z"}\n\nno json\n{"a": [1, {"k": null}]}\n'
)
_LINES: Final = [
    _TEXT,
    b'{"log":"{\\"a\\":1}\\n","stream":"stdout","time":"2026-11-20T08:00:00.1Z"}\n',
    b"2026-11-20T08:00:00.1Z stdout F one\n2026-11-20T08:00:01Z stderr P two\n2026-11-20T08:00:01Z stderr F three\n",
    b'1.2.3.4 - - [20/Nov/2026:08:00:00 +0000] "GET /a HTTP/1.1" 200 12 "-" "curl/8"\n',
    b"<34>1 2026-11-20T08:00:00Z host app 12 ID7 [a@1 b=\"c\"] text\n<13>Nov 20 08:00:00 host app[1]: text\n",
    b'level=info msg="a b" ms=1.5 ok\nlevel=warn msg=x\n',
    b"host:1\ttime:x\tstatus:200\n",
    b"I1120 08:00:00.123456   12 file.go:7] text\n  more\n",
    b"a,b\n1,\"x,y\"\n2,\n",
    b"#Fields: date time cs-method\n2026-11-20 08:00:00 GET\n",
    b"#separator \\x09\n#fields\tts\tuid\n#types\ttime\tstring\n1.5\tx\n",
    b'{"resourceLogs":[{"resource":{"attributes":[{"key":"a","value":{"intValue":"1"}}]},"scopeLogs":[{"logRecords":'
    b'[{"timeUnixNano":"1","body":{"stringValue":"x"}}]}]}]}\n',
    b'{"Records":[{"eventName":"x"},{"eventName":"y"}]}\n',
    b'[{"a":1},\n{"a":2}]\n',
    b'"\r{',
    b'{"MESSAGE":[104,105],"PRIORITY":"3","__REALTIME_TIMESTAMP":"1763625600000000"}\n',
]  # fmt: skip
_QUESTIONS: Final = [
    'level == "error" and status >= 500', 'not (a.b in [1, -2.5, null, "x"] or ["a.b"] != true)', "@saved",
    'items[].sku == "x1" and tags[0] icontains "ä"', 'time >= "2026-11-20" and 1 < n <= 5ms', '* contains "9f3a"',
    'json(log).level like "%a_"', 'number(text(x)) > 1e3', 'message fits "pool <*> after <num>ms"', "present(a)", "",
]  # fmt: skip


def _texts(*found: str) -> Callable[[], list[bytes]]:
    return lambda: [text.encode() for text in found]


def _encoded(name: str) -> Callable[[], list[bytes]]:
    return lambda: [get_codec(name).encode(each) for each in _RECORDS]


TARGETS: Final[dict[str, Target]] = {
    "expressions": Target(expressions, _texts(*_QUESTIONS)),
    "json": Target(
        json_questions,
        lambda: [json.dumps(to_json(parse_expression(text))).encode() for text in _QUESTIONS if text[:1] not in "@"],
    ),
    "paths": Target(paths, _texts("a.b", '["a.b"].c', "items[0].sku", "tags[]", "number(json(log).x)", "")),
    "times": Target(
        times,
        _texts(
            "2026-11-20T08:00:00.123456789Z", "2026/11/20 08:00", "20/Nov/2026:08:00:00 +0100", "2026-11-20",
            "Fri, 20 Nov 2026 08:00:00 GMT", "20-Nov-2026 08:00:60", "Fri Nov 20 08:00:00 2026", "1677-09-21T00:12:44Z",
        ),
    ),
    "patterns": Target(
        patterns, _texts(r"(?P<level>[A-Z]+) (?P<text>.*)", r"^\[(?P<a>\d{1,3}|x?)\] (?:b|c)+$", "(?P<x>[^ ]*)")
    ),
    "masks": Target(
        masks,
        _texts(
            "timeout after 30ms, 5/10 of worker12 v2.14", "9f3a77c1-1111-2222-3333-444455556666 0x7F deadbee1",
            "10.0.0.1:80 2026-11-20T14:03:11.123Z", "Fri Nov 20 14:03:11 2026", "[20/Nov/2026:14:03:11 +0000] <num>",
            "x=-5 1.5e-3 15µs <*> ", "a " * 130, "ab-" * 500,
        ),
    ),
    "like": Target(
        partial(text_tests, like),
        _texts(
            "%a_c%\nabc\nxaäcx\n", "a%b%c\naXbYc\nac", r"\%_\\%" + "\n%x\\y\n", "%ss\nStraße\nMASS\nﬀ", "%_ab\nab\nxab"
        ),
    ),
    "matches": Target(
        partial(text_tests, matches),
        _texts(
            "^a|b$\na\nxb\n", r"\b(x+x+)+y" + "\nxxxy\nxx", r"(?im)^\w{2,}$|\B" + "\nab\n é", "[^a]\n\na\nb", "a*\n"
        ),
    ),
    "lines": Target(lines, lambda: [*(b"\0" + each for each in _LINES), *_line_seeds()]),
    "gzip": Target(partial(compressed, "gz"), lambda: [gzip.compress(_TEXT), gzip.compress(_TEXT) * 2, b"\x1f\x8b"]),
    "zstd": Target(partial(compressed, "zst"), lambda: [compressor(3)(_TEXT), compressor(3, has_sum=True)(_TEXT) * 2]),
    "logs": Target(logs, lambda: _log_seeds()),
    "bipf": Target(partial(codec, "bipf"), _encoded("bipf")),
    "msgpack": Target(partial(codec, "msgpack"), _encoded("msgpack")),
    "jsonl": Target(partial(codec, "json"), _encoded("json")),
    "segments": Target(segments, _index_seeds),
    "posts": Target(partial(stored, decode_post, encode_post), lambda: _vectors("cable")),
    "messages": Target(partial(stored, decode_message, encode_message), lambda: _vectors("cable")),
    "entries": Target(partial(stored, decode_entry, encode_entry), lambda: _vectors("hyperdb")),
    "replication": Target(lambda data: replication.heard(folder(), data), lambda: replication.seeds(folder())),
}  # fmt: skip


def _line_seeds() -> list[bytes]:
    """Each format with its own lines, and with others."""
    return [bytes([number]) + each for number in range(1, 1 + len(BY_NAME)) for each in _LINES][::5]


def _log_seeds() -> list[bytes]:
    files = sorted(path for path in _a_log().rglob("*") if path.is_file())
    return [bytes([number]) + path.read_bytes() for number, path in enumerate(files)]
