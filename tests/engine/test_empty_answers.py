"""Answers that are nothing because of how they were asked: a warning, once, with what would find something."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import manager_of

import jitdb
from jitdb import JITDB, Log
from jitdb.errors import QuestionWarning
from jitdb.operators import (
    absent,
    between,
    contains,
    ends_with,
    equal,
    gt,
    includes,
    isin,
    lt,
    matches,
    not_,
    or_,
    predicate,
    starts_with,
)
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.text.expression import parse_expression

RECORDS: list[dict[str, Any]] = [
    {"type": "post", "area": 180, "land": "Europe", "ok": True, "tags": ["Red", "x"], "at": None, "n": "7"},
    {"type": "vote", "area": 3.5, "land": "ASIA", "log.level": "ERROR", "user": {"name": "ada"}, "n": "8"},
] * 20


@pytest.fixture
def db(tmp_path: Path) -> Iterator[JITDB]:
    with Log(tmp_path / "log", codec="json") as log:
        log.append_many(RECORDS)
        log.flush()
        yield JITDB(log, progress=False)


def told(ask: Callable[[], object]) -> list[str]:
    """The reasons that are warned of."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ask()
    assert all(issubclass(each.category, QuestionWarning) and each.filename == __file__ for each in found), found
    return [each.message.reason for each in found]  # type: ignore[union-attr]


THERE = 'there are `type`, `area`, `land`, `ok`, `tags`, `at`, `n`, `["log.level"]`, `user`'


@pytest.mark.parametrize(
    ("question", "reasons"),
    [
        (equal("tpye", "post"), ["no record has the field `tpye`; did you mean `type`?"]),
        (equal("zzz", 1), [f"no record has the field `zzz`; {THERE}"]),
        (includes("tgas", "x"), ["no record has the field `tgas`; did you mean `tags`?"]),
        (starts_with("tpye", "p"), ["no record has the field `tpye`; did you mean `type`?"]),
        (contains("tpye", "p"), ["no record has the field `tpye`; did you mean `type`?"]),
        (not_(absent("tpye")), ["no record has the field `tpye`; did you mean `type`?"]),
        (gt(5, "aera"), ["no record has a number or a time in `aera`; did you mean `area`?"]),
        (equal("log.level", "ERROR"), [
            'no record has the field `log.level`; did you mean `["log.level"] == "ERROR"`?'
        ]),
        (equal("area", "180"), ['no record has area == "180"; did you mean `area == 180`?']),
        (equal("territory.path", "x"), [f"no record has the field `territory.path`; {THERE}"]),
        (equal("user", None), ["no record has null in `user`, and some lack the field; did you mean `absent(user)`?"]),
        (
            isin("area", list(map(str, range(1000)))),
            ["none of the 1,000 values is in `area`; did you mean numbers, without quotes?"],
        ),
        (isin("area", range(1_000_000, 1_000_100)), []),
        (equal("n", 7), ['no record has n == 7; did you mean `n == "7"`?']),
        (equal("land", "europe"), ['no record has land == "europe"; did you mean `land == "Europe"`?']),
        (equal("land", "europe", prefix=32), [
            'no record has equal(land, "europe", prefix=32); did you mean `equal(land, "Europe", prefix=32)`?'
        ]),
        (equal("ok", "true"), ['no record has ok == "true"; did you mean `ok == True`?']),
        (contains("land", "UROPE"), ['no record has land contains "UROPE"; did you mean `land icontains "UROPE"`?']),
        (ends_with("land", "asia"), ['no record has land ends_with "asia"; did you mean `land iends_with "asia"`?']),
        (contains("tags", "Re"), ['`tags` holds arrays; did you mean `tags[] contains "Re"`?']),
        (equal("tags", "x"), ['`tags` holds arrays; did you mean `includes(tags, "x")`?']),
        (starts_with("area", "18"), [
            '`area` holds no text, which `starts_with` looks at; did you mean `text(area) starts_with "18"`?'
        ]),
        (equal("user", "ada"), ['`user` holds maps; did you mean `user.name == "ada"`?']),
        (contains("user", "d"), ['`user` holds maps; did you mean `user.name contains "d"`?']),
        (equal("user", "bob"), ["`user` holds maps; ask a field in them, such as `user.name`"]),
        (gt(5, "land"), ["some values of `land` are no numbers: `<` and `>` leave these out"]),
        (or_(equal("tpye", 1), equal("lnad", 2)), [
            "no record has the field `tpye`; did you mean `type`?",
            "no record has the field `lnad`; did you mean `land`?",
        ]),
        (equal("area", 7), []),
        (equal("land", "Africa"), []),
        (contains("land", "Africa"), []),
        (gt(1000, "area"), []),
        (between("area", 1000, 100), [
            "no value of `area` is above 1000 and below 100 at once; did you mean `between(area, 100, 1000)`?"
        ]),
        (gt(1000, "area") & lt(5, "area"), ["no value of `area` is above 1000 and below 5 at once"]),
        (gt(1000, "area") & lt(5, "timestamp") & equal("type", "post"), []),
        (gt(1000, "tags[]") & lt(5, "tags[]"),
         ["some values of `tags[]` are no numbers: `<` and `>` leave these out"]),
        (gt(1000, "at"), []),  # null is no number, and the field is there
        (equal("type", "post") & equal("area", 3.5), []),
        (predicate("tpye", bool, name="truth"), []),  # whose index knows nothing of fields
        (equal("area", 180), []),
    ],
)  # fmt: skip
def test_the_reason_is_told_once(db: JITDB, question: Operation, reasons: list[str]) -> None:
    ways: list[Callable[[JITDB], object]] = [
        lambda db: db.count(question), lambda db: db.all(question), lambda db: db.query(question).page(3),
        lambda db: list(db.query(question)), lambda db: list(db.context(question, 1, 1)),
        lambda db: list(db.field_batches(question, select=["area"])),
        lambda db: db.value_counts("type", where=question),
    ]  # fmt: skip
    for way in ways:
        fresh = JITDB(db.log, "memory", progress=False)
        assert told(lambda: way(fresh)) == reasons  # noqa: B023
        assert told(lambda: [way(fresh) for way in ways]) == []  # noqa: B023
    fresh.warns_of_questions = False
    assert fresh.hints(question) == [reason for reason in reasons if "leave these out" not in reason]


