"""Writing a table into folders `name=value`, with a log in each: `service=api/day=2026-11-21/records.log`.

A task writes one file, as for one log, in which the records of a folder are a stretch. The driver checks all of them,
and then

    overwrite   makes all the logs in the job's folder, which then takes the place of the old one
    append      appends to one log after the other. Before, `commit` in the job's folder says what there is to do:
                where that fails, what was appended is deleted again; where the driver dies, the next job that writes
                there does the rest

Names of folders are escaped as Hive and Spark do it.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from jitdb.common import zlib
from jitdb.errors import JitdbError, LogWarning, QueryError
from jitdb.log import Log
from jitdb.log.io.filenames import SIDECAR_SUFFIX
from jitdb.logset.member import NULL_FOLDER
from jitdb.spark_ext.errors import SparkError
from jitdb.spark_ext.writing.encoding import (
    U32,
    Encoded,
    RowEncoder,
    Target,
    Written,
    chunks,
    write_bytes,
)

Put: TypeAlias = Callable[[Target, list[Written]], None]  # the parts into one log

LOG: Final = "records.log"
COMMIT: Final = "commit"
FRESH: Final = "fresh"
OLD: Final = "old"
_HELD: Final = 64 << 20  # bytes of records that a task holds: the more, the longer are stretches
_LONGEST: Final = 255  # bytes of a name
_ESCAPED: Final = frozenset("\"#%'*/:=?\\{[]^\x7f") | frozenset(map(chr, range(32)))


def escaped(text: str) -> str:
    """A name, or a value, as a part of a folder's name.

    >>> escaped("a/b=50%"), escaped("")
    ('a%2Fb%3D50%25', '__HIVE_DEFAULT_PARTITION__')
    """
    if not text:
        return NULL_FOLDER
    return "".join(f"%{ord(each):02X}" if each in _ESCAPED else each for each in text)


def folder_name(name: str, value: str | None) -> str:
    """The folder of the rows with this value. Raises SparkError.

    >>> folder_name("day", "2026-11-21"), folder_name(".x", "a.jitdb"), folder_name("n", None)
    ('day=2026-11-21', '%2Ex=a%2Ejitdb', 'n=__HIVE_DEFAULT_PARTITION__')
    """
    made = f"{escaped(name)}={NULL_FOLDER if value is None else escaped(value)}"
    if made.startswith("."):  # hidden
        made = f"%2E{made[1:]}"
    if made.endswith(SIDECAR_SUFFIX):
        made = f"{made.removesuffix(SIDECAR_SUFFIX)}%2E{SIDECAR_SUFFIX[1:]}"
    if len(os.fsencode(made)) > _LONGEST:
        raise SparkError(f"a value of the column {name!r} is too long for the name of a folder: {made[:80]}…")
    return made


def check_columns(schema: pa.Schema, by: Sequence[str]) -> None:
    """Raises QueryError for columns that no folders can be named by."""
    types = pa.types
    for name in by:
        if name not in schema.names:
            raise QueryError(f"partitionBy names the column {name!r}, and there are {', '.join(schema.names)}")
        kind = schema.field(name).type
        if not any(is_it(kind) for is_it in (types.is_string, types.is_integer, types.is_boolean, types.is_date)):
            raise QueryError(
                f"partitionBy names the column {name!r} of the type {kind}: folders are named by text, integers, "
                "dates, true and false",
                remedy="cast it to string",
            )
    if len(set(by)) < len(by) or len(by) == len(schema.names):
        raise QueryError("partitionBy names each column once, and leaves one at least to write")


def split(batch: pa.RecordBatch, by: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each folder, in their order, without the columns that it is named by."""
    codes = np.zeros(batch.num_rows, np.int64)
    texts: list[list[str]] = []
    for name in by:
        column = batch.column(name).dictionary_encode("encode")
        values = column.dictionary.cast(pa.string()).to_pylist()
        texts.append([folder_name(name, value) for value in values])
        codes = codes * len(values) + np.asarray(column.indices.cast(pa.int64()))
    rest = batch.drop_columns(list(by))
    order = np.argsort(codes, kind="stable")
    edges = np.flatnonzero(np.diff(codes[order], prepend=-1, append=-1))
    for low, high in pairwise(edges.tolist()):
        code, parts = int(codes[order[low]]), []
        for names in reversed(texts):
            code, number = divmod(code, len(names))
            parts.append(names[number])
        yield "/".join(reversed(parts)), rest.take(pa.array(order[low:high]))


