"""jitdb import: what is taken, what is refused and with which words, and how one goes on."""

from __future__ import annotations

import gzip
import io
import json
import math
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cli_helpers import environment, make_log, records_of, write
from waiting import until

from jitdb import JITDB
from jitdb.cli import main
from jitdb.cli.input import sources
from jitdb.log import Log
from jitdb.log.io.filenames import LARGER


def test_lines_become_records(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, b'{"a": 1}\n{"a": {"b": [null, true, 1.5, "\xc3\xa9"]}}\n')
    assert main(["import", "in.ndjson", "out.log"]) == 0
    assert records_of(folder / "out.log") == [{"a": 1}, {"a": {"b": [None, True, 1.5, "é"]}}]
    assert "2 records were imported" in capsys.readouterr().out


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1}\n{"a":2}',
        b'{"a":1}\r\n{"a":2}\r\n',
        b'\xef\xbb\xbf{"a":1}\n{"a":2}\n',
        b'\n\n{"a":1}\n \t \n  {"a":2}  \n\n',
        gzip.compress(b'{"a":1}\n{"a":2}\n', mtime=0),
        gzip.compress(b'{"a":1}\n', mtime=0) + gzip.compress(b'{"a":2}\n', mtime=0),
    ],
    ids=["no newline at the end", "CRLF", "byte order mark", "blanks", "gzip", "gzip, two members"],
)
def test_ways_to_write_two_lines(folder: Path, data: bytes) -> None:
    write(folder, data)
    assert main(["import", "in.ndjson", "out.log", "-q"]) == 0
    assert records_of(folder / "out.log") == [{"a": 1}, {"a": 2}]


def test_python_numbers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, b'{"a":NaN}\n{"a":-Infinity}\n{"a":18446744073709551615}\n')
    assert main(["import", "in.ndjson", "out.log", "-q"]) == 0
    nan, infinity, large = (record["a"] for record in records_of(folder / "out.log"))
    assert math.isnan(nan)
    assert (infinity, large) == (-math.inf, 2**64 - 1)
    assert main(["import", "in.ndjson", "out.bipf", "--codec", "bipf"]) == 1
    assert "in.ndjson, line 1: a: bipf holds finite numbers only" in capsys.readouterr().err


def test_several_sources_and_standard_input(process, folder: Path) -> None:
    write(folder, b'{"n":1}\n', "a")
    write(folder, b'{"n":3}\n', "b")
    done = process("import", "a", "-", "b", "out.log", input='{"n":2}\n')
    assert done.returncode == 0, done.stderr
    assert records_of(folder / "out.log") == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_an_empty_source_makes_an_empty_log(folder: Path) -> None:
    write(folder, b"")
    assert main(["import", "in.ndjson", "out.log", "-q"]) == 0
    assert records_of(folder / "out.log") == []
    write(folder, b"{}\n")
    assert main(["import", "in.ndjson", "out.log", "-q"]) == 0  # an empty file is no log that could be spoiled
    assert records_of(folder / "out.log") == [{}]


def test_an_existing_log_is_not_touched(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, b'{"n":1}\n')
    make_log(folder / "out.log", [{"n": 0}])
    assert main(["import", "in.ndjson", "out.log"]) == 1
    assert "--append adds to it" in capsys.readouterr().err
    assert main(["import", "--append", "in.ndjson", "out.log"]) == 0
    assert records_of(folder / "out.log") == [{"n": 0}, {"n": 1}]


def test_append_needs_a_log(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, b'{"n":1}\n')
    assert main(["import", "--append", "in.ndjson", "out.log"]) == 1
    assert "there is no log to add to" in capsys.readouterr().err
    assert not (folder / "out.log").exists()


@pytest.mark.parametrize("made_by", ["touch", "an import without lines"])
def test_a_log_without_records_is_added_to(folder: Path, made_by: str) -> None:
    write(folder, b'{"n":1}\n')
    if made_by == "touch":
        (folder / "out.log").touch()
    else:
        write(folder, b"", "empty.ndjson")
        assert main(["import", "empty.ndjson", "out.log", "-q"]) == 0
    assert main(["import", "--append", "in.ndjson", "out.log", "-q"]) == 0
    assert records_of(folder / "out.log") == [{"n": 1}]


