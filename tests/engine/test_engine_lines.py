"""Questions to JSON Lines where they lie: the answers are those of json.loads, and of a log that they were put into."""

from __future__ import annotations

import itertools
import json
import random
import string
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import QUESTIONS, check, expected, messages
from oracle import Oracle
from thoroughness import tries

import jitdb
from jitdb import JITDB, Log
from jitdb.engine.building import scan
from jitdb.errors import LogReadOnly, MalformedWarning
from jitdb.log.lines import line_log
from jitdb.log.lines.line_log import LineLog
from jitdb.operators import absent, and_, equal, field, includes, not_, starts_with

pytestmark = pytest.mark.filterwarnings("ignore::jitdb.errors.MalformedWarning")


@pytest.fixture(params=[False, True], ids=["usual", "small"])
def chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with chunks so small that lines cross them."""
    if request.param:
        monkeypatch.setattr(line_log, "BLOCK", 512)
        monkeypatch.setattr(scan, "CHUNK_BYTES", 1024)


def oracle_of(path: Path) -> Oracle:
    """All lines, by splitting the file; those that json cannot read, or that hold what no log could, are deleted."""
    data = path.read_bytes()
    at, records, offsets, deleted = 3 if data.startswith(b"\xef\xbb\xbf") else 0, [], [], set()
    for line in data[at:].split(b"\n")[:-1]:
        try:
            records.append(json.loads(line))
        except (ValueError, RecursionError):
            deleted.add(len(records))
            records.append(None)
        offsets.append(at)
        at += len(line) + 1
    return Oracle(records, offsets, deleted)


def write(path: Path, values: list[Any], between: bytes = b"\n") -> Path:
    path.write_bytes(b"".join(json.dumps(value).encode() + between for value in values))
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.ndjson"


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("between", [b"\n", b"\r\n", b"\n\n \n", b"\nno json {\n"], ids=["lf", "crlf", "blank", "bad"])
def test_all_questions(path: Path, between: bytes) -> None:
    write(path, messages(250), between)
    with jitdb.open(path, progress=False) as db:
        check(db, oracle_of(path))
    with jitdb.open(path, progress=False) as db:
        check(db, oracle_of(path))


@pytest.mark.usefixtures("chunks")
def test_the_same_as_of_an_imported_log(path: Path, tmp_path: Path) -> None:
    values = messages(200)
    write(path, values)
    with Log(tmp_path / "a.log") as log, jitdb.open(path, progress=False) as db:
        log.append_many(values)
        log.flush()
        imported = JITDB(log, progress=False)
        for question in QUESTIONS:
            assert db.count(question) == imported.count(question), question
            assert db.all(question, descending=True) == imported.all(question, descending=True), question


def random_value(rng: random.Random, levels: int) -> Any:
    kind = rng.randrange(9 if levels else 6)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind == 1:
        return rng.choice([0, 1, -1, 2**53, 2**63, -(2**63), rng.randrange(100)])
    if kind == 2:
        return rng.choice([0.0, -0.0, 0.1, 1e300, rng.random()])
    if kind < 6:
        letters = string.ascii_letters + '"\\/\n\t\u00e9\u20ac\U0001f600{}[],:'
        return "".join(rng.choice(letters) for _ in range(rng.randrange(12)))
    if kind == 6:
        return [random_value(rng, levels - 1) for _ in range(rng.randrange(4))]
    return {rng.choice("abcde"): random_value(rng, levels - 1) for _ in range(rng.randrange(5))}


def random_line(rng: random.Random) -> bytes:
    value = {key: random_value(rng, 3) for key in rng.sample("abcde", rng.randrange(1, 6))}
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, None, 1])).replace("\n", " ")
    line = text.encode()
    if rng.random() < 0.2:
        at = rng.randrange(len(line))
        line = line[:at] + rng.choice([b"", b"\xff", b"}", b'"', b"\0", b"\\"]) + line[at + rng.randrange(2) :]
    return line.replace(b"\n", b"")


def random_questions(rng: random.Random) -> Iterator[Any]:
    for key in "abcde":
        for path in (key, f"{key}.a", f"{key}.b.c"):
            yield equal(path, random_value(rng, 1))
            yield field(path) > rng.randrange(100)
            yield starts_with(path, rng.choice(string.ascii_letters))
            yield and_(not_(absent(path)), not_(equal("a", 1)))
        yield includes(key, random_value(rng, 0))


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("seed", range(tries(3, 100)))
def test_random_lines(path: Path, seed: int) -> None:
    rng = random.Random(seed)
    path.write_bytes(b"".join(random_line(rng) + b"\n" for _ in range(rng.randrange(5, 120))))
    oracle = oracle_of(path)
    with JITDB(LineLog(path), progress=False) as db:
        for question in random_questions(rng):
            assert db.all(question, as_offsets=True) == expected(oracle, question), question


def test_a_long_line_and_many_candidates(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jitdb.engine.answering import candidate_filter

    monkeypatch.setattr(candidate_filter, "BATCH_BYTES", 10_000)
    monkeypatch.setattr(line_log, "BLOCK", 512)
    monkeypatch.setattr(scan, "CHUNK_BYTES", 1024)
    values = [{"tag": f"prefix {number}", "text": "x" * (50_000 if number == 7 else 20)} for number in range(600)]
    write(path, values)
    with jitdb.open(path, progress=False) as db:
        assert db.count(starts_with("tag", "prefix")) == 600
        assert db.all(field("text") == "x" * 50_000) == [values[7]]


def test_what_grows_costs_its_own_share(path: Path) -> None:
    write(path, messages(3000))
    with jitdb.open(path, progress=False) as db:
        question = equal("value.content.type", "post")
        before = db.count(question)
        with path.open("a") as file:
            file.write(json.dumps(messages(1)[0])[:-1])
            file.flush()
            db.log.refresh()
            assert db.count(question) == before
            file.write("}")
            file.flush()
            db.log.refresh()
            assert db.explain(question)["scan_bytes"] < 500
            assert db.count(question) == before + 1
            file.write("\n")
        db.log.refresh()
        assert db.explain(question)["scan_bytes"] == 0
        assert db.count(question) == before + 1
        check(db, oracle_of(path))


def test_bad_lines_are_told_by_who_finds_them(path: Path) -> None:
    path.write_bytes(b'{"a": 1}\nbad\n\n{"a": 2}\n')
    with jitdb.open(path, progress=False) as db, pytest.warns(MalformedWarning, match="line 2") as told:
        assert db.count() == 2
    assert len(told) == 1
    with path.open("ab") as file:
        file.write(b'bad again\n{"a": 3}\n')
    with jitdb.open(path, progress=False) as db, pytest.warns(MalformedWarning, match="line 5") as told:
        assert db.all(field("a") > 0, sort_by="arrival") == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert [each.message.numbers for each in told] == [(5,)]


def test_bad_lines_are_told_again_by_the_first_answer_of_each_process(path: Path) -> None:
    path.write_bytes(b'{"a": 1}\n\nbad\n{"a": 2}\n')
    with jitdb.open(path, progress=False) as db, pytest.warns(MalformedWarning):
        db.count(field("a") == 3)
    asks = (JITDB.count, JITDB.all, lambda db, asked: [record for page in db.pages(asked) for record in page.data])
    for ask, value in itertools.product(asks, (1, 3)):
        with jitdb.open(path, progress=False) as db:
            with pytest.warns(MalformedWarning, match="line 3") as told:
                assert bool(ask(db, field("a") == value)) == (value == 1)
            assert len(told) == 1
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert not ask(db, field("a") == 3)
                assert db.count(field("a") == 1) == 1
    path.write_bytes(b'{"a": 1}\n\n\n{"a": 2}\n')
    with jitdb.open(path, progress=False) as db, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert db.count(field("a") == 3) == 0


def test_a_bad_line_of_batches_is_told_again_too(path: Path) -> None:
    path.write_bytes(b'{"b": [{"a": 1}]}\n{"b": [{"a": 3}, bad\n{"c": 1}\n')
    for _ in range(2):
        with (
            jitdb.open(path, each="b[]", progress=False) as db,
            pytest.warns(MalformedWarning, match="1 line cannot be read as JSON"),
        ):
            assert db.count(field("a") == 3) == 0


def test_nobody_changes_it(path: Path) -> None:
    write(path, messages(3))
    with jitdb.open(path, progress=False) as db:
        for work in (db.compact, db.repair):
            with pytest.raises(LogReadOnly, match="import"):
                work()
        assert db.verify().ok
