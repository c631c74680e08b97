"""Parquet and Arrow files asked from a shell: alone, in sets of logs, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from cli_helpers import environment

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
from column_cases import flights, write  # noqa: E402
from pyarrow import parquet  # noqa: E402


def said(run, *arguments: str) -> str:
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def table(folder: Path):
    table = flights(3_000)
    write(table, folder / "x.parquet")
    return table.to_pandas()


@pytest.mark.parametrize("kind", ["parquet", "arrow", "feather"])
def test_commands(folder: Path, run, kind: str) -> None:
    frame = flights(3_000).to_pandas()
    name = write(flights(3_000), folder / f"x.{kind}").name
    bad = frame[frame.status >= 500]
    assert said(run, "count", name, "status >= 500") == f"{len(bad)}\n"
    lines = said(run, "query", name, "status >= 500", "--sort", "id", "--limit", "5").splitlines()
    assert [json.loads(line)["id"] for line in lines] == bad.id.head(5).tolist()
    values = frame.carrier.value_counts()
    assert said(run, "values", name, "carrier").splitlines()[1].split()[:2] == [values.index[0], f"{values.iloc[0]:,}"]
    assert f"max  {frame.delay.max():g}" in " ".join(said(run, "stats", name, "delay").split()).replace("max ", "max  ")
    assert "histogram" not in said(run, "histogram", name, "plane.seats")
    assert "plane.tail" in said(run, "fields", name)
    assert len(said(run, "export", name, "status == 404").splitlines()) == (frame.status == 404).sum()
    assert said(run, "export", name, "status == 404", "-o", "y.parquet", "-q") == ""
    assert parquet.read_table("y.parquet")["id"].to_pylist() == frame[frame.status == 404].id.tolist()
    assert "3,000, a row each" in said(run, "info", name)
    assert "sound" in said(run, "verify", name)
    assert "nothing is to be scanned" in said(run, "explain", name, "status >= 500")


def test_info_as_json(folder: Path, run, table) -> None:
    found = json.loads(said(run, "info", "x.parquet", "--json"))
    assert (found["records"], found["format"], found["codec"]) == (3_000, "parquet", "json")
    assert found["bytes"] == Path("x.parquet").stat().st_size < found["kept_bytes"]


def test_what_is_kept(folder: Path, run, table) -> None:
    assert "no indexes yet" in said(run, "indexes", "x.parquet")
    assert not Path(".jitdb").exists(), "to list it reads no rows"
    said(run, "count", "x.parquet", "status == 500")
    listed = said(run, "indexes", "x.parquet")
    assert "status" in listed
    assert "x.parquet (table): " in listed
    assert "x.parquet (table): " in said(run, "indexes", ".")
    assert said(run, "indexes", "x.parquet", "--forget").startswith("forgot what was kept of 1 file: ")
    assert [each.name for each in folder.iterdir()] == ["x.parquet"]
    assert said(run, "indexes", "x.parquet", "--forget") == "there was nothing to forget\n"


def test_where_it_is_kept(folder: Path, run, table) -> None:
    count = f"{(table.status == 500).sum()}\n"
    assert said(run, "count", "x.parquet", "status == 500", "--indexes", "none") == count
    assert not Path(".jitdb").exists()
    assert said(run, "count", "x.parquet", "status == 500", "--indexes", "there") == count
    assert not Path(".jitdb").exists()
    assert Path("there/table/rows").exists()
    said(run, "indexes", "x.parquet", "--indexes", "there", "--forget")
    assert not Path("there/table/rows").exists()


def test_a_terminal_is_told_once(folder: Path, table) -> None:
    import pty
    import subprocess

    def told(*arguments: str) -> str:
        master, slave = pty.openpty()
        command = [sys.executable, "-m", "jitdb", "count", "x.parquet", *arguments]
        subprocess.run(command, stdout=subprocess.PIPE, stderr=slave, env=environment(), check=True)
        os.close(slave)
        text = ""
        try:
            while part := os.read(master, 4096):
                text += part.decode()
        except OSError:  # it is closed at the other end
            os.close(master)
        return " ".join(text.split())

    first = told("status == 500")
    assert "x.parquet: its 3,000 rows were read once, and are kept in" in first
    assert "-table (" in first
    assert "rows" not in told("status == 404")
    assert "read for this question alone" in told("--indexes", "none")
    assert told("-q", "--indexes", "none") == ""


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("tail x.parquet", "it is a Parquet file, which does not grow: no record will come"),
        (
            "delete x.parquet 'status == 500' --yes",
            "that somebody else writes, which is only read: it cannot be deleted",
        ),
        ("compact x.parquet", "it cannot be compacted"),
        ("repair x.parquet", "it cannot be repaired"),
        ("pack x.parquet", "it is a Parquet file, not a log"),
        ("import --append more.ndjson x.parquet", "it is a Parquet file that somebody else writes"),
        ("count x.parquet --codec json", "codec says how the records of other files are read"),
        ("count x.parquet --log-format plain", "leave --log-format out"),
        ("count x.parquet --each items[]", "leave --each out"),
        ("count cut.parquet", "cut.parquet: it is cut off, or still being written"),
    ],
)
def test_what_is_refused(folder: Path, run, table, command: str, said: str) -> None:
    import shlex

    Path("more.ndjson").write_text('{"a": 1}\n')
    before = Path("x.parquet").read_bytes()
    Path("cut.parquet").write_bytes(before[:-20])
    done = run(*shlex.split(command))
    assert (done.returncode != 0, said in done.stderr) == (True, True), done.stderr
    assert Path("x.parquet").read_bytes() == before


def test_without_pyarrow(folder: Path, table, process) -> None:
    Path("pyarrow.py").write_text("raise ImportError(name='pyarrow')")
    done = process("count", "x.parquet")
    assert done.returncode == 2
    assert "it is a Parquet file, which is read by pyarrow, and that is not installed" in done.stderr
    assert "pip install 'jitdb[arrow]'" in done.stderr


def test_a_set_of_them(folder: Path, run) -> None:
    frames = []
    for number, day in enumerate(("2026-11-20", "2026-11-21")):
        Path(f"logs/dt={day}").mkdir(parents=True)
        for part in range(2):
            table = flights(500, seed=10 * number + part)
            write(table, Path(f"logs/dt={day}/part-{part}.parquet"))
            frames.append(table.to_pandas().assign(dt=day))
    frame = pd.concat(frames)
    bad = (frame.status >= 500).sum()
    assert said(run, "count", "logs", "status >= 500") == f"{bad}\n"
    assert said(run, "count", "logs/*/*.parquet", "status >= 500") == f"{bad}\n"
    assert said(run, "count", "logs", 'status >= 500 and dt == "2026-11-21"') == (
        f"{((frame.status >= 500) & (frame.dt == '2026-11-21')).sum()}\n"
    )
    values = said(run, "values", "logs", "origin")
    for origin, count in frame.origin.value_counts().items():
        assert any(line.split()[:2] == [origin, str(count)] for line in values.splitlines())
    lines = said(run, "query", "logs", "status == 503", "--sort", "-delay", "--limit", "3").splitlines()
    wanted = frame[frame.status == 503].delay.nlargest(3).tolist()
    assert [json.loads(line)["delay"] for line in lines] == wanted
    assert "4 logs: 2,000 records" in said(run, "info", "logs")
    assert said(run, "verify", "logs").startswith("4 logs verified: all are sound")
    assert "4 files" in said(run, "indexes", "logs")


def test_a_folder_of_another_program(folder: Path, run) -> None:
    """With summaries of its files, which have no rows."""
    found: list[object] = []
    parquet.write_to_dataset(pa.table({"n": range(30), "p": [1, 2, 3] * 10}), "ds", ["p"], metadata_collector=found)
    parquet.write_metadata(pa.schema({"n": pa.int64()}), "ds/_common_metadata")
    parquet.write_metadata(pa.schema({"n": pa.int64()}), "ds/_metadata", metadata_collector=found)
    Path("ds/_SUCCESS").touch()
    done = run("count", "ds", "p == 2")
    assert (done.stdout, done.stderr) == ("10\n", "")
    done = run("count", "ds/_metadata")
    assert "it tells of the rows of other files, and has none" in done.stderr
    done = run("count", "ds/_*")
    assert (done.stdout, "is passed over: ds/_metadata (it cannot" in done.stderr) == ("0\n", True)


def test_a_set_with_others(folder: Path, run, table) -> None:
    Path("a.ndjson").write_text('{"status": 500}\n' * 3)
    whole = Path("x.parquet").read_bytes()
    Path("cut.parquet").write_bytes(whole[:-20])
    bad = (table.status == 500).sum() + 3
    done = run("count", ".", "status == 500")
    assert done.stdout == f"{bad}\n"
    assert "1 file is no log, or cannot be read, and is passed over: cut.parquet (it is cut off" in done.stderr
    for options in ([], ["--json"]):
        done = run("info", ".", *options)
        assert "passed over: cut.parquet (it is cut off" in done.stderr
        assert (done.returncode, "a.ndjson" in done.stdout, "x.parquet" in done.stdout) == (0, True, True)
        assert "cut" not in done.stdout
    done = run("info", "cut.parquet")
    assert (done.returncode, "cut.parquet: it is cut off" in done.stderr) == (1, True)
    done = run("info", "c*")
    assert (done.returncode, "cut.parquet: it is cut off" in done.stderr) == (1, True)
    done = run("info", "a.ndjson", "cut.parquet")
    assert (done.returncode, "cut.parquet: it is cut off" in done.stderr) == (1, True)
    done = run("verify", ".")
    assert (done.returncode, "cut.parquet: it is cut off" in done.stderr) == (1, True), "here it is asked about"
    at = len(whole) // 3
    Path("cut.parquet").write_bytes(whole[:at] + bytes(200) + whole[at + 200 :])
    done = run("info", ".")
    assert (done.returncode, "passed over: cut.parquet (it cannot be read" in done.stderr) == (0, True), "its pages"
    Path("cut.parquet").write_bytes(whole[:-20])
    done = run("count", "x.parquet", "cut.parquet", "a.ndjson")
    assert (done.returncode, "cut.parquet: it is cut off" in done.stderr) == (1, True)
    Path("cut.parquet").write_bytes(whole)
    assert said(run, "count", ".", "status == 500") == f"{2 * bad - 3}\n"
    shutil.rmtree(".jitdb")
