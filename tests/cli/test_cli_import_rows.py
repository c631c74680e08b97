"""Rows of CSV by the kernel are the records, refusals and remarks that the standard library's rows are."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from cli_helpers import records_of, write
from hypothesis import given, settings
from hypothesis import strategies as st
from json_cases import NO_NUMBERS, NUMBERS, Into

from jitdb.cli import main
from jitdb.cli.failures import Failure
from jitdb.cli.input import csv_input, import_target, sources
from jitdb.cli.input.importing import batches
from jitdb.cli.input.input_batches import RowOptions
from jitdb.cli.input.sources import Source
from jitdb.log.codecs import get_codec

JSON = get_codec("json")

Rows = tuple[list[tuple[int, Any]], list[tuple[int, str]], list[str], bool]


def taken(path: Path, options: RowOptions, first: int, *, by_kernel: bool) -> Rows:
    """Values by their lines, bad lines, what was told, and whether the kernel made any."""
    values: list[tuple[int, Any]] = []
    bad: list[tuple[int, str]] = []
    told: list[str] = []
    is_framed = False
    into: Any = Into("json", by_kernel=by_kernel)
    with Source(str(path)) as source:
        try:
            for batch in batches(source, "csv", options, first, told.append, into):
                bad += [(each.number, each.reason) for each in batch.bad]
                is_framed |= batch.encoded is not None
                for number, value in batch.singly():
                    values.append((number, JSON.decode(value) if batch.encoded else value))
        except Failure as failure:
            told.append(str(failure))
    return values, bad, told, is_framed


def check(path: Path, options: RowOptions, first: int = 1) -> bool:
    """Both ways give the same; gives whether the kernel made any."""
    plain = taken(path, options, first, by_kernel=False)
    compiled = taken(path, options, first, by_kernel=True)
    assert compiled[:3] == plain[:3]
    assert not plain[3]
    return compiled[3]


word = st.sampled_from(
    ["", "", "a", "é", "\U0001f600", "x" * 40, "true", "FALSE", "tru", "1", "-2.5", "12abc", "-", "n/a", '""', "a\tb",
     '"a,b"', '"x""y"', '"1"', '"two\nlines"', '"two\r\nlines"', 'q"q', '"a"b', '"é"', "\x00", " 1", "2013-01-01",
     "\\", "a\x01\x7f\x1b"]
)  # fmt: skip
number = st.sampled_from([*NUMBERS, *NO_NUMBERS])
values = {"words": word, "numbers": st.one_of(number, st.sampled_from(["1", "25", "-3.5", ""])), "plain": st.just("7")}


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_table(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(values)), min_size=1, max_size=4))
    rows = data.draw(st.lists(st.tuples(*(values[kind] for kind in kinds)), max_size=12))
    end = data.draw(st.sampled_from(["\n", "\n", "\r\n"]))
    text = [",".join(row) for row in [[f"{kind} {i}" for i, kind in enumerate(kinds)], *rows]]
    odd = data.draw(
        st.sampled_from([b"", b"", b"\n", b"a,b,c,d,e\n", b"\xff\n", b'"open\n', b"a\rb\n", b"\xe2\x82,\n"])
    )
    at = data.draw(st.integers(1, len(text)))
    raw = end.join(text[:at]).encode() + end.encode() + odd + end.join(text[at:]).encode()
    path = tmp_path_factory.mktemp("table") / "x.csv"
    path.write_bytes(raw)
    options = RowOptions(
        "csv", ",", all_text=data.draw(st.booleans()), stop_at_bad=data.draw(st.booleans()),
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_input, "SAMPLE", data.draw(st.sampled_from([1, 3, 100])))
        patch.setattr(sources, "READ", data.draw(st.sampled_from([30, 200, 1 << 20])))
        check(path, options, data.draw(st.sampled_from([1, 2, 5])))


def test_many_columns_and_long_texts(tmp_path: Path) -> None:
    random = Random(5)
    rows = [[f"name {i}" * (i % 9 + 1) for i in range(70)]]
    for _ in range(300):
        rows.append(
            [random.choice(["", "x" * random.randrange(900), "1.5", "é" * random.randrange(40)]) for _ in rows[0]]
        )
    path = tmp_path / "x.csv"
    path.write_text("\n".join(",".join(row) for row in rows))
    assert check(path, RowOptions("csv", ","))
    assert not check(path, RowOptions("csv", "é"))  # no sign of ASCII


Run = Callable[..., tuple[int, str, bytes]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs an import with the kernel as soon as it can be, or never."""

    def ran(data: bytes, worth: int, *arguments: str) -> tuple[int, str, bytes]:
        folder = tmp_path / str(worth)
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        monkeypatch.setattr(import_target, "WORTH", worth)
        monkeypatch.setattr(import_target, "WORTH_COMPILING", 0)
        monkeypatch.setattr(sources, "READ", 20_000)
        monkeypatch.setattr(csv_input, "SAMPLE", 1_000)
        write(folder, data, "in.csv")
        code = main(["import", *arguments, "in.csv", "out.log"])
        said = capsys.readouterr()
        return code, said.err + said.out.split("; ")[0], (folder / "out.log").read_bytes()

    return ran


def test_the_same_log_is_made_added_to_and_grows(run: Run) -> None:
    random = Random(3)
    rows = ["n,ok,text"]
    for number in range(4_000):
        text = "y" * 70_000 if number == 3_000 else random.choice(["a", '"x,y"', '"a\nb"', "é", ""])
        rows.append(f"{number},{random.choice(['true', 'False', ''])},{text}")
    rows[2_000] = "n/a,maybe,z"
    data = "\n".join(rows).encode()
    made = [run(data, worth) for worth in (0, 1 << 60)]
    assert made[0] == made[1]
    assert "blocks of 131,072 bytes" in made[0][1]
    assert "1 value of n no numbers" in made[0][1]
    more = [run(data, worth, "--append", "--from-line", "3000") for worth in (0, 1 << 60)]
    assert more[0] == more[1]
    assert more[0][2] != made[0][2]


def test_where_it_ends_one_can_go_on(run: Run) -> None:
    data = b"n,text\n" + b"".join(b"%d,x\n" % number for number in range(5_000))
    bad = data.replace(b"4200,x", b"4200,x,y")
    made = [run(bad, worth) for worth in (0, 1 << 60)]
    assert made[0] == made[1]
    assert "4,200 records were imported, in.csv up to line 4,201" in made[0][1]
    run(data, 0, "--append", "--from-line", "4202")
    assert [record["n"] for record in records_of(Path("out.log"))] == list(range(5_000))


def test_numbers_are_those_that_json_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_input, "SAMPLE", 1)
    good = [text for text in NUMBERS if text.lstrip("-")[0].isdigit() and "e400" not in text]
    path = tmp_path / "x.csv"
    path.write_text("n\n" + "\n".join(good))
    assert check(path, RowOptions("csv", ","))
    values, _, _, _ = taken(path, RowOptions("csv", ","), 1, by_kernel=True)
    read = [json.loads(text) for text in good]
    fits = [value for value in read if (-(2**63) <= value < 2**64 if isinstance(value, int) else math.isfinite(value))]
    assert [value["n"] for _, value in values if not isinstance(value["n"], str)] == fits
