"""Locks of index files and forks: a child has none of them, neither to keep nor to release."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from jitdb.indexes.files.folder import take_locks
from jitdb.log.io import osfile


def test_a_child_does_not_keep_what_its_dead_parent_held(tmp_path: Path) -> None:
    told, tell = os.pipe()
    parent = os.fork()
    if not parent:
        held = take_locks(osfile.fs, tmp_path, ["a.index"])
        if not os.fork():
            os.write(tell, f"{os.getpid()} {held is not None}\n".encode())
        signal.pause()
    child, taken = os.read(told, 100).split()
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    try:
        assert taken == b"True"
        again = take_locks(osfile.fs, tmp_path, ["a.index"])
        assert again is not None
        again.release()
    finally:
        os.kill(int(child), signal.SIGKILL)
        os.close(told)
        os.close(tell)


def test_a_child_does_not_release_what_its_parent_holds(tmp_path: Path) -> None:
    held = take_locks(osfile.fs, tmp_path, ["a.index"])
    assert held is not None
    child = os.fork()
    if not child:
        held.release()
        os._exit(0)
    os.waitpid(child, 0)
    assert take_locks(osfile.fs, tmp_path, ["a.index"]) is None
    held.release()
