"""What commands answer at a glance, without numpy, is byte for byte what the engine says: answers, and notes.

Each question is asked twice of the same files: with the short way, and without.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from cli_helpers import make_log, said
from thoroughness import tries

from jitdb.cli.commands import find_command
from jitdb.common.kernel_library import Signature, symbol
from jitdb.common.zlib import crc32
from jitdb.indexes.kinds import columns
from jitdb.indexes.kinds.kernels.dictionary import count_codes, select_codes
from jitdb.indexes.segment import HEAD, HEAD_SIZE, MAGIC

_DAY: Final = 86_400_000
_BEGIN: Final = 1_790_000_000_000  # milliseconds
QUESTIONS: Final = (
    ("values", "few"), ("values", "many"), ("values", "mixed", "--format", "csv"), ("values", "map"),
    ("values", "deep.er", "--limit", "2"), ("values", "none"),
    ("stats", "whole"), ("stats", "cents"), ("stats", "mixed"), ("stats", "spelled"), ("stats", "none"),
    ("stats", "real"), ("stats", "same"), ("stats", "large", "--format", "json"), ("stats", "few"),
    ("stats", "cents", "--quantiles", "0,0.1,0.333,1e-05,1", "--format", "json"),
    ("timeline",), ("timeline", "--every", "1h", "--per", "1m"), ("timeline", "--every", "1mo", "--format", "json"),
    ("timeline", "--every", "1w", "--format", "csv"), ("timeline", "--every", "10us"), ("timeline", "--every", "1q"),
    ("query", "--limit", "5", "--descending"), ("query", "--limit", "15"), ("query", "--limit", "16"),
    ("query", 'few == "b"', "--limit", "7", "--descending"), ("query", 'few == "a" or same == 7', "--limit", "9"),
    ("query", 'few == "missing"', "--limit", "3"), ("query", "not few is absent", "--limit", "4", "--descending"),
    ("query", 'few == "b"', "--limit", "2", "--skip", "1"), ("query", 'few == "b"', "--limit", "2", "--fields", "few"),
    ("query", 'few == "ä"', "--limit", "2"), ("query", 'deep.er == "x"', "--limit", "2"),
    ("query", 'level == "info"', "--limit", "2"), ("count", 'few == "b"'), ("count", 'few == "ä"'), ("count",),
    ("count", 'level >= "info"'), ("count", 'lvl >= "warn"'), ("count", 'not lvl < "error"'), ("count", "whole > 100"),
    ("count", "cents <= 12.5 and cents > 3"), ("count", "between(whole, -100, 100.5)"), ("count", "not cents > 50.05"),
    ("count", "mixed > 1"), ("count", "spelled >= 8"), ("count", "real > 5e8"), ("count", "same >= 7"),
    ("count", "same > 7"), ("count", "large > 2"), ("count", "none > 2"), ("count", 'whole > 5 and lvl >= "warn"'),
    ("count", "few > 2"), ("count", "level > 3"), ("count", "some > 0.5"), ("count", "--since", "2026-10-01"),
    ("count", "--since", "2026-09-25T10:00", "--until", "2026-11-20"), ("count", 'few == "b"', "--until", "2026-10-09"),
    ("count", "--since", "1999-01-01"), ("count", "--since", "2099-01-01"), ("count", "--since", "2026-11-07"),
    ("query", 'lvl >= "warn"', "--limit", "3"), ("query", "whole > 0", "--limit", "3", "--descending"),
    ("query", "--since", "2026-10-01", "--limit", "3"), ("query", "--until", "2026-11-20", "--limit", "3"),
)  # fmt: skip


def time_of(random: Random, kind: str, number: int) -> Any:
    at = _BEGIN + number * 600_000 + random.randrange(900_000)
    if kind == "shuffled":
        at = _BEGIN + random.randrange(90 * _DAY)
    if kind == "rests":
        return f"2026-11-{1 + number % 28:02}T10:00:00.{random.randrange(10**9):09}Z"
    if kind in ("gaps", "odd") and random.random() < 0.2:
        return random.choice((None, "soon", 3)) if kind == "odd" else None
    return at


def record(random: Random, times: str, number: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "timestamp": time_of(random, times, number), "few": random.choice("abbä"), "many": f"v{number % 5000}",
        "mixed": random.choice((1, 1.0, 2.5, "x", None, True)), "map": random.choice(({"a": 1}, 3)),
        "deep": {"er": random.choice("xyz")}, "whole": random.randrange(-300, 900),
        "cents": random.randrange(10_000) / 100, "spelled": random.choice((7, "8")), "real": random.random() * 1e9,
        "same": 7, "large": random.randrange(2**62, 2**63) if number % 3 else -1, "level": random.choice(("info", "e")),
        "lvl": random.choice(("debug", "INFO", "Warn", "error")), "some": random.choice((0, 1, 2.5)),
    }  # fmt: skip
    return {key: value for key, value in found.items() if key in ("same", "timestamp") or random.random() < 0.95}


class Log:
    """A file of lines, and what is kept of it, which can be put back."""

    def __init__(self, folder: Path, seed: int, times: str, count: int) -> None:
        self.path = folder / "events.ndjson"
        self._random, self._times, self._count = Random(seed), times, 0
        self.grow(count)

    def grow(self, count: int = 3) -> None:
        with open(self.path, "a") as file:
            for number in range(self._count, self._count + count):
                file.write(json.dumps(record(self._random, self._times, number)) + "\n")
        self._count += count
        os.utime(self.path, (1_700_000_000 + self._count, 1_700_000_000 + self._count))

    def replace(self) -> None:
        """By a file of other records, with as many bytes or more."""
        self.path.write_text(self.path.read_text().replace('"b"', '"c"'))

    @property
    def kept(self) -> Path:
        return self.path.parent / ".jitdb"

    def files(self) -> list[Path]:
        return sorted(self.kept.rglob("*.index"))


@pytest.fixture
def glanced(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The questions that were answered at a glance."""
    found: list[str] = []

    def noting(look: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any) -> Any:
            answer = look(*arguments)
            if answer is not None:
                found.append(arguments[2].command)
            return answer

        return noted

    for name in ("count", "values", "stats", "timeline", "query"):
        command = find_command(name)
        assert command.look is not None
        monkeypatch.setattr(command, "look", noting(command.look))
    return found


