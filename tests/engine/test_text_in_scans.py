"""Text that a scan looks for by itself, in fields of long texts: what it finds is an index, and what Python finds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import manager_of
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import EXAMPLES
from oracle import text_matches

import jitdb
from jitdb import JITDB, Log
from jitdb.engine import plan
from jitdb.engine.plan import Serving
from jitdb.errors import QueryError
from jitdb.indexes.spec import IndexSpec
from jitdb.operators import contains, ends_with, equal, like, matches, not_, starts_with
from jitdb.operators.nodes.text_match import TextMatch, text_match_of

TEXTS = st.text('aAbB %_\\é\nßẞ"😀\x00', max_size=12)
VALUES = st.one_of(TEXTS, st.sampled_from([None, True, 7, 2.5, ["ab"], {"a": "ab"}]))
RECORDS = st.lists(st.fixed_dictionaries({}, optional={"text": VALUES, "other": VALUES}), max_size=12)
MUCH = "is a message of a program that says much"
ASKED = st.builds(
    lambda make, text, case: make("text", text, ignore_case=case),
    st.sampled_from([contains, starts_with, ends_with, like]), st.text("aAbBé%_ß\"", max_size=3), st.booleans(),
)  # fmt: skip


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch) -> None:
    """All texts are taken for long ones."""
    monkeypatch.setattr(Serving, "holds_long", lambda *_: True)


def forms_of(db: JITDB) -> set[str]:
    return {spec.form for spec in manager_of(db).index_names().values() if spec and spec.paths == (("text",),)}


@pytest.mark.usefixtures("long")
@pytest.mark.parametrize("codec", ["json", "msgpack", "bipf"])
def test_what_is_found_is_what_python_finds(codec: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    @given(first=RECORDS, second=RECORDS, asked=ASKED)
    @settings(max_examples=EXAMPLES // 2, deadline=None)
    def check(first: list[Any], second: list[Any], asked: TextMatch) -> None:
        with Log(tmp_path_factory.mktemp("logs") / "log", codec=codec) as log:
            db = JITDB(log, progress=False)
            for more in (first, second):
                log.append_many(more)
                log.flush()
                records = first if more is first else first + second
                expected = [each for each in records if "text" in each and text_matches(asked, each["text"])]
                assert db.all(asked, sort_by="arrival") == expected
                assert db.count(not_(asked)) == len(records) - len(expected)

    check()


@pytest.mark.usefixtures("long")
def test_bytes_and_expressions(tmp_path: Path) -> None:
    with Log(tmp_path / "log", codec="msgpack") as log:
        log.append_many({"text": text} for text in ("one", b"one", "One two", b"\xff\x00", 5))
        log.flush()
        db = JITDB(log)
        assert db.count(contains("text", "ne")) == 2
        assert db.count(contains("text", b"ne")) == 1
        assert db.count(ends_with("text", b"\x00")) == 1
        assert forms_of(db) == {"text"}
        pytest.importorskip("re2")
        assert db.count(matches("text", "^one$")) == 1
        assert db.count(matches("text", "^one", ignore_case=True)) == 2


@given(
    path=st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=2).map(tuple),
    value=TEXTS | st.binary(max_size=4),
    make=st.sampled_from([contains, ends_with]), case=st.booleans(),
)  # fmt: skip
@settings(max_examples=4 * EXAMPLES, deadline=None)
def test_the_name_of_such_an_index_says_all_of_it(path: Any, value: Any, make: Any, case: bool) -> None:
    asked = make(path, value, ignore_case=case and isinstance(value, str))
    spec = asked.own_spec
    assert text_match_of(IndexSpec.from_descriptor(json.loads(json.dumps(spec.descriptor())))) == asked


@pytest.mark.parametrize(
    "name", ["", "contains", "contains 5", 'holds "x"', "contains 0xq", "matches 0x00", 'matches "("']
)
def test_a_name_that_says_nothing(name: str) -> None:
    if name.startswith("matches"):
        pytest.importorskip("re2")
    with pytest.raises(QueryError):
        text_match_of(IndexSpec("text", (("a",),), name=name))


@pytest.mark.usefixtures("long")
def test_it_is_kept_extended_compacted_and_verified(tmp_path: Path) -> None:
    asked = contains("text", "7")
    path = tmp_path / "log"
    with Log(path, codec="json") as log:
        log.append_many({"text": f"a{number}"} for number in range(200))
        log.flush()
        db = JITDB(log)
        assert db.count(asked) == 38
        db.delete(equal("text", "a7"))
        assert db.count(asked) == 37
        db.compact()
        assert db.count(asked) == 37
        log.append({"text": "77"})
        log.flush()
    with jitdb.open(path) as db:
        assert db.explain(asked)["indexes"][-1]["state"] == "stale"
        assert db.count(asked) == 38
        assert [index for index in db.explain(asked)["indexes"] if index["name"] == 'text (contains "7")']
        report = db.verify()
        assert report.ok
        assert {check.form for check in report.indexes if check.checked == "content"} >= {"text"}
        assert db.drop_index(asked) == (asked.own_spec.file_name(),)
        assert db.count(asked) == 38
        db.value_counts("text")
        db.drop_index(asked)
        assert db.count(contains("text", "8")) == 38
        assert forms_of(db) == {"auto"}  # what has the values, serves


def test_long_texts_of_a_large_log_are_told_by_a_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "LARGE", 1 << 10)
    with Log(tmp_path / "log", codec="json") as log:
        log.append_many(
            {"text": f"{number} {MUCH}", "short": f"x{number}", "level": "i" * (number % 9),
             "tags": [f"{number} {MUCH}"]}
            for number in range(600)
        )  # fmt: skip
        log.flush()
        db = JITDB(log)
        for path, form in (("text", "text"), ("short", "dictionary"), ("level", "dictionary"), ("none", "dictionary")):
            db.count(contains(path, "11"))
            found = {spec.form for spec in manager_of(db).index_names().values() if spec and spec.paths == ((path,),)}
            assert found == {form}
        assert db.count(contains("text", "11 is")) == 6
        assert db.count(contains("tags[]", "11 is")) == 6  # what a record has several of is numbered
        assert db.count(contains("text", "11 is") | contains("level", "iiiiiiii")) == 6 + 66
        explained = db.explain(contains("text", "new"))
        assert explained["indexes"][-1]["state"] == "missing"
        assert explained["indexes"][-1]["form"] == "text"


@pytest.mark.usefixtures("long")
def test_lines_in_place_and_sets_of_them(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.ndjson").write_text("".join(f'{{"text": "{name}{n}\\u0031"}}\n' for n in range(100)))
    with jitdb.open(tmp_path / "a.ndjson") as db:
        assert db.count(contains("text", "a91")) == 2
        assert forms_of(db) == {"text"}
    with jitdb.open_many(tmp_path / "*.ndjson") as logs:
        assert logs.count(contains("text", "91")) == 22
        assert sum(record["text"].endswith("91") for record in logs.query(ends_with("text", "91"))) == 20


@pytest.mark.usefixtures("long")
def test_those_that_were_written_last_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jitdb.indexes.files.folder.MOST_TEXTS", 6)
    path = tmp_path / "log"
    with Log(path, codec="json") as log:
        log.append_many({"text": f"a{number}"} for number in range(100))
    for number in range(20):
        with jitdb.open(path) as db:
            assert db.count(contains("text", f"{number}")) == sum(f"{number}" in f"a{other}" for other in range(100))
        names = [each.name for each in (path.parent / "log.jitdb" / "indexes").glob("*.text-*")]
        assert len(names) == number + 1 if number < 6 else 3 <= len(names) <= 6
        assert contains("text", f"{number}").own_spec.file_name() in names
