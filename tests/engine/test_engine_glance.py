"""Counts without numpy: a number only where the engine would say the same, and nothing where it is not certain."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from engine_helpers import oracle_of
from index_cases import spans_of
from test_random_changes_beneath import QUESTIONS, Attack
from thoroughness import tries

import jitdb
from jitdb import JITDB, Log
from jitdb.engine.face.glance import count_at_a_glance
from jitdb.indexes.segment import SPAN
from jitdb.log.blocks.block_format import walk_block
from jitdb.operators import Operation, absent, and_, between, equal, everything, gt, lte, not_, or_

pytestmark = pytest.mark.slow

BLOCK: Final = 256
QUESTION: Final = equal("kind", "a")


def record(number: int) -> dict[str, Any]:
    return {"kind": "ab"[number % 3 % 2], "n": number}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log of 30 records in four blocks, 20 of which match; its indexes are fresh."""
    path = tmp_path / "x.log"
    with Log(path, block_size=BLOCK) as log:
        log.append_many([record(number) for number in range(30)])
    assert asked(path) == 20
    return path


def folder_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.jitdb") / "indexes"


def glimpsed(path: Path, question: Operation | None = QUESTION) -> int | None:
    with Log(path, read_only=True) as log:
        return count_at_a_glance(log, log.sidecar / "indexes", question)


def asked(path: Path, question: Operation | None = QUESTION) -> int:
    """What the engine says, which is what stands in the file. It leaves fresh indexes."""
    with warnings.catch_warnings(), Log(path, read_only=True) as log:
        warnings.simplefilter("ignore")
        found = JITDB(log).count(question)
        if question is not None:
            assert found == len(oracle_of(log).matches(question))
        return found


def offsets(path: Path) -> list[int]:
    with Log(path, read_only=True) as log:
        return [each.offset for each in log.stream()]


def test_fresh_indexes_answer(path: Path) -> None:
    assert glimpsed(path) == 20
    assert glimpsed(path, equal("kind", "b")) == 10
    assert glimpsed(path, equal("kind", "no such value")) == 0
    assert glimpsed(path, None) == 30


@pytest.mark.parametrize("question", [QUESTION & gt(3, "n"), gt(3, "n"), between("n", 4, 9.5), ~lte(3, "n")])
def test_ranges_of_few_numbers(path: Path, question: Operation) -> None:
    assert glimpsed(path, question) is None
    assert asked(path, question) == glimpsed(path, question) > 0


@pytest.mark.parametrize("question", [QUESTION & equal("n", 3, prefix=32), equal("n", 3, prefix=32)])
def test_other_questions_are_for_the_engine(path: Path, question: Operation) -> None:
    assert asked(path, question) > 0
    assert glimpsed(path, question) is None


FIELDS: Final = ("kind", "n", "u.v", "no field", "w[].x")
VALUES: Final = ("a", "b", 0, 1, None, True)


def formula(random: Random, depth: int) -> Operation:
    if depth == 0:
        path = random.choice(FIELDS)
        if random.random() < 0.3:
            return random.choice((gt, lte))(random.choice((-1, 0, 0.5, 1)), path)
        return absent(path) if random.random() < 0.2 else equal(path, random.choice(VALUES))
    parts = [formula(random, depth - 1) for _ in range(random.randrange(1, 4))]
    kind = random.randrange(4)
    return not_(parts[0]) if kind == 0 else everything() if kind == 1 else (and_ if kind == 2 else or_)(*parts)


