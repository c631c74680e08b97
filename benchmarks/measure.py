"""How a figure is taken and told: medians of several runs, a peer measured in the same run, and the ratio of both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Figure(NamedTuple):
    """One line of the results. `value` and `peer_value` are in `unit`; with `better` "more", more is better."""

    question: str
    value: float
    unit: str
    peer: str = ""
    peer_value: float | None = None
    floor: str = ""
    aim: str = ""
    better: str = "less"

    @property
    def ratio(self) -> float | None:
        """How many times better than the peer."""
        if not self.peer_value or not self.value:
            return None
        return self.value / self.peer_value if self.better == "more" else self.peer_value / self.value

    def row(self) -> str:
        """As a row of a Markdown table."""
        peer = "" if self.peer_value is None else f"{self.peer}: {number(self.peer_value)} {self.unit}"
        ratio = "" if self.ratio is None else f"{self.ratio:.3g} x"
        return f"| {self.question} | {number(self.value)} {self.unit} | {peer} | {ratio} | {self.floor} | {self.aim} |"


HEAD = "| question | jitdb | peer, same run | ratio | at least | aim |\n| --- | --- | --- | --- | --- | --- |"


def number(value: float) -> str:
    """Three digits that mean something."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def seconds(run: Callable[..., Any], *arguments: Any) -> float:
    """One run."""
    begin = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - begin


def median_ms(run: Callable[[], Any], runs: int = 7, before: Callable[[], Any] = lambda: None) -> float:
    """The median of some runs, in milliseconds; `before` is not timed."""
    times = []
    for _ in range(runs):
        before()
        times.append(seconds(run))
    return 1e3 * statistics.median(times)


def median_ms_each(run: Callable[[], Any], calls: int = 1000, runs: int = 7) -> float:
    """The median over some runs of the mean of many calls, in milliseconds."""

    def many() -> None:
        for _ in range(calls):
            run()

    return median_ms(many, runs) / calls


def per_second(run: Callable[[], Any], count: int, runs: int = 5, before: Callable[[], Any] = lambda: None) -> float:
    """How many of `count` things that a run does are done a second, by the median run."""
    return count / (median_ms(run, runs, before) / 1e3)
