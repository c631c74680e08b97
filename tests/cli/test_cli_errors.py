"""Errors, read aloud: one line, what to do about it, an exit code, no traceback."""

from __future__ import annotations

import gzip
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_helpers import environment, make_log, write

import jitdb.cli.commands.count
from jitdb.cli import main
from jitdb.cli.failures import Diagnostic, Failure
from jitdb.cli.opening import check_exists
from jitdb.errors import LogReadOnly, Remedy


@pytest.fixture
def fails(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """`fails(code, "count", …)`: the command ends with this code and says what is given back."""

    def call(code: int, *arguments: str) -> str:
        assert main(arguments) == code
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        assert said.err.startswith("jitdb: ")
        return said.err

    return call


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("cuont", "count"),
        ("quer", "query"),
        ("Import", "import"),
        ("ls", "info"),
        ("dump", "export"),
        ("dedup", "query"),
        ("distinct", "stats"),
        ("grep", "find"),
        ("search", "find"),
        ("wc", "count"),
    ],
)
def test_misspelt_command_is_guessed(fails, typed: str, meant: str) -> None:
    assert f"did you mean `jitdb {meant}`?" in fails(2, typed)


def test_unknown_command_lists_what_there_is(fails) -> None:
    assert "there are: query, find, count" in fails(2, "xyzzy")


def test_misspelt_option_is_guessed(fails) -> None:
    assert "did you mean --descending?" in fails(2, "query", "x.log", "--decending")
    assert "did you mean --limit?" in fails(2, "stats", "x.log", "n", "--top", "5")
    assert "did you mean --per?" in fails(2, "timeline", "x.log", "--rate", "1s")
    assert "did you mean --order?" in fails(2, "stats", "x.log", "n", "--sort", "sum")
    for unlike in ("--ordr", "--hop", "--x"):
        assert "did you mean" not in fails(2, "query", "x.log", unlike, "x")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("query x.log --reverse", "there is no option --reverse; did you mean --descending?"),
        ("query x.log --head 3", "there is no option --head; did you mean --limit?"),
        ("query x.log --limt 3 --limt 4", "there is no option --limt; did you mean --limit?"),
        ("count x.log --from 2h", "there is no option --from; did you mean --since?"),
        ("count x.log --descending", "there is no option --descending here; `jitdb query` has it"),
        ("query x.log --where n==1", "the expression stands behind the log: jitdb query LOG 'EXPR'"),
        ("query x.log --format tabel", "'tabel' is none of auto, "),
        ("query x.log --format tabel", "did you mean table?"),
        ("--limt 3 query x.log", "options stand behind it: jitdb query … --limit"),
        ("--quite", "options stand behind it: jitdb COMMAND … --quite"),
    ],
)
def test_what_other_tools_call_it_and_where_it_belongs(fails, typed: str, said: str) -> None:
    assert said in fails(2, *typed.split())


def test_an_option_may_be_shortened(fails, events: Path) -> None:
    assert main(["query", "events.log", "--desc", "--arr", "-n", "1"]) == 0
    assert "--s could match --skip, " in fails(2, "query", "x.log", "--s", "3")


def test_all_misspelt_options_are_told_of(fails) -> None:
    said = fails(2, "query", "x.log", "--decending", "--xyzzy", "--limt=3")
    assert "no options --decending (did you mean --descending?), --xyzzy, --limt (did you mean --limit?)" in said


def test_a_file_in_the_place_of_the_command(fails, events: Path) -> None:
    assert "did you mean `jitdb query events.log`?" in fails(2, "events.log")
    assert "did you mean `jitdb import events.ndjson events-2.log`?" in fails(2, "events.ndjson")


@pytest.mark.parametrize("command", ["count", "query", "export", "prepare"])
def test_an_expression_in_the_place_of_the_log(fails, events: Path, command: str) -> None:
    said = fails(2, command, 'level == "error"', "events.log")
    assert f"jitdb {command} events.log 'level == \"error\"'\n" in said
    if command != "prepare":
        assert f"jitdb {command} LOG 'level == \"error\"'\n" in fails(2, command, 'level == "error"')


