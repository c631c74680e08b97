"""Selected fields of several logs as arrays, batch by batch: the rows are those of a plain sort of all records."""

from __future__ import annotations

import gzip
import json
import random
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import jitdb
from jitdb import Log, LogSet
from jitdb.common.values import UNDEFINED
from jitdb.errors import LogError
from jitdb.logset import logset
from jitdb.operators import field

EARLY = 1_700_000_000_000
SELECT = ["n", "id", "value", "_path"]
AT_ONCE = 37  # records of a log
SMALL = 12  # files that are asked together


def records(chance: random.Random, name: str, count: int, ordered: bool) -> list[dict[str, Any]]:
    """Few times, so that records of many logs have the same; some have none. Values of all kinds."""
    found: list[dict[str, Any]] = []
    values = [None, True, -1, 0.5, 2**60, "é\n", [1, {"b": [2]}], {"c": {"d": 1}}, "", []]
    for at in range(count):
        record: dict[str, Any] = {"n": chance.randrange(5), "id": f"{name}.{at}"}
        if chance.random() < 0.9:
            record["timestamp"] = EARLY + (at // 9 if ordered else chance.randrange(40))
        if chance.random() < 0.7:
            record["value"] = chance.choice(values)
        found.append(record)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve small files, a compressed and a larger one that are asked alone, and a log of jitdb's own."""
    chance, folder = random.Random(5), tmp_path / "logs"
    folder.mkdir()

    def lines(name: str, count: int, ordered: bool) -> bytes:
        return b"".join(json.dumps(each).encode() + b"\n" for each in records(chance, name, count, ordered))

    for number in range(SMALL):
        (folder / f"{number:02}.ndjson").write_bytes(lines(str(number), 20, number % 2 == 0))
    (folder / "20.ndjson.gz").write_bytes(gzip.compress(lines("20", 300, True)))
    own = records(chance, "21", 250, True)
    with Log(folder / "21.log", codec="msgpack") as log:
        log.append_many(own)
    (tmp_path / "21.json").write_text(json.dumps(own))
    (folder / "22.ndjson").write_bytes(lines("22", 400, True) + b" " * 400_000 + b"\n")
    (folder / "empty.ndjson").write_bytes(b"")
    time.sleep(0.05)
    return folder


@pytest.fixture
def logs(folder: Path) -> Any:
    with jitdb.open_many(folder, progress=False, labelled=True) as logs:
        assert logs.count() == 20 * SMALL + 950
        yield logs


def every(folder: Path) -> list[dict[str, Any]]:
    """All records in the order of their logs' paths."""
    found = []
    for path in sorted(folder.iterdir()):
        if path.suffix == ".log":
            there = json.loads((folder.parent / "21.json").read_text())
        elif path.is_file():
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            there = [json.loads(line) for line in data.splitlines() if line.strip()]
        else:
            continue
        found += [{**record, "_path": str(path)} for record in there]
    return found


def expected(records: list[dict[str, Any]], descending: bool, arrival: bool) -> list[dict[str, Any]]:
    ordered = records if arrival else sorted(records, key=lambda record: record.get("timestamp", -1))
    ordered = ordered[::-1] if descending else ordered
    return [{name: record[name] for name in SELECT if name in record} for record in ordered]


def rows(logs: LogSet, query: Any = None, **given: Any) -> list[dict[str, Any]]:
    return [row for batch in logs.field_batches(query, select=SELECT, limit=AT_ONCE, **given) for row in batch.rows()]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("arrival", [False, True])
def test_all_in_order(logs: LogSet, folder: Path, descending: bool, arrival: bool) -> None:
    order = {"descending": descending, "sort_by": "arrival" if arrival else "declared"}
    wanted = expected(every(folder), descending, arrival)
    assert rows(logs, **order) == wanted
    for skipped in (1, 36, 37, 200, len(wanted) - 1, len(wanted)):
        assert rows(logs, start_from=skipped, **order) == wanted[skipped:]
    threes = [row for row in wanted if row["n"] == 3]
    assert rows(logs, field("n") == 3, **order) == threes
    assert rows(logs, field("n") == 99, **order) == []


def test_indexes_have_the_fields(logs: LogSet, folder: Path) -> None:
    """The log is not read then, but whose record it is is known."""
    for name in ("n", "id"):
        logs.query().value_counts(name)
    names = ["n", "id", "_path"]
    wanted = [{name: row[name] for name in names} for row in expected(every(folder), False, False)]
    assert [row for batch in logs.field_batches(limit=AT_ONCE, select=names) for row in batch.rows()] == wanted
    assert logs.query().to_arrow(names).to_pylist() == wanted


def test_of_many_logs_records_are_merged(logs: LogSet, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logset, "_SIDE_BY_SIDE", 1)
    assert rows(logs) == expected(every(folder), False, False)


@pytest.mark.parametrize("descending", [False, True])
def test_a_file_that_grows_meanwhile(logs: LogSet, folder: Path, descending: bool) -> None:
    """The answer is that of the beginning."""
    wanted = expected(every(folder), descending, False)
    batches = logs.field_batches(limit=AT_ONCE, select=SELECT, descending=descending)
    first = next(iter(batches)).rows()
    for name in ("03.ndjson", "22.ndjson"):
        with open(folder / name, "a") as file:
            file.write(json.dumps({"n": 1, "id": "new", "timestamp": EARLY + 20}) + "\n")
    assert first + [row for batch in batches for row in batch.rows()] == wanted
    logs.refresh()
    assert len(rows(logs)) == len(wanted) + 2


def test_a_file_that_goes_meanwhile(logs: LogSet, folder: Path) -> None:
    """What was not read yet is not known any more: an error, and no answer that lacks it."""
    wanted = expected(every(folder), False, False)
    batches = iter(logs.field_batches(limit=AT_ONCE, select=SELECT))
    found = next(batches).rows()
    (folder / "03.ndjson").write_text('{"n": 1}\n')
    with pytest.raises(LogError, match="ask again"):
        found += [row for batch in batches for row in batch.rows()]
    assert found == wanted[: len(found)]


def test_it_takes_no_pyarrow(logs: LogSet, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [
        each for each in sys.modules if each.startswith(("jitdb.logset.set_columns", "jitdb.engine.reading.arrow"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # an import of it fails
    assert rows(logs) == expected(every(folder), False, False)


def test_as_many_as_are_wanted(logs: LogSet, folder: Path) -> None:
    wanted = expected(every(folder), True, False)
    found = [
        row
        for batch in islice(logs.field_batches(limit=AT_ONCE, select=SELECT, descending=True), 3)
        for row in batch.rows()
    ]
    assert found == wanted[: len(found)]
    assert UNDEFINED not in found[0].values()