def asked(capsys: pytest.CaptureFixture[str], question: tuple[str, ...]) -> tuple[int, str, str]:
    name, *rest = question
    return said(capsys, name, "events.ndjson", *rest)


def compare(
    log: Log, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], question: tuple[str, ...]
) -> None:
    """Ask at a glance, and then, of the same files, without."""
    before = log.kept.with_name("before")
    shutil.copytree(log.kept, before)
    found = asked(capsys, question)
    shutil.rmtree(log.kept)
    before.rename(log.kept)
    with monkeypatch.context() as patch:
        patch.setattr(find_command(question[0]), "look", None)
        assert found == asked(capsys, question), question


@pytest.mark.parametrize("seed", range(tries(1, 20)))
@pytest.mark.parametrize("times", ["ordered", "shuffled", "gaps", "odd", "rests"])
@pytest.mark.parametrize("count", [300, 9000])
def test_answers_and_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], glanced: list[str],
    seed: int, times: str, count: int,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    if count > 1000:  # by a kernel, as codes of many records are
        monkeypatch.setattr(columns, "_FEW", 0)
    log = Log(tmp_path, seed, times, count)
    for question in QUESTIONS:
        asked(capsys, question)
        asked(capsys, ("count", *question[1:2]) if question[0] == "query" else question)
    glanced.clear()
    for question in QUESTIONS:
        compare(log, monkeypatch, capsys, question)
    expected = {"count", "values", "stats", "timeline", "query"} - ({"timeline", "query"} if times == "odd" else set())
    assert {*glanced} >= expected
    assert len(glanced) > 8


@pytest.mark.parametrize(
    "question",
    [("count", "whole > 100"), ("count", "cents <= 12.5"), ("count", "not whole > 5", "--until", "2026-10-01"),
     ("count", "--since", "2026-10-01"), ("query", "--since", "2026-10-01", "--limit", "3")],
)  # fmt: skip
def test_ranges_are_answered_at_a_glance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], glanced: list[str],
    question: tuple[str, ...],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Log(tmp_path, 7, "ordered", 3000)
    expected = asked(capsys, question)
    asked(capsys, ("count", *question[1:3]))
    for _ in range(2):
        glanced.clear()
        assert asked(capsys, question) == expected
        assert glanced == [question[0]]