def test_from_line_behind_the_end(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, b'{"n":1}\n{"n":2}\n')
    assert main(["import", "in.ndjson", "out.log", "--from-line", "99"]) == 2
    assert capsys.readouterr().err == "jitdb: in.ndjson has only 2 lines: --from-line 99 is behind its end\n"
    assert not (folder / "out.log").exists()
    assert main(["import", "in.ndjson", "out.log", "--from-line", "3", "-q"]) == 0  # where an import has ended


def test_skipped_lines_are_told_in_their_order(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, b'oops\n{"a":18446744073709551616}\noops\n{"a":18446744073709551616}\n{"n":1}\n' * 2)
    assert main(["import", "--skip-bad", "in.ndjson", "out.log"]) == 1
    said = capsys.readouterr().err
    assert re.findall(r"line (\d+):", said) == ["1", "2", "3", "4", "6", "7", "8", "9"]
    assert "further" not in said
    assert len(records_of(folder / "out.log")) == 2


def test_reasons_are_sentences(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line, words in [
        (b'{"a":"\x07"}', "Invalid control character at column 7\n"),
        (b'{"a":"x', "Unterminated string starting at column 6\n"),
        (b'{"a":"\\x"}', "Invalid \\escape (column 7)\n"),
        (b'{"a":' * 200 + b'"\\ud800"' + b"}" * 200, "…"),
        (b'{"a":18446744073709551616}', "a: an integer of 65 bits does not fit in 64\n"),
    ]:
        write(folder, line + b"\n")
        assert main(["import", "in.ndjson", "out.log"]) == 1
        said = capsys.readouterr().err
        assert words in said
        assert "nothing was imported\n  --skip-bad skips such lines\n" in said
        assert max(map(len, said.splitlines())) < 300
    write(folder, b'{"a":18446744073709551617}\n')
    assert main(["import", "in.ndjson", "out.log", "--codec", "bipf"]) == 1
    assert "msgpack" not in capsys.readouterr().err


def test_gzip_that_was_cut_off(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = gzip.compress("".join(f'{{"n":{math.sin(number)}}}\n' for number in range(20_000)).encode())
    for part, advice in ((40, "get the file whole first\n"), (len(data) - 20, "get the file whole first; then go on")):
        write(folder, data[:part])
        assert main(["import", "in.ndjson", f"{part}.log"]) == 1
        said = capsys.readouterr().err
        assert "the gzip data are cut off" in said
        assert advice in said


BAD: list[tuple[str, bytes, str]] = [
    ("not JSON", b"{'a': 1}", "not JSON: Expecting property name"),
    ("cut off", b'{"a": [1, 2', "not JSON"),
    ("two values", b'{"a":1} {"a":2}', "not JSON: Extra data (column 9)"),
    ("not UTF-8", b'{"a":"\xff"}', "not UTF-8: byte 0xff in column 7"),
    ("65 bits", b'{"a":18446744073709551616}', "a: an integer of 65 bits does not fit in 64"),
    ("thousands of digits", b'{"a":' + b"9" * 5000 + b"}", "an integer of more than 4,300 digits"),
    ("half a pair", b'{"a":{"b":"\\ud800"}}', "a.b: the string has a lone surrogate"),
    ("deep", b"[" * 300 + b"]" * 300, "containers are nested deeper than 256 levels"),
    ("very deep", b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
    ("large", b'{"a":"' + b"x" * (1 << 24) + b'"}', "a record of 16,777,224 bytes does not fit a block"),
    ("control character", b'{"a":"\x07"}', "not JSON: Invalid control character"),
]


@pytest.mark.parametrize(("line", "reason"), [bad[1:] for bad in BAD], ids=[bad[0] for bad in BAD])
def test_a_bad_line_is_named(folder: Path, capsys: pytest.CaptureFixture[str], line: bytes, reason: str) -> None:
    write(folder, b'{"n":1}\n\n{"n":2}\n' + line + b'\n{"n":3}\n')
    assert main(["import", "in.ndjson", "out.log"]) == 1
    said = capsys.readouterr().err
    assert f"in.ndjson, line 4: {reason}" in said
    assert "2 records were imported, in.ndjson up to line 3; they stay in out.log" in said
    assert records_of(folder / "out.log") == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize(("line", "reason"), [bad[1:] for bad in BAD], ids=[bad[0] for bad in BAD])
def test_bad_lines_are_skipped_on_demand(
    folder: Path, capsys: pytest.CaptureFixture[str], line: bytes, reason: str
) -> None:
    write(folder, line + b'\n{"n":1}\n' + line + b'\n{"n":2}\n')
    assert main(["import", "--skip-bad", "in.ndjson", "out.log"]) == 1
    said = capsys.readouterr()
    assert f"skipped in.ndjson, line 1: {reason}" in said.err
    assert f"skipped in.ndjson, line 3: {reason}" in said.err
    assert "2 lines were skipped" in said.err
    assert "2 records were imported" in said.out
    assert records_of(folder / "out.log") == [{"n": 1}, {"n": 2}]


def test_many_bad_lines_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, b"x\n" * 500 + b"{}\n")
    assert main(["import", "--skip-bad", "in.ndjson", "out.log"]) == 1
    said = capsys.readouterr().err
    assert said.count("skipped in.ndjson") == 10
    assert "500 lines were skipped" in said


def test_the_block_size_that_would_do(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, b'{"a":"' + b"x" * 131_056 + b'"}\n')
    assert main(["import", "in.ndjson", "out.log", "--block-size", "64K"]) == 1
    assert "--block-size 131072" in capsys.readouterr().err
    assert main(["import", "in.ndjson", "out.log", "--block-size", "128K"]) == 0
    write(folder, b'{"a":"' + b"x" * 131_072 + b'"}\n')
    assert main(["import", "--append", "in.ndjson", "out.log"]) == 0
    assert "blocks of 262,144 bytes" in capsys.readouterr().out
    assert [len(record["a"]) for record in records_of(folder / "out.log")] == [131_056, 131_072]


def test_blocks_of_a_log_that_is_there_grow(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, b'{"n":1}\n{"n":2}\n')
    assert main(["import", "in.ndjson", "out.log"]) == 0
    assert main(["count", "out.log", "n == 2"]) == 0
    write(folder, b'{"n":3}\n{"n":2,"a":"' + b"x" * 70_000 + b'"}\nbad\n')
    assert main(["import", "--append", "in.ndjson", "out.log"]) == 1
    assert "2 records were imported, in.ndjson up to line 2" in capsys.readouterr().err
    assert [record["n"] for record in records_of(folder / "out.log")] == [1, 2, 3, 2]
    assert main(["count", "out.log", "n == 2"]) == 0
    assert capsys.readouterr().out == "2\n"
    assert main(["verify", "out.log"]) == 0


def test_a_log_whose_blocks_cannot_grow_says_why(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for codec, words in (("bipf", "JavaScript may read"), ("msgpack", "jitdb compact")):
        name = f"{codec}.log"
        write(folder, b'{"n":1}\n{"n":2}\n')
        assert main(["import", "in.ndjson", name, "--codec", codec]) == 0
        with Log(folder / name) as log:
            log.delete(0)
        write(folder, b'{"a":"' + b"x" * 70_000 + b'"}\n')
        assert main(["import", "--append", "in.ndjson", name]) == 1
        assert words in capsys.readouterr().err
        assert records_of(folder / name) == [{"n": 2}]
    assert main(["compact", "msgpack.log"]) == 0
    assert main(["import", "--append", "in.ndjson", "msgpack.log"]) == 0


@pytest.mark.parametrize("codec", ["msgpack", "bipf"])
def test_blocks_of_a_new_log_grow_with_its_records(
    folder: Path, capsys: pytest.CaptureFixture[str], codec: str
) -> None:
    values: list[Any] = [{"n": number, "text": "x" * (number % 300)} for number in range(3000)]
    for at, size in ((0, 70_000), (1000, 60_000), (1500, 200_000), (2990, 1_000_000)):
        values[at]["text"] = "é" * size
    write(folder, "".join(json.dumps(value) + "\n" for value in values).encode())
    assert main(["import", "in.ndjson", "out.log", "--codec", codec]) == 0
    assert f"({codec}, blocks of 2,097,152 bytes)" in capsys.readouterr().out
    assert records_of(folder / "out.log") == values
    assert sorted(path.name for path in folder.iterdir()) == ["in.ndjson", "out.log", "out.log.jitdb"]
    assert main(["verify", "out.log"]) == 0


def test_what_a_killed_growth_leaves_is_removed(folder: Path) -> None:
    write(folder, b'{"n":1}\n{"text":"' + b"x" * 70_000 + b'"}\n')
    program = (
        "import os, sys\nfrom jitdb.cli import main\nfrom jitdb.log import Log\n"
        "Log.replace_with = lambda *_: os._exit(9)\nmain(['import', 'in.ndjson', 'out.log'])\n"
    )
    assert subprocess.run([sys.executable, "-c", program], env=environment(), check=False).returncode == 9
    assert sorted(path.name for path in folder.iterdir()) == ["in.ndjson", "out.log", "out.log.jitdb"]
    left = folder / "out.log.jitdb" / LARGER
    assert (left / "log").exists()
    Log(folder / "out.log").close()
    assert not left.exists()
    assert records_of(folder / "out.log") == [{"n": 1}]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'[\n  {"a": 1},\n  {"a": 2}\n]\n', "looks like one JSON array"),
        (b'[{"a": 1}, {"a": 2}]', "this is one JSON array of 2 records"),
        (b'{\n  "a": 1\n}\n', "JSON over several lines"),
        (b"time,level\n1,info\n", "looks like CSV"),
        ('{"a": 1}\n'.encode("utf-16"), "this is UTF-16"),
        (gzip.compress(b'{"a":1}\n' * 1000, mtime=0)[:-9], "the gzip data are cut off"),
    ],
)
def test_files_of_another_kind(folder: Path, capsys: pytest.CaptureFixture[str], data: bytes, words: str) -> None:
    write(folder, data)
    assert main(["import", "in.ndjson", "out.log"]) == 1
    assert words in capsys.readouterr().err


