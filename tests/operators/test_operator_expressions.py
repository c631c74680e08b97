"""Text becomes operations, and operations text; whatever is wrong is shown with a caret."""

import keyword
import math
import re

import pytest
from any_operation import operations
from hypothesis import example, given
from hypothesis import strategies as st
from toy_database import small_database

from jitdb.errors import QueryError
from jitdb.operators import (
    absent,
    and_,
    contains,
    ends_with,
    equal,
    everything,
    format_expression,
    gt,
    gte,
    includes,
    like,
    lt,
    lte,
    matches,
    not_,
    offsets,
    or_,
    parse_expression,
    predicate,
    seqs,
    starts_with,
)

A, B, C = equal("a", 1), equal("b", 2), equal("c", 3)


def is_in(text, path):
    """What `"text" in path` asks."""
    return or_(includes(path, text), contains(path, text))


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("a == 1", A),
        ("1 == a", A),
        (" \n a == 1\n", A),
        ("a == 1 and b == 2 or c == 3", or_(and_(A, B), C)),
        ("a == 1 and (b == 2 or c == 3)", and_(A, or_(B, C))),
        ("(a == 1 # one\n or b == 2)", or_(A, B)),
        ("(a == 1) & (b == 2) & ~(c == 3)", and_(A, B, not_(C))),
        ("(a == 1) | (b == 2)", or_(A, B)),
        ("not not a == 1", A),
        ("a != 1", not_(A)),
        ("a.b-1" if False else "a['b-1'] == 1", equal("a.b-1", 1)),
        ('field("my-key").x == 1', equal("my-key.x", 1)),
        ('field("a.b").c == 1', equal("a.b.c", 1)),
        ('field("a.b", "c") == 1', equal(("a.b", "c"), 1)),
        ('field("true") == true', equal("true", True)),
        ('["log.level"] == "ERROR"', equal(("log.level",), "ERROR")),
        ('"ERROR" != ["log.level"]', not_(equal(("log.level",), "ERROR"))),
        ('18 < ["user.age"] <= 65', and_(gt(18, ("user.age",)), lte(65, ("user.age",)))),
        ('["a"]["b c"].d[""] is absent', absent(("a", "b c", "d", ""))),
        ("present(['x.y'])", not_(absent(("x.y",)))),
        ('["x.y"] in ["A", "B"]', or_(equal(("x.y",), "A"), equal(("x.y",), "B"))),
        ('"x" in ["my.tags"] and 5 in ["n.s"]', and_(is_in("x", ("my.tags",)), includes(("n.s",), 5))),
        ('["x"] in tags and ["a"] == tags', and_(includes("tags", ["x"]), equal("tags", ["a"]))),
        ('tags == ["a"] or tags == [] or x in ["a"]', or_(equal("tags", ["a"]), equal("tags", []), equal("x", "a"))),
        ('["x.y"] == ["a"]', equal(("x.y",), ["a"])),
        ('["x.y"].starts_with("q")', starts_with(("x.y",), "q")),
        ('items[0].sku == "x1"', equal(("items", 0, "sku"), "x1")),
        ('items[].sku == "x1"', equal(("items", None, "sku"), "x1")),
        ('items[].sku != "x1"', not_(equal(("items", None, "sku"), "x1"))),
        ("items[][1][].from > 2", gt(2, ("items", None, 1, None, "from"))),
        ('items [ ] . sku in ["a"]', equal(("items", None, "sku"), "a")),
        ('"x" in items[].tags', is_in("x", ("items", None, "tags"))),
        ('["a.b"][].c == 1 # []', equal(("a.b", None, "c"), 1)),
        ('[].sku == "x" or [0] == 5', or_(equal((None, "sku"), "x"), equal((0,), 5))),
        ('includes(items[].a, "x", pluck="b[0].c")', includes("items[].a", "x", pluck=("b", 0, "c"))),
        ("a.true == True", equal("a.true", True)),
        ("a == 1.0", A),
        ("a == -5", equal("a", -5)),
        ("a == -5.5", equal("a", -5.5)),
        ("a == +5", equal("a", 5)),
        ("a == null", equal("a", None)),
        ("a is None", or_(equal("a", None), absent("a"))),
        ("a is not null", not_(or_(equal("a", None), absent("a")))),
        ("a is false", equal("a", False)),
        ("a is absent", absent("a")),
        ("a is not absent", not_(absent("a"))),
        ("a.absent == 1", equal("a.absent", 1)),
        ('a == b"x"', equal("a", b"x")),
        ('a == "it" " is"', equal("a", "it is")),
        ('a == [1, "x", {"k": [None]}]', equal("a", [1, "x", {"k": [None]}])),
        ("a == (1, 2)", equal("a", [1, 2])),
        ('a == float("nan")', equal("a", math.nan)),
        ('a == -float("inf")', equal("a", -math.inf)),
        ("a > 1", gt(1, "a")),
        ("1 > a", lt(1, "a")),
        ("1 <= a", gte(1, "a")),
        ("1 < a <= 5", and_(gt(1, "a"), lte(5, "a"))),
        ("timestamp > 5", gt(5, ("timestamp",))),
        ('index("timestamp") > 5', gt(5, "timestamp")),
        ('5 > index("sequence")', lt(5, "sequence")),
        ('"x" in a.b', is_in("x", "a.b")),
        ('"x" not in a.b', not_(is_in("x", "a.b"))),
        ("[1] in a", includes("a", [1])),
        ('a in ["x", "y"]', or_(equal("a", "x"), equal("a", "y"))),
        ('a in ("x",)', equal("a", "x")),
        ('a in {"x"}', equal("a", "x")),
        ("a in []", not_(everything())),
        ("a not in [1]", not_(A)),
        ("absent(a.b)", absent("a.b")),
        ('absent("a.b", prefix=32)', absent("a.b", prefix=32)),
        ("present(a)", not_(absent("a"))),
        ("a.present()", not_(absent("a"))),
        ('includes(a, "x", pluck="b.c")', includes("a", "x", pluck="b.c")),
        ('a.includes("x", pluck="b")', includes("a", "x", pluck="b")),
        ("equal(a, 1, prefix=True, prefix_offset=2)", equal("a", 1, prefix=True, prefix_offset=2)),
        ('starts_with(a, "x")', starts_with("a", "x")),
        ('a.b.startswith(b"x")', starts_with("a.b", b"x")),
        ('field("a.b").starts_with("x")', starts_with("a.b", "x")),
        ('a contains "x"', contains("a", "x")),
        ('a.b icontains "x" or b == 1', or_(contains("a.b", "x", ignore_case=True), equal("b", 1))),
        ('contains(a, b"x") and a.contains("y")', and_(contains("a", b"x"), contains("a", "y"))),
        ('not a like "x%"', not_(like("a", "x%"))),
        ('a not ilike "x%"', not_(like("a", "x%", ignore_case=True))),
        ('a endswith "x" and b starts_with "y"', and_(ends_with("a", "x"), starts_with("b", "y"))),
        (
            'iends_with(a, "x") or a istartswith "x"',
            or_(*(each("a", "x", ignore_case=True) for each in (ends_with, starts_with))),
        ),
        ('like like "like" and not contains == 1', and_(like("like", "like"), not_(equal("contains", 1)))),
        ('(a contains # what\n "x"\n)', contains("a", "x")),
        ('é.ü["ß"] contains "ö" and path.0 like "_"', and_(contains("é.ü.ß", "ö"), like("path.0", "_"))),
        ("a.isin([1])", A),
        ("seqs(1, 2)", seqs([1, 2])),
        ("seqs([1, 2])", seqs([1, 2])),
        ("seqs()", seqs([])),
        ("offsets(0, 341) or a == 1", or_(offsets([0, 341]), A)),
        ("everything()", everything()),
        ('from == "x"', equal("from", "x")),
        ("took > 100ms", gt(0.1, "duration(took)")),
        ("took == -1h2m3.5s", equal("duration(took)", -3723.5)),
        ("100us <= duration(took) < 1min", and_(gte(1e-4, "duration(took)"), lt(60, "duration(took)"))),
        ("class.x == 1 and user.is == 2", and_(equal("class.x", 1), equal("user.is", 2))),
        ("in == 2 or 1 < is <= 3", or_(equal("in", 2), and_(gt(1, "is"), lte(3, "is")))),
        ('"x" in in', is_in("x", "in")),
        ('"from" not in from', not_(is_in("from", "from"))),
        ('not in in ["in"]', not_(equal("in", "in"))),
        ("not == 1", equal("not", 1)),
        ("not not.x == 1", not_(equal("not.x", 1))),
        ("and == 1 and and == 2", and_(equal("and", 1), equal("and", 2))),
        ("import.x == 3 # from", equal("import.x", 3)),
        ("absent(lambda)", absent("lambda")),
        ("from is not absent", not_(absent("from"))),
        ("a.None == 1", equal("a.None", 1)),
        ("if == b'if'", equal("if", b"if")),
        ('é.from == "ö" and ü == 1', and_(equal("é.from", "ö"), equal("ü", 1))),
        ('é.ü == "ö"', equal("é.ü", "ö")),
        ("value['ﬁ'] == 1 and ﬁ.a.ﬁ == 2", and_(equal(("value", "ﬁ"), 1), equal(("ﬁ", "a", "ﬁ"), 2))),
        ("हिन्दी == 1", equal("हिन्दी", 1)),
        ("a == 1\n  and b == 2 \\\n or c == 3", or_(and_(A, B), C)),
        (
            "a == '\\d\\n\\x41' r'\\n' and b in (1_000, 0x1F, 1.5e-3, .5)",
            and_(equal("a", "\\d\nA\\n"), or_(*(equal("b", number) for number in (1000, 31, 0.0015, 0.5)))),
        ),
        ("a == b'\\u\\xff' and b == '''x\n'y'''", and_(equal("a", b"\\u\xff"), equal("b", "x\n'y"))),
    ],
)
def test_text_becomes(text, operation):
    assert parse_expression(text) == operation


