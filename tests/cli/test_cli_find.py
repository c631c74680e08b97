"""`jitdb find`, and `db.find`: in which fields a text stands."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import jitdb
from jitdb.common.paths import format_path
from jitdb.engine.maintenance import state
from jitdb.operators.summaries import found as found_module

Run = Callable[..., Any]


def paths_of(value: Any, text: str, path: str = "") -> set[str]:
    """The plain rule: the paths to all values that hold the text."""
    if isinstance(value, dict):
        return {
            found for key, held in value.items() for found in paths_of(held, text, f"{path}.{key}" if path else key)
        }
    if isinstance(value, list):
        return {found for held in value for found in paths_of(held, text, f"{path}[]")}
    whole = value if isinstance(value, str) else json.dumps(value)
    return {path} if text in whole else set()


def record(random: Random) -> dict[str, Any]:
    words = ["u-17", "u-170", "x", "17", "y"]
    return {
        "user": {"id": random.choice(words), "n": random.choice([17, 5, 170.5, None])},
        "tags": random.choices(words, k=random.randrange(3)),
        "items": [{"sku": random.choice(words)} for _ in range(random.randrange(3))],
    }


def test_fields_of_one_log(tmp_path: Path) -> None:
    random = Random(3)
    records = [record(random) for _ in range(300)]
    path = tmp_path / "a.ndjson"
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    with jitdb.open(path, progress=False) as db:
        for text in ("u-17", "17", "null", "y", "nothing"):
            found = db.find(text)
            expected = Counter(path for each in records for path in paths_of(each, text))
            assert {format_path(row.path): row.count for row in found} == expected
            assert found.total == sum(bool(paths_of(each, text)) for each in records) == found.looked_at
            assert all(text in row.example for row in found)
        some = [each for each in records if each["user"]["id"] == "x"]
        assert db.find("u-17", "user.id == 'x'").total == sum(bool(paths_of(each, "u-17")) for each in some)
        assert db.find("U-17", ignore_case=True).total == db.find("u-17").total


def test_a_folder_names_its_logs(tmp_path: Path, run: Run) -> None:
    (tmp_path / "logs" / "app").mkdir(parents=True)
    app = tmp_path / "logs" / "app"
    (app / "web.ndjson").write_text('{"id": "9f3a77"}\n{"id": "other"}\n')
    (app / "mail.ndjson").write_text('{"message": "for 9f3a77 it is"}\n')
    (app / "9f3a77.ndjson").write_text('{"a": 1}\n')  # a name is no value
    for sub in range(40):
        (app / f"small-{sub}.ndjson").write_text(json.dumps({"n": sub}) + "\n")
    done = run("find", "logs", "9f3a77")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "field    records  logs         example",
        "id             1  web.ndjson   9f3a77",
        "message        1  mail.ndjson  for 9f3a77 it is",
        "2 records hold 9f3a77",
    ]
    told = json.loads(run("find", "logs", "9f3a77", "--format", "json").stdout)
    assert told["total"] == 2
    assert [row["logs"] for row in told["rows"]] == [["logs/app/web.ndjson"], ["logs/app/mail.ndjson"]]


def test_exit_codes(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.ndjson").write_text('{"a": "needle"}\n')
    assert run("find", "a.ndjson", "needle", "-q").returncode == 0
    done = run("find", "a.ndjson", "nadel", "-q")
    assert (done.returncode, done.stdout) == (1, "")
    done = run("find", "a.ndjson", "nadel")
    assert (done.returncode, done.stdout) == (0, "0 records hold nadel\n")
    done = run("find", "a.ndjson")
    assert done.returncode == 2
    assert "a text is missing behind the log" in done.stderr


def test_notes_on_the_expression(tmp_path: Path, run: Run) -> None:
    rows = [{"level": "error", "id": "x1"}, {"severity": "error", "id": "x2"}, {"level": "info", "ms": "slow"}]
    (tmp_path / "a.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows * 5))
    for expression, told in (
        ('level == "error"', "`level` is called `severity` in records without it"),
        ('levle == "error"', "no record has the field `levle`"),
        ("ms > 3", "some values of `ms` are no numbers"),
    ):
        assert told in run("find", "a.ndjson", "x", expression).stderr
        assert told in run("count", "a.ndjson", expression).stderr
        assert run("find", "a.ndjson", "x", expression, "-q").stderr == ""
    assert run("find", "a.ndjson", "x").stderr == ""


def test_text_in_other_case(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.ndjson").write_text('{"a": "Needle", "n": 1}\n{"a": "NEEDLE", "n": 2}\n{"a": 17, "n": 3}\n')
    told = "jitdb: 2 records hold it in other case: -i finds them\n"
    assert run("find", "a.ndjson", "needle").stderr == told
    assert run("find", "a.ndjson", "needle", "n > 1").stderr == told.replace("2 records hold", "1 record holds")
    for quiet in (["needle", "-q"], ["needle", "n > 2"], ["Needle"], ["needle", "-i"], ["nadel"], ["99"]):
        assert run("find", "a.ndjson", *quiet).stderr == ""


def test_many_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The count is of all; the fields are those of the first."""
    monkeypatch.setattr(found_module, "LOOKED_AT", 10)
    path = tmp_path / "a.ndjson"
    path.write_text('{"a": "x"}\n' * 25)
    with jitdb.open(path, progress=False) as db:
        found = db.find("x")
        assert (found.total, found.looked_at, found[0].count) == (25, 10, 10)
        assert "25 records hold x; the fields are those of 10 of them" in str(found)


def test_what_is_said_of_it(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "LARGE", 0)
    (tmp_path / "a.ndjson").write_text('{"a": "needle"}\n')
    assert "which parts of the log may hold a text" in run("explain", "a.ndjson", '* contains "needle"').stdout
    assert run("count", "a.ndjson", '* contains "needle"').stdout == "1\n"
    listed = run("indexes", "a.ndjson").stdout
    assert "grams (which parts of the log may hold a text)\n" in listed
    assert '* (contains "needle") (a set of records)\n' in listed
    said = run("count", "a.ndjson", '"needle"').stderr
    assert 'compare a field with it, or look for it in any: * contains "needle"' in said


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("0 http fetch GET 200 https://a.example/b", "http fetch"),
        ("update-alternatives 2026-06-24 14:36:53: link group", "update-alternatives"),
        ("level=error user=ada", "error user"),
    ],
)
def test_a_text_across_fields_is_told_with_what_finds_it(tmp_path: Path, run: Run, line: str, text: str) -> None:
    (tmp_path / "a.log").write_text(f"{line}\n" * 5)
    told = f"jitdb: lines hold '{text}' in no field, but across two of them or between: --log-format plain makes"
    plain = "--log-format", "plain"
    for command in (["find", "a.log", text], ["count", "a.log", f'* contains "{text}"']):
        assert told in run(*command).stderr
        assert "5" in run(*command, *plain).stdout
        assert "no field" not in run(*command, *plain).stderr
    assert "no field" not in run("find", "a.log", "nothing").stderr
    assert run("find", "a.log", text, "-q").stderr == ""


def test_a_text_in_a_field_is_not_said_to_be_in_none(tmp_path: Path, run: Run) -> None:
    """Where the other part of the question finds nothing."""
    (tmp_path / "a.log").write_text("level=error path=/api/checkout\n" * 5)
    told = run("count", "a.log", 'level == "info" and * contains "/api/checkout"').stderr
    assert "in no field" not in told
    assert "in any case" not in told
