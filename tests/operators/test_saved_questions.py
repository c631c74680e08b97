"""`@name` in expressions: what it stands for, and what is said where the file or the name is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import jitdb
from jitdb.errors import QueryError, QuestionsDamaged
from jitdb.operators import and_, field, format_expression, not_, or_, parse_expression
from jitdb.operators.text.saved import Book, questions_file


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "jitdb").mkdir()
    return tmp_path / "jitdb" / "questions"


def test_a_name_stands_for_its_question(file: Path) -> None:
    file.write_text('slow = ms > 1000 or ms is absent\nweb = service == "web"\nboth = @slow and\n  @web  # all\n')
    slow, web = parse_expression("ms > 1000 or ms is absent"), field("service") == "web"
    for text, wanted in {
        "@slow": slow,
        '@slow and service == "web"': and_(slow, web),
        "@both": and_(slow, web),
        "not @slow": not_(slow),
        "~@slow | (a == 1)": or_(not_(slow), field("a") == 1),
        "(@web or @web) and @both": and_(or_(web, web), slow, web),
        '"@slow" in tags': parse_expression('"@slow" in tags'),
        '["@slow"] == 1': field("@slow") == 1,
    }.items():
        assert parse_expression(text) == wanted, text
        assert parse_expression(format_expression(wanted)) == wanted


def test_a_database_takes_names_and_sees_changes_of_the_file(file: Path, tmp_path: Path) -> None:
    records = [{"n": n, "ms": n * 10} for n in range(100)]
    (tmp_path / "a.ndjson").write_text("".join(json.dumps(record) + "\n" for record in records))
    with jitdb.open(tmp_path / "a.ndjson", read_only=True) as db, jitdb.open_many(tmp_path / "*.ndjson") as logs:
        for least in (500, 900):
            file.write_text(f"slow = ms >= {least}\n")
            wanted = sum(record["ms"] >= least for record in records)
            assert db.count("@slow") == logs.count("@slow") == db.query("@slow").count() == wanted
            assert db.count("@slow and n < 95") == wanted - 5


def test_where_the_file_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for said in ("", "not/absolute"):
        monkeypatch.setenv("XDG_CONFIG_HOME", said)
        assert questions_file() == tmp_path / ".config" / "jitdb" / "questions"
    assert Book().texts == {}


@pytest.mark.parametrize(
    ("text", "said", "place"),
    [
        ("@slwo", 'no question is saved as @slwo (did you mean @slow?); a field of this name is written ["@slwo"]', 0),
        ("a == 1 and @zzz > 5", "no question is saved as @zzz (there are: @slow, @a, @b, @c, @bad, @self)", 11),
        ("@slow > 5", "a field was expected here", 0),
        ("5 < @slow", "a field was expected here", 4),
        ("a == @slow", "a value was expected", 5),
        ("@slow.x == 1", 'in brackets and quotes: ["@slow"].x', 0),
        ("@my-slow", '["@my-slow"]', 0),
        ("@", "cannot go on like this", 0),
        ("@ slow", "cannot go on like this", 0),
        ("a == 1 @slow", '["@slow"]', 7),
        ("@a or x == 1", "a question cannot stand in itself: @a uses @b uses @c uses @a", None),
        ("@self", "a question cannot stand in itself: @self uses @self", None),
        ("@bad", "equality is written `==`, not `=`", None),
    ],
)
def test_mistakes(file: Path, text: str, said: str, place: int | None) -> None:
    file.write_text("slow = ms > 1\na = @b\nb = not @c\nc = (@a)\nbad = x = 1\nself = @self\n")
    with pytest.raises(QueryError) as raised:
        parse_expression(text)
    told = str(raised.value)
    assert said in told
    if place is not None:
        assert told.split("\n")[1:] == [f"  {text}", f"  {' ' * place}^"]
    else:
        assert any(note.startswith("in @") and str(file) in note for note in raised.value.__notes__)


@pytest.mark.parametrize(
    ("content", "line", "offset", "expected", "got"),
    [
        (b"a = b == 1\noops\n", 2, 11, "NAME = EXPRESSION, or a comment behind #", "'oops'"),
        (b"a == 1\n", 1, 0, "NAME = EXPRESSION, or a comment behind #", "'a == 1'"),
        (b"  and b == 1\n", 1, 0, "NAME = EXPRESSION, which this line goes on with", "'  and b == 1'"),
        (b"a = b == 1\n\na = c == 1\n", 3, 12, "another name, as line 1 has this one", "'a'"),
        (b"a = b == 1\nb = 'x\xff'\n", 2, 17, "text in UTF-8", 'b"\\xff\'\\n"'),
        (b"\0" * 30, 1, 0, "NAME = EXPRESSION, or a comment behind #", repr("\0" * 30)),
    ],
)
def test_a_damaged_file(file: Path, content: bytes, line: int, offset: int, expected: str, got: str) -> None:
    file.write_bytes(content)
    with pytest.raises(QuestionsDamaged) as raised:
        parse_expression("x == 1 and @a")
    error = raised.value
    assert (error.path, error.line, error.offset, error.expected, error.got) == (str(file), line, offset, expected, got)
    assert str(error).startswith(f"{file}: line {line} (offset {offset:,})")
    assert error.remedy is not None
    parse_expression("x == 1")  # which asks for none of it


def test_what_grows_without_end_is_refused(file: Path) -> None:
    file.write_text("n0 = a == 1\n" + "".join(f"n{n} = @n{n - 1} or not @n{n - 1}\n" for n in range(1, 40)))
    parse_expression("@n3")
    with pytest.raises(QueryError, match="more than 1,000 saved questions"):
        parse_expression("@n39")


def test_a_file_that_cannot_be_read_is_named(file: Path) -> None:
    file.mkdir()
    with pytest.raises(QueryError, match=f"{file}: it cannot be read"):
        parse_expression("@a")
