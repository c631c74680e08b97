"""%jitdb and %%jitdb: the words of the command line, the answers of Python."""

from __future__ import annotations

import asyncio
import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
from waiting import until_async

import jitdb
from jitdb.notebook.completing import Completing
from jitdb.notebook.magic import Magic, MagicFailed, MagicInterrupted
from jitdb.notebook.variables import in_expression
from jitdb.notebook.watching import watch
from jitdb.operators import field, parse_expression

RECORDS = [
    {
        "time": f"2026-11-{1 + number // 10:02}T{number % 10:02}:00:00Z",
        "level": ("info", "error", "warn")[number % 3],
        "user": {"name": f'a"{number % 4}'},
        "ms": number,
    }
    for number in range(60)
]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Any:
    os.environ["IPYTHONDIR"] = str(tmp_path_factory.mktemp("ipython"))
    config = Config()
    config.HistoryManager.enabled = False
    config.Completer.use_jedi = False
    made = InteractiveShell.instance(config=config)
    yield made
    InteractiveShell.clear_instance()
    del os.environ["IPYTHONDIR"]


@pytest.fixture
def ask(shell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a cell; gives its value, raises its error."""
    monkeypatch.chdir(tmp_path)
    Path("events.ndjson").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))

    def run(cell: str) -> Any:
        done = shell.run_cell(cell)
        done.raise_error()
        return done.result

    run("%load_ext jitdb")
    yield run
    run("%unload_ext jitdb")
    shell.reset()


def wanted(level: str) -> list[Any]:
    return [record for record in RECORDS if record["level"] == level]


def test_a_cell_gives_a_page(ask: Any) -> None:
    page = ask('%%jitdb events.ndjson --limit 3 --descending\nlevel == "error"')
    assert (page.data, page.total) == (wanted("error")[:-4:-1], 20)


def test_the_columns_of_a_page_are_those_that_were_asked_for(ask: Any) -> None:
    page = ask("%jitdb events.ndjson --fields user.name,level -n 2")
    assert ["name" in line and "level" in line for line in str(page).splitlines()].count(True) == 1
    assert '["' not in str(page)
    assert "<bdi>user.name</bdi>" in page._repr_html_()


def test_what_is_kept_is_all_of_it(ask: Any, shell: Any) -> None:
    assert len(ask("%%jitdb events.ndjson\nlevel is not absent")) == 20
    ask("%jitdb open events.ndjson as events")
    for cell in (
        "%%jitdb rows << events\nlevel is not absent",
        "%%jitdb events rows <<\nlevel is not absent",
        "%%jitdb\nrows << level is not absent",
        "%jitdb rows << events 'level is not absent'",
        "rows = %jitdb events 'level is not absent' --limit 60",
    ):
        shell.user_ns.pop("rows", None)
        assert ask(cell) is None
        assert list(shell.user_ns["rows"]) == RECORDS


def test_commands_give_what_their_methods_give(ask: Any) -> None:
    db = ask("%jitdb open events.ndjson")
    errors = field("level") == "error"
    query = db.query(errors)
    assert ask("%jitdb count 'level == \"error\"'") == query.count() == 20
    assert ask('%%jitdb values db user.name -n 2\nlevel == "error"') == query.value_counts("user.name", limit=2)
    assert ask("%jitdb values level --by user.name -n 100") == db.group_count("level", "user.name")
    assert ask("%jitdb timeline --every 1d --by level") == db.timeline(every="1d", by="level")
    assert ask("%%jitdb stats ms\nlevel == 'error'") == query.stats("ms")
    assert ask("%jitdb stats ms --by level").rows == db.stats_by("ms", "level").rows
    groups = db.stats_by("ms", ["level", "user.name"], every="1d", order="sum", limit=2)
    assert ask("%jitdb stats ms --every 1d --by level,user.name --order sum -n 2") == groups
    assert ask("%jitdb stats ms --distinct --every 1d") == db.count_distinct("ms", every="1d")
    assert ask("%jitdb stats --share 'ms > 30' --every 1d") == db.share("ms > 30", every="1d")
    assert ask("%%jitdb stats db --share 'ms > 30'\nlevel == 'error'") == query.share("ms > 30")
    assert ask("%jitdb timeline --every 1d --per 1h") == db.timeline(every="1d", per="1h")
    assert ask("%jitdb --dedup level --last").data == db.query().dedup("level", last=True).all()
    assert ask("%jitdb histogram ms --bins 0,10,60") == db.histogram("ms", bins=[0, 10, 60])
    assert ask("%jitdb patterns --field level -n 2") == db.patterns(field="level", limit=2)
    assert ask("%jitdb fields").rows == db.fields().rows
    assert ask("%jitdb explain 'level == \"error\"'") == db.explain(errors)
    assert ask("%jitdb --since 2026-11-06 --fields ms --sort -ms -n 1").data == [{"ms": 59}]
    assert ask("%jitdb --offsets --skip 58").data == db.query().offsets()[58:]
    assert ask("%jitdb count --as-of 0") == 1


def test_variables_stand_for_values(ask: Any, shell: Any) -> None:
    names = shell.user_ns
    names |= {"who": 'a"1', "least": 3, "levels": ["error", "warn"], "when": datetime(2026, 11, 3, tzinfo=UTC)}
    names |= {"slow": field("ms") > 30, "name": field("user.name"), "file": Path("events.ndjson"), "cut": "--limit"}
    expected = [
        record
        for record in RECORDS
        if record["user"]["name"] == 'a"1' and record["ms"] > 30 and record["level"] in names["levels"]
    ]
    cell = "%%jitdb {file} -n 60\n{name} == {who} and level in $levels  # and\nand {slow} and time >= {when}"
    assert ask(cell).data == [record for record in expected if record["ms"] >= 20]
    assert ask("%jitdb count {file} 'user.name == $who and ms > {least}'") == 14
    assert ask("%jitdb count $file 'user.name == \"$who\"'") == 0  # in quotes it is text
    assert ask("%jitdb {file} --limit $least").data == RECORDS[:3]
    names["columns"] = ["ms", "user.name"]
    assert ask("%jitdb $file --fields $columns -n 1").data == [{"ms": 0, "user.name": 'a"0'}]
    names["query"] = jitdb.open("events.ndjson", read_only=True).query(names["slow"])
    assert ask("%jitdb count $file {query}") == 29


def test_a_value_is_never_a_part_of_the_question(ask: Any, shell: Any) -> None:
    shell.user_ns |= {"evil": '" or level is not absent or level == "'}
    assert ask("%%jitdb count events.ndjson\nlevel == {evil}") == 0
    shell.user_ns["evil"] = "x' or everything() or level == 'x"
    assert ask("%%jitdb count events.ndjson\nlevel == {evil}") == 0


_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
_VALUES = st.recursive(_LEAVES, lambda held: st.lists(held) | st.dictionaries(st.text(), held), max_leaves=5)


@given(_VALUES, st.sampled_from(["{v}", "$v", "{held.v}", '{all["v"]}']))
def test_any_value_stands_for_itself(value: Any, place: str) -> None:
    names = {"v": value, "held": SimpleNamespace(v=value), "all": {"v": value}}
    text = in_expression(f'x == {place} and y != "{{v}}"', names)
    assert parse_expression(text) == (field("x") == value) & (field("y") != "{v}")
    if isinstance(value, list):
        assert parse_expression(in_expression(f"x in {place}", names)) == field("x").isin(value)


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("%%jitdb events.ndjson --descneding\nms > 1", "jitdb: query: there is no option --descneding; did you mean"),
        ("%%jitdb events.ndjson\nms = 1", "jitdb: equality is written `==`, not `=`\n  ms = 1\n     ^"),
        ("%%jitdb evnets\nms > 1", "jitdb: evnets: there is neither such a file nor such a variable; did you mean ev"),
        ("%%jitdb nothing.ndjson\nms > 1", "jitdb: nothing.ndjson: there is no such file"),
        ("%%jitdb\nms > {leats}", "jitdb: there is no variable leats; did you mean {least}?"),
        ("%%jitdb\nms > {least.x}", "jitdb: {least.x} has no value: AttributeError"),
        ("%jitdb events --timestamp ms", "jitdb: --timestamp says how a log is opened, and events is open"),
        ("%jitdb values events", "jitdb: values: a field is missing behind the log"),
        ("%jitdb values events level --format csv", "jitdb: values: --format is for a shell"),
        ("%jitdb import a b", "jitdb: `jitdb import` is for a shell\n  !jitdb import a b"),
        ("%jitdb count events 'ms > 1", "jitdb: the line is not complete: No closing quotation"),
        ("%jitdb open events.ndjson as", "jitdb: open: the name of a variable is missing behind `as`"),
        ("%jitdb least", "jitdb: the variable least is of type int, not an open database"),
    ],
)
def test_errors_are_told_in_some_words(
    ask: Any, shell: Any, capsys: pytest.CaptureFixture[str], cell: str, told: str
) -> None:
    shell.user_ns["least"] = 3
    ask("%jitdb open events.ndjson as events")
    if "least" in cell.split():
        shell.run_line_magic("jitdb", "close")
    capsys.readouterr()
    with pytest.raises(MagicFailed):
        ask(cell)
    shown = "".join(capsys.readouterr())
    assert shown.startswith(told)
    assert "Traceback" not in shown
    assert len(shown.splitlines()) < 6


def test_nothing_acts_on_the_terminal_of_a_shell(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = "\x1b[31m\x9b\u202e"
    Path(f"{odd}.ndjson").write_text('{"a":1}\n')
    master, slave = os.openpty()
    with open(slave, "w", encoding="utf-8") as terminal, monkeypatch.context() as patch:
        patch.setattr("sys.stdout", terminal)
        ask(f"%jitdb count '{odd}.ndjson' 'b == 1'")
        for wrong in (f"%jitdb count '{odd}x'", f"%jitdb count '{odd}.ndjson' 'a == 1 {odd}\0'"):
            with pytest.raises(MagicFailed) as raised:
                ask(wrong)
            assert not set(odd) & (set("".join(raised.value._render_traceback_())) - set("[31m"))
    seen = os.read(master, 65536).decode()
    os.close(master)
    assert "no record has the field `b`" in seen
    assert "\\u001b[31m\\u009b\\u202ex: no file is there" in seen
    assert not set(odd) & (set(seen) - set("[31m"))
    assert "\x1b" not in repr(jitdb.open(f"{odd}.ndjson"))


def test_notes_say_what_was_meant(ask: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert not ask('%%jitdb events.ndjson\nlvel == "error"').data
    assert "no record has the field `lvel`; did you mean `level`?" in capsys.readouterr().out
    assert len(ask("%jitdb events.ndjson --fields ms,usr.name")) == 20
    assert "none of these records has the field `ms`" not in (told := capsys.readouterr().out)
    assert "none of these records has the field `usr.name`; did you mean `user.name`?" in told
    ask('%%jitdb events.ndjson --quiet\nlvel == "error"')
    assert "did you mean" not in capsys.readouterr().out


def test_a_cell_asks_the_log_as_it_is(ask: Any) -> None:
    ask("%jitdb open events.ndjson as events")
    assert ask("%jitdb count events") == 60
    with open("events.ndjson", "a") as file:
        file.write('{"ms": 100}\n')
    assert ask("%jitdb count events") == 61


def test_what_was_opened_is_closed(ask: Any, shell: Any) -> None:
    first = ask("%jitdb open events.ndjson as events")
    second = ask("%jitdb open events.ndjson as events")
    with pytest.raises(jitdb.errors.LogClosed):
        first.count()
    assert second.count() == 60
    ask("%jitdb close")
    assert "events" not in shell.user_ns
    with pytest.raises(jitdb.errors.LogClosed):
        second.count()


def test_a_folder_is_asked_as_one(ask: Any) -> None:
    os.mkdir("logs")
    for name in ("a", "b"):
        Path(f"logs/{name}.ndjson").write_text('{"x": 1}\n')
    assert ask("%jitdb count logs 'x == 1'") == 2
    assert ask("%jitdb count logs/*.ndjson 'x == 1'") == 2
    ask("%jitdb open logs")
    assert ask("%%jitdb\nx == 1").total == 2


def test_a_file_is_written(ask: Any) -> None:
    ask('%%jitdb events.ndjson -o some.csv --fields ms -n 2\nlevel == "error"')
    assert Path("some.csv").read_text() == "ms\n1\n4\n"


def test_a_stopped_cell_says_so(ask: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("jitdb.notebook.magic._answer", stopped)
    with pytest.raises(MagicInterrupted):
        ask("%jitdb count events.ndjson")
    assert "".join(capsys.readouterr()) == "jitdb: interrupted\n"


def test_help_is_that_of_the_shell(ask: Any, capsys: pytest.CaptureFixture[str]) -> None:
    ask("%jitdb")
    assert "%%jitdb [COMMAND]" in capsys.readouterr().out
    ask("%jitdb values --help")
    assert "usage: jitdb values LOG FIELD" in capsys.readouterr().out
    ask("%jitdb help expressions")
    assert "An expression looks like Python" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "begun", "texts"),
    [
        ("%jitdb co", "co", ["count"]),
        ("%jitdb count ev", "ev", ["events"]),
        ("%%jitdb events --desc", "--desc", ["--descending"]),
        ("%%jitdb events --format nd", "nd", ["ndjson"]),
        ("%%jitdb events --sort -m", "m", ["ms"]),
        ("%%jitdb events --fields time,user.", "user.", ["user.name"]),
        ("%jitdb values lev", "lev", ["level"]),
        ("%%jitdb events\nuser", "user", ["user", "user.name"]),
        ("%%jitdb\nms > 1 and\n lev", "lev", ["level"]),
        ('%%jitdb\nlevel == "e', '"e', ['"error"']),
        ('%%jitdb\nrows << level in ["error", "w', '"w', ['"warn"']),
        ("%%jitdb\nlevel == {RECO", "RECO", []),
        ("%%jitdb events.ndjson\nus", "us", ["user", "user.name"]),
        ("x = 1\nrows = %jitdb events 'lev", "lev", ["level"]),
    ],
)
def test_completion(ask: Any, shell: Any, typed: str, begun: str, texts: list[str]) -> None:
    ask("%jitdb open events.ndjson as events")
    magic = Magic(shell)
    magic.current = "events"
    offer = Completing(shell, magic).offered(typed)
    assert offer is not None
    assert offer[:2] == (begun, texts)


def test_completion_in_the_shell(ask: Any, shell: Any) -> None:
    from IPython.core.completer import provisionalcompleter

    ask("%jitdb open events.ndjson as events")
    with provisionalcompleter():
        found = list(shell.Completer.completions("%%jitdb\nlevel == 'e", 19))
        assert [(each.start, each.end, each.text) for each in found] == [(17, 19, "'error'")]
        assert list(shell.Completer.completions("%%jitdb\nnothing", 15)) == []
        found = list(shell.Completer.completions('%%jitdb\nlevel == "e', 19))
        assert [(each.start, each.end, each.text) for each in found] == [(17, 19, '"error"')]
        assert not [each for each in shell.Completer.completions("pri", 3) if each.type == "jitdb"]


def test_the_cells_of_the_documentation(ask: Any, shell: Any) -> None:
    text = (Path(__file__).parents[2] / "docs" / "notebook.md").read_text()
    more = {
        "level": "error",
        "service": "web",
        "ms": 2000,
        "request": {"country": "NZ"},
        "time": "2026-12-01T00:00:00Z",
    }
    with open("events.ndjson", "a") as file:
        file.write(json.dumps(more) + "\n")
    shell.user_ns |= {"field": field, "yesterday": datetime(2026, 11, 30, tzinfo=UTC)}
    found = []
    for block in re.findall("```text\n(.*?)```", text, flags=re.DOTALL):
        python, _, cell = block.partition("\n%%")
        found += [ask(part) for part in ((python, f"%%{cell}") if cell else (block,))]
    assert [len(each) for each in found if isinstance(each, jitdb.Page)] == [1]
    assert shell.user_ns["slow"] == 1
    assert list(shell.user_ns["rows"]) == [more]
    assert [tuple(row) for row in found[-1].rows] == [("web", 1)]


def test_the_import_is_not_paid_before_it_is_loaded() -> None:
    import subprocess
    import sys

    code = "import sys, jitdb; jitdb.load_ipython_extension; print(*{'IPython', 'argparse'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


def test_a_set_of_logs_is_watched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = '{"x": 1}\n'
    (tmp_path / "a.ndjson").write_text(line)

    shown: list[str] = []

    def is_shown() -> str:
        shown.append(capsys.readouterr().out)
        return shown[-1]

    async def program(logs: jitdb.LogSet) -> Any:
        watched = asyncio.create_task(watch(logs.query(field("x") == 1), every=0.01))
        await until_async(is_shown)
        assert shown.pop() == "1 record\n"
        (tmp_path / "b.ndjson").write_text(3 * line)
        await until_async(is_shown)
        watched.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watched
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await watch(logs.query(), every=0.01)
        return shown.pop()

    with jitdb.open_many(tmp_path) as logs:
        assert asyncio.run(program(logs)) == "4 records\n"