def test_regular_expressions():
    assert parse_expression('(a) matches ("^/[a-z]+")') == matches("a", "^/[a-z]+")
    wanted = and_(contains("from", "x"), not_(matches("not.x", "y")))
    assert parse_expression('from contains "x" and not not.x matches "y"') == wanted


@pytest.mark.parametrize(
    ("text", "hint", "place"),
    [
        ("a = 1", "written `==`, not `=`", 2),
        ("a === 1", "written `==`, not `===`", 2),
        ("a == 1 && b == 2", "instead of `&&`", 7),
        ("a == 1 || b == 2", "instead of `||`", 7),
        ("a == 1 AND b == 2", "in small letters", 7),
        ("!a", "`not`, not `!`", 0),
        ("a <> 1", "`!=`, not `<>`", 2),
        ('a LIKE "x%"', "in small letters", 2),
        ("a like 5", "takes a pattern such as 'A%', not 5", 7),
        ('a matches "("', "no regular expression of RE2: missing )", 10),
        ('a @ "b"', "cannot go on", 2),
        ('"x" contains a', "a field was expected", 0),
        ("a contains x", 'text stands in quotes, as in "x"', 11),
        ("a contains", "something is missing at the end", 10),
        ('from = "x"', "written `==`, not `=`", 5),
        ("took in [5ms]", "a length of time is compared by", 9),
        ("5ms == 5ms", "one side of a comparison is a field", 0),
        ("took > 5msx", "cannot go on like this", 8),
        ("é.from == 1 and ö == class.x", "not with another field", 21),
        ("a == 1 if b else from", "cannot go on", 7),
        ("user-name == 1", '["user-name"]', 0),
        ("1 < user.first-name.x", 'user["first-name"].x', 4),
        ("present(user-name)", '["user-name"]', 8),
        ("a == user-name", 'text stands in quotes, as in "user-name"', 5),
        ('"user-name" == "x"', '["user-name"]', 0),
        ("@timestamp > 5", '["@timestamp"]', 0),
        ("a == 1 and $type == 1", '["$type"]', 11),
        ("a.$type == 1", 'a["$type"]', 0),
        ("#tag == 1", '["#tag"]', 0),
        ('tags has "a"', '`"a" in tags`', 5),
        ('tags.has("a")', '`"a" in tags`', 0),
        ('type ~ "log.*"', "field matches", 5),
        ('type =~ "log.*"', "a function in Python", 5),
        ('type regexp "log.*"', "field matches", 5),
        ('regexp(type, "log.*")', "field matches", 0),
        ("a between 1 and 2", "1 <= field <= 2", 2),
        ("a exists", "present(field)", 2),
        ("a is present", "present(field)", 5),
        ("timestamp > 2023-11-14", 'a time stands in quotes: "2023-11-14"', 12),
        ("timestamp > 2023-01-09", 'a time stands in quotes: "2023-01-09"', 12),
        ('timestamp > "2023-02-29"', "as a time or a level only, and '2023-02-29' is neither", 12),
        ('index("sequence") > "2023-02-28"', "a sequence is a number", 20),
        ("timestamp > 2023-13-14", "sums are not worked out", 12),
        ("x == NaN", 'float("nan")', 5),
        ("x > -inf", 'float("-inf")', 4),
        ("a ==", "something is missing at the end", 4),
        ("(a == 1", "never closed", 0),
        ("a == 1)", "unmatched ')'", 6),
        ("a == 1 b == 2", "cannot go on like this", 7),
        ('a contain "b"', "did you mean `contains`?", 2),
        ('created at > "x"', 'brackets and quotes: ["created at"]', 8),
        ("`log.level` == 1", "without such quotes", 0),
        ('lower(a) == "x"', "ilike", 0),
        ("a + 5 > 10", "sums are not worked out", 0),
        ("a > b", "not another field", 4),
        ('"a.b" == 1', 'or, where the key itself has a dot, ["a.b"]', 0),
        ('a == "x', "unterminated string", 5),
        ("type == post", 'text stands in quotes, as in "post"', 8),
        ("value.a == value.b", "not with another field", 11),
        ("a == absent", "`field is absent`", 5),
        ("a == 1 & b == 2", "parentheses around each comparison", 5),
        ("1 == 2", "one side of a comparison is a field", 0),
        ("a == 1 == 2", "one side of a comparison is a field", 5),
        ("a", "write present(a)", 0),
        ("a == 1 and b.c", "write present(b.c)", 11),
        ("5", "a value alone is no question", 0),
        ('a < "x"', "as a time or a level only, and 'x' is neither", 4),
        ("a > true", "True is a bool", 4),
        ('a < float("nan")', "NaN", 4),
        ("a is 5", "goes with None", 5),
        ("presnt(a)", "did you mean present?", 0),
        ("foo(a)", "there are equal, includes", 0),
        ('__import__("os").system("x")', "there is no function '__import__'", 0),
        ("a.b().c == 1", "there is no function 'b'", 0),
        ("present(a).c == 1", "a field was expected", 0),
        ("(lambda: 1)()", "cannot go on", 7),
        ("(a == 1)()", "cannot go on", 8),
        ("includes(a)", "it is written includes(field, value)", 0),
        ("includes(a, 1, plukc='x')", "did you mean pluck?", 0),
        ("equal(a, 1, prefx=32)", "did you mean prefix?", 0),
        ("equal(a, 1, **b)", "a star has no meaning", 12),
        ("equal(*a)", "a star has no meaning", 6),
        ('starts_with(a, "x", prefix=32)', "without further options", 0),
        ("starts_with(a, 5)", "text or bytes to begin with", 0),
        ("seqs(-1)", "from 0", 0),
        ("seqs(1, x=2)", "it is written seqs(1, 2, 3)", 0),
        ("everything(1)", "it is written everything()", 0),
        ('index("size") > 1', 'index("timestamp") or index("sequence")', 0),
        ('index("timestamp") == 1', "compared by <, <=", 0),
        ('index("timestamp")', "alone is no question", 0),
        ('index("timestamp") in [1]', "compared by <, <=", 0),
        ('field("a")', "alone is no question", 0),
        ("field() == 1", "it is written field(", 0),
        ("field(1) == 1", "it is written field(", 0),
        ('field("") == 1', "at least one key", 0),
        ("value[-1] == 1", "a key in quotes", 6),
        ("value[x] == 1", "a key in quotes", 6),
        ("items[][true] == 1", "a key in quotes", 8),
        ("items[:] == 1", "a key in quotes", 6),
        ('["log.level"]', 'write present(["log.level"])', 0),
        ("(1)[] == 1", "a field was expected", 1),
        ("value[1:2] == 1", "a key in quotes", 6),
        ("true == 1", "one side of a comparison is a field", 0),
        ("true.x == 1", 'written ["true"]', 0),
        ("a == ~5", "a value was expected", 5),
        ("a == 1 + 2", "sums are not worked out", 5),
        ('a == f"x"', "without an f", 5),
        ("a == 3j", "cannot go on", 6),
        ("a == ...", "cannot go on", 5),
        ("a == {**b}", "stars have no meaning", 5),
        ("a == {[1]: 2}", "a key of a dict", 6),
        ('a == float("1")', 'it is written float("nan")', 5),
        ('a == "\\ud800"', "lone surrogate", 0),
        ("a == 1, b == 2", "not by commas", 0),
        ("[x for x in y]", "cannot go on", 3),
        ("lambda: 1", "cannot go on", 6),
        ("a == \x07", "cannot go on", 5),
        ("a == “x”", "cannot go on", 5),
        ("a == 1_", "1_ is no number", 5),
        ("(a == 1]", "cannot go on", 7),
        ("a" + ".b" * 100 + " == 1", "at most 64 keys", 0),
    ],
)
def test_mistakes_are_shown_with_a_caret(text, hint, place):
    with pytest.raises(QueryError) as raised:
        parse_expression(text)
    message, line, caret = str(raised.value).split("\n")
    assert hint in message
    assert line.startswith("  " + text[:60].replace("\x07", "\ufffd"))
    assert caret == "  " + " " * place + "^"


