"""Records that are deleted while they are read are no damage."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from damage_cases import SIZE, silence
from engine_helpers import index_files, make_log

from jitdb import JITDB, Log

pytestmark = pytest.mark.slow


# Nothing but damage


WRITER = """
import random, sys
from jitdb import Log
choose = random.Random(3)
with Log(sys.argv[1], flush_interval=60) as log:
    live = [record.offset for record in log.stream(raw=True)]
    choose.shuffle(live)
    print("ready", flush=True)
    sys.stdin.readline()
    while live:
        for _ in range(min(len(live), choose.randrange(1, 4))):
            log.delete(live.pop())
        log.flush()
"""


def deleting(path: Path, work: Callable[[], None]) -> int:
    """Do the work, again and again, while another process deletes all records; how often it was done."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert writer.stdin is not None
    assert writer.stdout is not None
    try:
        assert writer.stdout.readline() == "ready\n"
        writer.stdin.write("go\n")
        writer.stdin.flush()
        rounds = 0
        while writer.poll() is None:
            work()
            rounds += 1
        assert writer.returncode == 0
    finally:
        writer.kill()
        writer.communicate()
    return rounds


def test_deletions_are_no_damage(tmp_path: Path) -> None:
    """Blocks whose records another process deletes right now are never taken for damaged ones."""
    path = tmp_path / "log"
    make_log(path, 3000)
    counts: list[int] = []

    with Log(path, read_only=True) as log:

        def scan() -> None:
            log.refresh()
            with silence():
                counts.append(JITDB(log, "memory").count())

        rounds = deleting(path, scan)
        log.refresh()
        with silence():
            assert JITDB(log, "memory").count() == 0
    assert rounds > 20
    assert counts == sorted(counts, reverse=True)
    assert not index_files(log)


def test_deletions_by_oneself_are_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "log"
    offsets = make_log(path, 800)
    choose = random.Random(4)
    choose.shuffle(offsets)
    with Log(path, flush_interval=60) as log:
        failures: list[BaseException] = []

        def delete() -> None:
            try:
                while offsets:
                    log.delete(offsets.pop())
                    log.flush()
            except BaseException as failure:
                failures.append(failure)

        thread = threading.Thread(target=delete)
        thread.start()
        rounds = 0
        with silence():
            while thread.is_alive():
                JITDB(log, "memory").count()
                rounds += 1
            thread.join()
            assert not failures
            assert rounds > 3
            assert JITDB(log, "memory").count() == 0


def test_single_reads_while_records_are_deleted(tmp_path: Path) -> None:
    path = tmp_path / "log"
    offsets = np.array(make_log(path, 3000), np.int64)

    def read() -> None:
        with Log(path, read_only=True) as log, silence():
            log.get_many_raw(offsets)  # raises LogCorrupt for a false alarm

    assert deleting(path, read) > 20


def test_another_program_that_deletes_is_no_damage(tmp_path: Path) -> None:
    """It does not keep the checksums. A reader who has not seen that yet takes the block as it is."""
    path = tmp_path / "log"
    offsets = make_log(path, 500)
    with Log(path, read_only=True) as log:
        gone = next(offset for offset in offsets if offset // SIZE == 5)
        with open(path, "r+b") as file:
            file.seek(gone)
            length = int.from_bytes(file.read(2), "little")
            file.write(bytes(length))
        with silence():
            assert JITDB(log, "memory").count() == 499
            assert log.get(gone + 2 + length)
