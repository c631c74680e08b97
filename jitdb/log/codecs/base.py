"""What a codec is: a value to one record's bytes, and back; and one field of a record without the rest.

A codec holds no state, so one instance serves all logs and threads. The engine asks it for single records; whole
blocks are scanned by the compiled `locate` kernels, which agree with `find` in every answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import FunctionType
from typing import Any, ClassVar, Final, TypeAlias

from jitdb.common.arguments import failing
from jitdb.common.paths import Path
from jitdb.errors import EncodeError, QueryError

Buffer: TypeAlias = bytes | bytearray | memoryview

# Containers in containers, the outermost included. Real records stay below 20; the limit keeps a hostile record
# from exhausting the stack of whatever walks the decoded value afterwards (a comparison, a JSON writer).
MAX_NESTING: Final = 256

SLACK: Final = 64  # bytes that must lie behind lines of JSON and records, where a kernel goes over them by words


class Codec(ABC):
    """One way of writing values as bytes. Subclasses set `name` and are stateless."""

    name: ClassVar[str]

    def __init_subclass__(cls, **named: Any) -> None:
        """Where a codec of one's own raises the end of an iteration, that is an error: `map` would drop records."""
        super().__init_subclass__(**named)
        if cls.__module__.startswith("jitdb.log.codecs."):
            return  # ours raise none, and need not wait for a further call
        for name in ("encode", "decode", "decode_at", "find", "is_valid"):
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

    @abstractmethod
    def decode_at(self, record: Buffer, position: int) -> Any:
        """The value whose encoding starts at byte `position`; what follows it is not looked at.

        Raises DecodeError, also for a position outside the record (such as the -1 of a failed seek).
        """

    @abstractmethod
    def find(self, record: Buffer, path: Path) -> Any:
        """The value at `path`, or UNDEFINED; decodes nothing else. The empty path is the whole record.

        The last of several equal keys wins at every level, as it does in `decode`. A record that is malformed on
        the way to the field, or in it, has no such field: UNDEFINED, and `decode` says what is wrong with it.
        """

    @abstractmethod
    def is_valid(self, record: Buffer) -> bool:
        """Whether `decode` would accept the record."""

    def __repr__(self) -> str:
        return f"<codec {self.name}>"
