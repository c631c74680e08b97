"""jitdb import by kernels makes the very log that json makes, and says the same."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from cli_helpers import environment, records_of
from json_cases import lines, record_of
from thoroughness import tries
from waiting import until

from jitdb.cli import main
from jitdb.cli.input import import_target, sources
from jitdb.log import Log


class Ways:
    """Runs a command twice, each time in a folder of its own: by json alone, and by the kernel as soon as it can be."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folders = folder / "json", folder / "kernel"
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def write(self, data: bytes) -> None:
        for folder in self.folders:
            folder.mkdir(exist_ok=True)
            (folder / "in.ndjson").write_bytes(data)

    def run(self, *command: str) -> tuple[int, str, bytes]:
        """What both say and make."""
        found = []
        for folder, worth in zip(self.folders, (1 << 60, 0), strict=True):
            self._monkeypatch.chdir(folder)
            self._monkeypatch.setattr(import_target, "WORTH", worth)
            self._monkeypatch.setattr(import_target, "WORTH_COMPILING", 0)
            self._monkeypatch.setattr(sources, "READ", 20_000 if worth == 0 else 1 << 20)
            code = main(list(command))
            said = self._capsys.readouterr()
            log = folder / "out.log"
            out = re.sub(r"; [\d.,]+ s.*", "", said.out)
            found.append((code, said.err + out, log.read_bytes() if log.exists() else b""))
        assert found[0] == found[1]
        return found[0]


@pytest.fixture
def ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ways:
    return Ways(tmp_path, monkeypatch, capsys)


def with_blanks(random: Random, some: list[bytes]) -> bytes:
    spread = [line for each in some for line in (each, *random.choices([b"", b" ", b"\r"], k=random.random() < 0.1))]
    return random.choice([b"\n", b"\r\n"]).join(spread) + random.choice([b"", b"\n"])


@pytest.mark.parametrize("codec", ["json", "msgpack"])
@pytest.mark.parametrize("seed", range(tries(4, 100)))
def test_the_same_log(ways: Ways, codec: str, seed: int) -> None:
    random = Random(seed)
    some = lines(random, 300)
    tagged = random.choice([[], ["--tagged"]])
    ways.write(with_blanks(random, some))
    code, said, log = ways.run("import", "--skip-bad", "--codec", codec, *tagged, "in.ndjson", "out.log")
    assert code == 1
    assert "were skipped" in said
    assert len(log) > 20_000
    line = str(random.randrange(1, 300))
    ways.run("import", "--append", "--skip-bad", "--from-line", line, "in.ndjson", "out.log")
    made = [record_of(line, codec, tagged=bool(tagged)) for line in some]
    good = [record for record in made if record is not None and any(record)]
    with Log("out.log", read_only=True) as found:
        records = [record.value for record in found.stream(raw=True, limit=len(good))]
    assert records == good


@pytest.mark.parametrize("codec", ["json", "msgpack"])
@pytest.mark.parametrize("seed", range(tries(8, 200)))
def test_the_same_refusal(ways: Ways, codec: str, seed: int) -> None:
    random = Random(seed)
    some = lines(random, 200)
    good = [line for line in some if any(record_of(line, codec) or b"")]
    bad = [line for line in some if line.strip() and line not in good]
    at = random.randrange(len(good))
    ways.write(with_blanks(random, good[:at]) + b"\n" + random.choice(bad) + b"\n" + with_blanks(random, good[at:]))
    code, said, _ = ways.run("import", "--codec", codec, "in.ndjson", "out.log")
    assert code == 1
    assert "in.ndjson, line " in said
    ways.write(with_blanks(random, good))
    if "they stay in" in said:
        _, said, _ = ways.run("import", "--append", "in.ndjson", "out.log")
        assert "were imported" in said


def test_records_that_grow(ways: Ways) -> None:
    some = [b'{"n":%d,"text":"%s"}' % (size, b"x" * size) for size in (10, 65_500, 65_530, 10, 70_000, 300_000, 10)]
    ways.write(b"\n".join(some * 3))
    _, said, _ = ways.run("import", "in.ndjson", "out.log")
    assert "blocks of 524,288 bytes" in said
    _, said, _ = ways.run("import", "--append", "--skip-bad", "in.ndjson", "out.log")
    assert "21 records were imported" in said


def test_gzip(ways: Ways) -> None:
    data = b"".join(b'{"n": %d, "text": "%s"}\n' % (number, b"x" * (number % 99)) for number in range(30_000))
    ways.write(gzip.compress(data, 1))
    ways.run("import", "in.ndjson", "out.log")
    assert [record["n"] for record in records_of(Path("out.log"))] == list(range(30_000))
    ways.write(gzip.compress(data, 1)[:-3000])
    _, said, _ = ways.run("import", "--append", "in.ndjson", "out.log")
    assert "the gzip data are cut off" in said
    assert re.search(r"behind line 2\d,\d\d\d:", said)


def test_a_pipe_is_handed_on_at_once(tmp_path: Path) -> None:
    """Also where as much comes at once as the kernel takes."""
    some = [b'{"n": %d, "text": "%s"}\n' % (number, b"x" * 90) for number in range(600)]
    with subprocess.Popen(
        [sys.executable, "-m", "jitdb", "import", "-", "out.log"],
        cwd=tmp_path, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, bufsize=0,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        for count in (300, 301, 599):
            before = 0 if count == 300 else 300 if count == 301 else 301
            os.write(process.stdin.fileno(), b"".join(some[before:count]) + some[count][:5])
            some[count] = some[count][5:]
            until(lambda: (tmp_path / "out.log").exists() and len(records_of(tmp_path / "out.log")) == count)  # noqa: B023
        process.stdin.close()
        assert process.wait(60) == 1  # the last line is cut off
