"""A server of objects on this machine, which are files of a folder: what is asked of S3, and no more. It can be slow,
break off and fail, and knows what it was asked.

Run as a program it serves until it is ended: python tests/objects/bucket.py FOLDER [--latency SECONDS] [--rate BYTES]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_PAGE: Final = 1000  # keys in an answer, as S3 has it
_PIECE: Final = 1 << 18


class Asked(NamedTuple):
    """A request. `key` is empty of a listing; `begin` and `stop` are of the bytes that it wants."""

    method: str
    key: str
    begin: int = 0
    stop: int = 0


class Fault(NamedTuple):
    """What becomes of a request.

    status: instead of an answer
    cut:    bytes of the answer after which the connection is closed
    pause:  seconds before each 256 KiB
    before: is called before the object is looked at
    """

    status: int = 0
    cut: int = -1
    pause: float = 0.0
    before: Callable[[], object] | None = None


_NONE: Final = Fault()


class Bucket(ThreadingHTTPServer):
    """Serves the folders of `root` as buckets.

    latency: seconds before each answer
    rate:    bytes a second, of all connections together; 0: as fast as it goes
    fault:   what is to become of a request, by its number and what it is
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, root: Path, latency: float = 0.0, rate: int = 0, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.root, self.latency, self.rate = root, latency, rate
        self.asked: list[Asked] = []
        self.fault: Callable[[int, Asked], Fault | None] = lambda number, asked: None
        self.page = _PAGE
        self.sent = 0
        self._free, self._lock = 0.0, threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def note(self, asked: Asked) -> Fault:
        with self._lock:
            self.asked.append(asked)
            return self.fault(len(self.asked), asked) or _NONE

    def wait_for(self, size: int) -> None:
        """Until the line is free for so many bytes."""
        with self._lock:
            self.sent += size
            if not self.rate:
                return
            now = time.monotonic()
            self._free = max(self._free, now) + size / self.rate
            late = self._free - now
        time.sleep(late)

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients go away while they are answered."""


def etag_of(path: Path) -> str:
    found = path.stat()
    return f'"{hashlib.md5(f"{found.st_mtime_ns} {found.st_size} {found.st_ino}".encode()).hexdigest()}"'


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Bucket
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def _error(self, status: int, code: str) -> None:
        body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _do(self) -> None:
        parts = urlsplit(self.path)
        bucket, _, key = unquote(parts.path.lstrip("/")).partition("/")
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        is_list = self.command == "GET" and not key
        file = self.server.root / bucket / key
        begin, stop = self._range(file)
        fault = self.server.note(Asked("LIST" if is_list else self.command, key, begin, stop))
        if fault.before:
            fault.before()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        time.sleep(self.server.latency)
        if fault.status:
            self._error(fault.status, {503: "SlowDown", 403: "AccessDenied"}.get(fault.status, "InternalError"))
        elif not (self.server.root / bucket).is_dir():
            self._error(404, "NoSuchBucket")
        elif is_list:
            self._list(bucket, query)
        elif self.command == "PUT":
            self._put(file, body)
        elif self.command == "DELETE":
            file.unlink(missing_ok=True)
            self._empty(204)
        elif not file.is_file():
            self._error(404, "NoSuchKey")
        else:
            self._get(file, fault)

    do_GET = do_HEAD = do_PUT = do_DELETE = _do  # noqa: N815

    def _empty(self, status: int, etag: str = "") -> None:
        self.send_response(status)
        if etag:
            self.send_header("ETag", etag)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _range(self, file: Path) -> tuple[int, int]:
        size = file.stat().st_size if file.is_file() else 0
        wanted = self.headers.get("Range", "")
        if not wanted.startswith("bytes="):
            return 0, size
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        if not first:
            return max(0, size - int(last)), size
        return int(first), min(int(last) + 1 if last else size, size)

    def _get(self, file: Path, fault: Fault) -> None:
        with file.open("rb") as opened:
            found, etag = os.fstat(opened.fileno()), etag_of(file)
            if self.headers.get("If-Match") not in (None, "*", etag):
                return self._error(412, "PreconditionFailed")
            begin, stop = self._range(file)
            is_part = "Range" in self.headers
            if is_part and begin >= found.st_size:
                return self._error(416, "InvalidRange")
            self.send_response(206 if is_part else 200)
            self.send_header("ETag", etag)
            self.send_header("Last-Modified", formatdate(found.st_mtime, usegmt=True))
            self.send_header("Accept-Ranges", "bytes")
            if is_part:
                self.send_header("Content-Range", f"bytes {begin}-{stop - 1}/{found.st_size}")
            self.send_header("Content-Length", str(stop - begin))
            self.end_headers()
            if self.command == "HEAD":
                return None
            opened.seek(begin)
            left = stop - begin
            if fault.cut >= 0:
                self.wfile.write(opened.read(min(fault.cut, left)))
                self.close_connection = True
                return None
            while left:
                time.sleep(fault.pause)
                data = opened.read(min(_PIECE, left))
                self.server.wait_for(len(data))
                self.wfile.write(data)
                left -= len(data)
        return None

    def _put(self, file: Path, body: bytes) -> None:
        with self.server._lock:
            if self.headers.get("If-None-Match") == "*" and file.exists():
                return self._error(412, "PreconditionFailed")
            wanted = self.headers.get("If-Match")
            if wanted is not None and not (file.exists() and etag_of(file) == wanted):
                return self._error(412, "PreconditionFailed")
            file.parent.mkdir(parents=True, exist_ok=True)
            aside = file.with_name(f".{file.name}.{threading.get_ident()}")
            aside.write_bytes(body)
            aside.replace(file)
        return self._empty(200, etag_of(file))

    def _list(self, bucket: str, query: dict[str, str]) -> None:
        prefix, after = query.get("prefix", ""), query.get("continuation-token") or query.get("start-after", "")
        keys = [key for key in _keys(self.server.root / bucket, prefix) if key > after]
        page, more = keys[: self.server.page], len(keys) > self.server.page
        rows = []
        for key in page:
            file = self.server.root / bucket / key
            found = file.stat()
            modified = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(found.st_mtime))
            rows.append(
                f"<Contents><Key>{escape(key)}</Key><LastModified>{modified}</LastModified>"
                f"<ETag>{escape(etag_of(file))}</ETag><Size>{found.st_size}</Size></Contents>"
            )
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        body = (
            f'<?xml version="1.0"?><ListBucketResult><Name>{bucket}</Name><KeyCount>{len(page)}</KeyCount>'
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{''.join(rows)}</ListBucketResult>"
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _keys(folder: Path, prefix: str) -> list[str]:
    """All files below it whose names begin so, in their order."""
    found = []
    for top, _, files in os.walk(folder / prefix.rpartition("/")[0]):
        below = os.path.relpath(top, folder)
        found += [name if below == "." else f"{below}/{name}" for name in files]
    return sorted(key for key in found if key.startswith(prefix))


@contextmanager
def serving(root: Path, latency: float = 0.0, rate: int = 0) -> Iterator[Bucket]:
    bucket = Bucket(root, latency, rate)
    thread = threading.Thread(target=bucket.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield bucket
    finally:
        bucket.shutdown()
        bucket.server_close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--rate", type=int, default=0)
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    bucket = Bucket(given.folder, given.latency, given.rate, given.port)
    print(bucket.url, flush=True)
    bucket.serve_forever()


if __name__ == "__main__":
    main()
