"""Writing a table into a log: what the driver makes of the files that tasks leave. Knows nothing of Spark.

A task writes the records of its partition into a temporary file in a folder beside the log, `NAME.spark-JOB`, and tells
the driver its name, size and CRC. When all tasks are done, the driver checks the files and puts their records, in the
order of the partitions, into the log. The folder goes when the job ends, whatever came of it; with it goes what
attempts left that failed, or came second.

    append      by the log's own writer, which holds its lock; all of them or none (log/writing/groups.py)
    overwrite   into a new log in the folder, which then takes the log's place in one moment (log/opening/swap.py);
                so is a log filled that was empty

The folder says who keeps the job alive: the driver's Java, and the process that commits, one line of JSON each. What a
driver left that died goes with the next job that writes to the log, when this machine, in this boot, has none of them.
What another machine wrote, or this one before it was started anew, cannot be judged, and stays.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import time
import uuid
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, pairwise
from pathlib import Path
from typing import Final

import numpy as np

from jitdb.common import zlib
from jitdb.common.formats import WITH_FIELDS, either
from jitdb.errors import JitdbError, LogLocked, LogWarning
from jitdb.log import Log
from jitdb.log.blocks.block_format import DEFAULT_BLOCK_SIZE, check_block_size
from jitdb.log.codecs import get_codec
from jitdb.log.io import osfile
from jitdb.log.io.filenames import followed
from jitdb.spark_ext.errors import SparkError, finding_codec
from jitdb.spark_ext.writing.encoding import U32, Encoded, Target, Written
from jitdb.spark_ext.writing.partitioned import LOG, commit_tree, recover

_READ: Final = 8 << 20  # bytes that the driver reads, and appends, at once
_PATIENCE: Final = 60.0  # seconds that other jobs' commits are waited for: some GB
_PAUSE: Final = 0.05  # seconds between looks whether they are done

_BEGINNING: Final = 3600.0  # seconds after which the folder of a job is not empty any more, if the job lives
_KEPT_BY: Final = "kept-by"
_BOOT: Final = "/proc/sys/kernel/random/boot_id"
_BEGAN: Final = 19  # of the words behind a process's name in its stat: when it began, in ticks since the boot
_PARENT: Final = 1


def begin(
    path: str, job: str, codec: str | None, block_size: int | None, overwrite: bool, by: tuple[str, ...] = ()
) -> Target:
    """Get ready: the job's folder is there then. Raises LogError, CodecError, SparkError."""
    if block_size is not None:
        check_block_size(block_size)
    with finding_codec(path):
        target = _target(path, job, codec, block_size, overwrite, by)
    try:
        _make_folder(target)
    except OSError as error:
        raise SparkError(
            f"the folder of the job's files cannot be made ({error.strerror})",
            path=target.folder,
            remedy=f"{os.path.dirname(target.path)} must be there, be one that can be written to, and have room",
        ) from error
    kept_by_driver(target.folder)
    remove_leftovers(target.path, os.stat(target.folder).st_mtime)
    return target


def _make_folder(target: Target) -> None:
    """Who may not read the log may not look into it."""
    exists = os.path.exists(target.path)
    os.mkdir(target.folder, 0o700 if exists else 0o777)
    if exists:
        with osfile.Descriptor(osfile.fs, target.folder, os.O_RDONLY | os.O_DIRECTORY) as fd:
            osfile.fs.share(fd, os.stat(target.path))


def _target(
    path: str, job: str, codec: str | None, block_size: int | None, overwrite: bool, by: tuple[str, ...]
) -> Target:
    real = os.path.realpath(path) if by else os.fspath(followed(path, is_written=True))
    folder = f"{real}.spark-{job}"
    if by and os.path.lexists(real) and not os.path.isdir(real):
        raise SparkError("it is a file, and folders with logs are to be written", path=path)
    if by:
        some = next(iter(glob.iglob(os.path.join(glob.escape(real), *["*"] * len(by), LOG))), None)
        if some is not None and not overwrite:
            with Log(some, read_only=True) as log:
                codec = codec or log.codec.name
    elif os.path.exists(real) and not overwrite:
        with Log(real, read_only=True) as log:
            if log.durable_end:
                found = (log.codec.name, log.block_size)
                if codec not in (None, found[0]) or block_size not in (None, found[1]):
                    raise SparkError(
                        f"its records are {found[0]} in blocks of {found[1]:,} bytes",
                        path=path,
                        remedy="leave the options codec and blockSize out to append to it",
                    )
                return Target(real, folder, *found, False)
            codec, block_size = codec or log.codec.name, block_size or log.block_size
    name = get_codec(codec or "msgpack").name
    if name == "raw":
        raise SparkError(f"rows are written as {either(WITH_FIELDS)}; a raw log has no fields", path=path)
    return Target(real, folder, name, block_size or DEFAULT_BLOCK_SIZE, overwrite, by)


