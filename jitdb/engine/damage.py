"""Damage in the log: whether a block has any, and warnings of what it costs, each given once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from jitdb.errors import DamageWarning, LogCorrupt, MalformedWarning, Remedy

if TYPE_CHECKING:
    import os

    from jitdb.log.source import ScanSource


def damage_in(log: ScanSource, block: int) -> LogCorrupt | None:
    """What a second look finds wrong in a block: its checksum, or a length, at `offset`. Raises LogError."""
    data, fault = log.second_look(block)
    if fault is None:
        begin = block * log.block_size
        lost = log.framing.fault_in(data, log.durable_end - begin)
        fault = None if lost is None else leads_out(log.path, begin + lost, block)
    return fault


def leads_out(path: str | os.PathLike[str], offset: int, block: int) -> LogCorrupt:
    """The error of a record's length that leads out of its block."""
    return LogCorrupt(
        f"block {block} is damaged: the length at offset {offset:,} leads out of the block, so the records behind it "
        f"cannot be found",
        remedy=Remedy("see verify(), and repair() or a copy of the log", "see jitdb verify, and jitdb repair"),
        path=path,
        offset=offset,
        block=block,
    )


_NAMED: Final = 5  # lines that a warning names


class DamageReport:
    """Warns of damage in one log."""

    def __init__(self, log: ScanSource) -> None:
        self._log = log
        self._reported: set[int] = set()  # offsets
        self.has_malformed = False  # whether malformed() was given any

    def broken_at(self, offsets: Sequence[int]) -> None:
        """From these offsets on, to the ends of their blocks, no record can be found."""
        fresh = sorted(set(offsets) - self._reported)
        self._reported.update(fresh)
        if fresh:
            size, path = self._log.block_size, self._log.path
            faults = [
                LogCorrupt(f"block {at // size} is damaged at offset {at:,}", path=path, offset=at, block=at // size)
                for at in fresh
            ]
            text = f"{faults[0].reason}{_more(fresh)}: the records behind it in this block are left out of all answers"
            warnings.warn(DamageWarning(text, faults, path=path), stacklevel=7)

    def malformed(self, seqs: Sequence[int], count: int) -> None:
        """The codec cannot read `count` records, which count as deleted; these are the first of them."""
        if count and self._log.framing.tells_malformed:
            refused = self._log.refuses_malformed()
            if refused is not None:
                raise refused
            self.has_malformed = True
            numbers = [seq + 1 for seq in seqs] if self._log.framing.names_malformed else []
            named = ", ".join(f"{number:,}" for number in numbers[:_NAMED]) + (", …" if count > _NAMED else "")
            what = f"{count:,} lines" if count > 1 else "a line"
            form = self._log.codec.name.upper()
            text = f"{what} cannot be read as {form}, left out of all answers{named and f': line {named}'}"
            warnings.warn(
                MalformedWarning(
                    text, numbers, count, path=self._log.path, remedy=Remedy("", "jitdb info says which and why")
                ),
                stacklevel=6,
            )

    def left_out(self, faults: Sequence[LogCorrupt], records: int) -> None:
        """These blocks are damaged, which costs so many records that were known."""
        broken = [fault.offset for fault in faults if fault.expected is None and fault.offset is not None]
        self.broken_at(broken)
        wrong = [fault for fault in faults if fault.offset not in broken]
        if wrong:
            text = f"{wrong[0].reason}{_more(wrong)}. {records:,} records are left out of all answers"
            warnings.warn(DamageWarning(text, wrong, path=self._log.path, remedy=wrong[0].remedy), stacklevel=6)


def _more(found: Sequence[object]) -> str:
    return f" (and {len(found) - 1:,} more blocks)" if len(found) > 1 else ""