@pytest.mark.parametrize("seed", range(tries(10, 100)))
def test_combined_questions(tmp_path: Path, seed: int) -> None:
    """Also of a file of lines, some of which are no records."""
    random = Random(seed)
    records = [
        {key: value for key, value in {"kind": random.choice("ab"), "n": random.choice((0, 1, 1.0, None, True)),
         "u": {"v": random.choice("ab")}, "w": [{"x": random.choice("ab")} for _ in range(random.randrange(3))]}.items()
         if random.random() < 0.8} for _ in range(60)
    ]  # fmt: skip
    path, lines = tmp_path / "x.log", tmp_path / "x.ndjson"
    with Log(path, block_size=BLOCK) as log:
        log.append_many(records)
    lines.write_text("".join(json.dumps(each) + random.choice(["\n", "\n", "\nnonsense\n\n"]) for each in records))
    for _ in range(10):
        question = formula(random, random.randrange(3))
        with jitdb.open(path) as db:
            db.prepare(question)  # who asks for a field that no record has, leaves no file
        expected = asked(path, question)
        paths = [found for leaf in question.leaves() for found in leaf.paths]
        has_nothing, is_nested = ("no field",) in paths, any(len(found) > 1 for found in paths)
        found = glimpsed(path, question)
        # The engine tells that no record has a field, or the value that is denied, and where some lack a nested one.
        # Or that a range leaves out what is no number, or that `True` is 1 in other records.
        is_odd = any(leaf.compared or getattr(leaf, "value", None) == 1 for leaf in question.leaves())
        may_be_none = has_nothing or is_nested or is_odd or any(True for _ in question.denied_leaves())
        assert found == (None if has_nothing else expected) or (may_be_none and found is None)
        with warnings.catch_warnings(), jitdb.open(lines) as db:
            warnings.simplefilter("ignore")
            assert db.count(question) == expected
            assert count_at_a_glance(db.log, db.log.sidecar / "indexes", question) in (expected, None)


