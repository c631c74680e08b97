"""Grams: what a scan for a text passes over holds none; what it finds is what a scan of everything finds."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from engine_helpers import manager_of
from index_cases import spans_of
from oracle import text_matches

import jitdb
from jitdb import JITDB, Log
from jitdb.engine.building import filtering, scan
from jitdb.engine.building.filtering import LOOK, PASS, Filtered
from jitdb.engine.maintenance import state
from jitdb.engine.plan import Serving
from jitdb.indexes.kinds import grams
from jitdb.indexes.kinds.grams import ROWS, Grams, Rows, pages_with
from jitdb.indexes.spec import GRAMS
from jitdb.log.codecs import get_codec
from jitdb.log.codecs.fields.located import RecordBatch
from jitdb.log.codecs.search import Search
from jitdb.operators import anywhere, contains, ends_with, equal, like, or_, starts_with

pytestmark = pytest.mark.filterwarnings("error::jitdb.errors.IndexWarning")

LINES = {
    "a.ndjson": lambda fields: json.dumps(fields),
    "b.log": lambda fields: f"2026-11-20T00:00:00Z stdout F {json.dumps(fields)}",
    "c.log": lambda fields: f"time=2026-11-20T00:00:00Z level=info id={fields['id']} msg={fields['note']}",
    "d.log": lambda fields: f"2026-11-20 00:00:00,001 INFO {fields['id']} {fields['note']}\n  more of {fields['id']}",
    "e.log": lambda fields: f"Nov 20 00:00:00 web app[1]: {fields['id']} {fields['note']}",
}


def records(random: Random, count: int) -> list[dict[str, Any]]:
    words = ["timeout", "é", "Zürich", "a/b", 'say "x"', "ok", "Straße"]
    return [
        {"id": f"{random.getrandbits(64):016x}", "n": random.randrange(10**6), "note": random.choice(words)}
        for _ in range(count)
    ]


@pytest.fixture
def filters(monkeypatch: pytest.MonkeyPatch) -> list[Filtered | None]:
    """Small pages in logs of any size; what each scan passes over."""
    seen: list[Filtered | None] = []
    ours = filtering.filtered

    def kept(*arguments: Any) -> Filtered | None:
        seen.append(ours(*arguments))
        return seen[-1]

    monkeypatch.setattr(state, "LARGE", 0)
    monkeypatch.setattr(grams, "PAGE", 1 << 12)
    monkeypatch.setattr(filtering, "filtered", kept)
    return seen


def test_rows_are_those_of_the_kernel() -> None:
    """A text that records hold is in the pages that have all its rows, and its odd ones."""
    random = Random(5)
    for _ in range(200):
        text = "".join(random.choices('abAB09 /\\"é\n', k=random.randrange(1, 12)))
        written = json.dumps({"a": f"x{text}y"}, ensure_ascii=random.random() < 0.5).encode()
        batch = RecordBatch.of([written])
        bits = np.zeros((1, ROWS // 8), np.uint8)
        from jitdb.indexes.kinds.kernels.grams import note_pages

        note_pages(
            np.append(batch.buffer, np.zeros(64, np.uint8)), batch.starts, batch.lengths, batch.states, batch.starts,
            4096, 1, np.empty(ROWS, np.uint8), np.empty(1, np.int32), np.empty(1, np.int64), bits,
        )  # fmt: skip
        segment = Grams(0, 1, np.zeros(1, np.uint32), np.zeros(1, np.int64), bits).segment((0, 1, 0, 9))
        for ignore_case in (False, True):
            rows = filtering._rows([Search(get_codec("json"), text, ignore_case)])
            assert pages_with(segment, rows).tolist() == [True], (text, written, ignore_case)
    assert not pages_with(segment, Rows.of([b"zzzzzz"])).any()


@pytest.mark.parametrize("escaped", [0, 1, 3000], ids=["as they are", "one behind a backslash", "behind backslashes"])
def test_texts_with_slashes(escaped: int, tmp_path: Path, filters: list[Filtered | None]) -> None:
    """JSON may write a slash behind a backslash: PHP does."""
    random = Random(11)
    paths = [f"/{random.randrange(90)}/{random.randrange(90)}/x" for _ in range(3000)]
    lines = [json.dumps({"path": path, "n": number}) for number, path in enumerate(paths)]
    chosen = set(random.sample(range(3000), escaped))
    lines = [line.replace("/", "\\/") if number in chosen else line for number, line in enumerate(lines)]
    (tmp_path / "a.ndjson").write_text("\n".join(lines) + "\n")
    with jitdb.open(tmp_path / "a.ndjson", progress=False) as db:
        assert db.count(anywhere("no such text")) == 0
        passed = 0
        for text in dict.fromkeys([path[:-1] for path in paths[:20]] + [paths[number] for number in chosen][:20]):
            filters.clear()
            assert db.count(anywhere(text)) == sum(text in path for path in paths), text
            (found,) = filters
            assert found is not None
            passed += sum(part.end_seq - part.seq for part in found.parts if part.how == PASS)
        assert (passed == 0) == (escaped == 3000)


@pytest.mark.parametrize("name", [*LINES, "gz", "msgpack", "bipf", "json"])
def test_what_is_found_is_there(name: str, tmp_path: Path, filters: list[Filtered | None]) -> None:
    random = Random(7)
    some = records(random, 3000)
    if name in ("msgpack", "bipf", "json"):
        with Log(tmp_path / "log", codec=name, block_size=4096) as log:
            log.append_many(some)
        path = tmp_path / "log"
    elif name == "gz":
        path = tmp_path / "a.ndjson.gz"
        path.write_bytes(gzip.compress("".join(json.dumps(each) + "\n" for each in some).encode()))
    else:
        path = tmp_path / name
        path.write_text("".join(LINES[name](each) + "\n" for each in some))
    with jitdb.open(path, progress=False) as db:
        assert db.count(anywhere("no such text")) == 0
        whole = [json.dumps(record, ensure_ascii=False) for record in db.all()]
        assert len(whole) == len(some)
        passed = 0
        for text in (some[1234]["id"], some[77]["id"][4:11], "ffff7", "zzzzyx", "Zürich", "a/b", "0", "é", "timeout"):
            filters.clear()
            question = anywhere(text)
            expected = sum(any(text in part for part in _texts(json.loads(line))) for line in whole)
            assert db.count(question) == expected, text
            (found,) = filters
            if found is not None:
                passed += sum(part.end_seq - part.seq for part in found.parts if part.how == PASS)
                assert found.parts[-1].end_seq == len(some)
                assert all(left.end_seq == right.seq for left, right in pairwise(found.parts))
        assert passed > 3 * len(some)
        assert db.verify(sample=None).ok


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for held in value.values() for text in _texts(held)]
    return [value if isinstance(value, str) else json.dumps(value)]


@pytest.mark.parametrize("codec", ["json", "msgpack", "bipf"])
def test_texts_of_a_field(
    codec: str, tmp_path: Path, filters: list[Filtered | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the second text on that is looked for in a field of long texts."""
    monkeypatch.setattr(Serving, "holds_long", lambda *_: True)
    random = Random(29)
    some = records(random, 3000)
    for each in some:
        each["text"] = " ".join(random.choices(["Straße", "é", "timeout", "a/b", 'x"y', "K", "ok"], k=6)) + each["id"]
        each["n"] = random.choice([each["id"], 17, None])
    with Log(tmp_path / "log", codec=codec, block_size=4096) as log:
        log.append_many(some)
    late, early = some[2500]["text"][-12:], some[20]["text"][-9:-2]
    asked = [
        contains("text", "no such text"), contains("text", late), ends_with("text", late), contains("text", late[:6]),
        like("text", f"%{early}__"), contains("text", early.upper(), ignore_case=True), starts_with("n", some[9]["id"]),
        contains("text", "straSSE", ignore_case=True), contains("text", "a/b"), contains("text", 'x"y'),
        contains("n", "7"),
        like("text", "%"), contains("text", "timeout ok"), contains("text", "é " + late), contains("text", b"x"),
    ]  # fmt: skip
    with jitdb.open(tmp_path / "log", progress=False) as db:
        for question in asked:
            path = question.paths[0][0]
            expected = sum(text_matches(question, each[path]) for each in some if each[path] is not None)
            assert db.count(question) == expected, question
        assert db.verify(sample=None).ok
    passed = [sum(part.end_seq - part.seq for part in each.parts if part.how == PASS) for each in filters if each]
    assert len(passed) >= 4
    assert sum(passed) > 2 * len(some)
    assert filters[0] is None


