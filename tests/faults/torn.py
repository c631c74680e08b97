"""Writes torn at every border of 512 bytes: of the log's last blocks, of each file of the sidecar, of index files.

A case is a small history and every sixteenth of its calls. The power goes before each of them in turn, and each time
everything that was not synced yet is torn at each of its borders in turn: what lies before it was written, or what lies
behind it; the other files were written wholly, or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Final

from faults.asked_questions import Asking
from faults.campaign import Campaign
from faults.simulated import Process, Stopped, running
from faults.simulated_disk import Disk

STEPS: Final = 6
SHARES: Final = 16  # cases that share the calls of one history


def run(seed: int) -> int:
    """One history, cut at its calls; how many torn states were recovered from."""
    count, stop_at = 0, seed % SHARES - SHARES + 1
    while True:
        stop_at += SHARES
        history = _begin(seed // SHARES)
        process = Process(history.disk, stop_at=stop_at)
        with running(process):
            with suppress(Stopped):
                history.live(STEPS)
                if history.log is not None:
                    history.reopen(history.log)
            ended = not process.stopped
            process.stop()
            history.killed()
        if ended:
            return count
        for path, lost, others_kept in _tears(history.disk):
            count += 1
            _check(history, path, lost, others_kept)


def _begin(seed: int) -> Asking:
    history = Asking(seed)
    with running(Process(history.disk)):
        history.live(4)
        assert history.log is not None
        history.flush(history.log)
        history.log.close()
    history.forget()
    history.log = None
    history.disk.sync_all()
    return history


def _tears(disk: Disk) -> Iterator[tuple[str, list[int], bool]]:
    """Each file with pending sectors, at each border: the sectors that are lost, and what becomes of the others."""
    for path, file in disk.files().items():
        pending = sorted(file.sectors)
        for border in range(len(pending) + 1):
            for lost in (pending[border:], pending[:border]):
                for others_kept in (True, False):
                    yield path, lost, others_kept


def _check(history: Asking, path: str, lost: list[int], others_kept: bool) -> None:
    reader, reader_process = history.reader, history.reader_process
    history.reader = None
    after = Asking(0)
    after.model, after.block_size = deepcopy(history.model), history.block_size
    after.disk = history.disk.torn(path, lost, others_kept=others_kept)
    after.reader_process = Process(after.disk)
    try:
        with running(Process(after.disk)):
            after.live(0)
            assert after.log is not None
            after.ask(after.log)
            after.append_many(after.log)
            after.ask(after.log)
            after.model.check(after.log)
            after.log.close()
            after.db = None
    except BaseException as error:
        error.add_note(f"{path} lost its sectors {lost}, others kept: {others_kept}; {history.done}")
        raise
    finally:
        history.reader, history.reader_process = reader, reader_process


CAMPAIGN = Campaign(
    name="torn",
    fault="every pending write torn at each border of 512 bytes: log, sidecar, indexes; others written or lost",
    holds="as above",
    run=run,
    short=2,
    full=640,
)
