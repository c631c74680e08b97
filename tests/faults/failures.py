"""Each call of a history fails in turn: the disk is full or broken, the call is interrupted, or falls short.

A case is a history (appends, transactions, deletions, flushes, a compaction, a reopening, a reader), one kind of fault,
and every fourth of its calls; the history is lived through again and again, and each time the next of these fails.
Whatever call that is: a clear error or none, nothing acknowledged is lost, and the log goes on once it is opened again.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from random import Random
from typing import Final

from faults.campaign import Campaign
from faults.histories import History, reading
from faults.simulated import SHORT, SHORT_AND_FULL, Process, let_go, running

from jitdb.errors import LogError, LogWriteFailed
from jitdb.log import Log

FAULTS: Final[tuple[int | str, ...]] = (errno.ENOSPC, errno.EIO, errno.EINTR, SHORT, SHORT_AND_FULL)
NEED_NO_ERROR: Final = (errno.EINTR, SHORT)
SHARES: Final = 4  # cases that share the calls of one history and fault


class Unlucky(History):
    """A history in which one call fails."""

    def live_through(self, fail_at: int, fault: int | str, steps: int) -> Process:
        """Do it all, in one process. What went wrong is checked here and goes no further."""
        process = self.process = Process(self.disk, fail_at=fail_at, fault=fault)
        with running(process):
            try:
                self.live(steps)
                self.get(self._here())
                self.reopen(self._here())
                self._here().close()
                self.model.flushed()
            except LogError as error:
                self._check_refusal(process, error, fault)
            except OSError as error:
                raise AssertionError(f"a bare {error!r} at {process.failed}") from error
            finally:
                if self.log is not None:
                    let_go(self.log, process)
                self.log = None
        return process

    def read(self, log: Log) -> None:
        """In the same process: its calls fail too."""
        with Log(log.path, read_only=True) as reader:
            reader.refresh()
            self._seen(reader)

    def _here(self) -> Log:
        assert self.log is not None
        return self.log

    def _check_refusal(self, process: Process, error: LogError, fault: int | str) -> None:
        assert process.failed, f"nothing failed, and yet: {error!r}"
        log = self.log
        if not isinstance(error, LogWriteFailed) or log is None or log.closed:
            return
        if self.model.compacting and log.generation == self.model.generation + 1:
            self.model.compacted(log)
        self.model.acknowledged(log)
        if process.failed not in ("fsync", "fdatasync", "pwrite", "truncate"):
            return
        try:
            self.append(log)
        except LogWriteFailed:
            for call in (log.flush, lambda: log.append_many([self.value()[0]])):
                with suppress(LogWriteFailed):
                    call()
                    raise AssertionError(f"it goes on after {error!r}") from error
            return
        assert "as it was" in str(error)  # of a compaction: the writer goes on
        if fault != SHORT_AND_FULL:
            self.flush(log)


def run(seed: int) -> int:
    """One history and fault, at every fourth call; how many calls failed."""
    round_, kind = divmod(seed, len(FAULTS))
    fault, shape = FAULTS[kind], round_ // SHARES
    steps = 4 + 6 * (shape % 3)
    count, number = 0, 1 + (round_ + kind) % SHARES - SHARES
    while True:
        number += SHARES
        history = Unlucky(shape)
        if shape % 2:  # not the first time that it is opened
            with running(Process(history.disk)):
                history.live(5)
                history.flush(history._here())
                history._here().close()
            history.log = None
        history.rng = Random(f"{shape} {number}") if shape % 4 == 3 else history.rng
        try:
            process = history.live_through(number, fault, steps)
            if process.failed is None:
                return count
            if history.rng.random() < 0.5:
                history.power_failed()
            _check(history)
            count += 1
        except BaseException as error:
            error.add_note(f"seed {seed}: call {number} ({process_name(history)}) {' '.join(history.done)}")
            if history.log is not None:
                let_go(history.log, history.process)
            raise


def process_name(history: History) -> str:
    return f"block size {history.block_size}, {history.codec}"


def _check(history: Unlucky) -> None:
    if history.model.durable:
        with reading(history) as reader:
            history._seen(reader)
    history.done.append("after:")
    history.after()


CAMPAIGN = Campaign(
    name="failures",
    fault="every single call of a history fails: ENOSPC, EIO, EINTR, short reads and writes, full after a short write",
    holds="a JitdbError or none, no bare OSError; nothing acknowledged is lost; a writer whose fsync failed refuses",
    run=run,
    short=len(FAULTS),
    full=1_000 * SHARES,
)