def test_a_field_that_nobody_has_is_told_whatever_the_answer_is(db: JITDB) -> None:
    asked = not_(equal("tpye", "post"))
    ways: list[Callable[[JITDB], object]] = [
        lambda db: db.count(asked), lambda db: db.all(asked), lambda db: db.query(asked).page(3),
        lambda db: list(db.query(asked)), lambda db: list(db.context(asked, 1, 1)),
        lambda db: list(db.field_batches(asked, select=["area"])), lambda db: db.stats("area", where=asked),
        lambda db: db.count(or_(equal("type", "post"), equal("tpye", 1))),
    ]  # fmt: skip
    for way in ways:
        fresh = JITDB(db.log, "memory", progress=False)
        assert told(lambda: fresh.count(not_(equal("type", "post")))) == []  # noqa: B023
        assert told(lambda: way(fresh)) == ["no record has the field `tpye`; did you mean `type`?"]  # noqa: B023
        assert told(lambda: [way(fresh) for way in ways]) == []  # noqa: B023
    assert fresh.hints(asked, is_empty=False) == ["no record has the field `tpye`; did you mean `type`?"]
    assert fresh.hints(not_(equal("area", "180")), is_empty=False) == []


def test_text_that_is_taken_as_numbers_is_told_once(db: JITDB) -> None:
    reason = "`n` holds numbers written as text: taken as numbers here, and by == as text"
    ways: list[Callable[[JITDB], object]] = [
        lambda db: db.count(gt(7, "n")), lambda db: db.all(gt(1, "n") & equal("type", "post")),
        lambda db: db.stats("n"), lambda db: db.histogram("n"), lambda db: db.stats_by("n", "type"),
        lambda db: db.paginate(sort_by="n", limit=3), lambda db: db.count(gt(100, "n")),
    ]  # fmt: skip
    for way in ways:
        fresh = JITDB(db.log, "memory", progress=False)
        assert told(lambda: way(fresh)) == [reason]  # noqa: B023
        assert told(lambda: [way(fresh) for way in ways]) == []  # noqa: B023
    assert fresh.hints(gt(7, "n"), is_empty=False) == [reason]
    assert fresh.hints(equal("n", "7"), is_empty=False) == []


def test_maps_that_count_as_values_are_told_of_once(db: JITDB) -> None:
    reason = "`user` holds maps, and each different map counts as a value; ask a field in them, such as `user.name`"
    ways: list[Callable[[JITDB], object]] = [
        lambda db: db.value_counts("user"), lambda db: db.count_distinct("user"),
        lambda db: db.group_count("type", "user"), lambda db: db.stats_by("area", "user"),
        lambda db: db.timeline(by="user"),
    ]  # fmt: skip
    for way in ways:
        fresh = JITDB(db.log, "memory", progress=False)
        assert told(lambda: way(fresh)) == [reason]  # noqa: B023
        assert told(lambda: [way(fresh) for way in ways]) == []  # noqa: B023
    for path in ("type", "user.name", "tags"):
        assert told(lambda: db.value_counts(path)) == []  # noqa: B023


