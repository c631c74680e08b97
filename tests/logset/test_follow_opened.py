"""A log, or a set, that is opened to follow: each question sees what another process did before it, without refresh().

What is found is compared with a plain program that reads the files as they are.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from thoroughness import tries

import jitdb
from jitdb import Log
from jitdb.errors import InvalidArgument, LogWarning

#: Does what it is told to, line by line, and says when it is done; told to run it writes and rotates by itself.
WRITER = """
import gzip, json, os, shutil, struct, sys, time
folder, number = sys.argv[1], 0
name = os.path.join(folder, "app.log")
def write(path, count):
    global number
    with open(path, "a") as file:
        for _ in range(count):
            level = "error" if number % 3 == 0 else "info"
            file.write(json.dumps({"n": number, "level": level, "time": 1700000000000 + number}) + "\\n")
            number += 1
def rotate():
    rotated = [each.split(".") for each in os.listdir(folder) if each.startswith("app.log.")]
    for each in sorted(rotated, key=lambda parts: -int(parts[2])):
        to = ".".join(["app.log", str(int(each[2]) + 1), *each[3:]])
        os.rename(os.path.join(folder, ".".join(each)), os.path.join(folder, to))
    os.rename(name, name + ".1")
    open(name, "w").close()
def act(what):
    old = os.path.join(folder, "app.log.1")
    if what == "write": write(name, 3)
    elif what == "rotate": rotate()
    elif what == "truncate":
        shutil.copyfile(name, os.path.join(folder, f"copy-{number}.log"))
        os.truncate(name, 0)
    elif what == "new": write(os.path.join(folder, f"new-{number}.log"), 2)
    elif what == "below":
        os.makedirs(os.path.join(folder, f"below-{number}"))
        write(os.path.join(folder, f"below-{number}", "b.log"), 2)
    elif what == "compress" and os.path.exists(old):
        with open(old, "rb") as file, gzip.open(old + ".gz", "wb") as packed: packed.write(file.read())
        os.remove(old)
    elif what == "remove" and os.path.exists(old): os.remove(old)
    elif what == "edit": open(name, "w").write('{"n": -1, "level": "error", "time": 1700000000000}\\n')
def run(place, most):
    while number < most:
        os.pwrite(place, struct.pack("<q", number + 3), 8)
        write(name, 3)
        os.pwrite(place, struct.pack("<q", number), 0)
        time.sleep(0.01)
        if number % 60 < 3: rotate()
write(name, 5)
print("done", flush=True)
for line in sys.stdin:
    what, *more = line.split()
    act(what)
    print("done", flush=True)
    if what == "run": run(os.open(more[0], os.O_RDWR), int(more[1]))
