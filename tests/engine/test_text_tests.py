"""Operators on text, over the values of a dictionary: what they find is what plain Python finds in each."""

from __future__ import annotations

import re
import threading
import time

import numpy as np
import pytest
from engine_helpers import manager_of
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import EXAMPLES
from oracle import text_matches

from jitdb import JITDB, Log
from jitdb.common.values import value_key
from jitdb.engine import text_tests
from jitdb.engine.text_tests import Texts, matcher_of
from jitdb.errors import QueryCancelled, QueryError
from jitdb.operators import contains, ends_with, equal, like, matches, starts_with
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.nodes.text_match import TextMatch, holds_text

# Letters that fold to others, to more than one, or to ASCII; what is near them; and bytes that are no UTF-8.
LETTERS = "aAbB %_\\-\n\0éÉßẞ\u017f\u212aİ\u0131ŉﬁΣςΐ中😀\x05\xff"
CHARS = st.sampled_from([*LETTERS, "ss", "ﬀ", "ab", "aab"])
VALID = st.lists(CHARS, max_size=8).map("".join)
BROKEN = st.lists(CHARS | st.sampled_from(["\udcc3", "\udca9", "\udcff", "\udce4\udcb8"]), max_size=8).map("".join)
OTHERS = st.sampled_from([None, True, 5, 2.5, 0x6161, [], ["ab"], {"a": "ab"}, b"", b"ab", b"aab\xff", "x" * 200])


