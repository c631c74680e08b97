"""What errors and warnings propose to do is done, as it is said, and helps."""

from __future__ import annotations

import bz2
import gzip
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import EVENTS, make_log

TABLE = b"Time,Duration (ms),Status [code],User name,Failed?\n2026-11-20 06:10:01,155.2,503,ada,Yes\n" * 2
W3C = b"#Fields: date time cs(User-Agent) sc-status\n2026-11-20 06:10:01 curl/8 503\n"
ERRORS = [b'{"level": "error"}\n', b'{"@level": "error"}\n', b'{"level": "ERROR"}\n']
LINES = "".join(json.dumps(event) + "\n" for event in EVENTS).encode()
BATCH = json.dumps({"items": EVENTS}).encode() + b"\n"


def _parquet(path: Path) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"level": ["error", "info"]}), path)


def _arrow(path: Path) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow as pa

    table = pa.table({"level": ["error", "info"]})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _compressed_arrow(path: Path) -> None:
    _arrow(path)
    path.write_bytes(gzip.compress(path.read_bytes()))


def _ours(path: Path) -> None:
    make_log(path, EVENTS)


def _is_json_with_a_sidecar(path: Path) -> None:
    make_log(path, EVENTS)
    path.write_bytes(LINES)


# What lies there under which name, and what is typed.
SITUATIONS: dict[str, tuple[dict[str, bytes | Callable[[Path], Any]], str]] = {
    "delete from JSON Lines": ({"lf.log": LINES}, "delete lf.log 'level == \"error\"' --yes"),
    "the same, and the names are taken": (
        {"lf.ndjson": LINES, "lf.log": LINES, "kept.ndjson": LINES}, "delete lf.ndjson 'level == \"error\"' --yes",
    ),
    "compact JSON Lines": ({"lf.log": LINES}, "compact lf.log"),
    "JSON text where a log was": ({"lf.log": _is_json_with_a_sidecar}, "count lf.log"),
    "a folder with a blank": ({"my logs.ndjson": LINES}, "compact 'my logs.ndjson'"),
    "delete from a table of Parquet": ({"x.parquet": _parquet}, "delete x.parquet 'level == \"error\"' --yes"),
    "one without its ending": ({"x": _parquet}, "count x --codec json"),
    "one that does not grow": ({"x.parquet": _parquet}, "tail x.parquet"),
    "compact a table of Arrow": ({"x.arrow": _arrow}, "compact x.arrow"),
    "a compressed one": ({"x.arrow.gz": _compressed_arrow}, "count x.arrow.gz"),
    "a table of CSV": ({"x.csv": b'a,b\n1,"2\n3"\n'}, "count x.csv"),
    "an array of numbers": ({"x.json": b"[1, 2]\n"}, "count x.json"),
    "compressed otherwise": ({"x.log.bz2": bz2.compress(LINES)}, "count x.log.bz2"),
    "each of a log": ({"x.log": _ours}, "count x.log --each items[]"),
    "other blocks": ({"x.log": _ours}, "count x.log --block-size 4096"),
    "another codec": ({"x.log": _ours}, "count x.log --codec bipf"),
    "another name": ({"events.log": _ours}, "count evnets.log"),
    "another command": ({"events.log": _ours}, "cuont events.log"),
    "another option": ({"events.log": _ours}, "query events.log --limt 2"),
    "a field that none has": ({"events.log": _ours}, "count events.log 'levle == \"error\"'"),
    "another case": ({"events.log": _ours}, "count events.log 'level == \"ERROR\"'"),
    "the expression first": ({"events.log": _ours}, "count 'level == \"error\"' events.log"),
    "no command": ({"events.ndjson": LINES}, "events.ndjson"),
    "an import of nothing": ({"events.ndjson": LINES}, "import events.ndjson"),
    "an import once more": ({"events.ndjson": LINES, "events.log": _ours}, "import events.ndjson events.log"),
    "a path that no line has": ({"batch.ndjson": BATCH * 2}, "count batch.ndjson --each itms[]"),
    "elements of text": ({"x.log": b"level=info n=1\n" * 3}, "count x.log --each items[]"),
    "a habit of jq": ({"events.log": _ours}, "count events.log '.level == \"error\"'"),
    "a habit of Lucene": ({"events.log": _ours}, "count events.log 'level:error AND NOT level:info'"),
    "a habit of SQL": ({"events.log": _ours}, "count events.log \"level = 'error' OR level LIKE 'err%'\""),
    "a habit of C": ({"events.log": _ours}, "count events.log 'level == \"error\" && !(level == \"info\")'"),
    "text that is no log by its name": ({"logs/README.md": b"one\ntwo\n"}, "count logs"),
    "lines that begin with a bracket": ({"logs/a.txt": b"[20/Nov/2026 13:00:00] x\n[b\n"}, "count logs"),
    "a bracket and a number": ({"logs/a.txt": b"[   3.5] x\n" * 9}, "count logs"),
    "a format of text that fits no line": ({"x.log": b"one\ntwo\n"}, "count x.log --log-format text"),
    "a field with a blank and brackets": ({"x.csv": TABLE}, "count x.csv 'Duration (ms) > 100'"),
    "one in quotes of another kind": ({"x.csv": TABLE}, "count x.csv '`Duration (ms)` > 100'"),
    "one that is nearly right": ({"x.csv": TABLE}, "count x.csv 'Duration > 100'"),
    "one with a blank, and one with a sign": (
        {"x.csv": TABLE}, "count x.csv 'User name == \"ada\" and Failed? == \"Yes\"'",
    ),
    "one with other brackets": ({"x.csv": TABLE}, "count x.csv 'Status [code] >= 500'"),
    "one that is called status elsewhere": ({"x.csv": TABLE}, "count x.csv 'status >= 500'"),
    "a field of a header of requests": ({"x.log": W3C}, "count x.log 'cs(User-Agent) contains \"curl\"'"),
    "a field with a dash": ({"x.log": W3C}, "values x.log 'cs(User-Agent)' 'sc-status >= 500'"),
    "a key with an at sign": ({"x.log": b'{"@l": "Error"}\n'}, "count x.log '@l == \"Error\"'"),
    "the status of a proxy": (
        {"x.log": b'{"DownstreamStatus": 503, "OriginStatus": 502, "StartUTC": "2026-11-20T06:10:01Z"}\n'},
        "count x.log 'status >= 500'",
    ),
    "two fields": ({"events.log": _ours}, "values events.log level,status"),
    "two fields, one behind the other": ({"events.log": _ours}, "values events.log level status"),
    "a level that is called otherwise": (
        {"logs/a.log": ERRORS[0], "logs/b.log": ERRORS[1]}, "count logs 'level == \"error\"'",
    ),
    "levels in another case": (
        {"logs/a.log": ERRORS[0], "logs/b.log": ERRORS[2]}, "count logs 'level == \"error\"'",
    ),
    "text without a level that is known": (
        {"logs/a.log": ERRORS[0], "logs/b.log": b"main ERROR.java x\n" * 3},
        "count logs 'level == \"error\"'",
    ),
    "a field of another folder's log": (
        {"logs/a.log": b'{"request_id": "9f3a77b0c2d144aa"}\n', "logs/b.log": b'{"RequestId": "9f3a77b0c2d144aa"}\n'},
        "count logs 'request_id == \"9f3a77b0c2d144aa\"'",
    ),
    "an option of another command": ({"events.log": _ours}, "count events.log --last 90000d"),
    "a word alone": ({"events.log": _ours}, "count events.log error"),
    "a time of day": ({"x.log": b"14:03:11 INFO x\n" * 9}, "count x.log --since 2026-11-20"),
    "a length of time": ({"x.log": b"took=5ms a=1\n" * 9}, "stats x.log took"),
    "numbers that are none": ({"events.log": _ours}, "stats events.log level"),
}  # fmt: skip


