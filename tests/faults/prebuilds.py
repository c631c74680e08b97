"""Drivers that build indexes of one log at the same time, of questions of which some are the same; some are killed.

Each has a process of its own, and does what its tasks do, as a cluster would. In the end the index files are those of
the local engine, byte for byte, and nothing else is left in their folder.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path
from random import Random
from typing import Any, Final

from faults.campaign import Campaign
from faults.forks import TESTS, fork, in_fresh_process, succeeded
from thoroughness import tries

from jitdb.errors import LogWarning
from jitdb.log import Log

ROUNDS: Final = tries(4, 12)  # of one log
DRIVERS: Final = 3
BLOCK: Final = 4096


def main(seed: int, rounds: int) -> int:
    """One log that grows; how many drivers worked beside others, or were killed."""
    sys.path.insert(0, str(TESTS / "spark"))
    from engine_helpers import QUESTIONS, messages
    from range_cases import gathered, merged_files

    import jitdb.engine.database  # noqa: F401  # once, before there are children

    warnings.simplefilter("ignore", LogWarning)
    rng, borne, written = Random(seed), 0, 0
    folder = Path(tempfile.mkdtemp(prefix="jitdb-prebuilds-"))
    path = folder / "x.log"
    asked: set[int] = set()
    try:
        for number in range(rounds):
            with Log(path, block_size=BLOCK) as log:
                count = rng.randrange(300, 1500)
                log.append_many(messages(count, first=written))
                written += count
            pids, killed = [], 0
            for _ in range(DRIVERS):
                mine = set(rng.sample(range(len(QUESTIONS)), rng.randrange(1, len(QUESTIONS))))
                asked |= mine
                pids.append(fork(lambda mine=mine: _build(path, [QUESTIONS[each] for each in mine], rng)))  # type: ignore[misc]
            if rng.random() < 0.5:
                time.sleep(rng.uniform(0, 0.3))
                os.kill(pids[0], signal.SIGKILL)
                killed = 1
            ends = [succeeded(pid) for pid in pids]
            assert all(ends[killed:]), f"round {number}: a driver failed"
            questions = [QUESTIONS[each] for each in sorted(asked)]
            assert succeeded(fork(lambda: _build(path, questions, rng))), f"round {number}: the next driver failed"  # noqa: B023
            with Log(path, read_only=True) as log:
                wanted = merged_files(log, folder / f"locally-{number}", questions)
                assert gathered(log.sidecar / "indexes") == wanted, f"round {number}: other index files"
            borne += DRIVERS
    finally:
        shutil.rmtree(folder)
    return borne


def _build(path: Path, questions: list[Any], rng: Random) -> None:
    """What a driver does."""
    from range_cases import Here, build_by_spans

    run = Here.run

    def slowly(self: Any, *arguments: Any) -> Any:
        time.sleep(rng.uniform(0, 0.05))
        return run(self, *arguments)

    Here.run = slowly  # type: ignore[method-assign]
    warnings.simplefilter("ignore", LogWarning)
    rng.seed(os.getpid())
    with Log(path, read_only=True) as log:
        build_by_spans(log, log.sidecar / "indexes", questions, 8 * BLOCK, at_once=rng.choice((0, 1 << 30)))


def run(seed: int) -> int:
    """One log whose indexes several drivers build at once."""
    return in_fresh_process("faults.prebuilds", seed, ROUNDS)


CAMPAIGN = Campaign(
    name="prebuilds",
    fault="drivers of a cluster that build indexes of one log at the same time; some are killed",
    holds="the index files are the local engine's, byte for byte; nothing else is left beside them",
    run=run,
    short=1,
    full=60,
)
