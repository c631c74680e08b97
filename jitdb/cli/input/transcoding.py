"""Lines on their way through the kernel that makes records of them: of a file, while those before go to the log."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.cli.input.sources import Portion, Source
from jitdb.cli.input.target import Done, Target
from jitdb.log.blocks.layout import largest_record

if TYPE_CHECKING:
    from jitdb.log.codecs.json.transcode import Transcoded, Transcoder

WORTH: Final = 1 << 14  # bytes: of fewer lines, json has the records before numpy is imported
WORTH_COMPILING: Final = 100_000  # records, where numba is there and no build: it takes some seconds
WORTH_AHEAD: Final = 1 << 22  # bytes of a file: for less, no thread is started


class Ready(NamedTuple):
    """Lines, and what a kernel made of the first of them, if it was there already."""

    portion: Portion
    turn: int  # of the two kernels
    transcoded: Transcoded | None


class Transcoding:
    """The two kernels of an import, in turns. `done` counts the records so far."""

    def __init__(self, target: Target, done: Done, *, tagged: bool) -> None:
        self._target = target
        self._done = done
        self._tagged = tagged
        self._block_size = 0  # that the kernels are for
        self._kernels: tuple[Transcoder, Transcoder] | None = None

    def ahead(self, source: Source, portions: Iterator[Portion]) -> Iterator[Ready]:
        """Each portion with what the kernel makes of it: of a file, while the one before goes to the log."""
        turns = cycle((0, 1))

        def get_ready() -> Ready | None:
            portion, turn, kernels = next(portions, None), next(turns), self._kernels
            if portion is None:
                return None
            is_worth = kernels is not None and portion.end - portion.begin >= WORTH
            return Ready(portion, turn, kernels[turn].transcode(*portion) if kernels and is_worth else None)

        if (source.size or 0) < WORTH_AHEAD:  # what a pipe has is imported before more is waited for
            yield from iter(get_ready, None)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as thread:
            coming = thread.submit(get_ready)
            while (ready := coming.result()) is not None:
                coming = thread.submit(get_ready)
                yield ready

    def kernels(self) -> tuple[Transcoder, Transcoder] | None:
        """None before the log is open, for codecs that the kernel does not know, and where it does not pay."""
        if not self._target.is_open:
            return None
        log = self._target.log
        if self._block_size != log.block_size and log.codec.name in ("msgpack", "bipf"):
            from jitdb.common.kernels import WAY

            if WAY == "native" or (WAY == "numba" and self._done.records >= WORTH_COMPILING):
                from jitdb.log.codecs.json.transcode import Transcoder

                largest = largest_record(log.block_size)
                one, other = (Transcoder(log.codec.name, largest, tagged=self._tagged) for _ in range(2))
                self._kernels, self._block_size = (one, other), log.block_size
        return self._kernels
