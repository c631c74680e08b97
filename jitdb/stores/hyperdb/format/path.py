"""Keys as places in the trie: segments, their hashes, and the digits that these are made of.

A key is text whose segments are split by "/". One slash in front is left out; other slashes count, as in the JavaScript
hyperdb: "a/" is another key than "a", though an empty last segment is none, so both have the same path. Each segment is
hashed (SipHash-2-4, zero key, 8 bytes) and gives 32 digits of two bits, lowest bits first; the digit 4 ends a path.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from jitdb.common.words import shown
from jitdb.stores.hyperdb.errors import InvalidKey

DIGITS: Final = 32  # of a segment
END: Final = 4  # the digit behind the last one of a path
KEY_MOST: Final = 1 << 16  # bytes of a key
SEGMENTS_MOST: Final = 1024  # of a key: a path has 32 bytes for each

_NO_KEY: Final = bytes(16)
_DIGITS_OF: Final = [bytes((byte >> shift) & 3 for shift in (0, 2, 4, 6)) for byte in range(256)]


def normalized(key: str) -> str:
    """The key as entries hold it. Raises InvalidKey for what is no text, or too long.

    >>> normalized("/a/b"), normalized("//a/")
    ('a/b', '/a/')
    """
    if not isinstance(key, str):
        raise InvalidKey(f"a key is text, not {shown(key)}")
    try:
        key.encode()
    except UnicodeEncodeError as error:
        raise InvalidKey(f"the key {shown(key)} is not Unicode text: {error.reason} at {error.start}") from None
    return checked_size(key.removeprefix("/"))


def checked_size(key: str) -> str:
    """A normalized key. Raises InvalidKey for one that is too long: its path would be far longer still."""
    if len(key) < SEGMENTS_MOST:  # characters: as nearly all, it has not more bytes, or segments, than may be
        return key
    size, slashes = len(key.encode()), key.count("/")
    if size > KEY_MOST or slashes >= SEGMENTS_MOST:
        raise InvalidKey(
            f"a key of {size:,} bytes and {slashes + 1:,} segments: the most are {KEY_MOST:,} and {SEGMENTS_MOST:,}",
            remedy="name what is long in the value, and use a hash of it in the key",
        )
    return key


def segments_of(key: str) -> list[str]:
    """The segments of a normalized key.

    >>> segments_of("a//b/"), segments_of("/a"), segments_of("")
    (['a', '', 'b'], ['a'], [])
    """
    segments = key.split("/")
    if not segments[0]:
        del segments[0]
    if segments and not segments[-1]:
        del segments[-1]
    return segments


@lru_cache(maxsize=1 << 16)
def segment_digits(segment: str) -> bytes:
    """The 32 digits of a segment, a byte each.

    >>> segment_digits("tree").hex()[1::2]
    '03220313110003213021131231022203'
    """
    from nacl.bindings import crypto_shorthash_siphash24  # here: who only reads records can do without

    digest: bytes = crypto_shorthash_siphash24(segment.encode(), _NO_KEY)
    return b"".join([_DIGITS_OF[byte] for byte in digest])


def prefix_digits(key: str) -> bytes:
    """The digits of all keys at or below a normalized key: its segments', without the END."""
    return b"".join(map(segment_digits, segments_of(key)))


def path_digits(key: str) -> bytes:
    """The path of a normalized key: 32 digits a segment, and END."""
    return prefix_digits(key) + b"\4"
