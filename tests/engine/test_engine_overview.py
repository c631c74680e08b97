"""What a database, a set of logs and a query show of themselves: true, estimates said to be, and no scan."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitdb
from jitdb import JITDB, Log
from jitdb.display.parts import Display, Facts
from jitdb.display.sheet import Sheet
from jitdb.engine.catalog import log_content
from jitdb.engine.progress import IndexStatus, Status
from jitdb.operators import deferred, everything, field, query

FIXTURE = Path(__file__).parents[1] / "data" / "ssb-5k-deleted.bipf"
POSTS = field("value.content.type") == "post"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return Path(shutil.copy(FIXTURE, tmp_path / "ssb.bipf"))


def facts(shown: Display) -> dict[str, Any]:
    (found,) = (part for part in shown.parts if isinstance(part, Facts))
    return dict(found.pairs)


def sheets(shown: Display) -> list[Sheet]:
    return [part for part in shown.parts if isinstance(part, Sheet)]


def test_a_log_without_indexes_is_estimated_and_nothing_is_built(log: Path) -> None:
    with jitdb.open(log, read_only=True) as db:
        told = facts(db._display())
        assert told["records"].startswith("about ")
        assert 3_000 < int(told["records"].split()[1].replace(",", "")) < 7_000
        assert told["time"].endswith("in a sample")
        assert "no indexes yet" in str(db)
        assert "value.content.type" in str(db)
        db.query(POSTS)._display()
        assert not db.folder or not list(db.folder.glob("*.index"))
        assert db.status == Status()


def test_what_fresh_indexes_know_is_exact(log: Path) -> None:
    with jitdb.open(log, read_only=True) as db:
        assert db.query(POSTS).page(1).total
        records = db.all()
        times = sorted(min(r["timestamp"], r["value"]["timestamp"]) for r in records)
        told = facts(db._display())
        assert told["records"] == f"{len(records):,}" == f"{db.count():,}"
        assert told["deleted"] == "52"
        assert told["time"].endswith("by timestamp or value.timestamp")
        known = db.known()
        assert known is not None
        assert known.low <= times[0] * 1e6
        assert known.high >= times[-1] * 1e6
        assert known.times is None  # of two zones it would be made up
        fields, indexes = sheets(db._display())
        shares = {row[0]: row[2] for row in fields.rows}
        assert shares["value.sequence"] == 1.0
        assert {row[0] for row in indexes.rows} == {
            "deleted", "offsets", "timestamp, value.timestamp", "value.content.type",
        }  # fmt: skip
        assert {row[4].text for row in indexes.rows} == {"fresh"}


def test_how_records_lie_in_time_is_told_by_the_zones_of_the_column(tmp_path: Path) -> None:
    seconds = [*range(1_700_000_000, 1_700_030_000), *range(1_700_100_000, 1_700_120_000)]  # a pause of 70,000 s
    with Log(tmp_path / "a.log", block_size=1 << 20) as log:
        log.append_many([{"time": second} for second in seconds])
        log.flush()
        db = JITDB(log)
        assert db.query().page(1).total == 50_000
        known = db.known()
        assert known is not None
        assert known.times is not None
        counts = known.times.counts
        assert sum(counts) == pytest.approx(50_000, rel=0.01)
        truth, _ = np.histogram(seconds, bins=len(counts))
        assert np.abs(np.cumsum(counts) - np.cumsum(truth)).max() < 2 * 4096  # no zone is further off than it is long
        assert "█" in str(db)


def test_a_log_that_grew_says_what_is_indexed(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log") as log:
        log.append_many([{"a": number} for number in range(3000)])
        log.flush()
        db = JITDB(log)
        assert db.count(field("a") < 10) == 10
        log.append_many([{"a": number} for number in range(20_000)])
        log.flush()
        told = facts(db._display())
        assert told["records"].endswith("; 3,000 in the part that is indexed")
        states = {row[0]: row[4].text for row in sheets(db._display())[-1].rows}
        assert states["a"].startswith("stale: ")


def test_a_file_that_another_program_wrote_to_is_not_read_for_a_display(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with jitdb.open(log, read_only=True) as db:
        total = db.query(POSTS).page(1).total
    stat = log.stat()
    os.utime(log, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10_000_000_000))
    checks: list[bool] = []
    run = log_content._Check.run
    monkeypatch.setattr(log_content._Check, "run", lambda check: checks.append(True) or run(check))
    with jitdb.open(log, read_only=True) as db:
        assert db.known() is None
        assert facts(db._display())["records"].startswith("about ")
        assert "another program changed the file" in str(db.query(POSTS))
        assert not checks
        assert db.query(POSTS).count() == total  # which reads all of it, once
        assert checks
        assert db.known() is not None
        assert f"{total:,} answers in " in str(db.query(POSTS))


def test_lines_in_memory_compressed_empty_and_closed(tmp_path: Path) -> None:
    path = tmp_path / "m.ndjson"
    path.write_text('{"a":1}\nbroken\n{"a":{"b":[1,2]},"t":"x"}\n')
    with jitdb.open(path, "memory") as db:
        assert "no indexes yet" in str(db)
        with pytest.warns(jitdb.JitdbWarning):
            db.count()
        assert "in memory" in str(db)
        assert facts(db._display())["left out"] == "1 line that is no record"
    packed = tmp_path / "a.ndjson.gz"
    packed.write_bytes(gzip.compress(b'{"a":1}\n' * 1000))
    with jitdb.open(packed) as db:
        assert "of gzip" in facts(db._display())["size"]
    empty = jitdb.open(tmp_path / "new.log", create=True)
    assert facts(empty._display())["records"] in ("none", "0")
    empty.close()
    assert "it cannot be read" in str(empty)
    assert "cannot be" in str(empty.query())
    assert repr(empty) == f"<JITDB {tmp_path / 'new.log'} (msgpack)>"


def test_a_query_shows_its_plan_and_answers_only_once_they_cost_nothing(log: Path) -> None:
    with jitdb.open(log, read_only=True) as db:
        asked = db.query(POSTS).descending()
        before = str(asked)
        assert "not asked yet" in before
        assert "missing" in before
        assert "it pays with the first question" in before
        assert not list(Path(db.folder or "").glob("*.index"))
        assert asked.count() > 1000  # which indexes what is asked for, and not its order
        assert f"Query: {asked.count():,} answers, not asked for yet" in str(asked)
        page = asked.page(10)
        after = str(asked)
        assert f"{page.total:,} answers in " in after
        assert "the first 10" in after
        assert "missing" not in after
        rows = asked.select("value.sequence")
        assert [line.strip() for line in str(rows).split("\n") if line.strip().isdigit()] == [
            str(record["value.sequence"]) for record in rows.page(10)
        ]
        assert "live: go through it" in str(db.query(POSTS).live())
        assert "known when it is asked" in str(db.query(deferred(lambda meta: POSTS)))
        assert "not asked yet" in str(query())
        none = db.query(POSTS & (field("value.sequence") < 0))
        none.count()
        assert "0 answers" in str(none)


def test_nothing_is_read_for_candidates_that_are_many(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log") as log:
        log.append_many([{"name": f"name {number}", "x": "y" * 2000} for number in range(4000)])
        log.flush()
        db = JITDB(log)
        asked = db.query(field("name").starts_with("name 1")).sort_by_arrival()
        db.prepare(field("name").starts_with("name 1"))
        assert asked.explain().confirm_bytes > 4 << 20
        assert "its answers are not shown" in str(asked)


def test_a_set_of_logs(tmp_path: Path) -> None:
    for day in range(12):
        path = tmp_path / f"day={day}" / "a.ndjson"
        path.parent.mkdir()
        lines = [{"time": f"2026-11-{day + 1:02}T00:00:{second:02}Z", "level": "info"} for second in range(50)]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with jitdb.open_many(tmp_path) as logs:
        told = facts(logs._display())
        assert told["logs"] == "12"
        assert told["records"].startswith("about ")
        assert told["records"].endswith("by the size of some")
        assert 400 < int(told["records"].split()[1].rstrip(",")) < 800
        assert "level" in str(logs)
        assert logs.query(field("level") == "info").page(1).total == 600
        told = facts(logs._display())
        assert told["records"] == "600"
        assert told["time"].startswith("2026-11-01 00:00:00Z to 2026-11-")
        assert "600 answers in " in str(logs.query(field("level") == "info"))
        assert "missing" in str(logs.query(field("other") == "info"))
        assert repr(logs).startswith("<LogSet of 12 logs: ")
    with jitdb.open_many([tmp_path / "day=1", tmp_path / "day=2"]) as logs:
        logs.query(everything()).page(1)
        assert facts(logs._display())["records"] == "100"


def test_verify_and_status(log: Path) -> None:
    with jitdb.open(log) as db:
        db.count(POSTS)
        report = db.verify()
        html = report._repr_html_()
        assert "sound" in html
        assert "value_content_type" in html
        assert str(report) == report._repr_mimebundle_()["text/plain"]
        assert "nothing to repair" in db.repair()._repr_html_()
        assert str(db.status).startswith("idle: ")
    scanning = Status("scanning", 50, 200, (IndexStatus("a.index", 10, 100),))
    assert "50 bytes of 200 bytes, 25 %" in str(scanning)
    assert "a.index" in scanning._repr_html_()


def test_records_of_megabytes_are_few(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log", block_size=16 << 20) as log:
        log.append_many([{"text": chr(97 + number % 26) * (9 << 20), "number": number} for number in range(6)])
        log.flush()
        db = JITDB(log)
        begin = time.process_time()
        told = facts(db._display())
        html = db._repr_html_()
        assert len(html) < 20_000
        assert told["records"].startswith("about ")
        assert db.query().page(1).total == 6
        assert "6 answers in" in str(db.query())
        assert "the first 1\n" in str(db.query())
        assert len(db.fields.names()) == 2
        assert time.process_time() - begin < 3
