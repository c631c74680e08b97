"""`query --raw`, `tail --raw` and `as_raw()`: records as they stand in their files, byte by byte."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import pty
import random
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import EVENTS, environment, piped

import jitdb
from jitdb import Log
from jitdb.errors import LogError, QueryError
from jitdb.operators import field, from_db, query, to_result, where
from jitdb.operators.chain import as_raw

#: Files, how they are read, and the records in them as a person would cut them out.
FILES: dict[str, tuple[bytes, list[str], list[bytes]]] = {
    "odd.ndjson": (
        b'{"n": 1,  "x":\t1.50}\r\n\n  {"n":2, "n":3} \nno json\n{"n": "\xc3\xa9"}\n{"n": 5}', [],
        [b'{"n": 1,  "x":\t1.50}\r', b'  {"n":2, "n":3} ', b'{"n": "\xc3\xa9"}', b'{"n": 5}'],
    ),
    "mark.ndjson": (b'\xef\xbb\xbf{"n": 1}\n{"n": 2}\n', [], [b'{"n": 1}', b'{"n": 2}']),
    "log.txt": (
        b"2026-11-20 10:00:00 ERROR boom\nTraceback (most recent call last):\n  File x\n\nValueError: no\n"
        b"2026-11-20 10:00:01 INFO fine\n",
        [],
        [
            b"2026-11-20 10:00:00 ERROR boom\nTraceback (most recent call last):\n  File x\n\nValueError: no",
            b"2026-11-20 10:00:01 INFO fine",
        ],
    ),
    "prefixed.log": (
        b'api | {"n": 1}\nTraceback\n  at x\n\n\nweb | {"n": 2}\n', ["--allow-prefix"],
        [b'api | {"n": 1}\nTraceback\n  at x', b'web | {"n": 2}'],
    ),
    "rows.csv": (b'n,name\r\n1,"a, b"\r\n2,c\r\n', [], [b'1,"a, b"\r', b"2,c\r"]),
    "fmt.log": (
        b'level=info msg="a b" n=1\nlevel=error msg=c   n=2\n', [],
        [b'level=info msg="a b" n=1', b"level=error msg=c   n=2"],
    ),
    "array.json": (
        b'[\n  {"n": 1,\n   "x": [1,\n2]},\n  {"n": 2}\n]\n', [], [b'{"n": 1,\n   "x": [1,\n2]}', b'{"n": 2}']
    ),
    "batch.ndjson": (
        b'{"host": "a", "items": [{"n": 1}, {"n":  2}]}\n{"items": []}\n{"items": [ {"n":3} ]}\n',
        ["--each", "items[]"],
        [b'{"n": 1}', b'{"n":  2}', b'{"n":3}'],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("is_packed", [False, True])
def test_records_stand_as_in_the_file(tmp_path: Path, name: str, is_packed: bool) -> None:
    data, options, records = FILES[name]
    path = tmp_path / (f"{name}.gz" if is_packed else name)
    path.write_bytes(gzip.compress(data) if is_packed else data)
    expected = b"".join(record + b"\n" for record in records)
    asked = ("query", str(path), "--raw", "--arrival", "-q", *options)
    assert piped(*asked) == expected
    assert piped(*asked, "--skip", "1", "-n", "1") == records[1] + b"\n"
    if name != "array.json":  # to which nobody appends
        assert piped("tail", str(path), "--raw", "--old", "-n", str(len(records)), *options) == expected


LINES = [
    json.dumps({"n": n, "time": 1_700_000_000 + n * 7919 % 1009, "level": ("a", "b")[n % 3 == 0]}) for n in range(3000)
]


@pytest.fixture
def many(folder: Path) -> Path:
    """Three files, whose records are not in the order of time."""
    (folder / "logs").mkdir()
    for part in range(3):
        text = "".join(f"{line}\n" for line in LINES[part::3])
        (folder / "logs" / f"{part}.ndjson").write_text(text)
    return folder / "logs"


def in_order(lines: list[str]) -> list[bytes]:
    return [line.encode() for line in sorted(lines, key=lambda line: json.loads(line)["time"])]


def test_a_question_chooses_and_orders_them(process, many: Path) -> None:
    wanted = in_order([line for line in LINES if '"b"' in line])
    told = process("query", "logs", 'level == "b"', "--raw", "-q", text=False)
    assert sorted(told.stdout.splitlines()) == sorted(wanted)
    assert [json.loads(line)["time"] for line in told.stdout.splitlines()] == [json.loads(x)["time"] for x in wanted]
    first = process("query", "logs", 'level == "b"', "--raw", "-q", "--descending", "-n", "7", text=False)
    assert first.stdout.splitlines() == told.stdout.splitlines()[::-1][:7]
    assert process("query", "logs", "--raw", "-q", "-o", "all.csv").returncode == 0
    assert sorted((many.parent / "all.csv").read_text().splitlines()) == sorted(LINES)


def test_python_has_them(many: Path) -> None:
    one = [line.encode() for line in LINES[::3]]
    with jitdb.open(many / "0.ndjson", read_only=True) as db, jitdb.open_many(many) as logs:
        asked = db.query("n >= 0").sort_by_arrival().as_raw()
        assert asked.all() == list(asked) == one
        assert asked.page(2).data == one[:2]
        assert asked.first() == one[0]
        assert [line for page in asked.pages(700) for line in page.data] == one
        assert db.all("n == 3", as_raw=True) == query(from_db(db), where("n == 3"), as_raw(), to_result()) == [one[1]]
        assert [seen.record for passage in asked.where("n == 3").context(1, 1) for seen in passage] == one[:3]
        assert list(islice(db.query().as_raw().live(old=True), 5)) == one[:5]
        every = logs.query(field("n") >= 0).as_raw()
        assert sorted(every) == sorted(every.all()) == sorted(line.encode() for line in LINES)
        (passage,) = logs.query("n == 4").sort_by_arrival().as_raw().context(1, 1)
        assert [seen.record for seen in passage] == [LINES[n].encode() for n in (1, 4, 7)]
        assert asyncio.run(_awaited(every.aio.count())) == len(LINES)
        assert asked.count() == len(one)
        for wrong in (asked.select, asked.as_offsets):
            with pytest.raises(QueryError, match="as_raw"):
                wrong(*["n"] * (wrong == asked.select))
        with pytest.raises(QueryError, match="a table is made of records"):
            asked.to_arrow()


async def _awaited(answer: Any) -> Any:
    return await answer


def test_around_matches_as_grep_has_it(process, folder: Path) -> None:
    lines = [json.dumps({"n": n, "time": n}) for n in range(40)]
    (folder / "a.ndjson").write_text("".join(f"{line}\n" for line in lines))
    told = process("query", "a.ndjson", "n in [3, 5, 20]", "--raw", "-C", "1", "--arrival", "-q")
    grepped = subprocess.run(
        ["grep", "-C1", "-E", '"n": (3|5|20),', "a.ndjson"], cwd=folder, capture_output=True, text=True, check=True
    )
    assert told.stdout == grepped.stdout


def test_tail_goes_on_in_rotated_files(folder: Path) -> None:
    path = folder / "app.log"
    lines = [f'{{"n":  {n}}}' for n in range(9)]
    path.write_text("".join(f"{line}\n" for line in lines[:3]))
    command = [sys.executable, "-m", "jitdb", "tail", "app.log", "n != 4", "--raw", "--old", "-n", "8"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder, env=environment()) as running:
        assert running.stdout is not None
        found = [running.stdout.readline() for _ in range(3)]
        with open(path, "a") as file:
            file.write("".join(f"{line}\n" for line in lines[3:6]))
        os.rename(path, folder / "app.log.1")
        path.write_text("".join(f"{line}\n" for line in lines[6:]))
        found += running.stdout.read().splitlines(keepends=True)
    assert found == [f"{line}\n" for n, line in enumerate(lines) if n != 4]


def test_logs_of_jitdb_have_text_if_they_are_json(process, folder: Path) -> None:
    (folder / "e.ndjson").write_text("".join(json.dumps(event) + "  \n" for event in EVENTS))
    assert process("import", "e.ndjson", "json.log", "-q").returncode == 0
    assert process("import", "e.ndjson", "msgpack.log", "--codec", "msgpack", "-q").returncode == 0
    assert process("query", "json.log", "--raw", "-q").stdout.splitlines() == [json.dumps(event) for event in EVENTS]
    with Log(folder / "json.log") as log:
        log.delete(0)
    assert process("query", "json.log", "--raw", "-q").stdout.splitlines() == [json.dumps(each) for each in EVENTS[1:]]
    for command in (("query", "msgpack.log", "--raw"), ("tail", "msgpack.log", "--raw", "--old", "-n", "1")):
        told = process(*command)
        assert told.returncode != 0
        assert "its records are msgpack, which is no text to show as it stands" in told.stderr
        assert "leave --raw out" in told.stderr
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pa.table({"n": [1]}), folder / "a.parquet")
    with (
        jitdb.open(folder / "a.parquet") as db,
        pytest.raises(LogError, match="Parquet file, which is no text"),
    ):
        db.query().as_raw().all()


@pytest.mark.parametrize("more", [("--offsets",), ("--fields", "n"), ("--format", "csv"), ("--text",), ("--full",)])
def test_what_does_not_go_together(run, events: Path, more: tuple[str, ...]) -> None:
    for command in ("query", "tail"):
        if command == "tail" and more[0] in ("--text", "--format"):
            continue
        told = run(command, "events.ndjson", "--raw", *more)
        assert (told.returncode, told.stdout) == (2, "")
        assert f"{command}: --raw prints records as they stand in the file" in told.stderr
        assert "leave" in told.stderr


@pytest.mark.parametrize("command", ["query", "tail"])
def test_a_terminal_is_not_acted_on(folder: Path, command: str) -> None:
    (folder / "a.ndjson").write_bytes(b'{"n": "\x1b[31m"}\n{"n": "\xc2\x9b"}\n')
    ours, theirs = pty.openpty()
    arguments = [sys.executable, "-m", "jitdb", command, "a.ndjson", "--raw", "-n", "2", "--allow-prefix"]
    arguments += ["--old"] if command == "tail" else ["-q"]
    (folder / "a.ndjson").write_bytes(b'\x1b[31m {"n": 1}\n\xc2\x9b {"n": 2}\n')
    subprocess.run(arguments, stdout=theirs, cwd=folder, env=environment(), check=True, timeout=60)
    os.close(theirs)
    shown = os.read(ours, 4096)
    os.close(ours)
    assert shown.count(b"\n") == 2
    assert b"\x1b[31m" not in shown
    assert b"\xc2\x9b" not in shown


def test_texts_are_those_of_random_lines(folder: Path) -> None:
    """Of lines of all lengths, in any order, over all ways in which records are read together."""
    chosen = random.Random(5)
    lines = [json.dumps({"n": n, "x": "y" * chosen.choice((0, 10, 300, 5000, 70_000))}) for n in range(400)]
    (folder / "a.ndjson").write_text("".join(f"{line}\n" for line in lines))
    with jitdb.open(folder / "a.ndjson", read_only=True) as db:
        offsets = db.query().sort_by_arrival().offsets()
        for size in (1, 7, 400):
            some = chosen.sample(range(400), size)
            assert db.log.get_many_text([offsets[n] for n in some]) == [lines[n].encode() for n in some]
