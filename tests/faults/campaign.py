"""What a campaign is: many cases of one kind of fault. A case is a seed, which replays it."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple


class Campaign(NamedTuple):
    """`run(seed)` is one case: it raises what went wrong, or gives the number of faults that were borne."""

    name: str
    fault: str
    holds: str
    run: Callable[[int], int]
    short: int  # cases that the test suite runs
    full: int
    alone: bool = False  # its cases start processes of their own and want the machine


class Outcome(NamedTuple):
    cases: int
    faults: int
    failed: list[int]  # seeds
    seconds: float


def run_campaign(campaign: Campaign, seeds: range | list[int], jobs: int = 1) -> Outcome:
    """Run these cases; those that fail are told of with their seed and go on to the next."""
    begin = time.perf_counter()
    faults, failed = 0, []
    for seed, borne, failure in _results(campaign, seeds, 1 if campaign.alone else jobs):
        faults += borne
        if failure:
            failed.append(seed)
            print(f"\n{campaign.name}: seed {seed} (again with: --only {campaign.name} --seed {seed})\n{failure}")
            sys.stdout.flush()
    return Outcome(len(seeds), faults, sorted(failed), time.perf_counter() - begin)


def _results(campaign: Campaign, seeds: range | list[int], jobs: int) -> Iterator[tuple[int, int, str]]:
    if jobs == 1:
        for seed in seeds:
            yield _one((campaign.run, seed))
        return
    with ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_prepare, initargs=(sys.path,)) as pool:
        yield from pool.map(_one, [(campaign.run, seed) for seed in seeds], chunksize=max(1, min(50, len(seeds) // 8)))


def _prepare(path: list[str]) -> None:
    sys.path[:] = path


def _one(case: tuple[Callable[[int], int], int]) -> tuple[int, int, str]:
    run, seed = case
    try:
        return seed, run(seed), ""
    except Exception:
        return seed, 0, traceback.format_exc()