def test_arrays_are_records_too(folder: Path) -> None:
    write(folder, b'[{"a":1}]\n[{"a":2}]\n[3]\n')
    assert main(["import", "in.ndjson", "out.log", "-q"]) == 0
    assert records_of(folder / "out.log") == [[{"a": 1}], [{"a": 2}], [3]]


def test_nothing_is_made_when_nothing_can_be_imported(folder: Path) -> None:
    write(folder, b"nonsense\n")
    assert main(["import", "in.ndjson", "out.log"]) == 1
    assert main(["import", "missing.ndjson", "out.log"]) == 1
    assert sorted(path.name for path in folder.iterdir()) == ["in.ndjson"]


def test_operands_are_checked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, b"{}\n")
    for arguments, code, words in [
        ([], 2, "SOURCE and LOG are missing"),
        (["in.ndjson"], 2, "jitdb import in.ndjson in.log"),
        (["in.ndjson", "-"], 2, "cannot be written to standard output"),
        (["-", "-", "x.log"], 2, "once only"),
        (["in.ndjson", "."], 1, "this is a folder"),
        ([".", "x.log"], 1, "this is a folder"),
        (["in.ndjso", "x.log"], 1, "did you mean in.ndjson?"),
        (["in.ndjson", "in.ndjson"], 1, "this is the log itself"),
        (["in.ndjson", "nope/x.log"], 1, "nope"),
    ]:
        assert main(["import", *arguments]) == code, arguments
        assert words in capsys.readouterr().err


