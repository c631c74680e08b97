"""CSV and TSV files asked where they lie."""

from __future__ import annotations

import gzip
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from cli_helpers import environment, said


@pytest.mark.parametrize("packed", [False, True])
def test_in_folders_and_compressed(tmp_path: Path, packed: bool, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "status,path\n" + "".join(f"{200 + number},/{number}\n" for number in range(10))
    write = gzip.compress if packed else bytes
    (tmp_path / f"a.csv{'.gz' * packed}").write_bytes(write(rows.encode()))
    (tmp_path / "b.ndjson").write_text('{"status": 205}\n')
    (tmp_path / f"c.tsv{'.gz' * packed}").write_bytes(write(rows.replace(",", "\t").encode()))
    for _ in range(2):
        assert said(capsys, "count", tmp_path, "status >= 205") == (0, "11\n", "")
    assert said(capsys, "count", tmp_path / "*.csv*", "status >= 205")[:2] == (0, "5\n")
    _, out, _ = said(capsys, "export", tmp_path / f"a.csv{'.gz' * packed}", "status >= 209")
    assert out == '{"status":209,"path":"/9"}\n'


def test_errors_say_what_helps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text('a,b\n1,2\n2,"two\nlines"\n')
    code, _, err = said(capsys, "count", path, "a == 1")
    assert (code, "in the row at byte 8 a value goes on in the next line" in err) == (1, True)
    command = re.search(r"make a log of it: (jitdb .*)", err)
    assert command is not None
    _, *arguments = shlex.split(command[1])
    assert said(capsys, *arguments)[0] == 0
    assert said(capsys, "query", arguments[-1], "a == 2")[1] == '{"a":2,"b":"two\\nlines"}\n'
    for rows in ("1,2\n3,4\n", "2026-11-20T13:00:00Z,error\n2026-11-20T13:00:01Z,info\n", "error,1\ninfo,2\n"):
        path.write_text(rows)
        code, _, err = said(capsys, "count", path, "a == 1")
        assert code == 1
        assert "first line names no fields" in err
    path.write_text("land,2025,2026\nUA,1,2\n")  # years are names
    assert said(capsys, "count", path, '["2026"] == 2') == (0, "1\n", "")


def test_what_people_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes('\ufeff"id";"name";"status";"name"\r\n"1";"Zoë; x";"500";"a"\r\n"2";"";"404";""\r\n'.encode())
    assert said(capsys, "count", path, "status == 500") == (0, "1\n", "")
    _, out, _ = said(capsys, "query", path, "--sort", "-status")
    assert out.splitlines() == [
        '{"id":1,"name":"Zoë; x","status":500,"name_2":"a"}', '{"id":2,"name":"","status":404,"name_2":""}'
    ]  # fmt: skip
    _, out, _ = said(capsys, "export", path, "--fields", "status,name", "--format", "csv")
    assert out == "status,name\n500,Zoë; x\n404,\n"
    assert said(capsys, "export", path, "-o", tmp_path / "a.parquet")[0] == 0
    assert said(capsys, "count", tmp_path / "a.parquet", "status == 500")[:2] == (0, "1\n")
    _, out, _ = said(capsys, "info", path)
    assert "records  2, a line each, and 1 line of names, or blank" in out


def test_tail_shows_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("n,text\n1,a\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "jitdb", "tail", "a.csv", "n != 2", "-n", "2", "--old"],
        cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == '{"n":1,"text":"a"}\n'
    with path.open("a") as file:
        file.write("3,d\n")
    assert process.stdout.readline() == '{"n":3,"text":"d"}\n'
    assert process.wait(timeout=60) == 0


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_rows_behind_times_are_of_a_table_whatever_the_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], delimiter: str
) -> None:
    path = tmp_path / "a.log"
    rows = [["time", "level", "n"], *(["2026-11-20T13:00:00Z", "error", str(number)] for number in (1, 2))]
    path.write_text("".join(delimiter.join(row) + "\n" for row in rows))
    assert said(capsys, "count", path, 'level == "error" and n == 1') == (0, "1\n", "")
    assert said(capsys, "count", path, "--since", "2026-11-20")[:2] == (0, "2\n")
    path.write_text("2026-11-20 13:00:00,123 a, b, c\n" * 3)
    assert said(capsys, "query", path, "--limit", "1")[1] == '{"time":"2026-11-20 13:00:00,123","text":"a, b, c"}\n'
