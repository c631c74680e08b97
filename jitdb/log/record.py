"""What reading a log gives: one record, a batch of them, and the log's sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Record(NamedTuple):
    """One record of a stream."""

    offset: int  # byte position of its header in the file
    seq: int  # 0-based ordinal in the log, deleted records counted
    value: Any  # what the codec decoded; bytes in a raw stream


class Batch(NamedTuple):
    """A run of consecutive records, live and deleted, of n records in all.

    `data` is a view of a buffer that the next batch overwrites: copy what is to be kept. Record i holds the bytes
    `data[starts[i] : starts[i] + lengths[i]]`.
    """

    first_seq: int
    offsets: npt.NDArray[np.int64]  # (n,) byte positions in the file
    lengths: npt.NDArray[np.int64]  # (n,) bytes, headers not counted
    deleted: npt.NDArray[np.bool_]  # (n,)
    starts: npt.NDArray[np.int64]  # (n,) position of each record's first byte in `data`
    data: npt.NDArray[np.uint8]
    damaged: npt.NDArray[np.bool_]  # (n,) in a block that is not what was written: such ones are in `deleted` too


class Stats(NamedTuple):
    """The size of a log, durable records only. `total_bytes` reaches to the end of the last one."""

    total_bytes: int
    deleted_bytes: int  # of deleted records, headers included: what compaction could give back, about
    records: int  # live ones
    deleted_records: int
    proven_blocks: int = 0  # that their checksums prove to be what was written
    damaged_records: int = 0  # in blocks that are not what was written, as far as they can be found: left out above
