"""Logs whose records were deleted, copies of their files, and what is asked of them."""

from __future__ import annotations

import os
import shutil
import warnings
from pathlib import Path

import pytest
from engine_helpers import POSTS, VOTES, check, messages, oracle_of

from jitdb import JITDB, Log
from jitdb.errors import JitdbWarning, RecordDeleted
from jitdb.log.blocks.block_format import walk_block
from jitdb.log.io import filenames
from jitdb.operators import everything, not_
from jitdb.operators.nodes.operation import Operation

ASKED: tuple[Operation, ...] = (everything(), POSTS, not_(VOTES))
SIDECAR = (filenames.META, filenames.COMMIT, filenames.CHECKSUMS, filenames.DELETIONS, filenames.INDEXES)


def all_agree(log: Log, besides: tuple[int, ...] = ()) -> None:
    """Every way of reading says what the file does (`besides`: offsets deleted whose bytes are still there)."""
    oracle = oracle_of(log, besides)
    live = [offset for seq, offset in enumerate(oracle.offsets) if seq not in oracle.deleted]
    check(JITDB(log), oracle, ASKED)
    assert [record.offset for record in log.stream()] == live
    batches = [(batch.offsets, batch.deleted) for batch in log.stream_batches()]
    assert [at for offsets, dead in batches for at in offsets[~dead].tolist()] == live
    stats = log.stats()
    assert (stats.records, stats.deleted_records) == (len(live), len(oracle.offsets) - len(live))
    assert [each is not None for each in log.get_many_raw(oracle.offsets)] == [at in live for at in oracle.offsets]
    for offset in sorted(set(oracle.offsets) - set(live)):
        with pytest.raises(RecordDeleted):
            log.get(offset)


def ask(path: Path, *, read_only: bool, deleted: tuple[int, ...] = ()) -> list[str]:
    """Open the log and ask it everything; the warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", JitdbWarning)
        with Log(path, read_only=read_only) as log:
            all_agree(log, deleted if read_only else ())
    return [str(each.message) for each in told]


def copied(source: Path, target: Path, names: tuple[str, ...] = (), *, log: bool = True) -> Path:
    """A copy of a log, with these files of its sidecar (all if none are named), modification times and all."""
    target.mkdir(parents=True, exist_ok=True)
    if log:
        shutil.copy2(source, target / source.name)
    side = target / f"{source.name}.jitdb"
    side.mkdir(exist_ok=True)
    for each in source.with_name(side.name).iterdir():
        if not names or each.name in names:
            put(each, side / each.name)
    return target / source.name


def put(source: Path, target: Path) -> None:
    """Put a file, or a folder, in the place of what is there."""
    if target.is_dir():
        shutil.rmtree(target)
    (shutil.copytree if source.is_dir() else shutil.copy2)(source, target)


def remove(path: Path) -> None:
    (shutil.rmtree if path.is_dir() else os.unlink)(path)


def delete(path: Path, *seqs: int) -> list[int]:
    with Log(path) as log:
        offsets = [offset for batch in log.stream_batches() for offset in batch.offsets.tolist()]
        for seq in seqs:
            log.delete(offsets[seq])
    return [offsets[seq] for seq in seqs]


BEFORE, SINCE = range(3, 9), range(20, 38)


def indexed(path: Path) -> Path:
    """A log of 60 records in some blocks, indexed, closed."""
    with Log(path, codec="bipf", block_size=1024) as log:
        log.append_many(messages(60))
        log.flush()
        JITDB(log).prepare(*ASKED)
    return path


def standing(path: Path) -> list[tuple[int, bytes]]:
    """Offset and bytes of every record in the file that is not zeros, wherever a sidecar says that it ends."""
    data, found = path.read_bytes(), []
    for begin in range(0, len(data), 1024):
        walk = walk_block(data[begin : begin + 1024], 1024, 1024)
        for position, length in zip(walk.positions, walk.lengths, strict=True):
            record = data[begin + position + 2 : begin + position + 2 + length]
            if any(record):
                found.append((begin + position, record))
    return found


def judge(path: Path, *, read_only: bool) -> list[str]:
    """Open the log: it holds what its file does. Or it says that it leaves the last of it out, and loses nothing of
    that; or, of checksums that are another moment's, that a block does not fit. The warnings.
    """
    there = standing(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", JitdbWarning)
        with Log(path, read_only=read_only) as log:
            held = [(record.offset, record.value) for record in log.stream(raw=True)]
            end = log.durable_end
    told = [str(each.message) for each in caught]
    if any("is damaged: expected CRC" in each for each in told):
        assert set(held) < set(there)
    elif held != there:
        assert held == there[: len(held)], "other records than those of the file"
        assert end <= there[len(held)][0]
        assert any("a.log.jitdb/" in each and f"{end:,}" in each for each in told), f"left out silently, but {told}"
        if not read_only:
            (kept,) = (path.parent / "a.log.jitdb").glob(f"torn-{end}-*")
            behind = kept.read_bytes()
            assert all(behind[at + 2 - end : at + 2 - end + len(each)] == each for at, each in there[len(held) :])
    return told
