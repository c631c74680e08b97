"""Which pages of a log a scan for texts must read: the grams of the log (indexes/kinds/grams.py) rule out the others.

What is passed over is taken for records that hold none of the texts. A page in which an index begins or ends is always
read, so that its segments end where a scan of everything ends them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from jitdb.indexes.kinds.grams import MOVED, Rows, load_pages, page_size, pages_with
from jitdb.indexes.kinds.kernels import grams as gram_kernels
from jitdb.indexes.spec import GRAMS
from jitdb.log.codecs.fields import search_kernels
from jitdb.log.codecs.search import Search
from jitdb.operators.nodes.anywhere import anywhere_of
from jitdb.operators.nodes.text_match import LITERAL, steps_of, text_match_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.engine.building.targets import BuildTarget
    from jitdb.engine.catalog.catalog import Catalog
    from jitdb.indexes.files.index import Index
    from jitdb.indexes.segment import Segment
    from jitdb.indexes.spec import IndexSpec
    from jitdb.log.codecs.base import Codec
    from jitdb.log.source import ScanSource

PASS, LOOK, READ = range(3)

_ODD: Final = {
    search_kernels.ESCAPED_ASCII: gram_kernels.ESCAPED_ASCII,
    search_kernels.ESCAPED: gram_kernels.ESCAPED,
    search_kernels.NO_ASCII: gram_kernels.NO_ASCII,
}


class Part(NamedTuple):
    """The records of a page, or of several pages that are passed over together: from `seq` on, before `end_seq`.

    page:   where the first page begins in the log
    behind: a byte of the log behind them; not exactly where they end
    how:    PASS, LOOK (pass, where the page's bytes have none of the texts) or READ
    """

    seq: int
    end_seq: int
    page: int
    behind: int
    how: int

    def up_to(self, other: Part) -> Part:
        """From this one on, before the other one, together."""
        return self._replace(end_seq=other.seq, behind=other.page)

    def end(self) -> Part:
        """Nothing, behind it."""
        return self._replace(seq=self.end_seq, page=self.behind)


class Filtered(NamedTuple):
    """What a scan does up to the byte `stop` of the log, from which on it reads all: parts, in order, without gaps."""

    stop: int
    page_size: int
    parts: list[Part]
    grams: Index

    @property
    def pages(self) -> int:
        """How many there are."""
        return (self.parts[-1].behind - self.parts[0].page) // self.page_size

    def looked_at(self) -> list[Part]:
        return [part for part in self.parts if part.how == LOOK]


def filtered(log: ScanSource, targets: Sequence[BuildTarget], catalog: Catalog) -> Filtered | None:
    """What a scan for these targets need not read; None: it reads everything. Raises IndexDamaged."""
    texts = [target for target in targets if target.index.spec.form == "text"]
    index = catalog.get(GRAMS)
    begin_seq = min((target.begin_seq for target in texts), default=index.end_seq)
    others = min((target.begin_offset for target in targets if target not in texts), default=index.end_offset)
    if not texts or begin_seq >= index.end_seq or others < index.end_offset or not log.framing.reads_pages:
        return None
    searches = [searches_of(target.index.spec, log.codec) for target in texts]
    rows = [_rows(each) for each in searches if each]
    found = [_pages(segment, rows) for segment in index.segments]
    if len(rows) < len(texts) or any(not len(each.how) for each in found):
        return None
    firsts, numbers, how = map(np.concatenate, zip(*found, strict=True))
    is_first = np.append(True, numbers[1:] != numbers[:-1])  # a page in which a segment ends stands there twice
    how = np.maximum.reduceat(how, np.flatnonzero(is_first))
    firsts, numbers = firsts[is_first], numbers[is_first]
    begun = int(firsts.searchsorted(begin_seq, side="right")) - 1
    how[begun] = READ
    size = page_size(log)
    parts = _parts(firsts[begun:], numbers[begun:] * size, how[begun:], index.end_seq, size)
    return Filtered(index.end_offset, size, parts, index)


class _Pages(NamedTuple):
    """Of each page: the seq of its first record, its number, and PASS, LOOK or READ."""

    firsts: NDArray[np.int64]
    numbers: NDArray[np.int64]
    how: NDArray[np.uint8]


def _pages(segment: Segment, rows: Sequence[Rows]) -> _Pages:
    """The pages of a segment; none where it does not know all of them, or where they lie."""
    firsts, numbers = load_pages(segment)
    how = np.full(len(firsts), PASS, np.uint8)
    if not len(firsts) or firsts[0] != segment.first_in_span or (numbers == MOVED).any():
        firsts, numbers, how = firsts[:0], numbers[:0], how[:0]
    else:
        for each in rows:
            how[pages_with(segment, each)] = LOOK
        how[-1] = READ
    return _Pages(firsts.astype(np.int64) + segment.span_start, numbers, how)


def searches_of(spec: IndexSpec, codec: Codec) -> list[Search]:
    """What looks for texts that each record in an index of matches holds, the longest first; none where no text is
    known.
    """
    if not spec.paths:
        asked = anywhere_of(spec)
        return [Search(codec, asked.value, asked.ignore_case)]
    match = text_match_of(spec)
    if match.op == "matches" or not isinstance(match.value, str):
        return []
    literals = [step.text for step in steps_of(match.op, match.value) if step.kind == LITERAL and step.text]
    with suppress(UnicodeEncodeError):
        return [Search(codec, text, match.ignore_case) for text in sorted(literals, key=len, reverse=True)]
    return []


def _rows(searches: Sequence[Search]) -> Rows:
    """The rows of grams that tell whether a page may hold the texts, all of them."""
    texts, odd = list[bytes](), 0
    for search in searches:
        for part in search.parts:
            texts.append(bytes(byte if byte < 128 else 0 for byte in part) if search.ignore_case else part)
        odd |= search.odd_of(*search.parts)
    return Rows.of(texts, [row for bit, row in _ODD.items() if odd & bit])


def _parts(
    firsts: NDArray[np.int64], pages: NDArray[np.int64], how: NDArray[np.uint8], end_seq: int, size: int
) -> list[Part]:
    """Pages one by one, and those together that are passed over."""
    begins = np.flatnonzero((how != PASS) | np.append(True, how[:-1] != PASS))
    seqs, behind = [*firsts[begins].tolist(), end_seq], [*pages[begins][1:].tolist(), int(pages[-1]) + size]
    rows = zip(seqs[:-1], seqs[1:], pages[begins].tolist(), behind, how[begins].tolist(), strict=True)
    return [Part(*row) for row in rows]
