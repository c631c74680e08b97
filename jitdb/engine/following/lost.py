"""Texts that have no place, found by how they begin: of thousands, a file is compared with those alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jitdb.log.lines.files.stamp import ENDS, digest

if TYPE_CHECKING:
    from jitdb.engine.following.followed import FollowedText


class LostTexts:
    """In the order in which they were lost; the last one is the latest."""

    def __init__(self) -> None:
        self._all: dict[FollowedText, int] = {}  # and the number of each in their order
        self._heads: dict[
            int, dict[bytes, set[FollowedText]]
        ] = {}  # by the size of what is known of it, and its digest
        self._next = 0

    def __iter__(self) -> Iterator[FollowedText]:
        return iter(list(self._all))

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, text: object) -> bool:
        return text in self._all

    def add(self, text: FollowedText) -> None:
        """What is known of it must not change while it is lost."""
        self._all[text] = self._next
        self._next += 1
        for seen in (text.seen, text.looked):
            if seen.at:
                self._heads.setdefault(min(seen.at, ENDS), {}).setdefault(seen.head, set()).add(text)

    def discard(self, text: FollowedText) -> None:
        if self._all.pop(text, None) is None:
            return
        for seen in (text.seen, text.looked):
            alike = self._heads.get(min(seen.at, ENDS), {})
            texts = alike.get(seen.head, set())
            texts.discard(text)
            if not texts:
                alike.pop(seen.head, None)
            if not alike:
                self._heads.pop(min(seen.at, ENDS), None)

    def keep(self, most: int) -> None:
        """Forget all but the latest ones."""
        for text in list(self._all)[: max(0, len(self._all) - most)]:
            self.discard(text)

    def beginning_like(self, head: bytes) -> list[FollowedText]:
        """Those of which a text with these first bytes may be, by what was seen of them, or at a look before."""
        found: set[FollowedText] = set()
        for size, texts in self._heads.items():
            if size <= len(head):
                found |= texts.get(digest(head[:size]), set())
        return sorted(found, key=self._all.__getitem__)
