"""Tails beside a program whose log is rotated in every usual way: each line comes once, to each of them.

One to six tails, processes of their own, follow a folder, a pattern or one name, with indexes in the same folders, in
folders of their own, or in memory; some are ended by SIGTERM and go on from their cursors. Lines that are written
between the copy and the truncation of a file (`copytruncate`) are in no file for long: these alone may be missing.
"""

from __future__ import annotations

import gzip
import logging
import logging.handlers
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Final

from faults.campaign import Campaign

SECONDS: Final = 3.0  # of writing
_FEW: Final = 100  # files that a tail may have open, which closes most of those that it follows then
_LATE: Final = 60.0  # seconds without one more line, until what has not come counts as missing


class Writer:
    """Writes numbered lines until it is ended; `gap` has those that truncation took."""

    def __init__(self, path: Path, rng: Random) -> None:
        self.path, self.rng = path, rng
        self.count = 0
        self.gap: set[int] = set()
        self.lock = threading.Lock()  # held where nothing may be written
        self.file = path.open("ab", buffering=0)

    def write(self) -> None:
        with self.lock:
            for _ in range(self.rng.randrange(1, 4)):
                self.put(self.count)
                self.count += 1

    def put(self, number: int) -> None:
        self.file.write(line(number))

    def reopen(self) -> None:
        with self.lock:
            self.file.close()
            self.file = self.path.open("ab", buffering=0)


class Handled(Writer):
    """Writes through a handler of Python's logging, which rotates by itself."""

    def __init__(self, path: Path, rng: Random, one: bool) -> None:
        super().__init__(path, rng)
        self.file.close()
        if rng.random() < 0.5 and not one:
            self.handler: logging.Handler = logging.handlers.RotatingFileHandler(path, maxBytes=3000, backupCount=999)
        else:
            interval = 2 if one else 1
            self.handler = logging.handlers.TimedRotatingFileHandler(path, "S", interval, backupCount=999)

    def put(self, number: int) -> None:
        text = line(number).decode().rstrip("\n")
        self.handler.emit(logging.LogRecord("", logging.INFO, "", 0, text.replace("%", "%%"), None, None))


def line(number: int) -> bytes:
    return b'{"n": %d, "text": "%s"}\n' % (number, b"x" * (number % 90))


# --- ways to rotate ------------------------------------------------------------------------------------------------


def renamed(writer: Writer, *, packs: int = 0) -> None:
    """app.log, .1, .2 …; from the number `packs` on compressed."""
    path = writer.path
    numbers = [int(found[1]) for each in path.parent.iterdir() if (found := re.search(r"\.log\.(\d+)", each.name))]
    for number in sorted(set(numbers), reverse=True):
        for ending in ("", ".gz"):
            old = path.with_name(f"app.log.{number}{ending}")
            if old.exists():
                old.rename(path.with_name(f"app.log.{number + 1}{ending}"))
    path.rename(path.with_name("app.log.1"))
    path.touch()
    time.sleep(writer.rng.choice((0, 0, 0.05)))  # the writer goes on with the old file until it is told
    writer.reopen()
    if packs:
        pack(path.with_name(f"app.log.{packs}"), writer.rng)


def dated(writer: Writer) -> None:
    path = writer.path.with_name(f"app.log-20261124-{time.time_ns()}")
    writer.path.rename(path)
    writer.reopen()
    if writer.rng.random() < 0.5:
        pack(path, writer.rng)


def copied(writer: Writer) -> None:
    """copytruncate, at once or with some time between; sometimes the copy is compressed."""
    copy = writer.path.with_name(f"app.log.{time.time_ns()}")
    with writer.path.open("rb") as source, copy.open("wb") as target:
        shutil.copyfileobj(source, target, writer.rng.choice((64, 1 << 16)))
    time.sleep(writer.rng.choice((0, 0.01, 0.4)))
    with writer.lock:
        behind = writer.path.read_bytes()[copy.stat().st_size :]
        writer.gap |= {int(number) for number in re.findall(rb'"n": (\d+),', behind)}
        partial = re.match(rb'[^{]*?"?n?"?:? ?(\d+), "text"', behind)
        writer.gap |= {int(partial[1])} if partial else set()
        os.truncate(writer.path, 0)
    if writer.rng.random() < 0.5:
        time.sleep(writer.rng.choice((0, 0.3)))
        pack(copy, writer.rng)


