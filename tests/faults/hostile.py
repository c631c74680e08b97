"""Index files and files of the sidecar that somebody made up: every checksum is right, and what they say is not.

A small database in one of many states (settled, killed in the middle of a flush, a deletion, a compaction, a repair)
has fields of one of its files set to other values, and all checksums over them computed anew. Whoever opens it gets
answers or a JitdbError, in little memory. What a made-up index says may be wrong then, but `verify` knows it, and
before anybody asks: a question that comes upon it builds the indexes anew.
"""

from __future__ import annotations

import os
import resource
import shutil
import struct
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Final, NamedTuple
from zlib import crc32

from engine_helpers import expected, message, oracle_of
from faults.campaign import Campaign
from faults.flipped import QUESTIONS
from faults.simulated import Process, Stopped, let_go, running
from faults.simulated_disk import Disk

from jitdb import JITDB
from jitdb.errors import JitdbError, JitdbWarning
from jitdb.log import Log

PATH: Final = "/disk/a.log"
CASES: Final = 10  # of one seed
STATES: Final = 24  # moments of the history at which it is killed; the last one is its end
MEMORY: Final = 1 << 30  # bytes of address space that a visit may take: much less than what a u32 can announce


class Files(NamedTuple):
    """A database as files: their bytes and modification times, by name."""

    content: dict[str, tuple[bytes, int]]
    settled: bool


def history(disk: Disk, stop_at: int = -1) -> int:
    """Append, delete, index, compact and repair, up to a change at which the process is killed; how many it made."""
    process = Process(disk, stop_at=stop_at)
    log: Log | None = None
    try:
        with running(process), warnings.catch_warnings():
            warnings.simplefilter("ignore", JitdbWarning)
            log = Log(PATH, codec="bipf", block_size=1024, flush_interval=3600)
            for first in (0, 25):
                offsets = log.append_many([message(number) for number in range(first, first + 25 - 10 * (first > 0))])
                log.flush()
                log.delete(offsets[3])
                log.flush()
                JITDB(log, threads=1).prepare(*QUESTIONS)
            log.delete(offsets[4])
            log.compact()
            log.append(message(40))
            log.close()
            damaged = disk.files()[PATH].data
            for at in (100, 200, 1100):
                damaged[at] ^= 0x55
            log = Log(PATH, flush_interval=3600)
            log.repair()
            JITDB(log, threads=1).prepare(*QUESTIONS)
            log.append(message(41))
            log.close()
    except Stopped:
        pass
    finally:
        if log is not None:
            let_go(log, process)
    return process.changes


@lru_cache
def states() -> tuple[Files, ...]:
    """The database as each of the kills leaves it."""
    return tuple(_files(stop) for stop in _stops())


def _stops() -> Iterator[int]:
    changes = history(_empty())
    for number in range(1, STATES):
        yield changes * number // STATES + 1
    yield -1


def _empty() -> Disk:
    disk = Disk()
    disk.mkdir("/disk")
    return disk


def _files(stop: int) -> Files:
    disk = _empty()
    history(disk, stop)
    return Files({path: (bytes(file.data), file.time) for path, file in disk.files().items()}, stop < 0)


# --- made-up files ---------------------------------------------------------------------------------------------------


