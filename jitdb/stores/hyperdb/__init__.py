"""HyperDB (DEP-0004): a distributed key/value store whose writers each append to a feed of their own.

    from jitdb.stores.hyperdb import HyperDB

    with HyperDB("notes", create=True) as db:
        db.put("life/cat", b"meow")
        db["life/cat"]

Needs `pip install 'jitdb[stores]'`. Importing this package alone imports nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jitdb.stores.hyperdb.aio import AsyncHyperDB
    from jitdb.stores.hyperdb.database import HyperDB, Operation
    from jitdb.stores.hyperdb.reading import Checkout
    from jitdb.stores.hyperdb.replication.stream import connect, serve
    from jitdb.stores.hyperdb.tries.node import Node
    from jitdb.stores.hyperdb.view import Change

__all__ = ["AsyncHyperDB", "Change", "Checkout", "HyperDB", "Node", "Operation", "connect", "serve"]

_LAZY = {
    "AsyncHyperDB": "aio",
    "Change": "view",
    "Checkout": "reading",
    "HyperDB": "database",
    "Node": "tries.node",
    "Operation": "database",
    "connect": "replication.stream",
    "serve": "replication.stream",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        try:
            return getattr(import_module(f"jitdb.stores.hyperdb.{_LAZY[name]}"), name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "nacl":
                raise
            raise ImportError("HyperDB needs PyNaCl: pip install 'jitdb[stores]'") from error
    raise AttributeError(f"module 'jitdb.stores.hyperdb' has no attribute {name!r}")
