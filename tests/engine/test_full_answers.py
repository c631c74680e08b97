"""Answers with records that are less than was meant: a warning in Python, once a field, as the command line has it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jitdb
from jitdb.errors import QuestionWarning
from jitdb.logset.logset import AnyDatabase

NO_NUMBERS = "some values of `ms` are no numbers: `<` and `>` leave these out"
NO_TIME = "no record has a time under `timestamp` or `value.timestamp`, so this is the order of arrival"
NO_UTF8 = "bytes that are no UTF-8 are read as U+FFFD"

Open = Callable[[Path], AnyDatabase]


@pytest.fixture(params=["one", "set"])
def opened(request: pytest.FixtureRequest) -> Open:
    def of(path: Path) -> AnyDatabase:
        if request.param == "one":
            return jitdb.open(path, "memory", progress=False)
        return jitdb.open_many(path.parent, "memory", progress=False)

    return of


def written(folder: Path, *records: dict[str, Any]) -> Path:
    path = folder / "a.ndjson"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def told(ask: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ask()
    assert all(issubclass(each.category, QuestionWarning) and each.filename == __file__ for each in found), found
    return [each.message.reason for each in found]  # type: ignore[union-attr]


def test_text_that_a_comparison_leaves_out(tmp_path: Path, opened: Open) -> None:
    path = written(tmp_path, *({"ms": 5 * number, "n": number} for number in range(9)), {"ms": "slow", "n": 1})
    with opened(path) as db:
        assert told(lambda: db.count("ms > 20")) == [NO_NUMBERS]
        assert told(lambda: (db.count("ms > 20"), db.all("ms < 30 and n > 0"), db.count("n >= 1"))) == []
    with opened(path) as db:
        assert told(lambda: db.query("n > 0 and ms > 20").page(1)) == [NO_NUMBERS]
    with opened(path) as db:
        assert told(lambda: db.count("ms > 999")) == [NO_NUMBERS]  # of an empty answer


def test_newest_first_where_no_record_has_a_time(tmp_path: Path, opened: Open) -> None:
    path = written(tmp_path, *({"Zeitpunkt": f"2026-11-28T08:00:0{number}Z", "v": number} for number in range(9)))
    where = "; `Zeitpunkt` holds times: pass timestamp='Zeitpunkt'"
    with opened(path) as db:
        assert told(lambda: (db.query().descending().count(), db.query().page(3), db.query().count())) == []
        assert told(lambda: db.query().descending().page(1)) == [NO_TIME + where]
        assert told(lambda: (db.query("v > 3").descending().page(1), db.query().descending().all())) == []
    with opened(written(tmp_path, {"v": 1}, {"v": 2})) as db:
        assert told(lambda: db.query().descending().sort_by("v").page(1)) == []
        assert told(lambda: list(db.query("v > 0").descending())) == [NO_TIME]
    with opened(written(tmp_path, {"v": 1}, {"v": 2, "timestamp": 7})) as db:
        assert told(lambda: db.query().descending().page(1)) == []


def test_a_set_has_an_order_where_one_log_has_times(tmp_path: Path) -> None:
    written(tmp_path, {"v": 1}, {"v": 2})
    (tmp_path / "b.ndjson").write_text('{"v": 3, "timestamp": 7}\n')
    with jitdb.open_many(tmp_path, "memory", progress=False) as logs:
        assert told(lambda: logs.query().descending().page(1)) == []


@pytest.mark.parametrize("question", ['text contains "Müller"', '* contains "Müller"', 'text contains "ü" or n > 1'])
def test_text_of_another_encoding(tmp_path: Path, opened: Open, question: str) -> None:
    path = tmp_path / "a.log"
    path.write_bytes("".join(f"2026-11-28 08:00:0{n} login of Müller\n" for n in range(9)).encode("latin-1"))
    with opened(path) as db:
        assert told(lambda: db.count('text contains "login"')) == []
        assert [line.split(",")[0] for line in told(lambda: db.count(question)) if "UTF-8" in line] == [NO_UTF8]
        assert [line for line in told(lambda: db.all(question)) if "UTF-8" in line] == []
    path.write_text("2026-11-28 08:00:00 login of Müller\n2026-11-28 08:00:01 Müller\n")
    with opened(path) as db:
        assert [line for line in told(lambda: db.count(question)) if "UTF-8" in line] == []