def test_the_caret_of_a_long_line_stays_in_sight():
    with pytest.raises(QueryError) as raised:
        parse_expression(f'{"x" * 100} == "ö{"y" * 200}" and z = 1 and {"w" * 200} == 2')
    _, line, caret = str(raised.value).split("\n")
    assert line[len(caret) - 1] == "="
    assert len(line) < 130


def test_the_caret_stands_in_the_right_line():
    with pytest.raises(QueryError) as raised:
        parse_expression('(a == "ö"\n  and "ö" > ö)')
    assert str(raised.value).split("\n")[1:] == ['    and "ö" > ö)', "        ^"]


@pytest.mark.parametrize("text", ["", "  ", None, 5, b"a == 1", "a\0 == 1", "a == '\ud800'", "x" * 1_000_001])
def test_what_is_no_text(text):
    with pytest.raises(QueryError):
        parse_expression(text)


@pytest.mark.parametrize(
    "text",
    [
        "not " * 10_000 + "a == 1",
        "~" * 10_000 + "(a == 1)",
        "(" * 10_000 + "a == 1" + ")" * 10_000,
        "a" + ".b" * 10_000 + " == 1",
        "a == " + "[" * 10_000,
        "a == " + "[" * 150 + "]" * 150,
        "a == " + "-" * 5_000 + "1",
        "f(" * 5_000,
        "a == 1" + " | a" * 20_000,
        "a - " * 900 + "a == 1",
        "a == " + "a - " * 900 + "a",
        "in." * 5_000 + "in == 1",
        "in " * 5_000,
        "not (" * 120 + "a == 1" + ")" * 120,
        "a == " + "9" * 5_000,
    ],
)
def test_depth_and_size_are_limited(text):
    with pytest.raises(QueryError):
        parse_expression(text)