def write_partitioned(
    target: Target, partition: int, attempt: str, batches: Iterable[pa.RecordBatch], keep_nulls: bool
) -> list[Written]:
    """Encode and write the rows of a partition. What it wrote of them is removed if it fails. Raises SparkError."""
    name = f"part-{partition:06d}-{attempt}"
    path = os.path.join(target.folder, name)
    done: list[Written] = []
    try:
        with open(path, "xb", buffering=0) as file:
            for folder, held in _held(target, batches, keep_nulls):
                start, size, crc = file.tell(), 0, 0
                for chunk in held:
                    head = np.array([len(chunk.lengths), *chunk.lengths], U32).tobytes()
                    for part in (head, chunk.data.data):
                        size, crc = size + len(part), zlib.crc32(part, crc)
                        write_bytes(path, file, part)
                records = sum(len(chunk.lengths) for chunk in held)
                done.append(Written(partition, name, records, size, crc, start, folder))
            os.fsync(file.fileno())
        if not done:
            os.unlink(path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(path)
        raise
    return done


def _held(target: Target, batches: Iterable[pa.RecordBatch], keep_nulls: bool) -> Iterator[tuple[str, list[Encoded]]]:
    """The records of folders, many at a time."""
    held: defaultdict[str, list[Encoded]] = defaultdict(list)
    encoder, codec, size = None, target.find_codec(), 0
    for batch in batches:
        for folder, rows in split(batch, target.by):
            encoder = encoder or RowEncoder(rows.schema, keep_nulls)
            for chunk in chunks(target, encoder.rows(rows, codec)):
                held[folder].append(chunk)
                size += len(chunk.data)
        if size > _HELD:
            yield from held.items()
            held.clear()
            size = 0
    yield from held.items()


# --- in the driver -------------------------------------------------------------------------------------------------


def logs_in(root: str) -> list[str]:
    """The logs that jobs have written there. Raises SparkError where something else is in the folder."""
    found = []
    for top, folders, files in os.walk(root):
        folders[:] = [each for each in folders if not each.endswith(SIDECAR_SUFFIX) and each != ".jitdb"]
        wrong = [each for each in files if each != LOG or top == root]
        wrong += [each for each in folders if "=" not in each]
        if wrong:
            raise SparkError(
                f"{os.path.join(top, wrong[0])} is none of what writing by folders makes",
                path=root,
                remedy=f"overwrite replaces all that is in the folder, so it must have logs {LOG} in folders "
                "name=value alone",
            )
        found += [os.path.join(top, each) for each in files]
    return sorted(found)


def commit_tree(target: Target, parts: Sequence[Written], put: Put) -> None:
    """Put the parts, which were checked, into the logs of their folders. `put` does that for one log.

    Raises SparkError, LogLocked, LogWriteFailed, LogError. Nothing was written then, or a warning says what.
    """
    by_folder: defaultdict[str, list[Written]] = defaultdict(list)
    for part in sorted(parts, key=lambda part: (part.partition, part.start)):
        by_folder[part.folder].append(part)
    if target.overwrite:
        _replace(target, by_folder, put)
        return
    before = {folder: _end_of(target, folder) for folder in by_folder}
    said = {"target": asdict(target), "before": before, "parts": [asdict(part) for part in parts]}
    _write_whole(os.path.join(target.folder, COMMIT), json.dumps(said).encode())
    done: list[str] = []
    try:
        for folder, its in by_folder.items():
            os.makedirs(os.path.join(target.path, folder), exist_ok=True)
            put(_of(target, folder), its)
            done.append(folder)
    except BaseException:
        for folder in done:
            _take_back(target, folder, before[folder])
        os.unlink(os.path.join(target.folder, COMMIT))
        raise
    os.unlink(os.path.join(target.folder, COMMIT))


def _of(target: Target, folder: str, root: str = "") -> Target:
    """The log of one folder."""
    return replace(target, path=os.path.join(root or target.path, folder, LOG), by=())


def _end_of(target: Target, folder: str) -> int:
    """Where its log ends now; 0: there is none. Raises SparkError where its records are others, LogError."""
    path = _of(target, folder).path
    if not os.path.exists(path):
        return 0
    with Log(path, read_only=True) as log:
        if log.durable_end and log.codec.name != target.codec:
            raise SparkError(
                f"expected {target.codec} records, got {log.codec.name}; nothing was written", path=path,
                remedy=f"write with codec={log.codec.name}",
            )  # fmt: skip
        return log.durable_end


def _take_back(target: Target, folder: str, end: int) -> None:
    """Delete what was appended to a log from this byte on."""
    path = _of(target, folder).path
    try:
        with Log(path) as log:
            log.delete_many([record.offset for record in log.stream(gte=end, raw=True)])
            log.flush()
    except (JitdbError, OSError) as error:
        warnings.warn(
            LogWarning(f"the job failed, and its records from byte {end:,} on cannot be deleted: {error}", path=path),
            stacklevel=2,
        )


def _replace(target: Target, by_folder: dict[str, list[Written]], put: Put) -> None:
    """Make all logs anew, and have them take the place of the folder."""
    fresh, old = (os.path.join(target.folder, name) for name in (FRESH, OLD))
    if os.path.exists(target.path):
        logs_in(target.path)
    os.mkdir(fresh)
    for folder, its in by_folder.items():
        os.makedirs(os.path.join(fresh, folder), exist_ok=True)
        put(_of(target, folder, fresh), its)
    if not os.path.exists(target.path):
        os.rename(fresh, target.path)
        return
    shutil.copystat(target.path, fresh)
    os.rename(target.path, old)
    try:
        os.rename(fresh, target.path)
    except OSError:
        os.rename(old, target.path)
        raise


def _has(path: str, end: int, record: bytes) -> bool:
    """Whether this record follows on what the log had up to a byte."""
    if not os.path.exists(path):
        return False
    with Log(path, read_only=True) as log:
        if log.durable_end <= end:
            return False
        behind = next(log.stream(gte=end, raw=True), None)
        return behind is not None and behind.value == record


def recover(folder: str, put: Put, first_of: Callable[[Target, list[Written]], Iterator[bytes]]) -> None:
    """Do what a job began whose driver died. Raises JitdbError, OSError where it cannot be done: try again."""
    root = folder.rpartition(".spark-")[0]
    if os.path.isdir(os.path.join(folder, OLD)) and not os.path.exists(root):
        os.rename(os.path.join(folder, FRESH), root)
    path = Path(folder, COMMIT)
    if not path.exists():
        return
    said = json.loads(path.read_text("utf-8"))
    target = Target(**{**said["target"], "by": tuple(said["target"]["by"])})
    by_folder: defaultdict[str, list[Written]] = defaultdict(list)
    for part in sorted((Written(**part) for part in said["parts"]), key=lambda part: (part.partition, part.start)):
        by_folder[part.folder].append(part)
    for name, its in by_folder.items():
        if not _has(_of(target, name).path, said["before"][name], next(first_of(target, its))):
            os.makedirs(os.path.join(target.path, name), exist_ok=True)
            put(_of(target, name), its)
    path.unlink()


def _write_whole(path: str, data: bytes) -> None:
    """Durable, and all of it or none."""
    with open(f"{path}.new", "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.rename(f"{path}.new", path)
