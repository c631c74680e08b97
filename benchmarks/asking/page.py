"""What the page of `jitdb explore` takes, of the log of exploring.py: a million records of 40 fields, with an incident.

Over HTTP, as the page asks: the first paint of a file that nobody asked before, which is of a sample; then all parts of
looks at questions that are new, with their indexes; and what is different about an incident.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from jitdb.explorer.guard import TOKEN
from jitdb.log.lines.kept import forget

from ..measure import Figure
from .exploring import service

RUNS: Final = 9
_ERRORS: Final = {"where": 'level == "error"'}
_AIMS: Final = {
    "count": "10 ms with the records",
    "timeline": "5 ms",
    "records": "",
    "facets": "30 ms",
    "done": "60 ms",
}


def run() -> Iterator[Figure]:
    """Figures of the page."""
    path = service()
    forget(str(path))
    with serving(path) as ask:
        time.sleep(2)  # a browser starts meanwhile
        told = ask("look", _ERRORS)
        yield Figure("first paint of a file that nobody asked (a sample)", told["records", True], "ms", aim="500 ms")
        yield Figure("and the exact numbers, with one scan", told["done", False], "ms")
        ask("why", {**_ERRORS, "from": "2026-11-20T14:00:00Z", "to": "2026-11-20T15:20:00Z"})
        looks = [ask("look", {**_ERRORS, "where": f'level == "error" and region != "r{run}"'}) for run in range(RUNS)]
        begun = 0.0
        for part, aim in _AIMS.items():
            ended = statistics.median(each[part, False] for each in looks)
            whole = part == "done"
            yield Figure(f"a look: {'all of it' if whole else part}", ended if whole else ended - begun, "ms", aim=aim)
            begun = ended
        asked = {**_ERRORS, "from": "2026-11-20T14:00:00Z", "to": "2026-11-20T15:20:00Z"}
        why = [ask("why", asked)["why", False] for _ in range(RUNS)]
        yield Figure("what is different about an incident", statistics.median(why), "ms", aim="20 ms")


@contextmanager
def serving(path: Path) -> Iterator[Any]:
    """What asks a server of the page, which is another process as for a browser: gives when the last of each part came,
    in milliseconds, of a sample and exact.
    """
    words = [sys.executable, "-m", "jitdb", "explore", str(path), "--no-browser"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        address = urlsplit(server.stdout.readline().strip())
        connection = HTTPConnection(address.netloc, timeout=600)
        headers = {TOKEN: address.fragment.partition("=")[2], "Content-Type": "application/json"}

        def ask(name: str, asked: dict[str, Any]) -> dict[tuple[str, bool], float]:
            begun, found = time.perf_counter(), {}
            connection.request("POST", f"/api/v1/{name}", json.dumps(asked), headers)
            for line in connection.getresponse():
                part = json.loads(line)
                found[part["part"], bool(part.get("sampled"))] = 1e3 * (time.perf_counter() - begun)
            return found

        try:
            yield ask
        finally:
            connection.close()
            server.terminate()
