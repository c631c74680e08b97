"""Ctrl-C at every place where Python looks for signals: in opening, appending, deleting, compacting and closing a log.

A case is one of these doings and a sample of the places in it; all samples together are all places. KeyboardInterrupt
is raised by tracing, where CPython raises it: when a function begins, behind a call, before a loop's jump back. At once
the program opens files of its own, which get the numbers of whatever is closed by then. Whatever was interrupted: none
of these files is closed or written to, close() ends, no file and no lock stays behind, nothing acknowledged is lost.

In a `__del__` Python swallows what a signal raises, so no interrupt is tried there.
"""

from __future__ import annotations

import dis
import gc
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any, Final

from faults.campaign import Campaign

from jitdb.log import Log

SAMPLES: Final = 512  # a case takes every 512th place
PATIENCE: Final = 20.0  # seconds after which close() hangs
_NEVER: Final = 3600.0  # seconds between flushes of the timer's
_CALLS: Final = (dis.opmap["CALL"], dis.opmap["CALL_FUNCTION_EX"])
_JUMPS: Final = (dis.opmap["JUMP_BACKWARD"],)
_SWALLOW: Final = ("__del__", "remove", "_remove")  # destructors, and what weak references call
RECORDS: Final = [b"record %d " % number + b"x" * 30 for number in range(12)]
MORE: Final = [b"later %d " % number + b"y" * 30 for number in range(4)]
GONE: Final = (1, 4)  # of RECORDS: deleted long ago


