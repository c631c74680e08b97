"""Rows under a header: each question of a file in chunks of any size against a reader of the whole text."""

from __future__ import annotations

import csv
import io
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from log.lines import table_oracle as oracle
from log.lines.walking import walked
from thoroughness import tries

import jitdb
from jitdb.cli import main
from jitdb.errors import JitdbError, MalformedWarning, NotALog
from jitdb.log.lines.detection import form_at
from jitdb.log.lines.form import LineForm
from jitdb.log.lines.line_log import LineLog
from jitdb.operators import field

NAMES = ["id", "text", "n"]
VALUES = ["", "1", "-2.50", "007", "1e5", "true", "False", "x", "é", "a b", '"a,b"', '"q""x"', '""', '"1"', "9" * 16,
          '","', '" x"', "5'6"]  # fmt: skip
ODD = ['"', '"open', 'clo"sed', 'a"', '"a"b', '"a" ', '""x', '"""', '{"a": 1}', " ", "\r", "\t", ' "x"', '",', ',"']
CLOSED = [value for value in ODD if value.count('"') % 2 == 0]
ENDS = ["\n"] * 8 + ["\r\n", "\n\n", "\n \n"]


def rows(values: list[str], most: int) -> st.SearchStrategy[str]:
    row = st.lists(st.sampled_from(values), min_size=1, max_size=4).map(",".join)
    whole = st.tuples(*[st.sampled_from(values)] * 3).map(",".join)
    line = st.tuples(st.one_of(whole, whole, row, st.just("id,text,n")), st.sampled_from(ENDS))
    return st.lists(line, max_size=most).map(lambda lines: "".join(line + end for line, end in lines))


def with_header(text: str) -> bytes:
    return ("id,text,n\n" + text).encode()


@settings(max_examples=tries(120, 2000), deadline=None)
@given(
    st.one_of(rows(VALUES, 12), rows([*VALUES, *ODD], 12), rows([*VALUES, *CLOSED], 12), rows(ODD, 8)).map(with_header)
)
@example(b"id,text,n\n")
@example(b"id,text,n")
@example(b'\xef\xbb\xbfid,text,n\r\n1,"a",2\r\n')
@example(b'\nid,text,n\n1,"\n2,"\n3,x,4')
def test_records_are_those_of_the_oracle(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    path.write_bytes(data)
    check(path, data, NAMES)


def check(path: Path, data: bytes, names: list[str], delimiter: str = ",", skips: bool = False) -> None:
    """Whether all that is asked of the file is what the oracle says."""
    expected = oracle.table(data, names, delimiter, skips)
    with LineLog(path, folder="memory", form=LineForm(format="csv")) as log:
        if expected == oracle.OPEN:
            with pytest.raises(NotALog, match="goes on in the next line"):
                list(log.stream())
            with pytest.raises(NotALog, match="goes on in the next line"):
                walked(log, 64)
            return
        found = [(record.offset, record.value) for record in log.stream()]
        assert found == expected
        raws = log.get_many_raw([offset for offset, _ in expected])
        assert [log.codec.decode(raw) for raw in raws if raw is not None] == [value for _, value in expected]
        for size in (13, 64, 1 << 16):
            assert walked(log, size) == expected


@settings(max_examples=tries(60, 1000), deadline=None)
@given(
    st.lists(st.lists(st.text(st.sampled_from('ab", é;\t|'), max_size=12), min_size=3, max_size=3), max_size=20),
    st.sampled_from(",;\t|"), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
)  # fmt: skip
def test_ordinary_csv_is_what_pythons_reader_says(
    tmp_path_factory: pytest.TempPathFactory, table: list[list[str]], delimiter: str, quoting: Any
) -> None:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator="\n")
    writer.writerows([NAMES, *([f"r{number}", *row[1:]] for number, row in enumerate(table))])
    data = out.getvalue().encode()
    path = tmp_path_factory.getbasetemp() / "ordinary.csv"
    path.write_bytes(data)
    with LineLog(path, folder="memory", form=LineForm(format="csv")) as log:
        for size in (16, 1 << 16):
            found = [{name: text for name, text in value.items() if text} for _, value in walked(log, size)]
            assert found == oracle.by_csv(data, delimiter)


