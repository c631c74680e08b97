"""Batches in one line: the records are those that json.loads and loops find."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import expected
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Oracle
from test_line_walker import SIZE, Bytes
from thoroughness import tries

import jitdb
from jitdb.engine.building import scan
from jitdb.errors import InvalidArgument, InvalidOffset, NotALog
from jitdb.log import LogSource
from jitdb.log.codecs.fields.constants import DELETED
from jitdb.log.lines import line_log, line_walkers
from jitdb.log.lines.batch_path import elements
from jitdb.log.lines.files import file
from jitdb.log.lines.form import LineForm, object_in, parse_each
from jitdb.log.lines.framing import LineFraming
from jitdb.log.lines.line_log import LineLog
from jitdb.operators import absent, equal, field
from jitdb.testing.sources import GrowingSourceTests, Records

pytestmark = pytest.mark.filterwarnings("ignore::jitdb.errors.MalformedWarning")

STEPS = parse_each("a[].b[]")
PATH = LineForm(each=STEPS).path


def exploded(value: Any, steps: Any = STEPS) -> Iterator[Any]:
    """The plain meaning."""
    if not steps:
        yield value
    elif steps[0] is None and isinstance(value, list):
        for item in value:
            yield from exploded(item, steps[1:])
    elif steps[0] is not None and isinstance(value, dict) and steps[0] in value:
        yield from exploded(value[steps[0]], steps[1:])


def records_of(line: bytes, steps: Any = STEPS) -> list[Any] | None:
    """None: it is no JSON."""
    try:
        return list(exploded(json.loads(line), steps))
    except (ValueError, RecursionError):
        return None


LINES = [
    b'{"a": [{"b": [1, 2, {"c": [3]}]}, {"b": []}, {"x": 1}, 7, {"b": [null]}]}',
    b'{"a": [{"b": [1]}], "a": [{"b": [2, 3], "b": [4]}]}',
    b'{"a": [{"b": [1]}], "a": 5}',
    b'{"\\u0061": [{"\\u0062": ["x\\"]"]}], "\\u00e9": 1} \r',
    b'{"a": {"b": [1]}}', b'{"b": [1]}', b"[1]", b"7", b"", b" \t", b"{", b'{"a": [{"b": [1,]}]}',
    b'{"a": [{"b": [1]}]} x', b'{"a": [{"b": [{"n": 123456789012345678901}]}]}',
    b'{"a": [{"b": [{"n": 18446744073709551615}, "\\ud83d\\ude00"]}]}', b'{"a": [{"b": ["\\ud800"]}]}',
    b'{"a": [{"b": [' + b"[" * 250 + b"]" * 250 + b"]}]}", b'{"a": [{"b": [' + b"[" * 300 + b"]" * 300 + b"]}]}",
    '{"a": [{"b": ["é€😀"]}], "ü": "\xff"}'.encode(), b'{"a": [{"b": ["\xff"]}]}',
    b'{"a":[],"a":[{"b":[{}]},{"b":{}}]}',
]  # fmt: skip

_values = st.recursive(
    st.sampled_from(["1", "null", '"x"', '"]}"', "-0.5e3", "{}", "[]", "1234567890123456789", '"\\u00e9"', "bad", ""]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: "[" + ",".join(items) + "]"),
        st.lists(st.tuples(st.sampled_from(['"a"', '"b"', '"\\u0061"', '"c"']), inner), max_size=4).map(
            lambda pairs: "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
        ),
    ),
    max_leaves=14,
)
_shaped = st.lists(_values, max_size=4).map(lambda items: '{"a": [{"b": [' + ", ".join(items) + "]}]}")
lines = st.lists(st.sampled_from(LINES) | (_shaped | _values).map(str.encode), max_size=6)


def is_refused(line: bytes) -> bool:
    """What json reads, and no log could hold."""
    return line in (LINES[13], LINES[15], LINES[17])


def oracle_of(data: bytes, *, prefixed: bool = False) -> list[tuple[int, Any, bool]]:
    """Offset, value, whether it is gone: a place a record, and one of each line without."""
    found, at = [], 0
    for line in data.split(b"\n")[:-1]:
        begin = max(0, object_in(line)) if prefixed else 0
        text = line[begin:]
        values = None if is_refused(text) else records_of(text)
        if values:
            places = [(each.begin, each.end) for each in elements(text, PATH)]
            assert [json.loads(text[first:last]) for first, last in places] == values
            found += [(at + begin + first, value, False) for (first, _), value in zip(places, values, strict=True)]
        elif values is None and text.strip(b" \t\r") and not (prefixed and object_in(line) < 0):
            found.append((at + begin + len(text) - len(text.lstrip(b" \t\r")), None, True))
        else:
            is_text = prefixed and object_in(line) < 0 and line.strip(b" \t\r")
            found.append((at if is_text else at + len(line), None, True))
        at += len(line) + 1
    return found


def walked(data: bytes, most: int, framing: LineFraming, start: int = 0) -> list[tuple[int, Any, bool]]:
    log = Bytes(data)
    walker = framing.walker(log, most, log.durable_end)
    found: list[tuple[int, Any, bool]] = []
    for begin in range(start - start % SIZE, log.durable_end, most):
        for count, *_ in walker.walks(begin, start):
            room = walker.room
            low = int(room.starts[:count].searchsorted(start - begin)) if begin < start else 0
            ends = (walker.ends(low, count) + begin).tolist()
            for at, length, state, end in zip(*(array[low:count].tolist() for array in room[:3]), ends, strict=True):
                text = walker.buffer[at : at + length].tobytes()
                values = None if state == DELETED or is_refused(text) else records_of(text, ())
                found.append((begin + at, values[0] if values else None, not values))
                last = framing.last_record(log, end)
                assert last.offset in (begin + at, -1 if values else last.offset)
                if values:
                    assert (last.record, last.offset) == (text, begin + at)
    return found


@pytest.fixture(scope="module", params=[1, 3, line_walkers.MOST])
def _room(request: Any) -> Iterator[None]:
    """So many lines, or elements, are found by a walk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_walkers, "MOST", request.param)
        yield