def test_a_log_that_grows(tmp_path: Path, filters: list[Filtered | None]) -> None:
    """Grams, and what was found, go on where they ended."""
    random, path, some = Random(9), tmp_path / "a.ndjson", []
    wanted = "needle-of-3"
    for step in range(6):
        more = records(random, random.randrange(100, 900))
        if step % 2:
            more[len(more) // 2]["note"] = wanted
        some += more
        with open(path, "a") as file:
            file.writelines(json.dumps(each) + "\n" for each in more)
        with jitdb.open(path, progress=False) as db:
            assert db.count(anywhere(f"new text {step}")) == 0
            assert db.count(anywhere(wanted)) == sum(each["note"] == wanted for each in some)
            late = some[-3]["id"]
            assert db.all(anywhere(late)) == [some[-3]]
    assert sum(found is not None for found in filters) > 4


def test_spans_end_in_pages(tmp_path: Path, filters: list[Filtered | None]) -> None:
    random, path = Random(11), tmp_path / "a.ndjson"
    some = records(random, 2000)
    path.write_text("".join(json.dumps(each) + "\n" for each in some))
    with spans_of(256), jitdb.open(path, progress=False) as db:
        assert db.count(anywhere("no such text")) == 0
        for at in (0, 255, 256, 257, 1023, 1024, 1999):
            assert db.all(anywhere(some[at]["id"])) == [some[at]]
        (index,) = [index for index in manager_of(db).opened() if index.spec == GRAMS]
        assert index.end_seq == len(some)
        assert db.verify(sample=None).ok
    assert sum(found is not None for found in filters) >= 6


def test_a_record_that_goes_on_far_behind_its_page(tmp_path: Path, filters: list[Filtered | None]) -> None:
    """Its end is not read with the page: it is looked at all the same."""
    random = Random(41)
    path = tmp_path / "a.ndjson"
    some = [f"{'.' * random.randrange(900, 3000)}{random.getrandbits(64):016x}" for _ in range(600)]
    path.write_text("".join(json.dumps({"note": each}) + "\n" for each in some))
    with jitdb.open(path, progress=False) as db:
        db.count(anywhere("no such text"))
        for each in some[::40]:
            assert db.count(anywhere(each[-12:])) == 1
    assert sum(found is not None for found in filters) == 15


def test_two_texts_at_once(tmp_path: Path, filters: list[Filtered | None]) -> None:
    some = records(Random(13), 3000)
    path = tmp_path / "a.ndjson"
    path.write_text("".join(json.dumps(each) + "\n" for each in some))
    with jitdb.open(path, progress=False) as db:
        db.count(anywhere("no such text"))
        question = or_(anywhere(some[5]["id"]), anywhere(some[2900]["id"]), equal("n", -1))
        assert db.count(question) == 2
        both = or_(anywhere(some[6]["id"]), anywhere(some[2901]["id"]))
        assert db.count(both) == 2
    assert filters[-1] is not None


def test_records_are_deleted_and_compacted(tmp_path: Path, filters: list[Filtered | None]) -> None:
    some = records(Random(17), 3000)
    with Log(tmp_path / "log", codec="json", block_size=4096) as log:
        offsets = log.append_many(some)
        log.flush()
        db = JITDB(log, progress=False)
        assert db.count(anywhere(some[10]["id"])) == 1
        log.delete_many(list(map(int, offsets[:2000])))
        assert db.count(anywhere(some[11]["id"])) == 0
        log.compact()
        left = some[2000:]
        for at in (0, 500, 999):
            assert db.all(anywhere(left[at]["id"])) == [left[at]]
        assert db.verify(sample=None).ok


def test_a_page_that_says_another_number_of_records(tmp_path: Path, filters: list[Filtered | None]) -> None:
    """An index that does not fit the log is dropped, and built again."""
    some = records(Random(19), 3000)
    path = tmp_path / "a.ndjson"
    path.write_text("".join(json.dumps(each) + "\n" for each in some))
    with jitdb.open(path, progress=False) as db:
        db.count(anywhere("no such text"))
        (index,) = [index for index in manager_of(db).opened() if index.spec == GRAMS]
        content = Grams.of(index.segments[0])
        content.firsts = content.firsts.copy()
        content.firsts[1:] += np.uint32(1)
        index.segments[0] = content.segment(index.segments[0].run)
        with pytest.warns(jitdb.errors.IndexWarning):
            assert db.count(anywhere(some[1500]["id"])) == 1
        assert db.count(anywhere(some[1501]["id"])) == 1


def test_an_interrupted_scan_keeps_nothing_wrong(
    tmp_path: Path, filters: list[Filtered | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    some = records(Random(23), 3000)
    path = tmp_path / "a.ndjson"
    path.write_text("".join(json.dumps(each) + "\n" for each in some))
    monkeypatch.setattr(scan, "PARTS", 2)
    with jitdb.open(path, progress=False) as db:
        db.count(anywhere("no such text"))
        text = some[2900]["id"]  # in one page, behind many that are passed over
        with monkeypatch.context() as patched:
            patched.setattr(scan.ChunkScanner, "hold_none", _interrupted_at(1))
            with pytest.raises(KeyboardInterrupt):
                db.count(anywhere(text))
        assert db.count(anywhere(text)) == sum(text in json.dumps([*each.values()]) for each in some)


def _interrupted_at(seq: int) -> Any:
    ours = scan.ChunkScanner.hold_none

    def hold_none(self: Any, parts: Any) -> Any:
        if any(part.seq > seq for part in parts):
            raise KeyboardInterrupt
        return ours(self, parts)

    return hold_none


@pytest.mark.parametrize("escaped", [False, True])
def test_each_part_of_a_text_rules_pages_out(tmp_path: Path, filters: list[Filtered | None], escaped: bool) -> None:
    """A slash may be written as `\\/`, so "/common/90210" has two parts, and each record has the longer one."""
    some = [{"path": f"/common/{number:05}/é", "note": "." * 100} for number in range(10_000, 14_000)]
    lines = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in some)
    (tmp_path / "a.ndjson").write_text(lines.replace("/", "\\/") if escaped else lines)
    with jitdb.open(tmp_path / "a.ndjson", progress=False) as db:
        for first in (anywhere("no such text"), contains("path", "no such text")):
            assert db.count(first) == 0
        for question in (anywhere("/common/10123/é"), contains("path", "n/10123/"), like("path", "%com%/10123%")):
            assert db.count(question) == 1
            assert filters[-1] is not None
            assert sum(part.how == LOOK for part in filters[-1].parts) <= 2  # it may be in the next page, too
        assert db.count(contains("path", "common/")) == len(some)
        assert db.count(contains("path", "common/10123/e")) == 0


def test_pages_that_most_hold_the_text_are_not_scanned_one_by_one(
    tmp_path: Path, filters: list[Filtered | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes longer than to scan everything, which some of them tell."""
    random, path = Random(47), tmp_path / "a.ndjson"
    some = records(random, 4000)
    for each in some[::10]:
        each["note"] = "in each page"
    path.write_text("".join(json.dumps(each) + "\n" for each in some))
    alone: list[int] = []
    ours = scan.Scan._scan_page
    monkeypatch.setattr(scan.Scan, "_scan_page", lambda self, part: (alone.append(part.seq), ours(self, part))[1])
    with jitdb.open(path, progress=False) as db:
        db.count(anywhere("no such text"))
        assert db.count(anywhere("each page")) == len(some) // 10
        assert filters[-1] is not None
        assert not alone
        assert db.count(anywhere(some[2000]["id"])) == 1
        assert 1 <= len(alone) <= 6  # and those in which the index begins and ends


def test_the_part_that_stands_as_such_in_json() -> None:
    for text, anchor in (('a"bcd', b"bcd"), ("a/b", b"a/b"), ("x\\yz", b"yz"), ('"', b""), ("é", "é".encode())):
        assert Search(get_codec("json"), text, False).anchor == anchor
