"""Deleted records go for good; whatever keeps that from happening is told, and leaves the log as it was."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_helpers import EVENTS, environment, make_log, records_of
from waiting import until

import jitdb.engine.progress
from jitdb.cli import main
from jitdb.log import Log
from jitdb.log.io.filenames import NEXT_LOG


def delete(path: Path, *numbers: int) -> None:
    """Delete the records with these ordinals."""
    with Log(path) as log:
        offsets = [record.offset for record in log.stream()]
        for number in numbers:
            log.delete(offsets[number])


def answers(run, question: str) -> list[str]:
    return run("query", "events.log", question, "--arrival", "-q").stdout.splitlines()


def test_deleted_records_go_and_indexes_stay(run, events: Path) -> None:
    questions = ['level == "error"', "status >= 404", "tags is absent"]
    for question in questions:
        run("count", "events.log", question)
    delete(events, 0, 3)
    before = {question: answers(run, question) for question in questions}
    done = run("compact", "events.log")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("removed 2 deleted records, 3 stay: ")
    assert "; 5 indexes were taken over\n" in done.stdout
    assert records_of(events) == [EVENTS[1], EVENTS[2], EVENTS[4]]
    states = json.loads(run("info", "events.log", "--json").stdout)
    assert {index["state"] for index in states["indexes"]} == {"fresh"}
    assert states["deleted_records"] == 0
    assert {question: answers(run, question) for question in questions} == before
    assert run("compact", "events.log").stdout == "nothing to remove: none of 3 records is deleted\n"


def test_indexes_may_be_left_as_they_are(run, events: Path) -> None:
    run("count", "events.log", 'level == "error"')
    delete(events, 0)
    assert "indexes" not in run("compact", "events.log", "--indexes", "none").stdout
    shown = run("info", "events.log").stdout
    assert "stale: the log was compacted since" in " ".join(shown.split())
    assert run("count", "events.log", 'level == "error"').stdout == "2\n"
    assert "compacted since" not in " ".join(run("info", "events.log").stdout.split())


def test_indexes_elsewhere(run, events: Path) -> None:
    run("count", "events.log", 'level == "error"', "--indexes", "elsewhere")
    delete(events, 0)
    assert "; 3 indexes were taken over\n" in run("compact", "events.log", "--indexes", "elsewhere").stdout


def test_a_dry_run_changes_nothing(run, events: Path) -> None:
    assert run("compact", "events.log", "--dry-run").stdout == "nothing to remove: none of 5 records is deleted\n"
    with Log(events) as log:
        offset, following = [record.offset for record in log.stream()][1:3]
        end = log.stats().total_bytes
        log.delete(offset)
    files = {path: path.read_bytes() for path in events.parent.rglob("*") if path.is_file()}
    done = run("compact", "events.log", "--dry-run")
    gained = following - offset
    assert done.stdout == f"1 record is deleted, 4 would stay: about {gained} of {end} bytes can be given back\n"
    assert {path: path.read_bytes() for path in events.parent.rglob("*") if path.is_file()} == files
    before = events.stat().st_size
    assert run("compact", "events.log", "-q").stdout == ""
    assert events.stat().st_size <= before
    with Log(events, read_only=True) as log:
        assert log.stats().total_bytes == end - gained


def test_a_log_that_is_written_to(run, events: Path) -> None:
    code = "import sys; from jitdb import Log; log = Log('events.log'); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=events.parent, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as writer:  # fmt: skip
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"open\n"
        done = run("compact", "events.log")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.endswith(f"process {writer.pid} has it open for writing\n  wait for it to end, or stop it\n")
        assert run("compact", "events.log", "--dry-run").returncode == 0
        writer.communicate()
    assert run("compact", "events.log").returncode == 0


def test_a_damaged_log_is_to_be_repaired_first(run, tmp_path: Path) -> None:
    path = make_log(tmp_path / "x y.log", [{"n": number, "text": "x" * 100} for number in range(2000)])
    delete(path, 3)
    data = bytearray(path.read_bytes())
    data[1000:1008] = b"damaged!"
    stamp = path.stat().st_mtime_ns
    path.write_bytes(data)
    os.utime(path, ns=(stamp, stamp))  # nobody wrote to it: the disk lost them
    done = run("compact", "x y.log")
    assert (done.returncode, done.stdout) == (1, "")
    assert "block 0 is damaged" in done.stderr
    assert done.stderr.endswith(f"\n  repair it first: jitdb repair '{path}'\n")
    assert path.read_bytes() == data
    assert not (tmp_path / "x y.log.jitdb" / NEXT_LOG).exists()


def test_no_log_no_compaction(run, events: Path) -> None:
    assert "did you mean events.log?" in run("compact", "event.log").stderr
    assert not (events.parent / "event.log.jitdb").exists()
    done = run("compact", "events.ndjson")
    assert (done.returncode, done.stdout) == (1, "")
    assert "jitdb import events.ndjson events-2.log" in done.stderr
    assert run("compact", "events.log", "level").returncode == 2


def large_log(path: Path, count: int) -> Path:
    """A log of `count` records of which every other one but the first ten is deleted, as another program left it."""
    with Log(path) as log:
        log.append_many([{"n": number, "text": "some text"} for number in range(count)])
        log.flush()
        batches = [(batch.offsets.copy(), batch.lengths.copy()) for batch in log.stream_batches()]
    offsets, lengths = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    data = np.fromfile(path, np.uint8)
    chosen = slice(11, None, 2)
    for column in range(int(lengths.max())):
        here = offsets[chosen][lengths[chosen] > column] + 2 + column
        data[here] = 0
    data.tofile(path)
    shutil.rmtree(f"{path}.jitdb")
    return path


def interrupted(path: Path) -> tuple[int, str, str]:
    """Compact the log, with Ctrl-C in the middle: exit code and what it said."""
    with subprocess.Popen(
        [sys.executable, "-m", "jitdb", "compact", path.name],
        cwd=path.parent, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        copy = Path(f"{path}.jitdb") / NEXT_LOG
        until(lambda: process.poll() is not None or (copy.exists() and copy.stat().st_size))
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=120)
    return process.returncode, out, said


def test_ctrl_c_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    path = large_log(tmp_path / "x.log", 1_000_000)
    before = path.read_bytes()
    for _ in range(5):
        code, out, said = interrupted(path)
        if code == 130 and "is compacted" not in said:
            break
        path.write_bytes(before)  # it came too late
        shutil.rmtree(f"{path}.jitdb")
    assert (code, out, said) == (130, "", "jitdb: interrupted\n  the log is as it was\n")
    assert path.read_bytes() == before
    assert not (tmp_path / "x.log.jitdb" / NEXT_LOG).exists()
    assert main(["compact", str(path), "-q"]) == 0
    with Log(path, read_only=True) as log:
        assert (log.stats().records, log.stats().deleted_records) == (500_005, 0)


def test_ctrl_c_after_the_switch(events: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    delete(events, 0)
    monkeypatch.setattr("jitdb.engine.manager.IndexManager.remap", interrupted)
    assert main(["compact", "events.log"]) == 130
    assert "the log is compacted; indexes" in capsys.readouterr().err
    assert records_of(events) == EVENTS[1:]


def test_a_bar_where_somebody_looks(events: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    monkeypatch.setattr(jitdb.engine.progress, "PATIENCE", 0.0)
    monkeypatch.setattr(jitdb.engine.progress, "interactive", lambda: True)
    for number, option in enumerate(["--debug", "--no-progress"]):
        delete(events, number)
        assert main(["compact", "events.log", option]) == 0
        assert ("compacting events.log" in capsys.readouterr().err) == (option == "--debug")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_log_that_may_not_be_written(run, events: Path) -> None:
    events.chmod(0o444)
    done = run("compact", "events.log")
    assert (done.returncode, done.stdout) == (1, "")
    assert "read_only" not in done.stderr