def commit(target: Target, parts: Sequence[Written]) -> int:
    """Put the parts, in order, into the log; gives how many records these are.

    Raises SparkError where a part is not what its task wrote, or the log has another codec by now; LogLocked,
    RecordTooLarge, LogWriteFailed, LogError. Nothing was written then.
    """
    kept_by(target.folder, os.getpid())  # it goes on for a while when the Java of the driver dies
    try:
        ordered = sorted((part for part in parts if part.name), key=lambda part: part.partition)
        for part in ordered:
            _check(target, part)
        if target.by:
            commit_tree(target, ordered, _fill)
        else:
            _fill(target, ordered)
    finally:
        clean_up(target)
    return sum(part.records for part in ordered)


def _fill(target: Target, parts: Sequence[Written]) -> None:
    """The parts into one log."""
    is_new = target.overwrite or not os.path.exists(target.path)
    _put(target, parts, _fresh(target, parts) if is_new else None)


def _put(target: Target, parts: Sequence[Written], fresh: Path | None) -> None:
    """The records into the log, whose lock is held from here on. `fresh`: a log of them, if there is one already."""
    with _opened(target) as log:
        if target.overwrite or not log.durable_end:
            log.replace_with(fresh or _fresh(target, parts), target.codec)
            return
        if log.codec.name != target.codec:
            raise SparkError(
                f"expected {log.codec.name} records, got {target.codec}: the log was made by somebody "
                "else since the job began",
                path=target.path,
                remedy="start it again",
            )
        batches = map(_as_list, _batches(target, parts))
        log.append_whole(batches, _scratch(target))


def _opened(target: Target) -> Log:
    """The log, opened for writing. Other jobs that commit are waited for, a while. Raises LogLocked, LogError."""
    until = time.monotonic() + _PATIENCE
    while True:
        others = _others(target)  # before: who has committed releases the log first, then the folder goes
        try:
            if os.path.exists(target.path):
                return Log(target.path)
            return Log(target.path, codec=target.codec, block_size=target.block_size)
        except LogLocked:
            if not (others or _others(target)) or time.monotonic() > until:
                raise
        time.sleep(_PAUSE)


def _others(target: Target) -> bool:
    """Whether another job may be committing to the log."""
    return any(folder != target.folder for folder in glob.glob(f"{glob.escape(target.root)}.spark-*"))


def _fresh(target: Target, parts: Sequence[Written]) -> Path:
    """A log of these records, closed."""
    fresh = _scratch(target)
    with Log(fresh, codec="raw", block_size=target.block_size) as log:  # the records are encoded already
        for batch in _batches(target, parts):
            log.append_encoded(*batch)
    return fresh


def _scratch(target: Target) -> Path:
    """A file that is not there yet."""
    return Path(target.folder) / f"scratch-{uuid.uuid4().hex}.log"


def clean_up(target: Target) -> None:
    """Remove all that the job's tasks left. Where that fails, a warning says so: the log is what it should be."""
    for _ in range(10):
        _remove(target.folder)
        if not os.path.exists(target.folder):
            return
        time.sleep(0.05)  # an attempt that came second is still writing
    warnings.warn(f"{target.folder}: nothing refers to it any more, it can be removed", LogWarning, stacklevel=2)