class Interrupter:
    """Counts the places, and raises KeyboardInterrupt at one of them; -1: at none."""

    def __init__(self, at: int) -> None:
        self.places = 0
        self._at = at
        self._seen: dict[CodeType, tuple[bytes, list[int]]] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Within this. Only this thread is interrupted, as only the main one is by signals."""
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(before)

    def _called(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        if _swallows(frame) or frame.f_code.co_filename == __file__:
            return None
        self._place()
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        operations, handlers = self._known(frame.f_code)
        last = -1

        def step(frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
            nonlocal last
            if event == "opcode":
                now = frame.f_lasti // 2
                behind = last >= 0 and operations[2 * last] in _CALLS and handlers[last] == handlers[now]
                last = now
                if behind or operations[2 * now] in _JUMPS:
                    self._place()
            return step

        return step

    def _place(self) -> None:
        self.places += 1
        if self.places - 1 == self._at:
            raise KeyboardInterrupt

    def _known(self, code: CodeType) -> tuple[bytes, list[int]]:
        """The code's operations, and what would catch an error of each."""
        if code not in self._seen:
            handlers = [-1] * (len(code.co_code) // 2)
            for entry in dis._parse_exception_table(code):  # type: ignore[attr-defined]
                for at in range(entry.start // 2, min(entry.end // 2, len(handlers))):
                    handlers[at] = entry.target
            self._seen[code] = code.co_code, handlers
        return self._seen[code]


def _swallows(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_name not in _SWALLOW:
        frame = frame.f_back
    return frame is not None


class Case:
    """A small log, and one thing that is done to it and interrupted."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "a.log"
        self.log: Log | None = None
        self.kept = [record for number, record in enumerate(RECORDS) if number not in GONE]  # acknowledged
        self.tried: list[bytes] = []  # may be there
        self.leaving: list[bytes] = []  # may be gone
        with self.opened() as log:
            self.offsets = dict(zip(RECORDS, log.append_many(RECORDS), strict=True))
            log.flush()
            for number in GONE:
                log.delete(self.offsets[RECORDS[number]])

    def opened(self) -> Log:
        return Log(self.path, codec="raw", block_size=128, flush_interval=_NEVER)

    # What is done

    def open(self) -> None:
        self.log = self.opened()

    def append(self) -> None:
        assert self.log is not None
        self.tried = MORE
        self.log.append(MORE[0])
        self.log.append_many(MORE[1:3])
        self.log.flush()
        self.kept += MORE[:3]
        self.log.append_transaction(MORE[3:])
        self.log.flush()
        self.kept += MORE[3:]

    def delete(self) -> None:
        assert self.log is not None
        self.leaving = [RECORDS[0], RECORDS[-1]]
        for record in self.leaving:
            self.log.delete(self.offsets[record])
        self.log.flush()
        self.kept = [record for record in self.kept if record not in self.leaving]
        self.leaving = []

    def compact(self) -> None:
        assert self.log is not None
        self.log.compact()

    def close(self) -> None:
        assert self.log is not None
        self.tried = MORE
        self.log.append_many(MORE)
        self.log.close()
        self.kept += MORE

    # What holds afterwards

    def check(self) -> None:
        with self.opened() as log:
            found = [record.value for record in log.stream()]
            allowed = [*(record for record in RECORDS if record in self.kept), *(self.tried or ())]
            assert found == [record for record in allowed if record in found], found
            missing = [record for record in self.kept if record not in found and record not in self.leaving]
            assert not missing, f"acknowledged and lost: {missing}"
            assert log.get_raw(log.append(b"and on")) == b"and on"
        with Log(self.path, read_only=True) as log:
            assert [record.value for record in log.stream()] == [*found, b"and on"]


DOINGS: Final = (Case.open, Case.append, Case.delete, Case.compact, Case.close)


def interrupted(doing: Callable[[Case], None], at: int) -> int:
    """Do it with an interrupt at this place; how many places it has, as far as it came."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:
        folder = Path(name)
        case = Case(folder)
        gc.collect()
        before = _open_files()
        if doing is not Case.open:
            case.open()
        interrupter = Interrupter(at)
        try:
            with interrupter.watching():
                doing(case)
        except KeyboardInterrupt:
            pass
        except RuntimeError as error:  # threading's own locks make one of it in the start of a thread
            if not isinstance(error.__context__, KeyboardInterrupt):
                raise
        own = _own_files(folder)
        _close_in_time(case.log)
        case.log = None
        gc.collect()
        case.check()
        gc.collect()
        for fd, path in own.items():
            assert os.fstat(fd).st_ino == path.stat().st_ino, "a file of the program was closed"
            assert path.read_bytes() == b"own", "a file of the program was written to"
            os.close(fd)
        assert _open_files() == before, f"left open: {_open_files() - before}"
        return interrupter.places


def _own_files(folder: Path) -> dict[int, Path]:
    """Files of the program, which have the lowest numbers that are free."""
    files = {}
    for number in range(12):
        path = folder / f"own-{number}"
        path.write_bytes(b"own")
        files[os.open(path, os.O_RDWR)] = path
    return files


def _open_files() -> set[tuple[int, str]]:
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add((int(name), os.readlink(f"/proc/self/fd/{name}")))
        except FileNotFoundError:  # that of the listing
            continue
    return found


def _close_in_time(log: Log | None) -> None:
    """In another thread, which a lock that stayed held keeps out."""
    if log is None:
        return
    failed: list[BaseException] = []

    def close() -> None:
        try:
            log.close()
        except BaseException as error:
            failed.append(error)

    closer = threading.Thread(target=close, daemon=True)
    closer.start()
    closer.join(PATIENCE)
    assert not closer.is_alive(), "close() hangs"
    if failed:
        raise failed[0]


def run(seed: int) -> int:
    """One doing, at every SAMPLES-th place of it; how many interrupts."""
    doing = DOINGS[seed % len(DOINGS)]
    first = seed // len(DOINGS) % SAMPLES if seed >= len(DOINGS) else Random(seed).randrange(SAMPLES)
    interrupted(doing, -1)  # what is imported at first use is, by now
    places = interrupted(doing, -1)
    done = 0
    for at in range(first, places, SAMPLES):
        try:
            interrupted(doing, at)
        except BaseException as error:
            error.add_note(f"seed {seed}: {doing.__name__}, place {at} of {places}")
            raise
        done += 1
    return done


CAMPAIGN = Campaign(
    name="interrupts",
    fault="KeyboardInterrupt wherever Python looks for signals, in opening, appending, deleting, compacting, closing",
    holds="no file of the program is closed or written to; close() ends; no file or lock stays behind; the promise",
    run=run,
    short=len(DOINGS),
    full=len(DOINGS) * SAMPLES,
)
