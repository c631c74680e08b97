"""Real processes that are killed with SIGKILL while they repair a log.

Some blocks of it are damaged. The next repair, after any number that were cut short, must end as one that was not, and
no block that was whole has another byte.
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
from typing import Any, Final

from faults.campaign import Campaign
from faults.forks import fork, in_fresh_process, succeeded
from thoroughness import tries

from jitdb.errors import LogWarning
from jitdb.log import Log

KILLS: Final = tries(10, 25)  # of one log
BLOCK: Final = 512
RECORDS: Final = 600
_SLACK: Final = 1.3  # a process is killed at any moment of so many times what a repair takes


def value(number: int) -> dict[str, Any]:
    return {"number": number, "text": "x" * (number * 7 % 61)}


def make(path: Path) -> None:
    with Log(path, codec="bipf", block_size=BLOCK) as log:
        offsets = log.append_many(map(value, range(RECORDS)))
        for offset in offsets[::17]:
            log.delete(offset)


def damage(path: Path, rng: Random) -> list[int]:
    """Flip a bit in some blocks; no program was there, as far as the file's time tells. Gives the blocks."""
    times = path.stat()
    blocks = rng.sample(range(times.st_size // BLOCK), rng.randrange(1, 9))
    with path.open("r+b") as file:
        for block in blocks:
            at = block * BLOCK + rng.randrange(BLOCK)
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 1 << rng.randrange(8)]))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return blocks


def repair(path: Path, said: int) -> None:
    with Log(path) as log:
        os.write(said, b"R")
        log.repair()


def is_whole(path: Path, wanted: bytes) -> None:
    """Repairs to the end, and looks at every byte."""
    with Log(path) as log:
        log.repair()
        report = log.verify()
        assert report.ok, str(report)
    assert path.read_bytes() == wanted


def repaired(path: Path, folder: Path) -> bytes:
    """What a repair makes of a copy of the log that nobody cuts short."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(path.parent, folder)
    with Log(folder / path.name) as log:
        log.repair()
    return (folder / path.name).read_bytes()


def main(seed: int, kills: int) -> int:
    """One log; how many processes were killed."""
    rng = Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="jitdb-mended-"))
    path = folder / "log" / "a.log"
    path.parent.mkdir()
    warnings.simplefilter("ignore", LogWarning)
    try:
        make(path)
        killed = 0
        while killed < kills:
            before, damaged = path.read_bytes(), damage(path, rng)
            begin = time.perf_counter()
            wanted = repaired(path, folder / "copy")
            takes = time.perf_counter() - begin
            for block in range(len(before) // BLOCK):
                at = slice(block * BLOCK, (block + 1) * BLOCK)
                assert block in damaged or wanted[at] == before[at], f"block {block}"
            for _ in range(rng.randrange(1, 4)):
                killed += _killed(path, rng.uniform(0, _SLACK * takes))
            assert succeeded(fork(lambda wanted=wanted: is_whole(path, wanted))), f"after kill {killed}"
    finally:
        shutil.rmtree(folder)
    return killed


def _killed(path: Path, after: float) -> int:
    """Kill a repair so many seconds after it began; whether it had not ended by itself."""
    read, write = os.pipe()
    pid = fork(lambda: repair(path, write))
    os.close(write)
    os.read(read, 1)
    os.close(read)
    time.sleep(after)
    os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0, "a repair failed"
    return int(os.WIFSIGNALED(status))


def run(seed: int) -> int:
    """One log whose repairs are killed."""
    return in_fresh_process("faults.mended", seed, KILLS)


CAMPAIGN = Campaign(
    name="mended",
    fault="SIGKILL of real processes while they repair a log in which bits were flipped",
    holds="the next repair ends as one that nobody cut short; whole blocks stay",
    run=run,
    short=1,
    full=40,
)
