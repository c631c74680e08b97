"""Whatever files hold, however they are compressed, and whatever becomes of them: the answers of a set are those of the
files one by one, and of the records that were written.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from thoroughness import tries

import jitdb
from jitdb import LogSet
from jitdb.common.zstd import compressor
from jitdb.log.lines.bundles import gathering, texts
from jitdb.log.lines.bundles.stores import stored_bundles
from jitdb.operators import field

Record = dict[str, Any]

BEGIN: Final = 1_790_000_000
DAYS: Final = ("dt=2026-11-01", "dt=2026-11-02", "other")


def stamped(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(BEGIN + second))


def as_lines(records: list[Record]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def as_docker(records: list[Record]) -> bytes:
    return as_lines(
        [{"log": json.dumps(record) + "\n", "stream": "stdout", "time": record["time"]} for record in records]
    )


def as_logfmt(records: list[Record]) -> bytes:
    return b"".join(" ".join(f"{key}={record[key]}" for key in record).encode() + b"\n" for record in records)


def as_csv(records: list[Record]) -> bytes:
    return b"time,n,word\n" + b"".join(
        f"{record['time']},{record['n']},{record['word']}\n".encode() for record in records
    )


def as_batch(records: list[Record]) -> bytes:
    return json.dumps({"Records": records}).encode()


def as_pretty_batch(records: list[Record]) -> bytes:
    return json.dumps({"Records": records}, indent=1).encode() + b"\n"


def as_text(records: list[Record]) -> bytes:
    return b"".join(
        f"{record['time']} n={record['n']} {record['word']}\n    at {record['word']}\n".encode() for record in records
    )


FORMATS: Final[list[Callable[[list[Record]], bytes]]] = [
    as_lines, as_docker, as_logfmt, as_csv, as_batch, as_pretty_batch,
]  # fmt: skip
COMPRESSIONS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": lambda text: compressor(3)(text),
}


class Files:
    """Files in some folders, and the records that were written to each."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root, self.chance, self.second, self.count = root, chance, 0, 0
        self.records: dict[Path, list[Record]] = {}
        self.open_ended: set[Path] = set()
        self.written: dict[Path, tuple[Callable[[list[Record]], bytes], str]] = {}

    def some(self, most: int = 12) -> list[Record]:
        found = []
        for _ in range(self.chance.randint(3, most)):  # rows of fewer lines are no table for certain
            self.second += self.chance.randint(0, 2)
            n = self.chance.randint(4, 8)
            found.append({"time": stamped(self.second), "n": n, "word": self.chance.choice(["a", "b", "xyz"])})
        return found

    def add(self, form: Callable[[list[Record]], bytes], compression: str) -> None:
        path = self.root / self.chance.choice(DAYS) / f"{self.count:03}.log{compression}"
        self.count += 1
        path.parent.mkdir(exist_ok=True)
        self.write(path, self.some(), form, compression)

    def write(self, path: Path, records: list[Record], form: Callable[[list[Record]], bytes], compression: str) -> None:
        text = form(records)
        if form in (as_lines, as_logfmt) and self.chance.random() < 0.2:
            text = text[:-1]  # without the last newline
            self.open_ended.add(path)
        else:
            self.open_ended.discard(path)
        path.write_bytes(COMPRESSIONS[compression](text))
        if self.chance.random() < 0.5:  # as if nobody had written to it for long
            os.utime(path, ns=(time.time_ns(), time.time_ns() - 7200 * 10**9))
        self.records[path], self.written[path] = records, (form, compression)

    def change(self) -> None:
        path = self.chance.choice(sorted(self.records))
        form, compression = self.written[path]
        what = self.chance.choice(["append", "truncate", "replace", "rename", "remove", "new", "touch"])
        if what == "append" and form is as_lines:
            every, more = self.records[path], self.some(4)
            if path in self.open_ended:
                self.write(path, every + more, form, compression)
            else:
                with open(path, "ab") as file:
                    file.write(COMPRESSIONS[compression](form(more)))
                self.records[path] = every + more
        elif what == "truncate":
            self.write(path, self.records[path][:3], form, compression)
        elif what == "replace":
            del self.records[path]
            aside = path.with_name(f".{path.name}")
            self.write(aside, self.some(), form, compression)
            self.records[path], self.written[path] = self.records.pop(aside), self.written.pop(aside)
            aside.rename(path)
            (self.open_ended.add if aside in self.open_ended else self.open_ended.discard)(path)
        elif what == "rename":
            to = path.with_name(f"x{self.count}.log{compression}")
            self.open_ended |= {to} if path in self.open_ended else set()
            self.count += 1
            path.rename(to)
            self.records[to], self.written[to] = self.records.pop(path), self.written.pop(path)
        elif what == "remove" and len(self.records) > 4:
            path.unlink()
            del self.records[path], self.written[path]
        elif what == "touch":
            os.utime(path)
        else:
            self.add(form, compression)

    @property
    def all(self) -> list[Record]:
        return [record for records in self.records.values() for record in records]


