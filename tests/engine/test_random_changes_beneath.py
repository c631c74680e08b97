"""Files changed, swapped, mixed and restored beneath their indexes, at random: no answer may be wrong silently.

What counts is a plain reading of the log's file as it is. An answer is that, or a JitdbError; what is damaged is left
out with a DamageWarning, and ends the case.
"""

from __future__ import annotations

import os
import shutil
import warnings
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from engine_helpers import oracle_of
from thoroughness import tries

from jitdb import JITDB, Log
from jitdb.errors import DamageWarning, JitdbError
from jitdb.log.blocks.block_format import is_zero, walk_block
from jitdb.operators import equal, field, not_
from jitdb.operators.nodes.operation import Operation

pytestmark = pytest.mark.slow

BLOCK: Final = 256
QUESTIONS: Final[tuple[Operation, ...]] = (
    field("t") == "a",
    field("t") == "b",
    not_(field("t") == "a"),
    (field("n") >= 8) & (field("n") <= 40),
    field("n") == 12,
    field("key").starts_with("k1"),
    equal("root", "r3", prefix=32),
)


class Attack:
    """One log, its indexes, backups of both, and whoever spoils them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = Random(seed)
        self.folder = folder
        self.path = folder / "x.log"
        self.sidecar = folder / "x.log.jitdb"
        self.kept = folder / "kept" if self.rng.random() < 0.4 else self.sidecar / "indexes"
        self.next = 0
        self.clock = 0
        self.backups: list[Path] = []
        self.told: list[str] = []

    def record(self) -> dict[str, Any]:
        self.next += 1
        n = self.next
        return {
            "n": n % 60, "t": self.rng.choice("ab"), "key": f"k{n}", "root": f"r{n % 7}", "timestamp": n,
            "pad": "x" * self.rng.randrange(30),
        }  # fmt: skip

    # --- honest --------------------------------------------------------------------------------------------------

    def write(self) -> None:
        with Log(self.path, block_size=BLOCK) as log:
            log.append_many([self.record() for _ in range(self.rng.randrange(1, 25))])
            log.flush()
            live = [each.offset for each in log.stream()]
            for offset in self.rng.sample(live, min(len(live), self.rng.choice([0, 0, 1, 3]))):
                log.delete(offset)
            log.flush()
            if self.rng.random() < 0.5:
                self.ask(log)
            if self.rng.random() < 0.1:
                log.compact()

    def read(self) -> None:
        with Log(self.path, read_only=True) as log:
            self.ask(log)

    def ask(self, log: Log) -> None:
        """Some of the questions, in some of the ways, each held against the file."""
        db, rng = JITDB(log, self.kept), self.rng
        for question in rng.sample(QUESTIONS, rng.randrange(1, len(QUESTIONS) + 1)):
            way = rng.randrange(3)
            try:
                if way == 0:
                    found: Any = db.count(question)
                elif way == 1:
                    found = sorted(db.all(question, as_offsets=True))
                else:
                    found = sorted(record["key"] for page in db.pages(question, limit=7) for record in page.data)
            except JitdbError as error:
                self.told.append(f"{type(error).__name__}: {error}")
                continue
            oracle = oracle_of(log)
            right = oracle.matches(question)
            expected = (
                len(right),
                sorted(oracle.offsets[seq] for seq in right),
                sorted(oracle.records[seq]["key"] for seq in right),
            )
            assert found == expected[way], (question, way)

    # --- not honest ----------------------------------------------------------------------------------------------

    def touch(self) -> None:
        self.clock += 1
        os.utime(self.path, ns=(0, 1_900_000_000_000_000_000 + self.clock * 1_000_000_000))

    def change_values(self) -> None:
        """Other values in live records, which decode as before."""
        data = bytearray(self.path.read_bytes())
        places = []
        for begin in range(0, len(data), BLOCK):
            block = bytes(data[begin : begin + BLOCK])
            walk = walk_block(block, len(block), BLOCK)
            for position, length in zip(walk.positions, walk.lengths, strict=True):
                if not is_zero(block[position + 2 : position + 2 + length]):
                    places.append(begin + block.index(b"\xa1t\xa1", position) + 3)
        for place in self.rng.sample(places, min(len(places), self.rng.randrange(1, 4))):
            data[place] = ord("b") if data[place] == ord("a") else ord("a")
        self.path.write_bytes(data)
        self.touch()

    def swap_blocks(self) -> None:
        data = self.path.read_bytes()
        blocks = [data[at : at + BLOCK] for at in range(0, len(data), BLOCK)]
        if len(blocks) > 2:
            one, other = self.rng.sample(range(len(blocks) - 1), 2)
            blocks[one], blocks[other] = blocks[other], blocks[one]
            self.path.write_bytes(b"".join(blocks))
            self.touch()

    def block_of_another_moment(self) -> None:
        data = bytearray(self.path.read_bytes())
        old = (self.rng.choice(self.backups) / "x.log").read_bytes() if self.backups else b""
        common = min(len(data), len(old)) // BLOCK
        if common:
            at = BLOCK * self.rng.randrange(common)
            data[at : at + BLOCK] = old[at : at + BLOCK]
            self.path.write_bytes(data)
            self.touch()

    def back_up(self) -> None:
        target = self.folder / f"backup-{len(self.backups)}"
        target.mkdir()
        shutil.copy2(self.path, target)
        shutil.copytree(self.sidecar, target / "sidecar")
        if self.kept.parent == self.folder and self.kept.exists():
            shutil.copytree(self.kept, target / "kept")
        self.backups.append(target)

    def restore(self) -> None:
        """Log and sidecar of a moment, or the log alone; its indexes, or those that there are."""
        if not self.backups:
            return
        source = self.rng.choice(self.backups)
        indexes = self.folder / "indexes-of-now"
        shutil.rmtree(indexes, ignore_errors=True)
        if self.kept.exists():
            shutil.copytree(self.kept, indexes)
        shutil.copy2(source / "x.log", self.path)
        if self.rng.random() < 0.8:
            shutil.rmtree(self.sidecar)
            shutil.copytree(source / "sidecar", self.sidecar)
        if self.rng.random() < 0.6 and indexes.exists():
            shutil.rmtree(self.kept, ignore_errors=True)
            shutil.copytree(indexes, self.kept)
        if self.rng.random() < 0.3:
            self.touch()

    # --- all of it -----------------------------------------------------------------------------------------------

    def run(self, steps: int) -> None:
        self.write()
        attacks = (self.change_values, self.swap_blocks, self.block_of_another_moment, self.touch, self.restore)
        steps_of = (*attacks, self.change_values, self.back_up, self.back_up, self.write, self.write)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for _ in range(steps):
                step = self.rng.choice(steps_of)
                self.told.append(step.__name__)
                try:
                    step()
                    self.told.append("read")
                    self.read()
                except JitdbError as error:
                    self.told.append(f"{type(error).__name__}: {error}")
                if any(issubclass(each.category, DamageWarning) for each in told):
                    return


@pytest.mark.parametrize("seed", range(tries(16, 400)))
def test_no_answer_is_wrong_silently(tmp_path: Path, seed: int) -> None:
    attack = Attack(tmp_path, seed)
    try:
        attack.run(8)
    except AssertionError as error:
        raise AssertionError("\n".join([*attack.told, str(error)])) from error
