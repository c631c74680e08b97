"""Patterns of texts, `pattern(x)`: what varies from one text to the next gives way to placeholders.

    pool timeout after 30ms waiting for connection 5/10
    pool timeout after <num>ms waiting for connection <num>/<num>

The rules, of which the first that fits counts, at each byte from the left:

| what stands there | what the pattern has |
| --- | --- |
| blanks, tabs, ends of lines | one blank; none at the beginning and at the end |
| text that is written as a placeholder, `<num>` or `<*>` | `<id>`: so no placeholder is a text of the log |
| 8-4-4-4-12 hexadecimal digits | `<uuid>` |
| 2026-11-20, 2026/11/20, with a time behind; 14:03, 14:03:11.5, 14:03:11+01:00 | `<time>` |
| Nov 20, Fri Nov 20 14:03:11 2026; 20/Nov/2026:14:03:11 | `<time>` |
| four numbers of up to three digits, with dots | `<ip>` |
| 0x and hexadecimal digits; eight of them or more, with a letter and a digit | `<hex>` |
| a number, with a sign, dots, a power of ten; up to three bytes of letters behind it stay: `<num>ms` | `<num>` |
| at least two letters, or v, and digits: `worker12` is `worker<num>` | the letters, `<num>` |
| any other word with a digit in it; one of more than 64 bytes | `<id>` |
| the rest, after 128 words between blanks, or 1,024 bytes of a pattern | `<...>` |
| all else | itself |

A word is a run of letters and digits; all bytes that are no ASCII are letters. None of these ends within a word.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jitdb.common.placeholders import MOST, NAMES, SLACK
from jitdb.common.values import ABSENT, STRING
from jitdb.log.codecs import mask_kernels as kernels
from jitdb.log.codecs.fields.located import FieldValues

if TYPE_CHECKING:
    from numpy.typing import NDArray


class _Tables(NamedTuple):
    """What the kernel knows of bytes and names."""

    classes: NDArray[np.uint8]
    days: NDArray[np.int32]
    months: NDArray[np.int32]
    names: NDArray[np.uint8]


@cache
def _tables() -> _Tables:
    classes = np.zeros(256, np.uint8)
    for of, chars in (
        (kernels.DIGIT, b"0123456789"),
        (kernels.LETTER, bytes(range(ord("A"), ord("Z") + 1)) + bytes(range(ord("a"), ord("z") + 1))),
        (kernels.HEX, b"abcdefABCDEF"),
        (kernels.LETTER, bytes(range(128, 256))),
        (kernels.BLANK, b" \t\n\v\f\r"),
    ):
        classes[list(chars)] = of
    names = b"".join((bytes([len(name)]) + name.encode()).ljust(8, b"\0") for name in NAMES)
    days = _numbers("Mon Tue Wed Thu Fri Sat Sun")
    months = _numbers("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec")
    return _Tables(classes, days, months, np.frombuffer(bytearray(names), np.uint8))


def _numbers(names: str) -> NDArray[np.int32]:
    return np.array([int.from_bytes(name.encode(), "big") for name in names.split()], np.int32)


def masked(values: FieldValues) -> FieldValues:
    """The patterns of texts; other values have none."""
    is_text = values.kind == STRING
    lengths = np.where(is_text, values.length, np.int32(0)).astype(np.int64)
    room = int((np.minimum(3 * lengths, MOST) + SLACK).sum())
    out, start, length = np.empty(room, np.uint8), np.zeros(len(lengths), np.int32), np.zeros(len(lengths), np.int32)
    kernels.mask_texts(values.buffer, values.kind, values.start, values.length, *_tables(), out, start, length)
    kind = np.where(is_text, np.uint8(STRING), np.uint8(ABSENT))
    return FieldValues(values.encoding, out, kind, start, length, np.zeros(len(lengths)))


def mask_of(text: str) -> str:
    """The pattern of one text.

    >>> mask_of("pool timeout after 30ms waiting for connection 5/10")
    'pool timeout after <num>ms waiting for connection <num>/<num>'
    """
    held = bytes([STRING]) + text.encode("utf-8", "surrogateescape")
    return masked(FieldValues.of_keys([held])).payload(0).decode("utf-8", "surrogateescape")
