"""Folders of many small files: the indexes of bundles tell which of them hold no answer, and these are not opened."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

import jitdb
from jitdb.operators import seqs
from jitdb.operators.text.expression import parse_expression

pytest.importorskip("pyspark")

from jitdb.logset.member import find_members
from jitdb.spark_ext import explain_log
from jitdb.spark_ext.data_source import JitdbDataSource
from jitdb.spark_ext.options import ReadOptions, as_options
from jitdb.spark_ext.reading.bundled import without_answers

FILES = 48


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    logs = tmp_path / "logs"
    for number in range(FILES):
        path = logs / f"day={number % 3}" / f"part-{number:02}.ndjson"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps({"file": number, "n": n}) + "\n" for n in range(50)))
        os.utime(path, (1, 1))
    time.sleep(0.1)  # until a change of them would show: files that change just now go into no bundle
    return logs


def asked(folder: Path, *questions: str, indexes: Any = None) -> None:
    """What a person asked before."""
    with jitdb.open_many(folder, indexes, progress=False) as logs:
        for question in questions:
            logs.query(question).count()


def skipped(folder: Path, where: Any, **options: str) -> set[int]:
    """The numbers of the files that are skipped."""
    question = parse_expression(where) if isinstance(where, str) else where
    given = ReadOptions.of({**as_options(None, ["n"], question, options), "path": str(folder)})
    paths = without_answers(find_members(folder), given)
    return {int(Path(path).stem.removeprefix("part-")) for path in paths}


def rows(folder: Path, where: str, **options: str) -> list[tuple[int, int]]:
    source = JitdbDataSource(options={**as_options(None, ["file", "n"], where, options), "path": str(folder)})
    reader = source.reader(source.schema())
    found = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    return sorted((row["file"], row["n"]) for row in found)


def test_files_without_answers_are_not_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert skipped(folder, "file == 7") == set()  # nobody asked yet
    asked(folder, "file == 7")
    assert skipped(folder, "file == 7") == set(range(FILES)) - {7}
    assert skipped(folder, "file == 999") == set(range(FILES))
    assert skipped(folder, "file == 7 and day == 1") == {n for n in range(FILES) if n % 3 == 1} - {7}
    assert skipped(folder, "file == 7 and n > 3") == set()  # of n there is no index
    assert skipped(folder, seqs([1])) == set()  # which are those of each file
    assert skipped(folder, "file == 7", indexes="none") == set()
    plan = explain_log(folder, ["n"], "file == 7")
    assert (plan.blocks, plan.blocks_read, plan.tasks) == (FILES, 1, 1)
    plan = explain_log(folder, ["n"], "file == 999")
    assert (plan.blocks, plan.blocks_read, plan.tasks, plan.matches) == (FILES, 0, 0, 0)
    assert rows(folder, "file == 7") == [(7, n) for n in range(50)]
    assert rows(folder, "file == 999") == []


def test_files_that_changed_since_are_read(folder: Path) -> None:
    asked(folder, "file == 7")
    grown, edited, new = (folder / "day=0" / f"part-{number:02}.ndjson" for number in (0, 3, 90))
    with grown.open("a") as file:
        file.write('{"file": 7, "n": 50}\n')
    edited.write_text(edited.read_text().replace('"file": 3', '"file": 7'))
    os.utime(edited, (1, 1))
    new.write_text('{"file": 7, "n": 51}\n')
    assert skipped(folder, "file == 7") == set(range(FILES)) - {0, 3, 7}
    assert rows(folder, "file == 7") == sorted([(7, n) for n in range(50)] * 2 + [(7, 50), (7, 51)])


def test_indexes_in_a_folder_of_their_own(folder: Path, tmp_path: Path) -> None:
    asked(folder, "file == 7", indexes=tmp_path / "indexes")
    assert skipped(folder, "file == 7") == set()
    given = {"indexFolder": str(tmp_path / "indexes")}
    assert skipped(folder, "file == 7", **given) == set(range(FILES)) - {7}
    assert rows(folder, "file == 7", **given) == [(7, n) for n in range(50)]


def test_small_files_share_tasks(folder: Path) -> None:
    size = sum(each.size for each in find_members(folder))
    assert explain_log(folder, ["n"]).tasks == 1
    assert 4 <= explain_log(folder, ["n"], partition_bytes=size // 4).tasks <= 6
