"""Values, records and reference functions that the tests of all codecs share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from thoroughness import tries

from jitdb.common.values import UNDEFINED
from jitdb.testing import codecs

DATA = Path(__file__).parents[2] / "data"

# Lone bytes of 0x80 and above, as decoding with surrogateescape gives them; two of them never form UTF-8 by chance.
not_utf8 = st.lists(st.sampled_from("\udcff\udcfea-"), max_size=6).map("".join)
keys = st.one_of(st.sampled_from(["", "a", "b", "c", "type", "é", "k" * 16, "k" * 300]), st.text(max_size=6), not_utf8)
finite = st.floats(allow_nan=False, allow_infinity=False)
small_ints = st.integers(-(2**31) + 1, 2**31 - 1)
plain_scalars = st.one_of(
    st.none(),
    st.booleans(),
    small_ints,
    st.integers(-(2**53), 2**53),
    finite,
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 1e300, 5e-324, 2.0**31, -(2.0**31), 2**31 - 1, -(2**31), 2**53]),
    st.text(max_size=20),
    st.text(alphabet="x", min_size=10, max_size=3000),
    not_utf8,
)
scalars = plain_scalars | st.binary(max_size=20)


def containers(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=5),
        max_leaves=25,
    )


values = containers(scalars)
bipf_values = containers(scalars | st.just(UNDEFINED))
msgpack_values = containers(
    scalars | st.integers(-(2**63), 2**64 - 1) | st.sampled_from([math.inf, -math.inf, math.nan])
)
json_values = containers(plain_scalars | st.integers(-(2**63), 2**64 - 1))
maps = st.dictionaries(keys, values, max_size=6)
json_maps = st.dictionaries(keys, json_values, max_size=6)
paths = st.lists(st.sampled_from(["", "a", "b", "c", "type", "nowhere"]), min_size=0, max_size=4).map(tuple)


def same(first: Any, second: Any) -> bool:
    """Equality as the values floor means it: 1 == 1.0, but true is not 1, and NaN equals NaN."""
    if isinstance(first, dict) and isinstance(second, dict):
        return list(first) == list(second) and all(same(first[key], second[key]) for key in first)
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    return first == second or (first != first and second != second)


def walk(value: Any, path: tuple[str, ...]) -> Any:
    """What `find` must give: the field of a decoded value."""
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return UNDEFINED
        value = value[key]
    return value


def records_of(name: str) -> list[bytes]:
    """The records of a log in tests/data, deleted ones included."""
    data = (DATA / name).read_bytes()
    records = []
    for block in range(0, len(data), 65536):
        offset = block
        while offset + 2 <= block + 65536:
            length = int.from_bytes(data[offset : offset + 2], "little")
            if not length:
                break
            records.append(data[offset + 2 : offset + 2 + length])
            offset += 2 + length
    return records


class CodecTests(codecs.CodecTests):
    """With as many values as there is time for."""

    tries = tries(20, 600)