@pytest.mark.usefixtures("_room")
@settings(max_examples=tries(60, 1500), deadline=None)
@given(lines, st.booleans(), st.integers(1, 6), st.randoms(use_true_random=False))
def test_chunks_of_any_size_from_any_place(found: list[bytes], prefixed: bool, chunks: int, rng: random.Random) -> None:
    if prefixed:
        found = [rng.choice([b"", b"x {} ", b"text "]) + line for line in found]
    data = b"".join(line + b"\n" for line in found)
    framing = LineFraming(LineForm(prefixed, STEPS))
    wanted = oracle_of(data, prefixed=prefixed)
    assert walked(data, chunks * SIZE, framing) == wanted
    if wanted:
        number = rng.randrange(len(wanted))
        ends = [offset for offset, _, _ in wanted]
        place = ends[number]  # where it begins, as where the one before it ended
        assert walked(data, chunks * SIZE, framing, place) == wanted[number:]


@pytest.mark.usefixtures("_room")
def test_a_scan_that_begins_in_a_long_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "_LOOK", 4)
    line = json.dumps({"a": [{"b": list(range(100))}], "z": "x" * 50}).encode()
    data = b'{"a": [{"b": [-1]}]}\n' + line + b"\n" + b'{"a": [{"b": [-2]}]}\n'
    framing = LineFraming(LineForm(each=STEPS))
    wanted = oracle_of(data)
    for number in range(0, 102, 25):
        for place in (wanted[number][0], wanted[number][0] - 1):
            assert walked(data, 2 * SIZE, framing, place) == wanted[number:], number


def test_more_elements_than_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "CHUNK_BYTES", 1 << 16)
    monkeypatch.setattr(line_log, "BLOCK", 1 << 16)
    path = tmp_path / "a.ndjson"
    path.write_bytes(b'{"b":[' + b"{}," * 100_000 + b'{}]}\n{"b":[[2]]}\n')
    with jitdb.open(path, "memory", each="b[]", progress=False) as db:
        assert db.count() == 100_002
        assert db.paginate(limit=1, descending=True, sort_by="arrival").data == [[2]]


class TestEachLineLog(GrowingSourceTests):
    @pytest.fixture
    def records(self) -> Records:
        data = b"\n".join(LINES) + b"\n"
        found: Records = []
        for line in data.split(b"\n")[:-1]:
            values = None if is_refused(line) else records_of(line)
            places = [(each.begin, each.end) for each in elements(line, PATH)] if values else []
            found += [line[first:last] for first, last in places] if places else [None]
        return found

    @pytest.fixture
    def source(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LineLog]:
        monkeypatch.setattr(line_log, "BLOCK", 64)
        path = tmp_path / "a.ndjson"
        path.write_bytes(b"\n".join(LINES) + b"\n")
        with LineLog(path, form=LineForm(each=STEPS)) as log:
            yield log

    def append(self, source: LogSource, record: bytes) -> None:
        with source.path.open("ab") as file:
            file.write(b'{"a": [{"b": [' + record + b"]}]}\n")


