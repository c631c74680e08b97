"""An answer that is passed through once has the order of one that is sorted as a whole."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_engine_spans import SMALL
from thoroughness import tries

import jitdb
from jitdb.engine.answering import passing as module
from jitdb.engine.answering.order import Answer
from jitdb.engine.answering.passing import passing
from jitdb.indexes.kinds.roaring import bitmap_of, bitmap_of_range, members_of
from jitdb.operators import gte

_FAR = 1_700_000_000_000_000_000  # nanoseconds: doubles lie 256 apart there, and the rest decides
_times = st.one_of(
    st.integers(0, 9).map(lambda step: _FAR + step), st.integers(0, 9).map(lambda step: _FAR + 512 * step),
    st.none(), st.just(...), st.just("no time"), st.integers(0, 3),
)  # fmt: skip


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spans, zones and steps of few records."""
    for name in ("engine.building.scan", "indexes.kinds.set_builders", "indexes.files.index", "engine.catalog.carry"):
        importlib.import_module(f"jitdb.{name}")
    for name, each in list(sys.modules.items()):
        for constant, value in SMALL.items():
            if name.startswith("jitdb.") and hasattr(each, constant):
                monkeypatch.setattr(each, constant, value)
    monkeypatch.setattr(module, "_STEP", 3)
    monkeypatch.setattr(module, "_FIRST", 1)


@settings(
    max_examples=tries(40, 1000), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # fmt: skip
@given(data=st.data())
def test_the_order_is_the_same(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    times = data.draw(st.lists(st.tuples(_times, st.integers(-2, 2) | st.just(...)), min_size=1, max_size=12), "times")
    grows = data.draw(st.sampled_from([0, 1, 300, 5000]), "grows")
    count = data.draw(st.integers(1, 20), "rounds")
    path = tmp_path_factory.mktemp("passing") / "x.ndjson"
    with path.open("w") as file:
        for number in range(count * len(times)):
            at, x = times[number % len(times)]
            at = at + grows * number if isinstance(at, int) and at > 9 else at
            record: dict[str, Any] = {"n": number, "timestamp": at, "x": x}
            file.write(json.dumps({key: value for key, value in record.items() if value is not ...}) + "\n")
    asked: dict[str, Any] = {
        "descending": data.draw(st.booleans()),
        "sort_by": data.draw(st.sampled_from(["declared", "arrival", "x", "-x"])),
        "start_from": data.draw(st.sampled_from([0, 0, 5, 70])),
        "question": data.draw(st.sampled_from([None, gte(0, "x")])),
    }
    with jitdb.open(path, indexes="memory", progress=False) as db:
        if data.draw(st.booleans(), "indexed"):
            db.value_counts("n")
        portion = data.draw(st.sampled_from([1, 7, 1000]), "portion")
        found = [row["n"] for batch in db.field_batches(select=["n"], limit=portion, **asked) for row in batch.rows()]
        start, question = asked.pop("start_from"), asked.pop("question")
        assert found == [record["n"] for record in db.paginate(question, limit=None, **asked).data][start:]


@pytest.mark.parametrize("descending", [False, True])
def test_what_is_left_of_it(descending: bool) -> None:
    some = bitmap_of_range(5, 400) - bitmap_of_range(70, 90)
    answer = passing(Answer(some, None), descending)
    assert type(answer) is not Answer
    members = members_of(some)[::-1] if descending else members_of(some)
    for start in (0, 3, 3, 10, 100):
        assert answer.page(start, 4, descending).tolist() == members[start : start + 4].tolist()
        assert answer.page(start, 9, descending).tolist() == members[start : start + 9].tolist()
        for passed in (start, start + 2):
            assert answer.rest(passed, descending) == some - bitmap_of(sorted(members[:passed]))
    assert answer.page(100, None, descending).tolist() == members[100:].tolist()
    assert not len(answer.page(400, 4, descending))


def test_an_error_between_two_pages_costs_no_records(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "x.ndjson"
    path.write_text("".join(f'{{"n": {n}, "timestamp": {1_700_000_000_000 + n}}}\n' for n in range(200)))
    with jitdb.open(path, indexes="memory", progress=False) as db:
        manager = db._manager
        wanted = db.paginate(limit=None).data
        order = manager.order(True)
        answer = passing(Answer(bitmap_of_range(0, 200), order), descending=False)
        found = answer.page(0, 10, False).tolist()
        with monkeypatch.context() as patch:
            patch.setattr(module, "load_numbers", lambda *_, **__: (_ for _ in ()).throw(OSError(5, "broken")))
            with pytest.raises(OSError, match="broken"):
                answer.page(10, 150, False)
        found += answer.page(10, None, False).tolist()
        assert found == [record["n"] for record in wanted]