def test_the_advice_to_go_on_is_right(folder: Path, run, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.dumps({"n": number}) for number in range(5000)]
    write(folder, "\n".join([*lines[:3000], "oops", *lines[3000:]]).encode())
    assert main(["import", "in.ndjson", "out.log"]) == 1
    (advice,) = (line for line in capsys.readouterr().err.splitlines() if "go on with: " in line)
    write(folder, "\n".join([*lines[:3000], "", *lines[3000:]]).encode())
    assert main(shlex.split(advice.partition("jitdb ")[2])) == 0
    assert [record["n"] for record in records_of(folder / "out.log")] == list(range(5000))


def test_lines_across_reads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever pieces a pipe delivers, the lines are the same."""
    from jitdb.cli.input.sources import Source

    class Trickle(io.BufferedReader):
        def read1(self, size: int = -1) -> bytes:
            return super().read1(7)

    text = b'{"a":"long enough to span reads"}\n\n{"b":2}\n{"c":3}'
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Trickle(io.BytesIO(text))))  # type: ignore[arg-type]
    with Source("-") as source:
        found = b"".join(portion.data[portion.begin : portion.end] for portion in source.portions())
    assert found == text + b"\n"


def test_tagged_values_come_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = [{"a": b"\x00\xff", "b": {1: float("inf")}, "c": {"$bytes": "no"}}]
    make_log(folder / "a.log", values)
    assert main(["export", "a.log", "-o", "a.ndjson"]) == 0
    assert main(["import", "--tagged", "a.ndjson", "b.log", "-q"]) == 0
    assert records_of(folder / "b.log") == values
    assert main(["import", "a.ndjson", "c.log", "-q"]) == 0
    assert records_of(folder / "c.log")[0]["a"] == {"$bytes": "AP8="}
    write(folder, b'{"a":{"$bytes":5}}\n')
    assert main(["import", "--tagged", "in.ndjson", "d.log"]) == 1
    assert "line 1: $bytes holds 5" in capsys.readouterr().err


def test_a_first_line_that_is_an_array_is_handed_on_at_once(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "jitdb", "import", "-", "out.log"],
        cwd=folder, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, bufsize=0,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(b"[1, 2]\n")
        log = folder / "out.log"
        until(lambda: log.exists() and records_of(log))
        assert records_of(log) == [[1, 2]]
        process.stdin.close()
    assert process.returncode == 0
    assert records_of(log) == [[1, 2]]


@pytest.mark.parametrize("options", [[], ["--allow-prefix"], ["--format", "csv"]])
@pytest.mark.parametrize("size", [3000, 5 << 20])
@pytest.mark.parametrize("is_last", [False, True])
def test_a_line_that_is_too_long(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    options: list[str], size: int, is_last: bool,
) -> None:  # fmt: skip
    """It is a bad line like others: named, and passed over if that is wanted. It is never held as a whole."""
    monkeypatch.setattr(sources, "LONGEST", 100)
    monkeypatch.setattr(sources, "READ", 64)
    if "csv" in options:
        good, head = [b"%d\n" % number for number in range(20)], b"n\n"
    else:
        good, head = [b'{"n": %d}\n' % number for number in range(20)], b""
    end = b"" if is_last else b"\n" + b"".join(good[10:])
    Path("in").write_bytes(head + b"".join(good[:10]) + b'{"n": "' + b"x" * (size - 9) + b'"}' + end)
    number = 12 if "csv" in options else 11
    assert main(["import", "-q", *options, "in", "out.log"]) == 1
    assert f"in, line {number}: it has more than 0 MiB, and no log holds it" in capsys.readouterr().err
    assert main(["import", "-q", "--skip-bad", *options, "in", "all.log"]) == 1
    assert "1 line was skipped" in capsys.readouterr().err
    assert [record["n"] for record in records_of(Path("all.log"))] == list(range(10 if is_last else 20))


def test_lines_stay_as_they_are(folder: Path) -> None:
    """Byte for byte, however many there are: also keys that come twice, digits, NaN and escapes."""
    some = [
        rb'{"a": 1.50, "b": 1e2, "a": 2}', rb'{"b":NaN,"n":-Infinity,"t":"\u00e9\/","raw":"' + "é".encode() + b'"}',
        b'[ 1 , {"x":{ } } ]', b"18446744073709551615", b"0", b'""', b"1e400", rb'"\udc80"',
    ]  # fmt: skip
    for count in (1, 1000):
        name = f"{count}.log"
        write(folder, b"\r\n".join([b" " + line + b"\t" for line in some * count]))
        assert main(["import", "in.ndjson", name, "-q"]) == 0
        with Log(folder / name, read_only=True) as log:
            assert [record.value for record in log.stream(raw=True)] == some * count


def test_a_log_of_lines_is_a_log_like_others(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, b"".join(b'{"n": %d, "in": {"t": ["x%d"]}}\n' % (number, number % 7) for number in range(20_000)))
    assert main(["import", "in.ndjson", "out.log", "-q"]) == 0
    assert main(["delete", "out.log", "n < 5000", "--yes", "--compact", "-q"]) == 0
    with Log(folder / "out.log") as log:
        assert log.codec.name == "json"
        log.append({"n": 5, "in": {"t": ["x1"]}})
    capsys.readouterr()
    assert main(["verify", "out.log", "-q"]) == 0
    capsys.readouterr()
    for expression, count in (('in.t[] == "x1"', 2143), ("n < 5001", 2), ('in.t[0] == "x0" and n >= 19994', 1)):
        assert main(["count", "out.log", expression]) == 0
        assert capsys.readouterr().out == f"{count}\n", expression
    with JITDB(Log(folder / "out.log", read_only=True)) as db:
        table = db.query().sort_by_arrival().to_arrow(["n", "in.t"])
    assert table["n"].to_pylist() == [*range(5000, 20_000), 5]
    assert table["in.t"][-1].as_py() == ["x1"]
    write(folder, b'{"n": 6}\n', "more.ndjson")
    assert main(["import", "--append", "more.ndjson", "out.log", "-q"]) == 0
    assert records_of(folder / "out.log")[-2:] == [{"n": 5, "in": {"t": ["x1"]}}, {"n": 6}]
