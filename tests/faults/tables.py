"""Jobs that write a table into a log, killed with SIGKILL while they begin, write their parts, check them and commit.

Spark does no more than to call these functions, in tasks and in the driver. After each kill the log holds all rows of a
job, in order, or none of them; the next job writes its own, and what the dead one left goes.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
import warnings
from pathlib import Path
from random import Random
from typing import Final

from faults.campaign import Campaign
from faults.forks import fork, in_fresh_process
from thoroughness import tries

from jitdb.errors import LogWarning
from jitdb.log import Log

KILLS: Final = tries(10, 25)  # of one log
PARTS: Final = 3
ROWS: Final = 400  # of a part


class Job:
    """Rows whose numbers begin at a multiple of 10,000: `run` is the job's. `pipe` hears `F` when it has committed."""

    def __init__(self, path: Path, run: int, overwrite: bool, pipe: int) -> None:
        self.path, self.run, self.overwrite, self.pipe = path, run, overwrite, pipe

    @property
    def numbers(self) -> range:
        return range(10_000 * self.run, 10_000 * self.run + PARTS * ROWS)

    def work(self) -> None:
        from jitdb.spark_ext.writing.encoding import write_partition
        from jitdb.spark_ext.writing.job import begin, commit, kept_by

        warnings.simplefilter("ignore", LogWarning)
        target = begin(str(self.path), f"{self.run}", None, None, self.overwrite)
        kept_by(target.folder, os.getpid())  # where there is no Java
        values = [{"n": number, "text": "x" * (number % 40)} for number in self.numbers]
        parts = [write_partition(target, part, "0", values[part * ROWS :][:ROWS]) for part in range(PARTS)]
        assert commit(target, parts) == len(values)
        os.write(self.pipe, b"F")


def main(seed: int, kills: int) -> int:
    """One log; how many jobs were killed."""
    from jitdb.spark_ext.writing.job import remove_leftovers  # once, before there are children that would each do it

    rng, there = Random(seed), list[int]()
    folder = Path(tempfile.mkdtemp(prefix="jitdb-tables-"))
    path = folder / "a.log"
    warnings.simplefilter("ignore", LogWarning)
    killed, run, longest = 0, 0, 0.05
    try:
        while killed < kills:
            run += 1
            read, write = os.pipe()
            job = Job(path, run, rng.random() < 0.3, write)
            begun = time.monotonic()
            pid = fork(job.work)
            os.close(write)
            if run > 1:  # the first tells how long one takes
                time.sleep(rng.uniform(0, longest))
                os.kill(pid, signal.SIGKILL)
            is_done = os.read(read, 1) == b"F"
            os.close(read)
            status = os.waitpid(pid, 0)[1]
            assert os.WIFSIGNALED(status) or is_done, f"job {run} failed by itself"
            killed += os.WIFSIGNALED(status)
            if run == 1:
                longest = 1.2 * (time.monotonic() - begun)
            there = checked(path, there, job, is_done)
        last = Job(path, run + 1, False, os.open(os.devnull, os.O_WRONLY))
        last.work()
        os.close(last.pipe)
        assert numbers_in(path) == there + list(last.numbers)
        for each in folder.glob("*.spark-*"):  # young and empty: it may be that of a job which begins
            os.utime(each, (0, 0))
        remove_leftovers(str(path), time.time())
        left = list(folder.glob("*.spark-*"))
        assert not left, f"what dead jobs left is still there: {[(each, os.listdir(each)) for each in left]}"
    finally:
        shutil.rmtree(folder)
    return killed


def checked(path: Path, before: list[int], job: Job, is_done: bool) -> list[int]:
    """What is in the log now, which is what it was, or that and the job's rows."""
    after = list(job.numbers) if job.overwrite else before + list(job.numbers)
    found = numbers_in(path)
    assert found == after or (not is_done and found == before), f"job {job.run}: {len(found):,} rows, {found[:3]} …"
    return found


def numbers_in(path: Path) -> list[int]:
    if not path.exists() or not path.stat().st_size:
        return []
    with Log(path, read_only=True) as log:
        assert log.verify().ok
        return [record.value["n"] for record in log.stream()]


def run(seed: int) -> int:
    """One log into which jobs write that are killed."""
    return in_fresh_process("faults.tables", seed, KILLS)


CAMPAIGN = Campaign(
    name="tables",
    fault="SIGKILL of jobs that write a table into a log, at every stage",
    holds="the log has all rows of a job, in order, or none; the next job writes its own, and removes what was left",
    run=run,
    short=2,
    full=100,
)
