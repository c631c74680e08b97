"""A feed: the log of one writer, whose first record is the header, and all others are entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from pyroaring import BitMap

from jitdb.common.paths import TIMESTAMPS
from jitdb.common.values import ABSENT
from jitdb.engine.database import JITDB
from jitdb.errors import DecodeError, RecordTooLarge
from jitdb.indexes.kinds.roaring import members_of
from jitdb.log.codecs.fields.located import RecordBatch
from jitdb.log.log import Log
from jitdb.stores.hyperdb.codec import HyperdbCodec
from jitdb.stores.hyperdb.errors import FeedDamaged
from jitdb.stores.hyperdb.format.entry import Entry, decode_entry, encode_entry
from jitdb.stores.hyperdb.format.path import segments_of
from jitdb.stores.hyperdb.signing.heads import CHUNK, CHUNK_BYTES, Heads, SignedHead, checked_head, signed_heads
from jitdb.stores.hyperdb.signing.keys import KeyPair
from jitdb.stores.hyperdb.signing.merkle import Tree

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.engine.answering.finder import Finder

BLOCK_SIZE: Final = 1 << 20  # of a new feed: an entry must fit a block

_READ_AT_ONCE: Final = 8192  # entries
_FETCH_ANEW: Final = "move the log and its sidecar to another folder, and replicate with a database that has the feed"
_RECENT: Final = 1 << 16  # entries that a dictionary knows before the index takes them over
RECENT_UNDER: Final = 1 << 10  # the same where all of them are looked at, or as many as 1/32 of the feed

_NEVER: Final = 2**63 - 1

Keys: TypeAlias = Sequence[str | None]  # of records; None: of the header


class Feed:
    """One writer's entries, in the order in which they were written.

    path:  where their log lies, which is made when the first one comes
    key:   the public key that names it
    heads: what its owner signed of them

    What was appended is there at once, and durable after flush(), or about a quarter of a second later. Of what was
    there before, the index of keys is asked; of what came since, a dictionary. Not safe for threads.
    """

    def __init__(self, path: Path, key: bytes, *, block_size: int = BLOCK_SIZE, read_only: bool = False) -> None:
        self.key, self.path = key, path
        self._block_size, self._read_only = block_size, read_only
        self._index: JITDB | None = None
        self.heads = Heads(path.with_suffix(".heads"), key, read_only=read_only)
        self._tree: Tree | None = None
        self._scratch = path.with_suffix(".batch")
        if not read_only:
            self._scratch.unlink(missing_ok=True)  # what a crash left of a batch
        self._finder: Finder | None = None
        self._places: list[Finder] = []  # of the segments at each place of a key
        self._offsets: list[int] = []  # of the records behind those that the finder knows
        self._recent: dict[str, list[int]] = {}  # the seqs of those with each key
        self._overwritten = np.empty(0, np.int64)  # of each seq that of a later entry with its key; _NEVER: not known
        self.fault: FeedDamaged | None = None  # that records between others are lost; those before them count
        if path.exists():
            self._open()
            self._check_places()

    def _open(self) -> JITDB:
        block_size = None if self.path.exists() else self._block_size
        log = Log(self.path, codec=HyperdbCodec(), block_size=block_size, read_only=self._read_only)
        self._index = JITDB(log, timestamp=TIMESTAMPS, time_unit="number", progress=False)
        self._index.warns_of_questions = False  # that there is none of something is an answer of the store's
        return self._index

    def _check_places(self) -> None:
        """Where records are lost, see whether those that are left have the numbers with which they were written."""
        length = len(self)
        newest = self.heads.newest(length)
        if self.heads.length <= length:
            return
        sound = self.heads.verified_length(length, self.records)
        if newest is None or sound == newest.length:
            sound = self._first_out_of_place(sound, length)
        if sound < length:
            reason = "it, or what comes before it, is lost of the log, and what is left has other numbers"
            self.fault = FeedDamaged(reason, feed=self.key, seq=sound, path=self.path, remedy=_FETCH_ANEW)

    def _first_out_of_place(self, start: int, stop: int) -> int:
        """The first entry from `start` on that counts itself otherwise, in its clock; `stop` where there is none."""
        try:
            listed = decode_entry(self.record(1)).feeds or ()
            place = listed.index(self.key)
            for seq in range(max(start, 1), stop):  # few, as a head is there after each thousand
                clock = decode_entry(self.record(seq)).clock
                if place < len(clock) and clock[place] > seq + 1:
                    return seq
        except (FeedDamaged, DecodeError, ValueError):  # it says nothing of its place
            pass
        return stop

    def _check_sound(self) -> None:
        if self.fault is not None:
            raise self.fault

    def _for_more(self) -> Log:
        """Its log, to be appended to: what was there before is known."""
        self._check_sound()
        self._index = self._index or self._open()
        self._known()
        return self.log

    @property
    def index(self) -> JITDB:
        """Every question to its log. Raises LogError where it was opened to be read, and nothing was written yet."""
        return self._index or self._open()

    @property
    def log(self) -> Log:
        """Its records. Raises as `index` does."""
        return self.index.log  # type: ignore[return-value]

    def __len__(self) -> int:
        """How many records it has, the header included."""
        return self._known().end_seq + len(self._offsets) if self.fault is None else self.fault.seq

    def record(self, seq: int) -> bytes:
        """The bytes of one. Raises FeedDamaged where there is none."""
        known = self._known()
        recent = seq - known.end_seq
        if seq < 0 or recent >= len(self._offsets) or (self.fault is not None and seq >= self.fault.seq):
            raise FeedDamaged(f"there are {len(self)} entries", feed=self.key, seq=seq)
        return self.log.get_raw(self._offsets[recent] if recent >= 0 else known.offsets.item(seq))

    def records(self, start: int, stop: int) -> Iterator[bytes]:
        """Those from `start` up to `stop`, in order."""
        for begin in range(start, stop, _READ_AT_ONCE):
            yield from map(self.record, range(begin, min(begin + _READ_AT_ONCE, stop)))

    def append(self, entries: Sequence[Entry]) -> None:
        """Append entries of our own; all or none of them, after a crash too. Raises RecordTooLarge, LogWriteFailed."""
        log = self._for_more()
        try:
            offsets = log.append_transaction(entries) if len(entries) > 1 else [log.append(entries[0])]
        except RecordTooLarge:
            if len(entries) < 2:
                raise
            offsets = self._append_whole(entries)
        self._note(offsets, [entry.key for entry in entries])

    def append_encoded(self, records: Sequence[bytes], keys: Keys) -> None:
        """Append records that came from elsewhere, with the keys of those that are entries. Raises as append does."""
        batch = RecordBatch.of(records)
        self._note(self._for_more().append_encoded(batch.buffer, batch.lengths).tolist(), keys)

    def _append_whole(self, entries: Sequence[Entry]) -> list[int]:
        """Append what does not fit one block."""
        end = self.log.durable_end
        try:
            self.log.append_whole([[encode_entry(entry) for entry in entries]], self._scratch)
        finally:
            self._scratch.unlink(missing_ok=True)
        return [record.offset for record in self.log.stream(gte=end, raw=True)][-len(entries) :]

    def _note(self, offsets: Sequence[int], keys: Keys) -> None:
        for seq, key in enumerate(keys, len(self)):
            if key is not None:
                self._recent.setdefault(key, []).append(seq)
        self._offsets += offsets

    def flush(self) -> None:
        """Return when all that was appended is on the disk."""
        if self._index is not None:
            self.log.flush()

    def refresh(self) -> bool:
        """See what another process appended; whether there was anything."""
        changed = False
        if self._index is not None:
            changed = self._index.refresh()
        elif self.path.exists():
            self._open()
            changed = True
        self.heads.refresh()
        if changed:
            self._finder = None
        return changed

    def close(self) -> None:
        if self._index is not None:
            self._index.close()
        self.heads.close()

    # --- what is signed ----------------------------------------------------------------------------------------------

    @property
    def signed_length(self) -> int:
        """How many of its records can be given to others: those up to the newest head."""
        head = self.heads.newest(len(self))
        return 0 if head is None else head.length

    @property
    def lost(self) -> int:
        """How many records were signed that are not here."""
        return max(0, self.heads.length - len(self))

    def sign(self, keys: KeyPair) -> None:
        """Sign what was appended since the last time; it is durable first, and so are the heads then."""
        if self.heads.length < len(self):
            self.flush()
            tree = self._newest_tree(self.signed_length)
            self.heads.add(signed_heads(tree, self.records(tree.length, len(self)), keys))

    def chunk(self, start: int) -> tuple[list[bytes], SignedHead] | None:
        """Records from this one on, about CHUNK or CHUNK_BYTES of them, and the head that they end with; None where no
        head is of more.
        """
        found: list[bytes] = []
        end, size = None, 0
        for head in self.heads.after(start, len(self)):
            if found and (head.length - start > CHUNK or size >= CHUNK_BYTES):
                break
            more = list(self.records(start + len(found), head.length))
            found += more
            end, size = head, size + sum(map(len, more))
        return None if end is None else (found, end)

    def accept(self, records: Sequence[bytes], head: SignedHead, check: Callable[[Sequence[bytes]], Keys]) -> None:
        """Append records that came from elsewhere, if the feed's owner signed them: the head is durable before them.

        check: what they hold is looked at by it once they are authentic; the keys of those that are entries

        Raises NotAuthentic, what `check` does, and as append does.
        """
        self._check_sound()
        tree = self._newest_tree(len(self)).copy()
        tree.extend(records)
        checked_head(head, tree, self.key)
        keys = check(records)
        self.heads.add([(head, tree)])
        self.append_encoded(records, keys)
        self._tree = tree

    def _newest_tree(self, length: int) -> Tree:
        """The tree over so many records, no fewer than the last time."""
        if self._tree is None or self._tree.length > length:
            self._tree = self.heads.tree(length, self.records)
        self._tree.extend(self.records(self._tree.length, length))
        return self._tree

    # --- what is under a key -----------------------------------------------------------------------------------------

    def candidates(self, key: str, below: int) -> Iterator[int]:
        """The seqs below this one at which the key may have been written, the newest first; all that were are there."""
        known = self._known()
        recent = self._recent.get(key)
        return known.candidates(key, below) if recent is None else self._newest(known, key, recent, below)

    def _newest(self, known: Finder, key: str, recent: Sequence[int], below: int) -> Iterator[int]:
        for seq in reversed(recent):
            if seq < below:
                yield seq
        yield from known.candidates(key, below)

    def entries_under(self, segments: Sequence[str], below: int) -> Iterator[tuple[int, bytes, bytes]]:
        """The entries below this seq whose keys begin with these segments, the newest first, without those that are
        known to be overwritten: of each its seq, its record and its key.
        """
        seqs = self.seqs_under(segments, below)
        if below > len(self._overwritten):
            more = np.full(below, _NEVER, np.int64)  # twice as many, at least: it seldom grows
            self._overwritten = np.concatenate([self._overwritten, more])
        seqs = seqs[self._overwritten[seqs] >= below]
        for stop in range(len(seqs), 0, -_READ_AT_ONCE):
            some = seqs[max(0, stop - _READ_AT_ONCE) : stop]
            records = [record or b"" for record in self.log.get_many_raw(self._offsets_of(some))]
            yield from zip(some[::-1].tolist(), records[::-1], self._keys_in(records)[::-1], strict=True)

    def _keys_in(self, records: Sequence[bytes]) -> list[bytes]:
        """The keys of these records; of those that are no entries nothing."""
        batch = RecordBatch.of(records)
        (keys,), _ = self.log.codec.locator([("key",)]).fields(batch)
        stops = np.where(keys.kind == ABSENT, 0, keys.start + keys.length)
        data = batch.buffer.tobytes()
        return [data[start:stop] for start, stop in zip(keys.start.tolist(), stops.tolist(), strict=True)]

    def overwrite(self, seq: int, by: int) -> None:
        """Know that an entry has the key of another one, of a later seq, that can be read."""
        self._overwritten[seq] = by

    def seqs_under(self, segments: Sequence[str], below: int) -> NDArray[np.int64]:
        """The seqs below this one, ascending, of the entries whose keys begin with these segments."""
        if not len(self):
            return np.empty(0, np.int64)
        early = self._known_under(segments, self._known(max(RECENT_UNDER, len(self) >> 5)).end_seq)
        count = len(segments)
        recent = (seqs for key, seqs in self._recent.items() if segments_of(key)[:count] == segments)
        late = sorted(seq for seq in chain.from_iterable(recent) if seq < below)
        return np.concatenate([early[: np.searchsorted(early, below)], np.array(late, np.int64)])

    def _known_under(self, segments: Sequence[str], end: int) -> NDArray[np.int64]:
        """Those below `end`, and some whose segments have the same hashes: as the indexes know it."""
        if not segments:
            return np.arange(1, end)
        for place in range(len(self._places), len(segments)):
            self._places.append(self.index.finder(f"path.{place}"))
        sets = [finder.seqs(segment) for finder, segment in zip(self._places, segments, strict=False)]
        found = members_of(BitMap.intersection(*sets)).astype(np.int64)
        return found[(found > 0) & (found < end)]

    def _offsets_of(self, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where these records begin, whose seqs ascend."""
        known = self._known()
        recent = int(np.searchsorted(seqs, known.end_seq))
        late = [self._offsets[seq] for seq in (seqs[recent:] - known.end_seq).tolist()]
        return np.concatenate([known.offsets[seqs[:recent]], np.array(late, np.int64)])

    def _known(self, recent: int = _RECENT) -> Finder:
        """The index of keys, up to where the dictionary begins, which knows so many records at most."""
        if self._index is None:
            return _nothing()
        if self._finder is None or len(self._offsets) > min(recent, _RECENT):
            self.log.flush()
            self._finder, self._places = self.index.finder("key"), []
            self._offsets, self._recent = [], {}
        return self._finder


@cache
def _nothing() -> Finder:
    """The index of keys of a feed in which nothing is yet."""
    from jitdb.engine.answering.finder import Finder

    return Finder([], [], BitMap(), 0)
