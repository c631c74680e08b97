"""The numbers of a dictionary's values that are kept beside it: taken over by the next process, and made anew without a
word where they are not what they should be.
"""

from __future__ import annotations

import errno
import json
import os
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_helpers import manager_of
from index_cases import spans_of
from test_catalog import Failing
from thoroughness import tries

import jitdb
from jitdb import JITDB
from jitdb.common.zlib import crc32
from jitdb.engine.answering import coded_column
from jitdb.engine.answering.coded_column import CodedColumn
from jitdb.indexes.files.folder import take_locks
from jitdb.indexes.segment import HEAD_SIZE
from jitdb.indexes.vocabulary import Vocabulary
from jitdb.log.io import osfile
from jitdb.operators import field

SPAN = 256
FEW = 20  # values, from which numbers are kept


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(coded_column, "WORTH_KEEPING", FEW)
    with spans_of(SPAN):
        yield


def record(number: int) -> dict[str, Any]:
    """A value that is in most segments, of any kind, and some that come later only."""
    values: list[Any] = [f"u{number * 7 % 13}", number % 11, [number % 5, "x"], None, f"later {number // 300}", 0.5]
    return {"n": number, "v": values[number % 6]} if number % 17 else {"n": number}


def key_of(value: Any) -> str:
    return json.dumps(value)


def written(path: Path, count: int) -> Path:
    path.write_text("".join(json.dumps(record(number)) + "\n" for number in range(count)))
    return path


def oracle(count: int, begin: int = 0) -> dict[str, int]:
    records = (record(number) for number in range(begin, count))
    return dict(Counter(key_of(each["v"]) for each in records if "v" in each))


def asked(path: Path, count: int) -> None:
    """Each answer that takes numbers, against the oracle, by a new process; no warning is given."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with jitdb.open(path, progress=False) as db:
            assert {key_of(row.value): row.count for row in db.value_counts("v")} == oracle(count)
            late = db.value_counts("v", field("n") >= 200)
            assert {key_of(row.value): row.count for row in late} == oracle(count, 200)
            most = max(oracle(count).values())
            assert db.value_counts("v", limit=1).rows[0].count == most
            sums = {key_of(row.value): row.stats.sum for row in db.stats_by("n", "v")}
            wanted: Counter[str] = Counter()
            for number in range(count):
                if "v" in record(number):
                    wanted[key_of(record(number)["v"])] += number
            assert sums == wanted
            assert db.count_distinct("v").rows[0].distinct == len(oracle(count))


def file_of(path: Path) -> Path:
    (found,) = (path.parent / ".jitdb").glob("*/indexes/*.codes")
    return found


def numbering(path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many values a process numbers that asks for them."""
    count, real = 0, Vocabulary.number

    def counted(self: Vocabulary, keys: Any) -> Any:
        nonlocal count
        count += len(keys.ends)
        return real(self, keys)

    with monkeypatch.context() as patch, jitdb.open(path, progress=False) as db:
        patch.setattr(Vocabulary, "number", counted)
        db.value_counts("v")
    return count


def grown(path: Path, *counts: int) -> Path:
    for count in counts:
        asked(written(path, count), count)
    return path


