"""Tables of Arrow into a log, a batch of rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitdb.common.libraries import library
from jitdb.log.blocks.layout import largest_record

if TYPE_CHECKING:
    from jitdb.log.log import Log


def append_table(log: Log, table: Any) -> int:
    """See Log.append_arrow."""
    library("pyarrow")
    from jitdb.common.kernels import WAY
    from jitdb.log.codecs.rows.table_rows import RowEncoder, batches_of, rows_of

    encoder = RowEncoder() if WAY == "native" and log.codec.name in ("msgpack", "bipf") else None
    count = 0
    for batch in batches_of(table):
        found = None if encoder is None else encoder.encode(batch, log.codec, largest_record(log.block_size))
        if found is None:
            log.append_many(rows_of(batch))
        else:
            log.append_encoded(*found)
        count += batch.num_rows
    return count
