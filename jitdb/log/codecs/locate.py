"""The scan's entry to the codecs: find the wanted fields of many records in place, without decoding them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jitdb.errors import QueryError
from jitdb.log.codecs.base import Codec
from jitdb.log.codecs.located import Located
from jitdb.log.codecs.trie import Trie
from jitdb.values import ABSENT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# How the kernels of array_kernels name a codec.
CODEC_NUMBERS: Final = {"bipf": 0, "msgpack": 1, "raw": -1}


def codec_number(codec: Codec) -> int:
    """The kernels' name of a codec. Raises QueryError for one that has no kernels."""
    if codec.name not in CODEC_NUMBERS:
        raise QueryError(f"records of the codec {codec.name!r} cannot be scanned in place; use bipf or msgpack")
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
        from jitdb.log.codecs.bipf_kernels import locate as kernel
    else:
        from jitdb.log.codecs.msgpack_kernels import locate as kernel
    return int(kernel(buffer, starts, lengths, states, len(starts), *trie, *located))