@pytest.mark.parametrize(
    ("expression", "eaten"),
    [
        ("status", True), ("level == error", True), ("level = error", True), ("user.name in [ada]", True),
        ('level = "error"', False), ("level = 5", False), ("a == 1 and", False), ("a == 1 or b is nothing", False),
    ],
)  # fmt: skip
def test_quotes_are_spoken_of_where_they_may_be_missing(fails, events: Path, expression: str, eaten: bool) -> None:
    said = fails(2, "count", "events.log", expression)
    assert "`jitdb help expressions` shows" in said
    assert ("between single quotes" in said) == eaten


def test_option_before_the_command(fails) -> None:
    assert "options stand behind it" in fails(2, "--codec", "bipf", "count", "x.log")


@pytest.mark.parametrize("command", [["count"], ["import", "in.ndjson"]])
def test_codecs_are_looked_up(fails, command: list[str]) -> None:
    said = fails(2, *command, "x.log", "--codec", "nonesuch")
    assert "there is no codec 'nonesuch': jitdb knows msgpack, bipf, json, raw" in said
    assert "install the package that has it" in said
    assert "raw holds bytes" in fails(2, "import", "in.ndjson", "x.log", "--codec", "raw")


def test_missing_operand(fails) -> None:
    assert "LOG is missing" in fails(2, "count")
    assert "EXPR is missing" in fails(2, "prepare", "x.log")


def test_too_many_operands(fails) -> None:
    assert "too many operands: y" in fails(2, "compact", "x.log", "y")


def test_expression_without_quotes(fails, events: Path) -> None:
    assert "between single quotes" in fails(2, "count", "events.log", "level", "==", "error")


def test_bad_expression_has_a_caret(fails, events: Path) -> None:
    assert '\n  level = "x"\n        ^\n' in fails(2, "count", "events.log", 'level = "x"')


@pytest.mark.parametrize("value", ["0", "-3", "many", "1.5"])
def test_numbers_are_checked(fails, value: str) -> None:
    assert "a whole number of 1 or more" in fails(2, "query", "x.log", f"--limit={value}")


@pytest.mark.parametrize("value", ["1", "64Q", "17M", "x"])
def test_block_sizes_are_checked(fails, value: str) -> None:
    assert "--block-size" in fails(2, "count", "x.log", "--block-size", value)


def test_missing_log_suggests_its_neighbour(fails, events: Path) -> None:
    assert "did you mean event.ndjson" not in fails(1, "count", "nothing.log")
    assert "did you mean events.log?" in fails(1, "count", "event.log")
    assert fails(1, "count", "nothing.log").rstrip().endswith("nothing.log: there is no such file")  # a misspelt name


def test_an_array_of_numbers_is_no_log(fails, events: Path) -> None:
    (events.parent / "events.json").write_text("[1, 2]")
    assert "its elements are no objects" in fails(1, "count", "events.json")


def test_a_folder_is_no_log(fails, events: Path) -> None:
    assert "a folder" in fails(1, "compact", ".")
    assert main(["count", "events.log"]) == 0
    assert "the log is events.log" in fails(1, "count", "events.log.jitdb")


def test_advice_is_in_options(fails, ssb: Path) -> None:
    assert "--codec bipf" in fails(1, "count", "ssb.log", "--codec", "msgpack")
    assert "  pass --block-size 65536, or none" in fails(1, "count", "ssb.log", "--block-size", "4096")


def test_output_never_replaces_the_log(fails, events: Path) -> None:
    before = events.read_bytes()
    assert "the log itself" in fails(1, "query", "events.log", "--output", "events.log")
    os.link("events.log", "other.log")
    assert "the log itself" in fails(1, "export", "events.log", "-o", "other.log")
    assert events.read_bytes() == before


