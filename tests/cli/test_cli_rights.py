"""What is made of files gives nobody more rights than these do, nor than the umask."""

from __future__ import annotations

import gzip
import os
import stat
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from cli_helpers import make_log, records_of
from planted import GROUP, OTHER, as_root

from jitdb.cli import main

LINES = '{"n": 1, "s": "secret"}\n' * 20


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    before = os.umask(0)
    yield
    os.umask(before)


def made(name: str, mode: int, group: int | None = None) -> str:
    path = Path(name)
    if path.suffix == ".log":
        make_log(path, [{"n": number} for number in range(20)])
    else:
        path.write_bytes(gzip.compress(LINES.encode()) if path.suffix == ".gz" else LINES.encode())
    path.chmod(mode)
    if group is not None:
        os.chown(path, OTHER, group)
    return name


def mode(name: str) -> int:
    return stat.S_IMODE(os.stat(name).st_mode)


@pytest.mark.parametrize("name", ["a.ndjson", "a.ndjson.gz"])
@pytest.mark.parametrize(
    ("of_source", "umask"), [*product([0o600, 0o400, 0o640, 0o644, 0o664, 0o666], [0, 0o022, 0o077])]
)
def test_an_import_gives_no_more_rights_than_its_source(name: str, of_source: int, umask: int) -> None:
    os.umask(umask)
    assert main(["import", made(name, of_source), "a.log", "-q"]) == 0
    assert mode("a.log") == (of_source | 0o600) & ~umask
    assert main(["count", "a.log", "n == 1", "-q"]) == 0
    beside = [each for each in Path("a.log.jitdb").rglob("*") if each.is_file()]
    assert len(beside) > 3
    assert {mode(str(each)) for each in beside} == {mode("a.log")}
    assert os.umask(umask) == umask


def test_an_import_of_several_files() -> None:
    assert main(["import", made("a.ndjson", 0o644), made("b.ndjson", 0o660), "a.log"]) == 0
    assert mode("a.log") == 0o640


@pytest.mark.parametrize("follow", [False, True])
def test_an_import_of_standard_input(follow: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(made("a.ndjson", 0o600)) as file:
        monkeypatch.setattr("sys.stdin", file)
        assert main(["import", *(["--follow"] if follow else []), "-", "a.log"]) == 0
    assert mode("a.log") == 0o600
    inlet, outlet = os.pipe()
    with open(inlet) as file, open(outlet, "w") as pipe:
        pipe.write(LINES)
        pipe.close()
        monkeypatch.setattr("sys.stdin", file)
        assert main(["import", "-", "b.log"]) == 0
    assert mode("b.log") == 0o666


def test_a_log_that_is_there_is_its_owners_affair() -> None:
    made("there.log", 0o644)
    assert main(["import", "--append", made("a.ndjson", 0o600), "there.log"]) == 0
    assert mode("there.log") == 0o644


@pytest.mark.parametrize("wrong", [["--codec", "nonsense"], ["--block-size", "3"]])
def test_an_import_that_cannot_begin_leaves_no_file(wrong: list[str]) -> None:
    assert main(["import", made("a.ndjson", 0o600), "a.log", *wrong]) != 0
    assert os.listdir() == ["a.ndjson"]


def test_an_import_with_larger_blocks_keeps_the_mode() -> None:
    made("a.ndjson", 0o600)
    Path("a.ndjson").write_text(LINES + '{"s": "' + "x" * 200_000 + '"}\n')
    assert main(["import", "a.ndjson", "a.log"]) == 0
    assert len(records_of(Path("a.log"))) == 21
    assert mode("a.log") == 0o600


@as_root
@pytest.mark.parametrize(("of_source", "expected"), [(0o640, 0o600), (0o644, 0o644), (0o604, 0o600), (0o664, 0o644)])
def test_another_group_gets_what_all_get(of_source: int, expected: int) -> None:
    assert main(["import", made("a.ndjson", of_source, GROUP), "a.log"]) == 0
    assert mode("a.log") == expected
    made("b.log", of_source, GROUP)
    assert main(["export", "b.log", "-o", "out"]) == 0
    assert mode("out") == expected
    assert os.stat("out").st_uid == os.geteuid()


@pytest.mark.parametrize(("umask", "expected"), [(0, 0o640), (0o027, 0o640), (0o077, 0o600)])
@pytest.mark.parametrize("way", ["export {} -o out", "query {} n>3 -o out", "export {} n>3 --format csv -o out"])
def test_an_export_can_be_read_by_who_can_read_all_the_logs(way: str, umask: int, expected: int) -> None:
    os.umask(umask)
    logs = f"{made('a.log', 0o644)} {made('b.log', 0o660)}"
    assert main([*way.format("[ab].log").split(), "-q"]) == 0, logs
    assert mode("out") == expected


def test_a_packed_file_is_as_open_as_it_was() -> None:
    assert main(["pack", made("a.ndjson", 0o640), "-q"]) == 0
    assert mode("a.ndjson.zst") == 0o640