def pack(path: Path, rng: Random) -> None:
    """As gzip does it: piece by piece, and then the original goes."""
    if not path.exists():
        return
    data = gzip.compress(path.read_bytes())
    with path.with_name(f"{path.name}.gz").open("wb", buffering=0) as file:
        step = 1 + len(data) // rng.randrange(1, 4)
        for begin in range(0, len(data), step):
            file.write(data[begin : begin + step])
            time.sleep(rng.choice((0, 0.1)))
    path.unlink()


def by_logrotate(writer: Writer, *options: str) -> None:
    """The real one."""
    folder = writer.path.parent.parent
    rules = folder / "rules"
    rules.write_text(f"{writer.path} {{\nrotate 999\nsize 1\nnotifempty\n" + "\n".join(options) + "\n}\n")
    rules.chmod(0o644)
    with writer.lock if "copytruncate" in options else ExitStack():  # or nobody knows which lines were lost
        subprocess.run(["logrotate", "-f", "-s", folder / "state", rules], check=True, capture_output=True)
    note_removed(writer)
    writer.reopen()


def note_removed(writer: Writer) -> None:
    """What was written to a file after it was compressed and removed: only a tail that has it open can read that."""
    with writer.lock:
        number = writer.file.fileno()
        if not os.fstat(number).st_nlink:
            with open(f"/proc/self/fd/{number}", "rb") as file:
                written = set(numbers_in(file.read()))
            kept = (numbers_in(gzip.decompress(each.read_bytes())) for each in writer.path.parent.glob("*.gz"))
            writer.gap |= written.difference(*kept)
            writer.file.close()
            writer.file = writer.path.open("ab", buffering=0)


def numbers_in(data: bytes) -> list[int]:
    return [int(number) for number in re.findall(rb'"n": ?(\d+)', data)]


WAYS: Final[dict[str, Callable[[Writer], None]]] = {
    "renamed": renamed,
    "compressed": lambda writer: renamed(writer, packs=1),
    "compressed later": lambda writer: renamed(writer, packs=2),
    "dated": dated,
    "copied": copied,
    "by Python": lambda writer: None,
    **(
        {}
        if shutil.which("logrotate") is None
        else {
            "logrotate create": lambda writer: by_logrotate(writer, "create"),
            "logrotate compress": lambda writer: by_logrotate(writer, "create", "compress"),
            "logrotate delaycompress": lambda writer: by_logrotate(writer, "create", "compress", "delaycompress"),
            "logrotate copytruncate": lambda writer: by_logrotate(writer, "copytruncate"),
            "logrotate copytruncate compress": lambda writer: by_logrotate(writer, "copytruncate", "compress"),
        }
    ),
}


# --- tails ---------------------------------------------------------------------------------------------------------


class Tail:
    """A tail, run after run; `found` is what all of them wrote.

    files: how many it may have open; 0 as many as it likes
    """

    def __init__(self, folder: Path, number: int, where: str, indexes: list[str], files: int) -> None:
        self._files = files
        self._out, place = folder / f"out{number}", folder / f"place{number}"
        self._said = folder / f"said{number}"
        python = [sys.executable, "-X", "faulthandler"]
        self._command = [*python, "-m", "jitdb", "tail", where, "--old", "--cursor", str(place), *indexes]
        self._process: subprocess.Popen[bytes] | None = None
        self.runs = 0

    def start(self) -> None:
        with self._out.open("ab") as out, self._said.open("ab") as said:
            self._process = subprocess.Popen(self._command, stdout=out, stderr=said, preexec_fn=self._limit)
        self.runs += 1

    def _limit(self) -> None:
        if self._files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self._files, self._files))

    def end(self) -> None:
        assert self._process is not None
        assert self._process.poll() is None, f"it ended: {self._said.read_text()}"
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(30)

    def kill(self) -> None:
        """See that nothing is left of it."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def found(self) -> list[int]:
        return numbers_in(self._out.read_bytes())

    def stacks(self) -> str:
        """End it, and give what each of its threads was doing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGABRT)
        self._process.wait(30)
        return self._said.read_text()


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that do nothing but compute."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for each in loops:
            each.kill()
            each.wait()