def test_long_lists_and_chains_are_no_depth():
    assert len(parse_expression(" or ".join(f"a == {number}" for number in range(5_000))).args) == 5_000
    assert len(parse_expression(f"a in {list(range(20_000))}").value) == 20_000
    assert len(parse_expression(" | ".join(["(a == 1)"] * 90)).args) == 90


@given(st.text(max_size=40) | st.text("ab.=<>!&|~()[]{}'\"1 innotdrs,*:\n", max_size=30))
@example("a.in[b'x'] == in")
@example("not in not in ['a'] and is.not in (1,)")
@example("a == 1 if b else c")
@example("(yield)")
@example("await a")
@example("a[b]")
def test_any_text_is_an_operation_or_a_query_error(text):
    try:
        operation = parse_expression(text)
    except QueryError:
        return
    assert parse_expression(format_expression(operation)) == operation


@given(operations)
def test_round_trip(operation):
    text = format_expression(operation)
    assert parse_expression(text) == operation


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        (or_(and_(A, B), C), "a == 1 and b == 2 or c == 3"),
        (and_(or_(A, B), C), "(a == 1 or b == 2) and c == 3"),
        (not_(or_(A, B)), "not (a == 1 or b == 2)"),
        (not_(A), "a != 1"),
        (not_(includes("a", 1)), "1 not in a"),
        (not_(absent("a")), "not absent(a)"),
        (equal(("my-key", "x"), "it's"), """["my-key"].x == "it's\""""),
        (equal("class.a-b", None), '["class"]["a-b"] == None'),
        (equal(("a.b", "c"), 1), '["a.b"].c == 1'),
        (equal(("a.b",), ["x"]), "[\"a.b\"] == ['x']"),
        (includes(("a.b",), ["x"]), "includes([\"a.b\"], ['x'])"),
        (equal("items[0].sku", "x"), "items[0].sku == 'x'"),
        (not_(equal("items[].sku", "x")), "items[].sku != 'x'"),
        (gt(1, (None, 0, "true")), "[][0].true > 1"),
        (includes("a", 1, pluck="b", prefix=32), "includes(a, 1, pluck='b', prefix=32)"),
        (gt(-5, "timestamp"), 'index("timestamp") > -5'),
        (lte(math.inf, "a"), 'a <= float("inf")'),
        (seqs([2, 1]), "seqs(2, 1)"),
        (contains("a", "it's"), 'a contains "it\'s"'),
        (not_(like(("my-key",), "_%", ignore_case=True)), "not [\"my-key\"] ilike '_%'"),
        (
            starts_with("a", "x", ignore_case=True) | ends_with("from", b"x"),
            "a istarts_with 'x' or [\"from\"] ends_with b'x'",
        ),
    ],
)
def test_text_of(operation, text):
    assert format_expression(operation) == text
    assert parse_expression(text) == operation


