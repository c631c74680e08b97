"""What a page of answers is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn, overload

from jitdb.common import js_aliases
from jitdb.display.shown import Shown

if TYPE_CHECKING:
    from jitdb.display.parts import Display
    from jitdb.operators.nodes.selection import Selection

_ROWS: Final = 10  # records that a page shows of itself; the whole of it is in `data`
_WIDTH: Final = 100  # characters of one record in repr


@dataclass(frozen=True, slots=True, repr=False)
class Page(Shown):
    """A run of answers: a sequence of them, and where it stands in the whole.

    data:     the records (or offsets)
    total:    how many answers there are in all
    next_seq: the `start_from` of the page after this one
    duration: milliseconds from question to answer
    select:   the fields that are in the records, by name; None: they are whole

    >>> page = Page([{"type": "post", "text": "one"}, {"type": "vote"}], total=5, next_seq=2, duration=0.12)
    >>> page
    Page(total=5, next_seq=2, duration=0.12, data=[
        {'type': 'post', 'text': 'one'},
        {'type': 'vote'},
    ])
    >>> page[0]["text"], len(page), [record["type"] for record in page]
    ('one', 2, ['post', 'vote'])
    """

    data: list[Any]
    total: int
    next_seq: int
    duration: float
    select: Selection | None = field(default=None, compare=False)

    if not TYPE_CHECKING:  # a checker knows which names there are

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(js_aliases.no_such_name("a Page", name, js_aliases.PAGE, dir(type(self))), name=name)

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.data)

    @overload
    def __getitem__(self, position: int) -> Any: ...
    @overload
    def __getitem__(self, position: slice) -> list[Any]: ...
    def __getitem__(self, position: int | slice) -> Any:
        return self.data[position]

    def __repr__(self) -> str:
        head = f"Page(total={self.total}, next_seq={self.next_seq}, duration={self.duration:.3g}, data="
        if all(isinstance(record, int) for record in self.data[:_ROWS]):  # offsets, or nothing
            more = ", …" if len(self.data) > _ROWS else ""
            return f"{head}[{', '.join(map(repr, self.data[:_ROWS]))}{more}])"
        rows = [f"    {_short(repr(record), _WIDTH)},\n" for record in self.data[:_ROWS]]
        return f"{head}[\n{''.join(rows)}{_rest(len(self.data), '    … and {} more,', chr(10))}])"

    def _display(self) -> Display:
        """A table of the first records: the columns that tell most, and of what is left out how much."""
        from jitdb.common.words import duration
        from jitdb.display.parts import Display, Note, Part, Records

        first = self.data[:_ROWS]
        about = f"{len(self.data):,} of {self.total:,} answers, in {duration(self.duration)}"
        parts: list[Part] = [Records(first, dict(self.select or ()), by_name=self.select is not None)] if first else []
        told = [f"the first {_ROWS} of {len(self.data):,} records; all are in .data"] if len(self.data) > _ROWS else []
        if len(self.data) < self.total:
            told.append(f"the next page is that of start_from({self.next_seq:,})".replace(",", "_"))
        return Display("Page", about, [*parts, *([Note("; ".join(told))] if told else [])])


class PagesOf(Iterator[Page]):
    """An answer that ends, page by page: see operators.question.Pages."""

    @abstractmethod
    def read(self) -> Page | None:
        """The next page, never an empty one; None after the last, and after close()."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the answer."""

    def __next__(self) -> Page:
        page = self.read()
        if page is None:
            raise StopIteration
        return page


def _rest(count: int, text: str, end: str) -> str:
    return text.format(f"{count - _ROWS:,}") + end if count > _ROWS else ""


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