def test_output_into_a_missing_folder(fails, events: Path) -> None:
    assert "nope/x.ndjson: there is no folder nope" in fails(1, "export", "events.log", "-o", "nope/x.ndjson")


def test_mistakes_of_the_program_are_owned(fails, events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(options: object) -> int:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(jitdb.cli.commands.count.count, "run", broken)
    said = fails(1, "count", "events.log")
    assert "ZeroDivisionError: oops" in said
    assert "report it" in said


LOST = "cannot open shared object file: No such file or directory"


@pytest.mark.parametrize(
    ("error", "said", "hint"),
    [
        (ImportError(f"libstdc++.so.6: {LOST}", name="pyroaring"), "libstdc++.so.6, which pyroaring", "libstdc++6"),
        (ImportError(f"IMPORTANT:\n\nOriginal error was: libgcc_s.so.1: {LOST}\n"), "libgcc_s.so.1", "your system"),
        (ModuleNotFoundError("No module named 'msgpack'", name="msgpack"), "msgpack, which", "pip install msgpack"),
    ],
)
def test_what_the_machine_lacks_is_no_mistake_of_the_program(
    fails, events: Path, monkeypatch: pytest.MonkeyPatch, error: ImportError, said: str, hint: str
) -> None:
    def lacking(*_: object) -> None:
        raise error

    monkeypatch.setattr(jitdb.cli.commands.count.count, "run", lacking)
    first, second = fails(1, "count", str(events)).splitlines()
    assert said in first
    assert hint in second


def test_debug_shows_the_traceback(run) -> None:
    done = run("count", "nope.log", "--debug")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert done.stdout == ""


def test_exit_codes_of_the_process(process, events: Path) -> None:
    assert process("count", "events.log").returncode == 0
    assert process("count", "nope.log").returncode == 1
    assert process("count", "events.log", "level =").returncode == 2
    assert process().returncode == 0
    assert process("count", "--help").returncode == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_warned_of_once(run, events: Path) -> None:
    folder = events.parent
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        done = run("count", "events.log", 'level == "error"')
    finally:
        folder.chmod(stat.S_IRWXU)
    assert done.stdout == "2\n"
    assert done.stderr.count("jitdb: warning: ") == 1
    assert "kept in memory" in done.stderr


def test_indexes_that_cannot_be_written_are_warned_of_once(run, events: Path) -> None:
    (events.parent / "occupied").write_text("a file where the folder should be")
    done = run("count", "events.log", 'level == "error"', "--indexes", "occupied")
    assert (done.returncode, done.stdout) == (0, "2\n")
    assert done.stderr.count("jitdb: warning: ") == 1
    assert "kept in memory" in done.stderr
    quiet = run("count", "events.log", 'level == "error"', "--indexes", "occupied", "-q")
    assert (quiet.stdout, quiet.stderr) == ("2\n", "")


def test_a_damaged_index_is_warned_of_and_rebuilt(run, events: Path) -> None:
    assert run("count", "events.log", 'level == "error"').stdout == "2\n"
    (index,) = (events.parent / "events.log.jitdb" / "indexes").glob("level.*")
    index.write_bytes(b"nonsense" + index.read_bytes()[8:])
    done = run("count", "events.log", 'level == "error"')
    assert done.stdout == "2\n"
    assert done.stderr.startswith("jitdb: warning: ")
    assert len(done.stderr.splitlines()) == 1


def test_commands_work_beside_a_writer(process, events: Path) -> None:
    from jitdb.log import Log

    with Log(events) as log:
        log.append({"level": "error"})
        log.flush()
        assert process("count", "events.log", 'level == "error"').stdout == "3\n"
        done = process("import", "--append", "events.ndjson", "events.log")
        assert done.returncode == 1
        assert f"process {os.getpid()} has it open for writing\n  wait for it to end, or stop it\n" in done.stderr
        assert "read_only" not in done.stderr


def test_places_that_keep_one_out(fails, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, **_: object) -> None:
        raise PermissionError(13, "Permission denied", path)

    with monkeypatch.context() as patched:
        patched.setattr("jitdb.cli.opening.os.stat", refuse)
        with pytest.raises(Failure, match=r"^locked/x.log: the folder locked may not be entered$"):
            check_exists("locked/x.log")
    error = LogReadOnly("may not be written (Permission denied)", path="locked/x.log", remedy=Remedy.read_only())
    assert Diagnostic.of(error).message == "locked/x.log: may not be written (Permission denied)"
    assert Diagnostic.of(error).hints == ()  # nothing that a shell could do


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="no /dev/null here")
def test_a_device_is_no_log(fails, events: Path) -> None:
    for arguments in (["count", "/dev/null"], ["import", "--append", "events.ndjson", "/dev/null"]):
        said = fails(1, *arguments)
        assert "this is no file but a device or a pipe" in said
        assert "did you mean" not in said


