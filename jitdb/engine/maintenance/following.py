"""Where the log was truncated, replaced, compacted or changed by another program, its indexes are others."""

from __future__ import annotations

import threading

from jitdb.engine.building.build_lock import BuildLock
from jitdb.engine.catalog.log_content import LogContent, content_of
from jitdb.engine.maintenance.state import IndexState
from jitdb.errors import LogSuperseded
from jitdb.indexes.spec import deleted_spec


def follow(state: IndexState, build_lock: BuildLock, cancel: threading.Event | None) -> None:
    """Open the indexes of the log as it is. Raises LogError, QueryCancelled."""
    if not state.is_unknown():
        return
    with build_lock.alone(cancel, takes_locks=False):
        while state.is_unknown():
            try:
                _look(state, cancel)
            except LogSuperseded:
                state.log.refresh()


def _look(state: IndexState, cancel: threading.Event | None) -> None:
    token, name = state.log.foreign_change_token(), state.name_now()
    if (token, name.identity) == (state.token, state.name.identity):  # compacted, no more
        content = LogContent(state.name.content)
    else:
        with state.lock:
            held = [] if state.is_another() else list(state.catalog.opened())
        folder = state.folder if state.log.identity_is_stored else None
        content = content_of(state.log, folder, token, held, cancel)
    with state.lock:
        if state.name_now() != name:
            return  # and again
        if name._replace(content=content.name) != state.name:
            state.open(content.name, state.catalog, quiet=content.by_deletion)
        if content.deleted:
            state.catalog.take_over(state.catalog.get(deleted_spec(token)), content.deleted)
        state.token = token
