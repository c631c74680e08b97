"""Values that are there in another form, too: `ERROR` beside `error`, `"200"` beside 200, `"WARN "` beside `"WARN"`,
`{"code": 200}` and `[200]` beside 200.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.values import ARRAY, STRING, value_key, value_of_key
from jitdb.indexes.kinds.bitmaps import dictionary_of
from jitdb.indexes.kinds.columns import count_of, value_keys
from jitdb.operators.nodes.equal import Equal

if TYPE_CHECKING:
    from jitdb.indexes.kinds.bitmaps import Dictionary
    from jitdb.indexes.segment import Segment
    from jitdb.operators.nodes.operation import Operation

COLOURS: Final = r"\x1b\[[0-9;]*m"  # of a terminal
_FEW: Final = 256  # values of a field that are looked through: levels and the like


def spelled_otherwise(leaf: Operation, segments: Sequence[Segment]) -> list[Operation]:
    """The leaf with each value that these bitmaps hold and that may have been meant, too. Reads no record."""
    dictionaries = list(map(dictionary_of, segments))
    wanted = ((other, other.bitmap) for other in leaf.others())
    found = [
        other
        for other, bitmap in wanted
        if bitmap is not None and any(dictionary.find(bitmap[1]) >= 0 for dictionary in dictionaries)
    ]
    return list(dict.fromkeys([*found, *_padded(leaf, dictionaries)]))


def few_values(segments: Sequence[Segment]) -> list[Any]:
    """The values that these dictionaries hold; none of a segment with many. Raises IndexDamaged."""
    few = (segment for segment in segments if count_of(segment) <= _FEW)
    return list(map(value_of_key, dict.fromkeys(chain.from_iterable(map(value_keys, few)))))


def _padded(leaf: Operation, dictionaries: Iterable[Dictionary]) -> Iterator[Operation]:
    """The leaf with each text that differs in blanks around it, or colours of a terminal, alone, where a field has few
    values.
    """
    if not leaf.names_value or not isinstance(value := getattr(leaf, "value", None), str) or not value.strip():
        return
    asked, plain = value_key(value), value.strip()
    inside = value_key(plain)[1:]
    for dictionary in dictionaries:
        for key in dictionary if len(dictionary) <= _FEW else ():
            if key[0] == STRING and inside in key and key != asked and _plain(value_of_key(key)) == plain:
                yield leaf.changed(value=value_of_key(key))


def _plain(text: str) -> str:
    return re.sub(COLOURS, "", text).strip()


def held_inside(leaf: Operation, segments: Sequence[Segment]) -> Iterator[tuple[Operation, Operation]]:
    """For each map or array that these bitmaps hold and that has the value inside: what asks for it as a whole, and the
    leaf asked of what is inside: `status.code == 200` beside `status == 200`. Reads no record.
    """
    if not isinstance(leaf, Equal) or leaf.seek is not None or leaf.value is None:
        return
    keys = list(islice((key for segment in segments for key in _composed(dictionary_of(segment))), _FEW))
    if not keys:
        return
    from jitdb.operators.summaries.fields import walk  # with displays, which answers of fresh indexes need not load

    for whole in map(value_of_key, keys):
        for path, value, _ in walk(whole, leaf.paths[0]):
            if leaf.of_value(value):
                yield leaf.changed(value=whole), leaf.of_field(path)


def _composed(dictionary: Dictionary) -> Iterator[bytes]:
    """The keys of arrays and maps, which stand behind those of plain values."""
    return map(dictionary.__getitem__, range(bisect_left(dictionary, bytes([ARRAY])), len(dictionary)))