def as_stored(text: str) -> str:
    """As it comes back from a log: bytes that are UTF-8 after all are characters."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def is_stored(text: str) -> bool:
    return as_stored(text) == text


TEXTS = BROKEN.map(as_stored)
PATTERNS = VALID | TEXTS
LIKE = st.lists(CHARS.filter(lambda text: text != "\\") | st.sampled_from(["%", "%", "_", r"\%", r"\\"]), max_size=6)
ASKED = st.one_of(
    st.builds(
        lambda make, text, case: make("f", text, ignore_case=case),
        st.sampled_from([contains, starts_with, ends_with]), PATTERNS, st.booleans(),
    ),
    st.builds(lambda text, case: like("f", "".join(text), ignore_case=case), LIKE, st.booleans()),
    st.builds(lambda part: contains("f", part), st.sampled_from([b"", b"a", b"b\xff"])),
    st.builds(lambda part: ends_with("f", part), st.sampled_from([b"", b"a", b"b\xff"])),
)  # fmt: skip


def found_in(operation: Operation, values: list[object]) -> list[bool]:
    assert isinstance(operation, TextMatch)
    test = matcher_of(operation)
    found = [test(part) for part in Texts.of([value_key(value) for value in values]).parts()]
    return [bool(one) for one in np.concatenate([np.empty(0, np.bool_), *found])]


@given(operation=ASKED, values=st.lists(TEXTS | OTHERS, max_size=12))
@settings(max_examples=4 * EXAMPLES, deadline=None)
def test_values_are_found_as_python_finds_them(operation: TextMatch, values: list[object]) -> None:
    expected = [text_matches(operation, value) for value in values]
    assert found_in(operation, values) == expected
    assert [holds_text(operation.op, operation.value, operation.ignore_case, value) for value in values] == expected
    assert [operation.holds(value) for value in values] == expected


EXPRESSIONS = [
    "a", "^a", "b$", "^$", "", "a*", "^a*$", "a|^b", "[^a]b", "[]^]", r"\^|\$", r"\ba", r"\Ba", r"a\b", "(ab)+", "a.b",
    "(?s)a.b", "(?m)^b", "[a-b]+%", r"\x05", r"(?:^| )b", "é", "(?i)É", "a{2}b?", r"[\]^]a", r"\\", "K", "[[:alpha:]]b",
]  # fmt: skip


# Python takes the dotted capital I for an i in the range a-z without regard to case, against Unicode's own table.
UNDOTTED = VALID.map(lambda text: re.sub("[İ\u0131]", "", text))


@pytest.mark.parametrize("pattern", EXPRESSIONS)
@given(values=st.lists(UNDOTTED | OTHERS, max_size=12), ignore_case=st.booleans())
@settings(max_examples=max(8, EXAMPLES // 4), deadline=None)
def test_expressions_are_found_as_python_finds_them(pattern: str, values: list[object], ignore_case: bool) -> None:
    is_of_words = r"\b" in pattern or r"\B" in pattern
    operation = TextMatch("matches", ("f",), pattern, ignore_case and not is_of_words)
    plain = TextMatch("matches", ("f",), pattern.replace("[:alpha:]", "a-zA-Z"), operation.ignore_case)
    assert found_in(operation, values) == [text_matches(plain, value) for value in values]


def is_expression(pattern: str) -> bool:
    try:
        matches("f", pattern)
    except QueryError:
        return False
    return True


# What may match no letter at all: at the edges of words and texts, where one text ends and the next begins.
EMPTY_MATCHES = [
    r"\b", r"\B", r"$", r"^", r"\z", r"\A", r"a*", r"(?m)^", r"(?m)$", r"(?m)^$", r"a*\b", r"\b\b", r"\b$", r"^\b",
    r"\B$",
    r"^\B", r"\Ba*\B", r"a?$", r"\b|!", r"!|\b", r"(?:\b)*", r"(\b)+", r"(?m)\b$", r"\bz*", r"^$|\b", r"x{0}\b",
    r"(?s).??\b",
    r"\b\B", r"^a|\b$", r"\x1e\b", r"^\x1e?\b", r"(?i)\bA*", r"[^a]*\b", r"\b(?m)$", r"(?m:^)\b", r"\b\z", r"(?U)a*\b",
]  # fmt: skip
AT_EDGES = st.lists(
    st.sampled_from(["a", "b", "A", "!", " ", "\n", "_", "\x1e", "\x05", "é", "ÿ", "\udcff", "\udcc3", "\0"]),
    max_size=4,
).map("".join)


ATOMS = [*EMPTY_MATCHES, "a", "!", ".", "[^a]", r"\W", "(?s).", "|", "(?:a|)", "b?", "é", r"\x1e", "{2}", "+", "a{0,2}"]
COMPOSED = st.lists(st.sampled_from(ATOMS), min_size=1, max_size=4).map("".join).filter(is_expression)


@given(
    pattern=st.sampled_from(EMPTY_MATCHES) | COMPOSED,
    values=st.lists(AT_EDGES | OTHERS, min_size=1, max_size=12),
    ignore_case=st.booleans(),
)
@settings(max_examples=20 * EXAMPLES, deadline=None)
def test_matches_of_no_letter_are_of_the_text_that_they_stand_in(
    pattern: str, values: list[object], ignore_case: bool
) -> None:
    operation = TextMatch("matches", ("f",), pattern, ignore_case)
    assert found_in(operation, values) == [holds_text("matches", pattern, ignore_case, value) for value in values]


def test_the_edges_of_words_are_those_of_each_text() -> None:
    edges = matches("f", r"\b")
    assert found_in(edges, ["a", "!", "?"]) == [True, False, False]
    assert found_in(edges, ["!"]) == [False]
    assert found_in(edges, ["a"]) == [True]
    assert found_in(matches("f", r"\b$"), ["", "!", "a", "", "b!"]) == [False, False, True, False, False]
    many = ["word", "!", ""] * 1000  # so many that they are looked at one by one from some text on
    assert found_in(edges, many) == [text == "word" for text in many]


def test_parts_are_cut_between_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_tests, "PART", 64)
    values: list[object] = [f"{'x' * (number % 90)} {number}" for number in range(500)] + ["needle" * 40]
    for operation in (
        contains("f", "4 4"),
        contains("f", "X 7", ignore_case=True),
        like("f", "%x 3_"),
        matches("f", "x 1.$"),
    ):
        assert isinstance(operation, TextMatch)
        assert found_in(operation, values) == [text_matches(operation, value) for value in values]
    assert found_in(contains("f", "needleneedle"), values).count(True) == 1


# What hangs engines that try one way after the other, for ever; RE2 takes the time of one look at each letter.
CATASTROPHIC = [
    ("(a+)+$", "a" * 5000 + "!"), ("(a|aa)+$", "a" * 5000 + "!"), ("(a|a?)+b", "a" * 5000), ("(.*)*x", "a" * 5000),
    ("(x+x+)+y", "x" * 5000), ("^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 5000), ("(.*,){11}P", "1," * 2500),
    ("(a?){60}a{60}$", "a" * 59 + "!"), ("([a-z]+[a-z]*)*[%]", "q" * 5000),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "text"), CATASTROPHIC)
def test_no_pattern_hangs(pattern: str, text: str) -> None:
    begin = time.process_time()
    assert found_in(matches("f", pattern), [f"{text}{number}" for number in range(40)]) == [False] * 40
    assert time.process_time() - begin < 5  # of 200,000 letters: it takes milliseconds


@pytest.mark.parametrize("pattern", ["^a.*b[0-9]+$", "a.*b", "(?s)a.*[^x]*b", "^[^x]*b.*9$", r"\ba\W.*\w+"])
def test_finding_many_texts_takes_linear_time(pattern: str) -> None:
    values: list[object] = [f"a {number} b{number}" if number % 10 == 0 else f"x {number}" for number in range(60_000)]
    begin = time.process_time()
    expected = [re.search(pattern, str(value)) is not None for value in values]
    assert found_in(matches("f", pattern), values) == expected
    assert time.process_time() - begin < 5  # of a megabyte; minutes, if each search went on to its end


REFUSED = ["(", "a{1001}", "((a{500}){500}){500}", "(?=a)", r"(a)\1", "(?P<n>", "[b-a]", "\udcff"]


@pytest.mark.parametrize("pattern", REFUSED, ids=ascii)
def test_what_is_no_expression_is_refused(pattern: str) -> None:
    with pytest.raises(QueryError, match="regular expression"):
        matches("f", pattern)


def test_long_patterns_that_may_stand_anywhere_are_refused() -> None:
    for make, pattern in ((contains, "x" * 1001), (like, "%" + "_" * 1001 + "%"), (like, "a%b" + "_" * 1000)):
        with pytest.raises(QueryError, match="at most 1,000"):
            make("f", pattern)
    assert found_in(ends_with("f", "x" * 5000), ["x" * 5000, "x" * 4999]) == [True, False]
    assert found_in(like("f", "a%" + "x" * 5000), ["a" + "x" * 5000, "x" * 4999]) == [True, False]


def test_a_question_is_cancelled_while_values_are_looked_at(tmp_path, monkeypatch) -> None:
    with Log(tmp_path / "log", codec="json") as log:
        log.append_many({"message": f"{number} {'x' * 1000}"} for number in range(2000))
        log.flush()
        db = JITDB(log)
        assert db.count(contains("message", "1 x")) == 200
        cancel, before = threading.Event(), text_tests._Like.test

        def looking(self, texts):
            cancel.set()
            return before(self, texts)

        monkeypatch.setattr(text_tests._Like, "test", looking)
        with pytest.raises(QueryCancelled):
            db.count(contains("message", "2 x"), cancel=cancel)
        monkeypatch.undo()
        assert db.count(contains("message", "2 x")) == 200


def test_what_was_found_is_kept_and_grows_with_the_log(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("jitdb.engine.answering.evaluate.LOOKED_AT_ONCE", 0)
    with Log(tmp_path / "log", codec="json") as log:
        log.append_many({"message": f"Message {number}", "size": number} for number in range(300))
        log.flush()
        db = JITDB(log)
        asked = {
            contains("message", "7"): "7",
            matches("message", "^Message .*1$"): r"1$",
            like("message", "mess%5_", ignore_case=True): r"5.$",
        }
        for round_ in range(4):
            total = 300 + 100 * round_
            for operation, found in asked.items():
                assert db.count(operation) == sum(re.search(found, str(number)) is not None for number in range(total))
            log.append_many({"message": f"Message {number}", "size": number} for number in range(total, total + 100))
            log.flush()
        calls: list[object] = []
        like_test = text_tests._Like.test

        def counted(self, texts):
            calls.append(texts)
            return like_test(self, texts)

        monkeypatch.setattr(text_tests._Like, "test", counted)
        db.count(contains("message", "7"))
        assert db.count(contains("message", "7", ignore_case=False)) > 0
        assert len(calls) == 1  # the last hundred, and then none


def forms_of(db: JITDB, path: str) -> set[str]:
    """The indexes that there are of a field."""
    return {
        spec.form for spec in manager_of(db).index_names().values() if spec is not None and spec.paths == ((path,),)
    }


def test_bitmaps_that_are_there_serve_until_they_turn_into_hashes(tmp_path) -> None:
    with Log(tmp_path / "log", codec="json") as log:
        log.append_many({"level": f"Level {number % 7}"} for number in range(300))
        log.flush()
        db = JITDB(log)
        db.count(equal("level", "Level 1"))
        texts = [f"Level {number % 7}" for number in range(300)]
        kinds = {
            contains("level", "5"): "5", like("level", "%_2"): ".2$", starts_with("level", "Level 4"): "^Level 4",
            ends_with("level", "EL 3", ignore_case=True): "l 3$",
        }  # fmt: skip

        def agree() -> None:
            for operation, written in kinds.items():
                assert db.count(operation) == sum(re.search(written, text) is not None for text in texts)

        agree()
        assert forms_of(db, "level") == {"auto"}
        for number, more in enumerate(
            ([f"Level {number}" for number in range(5000)], [f"other {number % 9} Level 4" for number in range(50)])
        ):
            log.append_many({"level": text} for text in more)
            log.flush()
            texts += more
            agree()
            assert forms_of(db, "level") == {"auto", "dictionary"}, number


def test_what_serves_for_beginnings_is_what_is_there(tmp_path) -> None:
    with Log(tmp_path / "log", codec="json") as log:
        log.append_many({"a": f"a{number}", "b": [f"b{number}"]} for number in range(3000))
        log.flush()
        db = JITDB(log)
        assert db.count(starts_with("a", "a12")) == 111
        assert forms_of(db, "a") == {"prefix"}
        assert db.count(contains("a", "12")) == sum("12" in str(number) for number in range(3000))
        log.append({"a": "a12 again"})
        log.flush()
        assert db.count(starts_with("a", "a12")) == 112  # which of the two is brought up to date, is the same
        fresh = JITDB(log, "memory")
        assert fresh.count(contains("a", "12")) == sum("12" in str(number) for number in range(3000)) + 1
        assert fresh.count(starts_with("a", "a12")) == 112
        assert forms_of(fresh, "a") == {"dictionary"}
        assert fresh.explain(starts_with("a", "a12"))["candidates"] == 0