@pytest.fixture
def there(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    files, typed = SITUATIONS[request.param]
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        if isinstance(content, bytes):
            (tmp_path / name).write_bytes(content)
        else:
            content(tmp_path / name)
    return typed


def remedies(arguments: list[str], said: str) -> list[list[str]]:
    """What to type instead, as it is said. Commands with `…` or words in capitals are for people to fill in."""
    found = []
    for line in said.splitlines():
        for command in re.findall(r"(?:^|: |`|  )jitdb ([a-z][^`…]*)(?:`|$)", line):
            words = shlex.split(command)
            if not any(re.fullmatch(r"[A-Z.]{3,}", word) for word in words):
                found.append(words if words[1:] else [*words, *arguments[1:]])
        for option, value in re.findall(r"pass (--[a-z-]+)(?: '?([\w\[\]]+)'?)?", line):
            at = arguments.index(option) if option in arguments else len(arguments)
            found.append([*arguments[:at], option, *filter(None, [value]), *arguments[at + 2 :]])
        for option in re.findall(r"leave (--[a-z-]+) out", line):
            at = arguments.index(option)
            found.append(arguments[:at] + arguments[at + 2 :])
        for option, value in re.findall(r"(?<!pass )(--each) '([^']+)'", line):
            at = arguments.index(option)
            found.append([*arguments[: at + 1], value, *arguments[at + 2 :]])
        found += [[*arguments[:-1], meant] for meant in re.findall(r"did you mean: (.*)", line)]
        found += [["sh", shell] for shell in re.findall(r"unpack it first: (.*)", line)]
        for asked in re.findall(r"a text in any field: (.*)", line):
            found.append([*arguments[:-1], asked])
        for asked in re.findall(r"`([^`]+)` (?:asks (?:those|all)|looks in all)", line):
            found.append([*arguments[:-1], asked])
        for asked in re.findall(r"ask the time of day as text: (.*)", line):
            found.append([*arguments[:2], asked])
        for cast in re.findall(r"`(duration\([^`]+)` is the length", line):
            found.append([*arguments[:-1], cast])
        for typed, meant in re.findall(r"(?:in `|field `|has )([^`]+?)`?; did you mean `([^`]+)`\?", line):
            found.append([word.replace(typed, meant) for word in arguments])
        for meant in re.findall(r"did you mean ([^`?]+)\?", line):
            near = min(
                arguments[1:],
                key=lambda word: (meant.startswith("-") != word.startswith("-"), len(set(word) ^ set(meant))),
            )
            found.append([meant if word == near else word for word in arguments])
    return found


@pytest.mark.parametrize("there", SITUATIONS, indirect=True)
def test_a_remedy_helps(there: str, tmp_path: Path, run) -> None:
    files = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    arguments = shlex.split(there)
    done = run(*arguments)
    proposed = remedies(arguments, done.stderr)
    assert proposed, done.stderr
    for words in proposed:
        copy = tmp_path.with_name(tmp_path.name + "-copy")
        shutil.copytree(tmp_path, copy)
        if words[0] == "sh":
            subprocess.run(words[1], shell=True, check=True, cwd=tmp_path)
        else:
            helped = run(*words)
            assert (helped.returncode, helped.stdout != "0\n") == (0, True), (words, helped.stderr)
            assert not remedies(words, helped.stderr), helped.stderr
        assert {path: path.read_bytes() for path in files} == files or "--append" in words
        shutil.rmtree(tmp_path)
        copy.rename(tmp_path)
