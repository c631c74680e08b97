"""docs/from-javascript.md: each name of the modules is on it, its program runs, JavaScript is as wrong as it says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from doc_blocks import ROOT, Page

import jitdb
from jitdb import JITDB, Log, operators
from jitdb.common import js_aliases
from jitdb.errors import QueryError
from jitdb.operators import count, equal, everything, from_db, from_json, not_, query, start_from, to_result, where

PAGE = ROOT / "docs" / "from-javascript.md"
RunNode = Callable[..., bytes]


def test_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Page.read(PAGE).run() == 7


def test_every_name_of_the_modules_is_on_the_page(run_node: RunNode, tmp_path: Path) -> None:
    script = """
      const log = require('async-append-only-log')(process.argv[2] + '/log')
      const db = require('jitdb')(log, process.argv[2] + '/indexes')
      const names = [log, db, require('jitdb/operators')].map((each) => Object.keys(each))
      process.stdout.write(JSON.stringify(names), () => process.exit(0))
    """
    names = json.loads(run_node(script, b"", tmp_path))
    tables = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    words = set(re.findall(r"\w+", "\n".join(re.findall("`([^`]+)`", "\n".join(tables)))))
    assert min(map(len, names)) > 10
    for each in names:
        assert set(each) <= words
    for name in names[2]:  # each is one here, or is told what is
        assert name in operators.__all__ or js_aliases.OPERATORS[name] in operators.__all__, name


def test_every_name_of_ours_on_the_page_is_one(tmp_path: Path) -> None:
    rows = [line.split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    ours = [name for row in rows for name in re.findall(r"`([a-z_]+)\(", row[1])]
    assert len(ours) > 20
    for name in ours:
        assert any(hasattr(each, name) for each in (Log, JITDB, operators)) or name == "len", name


@pytest.mark.parametrize(
    ("owner", "theirs", "ours"),
    [
        ("operators", js_aliases.OPERATORS, operators),
        ("log", js_aliases.LOG, Log),
        ("database", js_aliases.DATABASE, JITDB),
    ],
)
def test_names_of_javascript_are_told_the_name_here(
    tmp_path: Path, owner: str, theirs: dict[str, str], ours: object
) -> None:
    with jitdb.open(tmp_path / "log", create=True) as db:
        asked = {"operators": operators, "log": db.log, "database": db}[owner]
        for name, name_here in theirs.items():
            if hasattr(ours, name):
                continue
            with pytest.raises(AttributeError, match=re.escape(f"has no {name!r}; here it is {name_here} (docs/")):
                getattr(asked, name)
            plain = re.match(r"[a-z_]+", name_here)
            assert plain
            assert hasattr(ours, plain[0]) or " " in name_here


def test_what_is_nobodys_name(tmp_path: Path) -> None:
    with pytest.raises(ImportError, match="here it is to_awaitable"):
        from jitdb.operators import toPromise  # noqa: F401
    assert not hasattr(operators, "startFrom")
    with jitdb.open(tmp_path / "log", create=True) as db:
        with pytest.raises(AttributeError, match="a Log has no 'appendmany'; did you mean append_many"):
            _ = db.log.appendmany
        with pytest.raises(AttributeError, match=r"a JITDB has no 'xyzzy'$"):
            _ = db.xyzzy
        with pytest.raises(AttributeError, match="a Page has no 'nextSeq'; here it is next_seq"):
            _ = db.paginate(limit=1).nextSeq


@pytest.mark.parametrize(
    ("form", "hint"),
    [
        ({"op": "startsWith", "path": ["a"], "value": "x"}, "did you mean 'starts_with'"),
        ({"op": "slowEqual", "path": ["a"], "value": 1}, "did you mean 'equal'"),
        ({"op": "AND", "args": []}, "did you mean 'and'"),
        ({"type": "EQUAL", "data": {}}, "the operation's name stands under 'op'"),
        ({"op": "equal", "path": ["a"], "value": 1, "options": {"useMap": True}}, "did you mean use_map"),
    ],
)
def test_questions_in_json_as_javascript_has_them(form: dict[str, object], hint: str) -> None:
    with pytest.raises(QueryError, match=hint):
        from_json(form)


def test_where_javascript_is_wrong(run_node: RunNode, tmp_path: Path) -> None:
    theirs = json.loads(run_node(Path(__file__).parent / "answers.js", b"", tmp_path))
    assert theirs == {
        "zero": 1, "false": [0], "one": 1, "textOne": [1], "prefix": 3, "startFrom": -4, "deleted": 9, "notDeleted": 8,
        "limitZero": 9, "appended": 1,
    }  # fmt: skip
    with jitdb.open(tmp_path / "log", read_only=True, block_size=4096) as db:
        values = [record.value.get("a") for record in db.log.stream()]
        assert values == [0, False, None, "", 1, "1", "thread-a", "thread-b", "x", "y"]
        for value in values:
            assert [record["a"] for record in db.all(equal("a", value))] == [value]
        assert db.count(equal("a", "thread-a", prefix=32)) == 1
        assert query(from_db(db), where(equal("a", "thread-b")), start_from(5), count(), to_result()) == 0
        assert db.count(everything()) == 10
        assert db.count(not_(equal("a", "thread-b"))) == 9
        assert list(db.log.stream(limit=0)) == []


def test_javascript_does_not_notice_a_compaction_of_ours(run_node: RunNode, tmp_path: Path) -> None:
    """Its index files must be removed: with them it asks for offsets that are no more."""
    ask = Path(__file__).parent / "jitdb.js"
    question = json.dumps({"where": ["equal", "a", 1], "arrival": True})
    path = tmp_path / "log"
    with Log(path, codec="bipf") as log:
        offsets = log.append_many({"a": n % 2, "timestamp": n, "value": {"timestamp": n}} for n in range(200))
        log.flush()
        before = json.loads(run_node(ask, question, path, tmp_path / "indexes"))
        for offset in offsets[:100]:
            log.delete(offset)
        log.compact()
        truth = JITDB(log, "memory").all(equal("a", 1), sort_by="arrival", as_offsets=True)
    stale = json.loads(run_node(ask, question, path, tmp_path / "indexes"))
    fresh = json.loads(run_node(ask, question, path, tmp_path / "new-indexes"))
    assert before["total"] == 100
    assert stale["total"] != len(truth)
    assert fresh == {"total": 50, "offsets": truth}
