"""Values that are there in another form, too: `ERROR` beside `error`, `"200"` beside 200, `"WARN "` beside `"WARN"`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from jitdb.common.values import STRING, value_key, value_of_key
from jitdb.indexes.kinds.bitmaps import dictionary_of

if TYPE_CHECKING:
    from jitdb.indexes.kinds.bitmaps import Dictionary
    from jitdb.indexes.segment import Segment
    from jitdb.operators.nodes.operation import Operation

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


def _padded(leaf: Operation, dictionaries: Iterable[Dictionary]) -> Iterator[Operation]:
    """The leaf with each text that differs in blanks around it alone, where a field has few values."""
    if not leaf.names_value or not isinstance(value := getattr(leaf, "value", None), str) or not value.strip():
        return
    asked, plain = value_key(value), value.strip()
    inside = value_key(plain)[1:]
    for dictionary in dictionaries:
        for key in dictionary if len(dictionary) <= _FEW else ():
            if key[0] == STRING and inside in key and key != asked and value_of_key(key).strip() == plain:
                yield leaf.changed(value=value_of_key(key))