def _remove(folder: str) -> None:
    """Remove a job's folder, as far as that can be done. The file that says who keeps the job alive goes last: without
    it, nobody could tell that the rest is a dead job's.
    """
    with suppress(OSError):
        for name in sorted(os.listdir(folder), key=_KEPT_BY.__eq__):
            path = os.path.join(folder, name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
        os.rmdir(folder)


def _check(target: Target, part: Written) -> None:
    """Whether this machine sees what the task wrote."""
    if not part.name:
        return
    path = os.path.join(target.folder, part.name)
    size = crc = 0
    try:
        with open(path, "rb", buffering=0) as file:
            file.seek(part.start)
            while data := file.read(min(_READ, part.bytes - size) if target.by else _READ):
                size, crc = size + len(data), zlib.crc32(data, crc)
    except FileNotFoundError:
        raise SparkError(
            "the driver does not see what a task wrote",
            path=path,
            remedy="the log must lie on storage that all machines share",
        ) from None
    if (size, crc) != (part.bytes, part.crc):
        raise SparkError(
            f"expected {part.bytes:,} bytes with CRC {part.crc:08x}, got {size:,} with {crc:08x}; "
            "nothing was written to the log",
            path=path,
        )


def _batches(target: Target, parts: Sequence[Written]) -> Iterator[Encoded]:
    """All records, in order, some MiB at a time."""
    for part in parts:
        with open(os.path.join(target.folder, part.name), "rb") as file:
            file.seek(part.start)
            while file.tell() < part.start + part.bytes:
                head = file.read(U32.itemsize)
                count = int(np.frombuffer(head, U32)[0])
                lengths = np.frombuffer(file.read(count * U32.itemsize), U32).astype(np.int64)
                yield Encoded(np.frombuffer(file.read(int(lengths.sum())), np.uint8), lengths)


def _records(target: Target, parts: Sequence[Written]) -> Iterator[bytes]:
    return chain.from_iterable(map(_as_list, _batches(target, parts)))


def _as_list(batch: Encoded) -> list[bytes]:
    data, ends = batch.data.tobytes(), batch.lengths.cumsum().tolist()
    return [data[start:end] for start, end in pairwise([0, *ends])]


# --- folders of jobs whose driver died -------------------------------------------------------------------------------


def kept_by_driver(folder: str) -> None:
    """The driver's Java keeps the job alive: planning and committing are short-lived children of it."""
    pid, (name, words) = os.getpid(), _stat(os.getpid())
    while words and name != "java":
        pid = int(words[_PARENT])
        name, words = _stat(pid)
    if words:
        kept_by(folder, pid)


def kept_by(folder: str, pid: int) -> None:
    """This process keeps the job alive too. Nothing is said where that cannot be told from another process later."""
    start, place = _start(pid), _place()
    if start is not None and place is not None:
        with suppress(OSError), open(os.path.join(folder, _KEPT_BY), "a", encoding="utf-8") as file:
            file.write(json.dumps({"place": place, "pid": pid, "start": start}) + "\n")


def remove_leftovers(path: str, now: float) -> None:
    """Remove the folders of jobs that wrote to this log, and are over for certain.

    now: by the clock of the machine that has the folders, which need not be this one
    """
    for folder in glob.glob(f"{glob.escape(path)}.spark-*"):
        try:
            files = os.listdir(folder)
            lines = Path(folder, _KEPT_BY).read_text("utf-8").splitlines() if _KEPT_BY in files else []
            is_old = now - os.stat(folder).st_mtime > _BEGINNING
        except (OSError, UnicodeDecodeError):
            continue
        died_early = is_old and not lines and files in ([], [_KEPT_BY])  # before it could say who keeps it alive
        if died_early or (lines and all(map(_is_gone, lines))):
            try:
                recover(folder, _fill, _records)
            except (JitdbError, OSError) as error:
                said = f"a job whose driver died has not written all of its records, and now that fails, too: {error}"
                warnings.warn(LogWarning(said, path=folder), stacklevel=2)
                continue
            _remove(folder)  # where that fails, the next job tries again


def _is_gone(line: str) -> bool:
    """Whether the process of this line is gone for certain."""
    try:
        said = json.loads(line)
        pid, place = said["pid"], _place()
        if place is None or said["place"] != place:
            return False
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # it is there, or another one with its number
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return False
    return _start(pid) not in (None, said["start"])


def _place() -> str | None:
    """Where numbers of processes mean the same: one boot of one machine, and one name space of processes in it."""
    try:
        with open(_BOOT, encoding="ascii") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def _start(pid: int) -> int | None:
    words = _stat(pid)[1]
    return int(words[_BEGAN]) if words else None


def _stat(pid: int) -> tuple[str, list[str]]:
    """A process's name, and what Linux tells of it behind that; nothing of one that is not there."""
    with suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        name, _, rest = file.read().partition("(")[2].rpartition(")")
        return name, rest.split()
    return "", []
