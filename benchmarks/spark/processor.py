"""Processor time of this program, Spark's Java, and Python's workers: what a cluster's owner pays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")


class Spent(NamedTuple):
    """Seconds of one core."""

    driver: float
    java: float
    workers: float

    @property
    def total(self) -> float:
        """All of it."""
        return sum(self)


class _Process(NamedTuple):
    name: str
    own: float
    ended: float  # of its children that have ended
    below: list[int]


def spent() -> Spent:
    """By this process and all below it, since they began."""
    found: dict[int, _Process] = {}
    parents: list[tuple[int, int]] = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                text = file.read()
        except OSError:
            continue  # it has ended
        fields = text[text.rindex(")") + 2 :].split()
        own, ended = (sum(map(int, fields[at : at + 2])) / _TICKS for at in (11, 13))
        found[int(name)] = _Process(text[text.index("(") + 1 : text.rindex(")")], own, ended, [])
        parents.append((int(fields[1]), int(name)))
    for parent, child in parents:
        if parent in found:
            found[parent].below.append(child)
    sums = {"driver": 0.0, "java": 0.0, "workers": 0.0}

    def add(pid: int, kind: str) -> None:
        process = found[pid]
        if process.name == "java":
            kind, inside = "java", "workers"
        else:
            inside = kind
        sums[kind] += process.own + (process.ended if kind == "workers" else 0)
        for child in process.below:
            add(child, inside)

    add(os.getpid(), "driver")
    return Spent(**sums)


@contextmanager
def measured(into: list[Spent]) -> Iterator[None]:
    """Adds what was spent meanwhile."""
    before = spent()
    yield
    into.append(Spent(*(after - earlier for after, earlier in zip(spent(), before, strict=True))))


def least(runs: int, work: Callable[[], Any]) -> Spent:
    """What the cheapest run spent, but for the first."""
    spent: list[Spent] = []
    for _ in range(runs):
        with measured(spent):
            work()
    return min(spent[1:], key=lambda each: each.total)