@given(st.lists(st.sampled_from(keyword.kwlist), min_size=1, max_size=3))
def test_every_word_of_python_is_a_key(keys):
    text = f'a.{".".join(keys)} == 1 and "x" in a.{keys[0]}'
    assert parse_expression(text) == and_(equal(("a", *keys), 1), is_in("x", ("a", keys[0])))


@given(st.lists(st.from_regex(r"\A[0-9][0-9a-fé_]{0,3}\Z"), min_size=1, max_size=3))
def test_every_key_that_begins_with_a_digit_is_a_key(keys):
    text = f'a.{".".join(keys)} == .5 and "é" in class["é"].{keys[0]}.b'
    assert parse_expression(text) == and_(equal(("a", *keys), 0.5), is_in("é", ("class", "é", keys[0], "b")))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('.level == "x"', 'level == "x"'),
        ('$.a.b == "x"', 'a.b == "x"'),
        ("level:error", 'level == "error"'),
        ("level:err*", 'level like "err%"'),
        ("user.name:*", "user.name is not absent"),
        ('level:"a b" AND NOT status:>=500', 'level == "a b" and not status >= 500'),
        ("level=error", 'level == "error"'),
        ("a = 1 && b = 2 || !(c == 3)", "a == 1 and b == 2 or not (c == 3)"),
        ("a <> 1 OR a IS NULL", "a != 1 or a is null"),
        ("message LIKE '%x%'", "message like '%x%'"),
        ('message =~ "^x"', 'message matches "^x"'),
        ("a === 1 and b !== 2", "a == 1 and b != 2"),
    ],
)
def test_the_habits_of_other_tools(text, meant):
    """The error offers what works."""
    with pytest.raises(QueryError) as raised:
        parse_expression(text)
    assert raised.value.__notes__ == [f"did you mean: {meant}"]
    parse_expression(meant)