@pytest.mark.parametrize("count", [20, 40_000])
def test_levels_are_answered_at_a_glance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], glanced: list[str], count: int
) -> None:
    monkeypatch.chdir(tmp_path)
    records = [{"level": level} for level in ("info", "WARN", "error", "Fatal", "debug")] * count
    log = logs_of(tmp_path, records)[0]
    for question, right in (
        ('level >= "warn"', 3),
        ('not level > "info"', 2),
        ('level < "info" or level == "error"', 2),
    ):
        for _ in range(3):
            glanced.clear()
            assert said(capsys, "count", log, question) == (0, f"{right * count}\n", "")
        assert glanced == ["count"]
    with open(log, "a") as file:
        file.write('{"level":"odd"}\n' * 3)
    for _ in range(3):
        assert "such as 'odd' are no levels" in said(capsys, "count", log, 'level >= "warn"')[2] or count > 20


def test_the_kernel_takes_what_it_is_given() -> None:
    """Without its module nobody checks that."""
    wanted = {
        columns._COUNT: (count_codes, ("U8", "int", "int", "int", "U32", "I64")),
        columns._SELECT: (select_codes, ("U8", "int", "U8", "int", "U32", "I64")),
    }
    for name, (kernel, takes) in wanted.items():
        plain = getattr(kernel, "_function", None) or getattr(kernel, "py_func", kernel)
        assert symbol(kernel) == name
        assert Signature.of(plain) == (takes, ())


def grow(log: Log, file: Path) -> None:
    log.grow()


def replace(log: Log, file: Path) -> None:
    log.replace()


def remove(log: Log, file: Path) -> None:
    file.unlink()


def flip(log: Log, file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 16
    file.write_bytes(data)


def cut(log: Log, file: Path) -> None:
    os.truncate(file, file.stat().st_size * 2 // 3)


def make_old(log: Log, file: Path) -> None:
    """As an earlier version wrote it."""
    data = bytearray(file.read_bytes())
    at = data.index(MAGIC)
    magic, kind, version, *rest = HEAD.unpack_from(data, at)
    HEAD.pack_into(data, at, magic, kind, max(1, version - 1), *rest)
    struct.pack_into("<I", data, at + HEAD.size, crc32(bytes(data[at : at + HEAD_SIZE - 4])))
    file.write_bytes(data)


CHANGES: Final = (grow, replace, remove, flip, cut, make_old)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("times", ["ordered", "rests"])
def test_of_files_that_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], glanced: list[str],
    change: Callable[[Log, Path], None], times: str,
) -> None:  # fmt: skip
    """The log, or any one of its indexes: then the engine answers."""
    monkeypatch.chdir(tmp_path)
    log = Log(tmp_path, 7, times, 500)
    few = ("query", 'few == "b"', "--limit", "5")
    questions = [("values", "many"), ("stats", "cents"), ("timeline",), few, ("count",)]
    for question in [("count", 'few == "b"'), *questions]:
        asked(capsys, question)
    kept = log.kept.with_name("kept")
    shutil.copytree(log.kept, kept)
    for file in log.files() if change not in (grow, replace) else log.files()[:1]:
        change(log, file)
        for question in questions:
            compare(log, monkeypatch, capsys, question)
        shutil.rmtree(log.kept)
        shutil.copytree(kept, log.kept)
    assert glanced


def test_every_byte_of_the_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], glanced: list[str]
) -> None:
    """Flipped: what is read has a checksum, and where it does not hold the engine answers."""
    monkeypatch.chdir(tmp_path)
    log = Log(tmp_path, 3, "ordered", 30)
    questions = [("values", "many"), ("stats", "cents"), ("timeline",), ("query", "--limit", "5")]
    right = {question: asked(capsys, question)[1] for question in questions}
    for file in log.files():
        data = file.read_bytes()
        for at in range(0, len(data), tries(41, 3)):
            file.write_bytes(data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :])
            for question in questions:
                before = len(glanced)
                found = asked(capsys, question)
                assert found[:2] == (0, right[question]), (file, at, question)
                assert len(glanced) == before or not found[2]
                file.write_bytes(data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :])
            file.write_bytes(data)
    assert len(glanced) > 20


