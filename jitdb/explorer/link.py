"""The page from Python: `db.explore()` serves it beside the program, and shows itself in a notebook as a link.

A link, and no frame: the page lets no other page show it, and a notebook is one.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from urllib.parse import quote

from jitdb.display.cells import printable
from jitdb.engine.database import JITDB
from jitdb.explorer.opening import Opening, opening_of
from jitdb.explorer.server import Server
from jitdb.explorer.session import Session

if TYPE_CHECKING:
    from jitdb.logset.logset import AnyDatabase

_POLL = 0.1  # seconds between looks at whether to end


class Explored:
    """The page of a database, served until it is closed, or the program ends. Printed, it is its address.

    where: the question that it begins with, as text
    """

    def __init__(self, db: AnyDatabase, where: str = "", port: int = 0) -> None:
        opening = opening_in_python(db)
        self._where, self._title = where, opening.title()
        self._server = Server(Session(db, opening), port)
        run = self._server.serve_forever
        self._thread = threading.Thread(target=run, args=(_POLL,), name="jitdb explorer server", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """The address of the page; who has it can read the log."""
        return self._server.address + (f"&where={quote(self._where, safe='')}" if self._where else "")

    def close(self) -> None:
        """Serve it no more. The database stays open."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.__exit__()

    def __enter__(self) -> Explored:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        return self.address if self._thread.is_alive() else "a page that is closed"

    def __repr__(self) -> str:
        return f"<the page of {printable(self._title)}: {self}>"

    def _repr_html_(self) -> str:
        from html import escape

        if not self._thread.is_alive():
            return "a page that is closed"
        link = f'<a href="{escape(self.address)}" target="_blank" rel="noopener noreferrer">Explore</a>'
        return f"{link} <bdi>{escape(printable(self._title))}</bdi> in a tab of its own, as long as this program runs"


def opening_in_python(db: AnyDatabase) -> Opening:
    """How to ask the same in a shell, and in another program, of what a program has open."""
    settings = db.times.settings
    if isinstance(db, JITDB):
        return opening_of([str(db.log.path)], settings, False)
    return opening_of(list(map(str, db.where)), settings, True)
