"""A spool for async programs: the same methods, to be awaited, each in a thread."""

from __future__ import annotations

import os
from typing import Any

from jitdb.stores.awaiting import AsyncStore, awaited
from jitdb.stores.spool.store import Spool


class AsyncSpool(AsyncStore):
    """See Spool, which says what each method takes and gives."""

    def __init__(self, folder: str | os.PathLike[str], **options: Any) -> None:
        """Options are those of Spool."""
        self.spool = Spool(folder, **options)

    def _opened(self) -> Spool:
        return self.spool

    store = awaited(Spool.store)
    store_shard = awaited(Spool.store_shard)
    messages_after = awaited(Spool.messages_after)
    delete_before = awaited(Spool.delete_before)
    state_vector = awaited(Spool.state_vector)
    subscribe = awaited(Spool.subscribe)
    groups = awaited(Spool.groups)
    flush = awaited(Spool.flush)
    refresh = awaited(Spool.refresh)
    compact = awaited(Spool.compact)
    close = awaited(Spool.close)
