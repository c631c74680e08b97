"""The logs of a store are its own: what would change them behind its back is refused, unless it is forced."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cli_helpers import EVENTS, make_log, records_of

from jitdb import Log
from jitdb.stores.cable import Cable
from jitdb.stores.cable.post import JOIN, sign_post
from jitdb.stores.hyperdb import HyperDB
from jitdb.stores.spool import Spool


def a_database(folder: Path) -> None:
    with HyperDB(folder, create=True) as db:
        db.put("life/cat", b"meow")


def a_chat(folder: Path) -> None:
    with Cable(folder, create=True) as cable:
        cable.ingest(sign_post(bytes(32), JOIN, 1, channel="default"))


def a_spool(folder: Path) -> None:
    with Spool(folder, create=True) as spool:
        spool.store(b"friends", b"ada-----", 1, 0, b"ciphertext")


STORES: dict[Callable[[Path], None], str] = {
    a_database: "`jitdb hyperdb delete`",
    a_chat: "Cable.prune()",
    a_spool: "Spool.delete_before()",
}
COMMANDS = (
    ["delete", "LOG", "not seqs()", "--yes"],
    ["compact", "LOG"],
    ["import", "--append", "x.ndjson", "LOG"],
)


def logs_of(folder: Path) -> list[Path]:
    """All files of the store that hold records."""
    return [path for path in folder.rglob("*") if path.suffix in (".log", ".heads") and path.is_file()]


@pytest.mark.parametrize("make", STORES)
def test_each_log_of_a_store_is_left_alone(run, folder: Path, make: Callable[[Path], None]) -> None:
    make(folder / "store")
    (folder / "x.ndjson").write_text('{"a": 1}\n')
    logs = logs_of(folder / "store")
    assert logs
    before = [path.read_bytes() for path in logs]
    for log in logs:
        for command in COMMANDS:
            done = run(*(str(log) if word == "LOG" else word for word in command))
            assert done.returncode == 1, done
            assert f"{log}: this log is part of a" in done.stderr
            assert STORES[make] in done.stderr
            assert "--force" in done.stderr
    assert [path.read_bytes() for path in logs] == before


@pytest.mark.parametrize("make", STORES)
def test_who_forces_it_gets_it(run, folder: Path, make: Callable[[Path], None]) -> None:
    make(folder / "store")
    log = max(logs_of(folder / "store"))
    held = len(records_of(log))
    assert run("delete", str(log), "not seqs()", "--dry-run").returncode == 0
    assert run("delete", str(log), "not seqs()", "--yes", "--compact", "--force").returncode == 0
    assert held > len(records_of(log)) == 0


def test_a_log_that_is_taken_elsewhere_is_nobodys(run, folder: Path) -> None:
    a_spool(folder / "store")
    [log] = logs_of(folder / "store")
    with Log(log, read_only=True) as found:
        records = [record.value for record in found.stream()]
    make_log(folder / "copy.log", records)
    assert run("delete", "copy.log", "not seqs()", "--yes").returncode == 0


@pytest.mark.parametrize("said", ["", "spool", "spool\n\n", "another\n", "\xff"])
def test_what_no_store_wrote_keeps_nothing_from_anybody(run, folder: Path, said: str) -> None:
    make_log(folder / "a.log", EVENTS)
    (folder / ".store").write_text(said)
    assert run("delete", "a.log", 'level == "error"', "--yes").returncode == 0
    assert len(records_of(folder / "a.log")) == 3


def test_a_store_of_before_is_known_from_its_next_opening_on(run, folder: Path) -> None:
    a_spool(folder / "store")
    (folder / "store" / ".store").unlink()
    Spool(folder / "store").close()
    [log] = logs_of(folder / "store")
    assert run("compact", str(log)).returncode == 1
