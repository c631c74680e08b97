"""The server of the page: on 127.0.0.1 alone, a thread for each connection, and not too many of these."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import ThreadingHTTPServer
from socket import SHUT_RDWR, socket
from typing import Any, Final

from jitdb.explorer.guard import LOOPBACK, Guard, is_ours
from jitdb.explorer.handler import Handler
from jitdb.explorer.session import Session

_MOST: Final = 64  # connections at once: a browser opens six
_PATIENCE: Final = 0.2  # seconds that a new connection waits for one that is closed for it
_LAST: Final = 2.0  # seconds that answers under way have to notice that they are not wanted any more


class Server(ThreadingHTTPServer):
    """Serves the page of one session until it is closed.

    port: 0 is any that is free
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 32

    def __init__(self, session: Session, port: int = 0) -> None:
        super().__init__((LOOPBACK, port), Handler)
        self.session = session
        session.warm()
        self.guard = Guard(self.server_port)
        self._room = threading.BoundedSemaphore(_MOST)
        self._lock = threading.Lock()
        self._running: set[threading.Event] = set()  # the `cancel` of each answer under way
        self._looks: dict[str, threading.Event] = {}  # those of what pages look at, by the page
        self._resting: dict[socket, None] = {}  # connections that wait for a request, those first that do for longest
        self._quiet = threading.Condition(self._lock)

    @property
    def address(self) -> str:
        """The address of the page, with its token."""
        return f"http://{LOOPBACK}:{self.server_port}/#token={self.guard.token}"

    @contextmanager
    def answering(self, page: str) -> Iterator[threading.Event]:
        """An answer under way: the event that ends it. One for the same page ends the one before; "" is no page."""
        cancel = threading.Event()
        with self._lock:
            self._running.add(cancel)
            before = self._looks.get(page)
            if page:
                self._looks[page] = cancel
        if before is not None:
            before.set()
        try:
            yield cancel
        finally:
            with self._lock:
                self._running.discard(cancel)
                if self._looks.get(page) is cancel:
                    del self._looks[page]
                self._quiet.notify_all()

    def __exit__(self, *_: object) -> None:
        """Take no more requests, and end the answers that are under way."""
        self.server_close()
        with self._lock:
            for cancel in self._running:
                cancel.set()
            self._quiet.wait_for(lambda: not self._running, _LAST)
        self.session.close()

    # --- socketserver ------------------------------------------------------------------------------------------------

    def verify_request(self, request: socket | tuple[bytes, socket], client_address: Any) -> bool:
        """Whether it comes from a process of this user."""
        return is_ours(client_address[1], self.server_port)

    def process_request(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        """Where there is no room, the connection that has asked nothing for longest makes some."""
        is_room = self._room.acquire(blocking=False)
        while not is_room and (oldest := self._take_resting()) is not None:
            with suppress(OSError):
                oldest.shutdown(SHUT_RDWR)
            is_room = self._room.acquire(timeout=_PATIENCE)
        if is_room:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def rests(self, connection: socket, is_resting: bool) -> None:
        """Note whether a connection waits for a request, the whole of it."""
        with self._lock:
            self._resting.pop(connection, None)
            if is_resting:
                self._resting[connection] = None

    def _take_resting(self) -> socket | None:
        with self._lock:
            oldest = next(iter(self._resting), None)
            if oldest is not None:
                del self._resting[oldest]
            return oldest

    def process_request_thread(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.rests(request, False)  # type: ignore[arg-type]  # this server is one of streams
            self._room.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no error, and others were told of theirs."""
