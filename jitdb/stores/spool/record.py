"""What a spool keeps: a message or a shard of one, as a record of the group's log; and what may be wrong with it.

A record is a msgpack map: `sender` (8 bytes), `seq`, `level`, and then `message`, or `shard_index`, `data_shards`,
`total_shards` and `data`. One without `level` is of the old format, and of level 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from jitdb.common.words import shown, type_and_size
from jitdb.errors import JitdbError

SENDER_BYTES: Final = 8
MAX_SEQ: Final = (1 << 64) - 1
MAX_LEVEL: Final = 255  # and so of all that a shard says of itself
MAX_GROUP_BYTES: Final = 100  # twice as many digits, and what stands behind them, are a file's name


class SpoolError(JitdbError):
    """A spool cannot do what it was asked."""


class InvalidMessage(SpoolError, ValueError):
    """What was given is no group, sender, seq, level, message, shard, vector or token."""


class NoSuchGroup(SpoolError, LookupError):
    """The group has no log, and the spool was opened to be read."""


class MessageDamaged(SpoolError):
    """A record of a group's log is no message, though its keys say that it is one."""


class MessageId(NamedTuple):
    """The key of a message. They are ordered as the keys of the document are: by sender, then by seq."""

    sender: bytes
    seq: int


class Shard(NamedTuple):
    """A part of a message; any `data_shards` of the `total_shards` that there are make it again."""

    shard_index: int
    data_shards: int
    total_shards: int
    data: bytes


class Message(NamedTuple):
    """What is under a key: a message; or None, and the shards of which it can be made."""

    sender: bytes
    seq: int
    level: int
    message: bytes | None
    shards: tuple[Shard, ...] = ()


def encoded(sender: bytes, seq: int, level: int | None, value: bytes | Shard) -> dict[str, Any]:
    """The record of it; without a level, one of the old format."""
    record: dict[str, Any] = {"sender": sender, "seq": seq}
    if level is not None:
        record["level"] = level
    return {**record, **(value._asdict() if isinstance(value, Shard) else {"message": value})}


def decoded(record: Any, sender: bytes, seq: int) -> bytes | Shard:
    """What a record holds. Raises MessageDamaged unless it is one of this key."""
    try:
        if record["sender"] == sender and record["seq"] == seq:
            if "shard_index" in record:
                return shard_of(record)
            message = record["message"]
            return message if type(message) is bytes else checked_value(message)
        fault = "it is of another one"
    except (KeyError, TypeError, SpoolError) as error:
        fault = str(error)
    raise MessageDamaged(f"the record of message {seq} of {sender.hex()} cannot be read: {fault}")


def shard_of(record: Mapping[str, Any]) -> Shard:
    return Shard(record["shard_index"], record["data_shards"], record["total_shards"], checked_value(record["data"]))


# What callers give


def _number(name: str, value: Any, least: int, most: int) -> int:
    if type(value) is int and least <= value <= most:
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__") or not least <= value.__index__() <= most:
        raise InvalidMessage(f"{name} is an integer from {least} to {most}, not {shown(value)}")
    return int(value.__index__())


def _bytes(name: str, value: Any, least: int, most: int | None = None) -> bytes:
    if type(value) is bytes and len(value) >= least and (most is None or len(value) <= most):
        return value
    if not isinstance(value, (bytes, bytearray, memoryview)):
        remedy = "encode text first: value.encode()" if isinstance(value, str) else None
        raise InvalidMessage(f"{name} is bytes, not {type_and_size(value)}", remedy=remedy)
    found = bytes(value)
    if len(found) < least or (most is not None and len(found) > most):
        size = f"{least}" if least == most else f"{least} to {most}"
        raise InvalidMessage(f"{name} is {size} bytes, not {len(found):,}")
    return found


def checked_group(group: Any) -> bytes:
    return _bytes("a group", group, 1, MAX_GROUP_BYTES)


def checked_sender(sender: Any) -> bytes:
    return _bytes("a sender", sender, SENDER_BYTES, SENDER_BYTES)


def checked_seq(seq: Any) -> int:
    return _number("a seq", seq, 0, MAX_SEQ)


def checked_level(level: Any) -> int:
    return _number("a level", level, 0, MAX_LEVEL)


def checked_value(value: Any) -> bytes:
    return _bytes("a message, or a shard's data,", value, 0)


def checked_shard(shard_index: Any, data_shards: Any, total_shards: Any, data: Any) -> Shard:
    total = _number("total_shards", total_shards, 1, MAX_LEVEL)
    needed = _number("data_shards", data_shards, 1, total)
    return Shard(_number("shard_index", shard_index, 0, total - 1), needed, total, checked_value(data))


def checked_vector(vector: Any) -> dict[bytes, int]:
    """A seq a sender."""
    if not isinstance(vector, Mapping):
        raise InvalidMessage(f"a state vector, or a watermark, maps senders to seqs: it is not {shown(vector)}")
    found = dict(vector)
    if all(
        type(sender) is bytes and len(sender) == SENDER_BYTES and type(seq) is int and 0 <= seq <= MAX_SEQ
        for sender, seq in found.items()
    ):
        return found  # as nearly all are, and they may have many
    return {checked_sender(sender): checked_seq(seq) for sender, seq in found.items()}


def token_of(key: MessageId) -> bytes:
    """A key as the document has it: what a backfill goes on behind."""
    return key.sender + key.seq.to_bytes(8, "big")


def checked_token(token: Any) -> MessageId:
    key = _bytes("the token of a backfill", token, 16, 16)
    return MessageId(key[:SENDER_BYTES], int.from_bytes(key[SENDER_BYTES:], "big"))
