"""Folders of jobs whose driver died before it could remove them: the next job that writes to the log does.

A job's folder says who keeps the job alive: the driver's Java, and the process that commits, one line of JSON each. The
job is over for certain when this machine, in this boot, has none of them any more. What another machine wrote, or this
one before it was started anew, cannot be judged, and stays.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
from contextlib import suppress
from typing import Final

_KEPT_BY: Final = "kept-by"
_BOOT: Final = "/proc/sys/kernel/random/boot_id"
_START: Final = 19  # of the words behind a process's name in its stat: when it began, in ticks since the boot
_PARENT: Final = 1


def kept_by_driver(folder: str) -> None:
    """The driver's Java keeps the job alive: planning and committing are short-lived children of it."""
    pid: int | None = os.getpid()
    while pid and _name(pid) != "java":
        pid = _number(pid, _PARENT)
    if pid:
        kept_by(folder, pid)


def kept_by(folder: str, pid: int) -> None:
    """This process keeps the job alive too. Nothing is said where that cannot be told from another process later."""
    line = _line(pid)
    if line is not None:
        with suppress(OSError), open(os.path.join(folder, _KEPT_BY), "a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def remove_leftovers(path: str) -> None:
    """Remove the folders of jobs that wrote to this log, and are over for certain."""
    for folder in glob.glob(f"{glob.escape(path)}.spark-*"):
        try:
            with open(os.path.join(folder, _KEPT_BY), encoding="utf-8") as file:
                lines = file.read().splitlines()
        except (OSError, UnicodeDecodeError):
            continue
        if lines and all(map(_is_gone, lines)):
            shutil.rmtree(folder, ignore_errors=True)  # the next job tries again


def _is_gone(line: str) -> bool:
    """Whether the process of this line is gone for certain."""
    try:
        said = json.loads(line)
        pid, place = said["pid"], _place()
        if place is None or said["place"] != place:
            return False
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # it is there, or another one with its number
    except (ValueError, KeyError, TypeError, OverflowError):
        return False
    start = _number(pid, _START)
    return start is not None and start != said["start"]


def _line(pid: int) -> str | None:
    start, place = _number(pid, _START), _place()
    return None if start is None or place is None else json.dumps({"place": place, "pid": pid, "start": start})


def _place() -> str | None:
    """Where numbers of processes mean the same: one boot of one machine, and one name space of processes in it."""
    try:
        with open(_BOOT, encoding="ascii") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def _number(pid: int, place: int) -> int | None:
    words = _stat(pid)[1].split()
    return int(words[place]) if len(words) > place else None


def _name(pid: int) -> str:
    return _stat(pid)[0]


def _stat(pid: int) -> tuple[str, str]:
    """A process's name, and what Linux tells of it behind that."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            name, _, rest = file.read().partition("(")[2].rpartition(")")
            return name, rest
    except OSError:
        return "", ""
