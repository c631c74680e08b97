"""The files of indexes are listed as they are, and dropped as they are named; nothing else is."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import EVENTS, environment, make_log

from jitdb.log import Log

LEVEL = 'level == "error"'
HOLD = """
import sys
import time
from pathlib import Path
from jitdb.indexes.files.folder import take_locks
from jitdb.log.io import osfile
with take_locks(osfile.fs, Path(sys.argv[1]), [sys.argv[2]]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folder(run, events: Path) -> Path:
    """Of the indexes of two questions."""
    run("prepare", "events.log", LEVEL, "status > 0", "-q")
    return events.parent / "events.log.jitdb" / "indexes"


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*.index")}


def rows(run, *arguments: str) -> dict[str, dict[str, Any]]:
    """What there is, by name."""
    found = json.loads(run("indexes", "events.log", "--json", *arguments).stdout)
    return {row["name"]: row for row in found["indexes"]}


def test_the_list_says_what_is_there_and_changes_nothing(run, folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.parent.rglob("*") if path.is_file()}
    listed = rows(run)
    assert {row["file"]: row["bytes"] for row in listed.values()} == {
        path.name: path.stat().st_size for path in folder.glob("*.index")
    }
    level, status = listed["level"], listed["status"]
    assert (level["form"], level["records"], level["state"]) == ("bitmaps", 5, "fresh")
    assert (status["form"], status["records"], status["state"]) == ("numbers", 5, "fresh")
    shown = run("indexes", "events.log").stdout
    assert f"level (==, in, absent)\n  {level['file']}: 5 records, {level['bytes']} bytes, fresh\n" in shown
    assert {path: path.read_bytes() for path in folder.parent.rglob("*") if path.is_file()} == before


def test_stale_damaged_and_void(run, folder: Path) -> None:
    listed = rows(run)
    with Log("events.log") as log:
        log.append(EVENTS[0])
    head = folder / listed["level"]["file"]
    head.write_bytes(b"nonsense")
    segment = folder / listed["status"]["file"]
    data = bytearray(segment.read_bytes())
    data[12 + int.from_bytes(data[8:12], "little") + 4 + 8] ^= 1  # behind the head and its checksum
    segment.write_bytes(data)
    now = rows(run)
    assert (now[head.name]["state"], now["status"]["state"], now["offsets"]["state"]) == ("damaged", "damaged", "stale")
    make_log(folder.parent.parent / "other.log", EVENTS)
    other = json.loads(run("indexes", "other.log", "--json", "--indexes", str(folder)).stdout)["indexes"]
    assert {row["state"] for row in other} == {"void", "damaged"}


def test_an_index_of_a_copy_that_went_another_way_is_void(run, folder: Path) -> None:
    shutil.copy("events.log", "copy.log")
    shutil.copytree("events.log.jitdb", "copy.log.jitdb")
    for path, level in (("events.log", "one"), ("copy.log", "two")):
        with Log(path) as log:
            log.append({"level": level})
    run("count", "events.log", LEVEL, "-q")
    listed = json.loads(run("indexes", "copy.log", "--json", "--indexes", str(folder)).stdout)["indexes"]
    states = {row["name"]: (row["state"], "another copy" in row["reason"]) for row in listed}
    assert (states["level"], states["status"]) == (("void", True), ("stale", False))


@pytest.mark.parametrize("how", ["field", "file", "question"])
def test_what_is_named_goes_and_is_built_anew(run, folder: Path, how: str) -> None:
    name, before = rows(run)["level"]["file"], files(folder)
    which = {"field": "level", "file": name, "question": LEVEL}[how]
    done = run("indexes", "events.log", "--drop", which)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"dropped {name}\n1 index, ")
    assert files(folder) == before - {name}
    assert run("count", "events.log", LEVEL).stdout == "2\n"
    assert files(folder) == before


def test_names_as_the_list_has_them(run, folder: Path) -> None:
    run("prepare", "events.log", '"a" in tags', "tags is absent", "-q")
    listed = rows(run)
    done = json.loads(run("indexes", "events.log", "--json", "--drop", "tags[]", "time").stdout)
    assert {row["name"] for row in done["dropped"]} == {"tags[]", "time"}
    assert {row["name"] for row in done["indexes"]} == listed.keys() - {"tags[]", "time"}
    assert files(folder) == {row["file"] for row in done["indexes"]}