def batch(rng: random.Random, first: int) -> bytes:
    def one(n: int) -> dict[str, Any]:
        return {"level": rng.choice(["error", "info"]), "n": n, "text": "x" * rng.choice([1, 1, 200])}

    groups = [
        {"b": [one(first + 10 * group + n) for n in range(rng.randrange(8))]} for group in range(rng.randrange(4))
    ]
    return json.dumps({"id": first, "a": groups}).encode()


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("seed", range(tries(2, 40)))
def test_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: bool, seed: int) -> None:
    if small:
        monkeypatch.setattr(line_log, "BLOCK", 128)
        monkeypatch.setattr(scan, "CHUNK_BYTES", 256)
        monkeypatch.setattr(scan, "SLICE_RECORDS", 3)
        monkeypatch.setattr(scan, "LONGEST", 0)  # each slice is a task of its own
    rng = random.Random(seed)
    path = tmp_path / "a.ndjson"
    path.touch()
    for turn in range(3):
        with path.open("ab") as file:
            for n in range(12):
                file.write(
                    rng.choice([batch(rng, 1000 * turn + 40 * n), batch(rng, 40 * n), rng.choice(LINES)]) + b"\n"
                )
        places = oracle_of(path.read_bytes())
        gone = {seq for seq, (_, _, is_gone) in enumerate(places) if is_gone}
        oracle = Oracle([value for _, value, _ in places], [offset for offset, _, _ in places], gone)
        with jitdb.open(path, each="a[].b[]", progress=False) as db:
            for question in (equal("level", "error"), field("n") > 100, absent("level"), equal("n", 41)):
                assert db.all(question, as_offsets=True) == expected(oracle, question), question
                wanted = dict(zip(oracle.offsets, oracle.records, strict=True))
                assert db.all(question) == [wanted[offset] for offset in expected(oracle, question)]
            assert db.count() == len(places) - len(gone)
            assert db.verify().ok
            bad = [n for n, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1)
                   if line.strip(b" \t\r") and (is_refused(line) or records_of(line) is None)]  # fmt: skip
            assert list(db.log.malformed()) == bad  # type: ignore[union-attr]
            assert [value for _, _, value in db.log.stream()] == [
                value for value, (_, _, is_gone) in zip(oracle.records, places, strict=True) if not is_gone
            ]


def test_rotation_in_the_middle_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(b'{"b": [0]}\n{"b": [1, 2, 3]}\n')
    with jitdb.open(path, "memory", each="b[]", progress=False) as db:
        feed = db.feed(None, limit=2, old=True)
        first = feed.read()
        assert first is not None
        assert first.data == [0, 1]
        path.rename(tmp_path / "a.1")
        with (tmp_path / "a.1").open("ab") as file:
            file.write(b'{"b": [4]}\n')
        path.write_bytes(b'{"b": [5, 6]}\n')
        db.log.refresh()
        found = []
        for _ in range(20):
            portion = feed.read()
            found += portion.data if portion is not None else []
        assert found == [2, 3, 4, 5, 6]
        feed.close()


def test_no_record_begins_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(LINES[0] + b"\n")
    with LineLog(path, form=LineForm(each=STEPS)) as log:
        for offset in (0, 5, 8, 15, len(LINES[0])):
            with pytest.raises(InvalidOffset):
                log.get_many_raw([offset])
        assert log.get_many_raw([14, 20]) == [b"1", b'{"c": [3]}']


@pytest.mark.parametrize("wrong", ["a", "a[]b[]", "a[].b", ".a[]", "a..b[]", "a[", "a[0]", ["a"], [], ["[]"] * 40, 7])
def test_paths_that_are_none(tmp_path: Path, wrong: Any) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(b"{}\n")
    if wrong != []:
        with pytest.raises((InvalidArgument, TypeError)):
            jitdb.open(path, each=wrong, progress=False)


def test_arrays_of_records(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(b'[{"n": 1}, {"n": 2}]\n[]\n[[{"n": 3}]]\n')
    with jitdb.open(path, each="[]", progress=False) as db:
        assert db.all(sort_by="arrival") == [{"n": 1}, {"n": 2}, [{"n": 3}]]
    with jitdb.open(path, each="[][]", progress=False) as db:
        assert db.all(sort_by="arrival") == [{"n": 3}]
    with jitdb.open(path, each=["[]"], progress=False) as db:
        assert db.count(field("n") > 0) == 2


@pytest.mark.parametrize(
    ("text", "each", "said"),
    [
        (b'{"items": [{"n": 1}], "deep": {"logs": [{"records": [{"x": 1, "y": 2}]}]}}\n', "wrong[]",
         r"no line has wrong\[\]: they have deep\.logs\[\]\.records\[\], items\[\], deep\.logs\[\]"),
        (b'{"n": 1}\n{"n": 2}', "items[]", r"no line has items\[\]: no array"),
        (b'{"items": {"n": 1}}\n', "items[]", r"no line has items\[\]"),
        (b'{"pad": "' + b"x" * 100_000 + b'", "items": [{"n": 1}]}', "item[]", r"they have items\[\]"),
        (b"a=1 b=2\na=2 b=3\n", "items[]", "each names elements of JSON, and its lines are logfmt"),
    ],
)  # fmt: skip
def test_a_path_that_no_line_has_is_an_error(tmp_path: Path, text: bytes, each: str, said: str) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(text)
    with pytest.raises(NotALog, match=said):
        jitdb.open(path, "memory", each=each, progress=False)


@pytest.mark.parametrize("late", [b'{"items": []}\n', b'{"other": 1}\n' * 9000 + b'{"items": [{"n": 1}]}\n'])
def test_a_path_that_some_line_has_is_none(tmp_path: Path, late: bytes) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(b'{"other": 1}\n' + late)
    with jitdb.open(path, "memory", each="items[]", progress=False) as db:
        assert db.count() == late.count(b'"n"')
