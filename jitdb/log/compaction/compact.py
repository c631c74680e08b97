"""Another file in a log's place: its own live records, compacted, or those of another log.

Whole blocks are copied while the writer goes on (copy.py); then appends and deletions wait, the rest is copied, and the
copy takes the log's place (swap.py). Until then the log is as it was, whatever happens; from then on it is the new one:
offsets and seqs are others, the identity stays, the generation grows, `moved-GENERATION` tells which records went.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.errors import LogWriteFailed
from jitdb.log.compaction.copy import Copy
from jitdb.log.io import filenames
from jitdb.log.io.osfile import Descriptor, reason
from jitdb.log.opening import swap
from jitdb.log.opening.format import OpenOptions
from jitdb.log.opening.open_log import open_again, open_log
from jitdb.log.reading.block_verifier import Verifier
from jitdb.log.reading.extent import Extent
from jitdb.log.sidecar.checksums import encode_entries
from jitdb.log.sidecar.meta import Meta, new_identity

if TYPE_CHECKING:
    from jitdb.log.opening.opened import Opened
    from jitdb.log.record import Stats
    from jitdb.log.writing.writer import Rebind, Writer

LITTLE: Final = 8 << 20  # bytes that are left for the end, while the writer waits: some milliseconds
ROUNDS: Final = 8  # of copying while the writer goes on; one that writes faster than we copy must wait then

_CUT_SHORT: Final = "a compaction was cut short in its last moment: open the log again"
_AS_IT_IS: Final = OpenOptions(None, None)

Progress = Callable[[int, int], object]  # bytes copied, of so many


class Compaction(NamedTuple):
    """What a compaction did. Bytes are those of the log, up to the end of its last record."""

    removed: int  # deleted records that are gone
    records: int  # live ones, which stay
    bytes_before: int
    bytes_after: int
    seconds: float

    def __str__(self) -> str:
        if not self.removed:
            return f"nothing to remove: none of {self.records:,} records is deleted"
        speed = f", {self.bytes_before / self.seconds / 1e6:,.0f} MB/s" if self.seconds > 0 else ""
        removed = f"{self.removed:,} deleted {'record' if self.removed == 1 else 'records'}"
        return (
            f"removed {removed}, {self.records:,} stay: "
            f"{self.bytes_before:,} bytes are {self.bytes_after:,} now ({self.seconds:.2f} s{speed})"
        )


def compact(
    writer: Writer, options: OpenOptions, measure: Callable[[], Stats], progress: Progress, rebind: Rebind
) -> Compaction:
    """Compact the log of this writer, which `measure` reads. Raises LogCorrupt, LogWriteFailed, LogClosed."""
    writer.flush()
    stats = measure()
    begin = time.perf_counter()
    if not (stats.deleted_records or stats.damaged_records):
        return Compaction(0, stats.records, stats.total_bytes, stats.total_bytes, time.perf_counter() - begin)
    before = writer.durable_end
    copy: Copy | None = None

    def tell(done: int) -> None:
        progress(min(done, before), before)

    def finish() -> None:
        with writer.exclusively() as opened:
            assert copy is not None
            copy.finish(writer.durable_end, writer.tail_proof, tell)
            pending = copy.prepare(opened.recovery.change)
            writer.reopen(partial(copy.take_place, pending, options), rebind, _CUT_SHORT)

    try:
        with writer.exclusively() as opened:
            copy = Copy(opened, writer.verifier, writer.exclusively)
        for _ in range(ROUNDS):
            copy.copy(writer.durable_end - writer.durable_end % opened.meta.block_size, tell)
            if writer.durable_end - copy.copied <= LITTLE:
                break
        _undisturbed(finish)
    except BaseException as error:
        if copy is not None and not copy.taken:
            with suppress(OSError):  # whoever opens the log next removes what is left of it
                copy.discard()
        if isinstance(error, OSError):
            raise LogWriteFailed(
                f"compacting failed ({reason(error)}): the log is as it was, and can be written to", path=opened.path
            ) from error
        raise
    return Compaction(
        len(copy.removed), copy.seq - len(copy.removed), copy.copied, writer.durable_end, time.perf_counter() - begin
    )


def replace(writer: Writer, fresh: Path, codec: str, rebind: Rebind) -> None:
    """Put the log `fresh` in the place of this writer's, in one moment. See Log.replace_with."""
    new = open_log(fresh, _AS_IT_IS, read_only=True)
    try:
        end, block_size = new.recovery.tail.end, new.meta.block_size
        sums = Verifier(new, Extent(new.recovery.tail, block_size)).sums(0, -(-end // block_size)).tolist()
    finally:
        new.close()

    def swap_in(opened: Opened) -> Opened:
        fs, sidecar = opened.fs, opened.sidecar
        meta = Meta(block_size, codec, new_identity(), opened.meta.generation + 1)
        fs.rename(fresh, sidecar / filenames.NEXT_LOG)
        with Descriptor(fs, sidecar / filenames.NEXT_LOG, os.O_RDWR) as fd:
            fs.share(fd, fs.fstat(opened.fd), is_log=True)
            pending = swap.describe(fs, fd, meta, end, opened.recovery.change)
        assert pending is not None  # it was written and closed by us
        swap.prepare(fs, sidecar, pending, encode_entries(0, sums, meta.generation))
        swap.swap(fs, opened.path, sidecar, pending)
        return open_again(opened, _AS_IT_IS)

    with writer.exclusively():
        writer.reopen(swap_in, rebind, "another log was to take its place, and that was cut short: open the log again")


def _undisturbed(step: Callable[[], None]) -> None:
    """Run the step in a thread, which a Ctrl-C does not reach, to its end; the Ctrl-C comes after it, or before."""
    failure: list[BaseException] = []
    steps = [step]  # whoever takes it decides whether it is done

    def run() -> None:
        try:
            steps.pop()()
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, name="jitdb swap")
    interrupt: BaseException | None = None
    try:
        thread.start()
    except BaseException as error:  # the thread may have been started, or may be on its way
        with suppress(IndexError):
            steps.pop()
            raise
        interrupt = error
    while True:
        try:
            while thread.is_alive():
                thread.join()
            break
        except BaseException as error:
            interrupt = error
    if failure:
        raise failure[0]
    if interrupt is not None:
        raise interrupt
