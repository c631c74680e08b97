"""A server of the page over a log, asked as the page asks it, and its parts as plain values."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import jitdb
from jitdb.explorer.guard import TOKEN
from jitdb.explorer.opening import opening_of
from jitdb.explorer.server import Server
from jitdb.explorer.session import Session


class Served:
    """A server, and how to ask it."""

    def __init__(self, server: Server) -> None:
        self.server, self.port, self.token = server, server.server_port, server.guard.token
        self.host = f"127.0.0.1:{self.port}"

    def request(self, method: str, path: str, body: bytes | None = None, **headers: str | None) -> tuple[int, bytes]:
        """The status and the body. `headers`: their names with _ for -; None leaves one out that is there otherwise."""
        usual = {"Host": self.host, TOKEN: self.token, "Content-Type": "application/json"}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        given = {name: value for name, value in {**usual, **named}.items() if value is not None}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in given.items():
                connection.putheader(name, value)
            if body is not None and "Content-Length" not in given:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def opened(self, name: str, **asked: Any) -> tuple[HTTPConnection, HTTPResponse]:
        """An answer that is not read yet."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {TOKEN: self.token, "Content-Type": "application/json"}
        connection.request("POST", f"/api/v1/{name}", json.dumps(asked), headers)
        return connection, connection.getresponse()

    def parts(self, name: str, **asked: Any) -> list[dict[str, Any]]:
        """The parts of an answer, without how far scans were."""
        status, body = self.request("POST", f"/api/v1/{name}", json.dumps(asked).encode())
        assert status == 200, body
        return [part for line in body.splitlines() if (part := json.loads(line))["part"] != "progress"]

    def exact(self, **asked: Any) -> dict[str, Any]:
        """The parts of a look by their names, those of a sample left out; `facet`: all of these, by their fields."""
        found: dict[str, Any] = {"facet": {}}
        for part in self.parts("look", **asked):
            if part["part"] == "facet" and not part["sampled"]:
                found["facet"][part["field"]] = part
            elif not part.get("sampled"):
                found[part["part"]] = part
        return found


@contextmanager
def served(places: Path | list[Path], **settings: Any) -> Iterator[Served]:
    """A server of this file, or of these."""
    many = isinstance(places, list)
    paths = list(map(str, places if isinstance(places, list) else [places]))
    db = jitdb.open_many(paths, **settings) if many else jitdb.open(paths[0], read_only=True, **settings)
    with db, Server(Session(db, opening_of(paths, settings, many))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield Served(server)
        finally:
            server.shutdown()
            thread.join()


def write_lines(path: Path, records: list[Any]) -> Path:
    """A file of JSON Lines."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path
