"""Expressions of any length, sound or not, are read in time that follows their length; what is said stays short."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import pytest

from jitdb.errors import QueryError
from jitdb.operators.text.expression import MAX_LENGTH, parse_expression

#: Texts of about so many characters: of each kind of mistake, of deep nesting, of long chains.
CASES: Final[dict[str, Callable[[int], str]]] = {
    "unclosed": lambda n: 'a == "' + "x" * n,
    "unclosed1": lambda n: "a == '" + "x" * n,
    "unclosed quotes": lambda n: 'a == "' + "'x" * (n // 2),
    "unclosed words": lambda n: 'a == "' + "x y " * (n // 4),
    "unclosed dates": lambda n: 'a == "' + "2015-12-01 " * (n // 11),
    "unclosed escapes": lambda n: 'a == "' + "\\n" * (n // 2),
    "unclosed triple": lambda n: 'a == """' + "x\n" * (n // 2),
    "many quotes": lambda n: "a == " + '"' * n,
    "odd many quotes": lambda n: "a contains " + "'''" * (n // 3) + "'",
    "many triple": lambda n: "a contains 1 " + "''' " * (n // 4),
    "prefix letters": lambda n: "a contains " + "b'" * (n // 2),
    "unclosed after kw": lambda n: 'a contains "' + "x" * n,
    "open parens": lambda n: "(" * n,
    "closed parens": lambda n: "(" * (n // 2) + ")" * (n // 2),
    "close": lambda n: ")" * n,
    "brackets": lambda n: "a == " + "[" * n,
    "braces": lambda n: "{" * n,
    "mixed": lambda n: "([{" * (n // 3),
    "ends wrong": lambda n: " and ".join(["a == 1"] * (n // 11)) + " and",
    "word word": lambda n: "a " * (n // 2),
    "long word": lambda n: "a " + "x" * n,
    "long word and blank": lambda n: "x" * n + " y = 3",
    "two long words": lambda n: "x" * (n // 2) + " " + "y" * (n // 2) + " = 3",
    "blanks": lambda n: "a" + " " * n + "b",
    "blanks only": lambda n: "a =" + " " * n + "$",
    "words blanks": lambda n: ("x" * 100 + " " * 100) * (n // 200) + "y ==",
    "newlines": lambda n: "a ==" + "\n" * n,
    "newlines2": lambda n: "a == (" + "\n" * n,
    "newlines3": lambda n: "a == (" + "\n1" * (n // 2),
    "newlines keywords": lambda n: "(" + "\nfrom == 1 and" * (n // 14),
    "newlines contains": lambda n: "(" + "\nx contains 'a' and" * (n // 19) + " b == 1)",
    "newlines numbered": lambda n: "(" + "\nx.0 == 1 and" * (n // 13) + " b == 1)",
    "contains": lambda n: "x contains 'a' and " * (n // 19) + " b == 1",
    "starts_with not": lambda n: "x not contains 'a' and " * (n // 23) + " b == 1",
    "keywords": lambda n: "from == 1 and " * (n // 14) + " b == 1",
    "numbered": lambda n: "x.0 == 1 and " * (n // 13) + " b == 1",
    "any": lambda n: "x[].a == 1 and " * (n // 15) + " b == 1",
    "umlauts": lambda n: "ä == 1 and " * (n // 11) + " b == 1",
    "umlaut text": lambda n: 'ä == "' + "ä" * n + '" and b = 1',
    "look-alikes": lambda n: "\U0001d41a == 1 and " * (n // 11) + " b == 1",
    "and": lambda n: "a == 1 and " * (n // 11) + " b == 1",
    "or": lambda n: "a == 1 or " * (n // 10) + " b == 1",
    "and or": lambda n: "a == 1 and b == 2 or " * (n // 21) + " b == 1",
    "&": lambda n: "(a == 1) & " * (n // 11) + " (b == 1)",
    "|": lambda n: "(a == 1) | " * (n // 11) + " (b == 1)",
    "& |": lambda n: "(a == 1) | (b == 1) & " * (n // 22) + " (b == 1)",
    "& bare": lambda n: "a == 1 & " * (n // 9) + " b == 1",
    "not": lambda n: "not " * (n // 4) + "a == 1",
    "~": lambda n: "~" * n + "a",
    "minus": lambda n: "a == " + "-" * n + "1",
    "a-a": lambda n: "a-" * (n // 2) + "a == 1",
    "a+a": lambda n: "a+" * (n // 2) + "a == 1",
    "1+1": lambda n: "a == " + "1+" * (n // 2) + "1",
    "1-1": lambda n: "a == " + "1-" * (n // 2) + "1",
    "path": lambda n: "a." * (n // 2) + "a == 1",
    "path indexes": lambda n: "a" + "[0]" * (n // 3) + " == 1",
    "path numbers": lambda n: "a" + ".0" * (n // 2) + " == 1",
    "path any": lambda n: "a" + "[]" * (n // 2) + " == 1",
    "path keys": lambda n: "a" + ".from" * (n // 5) + " == 1",
    "compare": lambda n: "1 < " * (n // 4) + "a",
    "compare2": lambda n: "1 < a " + "< 1" * (n // 4),
    "calls": lambda n: "f(" * (n // 2),
    "calls closed": lambda n: "f(" * (n // 3) + ")" * (n // 3),
    "commas": lambda n: "a," * (n // 2),
    "args": lambda n: "equal(" + "a," * (n // 2) + ")",
    "list": lambda n: "a in [" + "1, " * (n // 3) + "1]",
    "list texts": lambda n: "a in [" + '"x", ' * (n // 5) + "1]",
    "list distinct": lambda n: "a in [" + ", ".join(f'"x{i}"' for i in range(n // 9)) + "]",
    "list nl": lambda n: "a in [" + "1,\n" * (n // 3) + "1]",
    "list bad": lambda n: "a in [" + '"x", ' * (n // 5) + "b]",
    "list unclosed": lambda n: "a in [" + '"x", ' * (n // 5) + "b",
    "distinct names": lambda n: " and ".join(f"x{i} == 1" for i in range(n // 15)),
    "escaped open": lambda n: "a contains " + chr(34) + (chr(92) + chr(34)) * (n // 2),
    "dict": lambda n: "a == {" + ",".join(f"{i}:1" for i in range(n // 8)) + "}",
    "dict same": lambda n: "a == {" + "1:1," * (n // 4) + "}",
    "equal text": lambda n: 'a == "' + "x" * n + '"',
    "equal escapes": lambda n: 'a == "' + "\\n" * (n // 2) + '"',
    "equal backslashes": lambda n: 'a == "' + "\\\\" * (n // 2) + '"',
    "equal \\d": lambda n: 'a == "' + "\\d" * (n // 2) + '"',
    "equal quotes": lambda n: 'a == "' + '\\"' * (n // 2) + '"',
    "bytes \\d": lambda n: 'a == b"' + "\\d" * (n // 2) + '"',
    "texts side by side": lambda n: "a == " + '"x" ' * (n // 4),
    "fstrings": lambda n: "a == " + 'f"{a}" ' * (n // 7),
    "fstring": lambda n: 'a == f"' + "{a}" * (n // 3) + '"',
    "fstring open": lambda n: 'a == f"' + "{" * n,
    "fstring nested": lambda n: 'a == f"' + "{a:" * (n // 3),
    "matches": lambda n: 'a matches "' + "x" * n + '"',
    "matches bad": lambda n: 'a matches "' + "(" * n + '"',
    "like": lambda n: 'a like "' + "%x" * (n // 2) + '"',
    "number": lambda n: "a == " + "1" * n,
    "number2": lambda n: "a == " + "1_" * (n // 2),
    "number3": lambda n: "a == 1." + "1" * n,
    "hex": lambda n: "a == 0x" + "f" * n,
    "numbers": lambda n: "a == " + "1 " * (n // 2),
    "date": lambda n: "a == " + "2015-12-01 " * (n // 11),
    "date dashes": lambda n: "a == " + "2015-12-" * (n // 8),
    "date 2": lambda n: "a > 2015-1-1T" + "1:" * (n // 2),
    "dates no blanks": lambda n: "a > 2015-12-01" + "T1" * (n // 2),
    "date numbers": lambda n: "a > " + "1234" * (n // 4) + "-1",
    "odd path": lambda n: "a == 1 and $" + "a." * (n // 2),
    "odd paths": lambda n: "a.$b " * (n // 5),
    "odd paths2": lambda n: "$" * n,
    "odd paths3": lambda n: "a" * n + "$",
    "odd paths4": lambda n: "a." * (n // 2) + "$",
    "odd paths5": lambda n: "#" * n,
    "odd paths6": lambda n: "@-" * (n // 2),
    "odd paths7": lambda n: "a" + ".@-" * (n // 3),
    "odd hash": lambda n: "#a" + "-" * n,
    "odd hash2": lambda n: "a == #a" + "-" * n,
    "odd end": lambda n: "a == 1 and b = " + "x.a" * (n // 3),
    "sign end": lambda n: "a" * n + " && b",
    "sign begin": lambda n: "a && " + "b" * n,
    "===": lambda n: "a === " * (n // 6),
    "!": lambda n: "!" * n,
    "tilde": lambda n: "a =~ " * (n // 5),
    "tabs": lambda n: "\t" * n + "a = 1",
    "tabs2": lambda n: "(a == 1\n" + "\t" * n + "= 1",
    "semicolons": lambda n: ";" * n,
    "backslash": lambda n: "\\" * n,
    "backslash nl": lambda n: "a == \\\n" * (n // 7),
    "comments": lambda n: "a == (" + "#x\n" * (n // 3) + "1)",
    "comment": lambda n: "a == 1 #" + "x" * n,
    "comment between": lambda n: "(a #" + "x" * n + "\n contains 'x')",
    "null": lambda n: "a == 1" + "\0" * n,
    "surrogates": lambda n: "a == '" + "\ud800" * n + "'",
    "lambda": lambda n: "lambda: " * (n // 8),
    "if": lambda n: "a if b else " * (n // 12) + "a",
    "star": lambda n: "*" * n,
    "pow": lambda n: "a" + "**a" * (n // 3),
    "await": lambda n: "await " * (n // 6),
    "walrus": lambda n: "(a:=" * (n // 4),
    "in in": lambda n: "in " * (n // 3),
    "not in": lambda n: "a not in " * (n // 9),
    "is not": lambda n: "a is not " * (n // 9),
    "for": lambda n: "[a for a in " * (n // 12),
    "like like": lambda n: "like " * (n // 5),
    "contains contains": lambda n: "contains " * (n // 9),
    "a contains a contains": lambda n: "a" + " contains a" * (n // 11),
    "uni name": lambda n: "ﬀ" * n + " == 1",
    "long name": lambda n: "a" * n + " == 1",
    "long func": lambda n: "a" * n + "(b)",
    "long option": lambda n: "equal(a, 1, " + "a" * n + "=1)",
    "funcs text": lambda n: 'equal("' + "a." * (n // 2) + '", 1)',
    "text left": lambda n: '"' + "a" * n + '" == 1',
    "text left dots": lambda n: '"' + "a." * (n // 2) + '" == 1',
    "field text": lambda n: "a == " + "b" * n,
    "dashed": lambda n: "a == " + "b-" * (n // 2) + "b",
    "time": lambda n: 'a > "' + "1" * n + '"',
    "bracket key": lambda n: '["' + "a" * n + '"] == 1',
    "seqs": lambda n: "seqs(" + "1, " * (n // 3) + ")",
    "offsets": lambda n: "offsets(" + "1, " * (n // 3) + "-1)",
    "float": lambda n: 'a == float("' + "x" * n + '")',
    "present": lambda n: " and ".join(["present(a)"] * (n // 14)),
    "index": lambda n: " and ".join(['index("timestamp") > 3'] * (n // 27)),
    "index bad": lambda n: 'index("' + "x" * n + '") > 3',
    "distinct and": lambda n: " and ".join(f"a == {i}" for i in range(n // 14)),
    "distinct or kw": lambda n: " or ".join(f"from == {i}" for i in range(n // 16)),
    "distinct cont": lambda n: " or ".join(f"a contains '{i}'" for i in range(n // 20)),
}
ROUGHLY: Final = 1300  # characters: what is said of a mistake, and the excerpt


def seconds(text: str) -> float:
    """Of the processor, which other processes do not lengthen."""
    begin, said = time.process_time(), ""
    try:
        parse_expression(text)
    except QueryError as error:
        said = str(error)
    took = time.process_time() - begin
    assert len(said) < ROUGHLY
    return took


@pytest.mark.parametrize("name", CASES)
def test_ten_times_the_length_takes_about_ten_times_the_time(name: str) -> None:
    make = CASES[name]
    pairs = ((seconds(make(10_000)), seconds(make(100_000))) for _ in range(5))  # one without others at work is enough
    assert any(long < 15 * max(short, 0.03) for short, long in pairs)


@pytest.mark.parametrize("name", ["unclosed", "long word", "escaped open", "newlines contains", "umlauts", "list"])
def test_the_longest_there_may_be(name: str) -> None:
    assert seconds(CASES[name](MAX_LENGTH - 100)) < 20


def test_a_place_behind_letters_of_several_bytes() -> None:
    text = '(ä == "öö" and\n ß.contains == 1 and é contains 7)'
    with pytest.raises(QueryError) as caught:
        parse_expression(text)
    line = text.split("\n")[1]
    assert str(caught.value).endswith(f"\n  {line}\n  {' ' * line.index('7')}^")