DAYS = ["2026-11-28", "28.11.2026", "11/28/2026", "Saturday", "", "20261128", "2026-11-28T10:00:00Z"]
CLOCKS = ["10:30:00", "10:30", "10:30:00 AM", "10:30:00.123", "soon", "", "12", "pm 10:30"]


@given(
    rows=st.lists(st.tuples(st.sampled_from(DAYS), st.sampled_from(CLOCKS), st.booleans()), min_size=1),
    header=st.sampled_from(["Date,Time", "time,date", "DATE,Time,timestamp", "date,n,TIME", "day,time"]),
)
def test_columns_of_days_and_of_times_of_day_are_one_time(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, bool]], header: str
) -> None:
    names = header.split(",")
    text = f"n,{header}\n"
    for day, clock, quoted in rows:
        values = {"date": day, "day": day, "time": clock, "n": "7", "timestamp": "x"}
        row = [values[name.lower()] for name in names]
        text += ",".join(["1", *(f'"{value}"' if quoted else value for value in row)]) + "\n"
    path = tmp_path_factory.mktemp("t") / "a.csv"
    path.write_text(text)
    check(path, path.read_bytes(), ["n", *names] if "n" not in names else ["n", "date", "n_2", "TIME"])


@pytest.mark.parametrize(
    ("day", "clock", "time"),
    [("2026-11-28", "10:30:00", "2026-11-28T10:30"), ("28.11.2026", "10:30", "2026-11-28T10:30"),
     ("11/28/2026", "10:30:00 PM", "2026-11-28T22:30")],
)  # fmt: skip
def test_they_are_asked_by_time(tmp_path: Path, day: str, clock: str, time: str) -> None:
    (tmp_path / "a.csv").write_text(f"Date,Time,n\n{day},{clock},1\n" * 1 + f'"{day}","{clock}",2\n')
    with jitdb.open(tmp_path / "a.csv") as db:
        assert db.count(f'timestamp >= "{time}" and timestamp < "{time}:01"') == 2
        assert db.declared_time == (("timestamp",),)


def test_many_rows_and_values_of_a_megabyte(tmp_path: Path) -> None:
    chance = random.Random(5)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(NAMES)
    for number in range(4000):
        text = " ".join(chance.choice(['say "x", no', "a,b,c", "", "plain " * 9]) for _ in range(chance.choice([1, 3])))
        writer.writerow([number, chance.choice([text, text, "x" * (1 << 20 if number % 2000 == 7 else 9)]), ""])
    data = out.getvalue().encode()
    path = tmp_path / "a.csv"
    path.write_bytes(data)
    expected = oracle.table(data, NAMES)
    assert [value.get("text", "") for _, value in expected] == [row.get("text", "") for row in oracle.by_csv(data)]
    with LineLog(path, folder="memory", form=LineForm(format="csv")) as log:
        for size in (1 << 12, 1 << 16, 1 << 22):
            assert walked(log, size) == expected


IIS = """#Software: Microsoft Internet Information Services 10.0
#Version: 1.0
#Date: 2026-11-20 13:00:00
#Fields: date time s-ip cs-uri-stem sc-status time-taken cs(User-Agent)
2026-11-20 13:00:00 ::1 /a 200 15 Mozilla/5.0+(X11)
2026-11-20 13:00:01 ::1 /b 503 - -
2026-11-20 13:00:02 ::1 /c 503
"""
ZEEK = """#separator \\x09
#set_separator\t,
#empty_field\t(empty)
#unset_field\t-
#path\tconn
#fields\tts\tid.orig_h\tduration\tlocal\ttunnel\tport
#types\ttime\taddr\tinterval\tbool\tset[string]\tport
1795132800.5\t10.0.0.1\t1.5\tT\t(empty)\t80
1795132801.5\t10.0.0.2\t-\tF\ta,b\t-
#close\t2026-11-20
"""


