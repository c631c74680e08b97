"""HyperDB: put, get and list at several sizes, by index and by trie, beside the JavaScript hyperdb on the same history.

python -m benchmarks hyperdb; JITDB_BENCH_KEYS=1000,100000,1000000 says how many keys there are.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from jitdb.stores.hyperdb import HyperDB

from ..data import FOLDER
from ..measure import Figure, seconds

SIZES: Final = tuple(int(size) for size in os.environ.get("JITDB_BENCH_KEYS", "1000,100000").split(","))
LOOKUPS: Final = 20_000


def key(number: int) -> str:
    return f"dir{number % 100}/key{number}"


def run() -> Iterator[Figure]:
    for size in SIZES:
        theirs = javascript(size) if size <= 100_000 else {}
        ours = figures(size)
        where, aims = f"{size:,} keys", {"get": "10 x", "put": "1 x"} if size == 100_000 else {}
        for name in ("batch", "put", "get", "list"):
            aim = aims.get(name, "")
            yield Figure(f"hyperdb {name}, {where}", ours[name], "µs", "JavaScript", theirs.get(name), "", aim)
        yield Figure(f"hyperdb list, its first question, {where}", ours["first list"], "µs", "next ones", ours["list"])
        yield Figure(f"hyperdb get by trie, {where}", ours["trie"], "µs", "by index", ours["get"])
        yield Figure(f"hyperdb open and first get, {where}", ours["open"] / 1e3, "ms")
        yield Figure(f"hyperdb bytes an entry, {where}", ours["bytes"], "bytes", "JavaScript", theirs.get("bytes"))


def figures(size: int) -> dict[str, float]:
    """Microseconds each of what is done here."""
    folder = _empty(f"hyperdb-{size}")
    found: dict[str, float] = {}
    with HyperDB(folder, create=True) as db:
        found["batch"] = 1e6 * seconds(_fill, db, size) / size
        found["put"] = 1e6 * seconds(lambda: [db.put(f"dir{n % 100}/new{n}", b"x") for n in range(200)]) / 200
    found["bytes"] = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / size
    for feed in (folder / "feeds").glob("*.log.jitdb/indexes"):
        shutil.rmtree(feed)
    opened: list[HyperDB] = []
    found["open"] = 1e6 * seconds(lambda: (opened.append(HyperDB(folder)), opened[0].get("nothing")))
    with opened[0] as db:
        numbers = [number * 7919 % size for number in range(LOOKUPS)]
        found["get"] = 1e6 * seconds(_look_up, db, numbers, "index") / LOOKUPS
    with HyperDB(folder) as db:
        found["trie"] = 1e6 * seconds(_look_up, db, numbers[:500], "trie") / 500
        found["first list"], found["list"] = _listed(db, "dir7"), _listed(db, "dir8")
    return found


def _fill(db: HyperDB, size: int) -> None:
    for begin in range(0, size, 1000):
        db.batch([(key(number), f"value {number}".encode()) for number in range(begin, begin + 1000)])


def _look_up(db: HyperDB, numbers: list[int], lookup: Any) -> None:
    for number in numbers:
        assert len(db.get(key(number), lookup=lookup)) == 1


def _listed(db: HyperDB, folder: str) -> float:
    """Microseconds a key."""
    groups: list[Any] = []
    return 1e6 * seconds(lambda: groups.extend(db.list(folder))) / len(groups)


def javascript(size: int) -> dict[str, float]:
    """The same figures of the npm module; {} without node."""
    if shutil.which("npm") is None:
        return {}
    home = FOLDER / "js_hyperdb"
    shutil.copytree(Path(__file__).parent / "js_hyperdb", home, dirs_exist_ok=True)
    if not (home / "node_modules").exists():
        subprocess.run(["npm", "install", "--no-package-lock", "--silent"], cwd=home, check=True)
    folder = _empty(f"js-hyperdb-{size}")
    printed = subprocess.run(
        ["node", "bench.js", folder, str(size), str(LOOKUPS)], cwd=home, check=True, capture_output=True, text=True
    )
    found: dict[str, float] = json.loads(printed.stdout.splitlines()[-1])
    found["bytes"] = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / size
    return found


def _empty(name: str) -> Path:
    folder = Path(FOLDER) / name
    shutil.rmtree(folder, ignore_errors=True)
    return folder