def test_a_log_behind_a_file(fails, events: Path) -> None:
    assert "events.log is no folder" in fails(1, "count", "events.log/x.log")


@pytest.mark.parametrize(
    "arguments", [["query", "big.log", "-q", "--format", "ndjson"], ["export", "big.log"], ["info", "big.log"]]
)
def test_a_reader_who_has_had_enough_is_no_error(tmp_path: Path, arguments: list[str]) -> None:
    make_log(tmp_path / "big.log", [{"n": number, "text": "x" * 500} for number in range(2000)])
    with subprocess.Popen(
        [sys.executable, "-m", "jitdb", *arguments],
        cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        if arguments[0] != "info":
            assert process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (0, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("command", ["count", "query", "export", "info"])
def test_a_full_disk_is_told_of(process, events: Path, command: str) -> None:
    with open("/dev/full", "w") as full:
        done = process(command, "events.log", "-q", stdout=full, stderr=subprocess.PIPE, capture_output=False)
    assert done.returncode == (2 if command in ("count", "query") else 1)  # as in grep, 1 says that none matches
    assert done.stderr.startswith("jitdb: ")
    assert "No space left on device" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("command", [["help", "query"], ["query", "--help"]])
def test_help_that_cannot_be_written_is_an_error(process, command: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = process(*command, stdout=full, stderr=subprocess.PIPE, capture_output=False)
    assert (done.returncode, done.stderr) == (1, "jitdb: standard output: No space left on device\n")


def test_an_interrupt_that_became_another_error(run, events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python 3.11 makes of one that comes while a class is made."""

    def interrupted(*_: object) -> None:
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    monkeypatch.setattr("jitdb.cli.commands.count.read_question", interrupted)
    done = run("count", "events.log")
    assert (done.returncode, done.stderr) == (130, "jitdb: interrupted\n")


def test_no_error_shows_what_a_file_holds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Errors go to logs that others may read: they say where a fault is, not which bytes."""
    secret = "hunter2"
    lines = {
        "cut": f'{{"password":"{secret}\n', "two": f'{{"password":"{secret}" "b":2}}\n', "text": f"KEY={secret}\n" * 3,
        "prefixed": f'{secret} {{"a":1}}\n' * 3, "numbers": f'[1, "{secret}"]\n',
        "nul": f"{secret}\0\n", "array": f'[{{"p":"{secret}" x}}]', "number": f'"{secret}"\n',
    }  # fmt: skip
    for name, text in lines.items():
        for command in (["import", name, f"{name}.log"], ["import", "--format", "json", name, f"{name}2.log"]):
            write(folder, text.encode(), name)
            main([*command, "-q"])
        for command in (["count", name], ["verify", name], ["count", name, "--codec", "bipf"]):
            main(command)
    packed = gzip.compress(b'{"a":1}\n') + secret.encode()
    main(["count", write(folder, packed, "x.ndjson.gz")])
    seen = capsys.readouterr()
    assert seen.err.count("jitdb: ") > 20
    assert secret[:4] not in seen.out + seen.err
