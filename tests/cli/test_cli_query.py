"""jitdb count, query, export, prepare: the same answers as the library, in the shape that was asked for."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import msgpack
import pytest
from cli_helpers import EVENTS, ROOT, environment, make_log, records_of

import jitdb
from jitdb.cli import main
from jitdb.cli.commands.demo import program
from jitdb.common.values import UNDEFINED
from jitdb.operators import equal


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]):
    """`ask("query", …)`: what is printed; the command succeeds and says nothing else."""

    def call(*arguments: str) -> str:
        assert main(arguments) == 0
        said = capsys.readouterr()
        assert said.err == ""
        return said.out

    return call


def lines(output: str) -> list[Any]:
    return [json.loads(line) for line in output.splitlines()]


POSTS = 'value.content.type == "post"'


def test_count(ask, ssb: Path) -> None:
    assert ask("count", "ssb.log", POSTS) == "1257\n"
    assert ask("count", "ssb.log") == "5000\n"
    assert ask("count", "ssb.log", "everything()") == "5000\n"


def test_query_says_what_the_library_says(ask, ssb: Path) -> None:
    with jitdb.open(ssb, read_only=True) as db:
        posts = equal("value.content.type", "post")
        assert lines(ask("query", "ssb.log", POSTS)) == db.all(posts)
        assert lines(ask("query", "ssb.log", POSTS, "--descending")) == db.all(posts, descending=True)
        assert lines(ask("query", "ssb.log", POSTS, "--arrival")) == db.all(posts, sort_by="arrival")
        assert lines(ask("query", "ssb.log", POSTS, "--offsets")) == db.all(posts, as_offsets=True)
        assert lines(ask("query", "ssb.log")) == db.all()


@pytest.mark.parametrize(("skip", "limit"), [(0, 1), (3, 7), (1250, 100), (2000, 5), (0, 1000), (0, 1001), (999, 1257)])
def test_skip_and_limit(ask, ssb: Path, skip: int, limit: int) -> None:
    with jitdb.open(ssb, read_only=True) as db:
        expected = db.all(equal("value.content.type", "post"), as_offsets=True, descending=True)[skip : skip + limit]
    options = ("--offsets", "--descending", "--skip", str(skip), "--limit", str(limit))
    assert lines(ask("query", "ssb.log", POSTS, *options)) == expected


def test_options_anywhere(ask, events: Path) -> None:
    expected = ask("query", "events.log", 'level == "error"', "--arrival", "--limit", "1")
    assert ask("query", "--limit", "1", "events.log", "--arrival", 'level == "error"') == expected
    assert ask("query", "events.log", "--arr", "-n1", 'level == "error"') == expected
    assert ask("-q", "query", "events.log", "--limit=1", 'level == "error"') == expected


def test_fields(ask, events: Path) -> None:
    found = lines(ask("query", "events.log", "--arrival", "--fields", "user.name, status,tags"))
    assert found[1] == {"user.name": "grace", "status": 502}
    assert found[2] == {"user.name": "grace", "status": 200, "tags": ["a"]}
    assert found[4] == {"status": 404}


def test_deleted_records_are_in_no_answer(ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "tests" / "data" / "ssb-5k-deleted.bipf", "ssb.log")
    live = records_of(tmp_path / "ssb.log")
    assert ask("count", "ssb.log") == f"{len(live)}\n"
    assert lines(ask("export", "ssb.log")) == live
    found = json.loads(ask("info", "ssb.log", "--json"))
    assert found["records"] == len(live)
    assert found["deleted_records"] == 5000 - len(live)


def test_a_timestamp_of_ones_own(ask, events: Path) -> None:
    (newest,) = lines(ask("query", "events.log", "--timestamp", "time", "--descending", "--limit", "1"))
    assert newest == EVENTS[-1]
    (most,) = lines(ask("query", "events.log", "--timestamp", "status", "--descending", "--limit", "1"))
    assert most["status"] == 502


def test_values_that_json_lacks(ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    strange = [
        {"a": b"x", 1: float("nan")},
        {"e": msgpack.ExtType(3, b"y"), "t": msgpack.Timestamp(1)},
        [1],
        7,
        "text",
        None,
    ]
    make_log(tmp_path / "x.log", strange)
    assert len(lines(ask("query", "x.log", "--arrival"))) == 6
    assert len(lines(ask("export", "x.log"))) == 6
    assert "$bytes" in ask("query", "x.log", "--arrival", "--format", "table", "--fields", "a,e")
    ask("query", "x.log", "--arrival", "--format", "table")
    make_log(tmp_path / "b.log", [{"u": UNDEFINED, "b": b"x"}], codec="bipf")
    assert lines(ask("query", "b.log")) == [{"u": {"$undefined": True}, "b": {"$bytes": "eA=="}}]
    make_log(tmp_path / "r.log", [b"\x01raw"], codec="raw")
    assert lines(ask("export", "r.log")) == [{"$bytes": "AXJhdw=="}]


def test_output_file(ask, events: Path, tmp_path: Path) -> None:
    for name in ("all.ndjson", "all.ndjson.gz"):
        assert ask("query", "events.log", "--timestamp", "time", "--output", name) == ""
        assert ask("export", "events.log", "-o", f"exported.{name}") == ""
    assert lines((tmp_path / "all.ndjson").read_text()) == EVENTS
    assert lines(gzip.decompress((tmp_path / "exported.all.ndjson.gz").read_bytes()).decode()) == EVENTS


def test_export_is_in_the_order_of_the_log(ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_log(tmp_path / "x.log", [{"timestamp": 3, "n": 1}, {"timestamp": 1, "n": 2}, {"timestamp": 2, "n": 1}])
    assert [record["timestamp"] for record in lines(ask("export", "x.log"))] == [3, 1, 2]
    assert [record["timestamp"] for record in lines(ask("export", "x.log", "n == 1"))] == [3, 2]
    assert [record["timestamp"] for record in lines(ask("query", "x.log", "n == 1"))] == [2, 3]


def test_export_of_records_that_cannot_be_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    records = [{"n": number, "text": "x" * 1000} for number in range(100)]  # two blocks
    make_log(tmp_path / "x.log", records)
    data = bytearray((tmp_path / "x.log").read_bytes())
    size = len(msgpack.packb(records[0])) + 2
    data[60 * size + 2] = 0xC1  # never used in msgpack; behind the records that are looked at to see what the log is
    (tmp_path / "x.log").write_bytes(data)
    shutil.rmtree(tmp_path / "x.log.jitdb")
    arguments = ["export", "x.log", "--codec", "msgpack"]
    assert main(arguments) == 1
    said = capsys.readouterr()
    assert len(lines(said.out)) == 60
    assert f"the record at offset {60 * size} cannot be decoded as msgpack" in said.err
    assert "--skip-bad" in said.err
    assert main([*arguments, "--skip-bad"]) == 1
    said = capsys.readouterr()
    assert lines(said.out) == [*records[:60], *records[61:]]
    assert "1 record that cannot be decoded left out" in said.err


def test_prepare_makes_the_questions_fresh(ask, events: Path) -> None:
    said = ask("prepare", "events.log", 'level == "x"', "status > 3", "tags is absent")
    assert "scanned" in said
    assert "nothing to do" in ask("prepare", "events.log", 'level == "y"', "status > 4")
    found = json.loads(ask("info", "events.log", "--json"))
    assert {"level", "status", "tags"} <= {row["name"] for row in found["indexes"]}
    assert ask("prepare", "events.log", "status > 4", "-q") == ""


def test_indexes_elsewhere(ask, events: Path, tmp_path: Path) -> None:
    ask("count", "events.log", 'level == "error"', "--indexes", "none")
    assert not list(tmp_path.glob("**/*.index"))
    ask("count", "events.log", 'level == "error"', "--indexes", "elsewhere")
    assert list((tmp_path / "elsewhere").glob("level.*.index"))
    names = {
        row["name"] for row in json.loads(ask("info", "events.log", "--json", "--indexes", "elsewhere"))["indexes"]
    }
    assert "level" in names


def test_info(ask, events: Path) -> None:
    assert "no indexes yet" in ask("info", "events.log")
    ask("count", "events.log", 'level == "error"')
    found = json.loads(ask("info", "events.log", "--json"))
    assert found["path"] == str(events.resolve())
    assert (found["records"], found["deleted_records"], found["codec"], found["block_size"]) == (5, 0, "msgpack", 65536)
    assert {row["state"] for row in found["indexes"]} == {"fresh"}
    with jitdb.Log(events) as log:
        log.append({"level": "debug"})
    found = json.loads(ask("info", "events.log", "--json"))
    assert {row["state"] for row in found["indexes"]} == {"stale"}
    (index,) = (events.parent / "events.log.jitdb" / "indexes").glob("level.*")
    index.write_bytes(b"nonsense")
    states = {row["name"]: row["state"] for row in json.loads(ask("info", "events.log", "--json"))["indexes"]}
    assert states[index.name] == "damaged"
    assert "damaged" in ask("info", "events.log")


def test_info_tells_indexes_of_another_log(ask, events: Path) -> None:
    ask("count", "events.log", 'level == "error"')
    other = make_log(events.parent / "other.log", EVENTS)
    found = json.loads(ask("info", str(other), "--json", "--indexes", "events.log.jitdb/indexes"))
    assert {row["state"] for row in found["indexes"]} == {"void"}


def test_an_empty_log(ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    make_log(tmp_path / "x.log")
    asked = {("count", "x.log", "a == 1"): "0\n", ("query", "x.log"): "", ("export", "x.log"): ""}
    asked |= {("query", "x.log", "--format", "table"): "no records match\n"}
    for words, answer in asked.items():
        assert main(words) == 0
        assert capsys.readouterr() == (answer, "jitdb: x.log is empty\n" if words[0] != "export" else "")
    assert "newest   none" in ask("info", "x.log")


def test_the_program_is_named_as_it_can_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr("sys.argv", [str(ROOT / "jitdb" / "__main__.py"), "demo"])
    assert program() == f"{sys.executable} -m jitdb"
    script = tmp_path / ".venv" / "bin" / "jitdb"
    script.parent.mkdir(parents=True)
    script.touch(0o755)
    monkeypatch.setattr("sys.argv", [str(script), "demo"])
    assert program() == ".venv/bin/jitdb"
    monkeypatch.setenv("PATH", str(script.parent))
    assert program() == "jitdb"


def test_demo(ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--keep", "playground", "-q"]) == 0
    said = capsys.readouterr().out
    commands = re.findall(rf"^\$ {re.escape(program())} (.*)$", said, re.M)
    answers = re.split(r"^\$ .*\n", said, flags=re.M)[1:]
    assert len(commands) == 7
    for typed, answer in zip(commands, answers, strict=True):
        assert main(shlex.split(typed)) == 0
        assert answer.startswith(capsys.readouterr().out)
    lines = [json.loads(line) for line in (tmp_path / "playground" / "shop.ndjson").read_text().splitlines()]
    assert answers[0].startswith(f"{sum(line['level'] == 'error' for line in lines)}\n")
    traced = [line for line in lines if "trace" in line]
    assert f"of {len(traced)}; more with --skip 1" in answers[4]
    assert {(line["version"], line["region"]) for line in traced} == {("2.15.0", "eu-west")}
    assert traced[0]["time"].startswith("2026-11-20T14:12")
    assert "8 of 8" in traced[0]["trace"]
    assert f"{program()} fields playground/shop.ndjson" in said
    assert main(["demo", "--keep", "playground"]) == 1
    assert "there is a file already" in capsys.readouterr().err


def test_the_demo_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["demo"]) == 0
    assert "Found: " in capsys.readouterr().out
    assert Path.cwd() == tmp_path
    assert not list(tmp_path.iterdir())


def test_info_of_a_field_with_two_indexes(ask, events: Path) -> None:
    ask("count", "events.log", "status == 200")
    ask("count", "events.log", "status > 200")
    told = ask("info", "events.log")
    assert "\nstatus (==, in, absent): 5 records, " in told
    assert "\nstatus (<, <=, >, >=): 5 records, " in told
    with jitdb.Log(events) as log:
        log.append_many([{"text": "x" * 60_000}] * 3)
    assert "stale: 0.2 MB" in ask("info", "events.log")


def test_info_of_an_empty_file(ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.log").touch()
    assert "codec    none yet" in ask("info", "x.log")
    assert json.loads(ask("info", "x.log", "--json"))["codec"] is None
    make_log(tmp_path / "y.log", codec="bipf")
    assert json.loads(ask("info", "y.log", "--json"))["codec"] == "bipf"


def test_a_codec_of_an_installed_package(process, tmp_path: Path) -> None:
    """Its entry points name it: records are made, read and asked with it."""
    package = tmp_path / "site" / "masked-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Name: masked\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[jitdb.codecs]\nmasked = own_codec:Masked\n")
    (tmp_path / "in.ndjson").write_text('{"a":1}\n{"a":2}\n')
    there = os.pathsep.join((str(package.parent), str(ROOT / "tests"), str(ROOT)))
    settings = {"env": {**environment(), "PYTHONPATH": there}}
    assert process("import", "in.ndjson", "x.log", "--codec", "masked", "-q", **settings).returncode == 0
    assert process("count", "x.log", "a == 2", "--codec", "masked", **settings).stdout == "1\n"


def test_sort(ask, ssb: Path, events: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with jitdb.open(ssb, read_only=True) as db:
        expected = db.all(equal("value.content.type", "post"), sort_by=["value.author", "-value.sequence"])
        assert lines(ask("query", "ssb.log", POSTS, "--sort", "value.author,-value.sequence")) == expected
        twice = ("--sort", "value.author", "--sort", "-value.sequence", "--skip", "3", "-n", "9")
        assert lines(ask("query", "ssb.log", POSTS, *twice)) == expected[3:12]
        assert lines(ask("query", "ssb.log", POSTS, "--sort=-value.author,value.sequence", "-n", "1")) != expected[:1]
    assert main(["query", "events.log", "--sort", "-user.nam", "--limit", "1"]) == 0
    assert capsys.readouterr().err == (
        "jitdb: none of these records has the field `user.nam`; did you mean `user.name`?\n"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--sort", "a,-a"], "names the field 'a' twice"),
        (["--sort", "a", "--sort", "-a"], "names the field 'a' twice"),
        (["--sort", "a", "--arrival"], "leave one of them out"),
        (["--sort", "a,,b"], "field paths with commas"),
        (["--sort"], "expected one argument"),
    ],
)
def test_what_cannot_be_sorted(
    events: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert main(["query", "events.log", *arguments]) == 2
    assert told in capsys.readouterr().err
