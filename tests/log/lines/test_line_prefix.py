"""Lines with text before their JSON: what is a record of them, by a plain reading of each line."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_helpers import expected
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Oracle
from thoroughness import tries

import jitdb
from jitdb.engine.building import scan
from jitdb.errors import InvalidOffset, NotALog
from jitdb.log import LogSource
from jitdb.log.lines import line_log
from jitdb.log.lines.form import LineForm, object_in, parts_in
from jitdb.log.lines.line_kernels import blank_prefixes, walk_prefixed
from jitdb.log.lines.line_log import LineLog
from jitdb.operators import absent, equal, field
from jitdb.testing.sources import GrowingSourceTests, Records

PREFIXED = LineForm(allow_prefix=True)

LINES = [
    b'2026-11-21T10:00:00.123456789Z stdout F {"level": "info", "n": 1}',
    b"Traceback (most recent call last):",
    b'  File "x.py", line 1, in <module> {main} ${HOME} {}{',
    b"",
    b'api_1  | {"level": "error", "n": 2}\r',
    b'<13>Nov 21 10:00:00 host app[1]: ctx={} {main} { "level": "error", "n": 3 } ',
    b'{"level": "info", "n": 4}',
    b'[pod/a/b] {"level": "info", "n": 5} and more',
    b"[pod/a/b] {  }",
    b"\t \r",
    b"[1, 2]",
    b"7",
    b'x {"n": 6, "text": "{\\"a\\": 1}"}',
    b'2026-11-21T10:00:00.123456789Z stdout P {"level": "error"',
    b'{"level": "info", "n": 7}',
]


def begin_of(line: bytes) -> int:
    """The plain meaning: each brace in turn, with what is behind it."""
    for at in range(len(line)):
        rest = line[at + 1 :].lstrip(b" \t\r")
        if line[at : at + 1] == b"{" and (
            rest.startswith(b'"') or (rest.startswith(b"}") and not rest[1:].strip(b" \t\r"))
        ):
            return at
    return -1


def oracle_of(data: bytes) -> Oracle:
    records, offsets, deleted, at = [], [], set(), 0
    for line in data.split(b"\n")[:-1]:
        begin = begin_of(line)
        try:
            records.append(json.loads(line[begin:]) if begin >= 0 else None)
        except ValueError:
            begin = -1
            records.append(None)
        if begin < 0:
            deleted.add(len(records) - 1)
        offsets.append(at + max(begin, 0))
        at += len(line) + 1
    return Oracle(records, offsets, deleted)


lines = st.lists(
    st.sampled_from([*LINES, b'{"', b"{}", b"{ }x", b'{{"a":1}', b'a{"b":1}}', b"{" * 40])
    | st.text('{}" \t\rab:1', max_size=60).map(str.encode),
    max_size=12,
)


@settings(max_examples=tries(60, 1000), deadline=None)
@given(lines, st.integers(0, 9))
def test_kernels_find_what_a_plain_reading_finds(found: list[bytes], before: int) -> None:
    assert [object_in(line) for line in found] == [begin_of(line) for line in found]
    data = np.frombuffer(b"\n" * before + b"".join(line + b"\n" for line in found), np.uint8)
    starts, lengths, states = np.empty(99, np.int64), np.empty(99, np.int64), np.empty(99, np.uint8)
    count = walk_prefixed(data, before, len(data), len(data), starts, lengths, states)
    assert count == len(found)
    at = before
    for number, line in enumerate(found):
        begin = begin_of(line)
        record = data[starts[number] : starts[number] + lengths[number]].tobytes()
        assert starts[number] + lengths[number] == at + len(line)
        assert (states[number] == 0) == (begin >= 0)
        assert record == (line[begin:] if begin >= 0 else line if line.strip() else b"")
        at += len(line) + 1
    blanked = data.copy()
    texts = blank_prefixes(blanked, before, len(data))
    assert texts == sum(begin_of(line) < 0 and bool(line.strip(b" \t\r")) for line in found)
    expected = [b" " * len(line) if begin_of(line) < 0 else line[begin_of(line) :].rjust(len(line)) for line in found]
    assert blanked.tobytes() == b"\n" * before + b"".join(line + b"\n" for line in expected)


@pytest.mark.filterwarnings("ignore:.*left out:jitdb.errors.MalformedWarning")
class TestPrefixedLineLog(GrowingSourceTests):
    @pytest.fixture
    def records(self) -> Records:
        oracle = oracle_of(b"\n".join(LINES) + b"\n")
        return [None if n in oracle.deleted else line[begin_of(line) :] for n, line in enumerate(LINES)]

    @pytest.fixture
    def source(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LineLog]:
        monkeypatch.setattr(line_log, "BLOCK", 64)
        path = tmp_path / "a.ndjson"
        path.write_bytes(b"\n".join(LINES) + b"\n")
        with LineLog(path, form=PREFIXED) as log:
            yield log

    def append(self, source: LogSource, record: bytes) -> None:
        with source.path.open("ab") as file:
            file.write(record + b"\n")


@pytest.mark.filterwarnings("ignore::jitdb.errors.MalformedWarning")
@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("seed", range(tries(2, 40)))
def test_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: bool, seed: int) -> None:
    if small:
        monkeypatch.setattr(line_log, "BLOCK", 128)
        monkeypatch.setattr(scan, "CHUNK_BYTES", 256)
    rng = random.Random(seed)
    path = tmp_path / "a.log"
    path.write_bytes(LINES[0] + b"\n")
    for _ in range(3):
        with path.open("ab") as file:
            file.write(b"".join(rng.choice(LINES) + b"\n" for _ in range(40)) + b'x {"unfinished')
        oracle = oracle_of(path.read_bytes())
        with jitdb.open(path, allow_prefix=True, progress=False) as db:
            for question in (equal("level", "error"), field("n") > 3, absent("level")):
                assert db.all(question, as_offsets=True) == expected(oracle, question), question
            assert db.count() == len(oracle.records) - len(oracle.deleted)
            assert db.verify().ok
        with path.open("ab") as file:
            file.write(b"\n")


@pytest.mark.filterwarnings("ignore::jitdb.errors.MalformedWarning")
def test_both_forms_have_indexes_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(LINES[6] + b"\n" + LINES[0] + b"\n" + LINES[4] + b"\n")
    for folder in (None, tmp_path / "there"):
        names = set()
        for _ in range(2):
            for allowed, count in ((False, 1), (True, 3)):
                with jitdb.open(path, folder, allow_prefix=allowed, progress=False) as db:
                    assert db.count(field("n") > 0) == count
                    assert len(db.all(field("n") > 0)) == count
                    names.add(db.log.identity)
        assert len(names) == 2


def test_text_beside_records(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    text = "trace\n" * 20_000
    path.write_bytes(b"\n".join(LINES) + b"\nz " + LINES[6] + b"\n" + text.encode())
    with LineLog(path, form=PREFIXED) as log:
        around = {offset: log.text_around(offset) for offset, _, _ in log.stream()}
        before, behind, cut = zip(*around.values(), strict=True)
        assert before[:3] == tuple(line[: begin_of(line)].decode() for line in (LINES[0], *LINES[4:6]))
        assert behind[0] == LINES[1].decode() + "\n" + LINES[2].decode()
        assert behind[1:4] == ("", "", "")  # what should be a record ends the text
        assert behind[4] == "\n".join(line.decode().rstrip("\r") for line in LINES[9:12])
        assert behind[-1] == text[: 1 << 16].rstrip("\n")
        assert cut == (False,) * (len(cut) - 1) + (True,)
        with pytest.raises(InvalidOffset):
            log.text_around(1)
        found = log.counted()
        assert (found.text, found.parts, found.malformed) == (4 + 20_000, 1, [8, 14])
        assert found.text + len(found.malformed) + 2 + len(around) == len(LINES) + 1 + 20_000


def test_parts_are_told_by_their_tags() -> None:
    time = b"2026-11-21T10:00:00.123456789+01:00"
    lines = [time + b" stdout P {", time + b" stderr P:x {", time + b" stdout F {", b"at stdout P x", time + b" P {"]
    assert [parts_in(line) for line in lines] == [1, 1, 0, 0, 0]
    assert parts_in(b"\n".join(lines)) == 2


@pytest.mark.parametrize("line", [LINES[4], b"[pod/a/b] " + LINES[6]])
def test_without_the_option_it_is_recognised(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(line + b"\nmore text\n")
    for named in ({}, {"allow_prefix": True}):
        with jitdb.open(path, "memory", progress=False, **named) as db:
            assert db.count() == 1


@pytest.mark.parametrize("data", [b'{\n  "a": {"b": 1}\n}\n', b"[\n  1,\n  2\n]\n", b"[1]\n"])
def test_json_of_another_kind_is_not_taken_for_it(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(data)
    with pytest.raises(NotALog, match=r"jq -c|each="):
        jitdb.open(path, progress=False)


@pytest.mark.parametrize("data", [b"\x1f\x8b\x08abc", "{}".encode("utf-16"), b"\0{}\n"])
def test_what_is_no_text_is_refused_with_it_too(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(data)
    with pytest.raises(NotALog):
        jitdb.open(path, allow_prefix=True, progress=False)


def test_a_line_of_braces_takes_no_time(tmp_path: Path) -> None:
    """No line is looked at more than twice, whatever is in it."""
    path = tmp_path / "a.log"
    line: Any = b"{  " * 1_000_000 + b"{}  " * 1_000_000
    path.write_bytes(line + b"\n" + LINES[0] + b"\n")
    with jitdb.open(path, "memory", allow_prefix=True, progress=False) as db:
        assert db.count() == 2  # an empty object ends the line
