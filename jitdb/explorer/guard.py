"""Who may ask. The log is its user's alone, and every page that the browser has open can send requests to this machine.

What keeps others out, each enough for one kind of them:

- the token, 256 random bits, which stands behind the `#` of the address, so that no server, log or Referer gets to see
  it; the page keeps it for its tab and sends it in a header. Cookies would go to every port of this machine
- the user of the process at the other end, where the system tells: on a machine of several people, others could read
  the token among the arguments of the browser that is started with it
- `Host` with its port: a name of somebody else's that was made to lead to 127.0.0.1 (DNS rebinding) is not ours
- `Origin` and `Sec-Fetch-Site`: the browser says which page asks; others' get nothing, scripts and styles included
- the headers of every answer: nothing from elsewhere is loaded, no other page shows this one in a frame, and what a
  record holds is never taken for markup or a script
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Final

TOKEN: Final = "X-Jitdb-Token"
LOOPBACK: Final = "127.0.0.1"
MAX_BODY: Final = 256 << 10  # bytes of a request: an expression is the most that one holds

#: Of every answer.
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'; "
        "base-uri 'none'; form-action 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

_CONNECTIONS: Final = Path("/proc/net/tcp")


class Refused(Exception):
    """A request that gets no answer, and why not."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Guard:
    """What requests to one server must have."""

    def __init__(self, port: int) -> None:
        self.token = secrets.token_urlsafe(32)
        self._hosts = frozenset(f"{name}:{port}" for name in (LOOPBACK, "localhost"))

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """Raises Refused unless it is asked by its own address, and by nobody else's page."""
        host, origin = headers.get("Host", ""), headers.get("Origin")
        if host not in self._hosts:
            raise Refused(HTTPStatus.MISDIRECTED_REQUEST, "this server is asked at its own address only")
        if origin is not None and origin != f"http://{host}":
            raise Refused(HTTPStatus.FORBIDDEN, "pages of other origins get no answer")

    def check_own(self, headers: Mapping[str, str]) -> None:
        """Raises Refused where another page wants a file of this one."""
        if self.is_from_elsewhere(headers):
            raise Refused(HTTPStatus.FORBIDDEN, "other pages get no answer")

    def is_from_elsewhere(self, headers: Mapping[str, str]) -> bool:
        """Whether another page, or program, led here; where a browser does not say so, its token must do."""
        return headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none")

    def check_token(self, headers: Mapping[str, str]) -> None:
        """Raises Refused without the token. The comparison takes as long whatever is wrong with it."""
        if not hmac.compare_digest(headers.get(TOKEN, "").encode(), self.token.encode()):
            raise Refused(HTTPStatus.UNAUTHORIZED, "the token is missing, or of another server")


def is_ours(peer: int, port: int, table: str | None = None) -> bool:
    """Whether the process that connected from one port of this machine to the other is this user's, or root's; also
    where that cannot be told. `table` is what Linux has in /proc/net/tcp.

    >>> line = "0: 0100007F:{:04X} 0100007F:{:04X} 01 0:0 0:0 0 {} 0 5"
    >>> is_ours(5000, 80, line.format(5000, 80, os.geteuid())), is_ours(5000, 80, line.format(5000, 80, 4_000_000))
    (True, False)
    >>> is_ours(5000, 80, line.format(5000, 81, 4_000_000))
    True
    """
    if table is None:
        try:
            table = _CONNECTIONS.read_text()
        except OSError:
            return True
    wanted = [f"0100007F:{peer:04X}", f"0100007F:{port:04X}"]
    users = {0, os.geteuid(), int(os.environ.get("SUDO_UID") or 0)}
    return all(int(part[7]) in users for line in table.splitlines() if (part := line.split())[1:3] == wanted)
