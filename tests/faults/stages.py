"""Jobs that write a table into a log, killed at each call by which they change files, one after the other.

`tables` kills them at random moments; here no call is missed. A job is a driver, and a task in a process of its own for
each part, as Spark has them. Killed is the driver; or a task, which the driver has tried again; or the driver while a
task of it goes on, and the next job begins beside that.
"""

from __future__ import annotations

import builtins
import os
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from faults.campaign import Campaign
from faults.forks import fork, in_fresh_process, succeeded
from faults.tables import numbers_in

from jitdb.errors import LogWarning
from jitdb.log import Log
from jitdb.log.io import osfile

STEP: Final = 48  # a case kills at each 48th call, and the next case at those behind them
PARTS: Final = 3
ROWS: Final = 30  # of a part


class Mode(NamedTuple):
    """before: rows in the log when the job begins; None: there is no log"""

    before: int | None
    overwrite: bool
    codec: str | None


MODES: Final = (
    Mode(40, False, None), Mode(None, False, "json"), Mode(0, False, "bipf"), Mode(40, True, "json"),
    Mode(None, True, None),
)  # fmt: skip


def _one_after_the_other(_: object, here: Callable[[], None], beside: Callable[[], None]) -> None:
    here()
    beside()


class Killed:
    """Counts the calls of this process that change files. At one of them it does something: by default, it dies."""

    def __init__(self, at: int, then: Callable[[], object] = lambda: os.kill(os.getpid(), signal.SIGKILL)) -> None:
        self.at, self.then, self.calls = at, then, 0
        for name in ("fsync", "fdatasync", "truncate", "chmod", "chown"):
            setattr(osfile.FileSystem, name, staticmethod(self._counted(getattr(osfile.FileSystem, name))))
        for name in ("mkdir", "rmdir", "unlink", "replace", "fsync", "open"):
            setattr(os, name, self._counted(getattr(os, name)))
        osfile.FileSystem.sync_both = _one_after_the_other  # type: ignore[method-assign]  # each has its number
        osfile.FileSystem.open = staticmethod(os.open)
        builtins.open = self._counted(builtins.open)
        pwrite = osfile.FileSystem.pwrite

        def write(fd: int, data: memoryview, offset: int) -> int:
            if self.calls + 1 == self.at:
                pwrite(fd, data[: len(data) // 2], offset)  # one call may write in part
            self._count()
            return pwrite(fd, data, offset)

        osfile.FileSystem.pwrite = staticmethod(write)

    def _counted(self, call: Any) -> Any:
        def counted(*arguments: Any, **named: Any) -> Any:
            self._count()
            return call(*arguments, **named)

        return counted

    def _count(self) -> None:
        self.calls += 1
        if self.calls == self.at:
            self.then()


class Job:
    """Rows whose numbers begin at a multiple of 1,000: `run` is the job's."""

    def __init__(self, path: Path, run: int, mode: Mode) -> None:
        self.path, self.run, self.mode = path, run, mode

    @property
    def numbers(self) -> range:
        return range(1000 * self.run, 1000 * self.run + PARTS * ROWS)

    def work(self, driver: int = 0, task: int = 0, orphan: int = 0) -> None:
        """The driver: see the head. At which call it dies, at which one the first attempt at the second task, or at
        which one this kills the driver and goes on; 0: at none.
        """
        from jitdb.spark_ext.writing.job import begin, commit, kept_by

        warnings.simplefilter("ignore", LogWarning)
        count = Killed(driver)
        target = begin(str(self.path), f"{self.run}", self.mode.codec, None, self.mode.overwrite)
        kept_by(target.folder, os.getpid())  # where there is no Java
        parts = []
        for part in range(PARTS):
            first = part == 1 and (task or orphan)
            written = self._task(target, part, 0, task if first else 0, orphan if first else 0)
            parts.append(written or self._task(target, part, 1))
        assert commit(target, parts) == len(self.numbers)
        (self.path.parent / "calls").write_text(f"{count.calls}")

    def _task(self, target: Any, part: int, attempt: int, dies: int = 0, orphan: int = 0) -> Any:
        """What an attempt tells, in a process of its own; None where it died."""
        import pickle

        from jitdb.spark_ext.writing.encoding import write_partition

        read, write = os.pipe()
        driver = os.getpid()

        def attempted() -> None:
            if orphan:
                Killed(orphan, lambda: os.kill(driver, signal.SIGKILL))
            elif dies:
                Killed(dies)
            values = [{"n": number, "text": "x" * (number % 40)} for number in self.numbers[part * ROWS :][:ROWS]]
            os.write(write, pickle.dumps(write_partition(target, part, f"{attempt}-{attempt}", values)))

        pid = fork(attempted)
        os.close(write)
        if not succeeded(pid):
            os.close(read)
            return None
        with os.fdopen(read, "rb") as file:
            return pickle.load(file)


def main(seed: int) -> int:
    """Each mode, killed at each STEP-th call; how many jobs were killed."""
    from jitdb.spark_ext.writing import encoding, job  # noqa: F401  # once, before there are children

    warnings.simplefilter("ignore", LogWarning)
    killed = 0
    for mode in MODES:
        folder = Path(tempfile.mkdtemp(prefix="jitdb-stages-"))
        try:
            for faults in _faults(seed, folder, mode):
                try:
                    killed += _tried(folder, mode, faults)
                except AssertionError as error:
                    error.add_note(f"{mode} {faults}")
                    raise
        finally:
            shutil.rmtree(folder)
    return killed


def _faults(seed: int, folder: Path, mode: Mode) -> Iterator[dict[str, int]]:
    """Which calls are the last ones. The first job, which is let live, tells how many there are."""
    path = _begun(folder, mode)
    assert succeeded(fork(Job(path, 1, mode).work))
    calls = int((folder / "calls").read_text())
    assert calls > 20
    for at in range(1 + seed % STEP, calls + 1, STEP):
        yield {"driver": at}
    if seed % STEP < 4:  # so many calls has a task: its file's, its number's in the pipe
        yield {"task": 1 + seed % STEP}
        yield {"orphan": 1 + seed % STEP}


def _begun(folder: Path, mode: Mode) -> Path:
    """The log as the job finds it, in an empty folder."""
    shutil.rmtree(folder)
    folder.mkdir()
    path = folder / "a.log"
    if mode.before is not None:
        with Log(path, codec=mode.codec) as log:
            log.append_many([{"n": number} for number in range(mode.before)])
    return path


def _tried(folder: Path, mode: Mode, faults: dict[str, int]) -> int:
    path = _begun(folder, mode)
    before = list(range(mode.before or 0))
    job = Job(path, 1, mode)
    after = list(job.numbers) if mode.overwrite else before + list(job.numbers)
    pid = fork(lambda: job.work(**faults))
    status = os.waitpid(pid, 0)[1]
    found = numbers_in(path)
    if os.WIFSIGNALED(status):
        assert found in ((before, after) if "driver" in faults else (before,)), f"{len(found):,} rows"
    else:
        assert status == 0
        assert found == after
    last = Job(path, 2, mode._replace(codec=None, overwrite=False))
    assert succeeded(fork(last.work)), "the next job failed"
    assert numbers_in(path) == found + list(last.numbers)
    assert _cleaned(path) == [], "what the dead job left is still there"
    return os.WIFSIGNALED(status) or "task" in faults


def _cleaned(path: Path) -> list[str]:
    """What is left of dead jobs when a task that outlived its driver has ended, and no folder is young."""
    from jitdb.spark_ext.writing.job import remove_leftovers

    for _ in range(50):
        left = [str(each) for each in path.parent.glob("*.spark-*")]
        if not left:
            break
        for each in left:
            os.utime(each, (0, 0))
        remove_leftovers(str(path), time.time())
        time.sleep(0.02)
    return left


def run(seed: int) -> int:
    """Jobs in each mode, killed at each 48th call."""
    return in_fresh_process("faults.stages", seed)


CAMPAIGN = Campaign(
    name="stages",
    fault="SIGKILL of the driver or of a task of a job that writes a table, at each call that changes files",
    holds="the log has all rows of a job, in order, or none; the next job writes its own, and removes what was left",
    run=run,
    short=1,
    full=STEP,
)
