"""Who gets an answer: the page with its token, and nobody else; and what a request can ask for."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import waiting
from served import Served, served, write_lines

from jitdb.explorer.guard import HEADERS, MAX_BODY, TOKEN
from jitdb.explorer.handler import page_files

LOOK = "/api/v1/look"
BODY = b'{"parts": ["count"]}'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("log")
    (folder / "secret.txt").write_text("secret")
    with served(write_lines(folder / "a.ndjson", [{"time": 1700000000 + number} for number in range(100)])) as found:
        yield found


def test_it_listens_on_this_machine_alone(site: Served) -> None:
    assert site.server.server_address[0] == "127.0.0.1"
    assert site.server.address == f"http://127.0.0.1:{site.port}/#token={site.token}"
    assert len(site.token) >= 43  # 256 bits


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_user_of_the_machine_gets_nothing(site: Served) -> None:
    asked = f"exec 3<>/dev/tcp/127.0.0.1/{site.port} && printf 'GET / HTTP/1.1\\r\\nHost: {site.host}\\r\\n"
    asked += "Connection: close\\r\\n\\r\\n' >&3 && echo connected && cat <&3"
    told = [
        subprocess.run(["bash", "-c", asked], user=user, capture_output=True, text=True, cwd="/").stdout
        for user in (0, 65534)
    ]
    assert told[0].startswith("connected\nHTTP/1.1 200 OK")
    assert told[1] in ("connected\n", "")
    assert site.exact(parts=["count"])["count"]["count"] == 100


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "OWN"}, 200),
        ({"Origin": "OWN", "Sec_Fetch_Site": "same-origin"}, 200),
        ({TOKEN: None}, 401),
        ({TOKEN: ""}, 401),
        ({TOKEN: "A" * 43}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:PORT"}, 421),  # DNS rebinding
        ({"Host": "127.0.0.1"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
        ({"Host": None}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),  # another port of this machine
        ({"Origin": "http://localhost:PORT"}, 403),  # not what Host says
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Content_Type": "text/plain"}, 415),  # what a form of another page can send unasked
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content_Length": "x"}, 411),
        ({"Content_Length": "-1"}, 411),
        ({"Content_Length": str(MAX_BODY + 1)}, 413),
        ({"Content_Length": "9" * 30}, 413),
    ],
)
def test_who_may_ask(site: Served, headers: dict[str, str | None], status: int) -> None:
    own = f"http://{site.host}"
    given = {
        name: value and value.replace("PORT", str(site.port)).replace("OWN", own) for name, value in headers.items()
    }
    found, body = site.request("POST", LOOK, BODY, **given)
    assert found == status, body
    assert b"count" not in body or status == 200


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"5", b"[" * 100_000, b"\xff", b'{"page": 5}', b'{"page": "%b"}' % (b"x" * 99)]
)
def test_what_is_no_question_is_refused(site: Served, body: bytes) -> None:
    assert site.request("POST", LOOK, body)[0] == 400


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("look", {"where": 5}), ("look", {"where": "x" * 200_000}), ("look", {"parts": "count"}),
        ("look", {"bars": -1}), ("look", {"bars": 10**9}), ("look", {"limit": 10**6}), ("look", {"skip": "a"}),
        ("look", {"as_of": "/etc"}),
        ("look", {"columns": [5]}), ("record", {"place": "/etc/passwd"}), ("record", {"place": [0, 5]}), ("record", {}),
        ("record", {"place": 10**30}), ("record", {"place": True}), ("record", {"place": 3}),
        ("context", {"place": 0, "before": 10**6}), ("refine", {"how": "delete", "field": "a"}),
        ("refine", {"how": "only", "field": "a", "value": "1) or absent(b"}), ("facet", {}),
        ("look", {"since": "never"}), ("look", {"by": "]["}), ("complete", {"text": "a", "at": 5}),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_an_error_and_the_server_goes_on(site: Served, name: str, asked: Any) -> None:
    status, body = site.request("POST", f"/api/v1/{name}", json.dumps(asked).encode())
    last = [json.loads(line) for line in body.splitlines()][-1]
    assert status == 400 or last["part"] == "error", body[:300]
    assert "Traceback" not in body.decode()
    assert site.exact(parts=["count"])["count"]["count"] == 100


@pytest.mark.parametrize(
    "path",
    [
        "/secret.txt",
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "//etc/passwd",
        "/etc/passwd",
        "/main.js/..",
        "/page/main.js",
        "/a.ndjson",
        "/handler.py",
        "/.jitdb",
        "/api/v1/look",
    ],
)
def test_no_file_but_those_of_the_page_is_served(site: Served, path: str) -> None:
    status, body = site.request("GET", path)
    assert status == 404, body


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "HEAD", "TRACE"])
def test_other_methods_do_nothing(site: Served, method: str) -> None:
    assert site.request(method, "/")[0] == 501


def test_the_files_of_the_page_load_nothing_from_elsewhere(site: Served) -> None:
    assert {"/index.html", "/main.js", "/style.css", "/door.html"} <= page_files().keys()
    for name, (kind, data) in page_files().items():
        status, body = site.request("GET", name, **{TOKEN: None})
        assert (status, body) == (200, data)
        text = data.decode()
        assert site.token not in text
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in text
        assert "innerHTML" not in text
        assert "outerHTML" not in text
        assert "insertAdjacentHTML" not in text
        assert "eval(" not in text
        assert " style=" not in text
        assert "charset=utf-8" in kind


def test_every_answer_has_the_headers_that_keep_others_out(site: Served) -> None:
    for request in (
        b"GET / HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n" % site.host.encode(),
        b"GET /no HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n" % site.host.encode(),
        b"POST %b HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n" % (LOOK.encode(), site.host.encode()),
        b"<script> / HTTP/1.1\r\nHost: %b\r\n\r\n" % site.host.encode(),
        b"GET /%b HTTP/1.1\r\n\r\n" % (b"x" * 70_000),
    ):
        with socket.create_connection(("127.0.0.1", site.port)) as connection:
            connection.sendall(request)
            head = connection.makefile("rb").read().partition(b"\r\n\r\n")[0].decode()
        for name, value in HEADERS.items():
            assert f"{name}: {value}" in head
        assert "Access-Control" not in head
        assert "script>" not in head


def test_who_comes_from_elsewhere_finds_the_door(site: Served) -> None:
    """A link of another page cannot bring a question: the page behind it is one that takes nothing but a token."""
    page, door = page_files()["/index.html"][1], page_files()["/door.html"][1]
    assert site.request("GET", "/")[1] == page
    assert site.request("GET", "/", Sec_Fetch_Site="none", Sec_Fetch_Dest="document")[1] == page
    assert site.request("GET", "/", Sec_Fetch_Site="same-origin", Sec_Fetch_Dest="document")[1] == page
    assert site.request("GET", "/", Sec_Fetch_Site="cross-site", Sec_Fetch_Dest="document")[1] == door
    assert site.request("GET", "/", Sec_Fetch_Site="cross-site", Sec_Fetch_Dest="iframe")[0] == 403
    assert site.request("GET", "/main.js", Sec_Fetch_Site="cross-site")[0] == 403
    assert site.request("GET", "/style.css", Sec_Fetch_Site="same-site")[0] == 403


@pytest.mark.parametrize(
    "text", ["a" * 90_000 + "!", "[" * 90_000, "a == " * 18_000, '"' + "\\" * 90_000, "a and " * 15_000]
)
def test_long_texts_are_soon_answered(site: Served, text: str) -> None:
    for name, asked in (
        ("complete", {"text": text}),
        ("look", {"where": text}),
        ("refine", {"where": text, "more": text}),
    ):
        begun = time.process_time()
        site.request("POST", f"/api/v1/{name}", json.dumps(asked).encode())
        assert time.process_time() - begun < 10, name


def test_the_log_is_only_read(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.ndjson", [{"a": number} for number in range(10)])
    before = path.read_bytes(), os.stat(path).st_mtime_ns
    path.chmod(stat.S_IRUSR)
    with served(path) as site:
        site.exact(where="a > 3")
        site.parts("export")
    assert (path.read_bytes(), os.stat(path).st_mtime_ns) == before


def threads() -> int:
    return threading.active_count()


def test_floods_and_requests_that_break_off_leave_nothing_behind(site: Served) -> None:
    idle = threads()
    pending = []
    for _ in range(300):  # more than there is room for: those are closed, and the server goes on
        connection = socket.create_connection(("127.0.0.1", site.port))
        connection.sendall(b"POST /api/v1/look HTTP/1.1\r\nHost: ")
        pending.append(connection)
    assert threads() <= idle + 70
    assert site.exact(parts=["count"])["count"]["count"] == 100  # those that ask nothing make room
    for connection in pending:
        connection.close()
    waiting.until(lambda: threads() <= idle + 1)
    for number in range(100):  # answers that nobody reads
        connection, _ = site.opened("look", page=f"p{number % 7}")
        connection.close()
    for _ in range(20):  # a stream without an end
        connection, _ = site.opened("tail")
        connection.close()
    waiting.until(lambda: threads() <= idle + 1)
    assert site.exact(parts=["count"])["count"]["count"] == 100


def test_a_newer_look_of_a_page_ends_the_older(tmp_path: Path) -> None:
    records = [{"time": 1700000000 + number, "n": number, "text": "x" * 900} for number in range(60_000)]
    with served(write_lines(tmp_path / "a.ndjson", records)) as site:
        older, answer = site.opened("look", page="p", where="n > 5")
        assert json.loads(answer.readline())["part"] == "question"
        newer = site.exact(page="p", where="n > 6")
        assert newer["count"]["count"] == 59_993
        rest = [json.loads(line)["part"] for line in answer.read().splitlines()]
        assert "done" not in rest
        older.close()
        other, answer = site.opened("look", page="q", where="n > 7")
        site.exact(page="p", where="n > 6")
        assert b'"done"' in answer.read()  # of another page: it goes on
        other.close()


def test_closing_ends_what_is_under_way(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.ndjson", [{"a": 1}])
    before = threads()
    with served(path) as site:
        connection, answer = site.opened("tail")
        assert json.loads(answer.readline())["part"] == "following"
    waiting.until(lambda: threads() <= before)
    connection.close()


def test_following_tells_of_what_comes(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.ndjson", [{"a": 1, "time": 1700000000}])
    with served(path) as site:
        connection, answer = site.opened("tail", where="a == 2")
        assert json.loads(answer.readline())["part"] == "following"
        with path.open("a") as file:
            file.write('{"a": 2, "time": 1700000001}\n{"a": 3, "time": 1700000002}\n')
        news = next(part for line in answer if (part := json.loads(line))["part"] == "news")
        assert news["count"] == 1
        assert site.exact(where="a == 2")["count"]["count"] == 1
        connection.close()


def test_following_many_logs_tells_of_new_files_too(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.ndjson", [{"a": 1, "time": 1700000000}])
    with served([tmp_path]) as site:
        connection, answer = site.opened("tail")
        assert json.loads(answer.readline())["part"] == "following"
        write_lines(tmp_path / "b.ndjson", [{"a": 2, "time": 1700000001}])
        news = next(part for line in answer if (part := json.loads(line))["part"] == "news")
        assert news["count"] == 1
        assert site.exact(where="")["count"]["count"] == 2
        connection.close()
