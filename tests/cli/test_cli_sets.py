"""The commands over many logs: a folder of days with rotated files."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

import jitdb
from jitdb.cli import main
from jitdb.errors import InvalidArgument

DAYS = ("2026-11-21", "2026-11-22", "2026-11-23")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for day, date in enumerate(DAYS):
        for age, name in enumerate(("app.ndjson", "app.ndjson.1")):
            path = tmp_path / "logs" / f"date={date}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            times = [100 * day + 10 * (1 - age) + number for number in range(5)]
            add(path, *times)
    return tmp_path / "logs"


def add(path: Path, *times: int) -> None:
    with open(path, "a") as file:
        file.writelines(json.dumps({"timestamp": time, "level": ("info", "error")[time % 2]}) + "\n" for time in times)


def said(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    out, err = capfd.readouterr()
    return code, out, err


def times(out: str) -> list[int]:
    return [json.loads(line)["timestamp"] for line in out.splitlines()]


def test_tail_goes_on_at_its_place(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found: list[int] = []
    for limit in (4, 9, 17):
        code, out, err = said(capfd, "tail", "logs", "--cursor", "place", "--old", "--limit", str(limit))
        assert (code, err) == (0, "")
        found += times(out)
    assert sorted(found) == sorted(
        100 * day + 10 * age + number for day in range(3) for age in (0, 1) for number in range(5)
    )
    today = folder / f"date={DAYS[2]}" / "app.ndjson"
    add(today, 301)
    today.rename(today.with_name("app.ndjson.2"))
    add(today, 303)
    code, out, err = said(capfd, "tail", "logs", 'level == "error"', "--cursor", "place", "--limit", "2")
    assert (code, err, sorted(times(out))) == (0, "", [301, 303])
    after = Path("place").read_text().rsplit(" ", 1)[0]
    add(folder / f"date={DAYS[0]}" / "b.ndjson", 7)
    code, out, err = said(capfd, "tail", "logs", "--after", after, "--limit", "1")
    assert (code, err, times(out)) == (0, "", [7])


def test_tail_waits_for_the_first_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "coming").mkdir()
    writer = threading.Timer(0.5, add, (tmp_path / "coming" / "app.ndjson", 5))
    writer.start()
    code, out, err = said(capfd, "tail", str(tmp_path / "coming"), "--limit", "1")
    writer.join()
    assert (code, times(out)) == (0, [5])
    assert "yet: those that come are followed" in err
    assert said(capfd, "tail", str(tmp_path / "comign" / "*"))[0] == 1


def test_places_of_one_log_and_of_several(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    one = f"logs/date={DAYS[0]}/app.ndjson"
    said(capfd, "tail", one, "--cursor", "one", "--old", "--limit", "1")
    said(capfd, "tail", "logs", "--cursor", "many", "--old", "--limit", "1")
    code, _, err = said(capfd, "tail", "logs", "--cursor", "one", "--limit", "1")
    assert code == 1
    assert "a place in one log, and these are several" in err
    code, _, err = said(capfd, "tail", one, "--cursor", "many", "--limit", "1")
    assert code == 1
    assert "a place in several logs" in err
    damaged = Path("many").read_text().replace("logs:[", "logs:[ ")
    Path("many").write_text(damaged)
    assert said(capfd, "tail", "logs", "--cursor", "many", "--limit", "1")[0] == 1
    for name in ("logs/place", f"logs/date={DAYS[0]}/app.ndjson"):
        code, _, err = said(capfd, "tail", "logs", "--cursor", name, "--limit", "1")
        assert code == 1
        assert "choose" in err


def test_info(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with open(folder / f"date={DAYS[1]}" / "app.ndjson", "a") as file:
        file.write('{"broken\n{"timestamp"')
    said(capfd, "count", "logs", 'level == "error"')
    code, out, err = said(capfd, "info", "logs")
    lines = out.splitlines()
    assert (code, err, len(lines)) == (0, "", 7)
    assert lines[-1].startswith("6 logs: 30 records in ")
    wrong = next(line for line in lines if line.startswith(str(folder / f"date={DAYS[1]}" / "app.ndjson:")))
    assert "1 line left out" in wrong
    assert "its last line is not whole yet" in wrong
    code, out, _ = said(capfd, "info", "logs/*/app.ndjson", "--json")
    told = json.loads(out)
    assert (told["records"], [log["records"] for log in told["logs"]]) == (15, [5, 5, 5])
    (folder / "README").write_text("what is here\n")
    code, out, err = said(capfd, "info", "logs")
    assert code == 0
    assert err == "jitdb: warning: 1 file is no log, or cannot be read, and is passed over: logs/README\n"
    assert out.splitlines()[-1].startswith("6 logs: 30 records")


def test_verify(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said(capfd, "count", "logs", 'level == "error"')
    assert said(capfd, "verify", "logs") == (0, "6 logs verified: all are sound\n", "")
    index = next((folder / f"date={DAYS[0]}").glob(".jitdb/*/indexes/level*.index"))
    data = bytearray(index.read_bytes())
    data[-9] ^= 1
    index.write_bytes(data)
    code, out, _ = said(capfd, "verify", "logs", "--sample", "50%")
    assert code == 1
    assert index.name in out
    assert out.splitlines()[-1] == "6 logs verified: 1 is not"
    code, out, _ = said(capfd, "verify", "logs", "--json")
    told = json.loads(out)
    assert (code, told["ok"], len(told["logs"])) == (1, False, 6)


def test_indexes(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert said(capfd, "indexes", "logs")[1] == "6 logs have no indexes yet: the first question makes them\n"
    said(capfd, "count", f"logs/date={DAYS[0]}", 'level == "error"')
    said(capfd, "count", "logs", "timestamp > 3")
    code, out, _ = said(capfd, "indexes", "logs")
    assert code == 0
    assert any(line.startswith("level: of 2 logs, ") and line.endswith(" 2 fresh") for line in out.splitlines())
    code, _, err = said(capfd, "indexes", "logs", "--drop", "levl", "timestamp")
    assert code == 1
    assert "did you mean 'level'?" in err
    code, out, _ = said(capfd, "indexes", "logs", "--drop", "level", "timestamp > 7")
    assert (code, out.split(",")[0]) == (0, "8 indexes")
    said(capfd, "indexes", "logs", "--forget")
    assert not list(folder.rglob("*.index"))


def test_prepare_and_export(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capfd, "prepare", "logs", 'level == "x"', "n > 1")
    assert (code, err, out.startswith("scanned "), " indexes, " in out) == (0, "", True, True)
    assert said(capfd, "prepare", "logs", 'level == "x"')[1].startswith("nothing to do")
    code, out, _ = said(capfd, "export", "logs", 'level == "error" and date == "2026-11-22"')
    assert sorted(times(out)) == [101, 103, 111, 113]
    assert said(capfd, "export", "logs", "--output", "all.ndjson")[0] == 0
    files = sorted(path for path in folder.rglob("app*") if path.is_file())
    assert times(Path("all.ndjson").read_text()) == times("".join(path.read_text() for path in files))


@pytest.mark.parametrize("command", ["export", "query"])
def test_no_log_is_written_over(folder: Path, capfd: pytest.CaptureFixture[str], command: str) -> None:
    path = folder / f"date={DAYS[0]}" / "app.ndjson"
    before = path.read_bytes()
    for where in ("logs", "logs/*/app.ndjson"):
        code, _, err = said(capfd, command, where, "--output", str(path))
        assert code == 1
        assert "this is one of the logs" in err
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["count", "logs/*/ap.ndjson"], "did you mean logs/*/app.ndjson?"),
        (["count", "lgos/*/app.ndjson"], "there is no folder lgos"),
        (["info", "logs/*/zzz"], "no file has a name like that"),
        (["compact", "logs"], "this command takes files"),
        (["repair", "logs/*"], "this command takes files"),
        (["export", "logs", "--as-of", "7"], "name one log"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_is_no_set_of_logs(
    folder: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], hint: str
) -> None:
    code, out, err = said(capfd, *arguments)
    assert (code, out) in ((1, ""), (2, ""))
    assert hint in err


# What stands behind `jitdb COMMAND app.log*`, and what it says of ten records, five of them errors.
OVER_A_SHELLS_PATTERN = {
    "count": (['level == "error"'], "5\n"),
    "query": (['level == "error"', "--offsets"], ""),
    "tail": (['level == "error"', "--old", "--limit", "5", "--fields", "level"], '{"level":"error"}\n' * 5),
    "export": (['level == "error"', "--fields", "level"], '{"level":"error"}\n' * 5),
    "values": (["level", 'level == "error"', "--format", "csv"], "level,count,share\nerror,5,1.0\n"),
    "stats": (["timestamp", "--format", "csv"], ""),
    "histogram": (["timestamp", "--format", "csv"], ""),
    "timeline": (["--every", "1h", "--format", "csv"], ""),
    "fields": (["--format", "csv"], ""),
    "prepare": (['level == "error"'], ""),
    "explain": (['level == "error"'], ""),
    "info": ([], ""),
    "indexes": ([], ""),
    "verify": ([], ""),
}


@pytest.mark.parametrize("command", OVER_A_SHELLS_PATTERN)
def test_a_pattern_that_the_shell_expands(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """`app.log*` stands for folders of indexes that earlier versions left, too."""
    monkeypatch.chdir(tmp_path)
    for number in (0, 1):
        add(tmp_path / f"app.log.{number}", *range(5 * number, 5 * number + 5))
    (tmp_path / "app.log.-.jitdb").mkdir()  # of a log that is there no more: the first that the shell names
    rest, expected = OVER_A_SHELLS_PATTERN[command]
    for _ in range(2):
        names = sorted(path.name for path in tmp_path.glob("app.log*"))
        code, out, err = said(capfd, command, *names, *rest, "--no-progress")
        assert code == 0, err
        assert expected in out
        told = said(capfd, command, "app.log.*", *rest, "--no-progress")[1]  # jitdb's own pattern
        assert told == out or command == "prepare"
        assert said(capfd, "prepare", *names, 'level == "error"', "status == 1", "timestamp > 3")[0] == 0
    assert names == ["app.log.-.jitdb", "app.log.0", "app.log.1"]


def test_maintenance_of_a_shells_pattern(tmp_path: Path, run) -> None:
    for number in (0, 1):
        with jitdb.Log(tmp_path / f"app.log.{number}") as log:
            log.append_many({"level": ("info", "error")[number % 2], "n": number} for number in range(10))
        add(tmp_path / f"b.{number}", number)
    names = sorted(path.name for path in tmp_path.glob("app.log*"))
    assert len(names) == 4
    done = run("delete", *names, 'level == "error"', "--yes")
    assert (done.returncode, done.stdout.count("deleted 5 records, 5 stay")) == (0, 2)
    for command, told in (("compact", "app.log.1: removed 5 deleted records"), ("repair", "app.log.1:\n")):
        done = run(command, *names)
        assert (done.returncode, done.stderr) == (0, "")
        assert told in done.stdout
    assert run("count", *names).stdout == "10\n"
    assert run("pack", "b.0", "b.1", "--remove").returncode == 0
    assert run("count", *sorted(path.name for path in tmp_path.glob("b.*"))).stdout == "2\n"
    assert "-o names one file" in run("pack", "b.0.zst", "b.1.zst", "-o", "c").stderr


def test_folders_stand_beside_files(tmp_path: Path, run) -> None:
    for name in ("one", "two", "level"):
        (tmp_path / name).mkdir()
        add(tmp_path / name / "app.ndjson", 1, 2)
    assert run("count", "one", "two", "one/app.ndjson", 'level == "error"').stdout == "2\n"
    table = run("values", "one", "level", 'level == "error"', "--format", "csv").stdout
    assert table == "level,count,share\nerror,1,1.0\n"


def test_a_folder_of_indexes_alone(tmp_path: Path, run) -> None:
    add(tmp_path / "app.log", 1, 2)
    run("count", "app.log", 'level == "error"')
    (tmp_path / "app.log.jitdb").mkdir()
    for name in (".jitdb", ".jitdb/"):
        done = run("count", name, 'level == "error"')
        assert (done.returncode, done.stdout) == (1, "")
        assert "a folder of indexes, not a log\n  name the log, or a folder of logs" in done.stderr
    for name in ("app.log.jitdb", "app.log.jitdb/"):
        done = run("count", name, 'level == "error"')
        assert (done.returncode, done.stdout) == (1, "")
        assert "a folder of indexes, not a log\n  the log is app.log" in done.stderr
    with pytest.raises(InvalidArgument, match="name the log, not its indexes"):
        jitdb.open_many(str(tmp_path / "app.log.jitdb"))
    with jitdb.open_many([str(path) for path in tmp_path.iterdir()]) as logs:
        assert [member.path for member in logs.members] == [str(tmp_path / "app.log")]


def test_patterns_name_the_messages_of_a_log_among_many(tmp_path: Path, run) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(30):
        (folder / f"app{number:02d}.ndjson").write_text('{"msg": "handled"}\n' * 3)
    (folder / "journal.json").write_text('{"MESSAGE": "Out of memory", "__REALTIME_TIMESTAMP": "1795183300000000"}\n')
    done = run("patterns", "in")
    assert "handled" in done.stdout
    assert done.stderr == "jitdb: other logs have their messages elsewhere: --field MESSAGE\n"
    assert "Out of memory" in run("patterns", "in", "--field", "MESSAGE").stdout


def test_numbers_of_levels_of_one_log_of_a_folder_are_told(tmp_path: Path, run) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/app.json").write_text('{"level": "error", "msg": "no"}\n' * 3)
    (tmp_path / "in/pdns.log").write_text('level="0" prio="Notice" msg="up"\n' * 3)
    done = run("count", "in", 'level >= "error"')
    assert done.stdout == "6\n"
    assert "numbers of `level` in in/pdns.log are read as syslog's, where 0 is the worst" in done.stderr


def test_columns_that_a_log_calls_otherwise_are_told(tmp_path: Path, run) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.json").write_text('{"user_id": "u-1", "n": 1}\n')
    (tmp_path / "in/b.json").write_text('{"userId": "u-2", "n": 2}\n')
    for form in ("ndjson", "table", "csv"):
        told = run("query", "in", "--arrival", "--fields", "user_id,n", "--format", form).stderr
        assert "`user_id` is called `userId` in in/b.json: their records are shown as those without `user_id`" in told


def test_text_of_one_log_of_a_folder_that_begins_no_record_is_told(tmp_path: Path, run) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.log").write_text("2026-11-29 16:09:26 INFO up\ncard of bob declined\n" * 5)
    (tmp_path / "in/b.json").write_text('{"text": "card of ada"}\n')
    told = "jitdb: in in/a.log 5 of the first 10 lines, such as 'card of bob declined', begin no record"
    assert told in run("count", "in", '* contains "card of"').stderr
    assert "begin no record" not in run("count", "in", "text is present").stderr
