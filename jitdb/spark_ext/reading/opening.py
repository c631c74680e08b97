"""Opening a log to be read, in the driver and in tasks: by its path, with its indexes where there may be some."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path as FilePath

from jitdb.log.any_log import AnyLog, open_any
from jitdb.log.io.filenames import INDEXES, sidecar_path
from jitdb.log.lines.form import line_form
from jitdb.log.lines.keeping.places import parse_entry, shelf_at, stores_of
from jitdb.log.lines.line_log import LineLog
from jitdb.log.objects.urls import is_url
from jitdb.spark_ext.errors import finding_codec, refuse_table
from jitdb.spark_ext.options import ReadOptions


def open_log(options: ReadOptions) -> AnyLog:
    """The log to be read. Raises LogError, CodecError."""
    if options.indexes == "none" or (options.indexes == "auto" and not _may_have_indexes(options)):
        return _opened(options, "memory")
    log = _opened(options, options.index_folder or None)
    if options.indexes == "auto" and isinstance(log, LineLog) and not index_folder(log, options).is_dir():
        log.close()
        return _opened(options, "memory")  # who asks without indexes leaves nothing beside somebody else's file
    return log


def _may_have_indexes(options: ReadOptions) -> bool:
    """Whether something may be kept of the log, or of its file: a look at names, which many files share."""
    path, folder = options.path, options.index_folder
    if is_url(path) or is_url(folder):
        return True
    if folder:
        return os.path.isdir(folder)
    if os.path.lexists(sidecar_path(FilePath(path))):
        return True
    inode = os.stat(path).st_ino if os.path.exists(path) else 0
    return any(inode in _kept_in(store, os.stat(store).st_mtime_ns) for store in _stores(os.path.dirname(path)))


def _stores(folder: str) -> list[FilePath]:
    return [store for store in stores_of(os.path.realpath(folder)) if store.is_dir()]


@lru_cache(maxsize=64)
def _kept_in(store: FilePath, changed: int) -> frozenset[int]:
    """The inodes of the files of which a store keeps something, as it is since then."""
    entries = map(parse_entry, os.listdir(store))
    return frozenset(entry[0] for entry in entries if entry is not None)


def _opened(options: ReadOptions, folder: str | None) -> AnyLog:
    refuse_table(options.path)
    form = line_form(options.allow_prefix, None, options.log_format)
    with finding_codec(options.path):
        return open_any(
            options.path, codec=options.codec, block_size=options.block_size, read_only=True,
            folder=None if folder and is_url(folder) else folder, form=form, shelf=shelf_at(folder),
        )  # fmt: skip


def index_folder(log: AnyLog, options: ReadOptions) -> FilePath:
    """Where the indexes of the log lie."""
    is_usual = not options.index_folder or is_url(options.index_folder)
    return FilePath(log.sidecar / INDEXES if is_usual else options.index_folder)
