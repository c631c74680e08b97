"""The values of a field as numbers, from its dictionary: a code a record, the same in all of the log.

Code 0 is that of records without the field; values have codes from 1 on, in the order in which they first occur. Each
segment of a dictionary has codes of its own, so there is a table for each. Where a field has many values that are in
several segments, the tables are kept in a file, and a process numbers only what came since.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from jitdb.engine.answering.members import Members
from jitdb.engine.answering.value_order import places_in_order, ranks_of
from jitdb.errors import IndexDamaged
from jitdb.indexes.files.codes_file import CodesFile
from jitdb.indexes.kinds.bitmaps import ABSENT_KEY
from jitdb.indexes.kinds.codes import codes_segment, fresh_in, keys_in, numbers_in
from jitdb.indexes.kinds.columns import count_of
from jitdb.indexes.kinds.dictionary import KeyHeap, code_counts, codes_of, count_runs, dictionary_keys, mark
from jitdb.indexes.vocabulary import Vocabulary
from jitdb.log.io import osfile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.indexes.files.index import Index
    from jitdb.indexes.segment import Segment
    from jitdb.log.codecs.fields.located import FieldValues

WORTH_KEEPING: Final = 1 << 16  # values that were numbered: fewer take less than a process takes to start
REPEATED: Final = 2  # times that a value is in a segment, on average: where there are less, tables save little


class _Part(NamedTuple):
    """A segment of the dictionary.

    before: how many values were there before it
    fresh:  how many it has that were not
    own:    the numbers of its values; None where they are in a file
    made:   the segment of that file
    """

    segment: Segment
    before: int
    fresh: int
    own: NDArray[np.uint32] | None
    made: Segment | None

    @property
    def numbers(self) -> NDArray[np.uint32]:
        """The code in the column, by the code in the segment. Raises IndexDamaged."""
        if self.own is not None:
            return self.own
        assert self.made is not None
        return numbers_in(self.made)


class CodedColumn:
    """The values of a field and a code a record. Guarded by the engine's lock.

    file: where numbers are kept
    """

    def __init__(self, file: CodesFile) -> None:
        self.file = file
        self._vocabulary = Vocabulary()
        self._parts: list[_Part] | None = None  # None: nobody has looked into the file
        self._heap: KeyHeap | None = None
        self._keys: Sequence[bytes] | None = None
        self._values: FieldValues | None = None
        self._ranks: NDArray[np.float64] | None = None
        self._places: NDArray[np.int64] | None = None
        self._mapped: tuple[_Part | None, Any, NDArray[Any]] = (None, None, np.empty(0))  # by the segment used last

    def unnumbered(self, segments: Sequence[Segment]) -> int:
        """How many values of these segments are still to be numbered."""
        return sum(map(count_of, segments[len(self._kept(segments)) :]))

    def follow(self, segments: Sequence[Segment]) -> None:
        """Take in new segments, and drop those that are gone. Raises IndexDamaged."""
        kept = self._kept(segments)
        if len(kept) == len(segments) == len(self._parts or ()):
            return
        self._forget()
        self._parts = kept
        self._vocabulary.cut(self._size)
        for segment in segments[len(kept) :]:
            self._parts = [*self._parts, self._numbered(segment)]
        self._save()

    def _kept(self, segments: Sequence[Segment]) -> list[_Part]:
        """The parts of the first of these segments that are numbered already."""
        if self._parts is None:
            made = self.file.load(segments)
            before, self._parts = 0, []
            for segment, each in zip(segments, made, strict=False):
                self._parts.append(_Part(segment, before, fresh_in(each), None, each))
                before += fresh_in(each)
        pairs = zip(self._parts, segments, strict=False)
        return [part for part, _ in takewhile(lambda pair: pair[0].segment is pair[1], pairs)]

    def _numbered(self, segment: Segment) -> _Part:
        before, keys = self._size, dictionary_keys(segment)
        known = self._known()
        numbers = known.number(keys)
        return _Part(segment, before, len(known) - before, np.append(np.zeros(1, np.uint32), numbers), None)

    def _known(self) -> Vocabulary:
        """With the keys of all parts."""
        for part in self._parts or ():
            if len(self._vocabulary) == part.before and part.fresh and part.made is not None:
                self._vocabulary.add(keys_in(part.made))
        return self._vocabulary

    def _save(self) -> None:
        """Keep the numbers of the parts that are not in the file, if that is worth while."""
        parts = self._parts or []
        first = next((at for at, part in enumerate(parts) if part.made is None), len(parts))
        fresh = parts[first:]
        if sum(count_of(part.segment) for part in fresh) < WORTH_KEEPING:
            return
        if sum(count_of(part.segment) for part in parts) < REPEATED * self._size:
            return
        made = [self._made(part) for part in fresh]
        saved = self.file.save(first, made)
        if all(each.blobs is None for each in saved):  # else they would be in memory twice
            placed = [part._replace(own=None, made=each) for part, each in zip(fresh, saved, strict=True)]
            self._parts = [*parts[:first], *placed]

    def _made(self, part: _Part) -> Segment:
        assert part.own is not None
        keys = self._vocabulary.keys
        fresh = keys.between(part.before, part.before + part.fresh)
        return codes_segment(part.segment, part.before, part.own[1:], fresh)

    def _forget(self) -> None:
        self._heap = self._keys = self._values = self._ranks = self._places = None
        self._mapped = (None, None, np.empty(0))

    @property
    def heap(self) -> KeyHeap:
        """The keys of all values, whatever comes to the column later: that of code n stands at n - 1."""
        if self._heap is None:
            self._heap = self._known().keys
        return self._heap

    @property
    def keys(self) -> Sequence[bytes]:
        """The same, each by itself."""
        if self._keys is None:
            self._keys = [self.heap.key(at) for at in range(self._size)]
        return self._keys

    @property
    def values(self) -> FieldValues:
        """All values (encoding KEYS): that of code n stands at n - 1."""
        if self._values is None:
            self._values = self.heap.values()
        return self._values

    @property
    def ranks(self) -> NDArray[np.float64]:
        """For each code, where its value stands in the order of values; NaN for one without a place.

        They are other numbers once there are more values.
        """
        if self._ranks is None:
            self._ranks = np.append(np.full(1, np.nan), ranks_of(self.values))
        return self._ranks

    @property
    def places(self) -> NDArray[np.int64]:
        """For each code, where its value stands in the order of in_order(); other numbers once there are more."""
        if self._places is None:
            self._places = np.append(-1, places_in_order(self.values))
        return self._places

    @property
    def _size(self) -> int:
        """How many values there are."""
        return self._parts[-1].before + self._parts[-1].fresh if self._parts else 0

    def __len__(self) -> int:
        """How many codes there are, 0 among them."""
        return 1 + self._size

    def key(self, code: int) -> bytes:
        """The key of a code's value (jitdb.common.values)."""
        return self.heap.key(code - 1) if code else ABSENT_KEY

    def code_of(self, keys: Sequence[bytes]) -> NDArray[np.int64]:
        """The code of the value with each key, 0 where there is none."""
        return self._known().find(KeyHeap.of(keys)).astype(np.int64)

    def counts(self, members: Members) -> NDArray[np.int64]:
        """How many of these records have each code."""
        from jitdb.indexes.kinds.kernels.dictionary import add_counts

        counts = np.zeros(len(self), np.int64)
        for part in self._parts or ():
            within = members.within(part.segment)
            if within is not None:
                add_counts(code_counts(part.segment, *within), part.numbers, counts)
        return counts

    def codes(self, members: Members) -> NDArray[np.uint32]:
        """The codes of these records, ascending by seq."""
        return self.mapped(members, None)

    def mapped(self, members: Members, table: NDArray[Any] | None) -> NDArray[Any]:
        """What a table has at the code of each of these records, ascending by seq; None: the codes."""
        found = []
        for part, codes in self._chosen(members):
            if self._mapped[0] is not part or self._mapped[1] is not table:
                self._mapped = part, table, part.numbers if table is None else table[part.numbers]
            found.append(self._mapped[2][codes])
        return found[0] if len(found) == 1 else np.concatenate([np.empty(0, np.uint32), *found])

    def mark(self, members: Members, table: NDArray[np.uint32], masks: NDArray[np.uint32]) -> None:
        """Set the bits that the table has at the code of each of these records in its mask."""
        parts, done = {id(part.segment): part for part in self._parts or ()}, 0
        for segment, places in members.places_in([part.segment for part in parts.values()]):
            count = places.stop - places.start if isinstance(places, slice) else len(places)
            mark(segment, places, table[parts[id(segment)].numbers], masks[done : done + count])
            done += count

    def count_runs(
        self,
        members: Members,
        ends: NDArray[np.int64],
        rows: NDArray[np.int64],
        columns: NDArray[np.int64],
        counts: NDArray[np.int64],
    ) -> None:
        """Add to counts[row, column] how many of these records are in runs of seqs: see dictionary.count_runs."""
        for part in self._parts or ():
            within = members.within(part.segment)
            if within is not None:
                count_runs(part.segment, within, ends, rows, columns[part.numbers], counts)

    def _chosen(self, members: Members) -> Iterator[tuple[_Part, NDArray[Any]]]:
        """For each segment that has some of the records: their codes in it."""
        parts = {id(part.segment): part for part in self._parts or ()}
        for segment, places in members.places_in([part.segment for part in parts.values()]):
            yield parts[id(segment)], codes_of(segment)[places]


class CodedColumns:
    """The coded columns of a database's indexes, each kept as long as its index."""

    def __init__(self) -> None:
        self._columns: WeakKeyDictionary[Index, CodedColumn] = WeakKeyDictionary()

    def get(self, index: Index) -> CodedColumn:
        """The column of an index as it is now. Raises IndexDamaged."""
        column = self._of(index)
        column.follow(index.segments)
        return column

    def unnumbered(self, index: Index) -> int:
        """How many values of its segments are still to be numbered."""
        return self._of(index).unnumbered(index.segments)

    def _of(self, index: Index) -> CodedColumn:
        column = self._columns.get(index)
        if column is None:
            column = self._columns[index] = CodedColumn(CodesFile(index, osfile.fs))
        return column

    def drop(self, damage: IndexDamaged) -> bool:
        """Number anew what a damaged file has the numbers of; False if the damage is none of such a file."""
        files = [(index, column.file.path) for index, column in self._columns.items()]
        named = [index for index, path in files if path is not None and str(path) == str(damage.path)]
        for index in named:
            self._columns[index] = CodedColumn(self._columns[index].file.forgotten())
        return bool(named)
