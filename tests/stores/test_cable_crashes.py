"""A cable store whose process dies, or whose power fails, at any moment of taking, deleting, compacting and opening."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from random import Random

import pytest
from cable_model import Model
from faults.simulated import Process, Stopped, running
from faults.simulated_disk import Disk
from test_cable_store import KEYS, delete, everything, text
from thoroughness import tries

from jitdb.errors import LogError
from jitdb.stores.cable import Cable
from jitdb.stores.cable.hashed import HashedLog
from jitdb.stores.cable.post import DELETE, decode_post, hash_of

CHAT = Path("/chat")
NOW = 10**6

pytestmark = pytest.mark.filterwarnings("ignore::jitdb.errors.JitdbWarning")  # of what a power failure left

OLD = [text(number % 2, 1 + number, "cd"[number % 2]) for number in range(8)]
NEW = [text(number % 2, 100 + number) for number in range(4)]
DELETES = [delete(0, 200, OLD[0], NEW[2]), delete(1, 201, *OLD[1:6]), delete(2, 202, OLD[6], NEW[3])]
LAST = delete(1, 203, NEW[1])  # before what it names
POSTS = [*OLD, LAST, *NEW[:2], *DELETES, *NEW[2:]]


def take(cable: Cable) -> None:
    for post in POSTS[len(OLD) :]:
        cable.ingest(post)
    cable.flush()


def trust(cable: Cable) -> None:
    take(cable)
    cable.trust(KEYS[2])


def settle(cable: Cable) -> None:
    take(cable)
    cable.close()


def compact(cable: Cable) -> None:
    take(cable)
    cable.compact()
    cable.topic("c")


def views(cable: Cable) -> None:
    """All indexes are built meanwhile."""
    everything(cable)
    take(cable)
    everything(cable)


def open_store() -> Cable:
    return Cable(CHAT, create=True, clock=lambda: NOW)


def let_go(process: Process) -> None:
    """End the process: nothing is written, no thread of it stays."""
    process.stop()
    for log in OPENED:
        with suppress(Stopped, LogError):
            log.log.close()
    OPENED.clear()


OPENED: list[HashedLog] = []


@pytest.fixture(autouse=True)
def _opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log whose opening is cut short by the end of the process is let go of, too."""
    begin = HashedLog.__init__

    def opened(self: HashedLog, *said: object, **named: object) -> None:
        begin(self, *said, **named)  # type: ignore[arg-type]
        OPENED.append(self)

    monkeypatch.setattr(HashedLog, "__init__", opened)


def check(cable: Cable, moderators: list[bytes]) -> None:
    """What is here fits together; and once all posts have come again, all is as if nothing had happened."""
    here, gone = cable.hashes(), set(cable.deleted())
    assert len(set(here)) == len(here)
    assert not gone & set(here)
    for name in here:
        post = cable.find(name)
        assert post is not None
        if post.post_type == DELETE:
            for target in post.hashes:
                found = cable.find(target)
                allowed = found is None or post.public_key not in {found.public_key, *cable.moderators()}
                assert allowed or found.post_type == DELETE  # type: ignore[union-attr]
    for key in moderators:
        cable.trust(key)
    cable.ingest_many(POSTS)
    assert everything(cable) == Model(POSTS, moderators).everything(KEYS)


@pytest.mark.parametrize("power", [True, False], ids=["power", "kill"])
@pytest.mark.parametrize("work", [take, trust, settle, compact, views], ids=lambda work: work.__name__)
def test_it_ends_at_any_call(work: Callable[[Cable], None], power: bool) -> None:
    filled, moderators = Disk(0), [KEYS[2]] if work is trust else []
    with running(Process(filled)) as process:
        open_store().ingest_many(OLD)
        OPENED[0].flush()
        OPENED[1].flush()
        let_go(process)
    stop_at, step = Random(work.__name__).randrange(1, 9), tries(18, 1)
    done, stopped = False, 0
    while not done:
        disk = deepcopy(filled)
        disk.rng.seed(stop_at)
        with running(Process(disk, stop_at=stop_at)) as process:
            with suppress(Stopped):
                work(open_store())
                done = True
            let_go(process)
        stopped += not done
        with running(Process(disk.crash(Random(stop_at)) if power else disk)) as process:
            cable = open_store()
            taken = {*cable.hashes(), *cable.deleted()}
            assert taken >= {hash_of(post) for post in (POSTS if done else OLD)}
            check(cable, moderators)
            cable.close()
            let_go(process)
        stop_at += step
    assert stopped > 2


WRITER = """
import sys
from jitdb.stores.cable import Cable
from jitdb.stores.cable.post import DELETE, TEXT, hash_of, sign_post
run = int(sys.argv[2])
with Cable(sys.argv[1], create=True) as cable:
    for number in range(10**9):
        texts = [sign_post(bytes(32), TEXT, 1 + n + 40 * number + 10**6 * run, channel="c", text="") for n in range(40)]
        cable.ingest_many(texts)
        gone = tuple(hash_of(text) for text in texts[1:])
        cable.ingest(sign_post(bytes(32), DELETE, 40 * number + 10**6 * run, hashes=gone))
        if number % 5 == 4:
            cable.topic("c")
        if number % 7 == 6:
            cable.compact()
        cable.flush()
        print(hash_of(texts[0]).hex(), gone[0].hex(), flush=True)
"""


def test_a_process_that_is_killed(tmp_path: Path) -> None:
    """What was flushed is there, what was deleted is gone; and indexes built anew say the same."""
    rng = Random(3)
    kept, gone = set[bytes](), set[bytes]()
    for run in range(tries(3, 60)):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(run)], stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            line = child.stdout.readline()
            time.sleep(rng.random() * 0.2)
            os.kill(child.pid, signal.SIGKILL)
            for each in [line, *child.stdout]:
                if each.endswith("\n"):
                    names = [bytes.fromhex(name) for name in each.split()]
                    kept.add(names[0])
                    gone.add(names[1])
        with Cable(tmp_path) as cable:
            here = cable.hashes()
            posts = [decode_post(cable.get(name) or b"") for name in here]
            assert kept <= set(here)
            assert gone <= set(cable.deleted())
            deleted = {name for post in posts if post.post_type == DELETE for name in post.hashes}
            assert not deleted & set(here)
            assert deleted <= set(cable.deleted())
            before = everything(cable)
        if not run % 3:
            for indexes in tmp_path.glob("*.jitdb/indexes"):
                shutil.rmtree(indexes)
            with Cable(tmp_path) as cable:
                assert everything(cable) == before
