"""Texts out of long records, of which only these are looked at, are those that decoding the records gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitdb.common.values import UNDEFINED, value_at
from jitdb.log.codecs import get_codec
from jitdb.log.codecs import python_values as module
from jitdb.log.codecs.fields.located import RecordBatch
from jitdb.log.codecs.python_values import python_values

TEXTS = st.text(max_size=9) | st.sampled_from(["", "é", "a" * 40, "\U0001f600"]) | st.integers(0, 3) | st.none()


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(TEXTS | st.just(UNDEFINED), min_size=1, max_size=20),
    codec=st.sampled_from(["bipf", "msgpack", "json"]),
    filler=st.sampled_from(["", "x" * 100, "é" * 100]),
    near=st.sampled_from([0, 1 << 16]),
)
def test_texts_between_others(texts: list[Any], codec: str, filler: str, near: int) -> None:
    coder = get_codec(codec)
    held = [{"f": filler} | ({} if text is UNDEFINED else {"t": text}) | {"g": filler} for text in texts]
    records = [coder.encode(record) for record in held]
    lengths = np.array(list(map(len, records)), np.int64)
    starts = np.cumsum(lengths) - lengths
    buffer = np.frombuffer(b"".join(records) + bytes(64), np.uint8)
    batch = RecordBatch(buffer, starts, lengths, np.zeros(len(records), np.uint8), starts)
    (values,), _ = coder.locator([("t",)]).fields(batch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_NEAR", near)
        found = python_values(values)
    assert found == [value_at(record, ("t",)) for record in held]
    assert list(map(type, found)) == [type(value_at(record, ("t",))) for record in held]
