"""What a codec is: a value to one record's bytes, and back; and the fields of many records, by its locator.

A codec holds no state, so one instance serves all logs and threads. Only its name, `encode` and `decode` are its own to
say. All else follows by decoding; a codec that knows a faster way to the same answers has one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from jitdb.common.arguments import failing
from jitdb.common.paths import Keys
from jitdb.common.values import UNDEFINED, value_at
from jitdb.errors import DecodeError, EncodeError, QueryError

if TYPE_CHECKING:
    from jitdb.log.codecs.fields.located import Locator

Buffer: TypeAlias = bytes | bytearray | memoryview


class Codec(ABC):
    """One way of writing values as bytes. Subclasses set `name` and are stateless."""

    name: ClassVar[str]  # up to 36 bytes; it is on disk
    is_json: ClassVar[bool] = False  # whether a record is the JSON text of its value, however that is written
    writes_utf8: ClassVar[bool] = False  # whether each text stands in a record as its UTF-8, and bytes as they are
    has_other_readers: ClassVar[bool] = False  # whether other programs read its logs, and expect blocks of one size

    def __init_subclass__(cls, **named: Any) -> None:
        """Where a codec of one's own raises the end of an iteration, that is an error: `map` would drop records."""
        super().__init_subclass__(**named)
        if cls.__module__.startswith("jitdb.log.codecs."):
            return  # ours raise none, and need not wait for a further call
        cls.writes_utf8 = cls.__dict__.get("writes_utf8", False)  # whatever is said of the class that it is made from
        for name in ("encode", "decode", "decode_at", "find", "is_valid", "looks_like", "locator"):
            function = cls.__dict__.get(name)
            if isinstance(function, FunctionType):
                what = f"{name}() of the codec {getattr(cls, 'name', cls.__name__)!r}"
                setattr(cls, name, failing(function, what, EncodeError if name == "encode" else QueryError))

    @abstractmethod
    def encode(self, value: Any) -> bytes:
        """The bytes of `value`. Raises EncodeError, which names the path of what has no encoding."""

    @abstractmethod
    def decode(self, record: Buffer) -> Any:
        """The value that `record` holds. Raises DecodeError unless it is exactly one valid value."""

    def decode_at(self, record: Buffer, position: int) -> Any:
        """The value whose encoding starts at byte `position`; what follows it is not looked at.

        Asked only where a question's field is a function that finds such positions. Raises DecodeError, also for a
        position outside the record (such as the -1 of a failed seek).
        """
        raise QueryError(f"the codec {self.name!r} has no decode_at(): ask for fields by their paths, not by functions")

    def find(self, record: Buffer, path: Keys) -> Any:
        """The value at `path`, or UNDEFINED. The empty path is the whole record.

        The last of several equal keys wins at every level, as it does in `decode`. A record that is malformed on
        the way to the field, or in it, has no such field: UNDEFINED, and `decode` says what is wrong with it.
        """
        try:
            return value_at(self.decode(record), path)
        except DecodeError:
            return UNDEFINED

    def is_valid(self, record: Buffer) -> bool:
        """Whether `decode` would accept the record."""
        try:
            self.decode(record)
        except DecodeError:
            return False
        return True

    def looks_like(self, records: Sequence[bytes]) -> bool:
        """Whether these may be the first records of such a log, of which nothing else is known.

        All are maps, and they are not all empty: an empty map may be one byte, too little to go by.
        """
        try:
            values = [self.decode(record) for record in records]
        except DecodeError:
            return False
        return all(isinstance(value, dict) for value in values) and any(values)

    def locator(self, paths: Sequence[Keys]) -> Locator:
        """What finds these fields in many records. It gives what `find` gives; of paths that differ and are not empty.

        This one decodes each record once, in Python.
        """
        from jitdb.log.codecs.fields.decoding import DecodingLocator  # with numpy

        return DecodingLocator(self, paths)

    def __repr__(self) -> str:
        return f"<codec {self.name}>"


@lru_cache(maxsize=1024)
def encoded_path(path: Keys) -> tuple[bytes, ...]:
    """The keys as records hold them."""
    return tuple(key.encode("utf-8", "surrogateescape") for key in path)
