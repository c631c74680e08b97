"""--in: records whose field is a line of a file, in each command that asks, against a loop over the records."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
RECORDS = [{"n": number % 90, "s": str(number % 70), "m": {"u": f"u{number % 500}"}} for number in range(2000)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "a.ndjson"
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return path


@pytest.mark.parametrize("lines", [1, 3, 40, 300])
def test_the_records_of_any_command(run: Run, log: Path, lines: int) -> None:
    chosen = random.Random(lines).sample(range(600), lines)
    (log.parent / "numbers.txt").write_text("".join(f"{number}\n" for number in chosen))
    (log.parent / "users.txt").write_bytes(
        b"\xef\xbb\xbf" + "\r\n\r\n".join(f"u{number}" for number in chosen).encode()
    )
    wanted = {
        "n=numbers.txt": [record for record in RECORDS if record["n"] in chosen],
        "s=numbers.txt": [record for record in RECORDS if int(record["s"]) in chosen],
        "m.u=users.txt": [record for record in RECORDS if int(record["m"]["u"][1:]) in chosen],
    }
    for asked, expected in wanted.items():
        assert run("count", "a.ndjson", "--in", asked, "-q").stdout == f"{len(expected)}\n"
        shown = run("query", "a.ndjson", "--in", asked, "--arrival", "-q").stdout.splitlines()
        assert list(map(json.loads, shown)) == expected
        table = json.loads(run("values", "a.ndjson", "n", "--in", asked, "--format", "json", "-q").stdout)
        assert table["total"] == len(expected)
    both = [record for record in wanted["n=numbers.txt"] if record in wanted["m.u=users.txt"] and record["n"] > 9]
    done = run("count", "a.ndjson", "n > 9", "--in", "n=numbers.txt", "--in", "m.u=users.txt", "-q")
    assert done.stdout == f"{len(both)}\n"


def test_standard_input_and_what_is_no_list(run: Run, process: Run, log: Path) -> None:
    done = process("count", "a.ndjson", "--in", "n=-", input="".join(f"{number}\n" for number in range(45)))
    assert done.stdout == f"{sum(record['n'] < 45 for record in RECORDS)}\n"
    (log.parent / "empty.txt").write_text("\n\n")
    (log.parent / "bytes.txt").write_bytes(b"a\n\xff\n")
    for asked, code, told in (
        ("n", 2, "a field and a file with a value a line are expected, such as user=users.txt, not 'n'"),
        ("n=none.txt", 1, "the values of none.txt cannot be read: No such file or directory"),
        ("n=bytes.txt", 1, "the values of bytes.txt cannot be read: it is no text of UTF-8"),
        ("n=empty.txt", 2, "--in empty.txt has no line with a value"),
    ):
        done = run("count", "a.ndjson", "--in", asked)
        assert (done.returncode, done.stdout) == (code, "")
        assert told in done.stderr
    assert "cannot be the values of --in, too" in run("count", "-", "--in", "n=-").stderr
    (log.parent / "many.txt").write_text("".join(f"x{number}\n" for number in range(50)))
    assert "has the field `zz`" in run("count", "a.ndjson", "--in", "zz=many.txt").stderr
