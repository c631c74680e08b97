"""One group: its log, and the keys that say where in it each message is.

What takes the place of a record is appended, and the record deleted once that is durable: after a crash at any moment
one of both is there, or both, of which the later one counts.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from jitdb.engine.answering.finder import Columns
from jitdb.engine.database import JITDB
from jitdb.errors import LogClosed, LogError
from jitdb.indexes.kinds.kernels import seen
from jitdb.log.log import Log
from jitdb.stores.spool.keys import NUMBERS, VALUES, WHOLE, Keys, Run
from jitdb.stores.spool.record import Message, MessageId, Shard, SpoolError, decoded, encoded
from jitdb.stores.spool.subscription import StateVector, Subscription


class Read(NamedTuple):
    """What the next keys hold: messages, in their order, and those of which too few shards are here."""

    messages: list[Message]
    incomplete: list[MessageId]
    last: MessageId | None  # of all these


class Group:
    """The messages of one group. Safe for threads: one at a time.

    log: where they lie; index: what can be asked of it
    """

    def __init__(self, path: Path, *, block_size: int, read_only: bool) -> None:
        new = not path.exists()
        self.log = Log(path, codec="msgpack", block_size=block_size if new else None, read_only=read_only)
        self.index = JITDB(self.log, timestamp="seq", time_unit="number", sequence="seq", progress=False)
        self.index.warns_of_questions = False  # that there is none of something is an answer of the store's
        self._lock = threading.RLock()
        self._idle = threading.Condition(self._lock)
        self._is_compacting = False
        self._loaded: Keys | None = None
        self._end = self._end_seq = 0  # how far the keys know the log, in bytes and in records: of a reader
        self._state: tuple[object, ...] = ()  # in which the log was then
        self._stale: deque[tuple[int, int]] = deque()  # to be deleted: their offsets, and of what took their places
        self._subscriptions: list[Subscription] = []
        self._unwatch: Callable[[], None] | None = None
        self._stop = self.log.on_since(self._settle)

    # --- writing -----------------------------------------------------------------------------------------------------

    def put(self, key: MessageId, level: int | None, value: bytes | Shard) -> None:
        """Store a message or a shard; without a level, as the old format has it."""
        with self._lock:
            keys, known = self._keys(), level or 0
            before = keys.vector.get(key.sender, -1)
            offset = self.log.append(encoded(*key, level, value))
            part = bytes(value[:3]) if isinstance(value, Shard) else WHOLE
            self._stale.extend((stale, offset) for stale in keys.put(key, offset, known, part))
        if key.seq > before:
            self._tell()

    def delete_before(self, watermark: Mapping[bytes, int], level: int) -> int:
        """Delete the messages below this level that the watermark reaches; how many they are."""
        with self._alone():
            keys = self._keys()
            chosen = keys.below(watermark, level)
            if not chosen:
                return 0
            if self._stale:  # what these took the place of must be gone before they are
                self.log.flush()
                self._settle()
            self.log.delete_many(keys.offsets(chosen))
            count = keys.count(chosen)
            keys.remove(chosen)
            return count

    def _settle(self, since: int = -1) -> None:
        """Delete the records in whose place others have come that are durable."""
        if self._is_compacting:  # no lock: whoever compacts may call this
            return  # what takes places meanwhile is found when the log is loaded anew
        with self._lock:
            gone = []
            while self._stale and self._stale[0][1] < self.log.durable_end:
                gone.append(self._stale.popleft()[0])
            if gone:
                self.log.delete_many(gone)

    def flush(self) -> None:
        """Return when all that was stored and deleted is on the disk. Raises LogWriteFailed."""
        self.log.flush()
        if not self.log.read_only:
            self._settle()
            self.log.flush()

    def compact(self) -> int:
        """Give back the room of what was deleted; how many bytes. Others store and read meanwhile; deletions wait."""
        with self._alone():
            self._keys()
            self.flush()
            self._is_compacting = True
        try:
            done = self.index.compact()
        finally:
            with self._lock:
                self._is_compacting = False
                self._idle.notify_all()
                self._stale.clear()
                if not self.log.closed:
                    self._load_anew()
        return done.bytes_before - done.bytes_after

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """While nobody else deletes or compacts: offsets stay what they are."""
        with self._lock:
            self._idle.wait_for(lambda: not self._is_compacting)
            yield

    def _is_same_file(self) -> bool:
        """Whether the log was not compacted since it was loaded."""
        return self._state[1:2] == (self.log.generation,)

    # --- reading -----------------------------------------------------------------------------------------------------

    def read(self, vector: Mapping[bytes, int], behind: MessageId | None, count: int) -> Read:
        """What the next so many keys behind one hold. Others go on while these are read."""
        with self._lock:
            keys = self._keys()
            runs = keys.after(vector, behind, count)
        with suppress(LogError, SpoolError):  # what was compacted meanwhile is elsewhere
            read = self._messages(runs)
            if read is not None and keys is self._loaded and self._is_same_file():
                return read
        with self._alone():  # some of them were deleted meanwhile, or others put in their places: now nobody can
            while True:
                read = self._messages(self._keys().after(vector, behind, count))
                if read is not None:
                    return read
                self._load_anew()  # but a writer elsewhere

    def _messages(self, runs: list[Run]) -> Read | None:
        """What these keys hold; None where a record of them is not there any more."""
        offsets = [offset for run in runs if run.is_whole for offset in run.offsets]
        records = self.log.get_many_raw(np.array(offsets, np.int64))
        if None in records:
            return None
        held = map(self.log.codec.decode, cast("list[bytes]", records))
        read = Read([], [], MessageId(runs[-1].sender, runs[-1].seqs[-1]) if runs else None)
        for run in runs:
            sender = run.sender
            if not run.needed:
                read.messages.extend(
                    Message(sender, seq, level, cast("bytes", decoded(record, sender, seq)))
                    for seq, level, record in zip(run.seqs, run.levels, islice(held, len(run.seqs)), strict=True)
                )
            elif run.is_whole:
                shards = tuple(
                    cast("Shard", decoded(each, sender, run.seqs[0])) for each in islice(held, len(run.offsets))
                )
                read.messages.append(Message(sender, run.seqs[0], run.levels[0], None, shards))
            else:
                read.incomplete.append(MessageId(sender, run.seqs[0]))
        return read

    def is_more(self, vector: Mapping[bytes, int], behind: MessageId) -> bool:
        """Whether there is a key behind this one."""
        with self._lock:
            return bool(self._keys().after(vector, behind, 1))

    def state_vector(self) -> StateVector:
        """The highest seq that each sender ever had here."""
        with self._lock:
            return dict(self._keys().vector)

    def refresh(self) -> None:
        """Of a reader: see what the writer did."""
        if not self.log.read_only:
            return
        with self._lock:
            before = self._keys().vector.copy()
            self.log.refresh()
            if self._log_state() != self._state:
                self._load(before.copy())
            elif self.log.durable_end > self._end:
                self._end = self.log.durable_end
                columns = self._columns(self._end_seq)
                self._end_seq = columns.end_seq
                self._keys().follow(columns)
            is_news = self._keys().vector != before
        if is_news:
            self._tell()

    def _keys(self) -> Keys:
        return self._loaded if self._loaded is not None else self._load({})

    def _load_anew(self) -> None:
        keys = self._keys()
        if self.log.read_only:
            self.log.refresh()
        else:
            self.flush()
        self._load(keys.vector)

    def _load(self, vector: StateVector) -> Keys:
        """Have the indexes say what is there, which is durable; `vector` is how far the keys ever reached."""
        keys, self._state, self._end = Keys(), self._log_state(), self.log.durable_end
        keys.vector = vector
        columns = self._columns(0)
        stale = keys.load(columns)
        self._loaded, self._end_seq = keys, columns.end_seq
        if not self.log.read_only and stale:  # somebody died before they were deleted
            self.log.delete_many(stale)
        return keys

    def _columns(self, start: int) -> Columns:
        """What the keys are made of, of the records from this one on."""
        columns = self.index.columns(NUMBERS, VALUES, start=start)
        # A column has "1" as 1, and a record with that is no message.
        if self.index.evidence().seen_in(NUMBERS) & seen.TEXTS:
            codec, records = self.log.codec, self.log.get_many_raw(columns.offsets)
            is_text = [isinstance(codec.find(record or b"", NUMBERS), str) for record in records]
            columns.numbers[0].hi[is_text] = math.nan
        return columns

    def _log_state(self) -> tuple[object, ...]:
        """Stays equal while nothing but appends happens to the log."""
        log = self.log
        return log.identity, log.generation, log.deletion_position(), log.foreign_change_token()

    # --- who waits ---------------------------------------------------------------------------------------------------

    def subscribe(self, callback: Callable[[StateVector], object] | None, timeout: float | None) -> Subscription:
        with self._lock:
            self._keys()
            subscription = Subscription(callback, timeout=timeout, ended=self._unsubscribe, most=1)
            self._subscriptions.append(subscription)
            if self.log.read_only and self._unwatch is None:
                self._unwatch = self.log.watch(self._look)
            return subscription

    def _look(self) -> None:
        with suppress(LogClosed):
            self.refresh()

    def _unsubscribe(self, subscription: Subscription) -> None:
        with self._lock:
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)
            if not self._subscriptions and self._unwatch is not None:
                self._unwatch()
                self._unwatch = None

    def _tell(self) -> None:
        for subscription in list(self._subscriptions):
            subscription.tell(self.state_vector)

    def close(self) -> None:
        """Flush and close. Safe to call twice."""
        for subscription in list(self._subscriptions):
            subscription.close()
        try:
            if not self.log.closed:
                self.flush()
        finally:
            self._stop()
            self.index.close()
