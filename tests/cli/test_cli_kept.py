"""What is kept of files that others write is told, those that are gone included, and forgotten with --forget."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from cli_helpers import make_log
from homes import entries_beside, entry_of

import jitdb
from jitdb.cli import main
from jitdb.log.lines.kept import forget, kept
from jitdb.operators import field


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder of two files that were asked, one of which is gone, and of what looks like it."""
    monkeypatch.chdir(tmp_path)
    logs = Path("logs")
    (logs / "deep").mkdir(parents=True)
    for name in ("a.ndjson", "deep/b.ndjson"):
        (logs / name).write_text('{"n": 1}\n')
        assert main(["count", str(logs / name), "n == 1"]) == 0
    (logs / "deep" / "b.ndjson").unlink()
    make_log(logs / "own.log", [{"n": 1}])
    (logs / "own.log").rename("own.log")  # whose sidecar says what was deleted, and more
    (logs / "notes.jitdb").mkdir()
    capsys.readouterr()
    return logs


def size_of(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


@pytest.mark.parametrize("where", ["logs/deep", "logs/deep/b.ndjson", "logs/deep/*.ndjson"])
def test_a_file_that_is_gone(logs: Path, capsys: pytest.CaptureFixture[str], where: str) -> None:
    store = logs / "deep" / ".jitdb"
    size, (entry,) = size_of(store), entries_beside(logs / "deep")
    assert main(["indexes", where]) == 0
    told = f"logs/deep/b.ndjson, a file that is gone: {size:,} bytes, in logs/deep/.jitdb/{entry}\n"
    assert capsys.readouterr().out == told
    assert main(["indexes", where, "--forget"]) == 0
    assert capsys.readouterr().out == f"forgot what was kept of 1 file, 1 of them gone: {size:,} bytes given back\n"
    assert not store.exists()
    assert entries_beside(logs)
    assert main(["count", "logs/a.ndjson", "n == 1"]) == 0


def test_all_of_a_folder(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["indexes", "logs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        "deleted", "n", "offsets", "logs/a.ndjson", "logs/deep/b.ndjson, a file that is gone",
        f"what is kept of 2 files, 1 of them gone takes {size_of(logs / '.jitdb') + size_of(logs / 'deep'):,} bytes",
    ]  # fmt: skip
    kept_own = sorted(each.name for each in (logs / "own.log.jitdb").iterdir())
    assert main(["indexes", "logs", "--forget"]) == 0
    assert capsys.readouterr().out.startswith("forgot what was kept of 2 files, 1 of them gone: ")
    assert {path.name for path in logs.rglob("*.jitdb")} == {"own.log.jitdb", "notes.jitdb"}
    assert sorted(each.name for each in (logs / "own.log.jitdb").iterdir()) == kept_own
    assert main(["indexes", "logs", "--forget"]) == 0
    assert capsys.readouterr().out == "there was nothing to forget\n"
    assert main(["indexes", "logs"]) == 0
    assert capsys.readouterr().out == "1 log has no indexes yet: the first question makes them\n"


def test_one_file_in_all_its_forms(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = logs / "a.ndjson"
    assert main(["count", str(path), "n == 1", "--allow-prefix"]) == 0
    (logs / "other.ndjson").write_text('{"n": 1}\n')
    assert main(["count", str(logs / "other.ndjson"), "n == 1"]) == 0
    capsys.readouterr()
    assert main(["indexes", str(path)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[0] for line in told[-3:]] == [
        "logs/a.ndjson", "logs/a.ndjson (prefix)", f"what is kept of 1 file takes {_taken(path):,} bytes",
    ]  # fmt: skip
    assert main(["indexes", str(path), "--forget"]) == 0
    assert entries_beside(logs) == {str((logs / "other.ndjson").stat().st_ino)}
    assert main(["count", str(path), "n == 1"]) == 0


def _taken(path: Path) -> int:
    return size_of(entry_of(path)) + size_of(entry_of(path, "prefix"))


def test_sets_go_too_and_are_told(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with jitdb.open(logs / "a.ndjson", progress=False) as db:
        db.sets["mine"] = db.query(field("n") == 1).set()
    assert main(["indexes", "logs/a.ndjson", "--forget"]) == 0
    assert "of 1 file, 1 set under names with it: " in capsys.readouterr().out


def test_in_python(logs: Path) -> None:
    gone, there = sorted(kept("logs"), key=lambda each: not each.is_gone)
    assert (gone.path, gone.is_gone) == (str((logs / "deep/b.ndjson").resolve()), True)
    assert (there.path, there.is_gone, there.form, there.files) == (str((logs / "a.ndjson").resolve()), False, "", ())
    assert there.bytes == size_of(Path(there.folder))
    assert forget(logs / "a.ndjson") == [there]
    assert kept(["logs"]) == [gone]
    assert forget(Path("logs")) == [gone]
    assert kept() == []


def test_small_files_go_with_all_that_was_counted_together(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"{number}.ndjson").write_text(f'{{"word": "secret{number}"}}\n')
    time.sleep(0.03)  # until a change would show in their times
    with jitdb.open_many(tmp_path, progress=False) as found:
        assert found.count(field("word") == "secret3") == 1
    (bundle,) = kept(tmp_path / "3.ndjson")
    assert bundle.files == tuple(f"{number}.ndjson" for number in range(10))
    assert forget(tmp_path / "3.ndjson") == [bundle]
    assert not (tmp_path / ".jitdb").exists()


def test_while_it_is_asked(logs: Path) -> None:
    with jitdb.open(logs / "a.ndjson", progress=False) as db:
        assert db.count(field("n") == 1) == 1
        forget("logs")
        with open(logs / "a.ndjson", "a") as file:
            file.write('{"n": 1}\n')
        db.log.refresh()
        assert db.count(field("n") == 1) == 2
        assert db.count(field("n") == 2) == 0


def test_what_programs_read_is_as_it_was(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["indexes", "logs", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == ["logs/a.ndjson"]
    assert main(["indexes", "logs", "--forget", "--quiet"]) == 0
    assert capsys.readouterr().out == ""


def test_a_folder_of_the_users_choice(logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (logs / "a.ndjson").write_text('{"n": 1}\n')
    elsewhere = ["--indexes", str(tmp_path / "elsewhere")]
    assert main(["count", "logs/a.ndjson", "n == 1", *elsewhere]) == 0
    capsys.readouterr()
    assert main(["indexes", "logs/a.ndjson", "--forget", *elsewhere]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("3 indexes, ")
    assert not list((tmp_path / "elsewhere").glob("*.index"))


def test_a_file_that_never_was(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("logs/c.ndjson", "logs/kept.ndjson", "logs/own.log"):
        assert main(["indexes", name]) == 1
        assert "no such file" in capsys.readouterr().err