def answers(logs: LogSet) -> list[Any]:
    day = field("dt") == "2026-11-01"
    newest = logs.query(field("n") >= 6).descending().page(7).data
    return [
        logs.count(),
        logs.count(field("n") == 6),
        logs.count(day & (field("n") == 6)),
        {row.value: row.count for row in logs.query().value_counts("word")},
        logs.query(field("n") > 4).stats("n").sum,
        {row.value: row.count for row in logs.query().value_counts("dt")},
        [record["time"] for record in newest],
        sorted((record["time"], int(record["n"])) for record in logs.query()),
        logs.query(field("time") >= stamped(20)).count(),
    ]


def expected(files: Files) -> list[Any]:
    every = files.all
    by_day = {"2026-11-01": 0, "2026-11-02": 0}
    for path, records in files.records.items():
        day = path.parent.name.removeprefix("dt=")
        if day in by_day:
            by_day[day] += len(records)
    times = sorted((record["time"] for record in every if record["n"] >= 6), reverse=True)
    first_day = [record for path, records in files.records.items() if path.parent.name == DAYS[0] for record in records]
    return [
        len(every),
        sum(record["n"] == 6 for record in every),
        sum(record["n"] == 6 for record in first_day),
        dict(Counter(record["word"] for record in every)),
        sum(record["n"] for record in every if record["n"] > 4),
        {day: count for day, count in by_day.items() if count},
        times[:7],
        sorted((record["time"], record["n"]) for record in every),
        sum(record["time"] >= stamped(20) for record in every),
    ]


def settle() -> None:
    time.sleep(0.03)  # until a change shows in the times of a file


@pytest.mark.parametrize("seed", range(tries(6, 60)))
def test_random_files_and_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(gathering, "_SOON_MADE", chance.choice([0, gathering._SOON_MADE]))
    monkeypatch.setattr(gathering, "AT_ONCE", chance.choice([500, texts.AT_ONCE]))
    monkeypatch.setattr(gathering, "LARGEST", chance.choice([4000, gathering.LARGEST]))
    files = Files(tmp_path, chance)
    forms = FORMATS if seed % 2 else [chance.choice(FORMATS)]
    for _ in range(36 if seed % 2 else 24):
        files.add(chance.choice(forms), chance.choice(list(COMPRESSIONS)))
    settle()
    with warnings.catch_warnings(), jitdb.open_many(tmp_path, progress=False) as logs:
        warnings.simplefilter("ignore", jitdb.errors.QuestionWarning)
        assert answers(logs) == expected(files)
        for _ in range(3):
            for _ in range(chance.randint(1, 3)):
                files.change()
            settle()
            logs.refresh()
            assert answers(logs) == expected(files)
            with jitdb.open_many(tmp_path, progress=False) as again:
                assert answers(again) == expected(files)


@pytest.mark.parametrize("form", [*FORMATS, as_text])
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_each_format_goes_into_one_bundle(
    tmp_path: Path, form: Callable[[list[Record]], bytes], compression: str
) -> None:
    files = Files(tmp_path, random.Random(1))
    for _ in range(12):
        files.add(form, compression)
    settle()
    count = len(files.all)
    for _ in range(2):
        with jitdb.open_many(tmp_path, progress=False) as logs:
            assert (logs.count(), len(logs.query().page(1000).data)) == (count, count)
            texts_of = list(logs.query().as_raw())
    alone = []
    for path in sorted(files.records):
        with jitdb.open_many([path], progress=False) as one:
            alone += list(one.query().as_raw())
    assert sorted(texts_of) == sorted(alone)
    (bundle,) = stored_bundles(str(tmp_path), tmp_path / ".jitdb")
    assert {tmp_path / file.name for file in bundle.files} == set(files.records)


def test_a_log_is_not_said_to_hold_what_others_of_its_bundle_do(tmp_path: Path) -> None:
    (tmp_path / "pino.log").write_text('{"time": 1795132803724}\n' * 3)
    (tmp_path / "slog.log").write_text('{"time": "2026-11-20T00:00:00Z"}\n' * 3)
    note = "some values of `time` are no numbers: `<` and `>` leave these out"
    with jitdb.open_many(tmp_path) as logs:
        every = logs.query("time > 5")
        assert every.count() == 3
        assert logs.remarks(every.question) == [note]
        one = logs.query('time > 5 and _path ends_with "pino.log"')
        assert one.count() == 3
        assert logs.remarks(one.question) == []
