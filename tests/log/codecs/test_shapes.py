"""Records that a scan reads by the automaton have the fields that the general walk finds, byte for byte."""

from __future__ import annotations

import struct
from random import Random
from typing import Any

import numpy as np
import pytest
from kernel_cases import COMPILED, scan
from shape_cases import paths_of, some_records, template, twin
from thoroughness import tries

from jitdb.common.paths import Path
from jitdb.common.values import ABSENT, NUMBER
from jitdb.log.codecs import get_codec

pytestmark = pytest.mark.slow

SEEDS = tries(60, 10_000) if COMPILED else tries(6, 300)


def places(name: str, records: list[bytes], paths: list[Path], **around: Any) -> tuple[list[list[Any]], int]:
    """Of each record, of each path: kind, where it begins in the record, length and number; how many are malformed."""
    fields, malformed = scan(get_codec(name), records, paths, **around)
    before, gap = len(around.get("before", b"")), sum(map(len, around.values()))
    starts = np.cumsum([0, *(len(record) + gap for record in records)]) + before
    found = []
    for number in range(len(records)):
        row = []
        for values in fields:
            kind, length = int(values.kind[number]), int(values.length[number])
            start = int(values.start[number] - starts[number])
            value = struct.pack("<d", values.number[number])
            row.append(
                (kind,) if kind == ABSENT else (kind, length, value) if kind == NUMBER else (kind, start, length)
            )
        found.append(row)
    return found, malformed


@pytest.mark.parametrize("name", ["msgpack", "bipf"])
def test_what_the_automaton_leads_through_is_what_the_general_walk_finds(name: str) -> None:
    for seed in range(SEEDS):
        rng = Random(seed)
        shapes = [template(rng) for _ in range(rng.choice([1, 2, 3, 12]))]
        shapes += [twin(shapes[0], rng) for _ in range(rng.choice([0, 0, 1, 2]))]
        known = sorted({path for shape in shapes for path in paths_of(shape)})
        paths = rng.sample(known, rng.choice([len(known), min(len(known), rng.randrange(1, 6))])) or [("a",)]
        records = some_records(name, shapes, rng)
        found, malformed = places(name, records, paths, after=bytes(rng.choice([2, 16])))
        # Alone, a record ends where the buffer does, and takes the general walk.
        alone = [places(name, [record], paths) for record in records]
        for number, (rows, _) in enumerate(alone):
            assert found[number] == rows[0], f"seed {seed}, record {number}: {records[number]!r}, {paths}"
        assert malformed == sum(bad for _, bad in alone), f"seed {seed}"


@pytest.mark.parametrize("name", ["msgpack", "bipf"])
def test_records_of_many_fields(name: str) -> None:
    records = [get_codec(name).encode({f"field {number}": number for number in range(size)}) for size in (90, 100, 200)]
    found, malformed = places(name, records * 5, [("field 89",), ("field 150",)], after=bytes(16))
    assert malformed == 0
    assert [[row[0][0] == NUMBER, row[1][0] == NUMBER] for row in found] == [
        [True, False],
        [True, False],
        [True, True],
    ] * 5
