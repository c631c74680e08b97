"""Tables: columns chosen, cells in one line, nothing that a record holds reaches the terminal as a command."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import EVENTS, FIXTURE, records_of
from rich.console import Console

from jitdb.display.cells import cell
from jitdb.display.columns import choose_columns, columns_in
from jitdb.display.record_table import make_table


def drawn(records: list[Any], width: int = 80, columns: list[str] | None = None) -> list[str]:
    paths = {name: tuple(name.split(".")) for name in columns} if columns else None
    paths = paths or {".".join(path): path for path in choose_columns(records)}
    stream = io.StringIO()
    Console(file=stream, width=width, color_system=None).print(make_table(records, paths, width)[0])
    return stream.getvalue().splitlines()


def test_columns_of_the_fixture() -> None:
    found = [".".join(path) for path in choose_columns(records_of(FIXTURE)[:20])]
    assert found[0] == "timestamp"
    assert {"value.author", "value.content.type"} <= set(found)
    assert not {"value.signature", "value.hash", "key"} & set(found)


def test_columns_of_events() -> None:
    assert [".".join(path) for path in choose_columns(EVENTS)] == ["time", "level", "status", "user.name", "message"]


def test_fields_that_most_records_have_come_before_telling_names() -> None:
    records = [{"latency": number, "host": f"h{number}", "size": 2 * number} for number in range(20)]
    for record in records[:8]:
        record |= {"type": f"{record['host']}x", "user": {"name": record["host"]}}
    assert choose_columns(records, 3) == [("latency",), ("host",), ("size",)]
    assert ("type",) in choose_columns(records, 5)  # where there is room


def test_a_wide_terminal_has_more_columns() -> None:
    records = [{f"field{number}": row * number for number in range(1, 15)} for row in range(20)]
    assert [len(choose_columns(records, columns_in(width))) for width in (40, 80, 120, 400)] == [5, 5, 7, 12]


def test_a_wide_table_has_all_that_it_has_room_for() -> None:
    records = [{f"field{number:02}": number * record for number in range(12)} | {"at": "x" * 30} for record in range(5)]
    room = [len(choose_columns(records, columns_in(width), width)) for width in (80, 120, 150, 153, 400)]
    assert room == [8, 12, 12, 13, 13]  # of 10 characters, one of 33


def test_a_time_is_not_cut() -> None:
    moment = "2026-10-01T00:00:00.123456+00:00"
    record = {"time": moment, "trace": "4bf92f3577b34da6a3ce929d0e0e4736", "message": "two words " * 20}
    for width in (80, 200):
        lines = drawn([record], width, ["time", "trace", "message"])
        assert moment in "".join(lines)
        assert all(len(line) <= width for line in lines)


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_a_row_is_one_line_and_fits(width: int) -> None:
    records = records_of(FIXTURE)[:10]
    rows = drawn(records, width)
    assert all(len(row) <= width for row in rows)
    body = rows[next(number for number, row in enumerate(rows) if row.startswith("─")) + 1 :]
    assert len(body) == 10


@pytest.mark.parametrize(
    "value", ["\x1b[2Jgone", "a\nb\tc", "\r\x08", "\u202e right to left", "\x9b31m", "\x00", {"k\x1b": "\x1b"}, b"\x1b"]
)
def test_cells_hold_nothing_that_acts(value: Any) -> None:
    assert cell(value).isprintable()


def test_markup_of_records_is_text() -> None:
    assert any("[red]x[/red] [bold]" in row for row in drawn([{"text": "[red]x[/red] [bold]"}]))


@pytest.mark.parametrize(
    ("value", "is_time", "shown"),
    [
        (1700000000000, True, "2023-11-14 22:13:20.000"), (1700000000, True, "2023-11-14 22:13:20"), (17, True, "17"),
        (1700000000000, False, "1700000000000"), (True, True, "true"), (None, False, "null"),
        (float("nan"), True, "NaN"),
        ([1, {"a": b"x"}], False, '[1,{"a":{"$bytes":"eA=="}}]'), (-1e300, True, "-1e+300"),
        (10**15, True, "2001-09-09 01:46:40.000"), (10**20, True, str(10**20)),
    ],
)  # fmt: skip
def test_cells(value: Any, is_time: bool, shown: str) -> None:
    assert cell(value, is_time) == shown


@pytest.mark.parametrize(
    "records", [[1, "text", None], [{}], [[], {}], [{"a.b": 1}], [{1: 2}], [b"raw"], [{"a": {"b": {}}}], [{"": 1}]]
)  # fmt: skip
def test_odd_records_have_a_table(records: list[Any]) -> None:
    assert drawn(records)


def test_a_wide_table_is_squeezed(tmp_path: Path) -> None:
    names = [f"column{number}" for number in range(8)]
    rows = drawn([dict.fromkeys(names, "some longer words in here")], 60, names)
    assert all(len(row) <= 60 for row in rows)