def test_a_field_of_many_values_is_for_the_engine(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    with Log(path) as log:
        log.append_many([record(number) for number in range(6000)])
    assert asked(path, equal("n", 3)) == 1
    assert glimpsed(path, equal("n", 3)) is None
    assert asked(path) == glimpsed(path) == 4000


def test_a_field_that_nobody_asked_for(path: Path) -> None:
    assert glimpsed(path, equal("n", 3)) is None


def grow(path: Path) -> None:
    with Log(path) as log:
        log.append({"kind": "a"})


def delete(path: Path) -> None:
    with Log(path) as log:
        log.delete(next(iter(log.stream())).offset)


def compact(path: Path) -> None:
    with Log(path) as log:
        log.compact()


def delete_and_compact(path: Path) -> None:
    delete(path)
    compact(path)


def change_a_value(path: Path) -> None:
    """By a program that knows nothing of us."""
    data = bytearray(path.read_bytes())
    data[data.index(b"\xa4kind\xa1a") + 6] = ord("b")
    path.write_bytes(data)
    os.utime(path, ns=(0, 1_900_000_000_000_000_000))


def zero_a_record(path: Path) -> None:
    data = bytearray(path.read_bytes())
    walk = walk_block(bytes(data[:BLOCK]), BLOCK, BLOCK)
    begin = walk.positions[1] + 2
    data[begin : begin + walk.lengths[1]] = bytes(walk.lengths[1])
    path.write_bytes(data)
    os.utime(path, ns=(0, 1_900_000_000_000_000_000))


def append_without_us(path: Path) -> None:
    """With a sidecar of its own, as another program that keeps none."""
    apart = path.with_name("apart.log")
    shutil.copy2(path, apart)
    with Log(apart, codec="msgpack", block_size=BLOCK) as log:
        log.append({"kind": "a"})
    path.write_bytes(apart.read_bytes())
    os.utime(path, ns=(0, 1_900_000_000_000_000_000))


def replace_the_log(path: Path) -> None:
    apart = path.with_name("apart.log")
    with Log(apart, codec="msgpack", block_size=BLOCK) as log:
        log.append_many([{"kind": "b", "x": number} for number in range(40)])
    path.write_bytes(apart.read_bytes())


def lose_the_sidecar(path: Path) -> None:
    for name in ("meta", "commit", "checksums"):
        (folder_of(path).parent / name).unlink(missing_ok=True)


CHANGES: Final = (
    grow, delete, delete_and_compact, change_a_value, zero_a_record, append_without_us, replace_the_log,
    lose_the_sidecar,
)  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.filterwarnings("ignore::jitdb.errors.JitdbWarning")
def test_what_changed_the_log_is_for_the_engine(path: Path, change: Callable[[Path], None]) -> None:
    change(path)
    assert glimpsed(path) is None
    found = asked(path)
    assert glimpsed(path) in (None, found)


@pytest.mark.parametrize("change", [grow, delete_and_compact])
def test_indexes_that_follow_answer_again(path: Path, change: Callable[[Path], None]) -> None:
    change(path)
    assert glimpsed(path) is None
    found = asked(path)
    assert glimpsed(path) == found


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.filterwarnings("ignore::jitdb.errors.JitdbWarning")
@pytest.mark.parametrize("what", ["log", "sidecar", "indexes"])
def test_a_part_is_of_an_earlier_moment(path: Path, change: Callable[[Path], None], what: str) -> None:
    """Of the log, its sidecar or its indexes, one is put back after a change and a question."""
    place = {"log": path, "sidecar": folder_of(path).parent, "indexes": folder_of(path)}[what]
    kept = path.with_name("kept")
    (shutil.copy2 if what == "log" else shutil.copytree)(place, kept)
    change(path)
    asked(path)
    if what == "log":
        shutil.copy2(kept, path)
    else:
        shutil.rmtree(place)
        shutil.copytree(kept, place)
    for _ in range(2):
        found = glimpsed(path)
        assert found in (None, asked(path))


def test_indexes_of_another_log_and_of_a_copy(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.log"
    with Log(other, block_size=BLOCK) as log:
        log.append_many([record(number + 1) for number in range(30)])
    asked(other)
    copy = tmp_path / "copy.log"
    shutil.copy2(path, copy)
    shutil.copytree(folder_of(path).parent, folder_of(copy).parent)
    for each, value in ((path, "a"), (copy, "b")):
        with Log(each) as log:
            log.append({"kind": value, "n": 7})
        asked(each)
    for source in (other, copy):
        shutil.rmtree(folder_of(path))
        shutil.copytree(folder_of(source), folder_of(path))
        assert glimpsed(path) is None
        assert glimpsed(path) in (None, asked(path))


def test_indexes_of_another_log_of_the_same_records(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.log"
    with Log(other, block_size=BLOCK) as log:
        log.append_many([record(number) for number in range(30)])
    asked(other)
    shutil.rmtree(folder_of(path))
    shutil.copytree(folder_of(other), folder_of(path))
    assert glimpsed(path) is None


@pytest.mark.filterwarnings("ignore::jitdb.errors.JitdbWarning")
def test_records_that_another_program_made_zero(path: Path) -> None:
    zero_a_record(path)
    assert asked(path, None) == 29
    assert glimpsed(path, None) is None


@pytest.mark.parametrize("span", [SPAN, 31])
def test_indexes_that_know_of_more_deletions_than_there_are(path: Path, span: int) -> None:
    """The log and its journals are put back; the indexes have taken note of a deletion since.

    Those of a whole span do not say of which deletions they know, but that of deleted records does.
    """
    with spans_of(span):
        grow(path)
        kept = path.with_name("kept")
        shutil.copytree(folder_of(path).parent, kept, ignore=shutil.ignore_patterns("indexes"))
        shutil.copy2(path, kept / "x.log")
        delete(path)
        asked(path)
        shutil.copy2(kept / "x.log", path)
        for name in ("meta", "commit", "checksums", "deletions"):
            (folder_of(path).parent / name).unlink(missing_ok=True)
            if (kept / name).exists():
                shutil.copy2(kept / name, folder_of(path).parent / name)
        assert glimpsed(path) is None
        assert asked(path) == 21


def test_an_index_of_deleted_records_that_is_misnamed(path: Path) -> None:
    (found,) = folder_of(path).glob("deleted*")
    other = found.with_name("deleted.deleted-000000000000.index")
    shutil.copy2(found, other)
    assert glimpsed(path) == 20
    found.unlink()
    assert glimpsed(path) is None


def test_every_byte_of_the_indexes(path: Path) -> None:
    """Flipped, and the file cut off there: what is read has a checksum, and where it does not hold nothing is said."""
    files = [each for each in folder_of(path).iterdir() if not each.name.startswith(("timestamp", "value_", "lock"))]
    assert len(files) == 3
    refused = 0
    for file in files:
        data = file.read_bytes()
        for at in range(0, len(data), tries(3, 1)):
            file.write_bytes(data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :])
            found = glimpsed(path)
            file.write_bytes(data[:at])
            assert found in (None, 20)
            assert glimpsed(path) is None
            refused += found is None
        file.unlink()
        assert glimpsed(path) is None
        file.write_bytes(data)
    assert refused > 300 // tries(3, 1)
    assert glimpsed(path) == 20


def test_beside_a_writer(path: Path) -> None:
    with Log(path) as log:
        assert glimpsed(path) == 20
        log.append({"kind": "a"})
        log.flush()
        assert glimpsed(path) is None
        assert asked(path) == glimpsed(path) == 21
        log.delete(offsets(path)[0])
        log.flush()
        assert glimpsed(path) is None
        assert asked(path) == 20


def test_a_log_that_is_compacted_after_it_was_opened(path: Path) -> None:
    with Log(path, read_only=True) as log:
        delete_and_compact(path)
        assert count_at_a_glance(log, log.sidecar / "indexes", QUESTION) is None


def test_a_log_that_was_compacted_and_ends_as_before(path: Path) -> None:
    """One record fewer, and one more: the indexes of before fit in all but their generation."""
    with Log(path) as log:
        gone, last = next(each.offset for each in log.stream() if each.value["kind"] == "b"), log.get(log.since)
        log.delete(gone)
        log.compact()
        log.append(last)
    assert glimpsed(path) is None
    assert asked(path) == 21
    assert glimpsed(path) == 21


def test_a_block_listed_as_damaged(path: Path) -> None:
    """Found by who read a record of it, when all was indexed."""
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    stamp = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    with warnings.catch_warnings(), Log(path, read_only=True) as log:
        warnings.simplefilter("ignore")
        assert len(JITDB(log).all(QUESTION)) < 20
    assert glimpsed(path) is None


def test_an_index_of_when_a_block_was_damaged(path: Path) -> None:
    """It reaches as far as the others, which were built when the block was whole again, and counted fewer records."""
    stamp, data, second = path.stat(), path.read_bytes(), offsets(path)[1]
    apart = path.with_name("apart")
    for content, folder in ((data[: second + 1] + b"\xff" + data[second + 2 :], folder_of(path)), (data, apart)):
        path.write_bytes(content)
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        shutil.rmtree(folder, ignore_errors=True)
        with warnings.catch_warnings(), Log(path, read_only=True) as log:
            warnings.simplefilter("ignore")
            found = JITDB(log, folder).count(QUESTION)
    assert found == 20
    for name in ("offsets", "deleted"):
        (whole,) = apart.glob(f"*{name}-*")
        shutil.copy2(whole, folder_of(path))
    assert glimpsed(path, None) == 30
    assert glimpsed(path) is None
    assert asked(path) == 20


class Glimpsing(Attack):
    """The same attacks, and whoever reads counts at a glance before."""

    def read(self) -> None:
        with Log(self.path, read_only=True) as log:
            for question in QUESTIONS:
                found = count_at_a_glance(log, self.kept, question)
                assert found is None or found == len(oracle_of(log).matches(question)), question
        super().read()


@pytest.mark.parametrize("seed", range(100, 100 + tries(12, 300)))
def test_whatever_happens_beneath(tmp_path: Path, seed: int) -> None:
    attack = Glimpsing(tmp_path, seed)
    try:
        attack.run(8)
    except AssertionError as error:
        raise AssertionError("\n".join([*attack.told, str(error)])) from error
