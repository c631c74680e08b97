"""json: a record is one JSON text (RFC 8259), such as a line of a JSON Lines file without its newline.

What is asked for is found in place by kernels (locator.py), which leave to this file whatever they are not sure of.
Texts are read by the json module of Python's library, strictly as UTF-8; docs/format-codecs.md says what is read beyond
the RFC, and what is refused: what no other codec of jitdb could hold.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Sequence
from threading import Thread
from typing import TYPE_CHECKING, Any, ClassVar, Final

from jitdb.common.paths import Keys, Step, format_path
from jitdb.common.values import text_bytes
from jitdb.errors import DecodeError, EncodeError, QueryError
from jitdb.log.codecs.base import Buffer, Codec
from jitdb.log.codecs.fields.constants import MAX_NESTING

if TYPE_CHECKING:
    from jitdb.log.codecs.fields.located import Locator

_read: Final = json.JSONDecoder()
_FORM: Final[dict[str, Any]] = {"check_circular": False, "allow_nan": False, "separators": (",", ":")}
_write: Final = json.JSONEncoder(ensure_ascii=False, **_FORM).encode
_write_any: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_write_ascii: Final = json.JSONEncoder(**_FORM).encode

_SUSPECT: Final = re.compile(rb"[0-9]{19}|\\u[dD][89a-fA-F]")  # an integer beyond 64 bits, half of a surrogate pair
_DIGITS: Final = bytes(ord("0") if byte in b"0123456789" else 0 for byte in range(256))  # a digit as 0
_LONG: Final = b"0" * 19
_NESTING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\Z)|[][{}]', re.DOTALL)  # strings are passed over
_TOO_DEEP: Final = f"containers are nested deeper than {MAX_NESTING} levels"


class JsonText(bytes):
    """Bytes that `encode` takes as they are: a text that `decode` reads."""


class JsonCodec(Codec):
    """Values as JSON texts in UTF-8: what JSON has, with integers of up to 64 bits.

    >>> codec = JsonCodec()
    >>> codec.encode({"a": {"b": "é"}})
    b'{"a":{"b":"\\xc3\\xa9"}}'
    >>> codec.find(b' {"a": 1, "a": {"b": 2}}', ("a", "b"))
    2
    """

    name: ClassVar[str] = "json"
    is_json: ClassVar[bool] = True

    def encode(self, value: Any) -> bytes:
        """The shortest text, its keys in their order. Raises EncodeError for what JSON has no word for."""
        if type(value) is JsonText:
            return bytes(value)
        path: list[Step] = []
        try:
            _check(value, path, MAX_NESTING)
            text = _write(value)
        except RecursionError:
            raise EncodeError(_TOO_DEEP) from None
        try:
            return text.encode()
        except UnicodeEncodeError:  # bytes that are no UTF-8, as Python has them in text
            _check_texts(value, path)
            return _write_ascii(value).encode()

    def decode(self, record: Buffer) -> Any:
        data = bytes(record)
        if data.count(b"[") + data.count(b"{") > MAX_NESTING:
            _check_nesting(data)
        try:
            return _decoded(data)
        except RecursionError:  # the stack is nearly full
            return _on_another_stack(data)

    def decode_at(self, record: Buffer, position: int) -> Any:
        if not 0 <= position < len(record):
            raise DecodeError(f"position {position} lies outside a record of {len(record)} bytes", position=position)
        text = bytes(record[position:]).decode("utf-8", "surrogateescape")
        try:
            _, end = _read.raw_decode(text)
        except (ValueError, RecursionError) as error:
            raise DecodeError(f"no JSON value begins there: {error}", position=position) from None
        return self.decode(text[:end].encode("utf-8", "surrogateescape"))

    def locator(self, paths: Sequence[Keys]) -> Locator:
        from jitdb.log.codecs.json.locator import JsonLocator  # with numpy

        return JsonLocator(self, paths)


CODEC = JsonCodec()


def json_text(data: bytes, value: Any) -> JsonText:
    """A text that json has read as this value. Raises DecodeError for what no codec could hold."""
    if data.count(b"[") + data.count(b"{") > MAX_NESTING:
        _check_nesting(data)
    _check_suspect(data, value)
    return JsonText(data)


def text_of(value: Any) -> JsonText:
    """The shortest text of a value that json has read, NaN as Python writes it. Raises as json_text does."""
    text = _write_any(value)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        data = json.dumps(value, separators=(",", ":")).encode()
    return json_text(data, value)


def _decoded(data: bytes) -> Any:
    """The value of a text whose nesting is checked. Raises DecodeError, RecursionError."""
    try:
        text = str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError(f"not UTF-8: byte 0x{data[error.start]:02x}", position=error.start) from None
    try:
        value = _read.decode(text)
    except json.JSONDecodeError as error:
        position = len(text[: error.pos].encode())
        raise DecodeError(f"not JSON: {error.msg.removesuffix(' at')}", position=position) from None
    except ValueError:
        raise DecodeError(f"an integer of more than {sys.get_int_max_str_digits():,} digits") from None
    _check_suspect(data, value)
    return value


def _check_suspect(data: bytes, value: Any) -> None:
    # The pattern takes longer than reading the record does, so it is tried only where it may fit.
    if (_LONG in data.translate(_DIGITS) or b"\\u" in data) and (suspect := _SUSPECT.search(data)):
        from jitdb.log.codecs.fields.decoding import check_value  # with numpy

        try:
            check_value(value)
        except QueryError as error:
            raise DecodeError(str(error), position=suspect.start()) from None


def _on_another_stack(data: bytes) -> Any:
    """As _decoded, of what has not more than MAX_NESTING levels, wherever it is called."""
    found: list[Any] = []

    def decode() -> None:
        try:
            found.append(_decoded(data))
        except DecodeError as error:
            found.append(error)

    thread = Thread(target=decode)
    thread.start()
    thread.join()
    if isinstance(found[0], DecodeError):
        raise found[0]
    return found[0]


def _check_nesting(data: bytes) -> None:
    """Raises DecodeError where the text opens more than MAX_NESTING containers in each other."""
    depth = 0
    for found in _NESTING.finditer(data):
        if found[0] in b"[{":
            depth += 1
            if depth > MAX_NESTING:
                raise DecodeError(_TOO_DEEP, position=found.start())
        elif found[0] in b"]}":
            depth -= 1


def _check(value: Any, path: list[Step], levels: int) -> None:
    """Raises EncodeError, which names the path of what JSON has no word for."""
    if value is None or isinstance(value, (str, bool)):
        return
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise _refused(path, f"an integer of {int(value).bit_length()} bits does not fit in 64")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise _refused(path, f"JSON has no number {float(value)}")
    elif isinstance(value, (dict, list, tuple)):
        if levels == 0:
            raise EncodeError(_TOO_DEEP)
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(value, dict) and not isinstance(key, str):
                raise _refused(path, f"one of the keys: JSON has no keys of type {type(key).__name__}, only text")
            if type(item) is not str:
                path.append(str(key) if isinstance(value, dict) else key)
                _check(item, path, levels - 1)
                path.pop()
    else:
        raise _refused(path, f"a value of type {type(value).__name__} has no encoding in JSON")


def _check_texts(value: Any, path: list[Step]) -> None:
    """Raises EncodeError for text that would come back as another."""
    if isinstance(value, str):
        try:
            text_bytes(value)
        except UnicodeEncodeError:
            raise _refused(path, "the string has a lone surrogate and is not Unicode text") from None
    elif isinstance(value, (dict, list, tuple)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            _check_texts(key, path)
            path.append(str(key) if isinstance(value, dict) else key)
            _check_texts(item, path)
            path.pop()


def _refused(path: list[Step], reason: str) -> EncodeError:
    where = f"{format_path(path)}: " if path else ""
    return EncodeError(where + reason)