def run(seed: int) -> int:
    """One way to rotate, some tails."""
    rng = Random(seed)
    way = list(WAYS)[seed % len(WAYS)]
    folder = Path(tempfile.mkdtemp())
    logs = folder / "logs"
    logs.mkdir()
    one = rng.random() < 0.25
    where = str(logs / "app.log") if one else rng.choice((str(logs), str(logs / "app.log*")))
    options: list[list[str]] = [[], ["--indexes", "none"], ["--indexes", str(folder / "shared")]]
    with ExitStack() as held:
        held.callback(shutil.rmtree, folder, ignore_errors=True) if not os.environ.get("KEEP") else print(folder)
        held.enter_context(busy(3 if seed % 5 == 0 else 0))
        path = logs / "app.log"
        writer = Handled(path, rng, one) if way == "by Python" else Writer(path, rng)
        writer.write()
        count = rng.randrange(1, 7)
        tails = [Tail(folder, each, where, rng.choice(options), rng.choice((0, _FEW))) for each in range(count)]
        for tail in tails:
            tail.start()
            held.callback(tail.kill)
        assert not awaited(tails, {0}), "a tail did not begin"
        rotate(writer, way, tails, one)
        missing = awaited(tails, set(range(writer.count)) - writer.gap)
        stacks = "\n".join(tail.stacks() for tail in tails if missing - set(tail.found()))
        for tail in [] if missing else tails:
            tail.end()
        for tail in tails:
            twice = [number for number, count in Counter(tail.found()).items() if count > 1]
            assert not twice, f"{way}, {where}: twice {twice[:20]} of {writer.count:,} in {tail.runs} runs"
        assert not missing, f"{way}, {where}: missing {ranges(missing)} of {writer.count:,}; {held_by(logs)}\n{stacks}"
        return sum(tail.runs for tail in tails)


def rotate(writer: Writer, way: str, tails: list[Tail], one: bool) -> None:
    """Write and rotate for some seconds.

    A tail of one name does not see a file that comes and goes between two looks, so a file is rotated only after each
    tail has read a line of it.
    """
    rng, begin = writer.rng, time.monotonic()
    next_turn = begin + (1.5 if one else 0.3)
    first = 0  # the first line that is certainly in the file of now
    while time.monotonic() < begin + SECONDS * (2 if one else 1):
        writer.write()
        time.sleep(rng.choice((0, 0.001, 0.01)))
        if time.monotonic() > next_turn:
            if one and not all(max(tail.found(), default=-1) >= first for tail in tails):
                continue
            worker = threading.Thread(target=WAYS[way], args=(writer,))
            worker.start()
            while worker.is_alive():
                writer.write()
                time.sleep(0.002)
            worker.join()
            first = writer.count
            next_turn = time.monotonic() + (1.5 if one else rng.choice((0.2, 0.5, 2)))
        if not one and rng.random() < 0.004:
            tail = rng.choice(tails)
            tail.end()
            tail.start()


def awaited(tails: list[Tail], wanted: set[int]) -> set[int]:
    """What did not come to one of them, however long it was waited for; the machine may be busy."""
    last, count = time.monotonic(), -1
    while missing := set().union(*(lacks := [wanted - set(tail.found()) for tail in tails])):
        if sum(map(len, lacks)) != count:
            last, count = time.monotonic(), sum(map(len, lacks))
        if time.monotonic() > last + _LATE:
            break
        time.sleep(0.2)
    return missing


def ranges(numbers: set[int]) -> str:
    """5-9, 12-12"""
    firsts = sorted(number for number in numbers if number - 1 not in numbers)
    lasts = sorted(number for number in numbers if number + 1 not in numbers)
    return ", ".join(f"{first}-{last}" for first, last in zip(firsts, lasts, strict=True))


def held_by(logs: Path) -> str:
    """Which lines are in which file now."""
    files = [path for path in sorted(logs.iterdir()) if path.is_file()]
    texts = [gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes() for path in files]
    return "; ".join(f"{path.name}: {ranges({*numbers_in(text)})}" for path, text in zip(files, texts, strict=True))


CAMPAIGN = Campaign(
    name="rotations",
    fault="logs rotated in every usual way, six tails with shared indexes, ended and gone on with",
    holds="each line comes once to each of them",
    run=run,
    short=2,
    full=500,
    alone=True,
)
