"""What a page of answers is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, overload

from jitdb.common import js_aliases
from jitdb.common.paths import Keys, format_path

_ROWS: Final = 10  # records that a page shows of itself; the whole of it is in `data`
_COLUMNS: Final = 8  # fields of a record in a notebook's table
_WIDTH: Final = 100  # characters of one record in repr
_CELL: Final = 60  # characters of one value in a table


@dataclass(frozen=True, slots=True, repr=False)
class Page:
    """A run of answers: a sequence of them, and where it stands in the whole.

    data:     the records (or offsets)
    total:    how many answers there are in all
    next_seq: the `start_from` of the page after this one
    duration: milliseconds from question to answer

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

    def _repr_html_(self) -> str:
        """A table of the first fields of the first records, for notebooks."""
        from html import escape  # here: programs without a notebook never need it

        rows = [_flat(record) for record in self.data[:_ROWS]]
        columns = list(dict.fromkeys(name for row in rows for name in row))
        hidden = len(columns) - _COLUMNS
        columns = columns[:_COLUMNS]
        head = "".join(f"<th>{escape(_short(name, _CELL))}</th>" for name in columns)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(row.get(name, str()))}</td>' for name in columns)}</tr>" for row in rows
        )
        said = f"{len(self.data):,} of {self.total:,}; next_seq {self.next_seq:,}; {self.duration:.3g} ms"
        said += _rest(len(self.data), "; {} more in data", "")
        said += f"; {hidden:,} more fields" if hidden > 0 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{said}</p>"


def _rest(count: int, text: str, end: str) -> str:
    return text.format(f"{count - _ROWS:,}") + end if count > _ROWS else ""


def _flat(value: Any, path: Keys = (), depth: int = 3) -> dict[str, str]:
    """The fields of a record by their paths, as text; maps within maps within maps as they are."""
    if not isinstance(value, Mapping) or not depth:
        return {format_path(path): _shown(value)}
    row: dict[str, str] = {}
    for key, inside in value.items():
        row.update(_flat(inside, (*path, str(key)), depth - 1))
    return row


def _shown(value: Any) -> str:
    return _short(value if isinstance(value, str) else repr(value), _CELL)


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