def test_logs_with_names_in_comments(tmp_path: Path) -> None:
    for name, text, title in (("iis.log", IIS, "W3C extended log"), ("conn.log", ZEEK, "log of Zeek")):
        (tmp_path / name).write_text(text)
        form = form_at(tmp_path / name)
        assert form is not None
        assert form.row is not None
        assert form.row.title == title
    with jitdb.open(tmp_path / "iis.log", "memory", progress=False) as db:
        with pytest.warns(MalformedWarning):
            found = db.all()
        assert found == [
            {"date": "2026-11-20", "time": "13:00:00", "s-ip": "::1", "cs-uri-stem": "/a", "sc-status": 200,
             "time-taken": 15, "cs(User-Agent)": "Mozilla/5.0+(X11)", "timestamp": "2026-11-20T13:00:00Z"},
            {"date": "2026-11-20", "time": "13:00:01", "s-ip": "::1", "cs-uri-stem": "/b", "sc-status": 503,
             "timestamp": "2026-11-20T13:00:01Z"},
        ]  # fmt: skip
        assert list(db.log.malformed()) == [7]
    with jitdb.open(tmp_path / "conn.log", "memory", progress=False) as db:
        assert db.all() == [
            {"ts": 1795132800.5, "id.orig_h": "10.0.0.1", "duration": 1.5, "local": True, "tunnel": [], "port": 80},
            {"ts": 1795132801.5, "id.orig_h": "10.0.0.2", "local": False, "tunnel": ["a", "b"]},
        ]


EXCHANGE = """#Software: Microsoft Exchange Server
#Log-type: Message Tracking Log
#Fields: date-time,client-ip,event-id,total-bytes,message-subject
"""


@settings(max_examples=tries(60, 1000), deadline=None)
@given(st.lists(st.lists(st.text('ab-,;" #é', max_size=6), min_size=5, max_size=5), max_size=6))
def test_logs_of_exchange_have_commas(tmp_path_factory: pytest.TempPathFactory, cells: list[list[str]]) -> None:
    """Rows as Python's csv reads them, behind the comments with the names of their columns."""
    path = tmp_path_factory.mktemp("exchange") / "MSGTRK.LOG"
    text = io.StringIO()
    rows = [[f"2026-11-28T10:00:0{number}.000Z", *row] for number, row in enumerate(cells)]
    csv.writer(text).writerows([*(row[:5] for row in rows), ["2026-11-28T10:00:09.000Z", "::1", "FAIL", 7, 'a, "b"']])
    path.write_text(EXCHANGE + text.getvalue(), newline="")
    names = ["date-time", "client-ip", "event-id", "total-bytes", "message-subject"]
    expected: list[dict[str, Any]] = [
        {name: value for name, value in zip(names, row, strict=True) if value}
        for row in csv.reader(text.getvalue().splitlines())
    ]
    expected[-1]["total-bytes"] = 7
    with jitdb.open(path, "memory", progress=False) as db:
        assert db.all(sort_by="arrival") == expected
        assert db.query('["event-id"] == "FAIL"').since("2026-11-28T10:00:09").count() == 1


def test_other_names_further_on_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "iis.log"
    path.write_text(IIS.replace("2026-11-20 13:00:02 ::1 /c 503\n", "") * 2)
    with jitdb.open(path, "memory", progress=False) as db:
        assert db.count() == 4
    again = IIS.replace("sc-status time-taken", "time-taken sc-status")
    path.write_text(IIS + again)
    with (
        jitdb.open(path, "memory", progress=False) as db,
        pytest.raises(NotALog, match=r"iis.log: .* names other fields") as caught,
    ):
        db.count()
    assert caught.value.remedy is not None
    command = caught.value.remedy.shell.partition("is a log: ")[2]
    subprocess.run(command, shell=True, check=True, cwd=tmp_path, stdout=subprocess.DEVNULL)
    assert [jitdb.open(part, "memory").count() for part in sorted(tmp_path.glob("xx*"))] == [2, 2]


