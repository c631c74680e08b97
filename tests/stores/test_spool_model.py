"""A spool is a dictionary of messages: hypothesis does anything to both, and they stay the same."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from thoroughness import tries

from jitdb.operators import and_, field, lt, lte, or_
from jitdb.stores.spool import Message, MessageId, Shard, Spool

GROUP = b"friends"
SENDERS = [b"\0" * 8, b"ada\0\0\0\0\0", b"bob-----", b"\xff" * 8]
SEQS = [0, 1, 2, 3, 4, 2**53, 2**53 + 1, 2**64 - 2, 2**64 - 1]

senders = st.sampled_from(SENDERS)
seqs = st.sampled_from(SEQS)
levels = st.integers(0, 3)
data = st.binary(max_size=40)
vectors = st.dictionaries(senders, seqs)


def rebuilt(shards: Sequence[Shard]) -> bytes:
    """A code that is none, but shows which shards there were."""
    return b"|".join(bytes([shard.shard_index]) + shard.data for shard in shards)


class Model:
    """The document, as a loop over a dictionary. A value is (level, message), or (level, needed, total, shards)."""

    def __init__(self) -> None:
        self.held: dict[tuple[bytes, int], Any] = {}

    def put(self, key: tuple[bytes, int], level: int, message: bytes) -> None:
        self.held[key] = (level, message)

    def put_shard(self, key: tuple[bytes, int], level: int, shard: Shard) -> None:
        coding = (level, shard.data_shards, shard.total_shards)
        there = self.held.get(key)
        shards = there[3] if there is not None and there[:3] == coding else {}
        self.held[key] = (*coding, {**shards, shard.shard_index: shard})

    def after(self, vector: dict[bytes, int]) -> tuple[list[Message], list[tuple[bytes, int]]]:
        whole: list[Message] = []
        rest = []
        for (sender, seq), value in sorted(self.held.items()):
            if seq <= vector.get(sender, -1):
                continue
            if len(value) == 2:
                whole.append(Message(sender, seq, *value))
            elif len(value[3]) >= value[1]:
                shards = tuple(value[3][index] for index in sorted(value[3]))
                whole.append(Message(sender, seq, value[0], None, shards))
            else:
                rest.append((sender, seq))
        return whole, rest

    def delete(self, watermark: dict[bytes, int], level: int) -> int:
        gone = [key for key, value in self.held.items() if key[1] <= watermark.get(key[0], -1) and value[0] < level]
        for key in gone:
            del self.held[key]
        return len(gone)


class SpoolMachine(RuleBasedStateMachine):
    """A spool, a reader beside it, and the dictionary."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.model = Model()
        self.reader: Spool | None = None
        self.spool = Spool(self.folder, create=True, block_size=4096)
        self.spool.store(GROUP, SENDERS[1], 1, 0, b"first")
        self.model.put((SENDERS[1], 1), 0, b"first")

    def teardown(self) -> None:
        if hasattr(self, "spool"):
            self.spool.close()
            if self.reader is not None:
                self.reader.close()
            shutil.rmtree(self.folder)

    @rule(sender=senders, seq=seqs, level=levels, message=data)
    def store(self, sender: bytes, seq: int, level: int, message: bytes) -> None:
        self.spool.store(GROUP, sender, seq, level, message)
        self.model.put((sender, seq), level, message)

    @rule(sender=senders, seq=seqs, message=data)
    def store_as_of_old(self, sender: bytes, seq: int, message: bytes) -> None:
        self.spool.store(GROUP, sender, seq, None, message)
        self.model.put((sender, seq), 0, message)

    @rule(sender=senders, seq=st.sampled_from(SEQS[:4]), level=st.integers(1, 2), index=st.integers(0, 2),
          needed=st.integers(1, 3), piece=data)  # fmt: skip
    def store_shard(self, sender: bytes, seq: int, level: int, index: int, needed: int, piece: bytes) -> None:
        self.spool.store_shard(GROUP, sender, seq, level, index, needed, 3, piece)
        self.model.put_shard((sender, seq), level, Shard(index, needed, 3, piece))

    @rule(sender=senders, level=levels, count=st.integers(1, 30), first=st.integers(5, 100))
    def store_many(self, sender: bytes, level: int, count: int, first: int) -> None:
        for seq in range(first, first + count):
            self.spool.store(GROUP, sender, seq, level, b"%d" % seq)
            self.model.put((sender, seq), level, b"%d" % seq)

    @rule(watermark=vectors, level=levels)
    def delete_before(self, watermark: dict[bytes, int], level: int) -> None:
        assert self.spool.delete_before(GROUP, watermark, level) == self.model.delete(watermark, level)

    @rule(vector=vectors)
    def messages_after(self, vector: dict[bytes, int]) -> None:
        found = self.spool.messages_after(GROUP, vector)
        assert (found.messages, found.incomplete) == self.model.after(vector)
        assert found.next is None

    @rule(vector=vectors, limit=st.integers(1, 5))
    def messages_after_in_parts(self, vector: dict[bytes, int], limit: int) -> None:
        messages: list[Message] = []
        incomplete: list[MessageId] = []
        token = None
        while True:
            found = self.spool.messages_after(GROUP, vector, limit, after=token)
            messages += found.messages
            incomplete += found.incomplete
            assert len(found.messages) <= limit
            token = found.next
            if token is None:
                break
            assert len(found.messages) == limit
        assert (messages, incomplete) == self.model.after(vector)

    @rule()
    def rebuild(self) -> None:
        found = self.spool.messages_after(GROUP, {}, rebuild=rebuilt)
        expected = [
            each if each.message is not None else each._replace(message=rebuilt(each.shards), shards=())
            for each in self.model.after({})[0]
        ]
        assert found.messages == expected

    @rule()
    def flush(self) -> None:
        self.spool.flush()

    @rule()
    def compact(self) -> None:
        self.spool.compact(GROUP)
        assert self.spool.group(GROUP).log.stats().deleted_records == 0

    @rule()
    def reopen(self) -> None:
        self.spool.close()
        self.spool = Spool(self.folder)

    @rule(vector=vectors)
    def read_beside(self, vector: dict[bytes, int]) -> None:
        self.spool.flush()
        if self.reader is None:
            self.reader = Spool(self.folder, read_only=True)
        self.reader.refresh()
        found = self.reader.messages_after(GROUP, vector)
        assert (found.messages, found.incomplete) == self.model.after(vector)

    @rule(watermark=vectors, level=levels)
    def ask_the_engine(self, watermark: dict[bytes, int], level: int) -> None:
        """Of the messages that would be deleted, every operator says the same."""
        self.spool.flush()
        index = self.spool.group(GROUP).index
        reached = [and_(field("sender") == sender, lte(seq, "seq")) for sender, seq in watermark.items()]
        if not reached:
            return
        below = or_(lt(level, "level"), field("level").absent()) if level else lt(0, "level")
        expected = sum(
            len(value[3]) if len(value) == 4 else 1
            for (sender, seq), value in self.model.held.items()
            if seq <= watermark.get(sender, -1) and value[0] < level
        )
        assert index.count(and_(or_(*reached), below)) == expected

    @invariant()
    def vector_is_reached(self) -> None:
        if hasattr(self, "spool"):
            vector = self.spool.state_vector(GROUP)
            assert all(vector[sender] >= seq for sender, seq in self.model.held)


SpoolMachine.TestCase.settings = settings(
    max_examples=tries(15, 1000), stateful_step_count=tries(30, 60), deadline=None
)
TestSpool = SpoolMachine.TestCase
