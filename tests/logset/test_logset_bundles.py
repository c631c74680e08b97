"""Small files are counted together, and the counts are those of the files one by one, whatever becomes of them."""

from __future__ import annotations

import errno
import gzip
import json
import os
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jitdb
from jitdb import LogSet
from jitdb.errors import InvalidOffset, LogWarning, MalformedWarning, QuestionWarning
from jitdb.log.io import osfile
from jitdb.log.io.filenames import is_bundle_name
from jitdb.log.lines.bundles.bundle import BundledFile
from jitdb.log.lines.bundles.bundled_lines import BeginningLines, BundledLines, Unbundled
from jitdb.log.lines.bundles.stores import stored_bundles
from jitdb.operators import declared_time, field

SIXES = field("n") == 6
FILES = 12


def lines(*numbers: int) -> bytes:
    return b"".join(json.dumps({"n": number, "word": f"w{number % 3}"}).encode() + b"\n" for number in numbers)


def settle() -> None:
    time.sleep(0.03)  # until a change shows in the times of a file


def oracle(folder: Path, wanted: Callable[[dict[str, Any]], bool] = lambda record: record.get("n") == 6) -> int:
    """Decodes everything."""
    count = 0
    for path in folder.rglob("*.ndjson"):
        for line in path.read_bytes().split(b"\n")[:-1]:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            count += isinstance(record, dict) and wanted(record)
    return count


def asked(folder: Path, **given: Any) -> int:
    with jitdb.open_many(folder, progress=False, **given) as logs:
        return logs.count(SIXES)


def bundles(folder: Path) -> list[set[str]]:
    """The names of the files of each that has a text, of those that are what they were."""
    there = [each for each in stored_bundles(str(folder), folder / ".jitdb") if each.kind.form is not None]
    return [{file.name for file in each.files if file.is_in(str(folder))} for each in there]


def own(folder: Path) -> list[str]:
    """The files that have indexes of their own."""
    names = {str(path.stat().st_ino): path.name for path in folder.iterdir()}
    found = [path.parent.name for path in (folder / ".jitdb").glob("*/indexes")]
    return sorted(names[name] for name in found if not is_bundle_name(name))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(FILES):
        (tmp_path / f"{number:02}.ndjson").write_bytes(lines(*range(number, number + 8)))
    settle()
    return tmp_path


@pytest.fixture
def logs(folder: Path) -> Any:
    with jitdb.open_many(folder, progress=False) as logs:
        assert logs.count(SIXES) == oracle(folder) == 7
        yield logs


