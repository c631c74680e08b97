"""Batches, arrays and values over many lines: the records are those that json.loads and loops find."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_line_each import exploded
from thoroughness import tries

import jitdb
from jitdb.cli import main
from jitdb.errors import InvalidOffset, NotALog
from jitdb.log import LogSource
from jitdb.log.codecs.fields.constants import LIVE
from jitdb.log.lines import line_log
from jitdb.log.lines.detection import HEAD, form_at, form_of
from jitdb.log.lines.form import LineForm, Steps
from jitdb.log.lines.formats import batches
from jitdb.log.lines.line_log import LineLog
from jitdb.operators import field
from jitdb.testing.sources import LogSourceTests, Records

pytestmark = pytest.mark.filterwarnings("ignore::jitdb.errors.MalformedWarning")

RECORDS: list[dict[str, Any]] = [
    {"n": 1, "level": "error", "t": "a\nb \"q\" ]}, {"}, {"n": 2, "in": {"x": [1, [2]]}}, {}, {"n": -3.5, "é": "ü€😀"},
    {"n": 12345678901234567890123, "why": "no log can hold it"}, {"n": 6, "level": "info"},
]  # fmt: skip
FORMS: dict[str, tuple[LineForm, Any]] = {
    "array": (LineForm(each=(None,)), lambda records: records),
    "CloudTrail": (LineForm(each=("Records", None)), lambda records: {"Records": records}),
    "Azure": (LineForm(each=("records", None)), lambda records: {"records": records, "n": 1}),
    "CloudWatch": (
        LineForm(format="cloudwatch"), lambda records: {"messageType": "DATA_MESSAGE", "logEvents": records, "owner": 7}
    ),
    "OpenTelemetry": (
        LineForm(format="otlp"),
        lambda records: {"resourceLogs": [{"resource": {}, "scopeLogs": [{"scope": {}, "logRecords": records}]}]},
    ),
    "kubectl": (LineForm(each=("items", None)), lambda records: {"apiVersion": "v1", "items": records, "kind": "List"}),
    "az": (LineForm(each=("value", None)), lambda records: {"value": records}),
}  # fmt: skip
AROUND = {"CloudWatch": {"owner": 7}, "OpenTelemetry": {"resource": {}, "scope": {}}}


def held(records: list[Any]) -> list[Any]:
    return [record for record in records if "why" not in record]


def laid_out(value: Any, records: list[Any]) -> dict[str, str]:
    """The ways in which such a file is written."""
    lines = ",\n".join(map(json.dumps, records))
    whole = json.dumps(value)
    return {
        "pretty": json.dumps(value, indent=2),
        "pretty, with a newline": json.dumps(value, indent=1) + "\r\n\n",
        "a line": whole,
        "an element a line": whole.replace(json.dumps(records), f"[\n{lines}\n]"),
        "commas first": whole.replace(json.dumps(records), "[" + "\n,".join(map(json.dumps, records)) + "]"),
        "two": json.dumps(value, indent=2) + json.dumps(value),
    }


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("packed", [False, True])
def test_it_is_recognised_however_it_is_laid_out(tmp_path: Path, name: str, packed: bool) -> None:
    wanted, wrap = FORMS[name]
    for layout, text in laid_out(wrap(RECORDS), RECORDS).items():
        if name in ("kubectl", "az") and layout == "a line":
            continue  # it may be a record of a log
        path = tmp_path / f"{layout}.json{'.gz' * packed}"
        path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
        form = form_at(path)
        assert form is not None, layout
        assert form._replace(is_document=False) == wanted, layout
        with jitdb.open(path, progress=False) as db:
            expected = [{**AROUND.get(name, {}), **record} for record in held(RECORDS)] * (1 + (layout == "two"))
            if layout != "a line" or form.is_document:  # a line that no log could hold is left out as a whole
                assert db.all(sort_by="arrival") == expected, layout
                assert db.count(field("level") == "error") == 1 + (layout == "two"), layout
        with jitdb.open(path, progress=False) as db:
            assert db.count() in (len(expected), 0), layout


def test_values_one_behind_the_other(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("".join(json.dumps(record, indent=2) for record in RECORDS))
    assert form_at(path) == LineForm(is_document=True)
    with jitdb.open(path, progress=False) as db:
        assert db.all(sort_by="arrival") == held(RECORDS)


@pytest.mark.parametrize("text", ["{\n}", '{\n"a": [{"b": 1}]}', "[1,\n2]", "{", '{"a": 1} x', '[{"a"', '"x"'])
def test_what_is_no_batch_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    found = form_at(path)
    assert found is None or not found.is_document or text == '[{"a"'
    path.write_text('{\n"a": [{"b": 1}]}')
    with pytest.raises(NotALog, match="no batch"):
        jitdb.open(path, progress=False)
    with jitdb.open(path, each="a[]", progress=False) as db:
        assert db.all() == [{"b": 1}]


@pytest.mark.parametrize("size", [HEAD // 2, HEAD, 3 * HEAD, 20 * HEAD])
def test_the_first_line_may_be_long(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_LONGER", (4 * HEAD, 30 * HEAD))
    line = b'{"Records": [{"a": "' + b"x" * size + b'"}]}'
    for text, is_document in (
        (line + b"\n" + line, False),
        (line[:-2] + b",\n{}]}", True),
        (line[:-2] + b"\n]}", True),
    ):
        form = form_of(text[:HEAD], more=lambda most, text=text: text[:most])  # type: ignore[misc]
        assert form == LineForm(each=("Records", None), is_document=is_document)


@pytest.mark.parametrize(
    "first", ["{", "[{", '{"a": [{"b": [1,]}]}', '{"a": [{"b"', '[{"a": tru', '{"a": [{"b": 1}]} x']
)
def test_a_first_line_that_is_no_json_makes_no_document(first: str) -> None:
    head = f'{first}\n{{"a": [{{"b": 1}}]}}\n{{"a": []}}\n'.encode()
    for form in (LineForm(), LineForm(each=("a", None))):
        found = form_of(head, form)
        assert found is None or not found.is_document


# Chunks, and what is no JSON


def skipped(text: str, at: int) -> int:
    """Where a value ends by its signs alone; -1 where nobody knows."""
    depth, behind = 0, False
    while at < len(text):
        sign = text[at]
        at += 1
        if sign <= " ":
            continue
        if sign in ",:":
            if not behind:
                return -1
            behind = False
        elif sign in "]}":
            depth, behind = depth - 1, True
        else:
            if behind:
                return -1
            behind = sign not in "[{"
            if not behind:
                depth += 1
            elif sign == '"':
                while at < len(text) and text[at] != '"':
                    at += 2 if text[at] == "\\" else 1
                at += 1
            else:
                while at < len(text) and text[at] > " " and text[at] not in '",:[]{}':
                    at += 1
        if depth < 0:
            return -1
        if depth == 0 and behind:
            return min(at, len(text))
    return len(text)


class Broken(Exception):
    pass


def oracle_of(data: bytes, steps: Steps) -> list[tuple[int, int]]:
    """Where the records of a document begin and end, whatever they hold; read character by character."""
    text, found = data.decode("latin-1"), list[tuple[int, int]]()
    read = json.JSONDecoder().raw_decode

    def blanks(at: int) -> int:
        while at < len(text) and text[at] in " \t\r\n":
            at += 1
        return at

    def value(at: int) -> int:
        try:
            json.loads(data[at : (end := read(text, at)[1])])
            return end
        except (ValueError, RecursionError):
            return skipped(text, at)

    def walk(at: int, steps: Steps, wanted: bool) -> int:
        sign = text[at]
        if not (wanted and steps and sign == ("[" if steps[0] is None else "{")):
            end = value(at)
            if end < 0:
                raise Broken(at)
            if end == len(text) and sign not in '[{"':
                raise Broken(at)  # more of it may have stood there
            if wanted and not steps:
                found.append((at, end))
            if end == len(text) and not (text[end - 1] in "]}" and end == len(text) and is_value(text[at:end])):
                raise Broken(end)
            return end
        mark, at = len(found), blanks(at + 1)
        is_first = True
        while True:
            if at >= len(text):
                raise Broken(at)
            if is_first and text[at] == ("]" if sign == "[" else "}"):
                return at + 1
            is_first, is_on_path = False, True
            if sign == "{":
                try:
                    key, at = (read(text, at)[1], at)
                    name = json.loads(data[at:key])
                except ValueError:
                    raise Broken(at) from None
                if not isinstance(name, str):
                    raise Broken(at)
                is_on_path = name == steps[0]
                if is_on_path:
                    del found[mark:]
                at = blanks(key)
                if text[at : at + 1] != ":":
                    raise Broken(at)
                at = blanks(at + 1)
            if at >= len(text):
                raise Broken(at)
            at = blanks(walk(at, steps[1:], is_on_path))
            if at >= len(text):
                raise Broken(at)
            if text[at] == ("]" if sign == "[" else "}"):
                return at + 1
            if text[at] != ",":
                raise Broken(at)
            at = blanks(at + 1)

    at = blanks(0)
    try:
        while at < len(text):
            if text[at] not in "[{":
                raise Broken(at)
            at = blanks(walk(at, steps, True))
    except Broken:
        pass
    return found


def is_value(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


PIECES = ['{"a": [{"b": [',
          "]}]}", '{"b": [', "]}", "{}", "[1, 2]", '{"n": "x\\"]"}', ",", ", ", "\n", " \t", '"', "nul",
          "-", "{", "}", "[", "]", "NaN", '"\\ud800"', "é", '{"a": 5}', '"a":', "1",
          "12345678901234567890123"]  # fmt: skip
STEPS: Steps = ("a", None, "b", None)


def whole_documents() -> st.SearchStrategy[str]:
    element = st.sampled_from(
        ['{"n": 1}', "[]", '"x\\n]"', "nul", '{"n": 12345678901234567890123}', '{"x": "\x01"}', "2"]
    )
    items = st.lists(element, max_size=5).map(lambda found: " [" + ",\n ".join(found) + "]")
    group = items.map(lambda found: '{"z": [1, {}],\n "b":' + found + "}")
    return st.lists(group, max_size=3).map(lambda groups: '{"a": [' + ",\n".join(groups) + '], "y": null}\n')


texts = st.one_of(
    st.lists(whole_documents(), min_size=1, max_size=3).map("".join),
    st.tuples(whole_documents(), st.integers(0, 200)).map(lambda pair: pair[0][: pair[1]]),
    st.lists(st.sampled_from(PIECES), max_size=12).map(lambda found: '{"a": [{"b": [' + "".join(found)),
)


@settings(max_examples=tries(100, 20000), deadline=None)
@given(texts, st.randoms(use_true_random=False))
@example('{"a": [{"b": [NaN\n', random.Random(1))
def test_chunks_of_any_size(tmp_path_factory: pytest.TempPathFactory, text: str, rng: random.Random) -> None:
    path = tmp_path_factory.getbasetemp() / "chunks.json"
    path.write_text(text)
    data = text.encode()
    form = LineForm(each=STEPS, is_document=True)
    with LineLog(path, folder="memory", form=form) as log:
        size = log.durable_end
        wanted = oracle_of(data.removesuffix(b"\n"), STEPS)  # what stands at the end is as without a newline
        whole = [record for record in (data[a:b].replace(b"\n", b" ") for a, b in wanted) if is_held(record)]
        found = list(log.stream(raw=True))
        assert [record.value for record in found] == whole
        assert log.get_many_raw([record.offset for record in found]) == whole
        others = set(rng.sample(range(size), min(size, 5))) - {a for a, _ in wanted}
        for other in others:
            with suppress(InvalidOffset):
                assert log.get_many_raw([other]) == [None]  # what is left of a document that is none
        for most in (1, 7, 40):
            places = []
            for begin in range(0, size, most):
                walker = log.framing.walker(log, most, size)
                for counts in walker.walks(begin, 0):
                    batch = walker.batch(0, counts.records, begin)
                    batch.states[log.codec.locator([]).invalid(batch)] = 1
                    places += [batch.record(number) for number in np.flatnonzero(batch.states == LIVE)]
            assert places == whole


def is_held(record: bytes) -> bool:
    return LineLogCodec.is_valid(record)


LineLogCodec = jitdb.log.codecs.get_codec("json")


class TestDocumentLog(LogSourceTests):
    @pytest.fixture
    def records(self) -> Records:
        found = [json.dumps(record).encode() for record in RECORDS]
        return [None if b"why" in record else record for record in found]

    @pytest.fixture
    def source(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LogSource]:
        monkeypatch.setattr(line_log, "BLOCK", 64)
        path = tmp_path / "a.json"
        path.write_text("[\n" + ",\n".join(map(json.dumps, RECORDS)) + "\n]")
        with LineLog(path, form=LineForm(each=(None,), is_document=True)) as log:
            yield log


# What becomes of it


def test_one_that_grew_is_another_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(RECORDS[:2], indent=1))
    with jitdb.open(path, progress=False) as db:
        assert db.count(field("n") > 0) == 2
        identity = db.log.identity
        path.write_text(json.dumps([*RECORDS[:2], {"n": 9}], indent=1))
        assert db.log.refresh()
        assert db.count(field("n") > 0) == 3
        assert db.log.identity != identity
    path.write_text(json.dumps(RECORDS[:2], indent=1) + "\n" + json.dumps([{"n": 5}]))
    with jitdb.open(path, progress=False) as db:
        assert db.count(field("n") > 0) == 3
        assert db.verify().ok


def test_one_that_is_cut_gives_what_is_whole(tmp_path: Path) -> None:
    text = json.dumps({"Records": RECORDS[:3]}, indent=1)
    path = tmp_path / "a.json"
    for size in range(text.index("]}, {"), len(text)):
        path.write_text(text[:size])
        with jitdb.open(path, "memory", progress=False) as db:
            assert db.all(sort_by="arrival") == RECORDS[:3][: db.count()]
    assert exploded(json.loads(text), ("Records", None))


def test_a_folder_of_them(tmp_path: Path) -> None:
    for number in range(12):
        batch = json.dumps({"Records": [{"n": number}] * 2}).encode()
        (tmp_path / f"{number:02}.json.gz").write_bytes(gzip.compress(batch))
        (tmp_path / f"{number:02}.json").write_text(json.dumps({"Records": [{"n": number}]}, indent=2) + "\n")
    with jitdb.open_many(tmp_path, progress=False) as logs:
        assert logs.count() == 36
        assert logs.count(field("n") >= 6) == 18


def test_lines_in_another_encoding_make_no_document_and_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b'{"a":"Z\xfcrich"}\n{"a":"Z\xfcrich"}\n{"a":"ok"}\n')
    with jitdb.open(path) as db:
        log = db.log
        assert isinstance(log, LineLog)
        assert not log.framing.form.is_document
        assert (db.count(), log.counted().malformed) == (1, [1, 2])


@pytest.mark.parametrize("text", ["[]", "[]\n", "[\n]\n", " [ ] "])
def test_an_empty_array_has_no_records(tmp_path: Path, text: str) -> None:
    path, log = tmp_path / "a.json", tmp_path / "a.log"
    path.write_text(text)
    with jitdb.open(path, "memory", progress=False) as db:
        assert db.count() == 0
    with jitdb.open_many(tmp_path / "*.json", "memory", progress=False) as db:
        assert db.count() == 0
    assert main(["import", str(path), str(log)]) == 0
    assert not log.read_bytes()
