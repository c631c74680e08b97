"""Questions over the simulated disk: indexes are built, extended, merged, cut short, taken over and remapped there.

Each answer is compared with the model, in the writer and in readers, before and after power failures and kills.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from typing import Any, Final

from engine_helpers import manager_of
from faults.campaign import Campaign
from faults.histories import PATH, History
from faults.histories import run as run_history
from faults.simulated import Process, running
from oracle import same

from jitdb import JITDB
from jitdb.errors import IndexDamaged, IndexWarning
from jitdb.indexes.files import index as index_module
from jitdb.indexes.files.index import Index
from jitdb.indexes.kinds.set import records_in_sets
from jitdb.log import Log
from jitdb.log.codecs import get_codec
from jitdb.operators import equal, gt, not_
from jitdb.operators.nodes.operation import Operation

KINDS: Final = 5
FAN_IN: Final = 2  # segments of one size that are merged into one: more merging than usual


class Asking(History):
    """A history of a log that is asked."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.codec = "msgpack"
        self.block_size = self.rng.choice([512, 1024, 4096, 65536])
        self.db: JITDB | None = None
        self.saw_unsynced = False  # a reader's indexes may know of a deletion that a power failure takes back

    def ask(self, log: Log) -> None:
        """The writer asks."""
        if self.db is None or self.db.log is not log or self.rng.random() < 0.2:
            self.db = JITDB(log, threads=1)
        log.flush()
        self.model.flushed()
        self._compare(self.db, certain=True)

    def _seen(self, reader: Log) -> None:
        super()._seen(reader)
        if self.rng.random() < 0.7:
            self.saw_unsynced |= bool(self.model.asked - self.model.deleted)
            self._compare(JITDB(reader, threads=1), certain=False)

    def _compare(self, db: JITDB, *, certain: bool) -> None:
        """Some question. `certain`: no deletion is under way, of which a reader may know already."""
        kind = self.rng.randrange(KINDS)
        questions: list[tuple[Operation, Callable[[Any], bool]]] = [
            (equal("kind", kind), lambda value: same(value["kind"], kind)),
            (not_(equal("kind", kind)), lambda value: not same(value["kind"], kind)),
            (gt(5 * 10**10, "number"), lambda value: value["number"] > 5 * 10**10),
            (equal("text", "x" * 5), lambda value: value["text"] == "x" * 5),
        ]
        operation, holds = self.rng.choice(questions)
        held = list(zip(self.model.held, self.model.offsets, strict=True))[: self.model.durable]
        decode = get_codec("msgpack").decode
        matching = [(number, offset) for number, offset in held if holds(decode(self.model.records[number]))]
        wanted = [offset for number, offset in matching if number not in self.model.asked]
        perhaps = {offset for number, offset in matching if number in self.model.asked - self.model.deleted}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IndexWarning)
            found = db.all(operation, as_offsets=True, sort_by="arrival")
            assert db.count(operation) == len(found)
        if certain:
            assert found == wanted, f"{operation}: {found}, expected {wanted}"
        else:
            assert [offset for offset in found if offset not in perhaps] == wanted, f"{operation}: a reader's answer"

    STEPS = (*History.STEPS, (20, ask))

    def killed(self) -> None:
        self.db = None
        super().killed()

    def forget(self) -> None:
        self.db = None
        gc.collect()  # index files are closed when nobody needs them

    def after(self) -> None:
        """Then all is asked once more, and of indexes that are built anew."""
        super().after()
        with running(Process(self.disk)), Log(PATH) as log:
            for folder in (None, "/disk/other"):
                db = JITDB(log, folder, threads=1)
                for _ in range(6):
                    self._compare(db, certain=True)
            if self.model.asked & set(self.model.held):
                return  # what was indexed before it was deleted stays in an index, and no answer shows it
            kept, fresh = (self._merged(log, folder) for folder in (str(log.sidecar / "indexes"), "/disk/other"))
            if self.saw_unsynced and b'"content"' in b"".join(kept.values()):
                return  # they leave out what is there again, so they were built anew under another name
            different = [name for name, data in fresh.items() if kept[name] != data]
            assert not different, f"{different} are not what they are when they are built anew"
            del db
            self.forget()

    def _merged(self, log: Log, folder: str) -> dict[str, bytes]:
        """The bytes of each index in the folder in its canonical form."""
        while True:
            db = JITDB(log, folder, threads=1)
            db.prepare(equal("kind", 1))
            try:
                for index in list(manager_of(db).opened()):
                    index.merge()
                break
            except IndexDamaged as damage:  # torn, and nobody has asked of it yet
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", IndexWarning)
                    manager_of(db).drop_damaged(damage, None)
        return {
            index.path.name: comparable(index, bytes(self.disk.files()[str(index.path)].data))
            for index in manager_of(db).opened()
            if index.path is not None
        }


def comparable(index: Index, data: bytes) -> bytes:
    """What one that is built anew has too: its file's bytes, but of the index of deleted records the records alone.

    For its fingerprint tells which blocks a checksum proved when they were scanned.
    """
    if index.spec.form == "deleted":
        return repr([records_in_sets([segment]) for segment in index.segments]).encode()
    return data


def run(seed: int) -> int:
    """One case; how many times the power went or the process was killed."""
    before, index_module.FAN_IN = index_module.FAN_IN, FAN_IN  # type: ignore[misc]
    try:
        return run_history(seed, Asking)
    finally:
        index_module.FAN_IN = before  # type: ignore[misc]


CAMPAIGN = Campaign(
    name="questions",
    fault="the same with questions between: index files are cut short too",
    holds="every answer is the model's; each index, merged, has the bytes of one that was built anew",
    run=run,
    short=10,
    full=10_000,
)
