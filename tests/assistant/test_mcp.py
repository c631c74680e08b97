"""`jitdb mcp`: what an assistant gets to read, over the protocol and from the tools themselves."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")
from investigator import investigate, table, tokens_in
from mcp.client.client import Client
from planted_log import BEGIN, END, REGION, VERSION, write_planted

import jitdb
from jitdb.assistant.server import server_of
from jitdb.assistant.texts import CHARACTERS
from jitdb.assistant.tools import TOOLS, answer
from jitdb.cli import main
from jitdb.errors import JitdbError
from jitdb.operators import field

Ask = Callable[..., str]
LEVELS = ("info", "info", "error", "debug")
RECORDS = [
    {
        "time": f"2026-11-20T{n // 60:02}:{n % 60:02}:00Z", "level": LEVELS[n % 4], "n": n, "message": f"took {n}ms",
        "user": {"id": f"u-{n % 7}"}, **({"rare": n} if n % 50 == 0 else {}),
    }
    for n in range(300)
]  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "a.ndjson"
    found.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return found


@pytest.fixture
def db(path: Path) -> Iterator[jitdb.JITDB]:
    with jitdb.open(path, "memory", progress=False) as opened:
        yield opened


@pytest.fixture
def ask(db: jitdb.JITDB) -> Ask:
    """`ask("count", where="n > 5")`: the text of the answer."""
    return lambda tool, **given: asyncio.run(answer(db, tool, given))


def test_an_assistant_finds_the_fault(tmp_path: Path) -> None:
    """In a log that it does not know, over standard input and output, in few calls and tokens."""
    write_planted(tmp_path / "service.ndjson", 30_000)
    found = asyncio.run(investigate(str(tmp_path / "service.ndjson"), "--indexes", str(tmp_path / "indexes")))
    assert (found.begin, found.end) == (f"{BEGIN:%Y-%m-%dT%H:%M}", f"{END:%Y-%m-%dT%H:%M}")
    assert {f"version = {VERSION}", f"region = {REGION}"} <= set(found.shared)
    assert found.pattern == "pool timeout after <num>ms waiting for connection <num>/<num>"
    assert all(re.fullmatch("[0-9a-f]{16}", trace) for trace in found.traces)
    assert len(found.calls) <= 10
    assert found.tokens <= 5000


def test_the_page_names_each_tool() -> None:
    page = (Path(__file__).parents[2] / "docs" / "assistants.md").read_text()
    assert re.findall(r"^\| `(\w+)` \| ", page, re.M)[: len(TOOLS)] == list(TOOLS)


def test_what_the_protocol_says(db: jitdb.JITDB) -> None:
    async def talk() -> None:
        async with Client(server_of(db, "the log a.ndjson")) as client:
            assert "the log a.ndjson" in (client.instructions or "")
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == list(TOOLS)
            assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
            told = "".join(tool.model_dump_json(exclude_unset=True) for tool in tools) + (client.instructions or "")
            assert tokens_in(told) < 4000  # which every conversation begins with
            done = await client.call_tool("count", {"where": 'level == "error"'})
            assert (done.is_error, done.content[0].text) == (False, "75 of 300 records (25.0%)")  # type: ignore[union-attr]
            wrong = await client.call_tool("count", {"where": 'level = "error"'})
            assert wrong.is_error
            assert "equality is written `==`" in wrong.content[0].text  # type: ignore[union-attr]
            assert not (await client.call_tool("count", {})).is_error  # and so it goes on

    asyncio.run(talk())


def test_answers_are_those_of_the_records(ask: Ask, db: jitdb.JITDB) -> None:
    levels = Counter(record["level"] for record in RECORDS)
    found = {row[0]: int(row[1]) for row in table(ask("values", field="level"))}
    assert found == levels
    pairs = table(ask("values", field="level", by=["user.id"], limit=100))
    assert len(pairs) == len({(record["level"], record["user"]["id"]) for record in RECORDS})  # type: ignore[index]
    hours = table(ask("timeline", every="1h"))
    assert [row[0] for row in hours] == ["2026-11-20T00:00", "01:00", "02:00", "03:00", "04:00"]
    assert [int(row[1]) for row in hours] == [60] * 5
    shares = table(ask("timeline", every="1h", share='level == "error"', since="2026-11-20T01:00"))
    assert [row[1:] for row in shares] == [["15", "60", "25.0%"]] * 4
    stats = table(ask("stats", field="n", by=["level"], where="n < 100"))
    own = {level: [n for n in range(100) if LEVELS[n % 4] == level] for level in levels}
    assert {row[0]: (int(row[1]), int(row[3]), int(row[4])) for row in stats} == {
        level: (len(held), min(held), max(held)) for level, held in own.items()
    }
    assert "max\t299" in ask("stats", field="n")
    assert "300\t100.0%\ttook <num>ms" in ask("patterns")
    assert "300\t100.0%\tnew\ttook <num>ms" in ask("patterns", new_since="2026-11-20T00:00")
    assert "level\t3 values: info 50.0%, debug 25.0%, error 25.0%" in ask("facets")
    assert "n\tmin 0, median 149" in ask("facets")
    assert table(ask("find", text="u-3"))[0][:2] == ["user.id", str(sum(n % 7 == 3 for n in range(300)))]
    assert "rare\tnumber\t" in ask("fields", containing="ar")
    assert "level" not in ask("fields", containing="ar")
    late = ask("difference", where='level == "error"', against="n > 100", fields=["n", "user.id"])
    assert f"75 records against {sum(n > 100 and LEVELS[n % 4] != 'error' for n in range(300))} others" in late


def test_pages_go_on_while_the_log_grows(ask: Ask, path: Path) -> None:
    where, found, cursor = 'level == "error"', list[str](), None
    while True:
        text = ask("records", where=where, fields=["n"], sort="-time", limit=20, cursor=cursor)
        found += [line for line in text.splitlines()[1:] if line.isdecimal()]
        with path.open("a") as out:
            out.write(json.dumps({"time": "2026-11-21T00:00:00Z", "level": "error", "n": 9999}) + "\n")
        more = re.search(r"cursor=(\S+)", text)
        if more is None:
            break
        cursor = more[1]
    assert found == [str(n) for n in reversed(range(300)) if LEVELS[n % 4] == "error"]
    assert ask("count", where="n == 9999") == "4 of 304 records (1.3%)"


def test_records_as_a_table_and_whole(ask: Ask) -> None:
    text = ask("records", where="n >= 50", limit=2)
    assert text.splitlines()[0].split("\t")[:2] == ["time", "level"]
    assert text.splitlines()[0].endswith("message")
    assert "took 50ms" in text
    assert "records 1 to 2 of 250" in text
    assert json.loads(ask("records", where="n == 50", whole=True).splitlines()[0]) == RECORDS[50]
    sorted_by = ask("records", sort="-n", fields=["n", "nobody"], limit=2)
    assert sorted_by.splitlines()[:3] == ["n\tnobody", "299", "298"]
    assert ask("records", where="n == 1000") == "0 records match"


@pytest.mark.parametrize(
    ("tool", "given", "told"),
    [
        ("nope", {}, ["no tool nope", "there are fields, count"]),
        ("coun", {}, ["did you mean count"]),
        ("count", {"wher": "n == 1"}, ["no argument `wher`", "did you mean where"]),
        ("count", {"where": 7}, ["`where` is a text, not 7"]),
        ("values", {}, ["argument `field` is missing"]),
        ("values", {"field": "n", "limit": 1000}, ["whole number from 1 to 100"]),
        ("values", {"field": "n", "limit": True}, ["whole number from 1 to 100"]),
        ("values", {"field": "n", "by": "level"}, ["`by` is a list of texts"]),
        ("count", {"where": "n = 1"}, ["equality is written `==`", "n == 1"]),
        ("count", {"where": "n =="}, ["n =="]),
        ("count", {"since": "soon"}, ["no time", "2h"]),
        ("timeline", {"every": "fortnight"}, ["no step of time", "10s"]),
        ("timeline", {"every": "1us"}, ["bins", "longer steps"]),
        ("timeline", {"share": "level ="}, ["level ="]),
        ("records", {"cursor": "there"}, ["no cursor"]),
        ("records", {"whole": "yes"}, ["true or false"]),
        ("difference", {"since": "2h"}, ["argument `where` is missing"]),
    ],
)
def test_errors_say_what_to_do(ask: Ask, tool: str, given: dict[str, Any], told: list[str]) -> None:
    from jitdb.assistant.tools import told as text_of

    with pytest.raises(JitdbError) as raised:
        ask(tool, **given)
    assert all(each in text_of(raised.value) for each in told), text_of(raised.value)


def test_notes_say_what_was_meant(ask: Ask) -> None:
    meant = "note: no record has the field `lvel`; did you mean `level`?"
    assert meant in ask("count", where='lvel == "error"')
    assert meant in ask("timeline", share='lvel == "error"')
    assert meant in ask("difference", where="n > 5", against='lvel == "error"')
    assert meant in ask("values", field="lvel")
    assert 'did you mean `level == "error"`' in ask("count", where='level == "ERROR"')
    assert "did you mean `user.id`" in ask("values", field="usr.id")
    assert "note" not in ask("values", field="level", where="n > 5")
    assert "note: 300 records hold it in other case: ignore_case" in ask("find", text="TOOK")


def test_hostile_records_stay_small_and_in_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    hostile = {
        "message": "a\nb\tc\x1b[2J\u202e" + "x" * 10**5,
        "level": "error",
        **{f"k{n}": "y" * 999 for n in range(300)},
    }
    path.write_text((json.dumps(hostile) + "\n") * 30)
    with jitdb.open(path, "memory", progress=False) as db:
        for tool, given in (
            ("records", {"limit": 100}), ("records", {"limit": 9, "whole": True}), ("fields", {}), ("facets", {}),
            ("values", {"field": "message"}), ("patterns", {}), ("find", {"text": "y"}),
            ("difference", {"where": 'level == "error"'}),
        ):  # fmt: skip
            text = asyncio.run(answer(db, tool, given))
            assert len(text) <= CHARACTERS + 200
            assert re.search(r"[^\n\t -~…]", text.replace("·", "")) is None, tool
        assert "\t" not in table(asyncio.run(answer(db, "values", {"field": "message"})))[0][0]


def test_many_logs(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.ndjson").write_text(
            "".join(json.dumps({**record, "log": name}) + "\n" for record in RECORDS)
        )
    with jitdb.open_many(str(tmp_path), "memory", progress=False) as logs:
        assert asyncio.run(answer(logs, "count", {"where": "n > 297"})) == "4 of 600 records (0.7%)"
        page = asyncio.run(answer(logs, "records", {"limit": 3}))
        cursor = re.search(r"cursor=(\S+)", page)
        assert cursor is not None
        assert "records 4 to 6 of 600" in asyncio.run(answer(logs, "records", {"limit": 3, "cursor": cursor[1]}))


def test_a_call_that_is_given_up_ends(db: jitdb.JITDB) -> None:
    async def give_up() -> None:
        asking = asyncio.create_task(answer(db, "count", {"where": "n > 5"}))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await answer(db, "count", {}) == "300 of 300 records (100.0%)"

    asyncio.run(give_up())


def test_the_command(path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "jitdb", "mcp", str(path), "--indexes", "none"],
        input=b"no message\n", capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0  # standard input ended
    assert b"Traceback" not in done.stderr
    assert main(["mcp", "-"]) == 1
    assert "standard input is where the questions come from" in capsys.readouterr().err
    assert main(["mcp", str(path.parent / "nothing.ndjson")]) == 1
    assert "no such file" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert main(["mcp", str(path)]) == 2
    assert "pip install 'jitdb[mcp]'" in capsys.readouterr().err


def test_an_interrupt_ends_it(path: Path) -> None:
    """At once, though a thread waits for standard input."""
    process = subprocess.Popen(
        [sys.executable, "-m", "jitdb", "mcp", str(path), "--indexes", "none"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    process.stdin.flush()
    assert b'"id":1' in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == -signal.SIGINT


def test_questions_by_fields_of_any_name(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text('{"log.level": "info", "a b": 1, "tags": ["x", "y"]}\n' * 3)
    with jitdb.open(path, "memory", progress=False) as db:
        assert "info\t3\t100.0%" in asyncio.run(answer(db, "values", {"field": '["log.level"]'}))
        assert "x\t3\t100.0%" in asyncio.run(answer(db, "values", {"field": "tags[]"}))
        assert db.count(field("tags[]") == "x") == 3
