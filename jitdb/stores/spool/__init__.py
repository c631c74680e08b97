"""Spool: the messages of encrypted groups, kept until everybody has them: one log a group.

    from jitdb.stores.spool import Spool

    with Spool("messages", create=True) as spool:
        spool.store(b"friends", b"ada-----", 1, 0, b"ciphertext")
        spool.messages_after(b"friends", {}).messages

Importing this package alone imports nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jitdb.stores.spool.aio import AsyncSpool
    from jitdb.stores.spool.record import InvalidMessage, Message, MessageDamaged, MessageId, NoSuchGroup, Shard
    from jitdb.stores.spool.record import SpoolError as SpoolError
    from jitdb.stores.spool.store import Backfill, Spool
    from jitdb.stores.spool.subscription import Subscription

_LAZY = {
    "AsyncSpool": "aio", "Backfill": "store", "InvalidMessage": "record", "Message": "record",
    "MessageDamaged": "record", "MessageId": "record", "NoSuchGroup": "record", "Shard": "record", "Spool": "store",
    "SpoolError": "record", "Subscription": "subscription",
}  # fmt: skip

__all__ = [
    "AsyncSpool", "Backfill", "InvalidMessage", "Message", "MessageDamaged", "MessageId", "NoSuchGroup", "Shard",
    "Spool", "SpoolError", "Subscription",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f"jitdb.stores.spool.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'jitdb.stores.spool' has no attribute {name!r}")
