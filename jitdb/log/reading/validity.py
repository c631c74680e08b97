"""Which records of a run does the codec refuse? By its locator where there are many."""

from __future__ import annotations

import numpy as np

from jitdb.log.blocks.walker import Bytes, Walked
from jitdb.log.codecs import Codec
from jitdb.log.codecs.fields.located import RecordBatch


def invalid_records(codec: Codec, data: Bytes, walked: Walked, *, compiled: bool) -> list[int]:
    """The numbers of the live records that are no value of the codec, in order."""
    if codec.name == "raw":
        return []
    records = RecordBatch(data, walked.starts, walked.lengths, walked.deleted.view(np.uint8))
    numbers = codec.locator(()).invalid(records).tolist() if compiled else records.live()
    return [number for number in numbers if not codec.is_valid(records.record(number))]
