"""What a page of answers is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Page:
    """A run of answers.

    data:     the records (or offsets)
    total:    how many answers there are in all
    next_seq: the `start_from` of the page after this one
    duration: milliseconds from question to answer
    """

    data: list[Any]
    total: int
    next_seq: int
    duration: float

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.data)
