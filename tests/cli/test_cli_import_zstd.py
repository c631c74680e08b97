"""Imports of what zstd compressed: the records of what was, wherever it comes from; and what is said of damage."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard
from cli_helpers import environment, records_of, write
from waiting import until

from jitdb.cli import main

ROWS = [{"n": number, "text": "x" * (number % 99)} for number in range(20_000)]
NDJSON = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
CSV = b"n,text\n" + "".join(f"{row['n']},{row['text']}\n" for row in ROWS).encode()
SKIPPED = b"\x52\x2a\x4d\x18\x04\x00\x00\x00nope"


def pressed(data: bytes) -> bytes:
    packed: bytes = zstandard.ZstdCompressor(write_content_size=False).compress(data)
    return packed


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("x.ndjson.zst", pressed(NDJSON)),
        ("anything", SKIPPED + pressed(NDJSON[:1000]) + pressed(b"") + SKIPPED + pressed(NDJSON[1000:])),
        ("x.csv.zst", pressed(CSV)),
        ("x.json.zst", pressed(json.dumps(ROWS).encode())),
    ],
)
def test_files_and_standard_input(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, packed: bytes) -> None:
    write(folder, packed, name)
    assert main(["import", name, "out.log", "-q"]) == 0
    kept = [{key: value for key, value in row.items() if value != ""} for row in ROWS] if "csv" in name else ROWS
    assert records_of(folder / "out.log") == kept
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(packed))))
    form = ["--format", name.split(".")[1]] if "." in name else []
    assert main(["import", "-", "piped.log", "-q", *form]) == 0
    assert records_of(folder / "piped.log") == kept


def test_a_table_of_arrow(folder: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    stream = io.BytesIO()
    table = pa.Table.from_pylist(ROWS)
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    write(folder, pressed(stream.getvalue()), "x.arrows.zst")
    assert main(["import", "x.arrows.zst", "out.log", "-q"]) == 0
    assert records_of(folder / "out.log") == ROWS


@pytest.mark.parametrize("name", ["x.ndjson.zst", "x.arrow.zst"])
def test_damage_is_told(folder: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    data = pressed(NDJSON)
    for number, (packed, words) in enumerate(
        [
            (data[:-9], "the zstd data are cut off"),
            (data[:9] + b"\xff" * 50 + data[59:], "damaged zstd data: Unable"),
        ]
    ):
        write(folder, packed, name)
        assert main(["import", name, f"{number}.log"]) == 1
        said = capsys.readouterr().err
        assert words in said
        assert "get the file whole first" in said


def test_a_pipe_is_handed_on_at_once(tmp_path: Path) -> None:
    compressor = zstandard.ZstdCompressor().compressobj()
    with subprocess.Popen(
        [sys.executable, "-m", "jitdb", "import", "--follow", "-", "out.log"],
        stdin=subprocess.PIPE, cwd=tmp_path, env=environment(),
    ) as process:  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(compressor.compress(b'{"n":1}\n') + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
        process.stdin.flush()
        until(lambda: (tmp_path / "out.log").exists() and (tmp_path / "out.log").stat().st_size > 0)
        process.stdin.write(compressor.compress(b'{"n":2}\n') + compressor.flush())
        process.stdin.close()
        assert process.wait(60) == 0
    assert records_of(tmp_path / "out.log") == [{"n": 1}, {"n": 2}]