"""
ACTIONS = ("write", "write", "write", "rotate", "truncate", "new", "below", "compress", "remove", "edit", "nothing")


class Writer:
    """The process."""

    def __init__(self, folder: Path) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([sys.executable, "-c", WRITER, folder], stdin=pipe, stdout=pipe, text=True)
        self.heard()

    def heard(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "done\n"

    def does(self, what: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(what + "\n")
        self._process.stdin.flush()
        self.heard()

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(20) == 0


def plain(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    return [json.loads(line) for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()]


def files_in(folder: Path) -> list[Path]:
    found = [Path(top, name) for top, _, names in os.walk(folder) for name in names if ".jitdb" not in top]
    return [path for path in found if path.stat().st_size]


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[tuple[Path, Writer]]:
    folder = tmp_path / "logs"
    folder.mkdir()
    writer = Writer(folder)
    yield folder, writer
    writer.end()


def check(db: Any, records: list[dict[str, Any]]) -> None:
    errors = [record["n"] for record in records if record["level"] == "error"]
    assert db.count("level == 'error'") == len(errors)
    assert dict(db.value_counts("level")) == Counter(record["level"] for record in records)
    assert sorted(record["n"] for record in db.query("level == 'error'").select("n")) == sorted(errors)
    assert db.query("n >= 0").descending().page(4).total == sum(record["n"] >= 0 for record in records)


pytestmark = pytest.mark.filterwarnings("error::jitdb.errors.LogWarning")


@pytest.mark.parametrize("seed", range(tries(3, 60)))
@pytest.mark.parametrize("where", ["folder", "pattern"])
def test_a_set_has_what_is_there_at_each_question(writing: tuple[Path, Writer], where: str, seed: int) -> None:
    folder, writer = writing
    chosen = random.Random(seed)
    with jitdb.open_many(folder if where == "folder" else f"{folder}/**/*log*", follow=True) as logs:
        for _ in range(25):
            writer.does(chosen.choice(ACTIONS))
            check(logs, [record for path in files_in(folder) for record in plain(path)])
            if chosen.random() < 0.3:
                time.sleep(0.03)  # a folder that did not change for a while is not looked into


@pytest.mark.parametrize("seed", range(tries(3, 60)))
def test_a_log_has_what_is_there_at_each_question(writing: tuple[Path, Writer], seed: int) -> None:
    folder, writer = writing
    chosen = random.Random(seed)
    with jitdb.open(folder / "app.log", read_only=True, follow=True) as db:
        for _ in range(25):
            writer.does(chosen.choice(("write", "write", "rotate", "truncate", "edit", "nothing")))
            check(db, plain(folder / "app.log"))
            if chosen.random() < 0.3:
                time.sleep(0.03)


def test_nothing_is_missed_or_counted_twice_beside_a_writer(writing: tuple[Path, Writer], tmp_path: Path) -> None:
    """While it writes and rotates as fast as it can, each count lies between what was there before it and after."""
    (folder, writer), place = writing, tmp_path / "place"
    place.write_bytes(bytes(16))

    def written() -> tuple[int, int]:
        data = place.read_bytes()
        return int.from_bytes(data[:8], "little"), int.from_bytes(data[8:], "little")

    asked = 0
    with jitdb.open_many(folder, follow=True) as logs, jitdb.open(folder / "app.log", follow=True) as db:
        writer.does(f"run {place} 600")
        while (before := written()[0]) < 600:
            count = logs.count("n >= 0")
            assert before <= count <= written()[1]
            before = written()[0]
            found = [record["n"] for record in logs.query("n >= 0").select("n")]
            assert before <= len(found) == len(set(found)) <= written()[1]
            assert db.count("n >= 0") <= 70
            asked += 1
        assert logs.count("n >= 0") == written()[0]
    assert asked > 1


def test_a_log_of_jitdb_is_followed(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log") as log:
        log.append_many([{"n": n} for n in range(10)])
        log.flush()
        with (
            jitdb.open(tmp_path / "a.log", read_only=True, follow=True) as one,
            jitdb.open_many(tmp_path / "*.log", follow=True) as many,
        ):
            for count in range(11, 15):
                log.append({"n": count})
                log.flush()
                assert one.count("n >= 0") == many.count("n >= 0") == count
            log.delete(0)
            log.flush()
            assert one.count("n >= 0") == many.count("n >= 0") == 13
            log.compact()
            assert one.count("n >= 0") == many.count("n >= 0") == len(one.all()) == len(many.all()) == 13


def test_where_a_link_leads_and_what_becomes_a_log(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "logs", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    for name, count in (("a", 2), ("b", 5)):
        (elsewhere / name).write_text("".join(f'{{"n": {n}}}\n' for n in range(count)))
    (folder / "now.log").symlink_to(elsewhere / "a")
    (folder / "odd").write_bytes(bytes(100))
    with jitdb.open_many(folder, follow=True) as logs:
        with pytest.warns(LogWarning, match="passed over"):
            assert logs.count("n >= 0") == 2
        (folder / "next").symlink_to(elsewhere / "b")
        os.replace(folder / "next", folder / "now.log")
        assert logs.count("n >= 0") == 5
        (folder / "odd").write_text('{"n": 1}\n')
        assert logs.count("n >= 0") == 6
        time.sleep(0.03)
        assert logs.count("n >= 0") == 6
        (folder / "odd").write_bytes(bytes(50))
        assert logs.count("n >= 0") == 5
        (folder / "odd").unlink()
        os.remove(folder / "now.log")
        assert logs.count("n >= 0") == 0


def test_a_named_file_may_be_missing_for_a_while(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text('{"n": 1}\n')
    with jitdb.open_many([path], follow=True) as logs:
        assert logs.count("n == 1") == 1
        os.remove(path)
        assert logs.count("n == 1") == 0
        path.write_text('{"n": 1}\n{"n": 1}\n')
        assert logs.count("n == 1") == 2


def test_a_table_that_is_replaced_is_read_anew(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    write = pytest.importorskip("pyarrow.parquet").write_table
    write(pa.table({"n": [1]}), tmp_path / "a.parquet")
    path = tmp_path / "a.parquet"
    with jitdb.open_many(path, follow=True) as logs, jitdb.open(path, follow=True) as db:
        for count in range(1, 4):
            write(pa.table({"n": list(range(count))}), tmp_path / "next")
            os.replace(tmp_path / "next", path)
            assert logs.count("n >= 0") == db.count("n >= 0") == count


def test_fields_are_those_of_what_came(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text('{"n": 1}\n')
    for opened in (jitdb.open(path, follow=True), jitdb.open_many(tmp_path, follow=True)):
        with opened as db:
            before = path.read_text()
            assert "late" not in str(db.fields())
            path.write_text(before + '{"late": 1}\n')
            assert "late" in str(db.fields())
            path.write_text(before)


def test_follow_is_true_or_false(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"n": 1}\n')
    for opening in (jitdb.open, jitdb.open_many):
        with pytest.raises(InvalidArgument, match="follow"):
            opening(tmp_path / "a.ndjson", follow="yes")


@pytest.mark.parametrize("kind", ["one", "many"])
def test_where_nothing_changed_a_look_is_a_stat_or_two(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in range(5):
        (tmp_path / f"{name}.ndjson").write_text('{"n": 1}\n')
    time.sleep(0.05)
    with (
        jitdb.open(tmp_path / "0.ndjson", follow=True)
        if kind == "one"
        else jitdb.open_many(tmp_path, follow=True) as db
    ):
        db.query("n == 1").page(1)
        time.sleep(0.05)
        db.query("n == 1").page(1)
        seen: list[Any] = []
        for name in ("stat", "fstat", "lstat", "scandir"):
            real = getattr(os, name)
            monkeypatch.setattr(os, name, lambda *a, real=real, **k: (seen.append(a), real(*a, **k))[1])
        db._look()
        assert len(seen) <= (1 if kind == "one" else 1 + 5)