def test_a_process_numbers_what_came_since(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = grown(tmp_path / "a.ndjson", 1000)
    assert numbering(path, monkeypatch) == 0
    written(path, 1005)
    assert 0 < numbering(path, monkeypatch) <= 5
    before = file_of(path).read_bytes()
    assert 0 < numbering(path, monkeypatch) <= 5  # too few to be written
    assert file_of(path).read_bytes() == before
    grown(path, 1400)
    assert numbering(path, monkeypatch) == 0
    assert file_of(path).read_bytes() != before


def test_a_log_that_grows(tmp_path: Path) -> None:
    path = grown(tmp_path / "a.ndjson", 3, 40, 41, 260, 300, 700, 1100)
    (tmp_path / "b").mkdir()
    again = grown(tmp_path / "b" / "a.ndjson", 1100)
    with jitdb.open(path, progress=False) as one, jitdb.open(again, progress=False) as other:
        columns = [column_of(db) for db in (one, other)]
        assert [columns[0].key(code) for code in range(len(columns[0]))] == [
            columns[1].key(code) for code in range(len(columns[1]))
        ]


def column_of(db: JITDB) -> CodedColumn:
    db.value_counts("v")
    manager = manager_of(db)
    (index,) = (index for index in manager.opened() if index.spec.form == "dictionary")
    return manager.coded.get(index)


def test_one_process_beside_others(tmp_path: Path) -> None:
    """Two that grow with the log, and ask in turns, write the same file."""
    path = written(tmp_path / "a.ndjson", 300)
    with jitdb.open(path, progress=False) as one, jitdb.open(path, progress=False) as other:
        for count in (300, 500, 501, 777, 1300, 1700):
            written(path, count)
            for db in (one, other):
                db.refresh()
                assert {key_of(row.value): row.count for row in db.value_counts("v")} == oracle(count)
    asked(path, 1700)


def test_who_does_not_get_the_lock_keeps_them_in_memory(tmp_path: Path) -> None:
    path = grown(tmp_path / "a.ndjson", 600)
    file = file_of(path)
    file.unlink()
    held = take_locks(osfile.fs, file.parent, [file.name])
    assert held is not None
    with held:
        asked(path, 600)
        assert not file.exists()
    asked(path, 600)
    assert file.exists()


def test_values_that_hardly_repeat_are_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text("".join(json.dumps({"v": f"{number}"}) + "\n" for number in range(1000)))
    with jitdb.open(path, progress=False) as db:
        assert len(db.value_counts("v")) == 1000
    assert not list(tmp_path.rglob("*.codes"))


def test_it_goes_with_its_index(tmp_path: Path) -> None:
    path = grown(tmp_path / "a.ndjson", 600)
    file = file_of(path)
    with jitdb.open(path, progress=False) as db:
        (row,) = (row for row in db.indexes().rows if row.form == "dictionary")
        assert row.bytes == file.stat().st_size + file.with_suffix(".index").stat().st_size
        db.drop_index("v")
    assert not file.exists()
    asked(path, 600)


def test_deletions_and_compaction(tmp_path: Path) -> None:
    with jitdb.Log(tmp_path / "log", codec="msgpack", block_size=1024) as log:
        offsets = log.append_many([record(number) for number in range(900)])
        log.flush()
        left = list(range(900))
        db = JITDB(log)
        for step in range(3):
            for each in (db, JITDB(log)):
                found = {key_of(row.value): row.count for row in each.value_counts("v")}
                assert found == Counter(key_of(record(at)["v"]) for at in left if "v" in record(at))
            if step == 0:
                for at in range(0, 900, 7):
                    log.delete(int(offsets[at]))
                log.flush()
                left = [at for at in left if at % 7]
            elif step == 1:
                db.compact()
        assert list((tmp_path / "log.jitdb").rglob("*.codes"))


def test_a_folder_that_is_gone_stays_so(tmp_path: Path) -> None:
    """It goes along with a file that another program renames; then nothing is written to its old place."""
    path = grown(tmp_path / "a.ndjson", 600)
    with jitdb.open(path, progress=False) as db:
        manager = manager_of(db)
        index = manager.catalog.get(specs(db)[0])
        index.merge()
        folder = file_of(path).parent
        folder.rename(tmp_path / "elsewhere")
        assert len(manager.coded.get(index)) == len(oracle(600)) + 1
        assert not folder.exists()


# --- faults ----------------------------------------------------------------------------------------------------------


def damaged(path: Path, count: int, spoil: Callable[[bytes], bytes]) -> None:
    """It answers right with the file spoilt, and the one after it finds a sound file."""
    file = file_of(path)
    file.write_bytes(spoil(file.read_bytes()))
    asked(path, count)
    asked(path, count)


def test_every_length(tmp_path: Path) -> None:
    path = grown(tmp_path / "a.ndjson", 1000)
    whole = file_of(path).read_bytes()
    for length in sorted({0, 1, 7, 12, len(whole) - 1, *range(0, len(whole), max(1, len(whole) // tries(25, 400)))}):
        file_of(path).write_bytes(whole[:length])
        asked(path, 1000)


@pytest.mark.parametrize("seed", range(tries(4, 40)))
def test_flipped_bytes(tmp_path: Path, seed: int) -> None:
    path = grown(tmp_path / "a.ndjson", 1000)
    chance = random.Random(seed)

    def flipped(data: bytes) -> bytes:
        at = chance.randrange(len(data))
        return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]

    for _ in range(6):
        damaged(path, 1000, flipped)


def test_zeros_and_what_is_no_file(tmp_path: Path) -> None:
    path = grown(tmp_path / "a.ndjson", 1000)
    damaged(path, 1000, lambda data: data[:-200] + bytes(200))
    damaged(path, 1000, lambda data: data + bytes(500))
    damaged(path, 1000, lambda data: bytes(len(data)))
    file = file_of(path)
    file.unlink()
    file.mkdir()
    asked(path, 1000)


def test_files_of_other_moments_and_other_logs(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    kept = []
    for count in (600, 800, 1000):
        grown(path, count)
        kept.append(file_of(path).read_bytes())
    for each in kept:
        damaged(path, 1000, lambda _, each=each: each)  # type: ignore[misc]
    (tmp_path / "b").mkdir()
    other = grown(tmp_path / "b" / "a.ndjson", 1000)
    damaged(path, 1000, lambda _: file_of(other).read_bytes())
    path.unlink()  # and of the text that was in the file before
    path.write_text("".join(json.dumps(record(number + 5)) + "\n" for number in range(900)))
    with jitdb.open(path, progress=False) as db:
        found = {key_of(row.value): row.count for row in db.value_counts("v")}
    assert found == dict(Counter(key_of(record(at + 5)["v"]) for at in range(900) if "v" in record(at + 5)))


@pytest.mark.parametrize("blob", range(4))
def test_bytes_that_no_jitdb_writes(tmp_path: Path, blob: int) -> None:
    """With right checksums a forged file can make numbers wrong, but no place outside is looked at."""
    path = grown(tmp_path / "a.ndjson", 1000)
    whole = file_of(path).read_bytes()
    for byte in (0, 1, 0x7F, 0xFF):
        file_of(path).write_bytes(with_blob(whole, blob, byte))
        with jitdb.open(path, progress=False) as db:
            assert db.value_counts("v").total == 1000
            db.stats_by("n", "v")


def with_blob(whole: bytes, number: int, byte: int) -> bytes:
    """The file with this blob of its first segment all of that byte, and all checksums right."""
    start = 12 + int.from_bytes(whole[8:12], "little") + 4
    head = bytearray(whole[start : start + HEAD_SIZE])
    blobs, meta_size = np.frombuffer(head[40:48], "<u4").tolist()
    at = start + HEAD_SIZE + meta_size
    rows = np.frombuffer(whole[at : at + 12 * blobs], [("length", "<u8"), ("crc", "<u4")]).copy()
    begin = at + 12 * blobs + int(rows["length"][:number].sum())
    made = bytes([byte]) * int(rows["length"][number])
    rows["crc"][number] = crc32(made)
    head[56:60] = crc32(rows.tobytes(), crc32(whole[start + HEAD_SIZE : at])).to_bytes(4, "little")
    head[60:64] = crc32(bytes(head[:60])).to_bytes(4, "little")
    before = whole[:start] + bytes(head) + whole[start + HEAD_SIZE : at] + rows.tobytes()
    return before + whole[len(before) : begin] + made + whole[begin + len(made) :]


@pytest.mark.parametrize("name", ["open", "pwrite", "rename", "truncate", "fstat", "stat"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
def test_a_call_that_fails(tmp_path: Path, name: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is written, the whole way: the answer is right, and the next process writes it."""
    path = grown(tmp_path / "a.ndjson", 600)
    file_of(path).unlink()
    for calls in range(12):
        with jitdb.open(path, progress=False) as db:
            manager = manager_of(db)
            db.count(field("n") >= 0)
            (index,) = (index for index in [manager.catalog.get(spec) for spec in specs(db)])
            with monkeypatch.context() as patch:
                patch.setattr(osfile, "fs", Failing(name, code, calls))
                column = manager.coded.get(index)
            assert len(column) == len(oracle(600)) + 1
        assert not [each for each in os.listdir(index.path.parent) if each.endswith(".tmp")]  # type: ignore[union-attr]
        asked(path, 600)
        file_of(path).unlink()


def specs(db: JITDB) -> list[Any]:
    return [spec for spec in manager_of(db).index_names().values() if spec is not None and spec.form == "dictionary"]