def test_nothing_is_deleted_before_the_warning(db: JITDB) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", QuestionWarning)
        with pytest.raises(QuestionWarning, match="did you mean `type`"):
            db.delete(not_(equal("tpye", "post")))
    assert db.count() == len(RECORDS)


def test_summaries_of_fields_that_nobody_has(db: JITDB) -> None:
    reason = ["no record has the field `tpye`; did you mean `type`?"]
    assert told(lambda: db.value_counts("tpye")) == reason
    assert told(lambda: db.value_counts("tpye")) == []
    assert told(lambda: db.group_count("land", "tpye")) == reason
    assert told(lambda: db.stats_by("area", "tpye")) == reason
    assert told(lambda: db.stats("aera")) == ["no record has a number or a time in `aera`; did you mean `area`?"]
    assert told(lambda: db.value_counts("type", where=equal("area", 7))) == []


def test_it_is_a_warning_that_can_be_an_error_or_nothing(db: JITDB) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", QuestionWarning)
        with pytest.raises(QuestionWarning, match="did you mean `type`") as raised:
            db.count(equal("tpye", "post"))
        assert raised.value.path == str(db.log.path)
        assert db.count(equal("tpye", "post")) == 0  # it was told
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", QuestionWarning)
        assert db.count(equal("lnad", "post")) == 0


def test_delete_and_async_questions_tell(db: JITDB) -> None:
    reason = ["no record has the field `tpye`; did you mean `type`?"]
    assert told(lambda: db.delete(equal("tpye", "post"))) == reason

    async def ask() -> Any:
        return await db.query(equal("tpye", 1)), [each async for each in db.query(equal("tpye", 2))]

    with pytest.warns(QuestionWarning, match="`tpye`") as found:
        assert asyncio.run(ask()) == ([], [])
    assert len(found) == 2


def test_live_questions_are_silent(db: JITDB) -> None:
    def ask() -> None:
        feed = db.feed(equal("tpye", "post"), old=True)
        assert feed.read() is None
        feed.close()

    assert told(ask) == []


def test_nothing_is_read_built_or_kept_for_it(db: JITDB, monkeypatch: pytest.MonkeyPatch) -> None:
    told(lambda: db.count(equal("land", "europe")))
    names = set(manager_of(db).index_names())
    monkeypatch.setattr(manager_of(db), "build", None)
    assert len(told(lambda: db.count(equal("land", "EUROPE")))) == 1
    assert set(manager_of(db).index_names()) == names


def test_who_expects_nothing_pays_once(db: JITDB) -> None:
    question, looks = equal("land", "Africa"), []
    db.evidence = lambda **how: looks.append(1) or JITDB.evidence(db, **how)  # type: ignore[method-assign]
    db.count(question)
    begin = time.process_time()
    for _ in range(10_000):
        db.count(question)
    took = time.process_time() - begin
    for number in range(1000):  # nobody types so many
        db.count(equal("land", f"nowhere {number}"))
    assert len(looks) == 32
    full = equal("land", "Europe")
    begin = time.process_time()
    for _ in range(10_000):
        db.count(full)
    assert took < 3 * (time.process_time() - begin) + 0.2


def test_sets_of_logs_tell_of_all_together(tmp_path: Path) -> None:
    for day, records in ((1, RECORDS[:2]), (2, [{"late": "Text", "land": "Asia"}]), (3, [])):
        folder = tmp_path / f"day={day}"
        folder.mkdir()
        with Log(folder / "x.log", codec="json") as log:
            log.append_many(records)
    with jitdb.open_many(tmp_path / "day=*" / "*.log", "memory") as logs:
        for ask in (logs.count, lambda asked: logs.query(asked).all(), lambda asked: logs.value_counts("type", asked)):
            assert told(lambda: ask(equal("late", "Text") & equal("type", "post"))) == []  # noqa: B023
        assert told(lambda: logs.count(equal("late", "text"))) == [
            'no record has late == "text"; did you mean `late == "Text"`?'
        ]
        assert told(lambda: logs.count(equal("land", "ASia"))) == [
            'no record has land == "ASia"; did you mean `land == "ASIA" or land == "Asia"`?'
        ]
        assert told(lambda: logs.count(equal("tpye", 1))) == ["no record has the field `tpye`; did you mean `type`?"]
        assert told(lambda: logs.count(equal("tpye", 1))) == []
        assert told(lambda: logs.count(not_(equal("lnad", 1)))) == [
            "no record has the field `lnad`; did you mean `land`?"
        ]
        assert told(lambda: logs.count(not_(equal("lnad", 2)))) == []
        assert told(lambda: logs.all(equal("tpye", 2))) == ["no record has the field `tpye`; did you mean `type`?"]
        assert told(lambda: logs.value_counts("tpye")) == ["no record has the field `tpye`; did you mean `type`?"]
        assert told(lambda: logs.count(equal("day", 7))) == []
        assert told(lambda: logs.count(equal("day", 1) & equal("late", "x"))) == []