def note_of(log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *question: str) -> str:
    """The note of the engine, which stands where indexes are fresh, too."""
    name, *rest = question
    with monkeypatch.context() as patch:
        patch.setattr(find_command(name), "look", None)
        asked = said(capsys, name, log, *rest)
        assert said(capsys, name, log, *rest) == asked
    assert said(capsys, name, log, *rest) == asked
    return asked[2]


_RENAMED: Final = [{"level": "info"} if number % 2 else {"severity": "info"} for number in range(60)]


def logs_of(folder: Path, records: list[dict[str, Any]]) -> list[Path]:
    """The records as JSON Lines, as lines of another format, and in a log of jitdb."""
    lines, pairs, own = folder / "x.ndjson", folder / "x.log", folder / "own.log"
    lines.write_text("".join(json.dumps(record) + "\n" for record in records))
    pairs.write_text(
        "".join(" ".join(f"{key}={value}" for key, value in {**each, "n": 1}.items()) + "\n" for each in records)
    )
    for path in (lines, pairs):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return [lines, pairs, make_log(own, records)]


@pytest.mark.parametrize("question", [("count", 'level == "info"'), ("values", "level")])
def test_other_names_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], question: tuple[str, str]
) -> None:
    """Also of logs of other kinds than JSON Lines, and by each command."""
    for log in logs_of(tmp_path, _RENAMED):
        assert "`level` is called `severity` in records without it" in note_of(log, monkeypatch, capsys, *question)


def test_other_names_of_numbers_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for log in logs_of(tmp_path, [{("level", "severity")[number % 2]: number % 7} for number in range(60)]):
        assert "`level` is called `severity` in records without it" in note_of(
            log, monkeypatch, capsys, "stats", "level"
        )


_PARTLY: Final = ({"n": 1}, {"n": 2, "level": "info", "status": 200, "took": 7, "user": {"plan": "a"}})


@pytest.mark.parametrize(
    "question",
    [("count", 'level == "info"'), ("count", "status == 200"), ("count", 'user.plan == "a"'), ("values", "status"),
     ("stats", "took")],
)  # fmt: skip
def test_fields_that_some_records_lack_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], glanced: list[str],
    question: tuple[str, str],
) -> None:  # fmt: skip
    """Also once another program has touched the file, for which records are looked for anew that count as deleted."""
    for log in (logs_of(tmp_path, [*_PARTLY] * 300)[0], logs_of(tmp_path, [*_PARTLY] * 300)[2]):
        for when in (1_700_000_000, 1_700_000_009):
            os.utime(log, (when, when))
            for _ in range(3):
                glanced.clear()
                assert said(capsys, question[0], str(log), question[1])[2] == ""
            assert glanced == [question[0]]


@pytest.mark.parametrize("question", [("count", "status == 200"), ("values", "status"), ("stats", "status")])
def test_fields_that_are_renamed_late_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], question: tuple[str, str]
) -> None:
    late = [{"n": 3, "http": {"status_code": 200}}] * 3
    for log in logs_of(tmp_path, [*_PARTLY] * 300 + late)[::2]:
        assert "`status` is called `http.status_code` in" in note_of(log, monkeypatch, capsys, *question)


@pytest.mark.parametrize(
    ("records", "question", "note"),
    [
        ([{"a": [1]}, {"a": 2}], "not a == 1", "holds arrays, so `not` is true of all"),
        ([{"code": 200}, {"code": 404}], 'code != "4xx"', "did you mean `code >= 400 and code < 500`?"),
    ],
)
def test_values_that_are_denied_and_that_none_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    records: list[dict[str, Any]], question: str, note: str,
) -> None:  # fmt: skip
    assert note in note_of(logs_of(tmp_path, records * 30)[0], monkeypatch, capsys, "count", question)


def test_lines_that_are_not_as_the_pattern_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "x.txt"
    log.write_text("2026-11-01|info|7\n2026-11-01 10:00:00 other\n" * 30)
    os.utime(log, (1_700_000_000, 1_700_000_000))
    pattern = r"(?P<time>[^|]+)\|(?P<level>\w+)\|(?P<n>\d+)"
    note = note_of(log, monkeypatch, capsys, "count", "--log-format", pattern)
    assert "30 records are as the pattern says" in note
