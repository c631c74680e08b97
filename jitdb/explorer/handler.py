"""One request: a file of the page, or a question whose answer goes out as lines of JSON while it is found."""

from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from importlib.resources import files
from queue import Empty, Full, Queue
from typing import Any, Final, Protocol

from jitdb.errors import JitdbError, QueryCancelled
from jitdb.explorer import api
from jitdb.explorer.guard import HEADERS, MAX_BODY, Guard, Refused
from jitdb.explorer.look import look
from jitdb.explorer.session import Session

Part = dict[str, Any]

_API: Final = "/api/v1/"
_PULSE: Final = 0.2  # seconds between looks at how far a scan is, and whether the page still listens
_AHEAD: Final = 8  # parts that are found before the page has taken them
_TYPES: Final = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_LINES: Final = "application/x-ndjson"
_JSON: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True).encode  # ASCII: of text that is no UTF-8, too


@cache
def page_files() -> dict[str, tuple[str, bytes]]:
    """The files of the page by their place in its address, with their types: nothing else is served."""
    found = {}
    for file in files("jitdb.explorer").joinpath("page").iterdir():
        kind = _TYPES.get(file.name.rpartition(".")[2])
        if kind:
            found[f"/{file.name}"] = (f"{kind}; charset=utf-8", file.read_bytes())
    return found


class Serving(Protocol):
    """What a server has for those who handle its requests."""

    session: Session
    guard: Guard

    def answering(self, page: str) -> AbstractContextManager[threading.Event]:
        """An answer under way."""

    def rests(self, connection: socket.socket, is_resting: bool) -> None:
        """Whether a connection waits for a request."""


class Handler(BaseHTTPRequestHandler):
    """A connection, and the requests on it one by one."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "jitdb", ""
    timeout = 30  # seconds: a connection on which nothing comes is closed
    disable_nagle_algorithm = True
    server: Serving  # type: ignore[assignment]

    def handle_one_request(self) -> None:
        self.server.rests(self.connection, True)
        super().handle_one_request()

    def do_GET(self) -> None:
        self._guarded(self._file)

    def do_POST(self) -> None:
        self._guarded(self._answer)

    def _guarded(self, respond: Callable[[], None]) -> None:
        self.server.rests(self.connection, False)
        try:
            self.server.guard.check_origin(self.headers)  # type: ignore[arg-type]
            respond()
        except Refused as refused:
            self.close_connection = True  # what is left of its body is not read
            self._send(refused.status, "application/json", _JSON({"reason": str(refused)}).encode())
        except (OSError, ValueError):  # the page went away
            self.close_connection = True

    # --- files -------------------------------------------------------------------------------------------------------

    def _file(self) -> None:
        """A file. Who comes by a link of somebody else's finds a door that takes a token and no question along."""
        guard, name = self.server.guard, self.path.partition("?")[0]
        if name == "/":
            is_led = guard.is_from_elsewhere(self.headers)  # type: ignore[arg-type]
            is_page = self.headers.get("Sec-Fetch-Dest", "document") == "document"
            if not is_page:
                raise Refused(HTTPStatus.FORBIDDEN, "the page is opened in a window of its own")
            name = "/door.html" if is_led else "/index.html"
        else:
            guard.check_own(self.headers)  # type: ignore[arg-type]
        found = page_files().get(name)
        if found is None:
            raise Refused(HTTPStatus.NOT_FOUND, "there is no such file")
        self._send(HTTPStatus.OK, *found)

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self._begin(status, kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _begin(self, status: HTTPStatus, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in HEADERS.items():
            self.send_header(name, value)

    # --- questions ---------------------------------------------------------------------------------------------------

    def _answer(self) -> None:
        guard = self.server.guard
        guard.check_own(self.headers)  # type: ignore[arg-type]
        guard.check_token(self.headers)  # type: ignore[arg-type]
        question = api.QUESTIONS.get(self.path.removeprefix(_API)) if self.path.startswith(_API) else None
        if question is None:
            raise Refused(HTTPStatus.NOT_FOUND, "there is no such question")
        body = self._body()
        page = body.get("page", "") if question is look else ""
        if not isinstance(page, str) or len(page) > 64:
            raise Refused(HTTPStatus.BAD_REQUEST, "a page has a short name")
        with self.server.answering(page) as cancel:
            self._stream(lambda: question(self.server.session, body, cancel), cancel)

    def _body(self) -> dict[str, Any]:
        """The body: an object in JSON."""
        length = self.headers.get("Content-Length", "")
        if self.headers.get("Content-Type", "").partition(";")[0] != "application/json":
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a question is JSON")
        if not length.isascii() or not length.isdigit():
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "a question says how long it is")
        if len(length) > 9 or int(length) > MAX_BODY:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a question has at most {MAX_BODY:,} bytes")
        try:
            found = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise Refused(HTTPStatus.BAD_REQUEST, "a question is an object in JSON")
        return found

    def _stream(self, answer: Callable[[], Iterator[Part]], cancel: threading.Event) -> None:
        """Send the parts of the answer as they are found; how far a scan is while there are none."""
        parts: Queue[Part | None] = Queue(_AHEAD)
        worker = threading.Thread(target=_work, args=(answer, parts, cancel), name="jitdb explorer", daemon=True)
        worker.start()
        try:
            self._begin(HTTPStatus.OK, _LINES)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while True:
                try:
                    part = parts.get(timeout=_PULSE)
                except Empty:
                    if _is_gone(self.connection):
                        self.close_connection = True
                        return
                    part = None if cancel.is_set() else self.server.session.progress()
                if part is None:
                    break
                self._chunk(_JSON(part).encode() + b"\n")
            self._chunk(b"")
        finally:
            cancel.set()
            worker.join()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is no request that it takes is refused like others, without a page that repeats it."""
        self.close_connection = True
        self._send(HTTPStatus(code), "application/json", _JSON({"reason": HTTPStatus(code).phrase}).encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: the terminal is the user's."""


def _work(answer: Callable[[], Iterator[Part]], parts: Queue[Part | None], cancel: threading.Event) -> None:
    def put(part: Part | None) -> None:
        is_put = False
        while not is_put and not cancel.is_set():
            with suppress(Full):
                parts.put(part, timeout=_PULSE)
                is_put = True

    try:
        for part in answer():
            put(part)
            if cancel.is_set():
                return
    except QueryCancelled:
        put({"part": "cancelled"})
    except JitdbError as error:
        put(api.told(error))
    except Refused as refused:
        put({"part": "error", "kind": "refused", "reason": str(refused)})
    except Exception as error:  # a mistake of ours, or a disk that fails: the page says so, and the server goes on
        put({"part": "error", "kind": type(error).__name__, "reason": f"{type(error).__name__}: {error}"})
    finally:
        put(None)


def _is_gone(connection: socket.socket) -> bool:
    """Whether the other side has closed the connection."""
    readable, _, _ = select.select([connection], [], [], 0)
    return bool(readable) and not connection.recv(1, socket.MSG_PEEK)
