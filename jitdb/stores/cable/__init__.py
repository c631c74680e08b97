"""Cable: the posts of a peer-to-peer chat, and all that is asked of them.

    from jitdb.stores.cable import Cable

    with Cable("chat", create=True) as cable:
        cable.ingest(post)
        cable.messages("default", limit=20)

Needs `pip install 'jitdb[stores]'`. Importing this package alone imports nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jitdb.stores.cable.database import Cable
    from jitdb.stores.cable.post import Post
    from jitdb.stores.cable.requests import Peer

__all__ = ["Cable", "Peer", "Post"]

_LAZY = {"Cable": "database", "Peer": "requests", "Post": "post"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f"jitdb.stores.cable.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'jitdb.stores.cable' has no attribute {name!r}")
