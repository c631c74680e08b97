"""The commands over batches in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_helpers import said

import jitdb
from jitdb.errors import InvalidArgument, LogError

EACH = "resourceLogs[].scopeLogs[].logRecords[]"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "otlp.ndjson"
    lines = []
    for line in range(3):
        records = [{"severityText": ("ERROR", "INFO")[n % 2], "n": 10 * line + n} for n in range(4)]
        scopes = [{"scope": {"name": "s"}, "logRecords": records[:1]}, {"logRecords": records[1:]}]
        lines.append(json.dumps({"resourceLogs": [{"resource": {}, "scopeLogs": scopes}]}))
    path.write_text("\n".join([*lines, "bad", '{"resourceLogs": []}']) + "\n")
    return path


def test_commands(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, "count", path, 'severityText == "ERROR"', "--each", EACH)
    assert (code, out) == (0, "6\n")
    assert "1 line cannot be read as JSON, left out of all answers" in err
    assert said(capsys, "count", path, 'severityText == "ERROR"', "--each", EACH) == (0, "6\n", err)
    code, out, _ = said(capsys, "query", path, "n > 11 and n < 22", "--each", EACH, "--fields", "n")
    assert [json.loads(line)["n"] for line in out.splitlines()] == [12, 13, 20, 21]
    code, out, _ = said(capsys, "export", path, "--each", EACH)
    assert [json.loads(line)["n"] for line in out.splitlines()] == [
        10 * line + n for line in range(3) for n in range(4)
    ]
    assert said(capsys, "verify", path, "--each", EACH)[0] == 0
    assert said(capsys, "count", path, "--each", "resourceLogs[]")[1] == "3\n"
    assert said(capsys, "count", path)[1] == "12\n"  # as OpenTelemetry has it, which is known
    assert said(capsys, "count", path.parent, "n >= 0", "--each", EACH)[1] == "12\n"


def test_info(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "info", path, "--each", EACH)[1]
    assert f"12, {EACH} of its lines, and 1 line without one" in out
    assert "1 line that cannot be read: 4" in out
    assert json.loads(said(capsys, "info", path, "--each", EACH, "--json")[1])["each"] == EACH


def test_tail(path: Path) -> None:
    command = [sys.executable, "-m", "jitdb", "tail", path, "--each", EACH, "--old", "--fields", "n", "--limit", "14"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = [process.stdout.readline() for _ in range(12)]
    with path.open("a") as file:
        file.write('{"resourceLogs": [{"scopeLogs": [{"logRecords": [{"n": 100}, {"n": 101}]}]}]}\n')
    found += process.communicate(timeout=60)[0].splitlines()
    assert [json.loads(line)["n"] for line in found][-2:] == [100, 101]


def test_a_path_that_is_none(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, "count", path, "--each", "a.b")
    assert code == 2
    assert "each is a path to the elements of arrays" in err


def test_of_a_log_of_jitdbs_there_are_no_elements(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "import", path, "a.log", "--skip-bad", "--quiet")
    code, out, err = said(capsys, "count", "a.log", "--each", EACH)
    assert (code, out) == (1, "")
    assert "a.log: each says how lines become records" in err
    assert "leave --each out" in err
    with pytest.raises(InvalidArgument, match="leave each out"):
        jitdb.open("a.log", each=EACH)
    with pytest.raises(InvalidArgument), jitdb.open_many(["a.log", str(path)], each=EACH) as logs:
        logs.count()
    assert not Path("new.log").exists()
    with pytest.raises(LogError):
        jitdb.open("new.log", create=True, each=EACH)
    assert not Path("new.log").exists()


@pytest.mark.parametrize(
    ("document", "each", "field"),
    [
        ({"items": [{"time": "2026-11-20T13:00:00Z", "level": "error"}] * 2, "total": 2}, "items[]", "level"),
        ({"hits": {"hits": [{"_source": {"time": "2026-11-20T13:00:00Z", "level": "error"}}] * 2}}, "hits.hits[]",
         "_source.level"),
    ],
)  # fmt: skip
def test_one_document_leads_to_its_elements(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], document: object, each: str, field: str
) -> None:
    path = tmp_path / "items.json"
    path.write_text(json.dumps(document) + "\n")
    code, out, err = said(capsys, "count", path, 'level == "error"')
    assert (code, out) == (0, "0\n")
    assert f"no record has the field `level`; the elements of an array do: --each '{each}'" in err
    code, _, err = said(capsys, "count", path, "--since", "2026-11-20")
    assert code == 1
    assert f"--each '{each}'" in err
    assert "--timestamp" not in err
    assert said(capsys, "count", path, f'{field} == "error"', "--each", each)[:2] == (0, "2\n")


@pytest.mark.parametrize("indent", [None, 2])
def test_a_document_around_an_array(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], indent: int | None
) -> None:
    """It is one record, or none: the array that has the records is named."""
    monkeypatch.chdir(tmp_path)
    rows = [{"id": number, "status": 200 + 204 * (number % 2)} for number in range(50)]
    document = {"total": 50, "meta": {"pages": [{"n": 1}]}, "data": {"items": rows}}
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document, indent=indent) + "\n")
    for _ in range(2):
        code, out, err = said(capsys, "count", "a.json")
        if indent is None:
            assert (code, out) == (0, "1\n")
            told = "the file is one record; --each 'data.items[]' makes one of each element of this array"
            assert err == f"jitdb: {told}\n"
        else:
            assert (code, out) == (1, "")
            assert "pass --each 'data.items[]'; or make a line of it" in err
    assert said(capsys, "count", "a.json", "status == 404", "--each", "data.items[]")[:2] == (0, "25\n")
    path.write_text(json.dumps(document) + "\n" + json.dumps({"total": 1}) + "\n")
    assert said(capsys, "count", "a.json") == (0, "2\n", "")


def test_documents_in_a_folder_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "d"
    folder.mkdir()
    hits = json.dumps({"took": 3, "hits": {"hits": [{"state": "open", "n": number} for number in range(10)]}}) + "\n"
    (folder / "a.ndjson").write_text('{"state": "open"}\n' * 10)
    (folder / "records.json").write_text(json.dumps({"Records": [{"state": "open"}, {"state": "open"}]}) + "\n")
    assert said(capsys, "count", "d") == (0, "12\n", "")
    (folder / "hits.json").write_text(hits)
    told = "asked alone with --each 'hits.hits[]', each element of this array is one"
    assert said(capsys, "count", "d") == (0, "13\n", f"jitdb: d/hits.json is one record; {told}\n")
    assert told in said(capsys, "count", "d", 'state == "open"')[2]
    assert told in said(capsys, "values", "d", "state")[2]
    assert said(capsys, "count", "d", "-q")[2] == ""
    assert said(capsys, "count", "d/hits.json", "--each", "hits.hits[]")[:2] == (0, "10\n")
    for number in range(11):
        (folder / f"hits-{number:02}.json").write_text(hits)
    which = "d/hits-00.json, d/hits-01.json, d/hits-02.json and 7 others are one record each"
    assert said(capsys, "count", "d") == (0, "24\n", f"jitdb: {which}; {told}\n")
    assert said(capsys, "count", "d", "--log-format", "json")[2] == ""
