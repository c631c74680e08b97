"""Fields by name, from a sample: to ask with, and for the Tab key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import jitdb
from jitdb import JITDB, Log
from jitdb.notebook.completing import Offer, python_offered
from jitdb.operators import field

RECORDS = [
    {"level": "info" if number % 3 else "error", "user": {"name": f"u{number % 5}"}, "tags": ["a", "b"],
     "log.id": number, "quoted": 'a"b', "select": 1} for number in range(100)
]  # fmt: skip


@pytest.fixture
def db(tmp_path: Path) -> JITDB:
    path = tmp_path / "a.ndjson"
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return jitdb.open(path, "memory")


def test_names_are_fields_to_ask_with(db: JITDB) -> None:
    assert repr(db.fields.user.name) == repr(field("user.name")) == repr(db.fields.user["name"])
    assert db.query(db.fields.level == "error").count() == 34
    assert db.count((db.fields.user.name == "u1") & ~(db.fields["level"] == "error")) == 13
    assert db.fields["rare.path"].path == ("rare", "path")
    assert db.fields["tags"][:].path == ("tags", None)
    with pytest.raises(AttributeError, match="did you mean level"):
        _ = db.fields.levle
    with pytest.raises(AttributeError, match="did you mean name"):
        _ = db.fields.user.nme
    assert {"level", "user", "tags", "names", "values"} <= set(dir(db.fields))
    assert "log.id" not in dir(db.fields)
    assert {"name", "contains"} <= set(dir(db.fields.user))
    assert db.fields._ipython_key_completions_()[:3] == ["level", "user", "user.name"]
    assert db.fields.user._ipython_key_completions_() == ["name"]


def test_called_it_tells_of_the_fields(db: JITDB) -> None:
    assert [row.path for row in db.fields(10)][:2] == [("level",), ("user",)]
    assert db.fields().total == 100
    assert "user.name" in str(db.fields) == str(db.fields)
    assert db.fields.values("level") == ["info", "error"]  # the more frequent one first
    assert db.fields.values("tags[]") == ["a", "b"]
    assert sorted(db.fields.values("log.id")) == []
    assert len(db.fields.values(["log.id"])) == 100


def test_what_is_new_is_seen(tmp_path: Path) -> None:
    with jitdb.Log(tmp_path / "a.log") as log:
        db = JITDB(log)
        assert db.fields.names() == []
        log.append({"new": 1})
        log.flush()
        assert db.fields.names() == ["new"]
        log.append({"newer": 1})
        log.flush()
        assert db.fields.names() == ["new", "newer"]
    assert sorted(dir(db.fields)) == ["names", "values"]


def test_a_set_of_logs_has_them_too(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.ndjson").write_text(f'{{"{name}":{{"x":1}}}}\n')
    with jitdb.open_many(tmp_path) as logs:
        assert logs.query(logs.fields.a.x == 1).count() == 1
        assert logs.fields.names() == ["a", "a.x", "b", "b.x"]


@pytest.mark.parametrize(
    ("text", "begun", "offered"),
    [
        ('db.query(field("', "", ["level", "user", "user.name", "tags", "tags[]", "quoted", "select"]),
        ('db.query(field("us', "us", ["user", "user.name"]),
        ("x = 1\nfield('lev", "lev", ["level"]),
        ('db.value_counts("l', "l", ["level"]),
        ('db.group_count("level", "us', "us", ["user", "user.name"]),
        ('db.timeline(every="1h", by="le', "le", ["level"]),
        ('asked.sort_by("-le', "le", ["level"]),
        ('asked.select(["level", "user.', "user.", ["user.name"]),
        ('db.query(field("level") == "', "", ["info", "error"]),
        ('db.query((field("level") != "e', "e", ["error"]),
        ('field("level").isin(["info", "', "", ["info", "error"]),
        ('db.query(db.fields.user.name == "u', "u", ["u0", "u1", "u2", "u3", "u4"]),
        ('field("quoted") == "', "", []),
        ("db.fields.", "", ["level", "user", "tags", "quoted", "select"]),
        ("db.query(db.fields.user.", "", ["name"]),
        ('db.fields["user', "user", ["user", "user.name"]),
    ],
)
def test_how_python_may_go_on(db: JITDB, text: str, begun: str, offered: list[str]) -> None:
    found = python_offered(text, {"db": db, "n": 1})
    assert found is not None
    assert found[0] == begun
    assert sorted(found[1]) == sorted(offered)


@pytest.mark.parametrize("text", ['print("', "x = [1, ", "other.fields.", "db.query(", 'open("a', "import jit", ""])
def test_what_is_not_ours_is_left_alone(db: JITDB, text: str) -> None:
    assert python_offered(text, {"db": db}) is None


def test_no_error_is_told_of_a_key(db: JITDB) -> None:
    db.close()
    names: dict[str, Any] = {"db": db}
    assert python_offered('field("', names) == Offer("", [])
    assert python_offered("db.fields.", names) == Offer("", [])


def test_fields_of_all_records(tmp_path: Path) -> None:
    records: list[Any] = [{"n": number} for number in range(3000)]
    records[1234] = {"rare": 1}
    with Log(tmp_path / "x.log", codec="json") as log:
        offsets = log.append_many(records)
        log.flush()
        found = JITDB(log, progress=False).fields(None)
        assert [(field.path, field.count) for field in found] == [(("n",), 2999), (("rare",), 1)]
        log.delete(offsets[1234])
        log.flush()
        assert [(field.path, field.count) for field in JITDB(log, progress=False).fields(None)] == [(("n",), 2999)]
    with jitdb.open_many(tmp_path / "*.log") as logs:
        assert logs.fields(None).total == 2999
    lines = tmp_path / "x.ndjson"  # whose records lie across blocks
    lines.write_text("".join(json.dumps({"n": number, "x": "y" * 97}) + "\n" for number in range(6000)))
    assert jitdb.open(lines, progress=False).fields(None).total == 6000
