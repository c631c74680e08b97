"""Streams that wait for more: who waits is released by close(), by the log's, and by nothing else."""

from __future__ import annotations

import errno
import gc
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import until_ended

from jitdb import Log
from jitdb.errors import LogClosed
from jitdb.log.io import osfile

PATIENCE = 10.0  # seconds; what is released needs none of them


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log(tmp_path / "a.log", flush_interval=3600) as log:
        log.append_many([{"n": number} for number in range(3)])
        log.flush()
        yield log


class Reading(threading.Thread):
    """Reads a stream to its end in a thread; `waiting` is set when it waits for news."""

    def __init__(self, stream: Any) -> None:
        super().__init__(daemon=True)
        self.found: list[int] = []
        self.error: BaseException | None = None
        self.waiting = threading.Event()
        self._stream = stream
        self._wait = stream._news.wait
        stream._news.wait = self._waits
        self.start()

    def _waits(self) -> None:
        if not self._stream._news.is_set():
            self.waiting.set()
        self._wait()

    def run(self) -> None:
        try:
            self.found += [record.value["n"] for record in self._stream]
        except BaseException as error:
            self.error = error

    def ended(self) -> list[int]:
        self.join(PATIENCE)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error
        return self.found


@pytest.mark.parametrize("read_only", [False, True])
def test_a_stream_that_waits_is_ended_from_another_thread(log: Log, read_only: bool) -> None:
    source = Log(log.path, read_only=True) if read_only else log
    stream = source.stream(live=True)
    reading = Reading(stream)
    assert reading.waiting.wait(PATIENCE)
    stream.close()
    assert reading.ended() == [0, 1, 2]
    assert next(stream, None) is None
    stream.close()
    if read_only:
        source.close()


def test_what_comes_while_it_waits_is_given_and_then_it_ends(log: Log) -> None:
    stream = log.stream(live=True, limit=5)
    reading = Reading(stream)
    assert reading.waiting.wait(PATIENCE)
    log.append_many([{"n": 3}, {"n": 4}, {"n": 5}])
    log.flush()
    assert reading.ended() == [0, 1, 2, 3, 4]


def test_several_threads_wait_in_one_stream_and_one_close_ends_them_all(log: Log) -> None:
    stream = log.stream(live=True)
    reading = Reading(stream)
    assert reading.waiting.wait(PATIENCE)
    rest: list[Any] = []
    others = [threading.Thread(target=lambda: rest.append(next(stream, None)), daemon=True) for _ in range(3)]
    for other in others:
        other.start()
    stream.close()
    assert reading.ended() == [0, 1, 2]
    for other in others:
        other.join(PATIENCE)
    assert rest == [None] * 3


def test_closing_the_log_ends_it_with_an_error_that_comes_once(log: Log) -> None:
    stream = log.stream(live=True)
    reading = Reading(stream)
    assert reading.waiting.wait(PATIENCE)
    log.close()
    with pytest.raises(LogClosed):
        reading.ended()
    assert reading.found == []  # a list is made of all or nothing
    assert next(stream, None) is None


def test_leaving_its_with_ends_it(log: Log) -> None:
    with log.stream(live=True) as stream:
        assert next(stream).value == {"n": 0}
    assert next(stream, None) is None


class Unwritable(osfile.FileSystem):
    """No folder can be made."""

    def make_folder(self, folder: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))


def test_a_reader_that_came_before_the_log_had_an_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "b.log"
    path.touch()
    with monkeypatch.context() as patch:
        patch.setattr(osfile, "fs", Unwritable())
        reader = Log(path, read_only=True)
    with reader.stream(live=True) as stream, Log(path) as writer:
        writer.append({"n": 1})
        writer.flush()
        assert next(stream).value == {"n": 1}
    reader.close()


def test_one_that_is_thrown_away_watches_no_more(log: Log) -> None:
    with Log(log.path, read_only=True) as reader:
        stream = reader.stream(live=True)
        assert next(stream).value == {"n": 0}
        gone = weakref.ref(stream)
        del stream
        gc.collect()
        assert gone() is None
        until_ended("jitdb follow")


def test_an_interrupt_while_it_waits_comes_out_and_it_may_be_read_on(log: Log) -> None:
    stream: Any = log.stream(live=True)
    for number in range(3):
        assert next(stream).value == {"n": number}

    def interrupted() -> None:
        raise KeyboardInterrupt

    wait, stream._news.wait = stream._news.wait, interrupted
    with pytest.raises(KeyboardInterrupt):
        next(stream)
    stream._news.wait = wait
    log.append({"n": 3})
    log.flush()
    assert next(stream).value == {"n": 3}


def test_an_interrupt_in_the_middle_of_what_it_reads_loses_nothing(log: Log) -> None:
    stream: Any = log.stream(live=True)
    assert next(stream).value == {"n": 0}

    def interrupted() -> Iterator[Any]:
        raise KeyboardInterrupt
        yield

    stream._records = interrupted()
    with pytest.raises(KeyboardInterrupt):
        next(stream)
    assert [next(stream).value["n"] for _ in range(2)] == [1, 2]