def number(rng: Random, old: int, width: int, size: int) -> int:
    """Another value of a field of so many bytes, in a file of this size."""
    top = 1 << 8 * width
    near = (old + 1, old - 1, old + 2, 2 * old, old // 2, size, size // 2, rng.randrange(64))
    far = (0, 1, top - 1, top // 2, top // 2 - 1, 1 << 31, (1 << 32) - 1, 1 << 20, 1 << 30, 1 << 40, rng.randrange(top))
    return rng.choice(rng.choice((near, far))) % top


def with_field(rng: Random, data: bytes) -> bytes:
    """The bytes with one field, or a few, set to something else; sometimes more or fewer of them."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if not made:
            break
        width = rng.choice((1, 2, 4, 4, 8, 8))
        at = rng.randrange(len(made))
        at -= at % min(width, 4)  # most fields stand at multiples of four
        old = int.from_bytes(made[at : at + width], "little")
        value = number(rng, old, width, len(data)).to_bytes(width, "little")
        made[at : at + width] = value[: len(made) - at]
    return bytes(made)


def resized(rng: Random, data: bytes) -> bytes:
    """As with_field, or with bytes that are too many or missing."""
    if rng.random() < 0.85:
        return with_field(rng, data)
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.choice((1, 4, 8)) :] if rng.random() < 0.5 else data[:at] + bytes(8) + data[at:]


def sealed(body: bytes) -> bytes:
    return body + struct.pack("<I", crc32(body))


def made_up_whole(rng: Random, data: bytes) -> bytes:
    """A file with one CRC at its end: meta, moved."""
    return sealed(resized(rng, data[:-4]))


def made_up_entries(head: int, entry: int) -> Callable[[Random, bytes], bytes]:
    """A file of entries behind a head, each with its CRC last: commit, deletions."""

    def make(rng: Random, data: bytes) -> bytes:
        begins = [*([0] if head else []), *range(head, len(data) - entry + 1, entry)]
        for _ in range(rng.choice((1, 1, 2, 3))):
            at = rng.choice(begins or [0])
            size = head if head and at == 0 else entry
            data = data[:at] + sealed(with_field(rng, data[at : at + size - 4])) + data[at + size :]
        return data + data[head:] * rng.choice((0, 0, 0, 1, 50))

    return make


def made_up_checksums(rng: Random, data: bytes) -> bytes:
    if rng.random() < 0.3 or len(data) < 32:
        return sealed(with_field(rng, data[:20])) + data[24:]
    block = rng.randrange((len(data) - 24) // 8)
    crc = rng.randrange(1 << 32)
    entry = struct.pack("<II", crc, crc32(struct.pack("<QII", block, int.from_bytes(data[16:20], "little"), crc)))
    return data[: 24 + 8 * block] + entry + data[32 + 8 * block :]


def made_up_nested(head: int, parts: tuple[int, ...]) -> Callable[[Random, bytes], bytes]:
    """A file with a CRC at its end, in which other entries with theirs stand one after the other: next."""

    def make(rng: Random, data: bytes) -> bytes:
        at = head
        for size in parts:
            if rng.random() < 0.5:
                data = data[:at] + sealed(with_field(rng, data[at : at + size - 4])) + data[at + size :]
            at += size
        body = data[:-4]
        return sealed(resized(rng, body[:head]) + body[head:at] + resized(rng, body[at:]))

    return make


def made_up_index(rng: Random, data: bytes) -> bytes:
    length = int.from_bytes(data[8:12], "little")
    text, at = data[12 : 12 + length], 16 + length
    head = data[:at]
    if rng.random() < 0.15:
        head = sealed(data[:8] + _length(rng, text := _text(rng, text)) + text)
    segments = []
    while at + 64 <= len(data):
        blobs, meta, body = struct.unpack_from("<IIQ", data, at + 40)
        end = at + 64 + meta + 12 * blobs + body
        if end > len(data):  # the power took its end
            break
        segments.append((data[at : at + 60], data[at + 64 : at + 64 + meta], data[at + 64 + meta : end], blobs))
        at = end
    if segments:
        which = rng.randrange(len(segments))
        segments[which] = _made_up_segment(rng, *segments[which])
    return head + b"".join(_segment(*each) for each in segments) + data[at:]


def _length(rng: Random, text: bytes) -> bytes:
    return struct.pack("<I", len(text) if rng.random() < 0.9 else number(rng, len(text), 4, len(text)))


def _text(rng: Random, text: bytes) -> bytes:
    values = (b"1e999", b"[" * 100_000, b"null", b"{}", b"[[[1]]]", b'"\\ud800"', b"-1", b"9" * 5000, b"[]", b"true")
    marks = [at for at, byte in enumerate(text) if byte in b':,"{[']
    at = rng.choice(marks)
    return text[: at + 1] + rng.choice(values) + text[at + rng.choice((1, 2, 3)) :] if rng.random() < 0.8 else values[1]


def _made_up_segment(rng: Random, head: bytes, meta: bytes, rest: bytes, blobs: int) -> tuple[bytes, bytes, bytes, int]:
    table, body = rest[: 12 * blobs], rest[12 * blobs :]
    what = rng.random()
    if what < 0.35:
        return with_field(rng, head[:56]) + head[56:], meta, rest, blobs
    if what < 0.55:
        made = resized(rng, meta)
        return head[:44] + struct.pack("<I", len(made)) + head[48:], made, rest, blobs
    rows = [list(struct.unpack_from("<QI", table, 12 * row)) for row in range(blobs)]
    parts = []
    for row in rows:
        parts.append(body[: row[0]])
        body = body[row[0] :]
    if rows:
        which = rng.randrange(len(rows))
        if what < 0.7:
            rows[which][0] = number(rng, rows[which][0], 8, len(rest))
        else:
            parts[which] = resized(rng, parts[which])
            rows[which] = [len(parts[which]), crc32(parts[which])]
            head = head[:48] + struct.pack("<Q", sum(map(len, parts))) + head[56:]
    return head, meta, b"".join(struct.pack("<QI", *row) for row in rows) + b"".join(parts), blobs


def _segment(head: bytes, meta: bytes, rest: bytes, blobs: int) -> bytes:
    head = head[:56] + struct.pack("<I", crc32(rest[: 12 * blobs], crc32(meta)))
    return sealed(head) + meta + rest


MADE_UP: Final[dict[str, Callable[[Random, bytes], bytes]]] = {
    "index": made_up_index,
    "meta": made_up_whole,
    "commit": made_up_entries(0, 64),
    "checksums": made_up_checksums,
    "deletions": made_up_entries(16, 16),
    "moved": made_up_whole,
    "next": made_up_nested(8, (76, 64)),
}


def kind_of(path: str) -> str:
    """Which of these files it is; "" for another."""
    name = path.rsplit("/", 1)[-1]
    if name.endswith(".index"):
        return "index"
    name = name.removeprefix("next-").split("-")[0]
    return name if name in MADE_UP else ""


# --- visits ----------------------------------------------------------------------------------------------------------


@contextmanager
def little_memory() -> Iterator[None]:
    """Who asks the system for more address space than there is reason to gets a MemoryError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def visit(path: Path, exact: list[list[int]] | None) -> None:
    """Do with the log what can be done with one. `exact` are the answers that indexes alone can spoil."""
    with suppress(JitdbError), Log(path, read_only=True) as log:
        db = JITDB(log, threads=1, progress=False)
        is_sound = exact is None or db.verify().ok
        answers = []
        for operation in QUESTIONS:
            with suppress(JitdbError):
                assert db.count(operation) >= 0
                answers.append(db.all(operation, as_offsets=True))
        assert not is_sound or exact in (None, answers), "wrong answers, and verify() knew of nothing"
        log.verify()
        list(log.stream())
    with suppress(JitdbError), Log(path, flush_interval=3600) as log:
        log.append(message(50))
        log.flush()
        db = JITDB(log, threads=1, progress=False)
        for operation in QUESTIONS:
            db.count(operation)
        log.delete(log.since)
        log.flush()
        log.compact()
        log.repair()
        db.count(QUESTIONS[0])


def put(files: Files, folder: Path, changed: dict[str, bytes]) -> Path:
    """The database in a real folder, with some of its files changed."""
    for name, (data, time) in files.content.items():
        path = folder / name.removeprefix("/disk/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(changed.get(name, data))
        os.utime(path, ns=(time, time))
    return folder / "a.log"


@lru_cache
def exact_answers() -> list[list[int]]:
    with tempfile.TemporaryDirectory() as folder, Log(put(states()[-1], Path(folder), {}), read_only=True) as log:
        oracle = oracle_of(log)
        return [expected(oracle, operation) for operation in QUESTIONS]


def run(seed: int) -> int:
    for number in range(seed * CASES, (seed + 1) * CASES):
        rng = Random(number)
        files = rng.choice(states()) if rng.random() < 0.6 else states()[-1]
        wanted = rng.choice(tuple(MADE_UP))
        if not any(kind_of(name) == wanted for name in files.content):
            files = rng.choice([each for each in states() if any(kind_of(name) == wanted for name in each.content)])
        target = rng.choice(sorted(name for name in files.content if kind_of(name) == wanted))
        made = {target: MADE_UP[wanted](rng, files.content[target][0])}
        exact = exact_answers() if files.settled and wanted == "index" else None
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), little_memory():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", JitdbWarning)
            try:
                visit(put(files, Path(folder), made), exact)
            except BaseException as error:
                kept = Path(tempfile.gettempdir()) / f"hostile-{number}"
                shutil.rmtree(kept, ignore_errors=True)
                error.add_note(f"case {number}: {target}, as it was in {put(files, kept, made)}")
                raise
    return CASES


CAMPAIGN = Campaign(
    name="hostile",
    fault="fields of index files and sidecar files set to other values, all checksums computed anew",
    holds="answers or a JitdbError, in little memory; where an index makes an answer wrong, `verify` tells",
    run=run,
    short=1,
    full=1000,
)
