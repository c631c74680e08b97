"""The rows of a task from index files, where these hold every value of its columns: then the log is not read.

The driver sees that each column has such an index, and that it knows all rows (planning.py). A task opens them where
the log's other readers do; what it cannot take from them, it reads from the log. Lines alone: of a log of jitdb's,
indexes do not tell which records cannot be decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from jitdb.engine.manager import IndexManager
from jitdb.engine.reading.indexed_fields import IndexedFields
from jitdb.engine.reading.selecting import CodedValues
from jitdb.indexes.kinds.roaring import members_of
from jitdb.log.lines.line_log import LineLog
from jitdb.log.objects.urls import is_url
from jitdb.spark_ext.reading.opening import index_folder, open_log

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.common.paths import Path
    from jitdb.log.any_log import AnyLog
    from jitdb.log.codecs.fields.located import FieldValues
    from jitdb.spark_ext.options import ReadOptions
    from jitdb.spark_ext.reading.partitions import Partition
    from jitdb.spark_ext.reading.schema import Layout, Node

ROWS: Final = 1 << 16  # of a record batch


class Columns(NamedTuple):
    """Some rows: which they are, where they lie, and the values of the layout's fields."""

    seqs: NDArray[np.int64]
    offsets: NDArray[np.int64]
    fields: list[FieldValues]


def may_serve(layout: Layout, options: ReadOptions) -> bool:
    """Whether all columns are fields as indexes may have them, or say which record it is."""
    return (
        not is_url(options.path)
        and options.indexes != "none"
        and bool(layout.paths)
        and all(map(_is_plain, layout.nodes))
        and not any(path[0] in options.shared for path in layout.paths)
    )


def _is_plain(node: Node) -> bool:
    if node.source.core:
        return node.source.core in ("seq", "offset") and pa.types.is_int64(node.type)
    return bool(node.source.path) and not node.children and not node.is_slow


def known_fields(manager: IndexManager, log: AnyLog, paths: list[Path], end: int) -> IndexedFields | None:
    """The indexes that know these fields of all records below a seq; None: not all do. Raises LogError, OSError."""
    if not isinstance(log, LineLog):
        return None
    select = tuple((str(number), path) for number, path in enumerate(paths))
    return manager.look(lambda: IndexedFields.of(manager.catalog, select, end))


def rows_from_indexes(partition: Partition, layout: Layout) -> Iterator[Columns]:
    """The rows, in order, as far as indexes have them. Raises LogError, OSError."""
    assert partition.chosen is not None
    assert partition.indexed is not None
    seqs = members_of(BitMap.deserialize(partition.chosen))
    with open_log(partition.indexed) as log:
        if (log.identity, log.generation) != (partition.snapshot.identity, partition.snapshot.generation):
            return  # reading the log says what became of it
        folder = index_folder(log, partition.indexed)
        manager = IndexManager(log, lambda: folder, partition.core, 0, False)
        known = known_fields(manager, log, layout.paths, int(seqs[-1]) + 1) if len(seqs) else None
        if known is None:
            return
        for low in range(0, len(seqs), ROWS):
            some = seqs[low : low + ROWS]
            found = known.read(some)
            if found is None:
                return
            fields = [each.plain() if isinstance(each, CodedValues) else each for each in found]
            yield Columns(some.astype(np.int64), manager.records.offsets_of(some), fields)
