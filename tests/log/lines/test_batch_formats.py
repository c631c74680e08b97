"""Batches whose records have what is around them: OpenTelemetry's, and CloudWatch's. Held against a plain reader."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from log.lines.otlp_oracle import Writer, records_in
from test_line_walker import SIZE, Bytes
from thoroughness import tries

from jitdb.log.codecs.json.codec import CODEC
from jitdb.log.lines import format_walker, line_walkers
from jitdb.log.lines.batch_path import elements
from jitdb.log.lines.elements import elements_in
from jitdb.log.lines.form import LineForm
from jitdb.log.lines.framing import LineFraming
from jitdb.log.lines.line_log import LineLog

pytestmark = pytest.mark.filterwarnings("ignore::jitdb.errors.MalformedWarning")

NAMES = ["otlp", "cloudwatch"]


def same(left: Any, right: Any) -> bool:
    """Whether two lists of records are the same, types of numbers included."""
    return repr(left) == repr(right) or json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def walked(data: bytes, most: int, framing: LineFraming, start: int = 0) -> list[tuple[int, Any]]:
    """The records as scans of chunks find them, and their offsets."""
    log = Bytes(data)
    walker = framing.walker(log, most, log.durable_end)
    found: list[tuple[int, Any]] = []
    for begin in range(start - start % SIZE, log.durable_end, most):
        for count, *_ in walker.walks(begin, start):
            low = int(walker.room.starts[:count].searchsorted(start - begin)) if begin < start else 0
            if low == count:
                continue
            batch = walker.batch(low, count, begin)
            batch.states[CODEC.locator([]).invalid(batch)] = 1
            assert batch.offsets is not None
            found += [(int(batch.offsets[number]), CODEC.decode(batch.record(number))) for number in batch.live()]
    return found


@pytest.fixture(scope="module", params=[1, 3, line_walkers.MOST])
def _room(request: Any) -> Iterator[None]:
    """So many elements are found by a walk, and few of them are given at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_walkers, "MOST", request.param)
        patch.setattr(format_walker, "_MOST", 300 if request.param < 9 else format_walker._MOST)
        yield


@pytest.mark.usefixtures("_room")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("odd", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("seed", range(tries(8, 300)))
def test_records_are_those_of_the_oracle(tmp_path: Path, name: str, odd: float, seed: int) -> None:
    rng = random.Random(seed)
    writer = Writer(rng, odd)
    lines = [writer.line(name) for _ in range(rng.randrange(1, 7))]
    data = b"".join(line + b"\n" for line in lines)
    path = tmp_path / "a.jsonl"
    path.write_bytes(data)
    form = LineForm(format=name)
    wanted = [records_in(line, name) for line in lines]
    expected = [record for records in wanted for record in records or []]
    with LineLog(path, folder="memory", form=form) as log:
        found = list(log.stream())
        assert same([record.value for record in found], expected)
        raws = log.get_many_raw([record.offset for record in found])
        assert same([json.loads(raw or b"") for raw in raws], expected)
        shuffled = rng.sample(found, len(found))
        raws = [log.get_many_raw([record.offset])[0] for record in shuffled]
        assert same([json.loads(raw or b"") for raw in raws], [record.value for record in shuffled])
        wrong = {number for number, records in enumerate(wanted, 1) if records is None and lines[number - 1].strip()}
        assert wrong <= set(log.malformed())
    places = [(record.offset, record.value) for record in found]
    framing = LineFraming(form)
    for most in (SIZE, 3 * SIZE, 64 * SIZE):
        assert same(walked(data, most, framing), places)
        if places:
            number = rng.randrange(len(places))
            assert same(walked(data, most, framing, places[number][0]), places[number:])
    for line, records in zip(lines, wanted, strict=True):
        if records is not None and line.strip() and line.lstrip()[:1] in (b"{", b"["):
            assert elements_in(line, framing).elements()[: len(elements(line, form.path))] == elements(line, form.path)