def test_a_file_that_grows_is_replaced_and_closed_in_the_middle(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("")
    with jitdb.open(path, progress=False) as db:
        assert db.count() == 0
        path.write_text('id,text\n1,x\n2,"a, ""b"""\n')
        db.log.refresh()
        assert db.all(sort_by="arrival") == [{"id": 1, "text": "x"}, {"id": 2, "text": 'a, "b"'}]
        with path.open("a") as file:
            file.write("3,y\n4")
        db.log.refresh()
        assert db.count(field("id") >= 3) == 1
        new = tmp_path / "new.csv"
        new.write_text("text,id\n9,z\n")
        new.replace(path)
        db.log.refresh()
        assert db.all() == [{"text": 9, "id": "z"}]
    with jitdb.open(path, progress=False) as db:
        assert db.count(field("id") == "z") == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sep=;\nid;a,b\n1;x\n2;y\n", [{"id": 1, "a,b": "x"}, {"id": 2, "a,b": "y"}]),
        ("\ufeffsep=\t\r\nid\ta\r\n1\tx\r\n", [{"id": 1, "a": "x"}]),
        ("sep=,\nid,a\n1,x,z\n", [{"id": 1, "a": "x", "column_3": "z"}]),
        ("id,a\n1,x,y\n2,y,\n", [{"id": 1, "a": "x", "column_3": "y"}, {"id": 2, "a": "y"}]),
        ("id,a\n1,x,\n2,y,\n", [{"id": 1, "a": "x"}, {"id": 2, "a": "y"}]),  # a delimiter behind each row
        (
            'Level,Date and Time,Source,Event ID,Task Category\r\nError,x,k,7,None,"It failed, twice"\r\n',
            [{"Level": "Error", "Date and Time": "x", "Source": "k", "Event ID": 7, "Task Category": "None",
              "message": "It failed, twice"}],
        ),
        ("Level,Source,Event ID,message\nError,k,7,a,b\n",
         [{"Level": "Error", "Source": "k", "Event ID": 7, "message": "a", "column_5": "b"}]),
    ],
)  # fmt: skip
def test_a_line_with_the_delimiter_and_a_value_without_a_name(
    tmp_path: Path, text: str, expected: list[dict[str, object]], capsys: pytest.CaptureFixture[str]
) -> None:
    path, log = tmp_path / "a.csv", tmp_path / "a.log"
    path.write_text(text, newline="")
    with jitdb.open(path, "memory") as db:
        assert db.all(sort_by="arrival") == expected
    if ",\n" not in text:  # the import takes no row of another length
        assert main(["import", str(path), str(log)]) == 0
        with jitdb.open(log, "memory") as db:
            assert db.all(sort_by="arrival") == expected


def test_one_row_of_another_length_is_no_row_with_another_column(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,a\n1,x,y\n2,y\n")
    with jitdb.open(path, "memory") as db:
        assert db.all() == [{"id": 2, "a": "y"}]
        with path.open("a") as file:
            file.write("sep=,\n3,z\n")
        db.log.refresh()
        assert db.count() == 2


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("a,b,c\n1,2,3\n4,5,6\n", True),
        ("a;b;c\n1;2;3\n4;5;6\n", True),
        ("a\tb\n1\t2\n3\t4\n", True),
        ("Dear a, b, c\nso, it, is\nand, so, on\n", False),
        ("1,2,3\n4,5,6\n7,8,9\n", False),
        ("a,b,c\n1,2\n4,5,6\n", False),
        ("web\tINFO\tup\nweb\tERROR\tno\ndb\tINFO\tup\n", False),
        ("web|start|x\ndb|stop|y\nweb|stop|z\n", False),
        ("web|info|x\ndb|error|y\nweb3|WARN|z\n", False),
        ("a,level,error\n1,info,no\n2,error,none\n", True),
        ("a,b,c\n1,2,3\na,b,c\n4,5,6\n", True),
        ("error|level|text\n1|info|x\n2|warn|error\n", True),
        ("ERROR\tINFO\n1\t2\n3\t4\n", True),
    ],
)
def test_tables_are_known_without_their_name(tmp_path: Path, text: str, is_one: bool) -> None:
    path = tmp_path / "data"
    path.write_text(text)
    form = form_at(path, any_text=True)
    assert form is not None
    assert form.format == ("csv" if is_one else "plain")


@pytest.mark.parametrize("header", ['"\r{', "a,b\rc", '"' + "x" * 200_000 + '",b'])
def test_a_header_that_python_cannot_split_is_none(tmp_path: Path, header: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(f"{header}\n1,2\n".encode())
    with pytest.raises(JitdbError):
        jitdb.open(path, "memory", format="csv")


@pytest.mark.parametrize("mark", ["|", "\t"])
def test_levels_before_bars_are_text(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "bar.log"
    path.write_text("INFO|Main|started\nERROR|Main|failed\nINFO|Main|done\n".replace("|", mark))
    with jitdb.open(path) as db:
        assert db.count() == 3
        assert db.count("level == 'ERROR' and text contains 'failed'") == 1
        assert db.count("* contains 'started'") == 1
