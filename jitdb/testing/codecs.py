"""What every codec holds to (jitdb.log.codecs), as tests: subclass them, and say which codec, and what it can hold.

    class TestMine(CodecTests):
        codec = Mine()
        values = st.dictionaries(st.sampled_from(["a", "b"]), st.integers() | st.text())
        paths = (("a",), ("b",), ("a", "b"))

A value is right if its key (jitdb.common.values.value_key) is: 1 may come back as 1.0, a tuple as a list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path as FilePath
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitdb.common.anywhere import texts_in
from jitdb.common.paths import ANY, Keys
from jitdb.common.values import ABSENT, ARRAY, EXTENSION, MAP, NUMBER, UNDEFINED, number_key, value_at, value_key
from jitdb.engine.database import JITDB
from jitdb.errors import DecodeError, EncodeError, JitdbError, QueryError
from jitdb.indexes.kinds.prefixes import hash_prefix, hash_prefixes
from jitdb.log import Log
from jitdb.log.codecs import Codec
from jitdb.log.codecs.containers import Steps, container_key, list_values
from jitdb.log.codecs.fields.constants import DELETED, LIVE, MAX_NESTING
from jitdb.log.codecs.fields.located import FieldValues, RecordBatch
from jitdb.operators import absent, and_, equal, includes, predicate

NUMBERS = (0, -1, 0.5, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 1e300, 5e-324,
           -0.0, math.inf, -math.inf, math.nan)  # fmt: skip

_keys = st.sampled_from(["", "a", "b", "é", "type"])
_scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
_inner = st.recursive(
    _scalars | st.text(max_size=8) | st.text("x", max_size=300),
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(_keys, parts, max_size=4),
    max_leaves=12,
)


def key_at(values: FieldValues, number: int) -> bytes:
    """The key of one located value; that of UNDEFINED where there is none."""
    kind = int(values.kind[number])
    if kind == NUMBER:
        hi = float(values.number[number])
        return number_key(hi, int(values.length[number])) if hi == hi else value_key(hi)
    if kind in (ARRAY, MAP):
        return container_key(values.encoding, kind, values.payload(number))
    if kind > NUMBER:
        return bytes([kind]) + values.payload(number)
    assert kind == ABSENT or values.length[number] == 0, "null, false and true have no payload"
    return bytes([kind])


class CodecTests:
    """codec: the codec; values: what it can hold; paths: fields that may be in it; tries: of each test."""

    codec: ClassVar[Codec]
    values: ClassVar[st.SearchStrategy[Any]] = st.dictionaries(_keys, _inner, max_size=5)
    paths: ClassVar[Sequence[Keys]] = (("a",), ("b",), ("a", "a"), ("a", "b"), ("",), ("é", "type"))
    tries: ClassVar[int] = 60

    def for_all(self, *strategies: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], None]:
        """Runs a check with values of these strategies."""
        return lambda check: settings(max_examples=self.tries, deadline=None)(given(*strategies)(check))()

    def records(self) -> st.SearchStrategy[list[bytes]]:
        """Some records."""
        return st.lists(self.values.map(self.codec.encode), min_size=1, max_size=6)

    def hostile(self) -> st.SearchStrategy[bytes]:
        """Bytes that stand where a record should: any, or those of a record with some changed, cut out or put in."""

        @st.composite
        def damaged(draw: st.DrawFn) -> bytes:
            record = bytearray(self.codec.encode(draw(self.values)))
            for _ in range(draw(st.integers(1, 3))):
                start = draw(st.integers(0, len(record)))
                record[start : start + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
            return bytes(record)

        return damaged() | st.binary(max_size=40)

    def decoded(self, record: bytes) -> Any:
        """What `decode` gives; None and False where it is malformed."""
        try:
            return self.codec.decode(record), True
        except DecodeError:
            return None, False

    # --- one record --------------------------------------------------------------------------------------------------

    def test_what_was_encoded_is_decoded(self) -> None:
        @self.for_all(self.values)
        def check(value: Any) -> None:
            record = self.codec.encode(value)
            assert type(record) is bytes
            for buffer in (record, bytearray(record), memoryview(record)):
                assert value_key(self.codec.decode(buffer)) == value_key(value)
            assert self.codec.is_valid(record)
            assert self.codec.encode(value) == record

    def test_text_stands_in_records_as_it_is_where_the_codec_says_so(self) -> None:
        if not self.codec.writes_utf8:
            pytest.skip("this codec writes text otherwise")

        @self.for_all(self.values)
        def check(value: Any) -> None:
            record = self.codec.encode(value)
            for _, text in texts_in(self.codec.decode(record)):
                if isinstance(text, str) and repr(text) in repr(value):  # else it is written for a number
                    assert text.encode("utf-8", "surrogateescape") in record

    def test_a_field_is_what_decoding_finds_at_its_path(self) -> None:
        @self.for_all(self.values)
        def check(value: Any) -> None:
            record = self.codec.encode(value)
            for path in ((), *self.paths):
                expected = value_at(self.codec.decode(record), path)
                assert value_key(self.codec.find(record, path)) == value_key(expected)

    def test_hostile_bytes_are_decoded_or_refused(self) -> None:
        @self.for_all(self.hostile())
        def check(record: bytes) -> None:
            value, good = self.decoded(record)
            assert self.codec.is_valid(record) == good
            for path in self.paths:
                found = self.codec.find(record, path)
                assert not good or value_key(found) == value_key(value_at(value, path))

    def test_what_it_cannot_hold_is_refused(self) -> None:
        endless: list[Any] = []
        endless.append(endless)
        for value in (endless, {"a": endless}, object(), {"a": object()}):
            with pytest.raises(EncodeError):
                self.codec.encode(value)

    # --- many records ------------------------------------------------------------------------------------------------

    def test_located_fields_are_those_that_find_gives(self) -> None:
        @self.for_all(self.records())
        def check(records: list[bytes]) -> None:
            self._check_fields(RecordBatch.of(records), malformed=0)

    def test_located_fields_of_hostile_bytes(self) -> None:
        @self.for_all(st.lists(self.hostile(), min_size=1, max_size=6))
        def check(records: list[bytes]) -> None:
            batch = RecordBatch.of(records)
            self._check_fields(batch)
            bad = [number for number, record in enumerate(records) if not self.decoded(record)[1]]
            assert self.codec.locator(()).invalid(batch).tolist() == bad

    def test_what_lies_around_a_record_does_not_matter(self) -> None:
        @self.for_all(self.records(), st.binary(max_size=9), st.lists(st.booleans(), min_size=6, max_size=6))
        def check(records: list[bytes], around: bytes, deleted: list[bool]) -> None:
            lengths = np.array([*map(len, records)], np.int64)
            starts = np.cumsum(lengths + len(around)) - lengths
            states = np.array([DELETED if gone else LIVE for gone in deleted[: len(records)]], np.uint8)
            buffer = np.frombuffer(bytearray(around + around.join(records) + around + bytes(64)), np.uint8)
            self._check_fields(RecordBatch(buffer, starts, lengths, states), malformed=0)

    def test_a_locator_serves_many_batches(self) -> None:
        @self.for_all(st.lists(self.records(), min_size=2, max_size=4))
        def check(batches: list[list[bytes]]) -> None:
            locator = self.codec.locator(self.paths)
            for records in (*batches, batches[0] * 40):
                fields, _ = locator.fields(RecordBatch.of(records))
                assert self._keys(fields) == self._found(records)

    def test_elements_are_those_of_the_decoded_arrays(self) -> None:
        @self.for_all(self.records(), st.sampled_from(((), *self.paths)))
        def check(records: list[bytes], pluck: Keys) -> None:
            fields, _ = self.codec.locator(self.paths).fields(RecordBatch.of(records))
            for path, values in zip(self.paths, fields, strict=True):
                elements, owners = list_values(values, Steps.of((), included=pluck))
                listed = [(owner, key_at(elements, number)) for number, owner in enumerate(owners.tolist())]
                assert listed == [
                    (owner, value_key(item))
                    for owner, record in enumerate(records)
                    for item in _elements(self.codec.find(record, path), pluck)
                ]

    def test_hashes_are_those_of_the_values(self) -> None:
        @self.for_all(self.records())
        def check(records: list[bytes]) -> None:
            fields, _ = self.codec.locator(self.paths).fields(RecordBatch.of(records))
            for values in fields:
                for number, found in enumerate(hash_prefixes(values).tolist()):
                    if values.kind[number] != EXTENSION:  # a timestamp is known by its bytes
                        key = key_at(values, number)
                        assert found == (0 if key[0] == ABSENT else hash_prefix(key))

    def test_values_at_are_those_that_decode_at_gives(self) -> None:
        @self.for_all(self.records(), st.lists(st.integers(-1, 12), min_size=6, max_size=6))
        def check(records: list[bytes], wanted: list[int]) -> None:
            positions = np.array(wanted[: len(records)], np.int64)
            try:
                expected = [self._key_at(record, at) for record, at in zip(records, wanted, strict=False)]
            except QueryError:
                return  # it has no decode_at
            values = self.codec.locator(()).values_at(RecordBatch.of(records), positions)
            assert [key_at(values, number) for number in range(len(records))] == expected

    # --- extremes ----------------------------------------------------------------------------------------------------

    def test_numbers_keep_every_digit_or_are_refused(self) -> None:
        for number in NUMBERS:
            try:
                record = self.codec.encode({"a": number, "b": [number, -1]})
            except EncodeError:
                continue
            assert value_key(self.codec.decode(record)) == value_key({"a": number, "b": [number, -1]})
            one, both = self.codec.locator([("a",), ("b",)]).fields(RecordBatch.of([record]))[0]
            assert (key_at(one, 0), key_at(both, 0)) == (value_key(number), value_key([number, -1]))
            elements, _ = list_values(both, Steps.of((ANY,)))
            assert [key_at(elements, 0), key_at(elements, 1)] == [value_key(number), value_key(-1)]

    def test_deep_values_are_held_or_refused(self) -> None:
        for levels in (MAX_NESTING - 1, MAX_NESTING, 4 * MAX_NESTING):
            for key in (None, "a"):
                value: Any = 1
                for _ in range(levels):
                    value = [value] if key is None else {key: value}
                try:
                    record = self.codec.encode({"a": value})
                    (found,), _ = self.codec.locator([("a",)]).fields(RecordBatch.of([record]))
                    assert key_at(found, 0) == value_key(value) or levels >= MAX_NESTING
                except JitdbError:
                    pass

    # --- a log -------------------------------------------------------------------------------------------------------

    def test_a_log_answers_as_a_loop_over_its_records_would(self, tmp_path: FilePath) -> None:
        numbers = iter(range(1_000_000))

        @self.for_all(st.lists(self.values, min_size=1, max_size=12), st.data())
        def check(values: list[Any], data: st.DataObject) -> None:
            with Log(tmp_path / str(next(numbers)), codec=self.codec) as log:
                log.append_many(value for value in values if any(self.codec.encode(value)))
                log.flush()
                records = [(record.offset, record.value) for record in log.stream()]
                path = data.draw(st.sampled_from(list(self.paths)))
                held = [value_at(value, path) for _, value in records]
                db = JITDB(log, "memory")
                assert db.count(absent(path)) == sum(value is UNDEFINED for value in held)
                assert db.count(predicate(path, lambda value: True, name="any")) == len(held) - db.count(absent(path))
                for wanted in [value for value in held if _can_be_asked_for(value)][:4]:
                    same = [offset for (offset, _), value in zip(records, held, strict=True) if _same(value, wanted)]
                    asked = and_(equal(path, wanted), equal(path, wanted, prefix=True))
                    for question in (equal(path, wanted), asked):
                        assert sorted(db.all(question, as_offsets=True)) == same
                    for item in _elements(wanted, ()):
                        owners = [any(_same(part, item) for part in _elements(value, ())) for value in held]
                        assert db.count(includes(path, item)) == sum(owners)

    # --- what these are made of --------------------------------------------------------------------------------------

    def _check_fields(self, batch: RecordBatch, malformed: int | None = None) -> None:
        records = [batch.record(number) if batch.states[number] == LIVE else None for number in range(len(batch))]
        try:
            expected = self._found(records)
        except QueryError:
            return  # some value cannot be asked for
        fields, found = self.codec.locator(self.paths).fields(batch)
        assert self._keys(fields) == expected
        assert malformed is None or found == malformed

    def _found(self, records: Sequence[bytes | None]) -> list[list[bytes]]:
        """The keys that `find` gives, [fields][records]."""
        nothing = value_key(UNDEFINED)
        return [
            [nothing if record is None else value_key(self.codec.find(record, path)) for record in records]
            for path in self.paths
        ]

    def _keys(self, fields: Sequence[FieldValues]) -> list[list[bytes]]:
        return [[key_at(values, number) for number in range(len(values.kind))] for values in fields]

    def _key_at(self, record: bytes, position: int) -> bytes:
        try:
            return value_key(self.codec.decode_at(record, position))
        except DecodeError:
            return value_key(UNDEFINED)


def _can_be_asked_for(value: Any) -> bool:
    try:
        equal("a", value)
    except QueryError:
        return False
    return True


def _same(one: Any, other: Any) -> bool:
    return value_key(one) == value_key(other)


def _elements(value: Any, pluck: Keys) -> list[Any]:
    """What `includes` looks at in a field's value."""
    if value is UNDEFINED:
        return []
    if type(value) not in (list, tuple):
        return [value]
    return [item for element in value if (item := value_at(element, pluck)) is not UNDEFINED]