@pytest.mark.parametrize("ask", ["count", "all"])
def test_small_files_that_are_counted_together(tmp_path: Path, ask: str) -> None:
    for number in range(40):
        (tmp_path / f"{number}.ndjson").write_text(f'{{"land": "Europe", "n": {number}}}\n' * 3)
    with jitdb.open_many(tmp_path / "*.ndjson") as logs:
        assert told(lambda: getattr(logs, ask)(equal("lnad", 1))) == [
            "no record has the field `lnad`; did you mean `land`?"
        ]
        assert told(lambda: getattr(logs, ask)(equal("land", "europe"))) == [
            'no record has land == "europe"; did you mean `land == "Europe"`?'
        ]
        assert logs.hints(equal("land", "europe")) == [
            'no record has land == "europe"; did you mean `land == "Europe"`?'
        ]
        assert told(lambda: getattr(logs, ask)(equal("n", 7))) == []
        assert told(lambda: getattr(logs, ask)(equal("n", 77))) == []


def test_expressions_of_re2_tell(db: JITDB) -> None:
    pytest.importorskip("re2")
    assert told(lambda: db.count(matches("land", "^asia$"))) == [
        'no record has land matches "^asia$"; did you mean `land imatches "^asia$"`?'
    ]


def test_a_number_that_is_denied_and_written_as_text_is_told(db: JITDB) -> None:
    fresh = JITDB(db.log, "memory", progress=False)
    asked = not_(equal("n", 7))  # the records have "7"
    reason = 'no record has n == 7, so `not` is true of all; did you mean `n == "7"`?'
    fresh.prepare(equal("n", "7"))
    assert told(lambda: fresh.count(asked)) == [reason]
    assert told(lambda: fresh.count(asked)) == []
    assert told(lambda: fresh.count(not_(equal("n", "7")))) == []
    assert fresh.hints(asked, is_empty=False) == [reason]


@pytest.mark.parametrize(
    ("records", "asked", "count", "instead", "truth"),
    [
        ([{"level": 50}, {"level": 30}], 'level != "error"', 2, "level != 50", 1),
        ([{"level": 50}, {"level": 30}], 'not level == "error"', 2, "level != 50", 1),
        ([{"level": "ERROR"}, {"level": "INFO"}], 'level not in ["error"]', 2, 'level != "ERROR"', 1),
        ([{"m": "Timeout"}, {"m": "ok"}], 'm not contains "timeout"', 2, 'm not icontains "timeout"', 1),
        ([{"status": 500}, {"status": 200}], 'not status like "5%"', 2, 'not text(status) like "5%"', 1),
        ([{"user": {"id": "u1"}}, {"user": {"id": "u2"}}], 'user != "u1"', 2, 'user.id != "u1"', 1),
        ([{"level": "error"}, {"level": "INFO"}], 'level != "error"', 1, "", 1),
        ([{"level": "warn"}, {"level": "INFO"}], 'level != "error"', 2, "", 2),
    ],
)
def test_a_value_that_is_denied_and_there_in_another_form_is_told(
    tmp_path: Path, records: list[dict[str, Any]], asked: str, count: int, instead: str, truth: int
) -> None:
    with Log(tmp_path / "log", codec="json") as log:
        log.append_many(records)
        log.flush()
        db = JITDB(log, "memory", progress=False)
        answers: list[int] = []
        reasons = told(lambda: answers.append(db.count(asked)))
        assert answers == [count]
        if not instead:
            assert reasons == []
            return
        (reason,) = reasons
        meant = reason.partition("did you mean `")[2].removesuffix("`?")
        assert ", so `not` is true of all; " in reason
        assert not_(parse_expression(meant)) == parse_expression(instead)
        assert db.count(instead) == truth
