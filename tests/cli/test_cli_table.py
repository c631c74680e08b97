"""Tables: columns chosen, cells in one line, nothing that a record holds reaches the terminal as a command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cli_helpers import EVENTS, FIXTURE, records_of

from jitdb.display.cells import cell
from jitdb.display.columns import choose_columns, columns_in, leaf_fields
from jitdb.display.parts import Records
from jitdb.display.record_table import record_lines


def drawn(records: list[Any], width: int = 80, columns: list[str] | None = None) -> list[str]:
    paths = {name: tuple(name.split(".")) for name in columns} if columns else None
    paths = paths or {".".join(path): path for path in choose_columns(records)}
    return [line.text for line in record_lines(Records(records, paths), width)[0]]


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


FLIGHT = {
    "year": 2013, "month": 1, "day": 1, "dep_time": 517, "sched_dep_time": 515, "dep_delay": 2, "arr_time": 830,
    "sched_arr_time": 819, "arr_delay": 11, "carrier": "UA", "flight": 1545, "tailnum": "N14228", "origin": "EWR",
    "dest": "IAH", "air_time": 227, "distance": 1400, "hour": 5, "minute": 15, "timestamp": 1357017300000,
}  # fmt: skip
SPAN = {
    "resourceAttributes": {"kubernetes": {"namespace_name": "shop", "deployment_replica_count": 3}},
    "instrumentationScopeName": "io.opentelemetry.contrib", "observedTimestampUnixNano": 17 * 10**17,
    "httpRequestResponseStatusCode": 200, "isErrorBecauseOfTimeout": False, "k": "x" * 100,
}  # fmt: skip


def heads(rows: list[str]) -> list[str]:
    """The names over the columns, each put together again of its lines."""
    rule = next(number for number, row in enumerate(rows) if row.startswith("\u2500"))
    width = max(map(len, rows))
    lines = [row.ljust(width) for row in rows[:rule]]
    every = [*lines, *(row.ljust(width) for row in rows[rule + 1 :])]
    gaps = [at for at in range(width) if all(line[at] == " " for line in every)]
    cells, last = [], -1
    for gap in [*gaps, width]:
        if gap - last > 1:
            cells.append("".join(line[last + 1 : gap].strip() for line in lines))
        last = gap
    return cells


@pytest.mark.parametrize("width", [40, 80, 150])
@pytest.mark.parametrize("record", [FLIGHT, SPAN], ids=["flat", "nested"])
@pytest.mark.parametrize("named", [False, True])
def test_columns_of_long_names_are_as_wide_as_they_need(width: int, record: dict[str, Any], named: bool) -> None:
    """Names go on in other lines between their parts, and what has no room then is left out rather than cut."""
    names = list(leaf_fields([record]))
    chosen = names if named else [".".join(path) for path in choose_columns([record] * 3, columns_in(width), width)]
    rows = drawn([record] * 3, width, chosen)
    assert all(len(row) <= width for row in rows)
    assert set(heads(rows)) - {""} <= set(names)  # none is cut; a time has a blank, too
    if record is FLIGHT:
        assert len(heads(rows)) >= {40: 3, 80: 8, 150: 15}[width]
        assert not any("\u2026" in row for row in rows)


def test_the_last_column_is_not_starved() -> None:
    rows = drawn([{"a" * 30: "b" * 30, "c": "d" * 30, "k": "some text " * 9}] * 4, 60, ["a" * 30, "c", "k"])
    assert len(rows[-1].split("   ")[-1]) >= 10


def test_records_of_arrays_alone_show_them() -> None:
    assert any('[{"a":1}]' in row for row in drawn([{"logs": [{"a": 1}]}]))