def test_a_wrong_name_drops_nothing_and_tells_the_nearest(run, folder: Path) -> None:
    before = files(folder)
    done = run("indexes", "events.log", "--drop", "status", "levle")
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no index of 'levle'" in done.stderr
    assert "did you mean 'level'?" in done.stderr
    assert run("indexes", "events.log", "--drop", "level == ").returncode == 2
    assert run("indexes", "events.log", "--drop", "level", "--forget").returncode == 2
    assert run("indexes", "events.log", "--forget", "--indexes", "none").returncode == 2
    assert run("indexes", "event.log").returncode == 1
    assert files(folder) == before
    assert run("indexes", "events.log", "--drop", "never.asked == 1").stdout == "there was nothing to drop\n"


def test_damaged_and_foreign_files_go_by_their_names(run, folder: Path) -> None:
    make_log(folder.parent.parent / "other.log", EVENTS)
    elsewhere = ("--indexes", str(folder))
    listed = rows(run)
    damaged = listed["level"]["file"]
    (folder / damaged).write_bytes(b"")
    done = run("indexes", "other.log", "--drop", damaged, "status", *elsewhere)
    assert (done.returncode, done.stderr) == (0, "")
    assert files(folder) == {row["file"] for row in listed.values()} - {damaged, listed["status"]["file"]}


def test_what_is_no_index_stays(run, folder: Path) -> None:
    name = rows(run)["level"]["file"]
    (folder / name).unlink()
    (folder / name).symlink_to(folder.parent.parent / "events.ndjson")
    (folder / "notes.index").write_text("mine")
    (folder / "notes.txt").write_text("mine")
    for wrong in ("notes.index", "notes.txt", name, "lock", "../../events.log"):
        assert run("indexes", "events.log", "--drop", wrong).returncode == 1
    reason = rows(run)["notes.index"]["reason"]
    assert reason.endswith("it is never removed")
    assert run("indexes", "events.log", "--forget").returncode == 0
    assert files(folder) == {"notes.index", name}
    assert (folder / "notes.txt").exists()
    assert Path("events.ndjson").stat().st_size
    assert run("count", "events.log", LEVEL, "-q").stdout == "2\n"


def test_who_builds_one_is_waited_for(run, folder: Path) -> None:
    name = rows(run)["level"]["file"]
    (folder / name).write_bytes(b"half a head")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment()}
    with subprocess.Popen([sys.executable, "-c", HOLD, str(folder), name], **pipes) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with subprocess.Popen(
            [sys.executable, "-m", "jitdb", "indexes", "events.log", "--drop", name], **pipes
        ) as drop:
            with pytest.raises(subprocess.TimeoutExpired):
                drop.wait(2)
            assert (folder / name).exists()
            holder.communicate()
            assert drop.communicate(timeout=60)[0].startswith(f"dropped {name}\n")
    assert not (folder / name).exists()


def test_small_files_that_are_counted_together(run, tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / "logs" / f"{number}.ndjson").parent.mkdir(exist_ok=True)
        (tmp_path / "logs" / f"{number}.ndjson").write_text('{"level": "error"}\n' * 3)
    time.sleep(0.03)  # until a change would show in their times
    assert run("count", "logs", LEVEL).stdout == "27\n"
    shown = run("indexes", "logs").stdout.splitlines()
    assert [line.split(", ")[0] for line in shown[:-1]] == [
        f"{name}: of 1 bundle of small files" for name in ("deleted", "level", "offsets")
    ]
    assert all(line.endswith("1 fresh") for line in shown[:-1])
    assert shown[-1].startswith("9 small files of logs: ")
    assert run("verify", "logs").stdout == "9 logs and 1 bundle of small files verified: all are sound\n"
    assert run("indexes", "logs", "--drop", "level").stdout.startswith("1 index, ")
    assert "level" not in run("indexes", "logs").stdout
    assert run("count", "logs", LEVEL).stdout == "27\n"
    (index,) = (tmp_path / "logs" / ".jitdb").rglob("level*.index")
    data = index.read_bytes()
    index.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert run("verify", "logs").returncode == 1
    (tmp_path / "logs" / "3.ndjson").write_text('{"level": "info"}\n')
    assert run("verify", "logs").stdout == "9 logs verified: all are sound\n"  # a part of the bundle is gone
    assert run("indexes", "logs", "--forget").stdout.startswith("forgot what was kept of 9 files: ")
    assert not (tmp_path / "logs" / ".jitdb").exists()
    assert run("indexes", "logs").stdout == "9 logs have no indexes yet: the first question makes them\n"
    assert run("count", "logs", LEVEL).stdout == "24\n"
