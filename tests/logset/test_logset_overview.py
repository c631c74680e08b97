"""A set of logs shows itself: how many records, and of which time, before anything was asked, too."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import jitdb
from jitdb import LogSet
from jitdb.display.parts import Facts
from jitdb.display.sheet import Sheet
from jitdb.operators import field


def seen(logs: LogSet) -> tuple[dict[str, str], list[Any]]:
    """The facts, and what is said of the records of each log."""
    parts = logs._display().parts
    facts = next(part for part in parts if isinstance(part, Facts))
    sheet = next(part for part in parts if isinstance(part, Sheet))
    return dict(facts.pairs), [row[2] for row in sheet.rows]


def write(path: Path, first: int, count: int) -> None:
    text = "".join(json.dumps({"time": 1_700_000_000 + n, "n": 1000 + n}) + "\n" for n in range(first, first + count))
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def test_a_set_that_was_not_asked_yet(tmp_path: Path) -> None:
    write(tmp_path / "a.ndjson", 0, 100)
    write(tmp_path / "b.ndjson.gz", 100, 300)
    (tmp_path / "c.ndjson").write_bytes(b"")
    with jitdb.open_many(tmp_path) as logs:
        facts, records = seen(logs)
        assert records[:2] == ["about 100", "about 300"]
        assert facts["records"] == "about 400, by the size of some"
        assert facts["time"].startswith("2023-11-14 22:13:20Z to 2023-11-14 22:1")
        assert facts["time"].endswith(", in a sample")
        assert "about 300" in logs._repr_html_()
        logs.query(field("n") >= 0).timeline()
        facts, records = seen(logs)
        assert records[:2] == [100, 300]
        assert facts["records"] == "400"
        assert facts["time"] == "2023-11-14 22:13:20Z to 2023-11-14 22:19:59Z"


def test_a_log_that_was_asked_among_others(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / f"{name}.ndjson", 0, 120)
    with jitdb.open_many(tmp_path) as logs:
        with logs.using(logs.members[0].path) as db:
            assert db.count() == 120
        facts, records = seen(logs)
        assert records == [120, "about 120"]
        assert facts["records"] == "about 240, by the size of some"


def test_a_sample_is_of_each_log(tmp_path: Path) -> None:
    """Also where each has fields of its own; of very many logs it is of some, from the first to the last of them."""
    for number in range(40):
        lines = (json.dumps({f"own{number}": n, "n": n}) for n in range(30))
        (tmp_path / f"{number:02}.ndjson").write_text("\n".join(lines) + "\n")
    with jitdb.open_many(tmp_path) as logs:
        found = logs.fields()
        counts = {field.path[0]: field.count for field in found}
        assert (counts.pop("n"), found.total) == (1000, 1000)
        assert counts == {f"own{number}": 25 for number in range(40)}
        assert found.sheet().footer == "1,000 records of 40 logs looked at, as many of each: shares are of these"
        assert logs.fields(None).sheet().footer == "1,200 records of 40 logs looked at"
        some = logs.fields(80)
        assert (some.total, some.sheet().footer) == (
            80,
            "80 records of 20 logs of 40 looked at, as many of each: shares are of these",
        )
        assert {field.path[0] for field in some} == {"n", *(f"own{number}" for number in range(0, 40, 2))}
    with jitdb.open(tmp_path / "00.ndjson") as db:
        assert db.fields(10).sheet().footer == "10 records looked at"


def test_a_small_sample_is_from_all_over_a_log(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text("".join(json.dumps({"n": n, "x": "x" * 1000}) + "\n" for n in range(2000)))
    with jitdb.open(path) as db:
        for count in (1, 2, 4, 20, 100):
            found = [record["n"] for record in db.sample(count)]
            assert len(found) == count
            assert found[0] == 0
            assert count == 1 or found[-1] > 1500
