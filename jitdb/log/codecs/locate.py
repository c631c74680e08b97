"""The scan's entry to the codecs: find the wanted fields of many records in place, without decoding them.

Of a codec of one's own there are no kernels: `find` gives its fields one by one, and they are located as msgpack.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitdb.common.paths import Path
from jitdb.common.values import ABSENT, UNDEFINED
from jitdb.common.words import shown
from jitdb.errors import EncodeError, QueryError
from jitdb.log.codecs import get_codec
from jitdb.log.codecs.base import Codec
from jitdb.log.codecs.fields.located import LIVE, Located
from jitdb.log.codecs.fields.scratch import scratch_of
from jitdb.log.codecs.fields.trie import Trie, build_trie

if TYPE_CHECKING:
    from numpy.typing import NDArray

# How the kernels of array_kernels name a codec.
CODEC_NUMBERS: Final = {"bipf": 0, "msgpack": 1, "raw": -1}


def codec_number(codec: Codec) -> int:
    """The kernels' name of a codec. Raises QueryError for one that has no kernels."""
    if codec.name not in CODEC_NUMBERS:
        raise QueryError(
            f"records of the codec {codec.name!r} cannot be scanned in place", remedy="use bipf or msgpack"
        )
    return CODEC_NUMBERS[codec.name]


def locate(
    codec: Codec,
    buffer: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    states: NDArray[np.uint8],
    trie: Trie,
    located: Located,
) -> int:
    """Fill `located` for the records buffer[starts[i] : starts[i] + lengths[i]]; gives how many are malformed.

    `raw` records have no fields.
    """
    number = codec_number(codec)
    if number < 0 or len(trie.field) == 1:
        located.kind[:, : len(starts)] = ABSENT
        return 0
    if number == 0:
        from jitdb.log.codecs.bipf.kernels import locate as kernel
    else:
        from jitdb.log.codecs.msgpack.kernels import locate as kernel
    return int(kernel(buffer, starts, lengths, states, len(starts), *trie, *located, scratch_of(trie)))


def is_compiled(codec: Codec) -> bool:
    """Whether there are kernels for its records."""
    return codec.name in CODEC_NUMBERS


def codec_of_values(codec: Codec) -> Codec:
    """The codec of the values that find_fields locates in such records."""
    return codec if is_compiled(codec) else get_codec("msgpack")


def find_fields(
    codec: Codec,
    paths: Sequence[Path],
    trie: Trie,
    buffer: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    states: NDArray[np.uint8],
    located: Located,
    offsets: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.uint8], int]:
    """As locate(), of any codec, for the paths of the trie; gives the bytes too that `located` points into.

    offsets: of the records in the log, where they are known

    Raises QueryError where an own codec finds what is no value.
    """
    if is_compiled(codec):
        return buffer, locate(codec, buffer, starts, lengths, states, trie, located)
    records = [
        bytes(buffer.data[start : start + length]) if state == LIVE else None
        for start, length, state in zip(starts.tolist(), lengths.tolist(), states.tolist(), strict=True)
    ]
    found = [[UNDEFINED if record is None else codec.find(record, path) for path in paths] for record in records]
    malformed = sum(
        record is not None and all(value is UNDEFINED for value in values) and not codec.is_valid(record)
        for record, values in zip(records, found, strict=True)
    )
    return locate_values(codec, found, located, offsets), malformed


def locate_values(
    codec: Codec, found: Sequence[Sequence[Any]], located: Located, offsets: NDArray[np.int64] | None
) -> NDArray[np.uint8]:
    """Fill `located` with what `codec` found, [records][fields], UNDEFINED for nothing; gives the bytes it points into.

    Raises QueryError for what has no encoding, with the record's offset.
    """
    encode = get_codec("msgpack").encode
    records = []
    for values in found:
        try:
            records.append(encode({str(row): value for row, value in enumerate(values) if value is not UNDEFINED}))
        except EncodeError as error:
            where = "" if offsets is None else f"in the record at offset {int(offsets[len(records)])} "
            raise QueryError(f"{where}the codec {codec.name!r} finds {_refused(values, error)}") from None
    buffer, starts, lengths = joined(records)
    trie = build_trie([(str(row),) for row in range(located.kind.shape[0])])
    locate(get_codec("msgpack"), buffer, starts, lengths, np.zeros(len(records), np.uint8), trie, located)
    return buffer


def _refused(values: Sequence[Any], error: EncodeError) -> str:
    """Which of these values has no encoding, and why."""
    for value in values:
        try:
            if value is not UNDEFINED:
                get_codec("msgpack").encode([value])
        except EncodeError:
            return f"{shown(value)}, which cannot be asked for ({error})"
    return f"what cannot be asked for ({error})"


def joined(records: Sequence[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Records one behind the other, where each starts, and its length."""
    buffer = np.frombuffer(bytearray().join(records), np.uint8)  # writable, as a scan's: the kernels are compiled once
    lengths = np.fromiter(map(len, records), np.int64, len(records))
    return buffer, np.cumsum(lengths) - lengths, lengths