def test_they_are_scanned_once_and_kept_together(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(folder) == oracle(folder)
    assert (bundles(folder), own(folder)) == ([{f"{number:02}.ndjson" for number in range(FILES)}], [])
    read: list[str] = []
    blocks = BundledLines.read_blocks
    monkeypatch.setattr(
        BundledLines,
        "read_blocks",
        lambda self, *given: (read.extend(file.name for file in self.bundle.files), blocks(self, *given))[1],
    )
    monkeypatch.setattr(BundledLines, "second_look", lambda *_: pytest.fail("it is known"))
    with jitdb.open_many(folder, progress=False) as logs:
        assert [logs.count(SIXES) for _ in range(2)] == [7, 7]
    looked_at = [*range(0, FILES, 2), FILES - 1]  # for a note on other names
    assert list(dict.fromkeys(read)) == [f"{number:02}.ndjson" for number in looked_at]


def test_few_files_large_ones_and_others_are_asked_one_by_one(folder: Path) -> None:
    for number in range(5):
        (folder / f"{number:02}.ndjson").unlink()
    assert (asked(folder), bundles(folder), len(own(folder))) == (oracle(folder), [], FILES - 5)


def test_files_of_one_format_are_kept_together(tmp_path: Path) -> None:
    line = {"log": '{"n": 6}\n', "stream": "stdout", "time": "2026-11-20T00:00:18.350886000Z"}
    for number in range(FILES):
        (tmp_path / f"{number:02}.log").write_text(f"{json.dumps(line)}\n" * 3)
    settle()
    assert asked(tmp_path) == 3 * FILES
    assert (list(map(len, bundles(tmp_path))), own(tmp_path)) == ([FILES], [])


@pytest.mark.parametrize("end", ["\n", "\n\n", "\r\n", "    at a.b(C.java:1)\n", ""])
def test_text_that_ends_with_an_empty_line(tmp_path: Path, end: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(FILES):
        lines = (f"2026-11-29 18:03:{second:02}.740 INFO a{number}\n" for second in range(number % 3 + 1))
        (folder / f"{number:02}.log").write_text("".join(lines) + (end if number % 5 == 0 else ""))
    settle()
    with jitdb.open_many(folder, progress=False) as logs:
        for _ in range(2):
            assert logs.count() == 24
            assert logs.count('text contains "a5"') == 3


@pytest.mark.filterwarnings("ignore::jitdb.errors.LogWarning")
@pytest.mark.parametrize(
    "odd",
    [b"\xef\xbb\xbf" + lines(6), lines(6) + b'{"n": 6', b"", gzip.compress(lines(6), mtime=0)[:-9]],
    ids=["mark", "cut", "empty", "gzip cut"],
)
def test_odd_files_are_asked_on_their_own(folder: Path, odd: bytes) -> None:
    (folder / "odd.ndjson").write_bytes(odd)
    settle()
    assert asked(folder) == 7 + (1 if odd.startswith(b"\x1f") else odd.count(b'"n": 6,'))
    assert (len(bundles(folder)), own(folder)) == (1, ["odd.ndjson"] if odd else [])


def change(folder: Path, what: str) -> None:
    path = folder / "03.ndjson"
    data = path.read_bytes()
    if what == "grown":
        path.write_bytes(data + lines(6, 6, 7))
    elif what == "edited":
        path.write_bytes(data.replace(b'"n": 3', b'"n": 6'))
    elif what == "truncated":
        path.write_bytes(lines(6))
    elif what == "replaced":
        (folder / "new").write_bytes(data.replace(b'"n": 3', b'"n": 6'))
        (folder / "new").rename(path)
    elif what == "removed":
        path.unlink()
    elif what == "another":
        (folder / "another.ndjson").write_bytes(lines(6, 6))
    elif what == "emptied":
        path.write_bytes(b"")


@pytest.mark.parametrize("what", ["grown", "edited", "truncated", "replaced", "removed", "another", "emptied"])
def test_a_changed_file_is_asked_on_its_own_from_then_on(logs: LogSet, folder: Path, what: str) -> None:
    change(folder, what)
    settle()
    assert logs.refresh()
    assert (logs.count(SIXES), logs.count(field("word") == "w0")) == (
        oracle(folder),
        oracle(folder, lambda record: record["word"] == "w0"),
    )
    assert not logs.refresh()
    assert asked(folder) == oracle(folder)
    is_another = what == "another"  # a new file goes into the bundle
    assert own(folder) == ([] if is_another or what in ("removed", "emptied") else ["03.ndjson"])
    assert [len(names) for names in bundles(folder)] == [FILES + 1 if is_another else FILES - 1]
    (folder / "03.ndjson").write_bytes(lines(6, 7, 6))
    settle()
    assert (asked(folder), len(bundles(folder))) == (oracle(folder), 1)


def test_without_a_refresh_an_answer_is_that_of_the_files(logs: LogSet, folder: Path) -> None:
    change(folder, "edited")
    assert logs.count(SIXES) == oracle(folder) == 8
    change(folder, "removed")
    logs.refresh()
    assert logs.count(SIXES) == oracle(folder)


def test_rotation_costs_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(folder)
    for number in reversed(range(FILES)):
        (folder / f"{number:02}.ndjson").rename(folder / f"{number + 1:02}.ndjson")
    settle()
    written: list[int] = []
    write = osfile.FileSystem.write

    def noted(fs: osfile.FileSystem, fd: int, data: Any, at: int) -> None:
        written.append(len(data))
        write(fs, fd, data, at)

    monkeypatch.setattr(osfile.FileSystem, "write", noted)
    assert asked(folder) == oracle(folder) == 7
    assert (bundles(folder), own(folder)) == ([{f"{number + 1:02}.ndjson" for number in range(FILES)}], [])
    assert (len(written), asked(folder), len(written)) == (1, 7, 1)  # the names


def test_a_file_that_was_edited_and_renamed_is_another(logs: LogSet, folder: Path) -> None:
    change(folder, "edited")
    (folder / "03.ndjson").rename(folder / "renamed.ndjson")
    settle()
    assert logs.refresh()
    assert logs.count(SIXES) == oracle(folder) == 8
    assert asked(folder) == 8


def test_what_is_read_is_what_was_looked_at(folder: Path) -> None:
    asked(folder)
    (bundle,) = stored_bundles(str(folder), folder / ".jitdb")
    log, data = BundledLines(bundle), bytearray(1 << 20)
    assert log.read_blocks(0, len(data), memoryview(data)) == log.durable_end == bundle.size
    assert log.get_many_raw([0]) == [b'{"n": 0, "word": "w0"}']
    with pytest.raises(InvalidOffset):
        log.get_many_raw([1])
    os.utime(folder / "03.ndjson")
    with pytest.raises(Unbundled):
        log.read_blocks(0, len(data), memoryview(data))


@pytest.mark.parametrize("what", ["grown", "edited", "removed"])
def test_changed_while_it_is_scanned(folder: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    read, changed = BundledLines.read_blocks, threading.Event()

    def reading(log: BundledLines, start: int, stop: int, buffer: Any) -> int:
        if not changed.is_set() and not isinstance(log, BeginningLines):
            changed.set()
            change(folder, what)
        return read(log, start, stop, buffer)

    monkeypatch.setattr(BundledLines, "read_blocks", reading)
    if what != "removed":
        assert asked(folder) == oracle(folder)
        return
    with pytest.raises(jitdb.JitdbError, match=r"03\.ndjson"):  # as of a file that goes before it is opened
        asked(folder)


def test_another_process_makes_the_next_bundle(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, changed = BundledLines.read_blocks, threading.Event()

    def reading(log: BundledLines, start: int, stop: int, buffer: Any) -> int:
        if not changed.is_set() and not isinstance(log, BeginningLines):
            changed.set()
            change(folder, "grown")
            settle()
            assert asked(folder) == oracle(folder)
        return read(log, start, stop, buffer)

    monkeypatch.setattr(BundledLines, "read_blocks", reading)
    with jitdb.open_many(folder, progress=False) as logs:
        assert logs.count(SIXES) == oracle(folder)
        counted = logs.query().value_counts("word")
    assert sum(row.count for row in counted) == oracle(folder, lambda record: True)
    assert ([len(names) for names in bundles(folder)], own(folder)) == ([FILES - 1], ["03.ndjson"])


def test_what_is_no_json_is_told_of_by_its_file(folder: Path) -> None:
    (folder / "05.ndjson").write_bytes(lines(6, 1) + b"oh no\n" + lines(6))
    settle()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert asked(folder) == oracle(folder)
    (warning,) = [each.message for each in caught if isinstance(each.message, MalformedWarning)]
    assert (warning.path, warning.numbers) == (str(folder / "05.ndjson"), (3,))
    assert (list(map(len, bundles(folder))), own(folder)) == ([FILES - 1], ["05.ndjson"])


@pytest.mark.parametrize("odd", [b'{"n":\n 6}\n', b"1\n2\n", b'{"n": 6}\0\n', b"{}}\n"])
def test_what_is_no_log_is_none_among_small_files(folder: Path, odd: bytes) -> None:
    (folder / "odd.ndjson").write_bytes(odd)
    settle()
    with pytest.warns(LogWarning, match=r"1 file is no log, .* passed over: .*odd\.ndjson"):
        assert asked(folder) == 7
    (folder / "odd.ndjson").unlink()
    assert asked(folder) == 7


def test_only_who_may_read_the_files_may_read_their_bundle(folder: Path) -> None:
    for number in range(8):
        (folder / f"more-{number}.ndjson").write_bytes(lines(6))
        (folder / f"more-{number}.ndjson").chmod(0o600)
    settle()
    assert (asked(folder), sorted(map(len, bundles(folder)))) == (oracle(folder), [8, FILES])
    for bundle in stored_bundles(str(folder), folder / ".jitdb"):
        assert bundle.place is not None
        mode = (folder / bundle.files[0].name).stat().st_mode & 0o777
        files = [path for path in (bundle.place, *bundle.place.rglob("*")) if path.is_file()]
        assert {path.stat().st_mode & 0o777 for path in files} == {mode}
        assert bundle.place.stat().st_mode & 0o077 == (0o055 if mode == 0o644 else 0)


@pytest.mark.parametrize("name", ["members", "*.index"])
@pytest.mark.filterwarnings("ignore::jitdb.errors.IndexWarning")
def test_damage_is_mended(folder: Path, name: str) -> None:
    asked(folder)
    for path in (folder / ".jitdb").rglob(name):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    assert (asked(folder), asked(folder), len(bundles(folder))) == (7, 7, 1)


def test_folders_for_indexes_and_none(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    assert asked(folder, indexes=other) == asked(folder, indexes="memory") == 7
    assert not list(folder.glob("*.jitdb")) + list(folder.glob(".jitdb"))
    (store,) = other.iterdir()
    assert [len(each.files) for each in stored_bundles(str(folder), store / ".jitdb")] == [FILES]
    change(folder, "grown")
    assert asked(folder, indexes=other) == oracle(folder)
    with jitdb.open_many(folder, "memory", progress=False) as logs:
        for what in ("grown", "edited", "removed"):
            settle()
            change(folder, what)
            logs.refresh()
            assert logs.count(SIXES) == oracle(folder)


def test_where_nothing_can_be_written(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert asked(folder) == 7
    assert (len(list(cache.rglob("members"))), list(folder.glob(".jitdb"))) == (1, [])


@pytest.mark.filterwarnings("ignore::jitdb.errors.IndexWarning")
def test_a_full_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(osfile.FileSystem):
        def write(self, fd: int, data: Any, offset: int) -> None:
            raise OSError(errno.ENOSPC, "no room")

    with monkeypatch.context() as patch:
        patch.setattr(osfile, "fs", Full())
        assert asked(folder) == 7
    assert asked(folder) == 7


def test_several_at_once(folder: Path) -> None:
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(asked(folder))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (found, len(bundles(folder)), own(folder)) == ([7] * 6, 1, [])


def test_the_time_is_found_log_by_log(folder: Path) -> None:
    for number, name in enumerate(["ts", "time"] * 6):
        (folder / f"{number:02}.ndjson").write_text(f'{{"{name}": "2026-11-{number + 1:02}T00:00:00Z", "n": 6}}\n')
    settle()
    with jitdb.open_many(folder, progress=False) as logs:
        assert logs.count(declared_time >= "2026-11-05") == 8
        assert logs.query().timeline().total == 12
        assert logs.count(SIXES) == 12
    assert len(own(folder)) == FILES


@pytest.mark.parametrize("given", [{}, {"timestamp": "ts"}])
def test_one_time_for_all(folder: Path, given: dict[str, Any]) -> None:
    """The first one is all of its file, and has less records than are looked at."""
    times = [f"2026-11-{number + 1:02}T00:00:00Z" for number in range(FILES)]
    for number, moment in enumerate(times):
        other = f'{{"time": "{moment}"}}\n' * 20 if number == 1 and given else ""
        (folder / f"{number:02}.ndjson").write_text(f'{{"ts": "{moment}", "time": 0, "n": 6}}\n' * 3 + other)
    settle()
    with jitdb.open_many(folder, progress=False, **given) as logs:
        assert logs.count(declared_time >= "2026-11-05") == 24
        assert [bin.count for bin in logs.query().timeline(every="1d")] == [3] * FILES
        change(folder, "edited")
        settle()
        logs.refresh()
        assert logs.count(declared_time >= "2026-11-05") == 24
    assert own(folder) == (["01.ndjson", "03.ndjson"] if given else ["03.ndjson"])


def test_the_time_of_a_bundle_is_that_of_each_file(folder: Path) -> None:
    """Its own first sixteen records, of which eleven have `time`, would tell of another one."""
    both, one = '{"ts": "2026-11-01T00:00:00Z", "time": "2026-10-01T00:00:00Z"}\n', '{"ts": "2026-11-01T00:00:00Z"}\n'
    for number in range(FILES):
        (folder / f"{number:02}.ndjson").write_text(both * 4 + one * 5 if number == 0 else both * 7 + one * 9)
    settle()
    alone = sum(asked_alone(path, declared_time >= "2026-10-15") for path in folder.glob("*.ndjson"))
    with jitdb.open_many(folder, progress=False) as logs:
        assert logs.count(declared_time >= "2026-10-15") == alone == 9 + 11 * 16
    assert own(folder) == []


def asked_alone(path: Path, question: Any) -> int:
    with jitdb.open(path, "memory", read_only=True) as db:
        return db.count(question)


def test_some_of_the_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(folder)
    files = {
        path.name: [json.loads(line) for line in path.read_text().splitlines()] for path in folder.glob("*.ndjson")
    }
    path = field("_path")
    for names in ([f"{number:02}.ndjson" for number in range(3, 12)], sorted(files)[:8], sorted(files)):
        records = [record for name in names for record in files[name]]
        with jitdb.open_many([folder / name for name in names], progress=False) as logs:
            assert [logs.count(SIXES) for _ in range(2)] == [sum(record["n"] == 6 for record in records)] * 2
            assert logs.count() == len(records)
            counted = {row.value: row.count for row in logs.query(field("n") > 4).value_counts("word")}
            assert counted == Counter(record["word"] for record in records if record["n"] > 4)
            numbers = [record["n"] for record in records]
            found = logs.query().stats("n")
            assert (found.count, found.min, found.max, found.sum) == (
                len(numbers), min(numbers), max(numbers), sum(numbers)
            )  # fmt: skip
            own_path = path == str(folder / "05.ndjson")
            assert logs.count(own_path | SIXES) == sum(
                record["n"] == 6 or name == "05.ndjson" for name in names for record in files[name]
            )
    with jitdb.open_many(folder, progress=False) as logs:
        assert logs.count(~(path == str(folder / "02.ndjson"))) == 8 * (FILES - 1)
        assert logs.count(SIXES) == 7
    assert (len(bundles(folder)), own(folder)) == (1, [])


def test_why_nothing_is_found_is_known_without_scans(folder: Path) -> None:
    with jitdb.open_many(folder, progress=False) as logs:
        for question, said in ((field("word") == "W1", 'word == "w1"'), (field("other") == 1, "the field `other`")):
            with pytest.warns(QuestionWarning, match=said):
                assert logs.count(question) == 0
        path = field("_path") == str(folder / "03.ndjson")
        with pytest.warns(QuestionWarning, match='word == "w1"'):
            assert logs.count(path & (field("word") == "W1")) == 0
    assert set(own(folder)) <= {"03.ndjson"}


def test_paths_and_values(folder: Path) -> None:
    with jitdb.open_many(folder, progress=False) as logs:
        path = field("_path")
        assert logs.count(path.contains("ndjson") & SIXES) == 7
        assert len(bundles(folder)) == 1
        assert logs.count((path == str(folder / "03.ndjson")) & SIXES) == 1
        assert logs.count((path == str(folder / "03.ndjson")) | SIXES) == 7 + 7
        assert [(row.value, row.count) for row in logs.query().value_counts("_path")][:1] == [
            (str(folder / "00.ndjson"), 8)
        ]
        counted = {row.value: row.count for row in logs.query(SIXES | (field("n") < 3)).value_counts("word")}
    records = [json.loads(line) for path in folder.glob("*.ndjson") for line in path.read_text().splitlines()]
    assert counted == Counter(record["word"] for record in records if record["n"] == 6 or record["n"] < 3)


LINES = st.one_of(
    st.dictionaries(
        st.sampled_from(["n", "a.b", 'q"', "word"]), st.integers(4, 7) | st.text(max_size=3), max_size=3
    ).map(lambda record: json.dumps(record).encode()),
    st.sampled_from([b"", b"  ", b'{"n": 6}\r', b'{"n":6,"n":5}', b'{"\\u006e":6}', b"[6]", b"6", b'{"n": 6.0}']),
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(LINES, max_size=6), min_size=10, max_size=14), st.data())
def test_random_files(tmp_path_factory: pytest.TempPathFactory, files: list[list[bytes]], data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("files")
    for number, content in enumerate(files):
        (folder / f"{number}.ndjson").write_bytes(b"\n".join([b'{"word": "x"}', *content]) + b"\n")
    settle()
    with jitdb.open_many(folder, progress=False) as logs:
        assert logs.count(SIXES) == oracle(folder)
        assert len(bundles(folder)) == 1
        for number in data.draw(st.sets(st.sampled_from(range(len(files))), max_size=3)):
            with open(folder / f"{number}.ndjson", "ab") as file:
                file.write(lines(6))
        logs.refresh()
        assert logs.count(SIXES) == oracle(folder)
    assert asked(folder) == oracle(folder)


def test_a_file_that_cannot_be_read_any_more_ends_no_question(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stamp is what it was, so its bundle is found again and again."""
    asked(folder)
    read, tries = BundledLines._read_into, list[str]()

    def failing(log: BundledLines, file: BundledFile, offset: int, view: memoryview) -> None:
        if file.name == "03.ndjson" and len(tries) < 100:
            tries.append(file.name)
            raise Unbundled("no such luck", path=folder / file.name)
        read(log, file, offset, view)

    monkeypatch.setattr(BundledLines, "_read_into", failing)
    with jitdb.open_many(folder, progress=False) as logs:
        assert logs.count(field("word") == "w0") == oracle(folder, lambda record: record["word"] == "w0")
    assert 0 < len(tries) < 100
