"""Records whose bytes were changed anywhere, read by kernels that check every index, and by those that are shipped.

A case makes some thousand records of a few shapes, changes bytes of nearly all of them, and reads them in two
processes: in one, numba compiles the kernels with bounds checks, which end it with an IndexError (of a sample, they run
as Python, where numpy checks them); the other uses the kernels as they are installed. Both find the same, inside of
each record, whatever lies around it and came before it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from random import Random
from typing import Any, Final
from zlib import crc32

HERE: Final = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]

import numpy as np  # noqa: E402
from faults.campaign import Campaign  # noqa: E402
from json_cases import KEYS, LONG, framed, lines, of_programs  # noqa: E402
from kernel_cases import key_at  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from shape_cases import paths_of, some_records, template, twin  # noqa: E402
from thoroughness import THOROUGH, tries  # noqa: E402

from jitdb import JITDB, Log  # noqa: E402
from jitdb.common.values import ABSENT, NUMBER  # noqa: E402
from jitdb.errors import JitdbWarning  # noqa: E402
from jitdb.log.codecs import get_codec  # noqa: E402
from jitdb.log.codecs.fields.located import RecordBatch  # noqa: E402
from jitdb.operators import absent, equal, gt, includes, starts_with  # noqa: E402

CODECS: Final = ("msgpack", "bipf")
RECORDS: Final = tries(2_000, 50_000)  # of each codec in a case
ASKED: Final = 2_000  # of them go through a log and its indexes
HOSTILE: Final = np.array([0, 1, 7, 0x7F, 0x80, 0x8F, 0xC1, 0xC7, 0xDB, 0xDD, 0xDF, 0xF8, 0xFF], np.uint8)


def run(seed: int, records: int = RECORDS) -> int:
    found = read(seed, records)
    with_checks = {
        "JITDB_KERNELS": "numba" if THOROUGH else "python",  # to compile all takes a minute
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_CACHE_DIR": str(Path(tempfile.gettempdir(), f"jitdb-bounds-{os.getuid()}")),  # others do not check
    }
    command = [sys.executable, str(HERE / "mutated.py"), str(seed), str(records)]
    done = subprocess.run(command, env={**os.environ, **with_checks}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == found
    return len(CODECS) * records


def read(seed: int, records: int) -> list[Any]:
    """What is found in the records of a case, as numbers that two processes can compare."""
    return [
        [*read_codec(name, Random(f"{seed} {name}"), records), read_lines(name, Random(seed), records // 50)]
        for name in CODECS
    ] + [[read_programs(Random(seed), records // 10)]]


def read_lines(name: str, rng: Random, count: int) -> int:
    """What the kernel makes of lines of JSON, broken ones too, in one number."""
    found = framed(lines(rng, count))
    return crc32(repr(found).encode())


def read_programs(rng: Random, count: int) -> int:
    """What the kernel finds in lines of JSON as programs write them, broken ones too, in one number."""
    paths = {tuple(rng.sample(KEYS + LONG, rng.randrange(1, 3))) for _ in range(rng.randrange(1, 9))}
    fields, malformed = get_codec("json").locator(sorted(paths)).fields(RecordBatch.of(of_programs(rng, count)))
    keys = [[key_at(values, number) for number in range(count)] for values in fields]
    return crc32(repr((keys, malformed)).encode())


def read_codec(name: str, rng: Random, records: int) -> list[Any]:
    shapes = [template(rng) for _ in range(rng.choice([1, 3, 20]))]
    shapes += [twin(shapes[0], rng) for _ in range(rng.choice([0, 1, 2]))]
    sound = [record for _ in range(8) for record in some_records(name, shapes, rng) if record]
    known = sorted({path for shape in shapes for path in paths_of(shape)}) or [("a",)]
    paths = rng.sample(known, min(len(known), rng.randrange(1, 9)))
    random = np.random.default_rng(rng.randrange(2**32))
    which = random.integers(0, len(sound), records)
    lengths = np.array([len(sound[number]) for number in which], np.int64)
    starts = np.cumsum(lengths) - lengths
    buffer = np.frombuffer(bytearray(b"".join(sound[number] for number in which)), np.uint8)
    lengths = mutate(buffer, starts, lengths, random)
    found = places(name, paths, buffer, starts, lengths)
    compare(found, elsewhere(name, paths, buffer, starts, lengths, random))
    asked = zip(starts[:ASKED].tolist(), lengths[:ASKED].tolist(), strict=True)
    kept = [buffer[start : start + length].tobytes() for start, length in asked]
    return [*(crc32(np.ascontiguousarray(column)) for column in found), *answers(name, paths, kept)]


def mutate(
    buffer: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64], random: np.random.Generator
) -> NDArray[np.int64]:
    """Change up to three bytes of each record, and cut some off; the lengths that are left."""
    for _ in range(3):
        at = starts + random.integers(0, lengths)
        flipped = buffer[at] ^ (1 << random.integers(0, 8, len(at))).astype(np.uint8)
        any_byte = random.integers(0, 256, len(at)).astype(np.uint8)
        hostile = random.choice(HOSTILE, len(at))
        how = random.integers(0, 8, len(at))
        buffer[at] = np.select([how == 0, how == 1, how == 2], [flipped, any_byte, hostile], buffer[at])
    return np.where(random.random(len(lengths)) < 0.1, random.integers(1, lengths + 1), lengths)


def places(
    name: str,
    paths: list[Any],
    buffer: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> tuple[NDArray[Any], ...]:
    """Kind, place in the record, length and number of each field (a row each) of each record."""
    states = np.zeros(len(starts), np.uint8)
    fields, _ = get_codec(name).locator(paths).fields(RecordBatch(buffer, starts, lengths, states))
    kind, start, length, number = map(np.array, zip(*(values.arrays[1:] for values in fields), strict=True))
    is_there, is_number = kind != ABSENT, kind == NUMBER
    has_bytes = is_there & ~is_number
    start = np.where(has_bytes, start - starts, 0)
    length = np.where(is_there, length, 0)
    number = np.where(is_number, number, 0.0)
    assert (start >= 0).all()
    assert (np.where(has_bytes, start + length, 0) <= lengths).all()
    return kind, start, length, number.view(np.int64), states


def elsewhere(
    name: str,
    paths: list[Any],
    buffer: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    random: np.random.Generator,
) -> tuple[NDArray[Any], ...]:
    """The same of the same records in another order, with other bytes around them; given in the order of before."""
    order = random.permutation(len(starts))
    gap = int(random.choice([1, 16]))
    moved = lengths[order] + gap
    other = np.cumsum(moved) - moved
    room = random.integers(0, 256, int(moved.sum())).astype(np.uint8)
    within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths[order]) - lengths[order], lengths[order])
    room[np.repeat(other, lengths[order]) + within] = buffer[np.repeat(starts[order], lengths[order]) + within]
    back = np.argsort(order)
    return tuple(column[..., back] for column in places(name, paths, room, other, lengths[order]))


def compare(one: tuple[NDArray[Any], ...], other: tuple[NDArray[Any], ...]) -> None:
    for left, right in zip(one, other, strict=True):
        unlike = np.flatnonzero((left != right).reshape(-1, left.shape[-1]).any(axis=0))
        assert not len(unlike), f"record {unlike[0]} is read otherwise elsewhere"


def answers(name: str, paths: list[Any], records: list[bytes]) -> list[Any]:
    """What a database of these records answers; through it come all kernels that an index needs."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", JitdbWarning)
        with Log(Path(folder, "raw.log"), codec="raw") as log:
            log.append_many([record for record in records if any(record)])  # zeroes are a deleted record
        Path(folder, "raw.log").rename(Path(folder, "a.log"))  # alone: its codec is for whoever opens it to say
        with Log(Path(folder, "a.log"), codec=name) as log:
            db = JITDB(log)
            return [
                db.count(question)
                for path in paths
                for question in (
                    equal(path, 1), equal(path, "x"), equal(path, [1, "two"]), equal(path, {"b": 1, "c": [2]}),
                    gt(0, path), starts_with(path, "xx"), includes(path, "two"), absent(path),
                )
            ]  # fmt: skip


CAMPAIGN: Final = Campaign(
    "mutated",
    "records of which bytes were changed or cut off, read by kernels that check every index",
    "no index is out of bounds; the shipped kernels find the same; of a record, its own bytes alone matter",
    run,
    short=1,
    full=200,
)

if __name__ == "__main__":
    print(json.dumps(read(int(sys.argv[1]), int(sys.argv[2]))))
