"""Patterns of texts, against a masker made of regular expressions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mask_oracle import mask

from jitdb.common.placeholders import MOST, SLACK
from jitdb.common.values import ABSENT, STRING, value_key
from jitdb.log.codecs.fields.located import FieldValues
from jitdb.log.codecs.masks import mask_of, masked

SAID = {
    "timeout after 30ms waiting for connection 5/10": "timeout after <num>ms waiting for connection <num>/<num>",
    "user 9f3a77c1-1111-2222-3333-444455556666 in": "user <uuid> in",
    "from 10.0.0.1:8080 to 10.0.0.256.1": "from <ip>:<num> to <num>",
    "at 2026-11-20T14:03:11.123Z, 2026-11-20 14:03 and 14:03:11,5": "at <time>, <time> and <time>",
    "Fri Nov 20 14:03:11 2026 x May be Jul  4": "<time> x May be <time>",
    "[20/Nov/2026:14:03:11 +0000]": "[<time> <num>]",
    "commit 9f3a77c1d0 0x7F deadbeef 12345678": "commit <hex> <hex> deadbeef <num>",
    "worker12 v2.14.3 S3 a1b2c3": "worker<num> v<num>.<num> <id> <id>",
    "x=-5 a-3 --1 (1)-2 1.5e-3": "x=<num> a-<num> -<num> (<num>)-<num> <num>",
    "2e5 15µs 1,234 7thing": "<num> <num>µs <num>,<num> <id>",
    "blk_-1608 blk_16 my_id_77": "blk_<num> blk_<num> my_id_<num>",
    "  many \t\r\n blanks ": "many blanks",
    "a <num> that <*> stands <...> there <nun>": "a <id> that <id> stands <id> there <nun>",
    "": "",
}  # fmt: skip

PIECES = [
    " ", "  ", "\n", ":", "-", "+", ".", ",", "/", "(", ")", "<", ">", "_", "=", "T", "Z", "e", "x", "0x", "µ", "é",
    "a", "f", "v", "s", "1", "12", "2026", "20", "11", "14:03", "14:03:11", "2026-11-20", "Nov", "Fri", "<num>",
    "<*>", "ms",
    "deadbeef", "9f3a77c1", "9f3a77c1-1111-2222-3333-444455556666", "10.0.0.1", "worker", "\udcff", "\x1b",
    "\u202e", "\0",
]  # fmt: skip
texts = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.text("0123456789abcdefTZ:-+., /", max_size=30),
)


@pytest.mark.parametrize("text", SAID)
def test_what_is_said_of_patterns(text: str) -> None:
    assert mask_of(text) == SAID[text] == mask(text)


@given(texts)
@example("Nov 1214:03")
@example("14:03:11.5a")
@example("1.5abcd")
def test_patterns_are_those_of_the_regular_expressions(text: str) -> None:
    assert mask_of(text) == mask(text)


@given(st.lists(texts, max_size=20))
def test_many_at_once_are_as_each_alone(held: list[str]) -> None:
    found = masked(FieldValues.of_keys([value_key(text) for text in held]))
    assert [found.payload(at).decode("utf-8", "surrogateescape") for at in range(len(held))] == list(map(mask, held))


def test_what_is_no_text_has_no_pattern() -> None:
    found = masked(FieldValues.of_keys([value_key(held) for held in (None, True, 5, b"x", [1], {"a": 1}, "x")]))
    assert found.kind.tolist() == [ABSENT] * 6 + [STRING]


@pytest.mark.parametrize(
    "text",
    [
        "1," * 50_000, "word " * 20_000, "w" * 100_000, "1" * 100_000, "-" * 100_000, "a1 " * 30_000,
        " " * 100_000, "<num>" * 20_000, "\n" * 1000 + "x", "é" * 32 + " " + "é" * 33, "1." * 50_000,
        "v1 " * 127 + "v1", "v1 " * 128 + "v1", "v1 " * 128, "." * 1024, "." * 1025, "." * 1023 + "9f3a77c1" + "x" * 5,
    ],
)  # fmt: skip
def test_long_texts_have_short_patterns(text: str) -> None:
    found = mask_of(text)
    assert found == mask(text)
    assert len(found.encode()) <= MOST + SLACK


def test_a_pattern_never_needs_more_room_than_it_is_given() -> None:
    held = ["1,2," * 300, "1 " * 300, "v1 " * 300, "." * 1023 + "é" * 31 + "aa1", "1", "-1", "a1", "1\n1"] * 3
    found = masked(FieldValues.of_keys([value_key(text) for text in held]))
    ends = found.start.astype(np.int64) + found.length
    assert int(ends.max()) <= len(found.buffer)
    assert [found.payload(at).decode() for at in range(len(held))] == list(map(mask, held))
