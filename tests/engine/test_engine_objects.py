"""Fields that hold objects: as values, and when there are too many of them for bitmaps."""

from __future__ import annotations

from pathlib import Path

import pytest

from jitdb import JITDB, Log
from jitdb.indexes import field_builder
from jitdb.indexes.numbering import NumberingTable
from jitdb.indexes.segment import BITMAPS, PREFIXES
from jitdb.operators import absent, equal
from jitdb.plan import CoreFields, requirement


def kind_of(db: JITDB) -> int:
    need = requirement(absent("user"), CoreFields((), ()))
    assert need is not None
    return db._upkeep._catalog.get(need.spec).kind


@pytest.mark.parametrize(("users", "kind"), [(field_builder.FEW_VALUES, BITMAPS), (5_000, PREFIXES)])
@pytest.mark.parametrize("codec", ["bipf", "msgpack"])
def test_objects_are_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: str, users: int, kind: int) -> None:
    made = []
    key = NumberingTable._key
    monkeypatch.setattr(NumberingTable, "_key", lambda table, entry: made.append(entry) or key(table, entry))
    with Log(tmp_path / "log", codec=codec) as log:
        log.append_many([{"user": {"id": number % users, "tags": ["a", number % users]}} for number in range(20_000)])
        log.append({"note": "no user"})
        log.flush()
        db = JITDB(log, threads=2)
        assert db.count(absent("user")) == 1
        assert kind_of(db) == kind
        assert len(made) <= 4 * field_builder.FEW_VALUES + 4, "every object was decoded to learn that they are many"
        same = sum(number % users == 7 for number in range(20_000))
        assert db.count(equal("user", {"tags": ["a", 7], "id": 7.0})) == same
        assert db.count(equal("user", {"id": 7})) == 0
