"""Scans of one process share its processors."""

from __future__ import annotations

import os
import threading
import time

import pytest

from jitdb.engine.building.workers import Task, Workers
from tests.waiting import until

MOMENT = 0.05  # seconds, in which nothing may come


class Held:
    """Tasks that last until they are let go, and how many were begun."""

    def __init__(self) -> None:
        self.begun = 0
        self._lock = threading.Lock()
        self._let_go = threading.Semaphore(0)

    def __call__(self) -> None:
        with self._lock:
            self.begun += 1
        self._let_go.acquire(timeout=20)  # where a test fails

    def let_go(self, count: int) -> None:
        self._let_go.release(count)


def workers() -> Workers:
    return Workers(4, "test", lambda: None)


def submit(pool: Workers, held: Held, count: int) -> list[Task[None]]:
    return [pool.submit(held) for _ in range(count)]


@pytest.fixture(autouse=True)
def four_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)


def begins(held: Held, count: int) -> None:
    """So many tasks in all, and no more."""
    until(lambda: held.begun >= count)
    time.sleep(MOMENT)
    assert held.begun == count


def test_one_scan_has_all_processors() -> None:
    held = Held()
    with workers() as pool:
        submit(pool, held, 6)
        begins(held, 4)
        held.let_go(6)
    assert held.begun == 6


def test_two_scans_have_half_of_them_each() -> None:
    first, second = Held(), Held()
    with workers() as pool, workers() as other:
        tasks = submit(pool, first, 6) + submit(other, second, 6)
        begins(first, 2)
        begins(second, 2)
        first.let_go(6)
        second.let_go(6)
        for task in tasks:
            task.result()
    assert first.begun == second.begun == 6


def test_a_scan_gives_threads_to_one_that_comes_and_takes_them_when_it_is_gone() -> None:
    first, second = Held(), Held()
    with workers() as pool:
        submit(pool, first, 12)
        begins(first, 4)
        with workers() as other:
            task = other.submit(second)
            first.let_go(4)
            begins(first, 6)  # of four threads two ended
            second.let_go(1)
            task.result()
        submit(pool, first, 2)  # which brings two anew
        begins(first, 8)
        first.let_go(10)
    assert first.begun == 14


def test_a_process_that_was_forked_during_a_scan_has_all_processors() -> None:
    with workers():
        child = os.fork()
        if child == 0:
            held = Held()
            with workers() as pool:
                submit(pool, held, 4)
                begins(held, 4)
                held.let_go(4)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("begun", [True, False])
def test_ctrl_c_while_a_thread_starts_leaves_none_waiting(monkeypatch: pytest.MonkeyPatch, begun: bool) -> None:
    """start() waits for the thread, on a busy machine for long: an interrupt comes there, or just before."""
    start = threading.Thread.start
    late: list[threading.Thread] = []

    def interrupted(thread: threading.Thread) -> None:
        if late:
            start(thread)
            return
        late.append(thread)
        if begun:
            start(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with Workers(2, "test", lambda: None) as workers:
        with pytest.raises(KeyboardInterrupt):
            workers.submit(lambda: 1)
        tasks = [workers.submit(lambda: 2) for _ in range(3)]
        assert [task.result() for task in tasks] == [2, 2, 2]
    assert not any(thread.is_alive() for thread in late)
