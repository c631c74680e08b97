"""`-o FILE`: the file is replaced when all is written, and not before."""

from __future__ import annotations

import gzip
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from cli_helpers import make_log

from jitdb.cli import main
from jitdb.cli.output.output import output

RECORDS = [{"n": number, "s": "x" * 100} for number in range(2000)]
FULL = OSError(28, "No space left on device")


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_log(tmp_path / "x.log", RECORDS)


def names() -> set[str]:
    return {name for name in os.listdir() if not name.startswith("x.log")}


@pytest.mark.parametrize(
    ("way", "failure"),
    [
        ("export x.log", KeyboardInterrupt), ("export x.log", FULL), ("export x.log n>=0", KeyboardInterrupt),
        ("export x.log n>=0 --format csv", FULL), ("query x.log --arrival --format json", KeyboardInterrupt),
    ],
)  # fmt: skip
def test_what_fails_leaves_the_file_as_it_was(
    way: str, failure: BaseException, monkeypatch: pytest.MonkeyPatch, capfd
) -> None:
    command = [*way.split(), "-q", "-o"]
    Path("old").write_text("as it was")
    assert main([*command, "new"]) == 0
    written = Path("new").read_bytes()

    import jitdb.cli.output.output as module

    class Failing(module.Output):
        def write(self, lines: Iterable[bytes]) -> None:
            super().write(lines)
            raise failure

    with monkeypatch.context() as patched:
        patched.setattr(module, "Output", Failing)
        for name in ("old", "made"):
            assert main([*command, name]) != 0
            assert ("old stays as it was" if name == "old" else "made was not written") in capfd.readouterr().err
    assert Path("old").read_text() == "as it was"
    assert names() == {"old", "new"}
    assert main([*command, "old"]) == 0
    assert Path("old").read_bytes() == written
    assert names() == {"old", "new"}


def test_a_question_that_is_wrong_leaves_the_file_as_it_was() -> None:
    Path("old").write_text("as it was")
    assert main(["export", "x.log", "nn != 3", "--timestamp", "tmie", "--since", "2026-01-01", "-q", "-o", "old"]) == 1
    assert main(["query", "x.log", "n =", "-o", "old"]) == 2
    assert Path("old").read_text() == "as it was"


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o660])
def test_the_file_keeps_its_mode_and_links_stay(mode: int) -> None:
    Path("folder").mkdir()
    real = Path("folder/real")
    real.write_text("as it was")
    real.chmod(mode)
    Path("link").symlink_to(real)
    assert main(["export", "x.log", "-o", "link"]) == 0
    assert Path("link").is_symlink()
    assert real.stat().st_mode & 0o777 == mode
    assert len(real.read_text().splitlines()) == len(RECORDS)
    assert os.listdir("folder") == ["real"]


def test_a_new_file_is_for_those_who_may_read_the_log() -> None:
    Path("x.log").chmod(0o640)
    assert main(["export", "x.log", "-o", "new"]) == 0
    assert Path("new").stat().st_mode & 0o777 == 0o640


def test_a_compressed_file_knows_its_name() -> None:
    Path("old.ndjson.gz").write_text("as it was")
    assert main(["export", "x.log", "-o", "old.ndjson.gz"]) == 0
    assert len(gzip.decompress(Path("old.ndjson.gz").read_bytes()).splitlines()) == len(RECORDS)
    assert b"old.ndjson\0" in Path("old.ndjson.gz").read_bytes()[:40]


@pytest.mark.parametrize("now", [-1e9, 1e10])
def test_gzip_whatever_the_clock_says(log: Path, monkeypatch: pytest.MonkeyPatch, now: float) -> None:
    """Before 1970 and behind 2106 there is no time in its header."""
    monkeypatch.setattr("time.time", lambda: now)
    assert main(["export", "x.log", "-o", "x.ndjson.gz"]) == 0
    assert len(gzip.decompress(Path("x.ndjson.gz").read_bytes()).splitlines()) == len(RECORDS)


def test_the_old_file_is_there_until_the_end() -> None:
    Path("old").write_text("as it was")

    def lines() -> Iterator[bytes]:
        for _ in range(10_000):
            yield b"x" * 99 + b"\n"
        assert Path("old").read_text() == "as it was"

    with output("old", ["x.log"]) as out:
        out.write(lines())
        assert Path("old").read_text() == "as it was"
    assert Path("old").stat().st_size == 1_000_000


def test_a_pipe_is_written_to() -> None:
    os.mkfifo("pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(Path("pipe").read_bytes()))
    reader.start()
    assert main(["export", "x.log", "-o", "pipe"]) == 0
    reader.join(60)
    assert len(read[0].splitlines()) == len(RECORDS)
    assert names() == {"pipe"}
    assert main(["export", "x.log", "-o", "/dev/null"]) == 0
    assert not Path("/dev/null").is_file()


def test_a_file_in_a_folder_that_takes_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    from jitdb.log.io.osfile import FileSystem

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    Path("old").write_text("as it was")
    monkeypatch.setattr(FileSystem, "share", refused)
    assert main(["export", "x.log", "-o", "old"]) == 0
    assert len(Path("old").read_text().splitlines()) == len(RECORDS)
    assert names() == {"old"}


def test_a_place_where_nothing_may_be_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from jitdb.log.io.osfile import FileSystem

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "new.csv")

    monkeypatch.setattr(FileSystem, "make_file", refused)
    monkeypatch.setattr("builtins.open", refused)
    assert main(["export", "x.log", "-o", "new.csv"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "jitdb: new.csv: Permission denied",
        "  you may not write there; name a file elsewhere, such as --output ~/new.csv",
    ]