@pytest.mark.parametrize("text", ["a ==", "((a == 1)", "a b c", "1 = 2", ")", "'", ":", "a = = 1"])
def test_nothing_is_offered_that_is_no_expression(text):
    with pytest.raises(QueryError) as raised:
        parse_expression(text)
    assert not getattr(raised.value, "__notes__", [])


def test_digits_are_where_a_key_begins_only():
    assert parse_expression('a.0é == "é"') == equal("a.0é", "é")
    assert parse_expression("a > .5 and path.0 <= 1.5") == and_(gt(0.5, "a"), lte(1.5, "path.0"))
    assert parse_expression("\U00012400.b == 1 or a.0 == 2") == or_(equal("\U00012400.b", 1), equal("a.0", 2))
    for text in ("0.5", "a == 1.5.2", "a == 10.0.0.1", "path.-1 == 2", "a.\u0663 == 1"):
        with pytest.raises(QueryError):
            parse_expression(text)
    with pytest.raises(QueryError, match=r'present\(path\["0"\]\)'):
        parse_expression("path.0")


def test_functions_cannot_be_written():
    with pytest.raises(QueryError, match="a predicate holds a function"):
        format_expression(and_(A, predicate("a", str.isupper)))
    with pytest.raises(QueryError, match="a seek function"):
        format_expression(equal(lambda record, start: 0, 1, index_type="x"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('value.content.type == "post" and value.sequence > 1', [2, 3]),
        ("value.content.root is absent", [0, 1, 4]),
        ("value.content.root == None", [2]),
        ("value.content.root is None", [0, 1, 2, 4]),
        ("value.content.root is not null", [3]),
        ('"th" in value.content.text', [3]),
        ('value.content.type != "post"', [1, 4]),
        ('"@b" in value.content.mentions', [0]),
        ('includes(value.content.mentions, "@b", pluck="link")', [3]),
        ("1 < value.sequence <= 3", [1, 2]),
        ("size == true or size == 1", [4]),
        ('starts_with(value.content.text, "t")', [3]),
        ('index("timestamp") >= 4', [3, 4]),
        ("not (value.content.vote.value < 5)", [0, 2, 3, 4]),
    ],
)
def test_what_expressions_find(text, found):
    assert small_database().find(parse_expression(text)) == found


@pytest.mark.parametrize("text", ["63d4b8bc", "9f3a77", "550e8400-e29b-41d4-a716-446655440000"])
def test_an_id_alone_is_a_text_to_find(text: str) -> None:
    with pytest.raises(QueryError, match=re.escape(f'a text in any field: * contains "{text}"')):
        parse_expression(text)
