"""`db.explore()`: the page beside a program, and its link in a notebook."""

from __future__ import annotations

import html
import re
import threading
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import unquote

import pytest
from served import write_lines
from waiting import until

import jitdb


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "<b>a.ndjson", [{"time": 1700000000 + number, "a": number} for number in range(9)])


def test_it_is_served_until_it_is_closed(log: Path) -> None:
    before = threading.active_count()
    with jitdb.open(log, read_only=True) as db:
        page = db.explore('a > "<5')
        address = str(page)
        assert address == page.address
        assert unquote(address.partition("&where=")[2]) == 'a > "<5'
        with urllib.request.urlopen(address.partition("#")[0]) as answer:
            assert b"<title>jitdb</title>" in answer.read()
        shown = page._repr_html_()
        assert html.unescape(re.search(r'href="([^"]*)"', shown)[1]) == address  # type: ignore[index]
        assert "<b>" not in shown
        assert re.findall(r"<(\w+)", shown) == ["a", "bdi"]
        page.close()
        page.close()
        assert "closed" in str(page)
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(address.partition("#")[0])
        assert db.count("a > 3") == 5  # the database stays open
    until(lambda: threading.active_count() == before)


def test_many_logs_have_one_page(log: Path) -> None:
    other = write_lines(log.with_name("b.ndjson"), [{"a": 1}])
    with jitdb.open_many([log, other]) as logs, logs.explore() as page:
        assert page.address.startswith("http://127.0.0.1:")
        assert "a.ndjson and 1 more" in page._repr_html_()
