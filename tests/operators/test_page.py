"""A page is a sequence of answers that shows itself on few lines."""

import pytest

from jitdb.engine.reading.paging import Page

POSTS = [
    {"key": f"%{number}", "value": {"content": {"type": "post", "a": {"b": 1}}, "n": number}} for number in range(30)
]


@pytest.fixture
def page():
    return Page(POSTS, total=1234, next_seq=30, duration=1.23456)


def test_a_page_is_a_sequence(page):
    assert page[0] == POSTS[0]
    assert page[-1] == POSTS[-1]
    assert page[1:3] == POSTS[1:3]
    assert list(page) == POSTS
    assert len(page) == 30
    with pytest.raises(IndexError):
        page[30]


def test_the_repr_is_short_lines(page):
    lines = repr(page).split("\n")
    assert lines[0] == "Page(total=1234, next_seq=30, duration=1.23, data=["
    assert lines[-2] == "    … and 20 more,"
    assert len(lines) == 13
    long = repr(Page([{"text": "x" * 5000}], 1, 1, 0.1))
    assert max(map(len, long.split("\n"))) < 120


@pytest.mark.parametrize(
    ("data", "shown"), [([], "data=[])"), ([0, 10], "data=[0, 10])"), (list(range(99)), "8, 9, …])")]
)
def test_the_repr_of_offsets_is_one_line(data, shown):
    assert repr(Page(data, 99, 1, 0.1)).endswith(shown)
    assert "\n" not in repr(Page(data, 99, 1, 0.1))
