"""A spool whose process dies, or whose power fails, at any moment of storing, overwriting, deleting and compacting."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from faults.simulated import Process, Stopped, let_go, running
from faults.simulated_disk import Disk
from thoroughness import tries

from jitdb import Log
from jitdb.stores.spool import Spool
from jitdb.stores.spool.group import Group
from jitdb.stores.spool.record import MessageId, encoded

GROUP = b"g"
ADA, BOB = b"ada-----", b"bob-----"
PATH = Path("/x.log")

pytestmark = pytest.mark.filterwarnings("ignore::jitdb.errors.JitdbWarning")  # of what a power failure left


def held(spool: Spool) -> dict[tuple[bytes, int], tuple[int, bytes | None]]:
    messages = spool.messages_after(GROUP, {}).messages
    assert len({(each.sender, each.seq) for each in messages}) == len(messages)
    return {(each.sender, each.seq): (each.level, each.message) for each in messages}


WRITER = """
import sys
from jitdb.stores.spool import Spool
with Spool(sys.argv[1], create=True) as spool:
    run = int(sys.argv[2])
    for number in range(10**9):
        for seq in range(40):
            spool.store(b"g", b"ada-----", seq, number % 3, b"%d %d" % (run, number))
            spool.store(b"g", b"bob-----", run * 10**6 + number * 40 + seq, 1, b"new")
        if number % 3 == 2:
            spool.delete_before(b"g", {b"bob-----": run * 10**6 + number * 40}, 2)
        spool.flush()
        print(run, number, flush=True)
"""


def test_a_process_that_is_killed(tmp_path: Path) -> None:
    """Each key that was overwritten again and again has one value: the last that was flushed, or a later one."""
    rng = Random(7)
    last = (-1, -1)
    for run in range(tries(4, 60)):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(run)], stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            line = child.stdout.readline()
            time.sleep(rng.random() * 0.15)
            os.kill(child.pid, signal.SIGKILL)
            for each in [line, *child.stdout]:
                if each.endswith("\n"):
                    last = (run, int(each.split()[1]))
        for read_only in (True, False):
            with Spool(tmp_path, read_only=read_only) as spool:
                found = held(spool)
                for seq in range(40):
                    level, message = found[ADA, seq]
                    assert message is not None
                    value = tuple(map(int, message.split()))
                    assert last <= value <= (run, last[1] + 1)
                    assert level == value[1] % 3
                news = [seq for sender, seq in found if sender == BOB and seq >= run * 10**6]
                reached = [number for number in range(last[1] + 1) if number % 3 == 2]
                if reached:  # the last one that was acknowledged is at the least what is gone
                    assert min(news) > run * 10**6 + reached[-1] * 40
                assert max(news) >= run * 10**6 + last[1] * 40 + 39
        with Spool(tmp_path) as spool:
            spool.flush()
            assert len(list(spool.group(GROUP).log.stream())) == len(found)  # what was overwritten is gone


def fill(log_path: Path) -> None:
    with Log(log_path, codec="msgpack", block_size=4096) as log:
        log.append_many(encoded(ADA, seq, seq % 3, b"old" * (seq % 7)) for seq in range(200))


@pytest.mark.parametrize("work", ["overwrite", "delete", "both"])
def test_power_fails_at_any_call(work: str) -> None:
    """One of the two is seen after overwriting; of what is deleted all or some are gone; the rest stays."""
    old = {seq: (seq % 3, b"old" * (seq % 7)) for seq in range(200)}
    stopped = 0
    for stop_at in range(1, 60, tries(4, 1)):
        disk = Disk(stop_at)
        with running(Process(disk)):
            fill(PATH)
        done, group = False, None
        with running(Process(disk, stop_at=stop_at)) as process:
            try:
                group = Group(PATH, block_size=4096, read_only=False)
                if work != "delete":
                    for seq in range(150, 200):
                        group.put(MessageId(ADA, seq), 2, b"new")
                if work != "overwrite":
                    reached = 160 if work == "delete" else 199
                    assert group.delete_before({ADA: reached}, 3) == reached + 1
                group.flush()
                done = True
            except Stopped:
                pass
            if group is not None:
                let_go(group.log, process)
        stopped += not done
        with running(Process(disk.crash(Random(stop_at)))):
            group = Group(PATH, block_size=4096, read_only=False)
            found = {each.seq: (each.level, each.message) for each in group.read({}, None, 1000).messages}
            check(work, old, found, done)
            group.close()
    assert stopped


def check(work: str, old: dict[int, tuple[int, bytes]], found: dict[int, tuple[int, bytes | None]], done: bool) -> None:
    new = (2, b"new")
    if work == "overwrite":
        assert found.keys() == old.keys()
    for seq, value in found.items():
        assert value in ((old[seq], new) if work != "delete" and seq >= 150 else (old[seq],))
        assert not done or work != "overwrite" or seq < 150 or value == new
    if work == "delete":
        assert set(range(161, 200)) <= found.keys()
        assert not done or found.keys() == set(range(161, 200))
    if work == "both":
        assert not done or not found
