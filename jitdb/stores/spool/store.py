"""Spool: the messages of any number of groups, each in a log of its own, until everybody has them.

    with Spool("messages", create=True) as spool:
        spool.store(b"friends", sender, seq, 0, message)
        spool.messages_after(b"friends", {sender: 17}).messages
        spool.delete_before(b"friends", {sender: 17}, 1)

A folder has a log a group, GROUP.log, named by the group in hex.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

from jitdb.common.arguments import file_path, flag, function, whole_number
from jitdb.errors import LogClosed, LogReadOnly
from jitdb.stores.folders import make_folder, mark
from jitdb.stores.spool.group import Group
from jitdb.stores.spool.record import (
    InvalidMessage,
    Message,
    MessageId,
    NoSuchGroup,
    Shard,
    SpoolError,
    checked_group,
    checked_level,
    checked_sender,
    checked_seq,
    checked_shard,
    checked_token,
    checked_value,
    checked_vector,
    token_of,
)
from jitdb.stores.spool.subscription import StateVector, Subscription

BLOCK_SIZE: Final = 1 << 18  # of a new log: a message, or a shard, must fit a block

_AT_ONCE: Final = 1 << 18  # keys whose messages are read together: the more, the nearer they lie in the log

Rebuild = Callable[[Sequence[Shard]], bytes]


class Backfill(NamedTuple):
    """What messages_after() has found.

    messages:   in the order of their keys
    incomplete: the keys, of those that were passed, of which too few shards are here
    next:       what to pass as `after` to go on, where the limit was reached before the end
    """

    messages: list[Message]
    incomplete: list[MessageId]
    next: bytes | None


class Spool:
    """A folder of groups. Safe for threads.

    create:     make the folder where there is none
    read_only:  open beside the process that writes; refresh() shows what it did
    block_size: of the logs of new groups, bytes: a message must fit a block

    What was stored is there at once, and durable after flush(), or about a quarter of a second later. One process at a
    time writes to a group: others get LogLocked, and open the folder with `read_only`.

    Methods raise InvalidMessage for arguments that are none, LogError where files are at fault.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        create: bool = False,
        read_only: bool = False,
        block_size: int = BLOCK_SIZE,
    ) -> None:
        self.folder = Path(file_path(folder))
        self.read_only = flag("read_only", read_only, InvalidMessage)
        self._block_size = whole_number("block_size is a number of bytes", block_size, 16, InvalidMessage)
        if flag("create", create, InvalidMessage) and not self.read_only:
            make_folder(self.folder)
        if not self.folder.is_dir():
            raise SpoolError("there is no such folder", path=self.folder, remedy="pass create=True to make one")
        if not self.read_only:
            mark(self.folder, "spool")
        self._open: dict[bytes, Group] = {}
        self._lock = threading.RLock()
        self._is_closed = False

    def groups(self) -> list[bytes]:
        """All groups that have a log here, ascending."""
        names = (path.stem for path in self.folder.glob("*.log"))
        return sorted(bytes.fromhex(name) for name in names if name and not set(name) - set("0123456789abcdef"))

    def group(self, group: bytes) -> Group:
        """The group, whose `index` takes every question of jitdb; made where it is new. Raises NoSuchGroup."""
        name = checked_group(group)
        found = self._known(name, make=not self.read_only)
        if found is None:
            raise NoSuchGroup(f"nobody has stored a message of {name!r} yet", path=self.folder)
        return found

    def _known(self, name: bytes, make: bool = False) -> Group | None:
        """The group, if it has a log, or one is to be made."""
        with self._lock:
            if self._is_closed:
                raise LogClosed("the spool was closed", path=self.folder)
            if name not in self._open:
                path = self.folder / f"{name.hex()}.log"
                if not make and not path.exists():
                    return None
                self._open[name] = Group(path, block_size=self._block_size, read_only=self.read_only)
            return self._open[name]

    # --- writing -----------------------------------------------------------------------------------------------------

    def store(self, group: bytes, sender: bytes, seq: int, level: int | None, message: bytes) -> None:
        """Store a message; whatever is under its key goes.

        level: 0 for a message, more for what a compaction made; None writes the old format, which reads as 0

        Raises InvalidMessage, RecordTooLarge, LogReadOnly, LogWriteFailed.
        """
        known = None if level is None else checked_level(level)
        self._put(group, MessageId(checked_sender(sender), checked_seq(seq)), known, checked_value(message))

    def store_shard(
        self,
        group: bytes,
        sender: bytes,
        seq: int,
        level: int,
        shard_index: int,
        data_shards: int,
        total_shards: int,
        data: bytes,
    ) -> None:
        """Store one shard of a message, beside the others of the same level, data_shards and total_shards.

        The same shard of before goes, and so does whatever else is under the key. Raises as store does.
        """
        shard = checked_shard(shard_index, data_shards, total_shards, data)
        self._put(group, MessageId(checked_sender(sender), checked_seq(seq)), checked_level(level), shard)

    def _put(self, group: bytes, key: MessageId, level: int | None, value: bytes | Shard) -> None:
        self._check_writable()
        self.group(group).put(key, level, value)

    def delete_before(self, group: bytes, watermark: Mapping[bytes, int], level: int) -> int:
        """Delete the messages whose level is below this one, and whose seq is at or below their sender's watermark.

        Those of senders that are not in the watermark stay. Gives the number of messages; one that is held as shards is
        one. No message is read. Raises InvalidMessage, LogReadOnly, LogWriteFailed.
        """
        self._check_writable()
        known, below = checked_vector(watermark), checked_level(level)
        found = self._known(checked_group(group))
        return 0 if found is None else found.delete_before(known, below)

    def _check_writable(self) -> None:
        if self.read_only:
            raise LogReadOnly("it was opened with read_only=True", path=self.folder)

    def flush(self) -> None:
        """Return when all that was stored and deleted is on the disk. Raises LogWriteFailed."""
        for group in self._groups():
            group.flush()

    def compact(self, group: bytes | None = None) -> int:
        """Give back the room of what was deleted or replaced, in a group or in all; how many bytes that were.

        Others store and read meanwhile; deletions wait. A crash leaves the log of before or after, whole.
        """
        self._check_writable()
        names = self.groups() if group is None else [checked_group(group)]
        return sum(found.compact() for found in map(self._known, names) if found is not None)

    # --- reading -----------------------------------------------------------------------------------------------------

    def messages_after(
        self,
        group: bytes,
        state_vector: Mapping[bytes, int],
        limit: int | None = None,
        *,
        after: bytes | None = None,
        rebuild: Rebuild | None = None,
    ) -> Backfill:
        """The messages whose seq is above their sender's in the vector, in the order of their keys; of senders that are
        not in it, all.

        limit:   at most so many; `next` of the answer is the token to go on
        after:   that token: only messages behind it. What is stored meanwhile is in the answer if its key is behind
        rebuild: makes a message of shards, of which enough are given; without it the shards are handed out

        A message of which too few shards are here is not among them, but its key among the `incomplete`. Nothing is
        held back meanwhile: others store and delete. Raises InvalidMessage, LogCorrupt, MessageDamaged, and whatever
        `rebuild` raises.
        """
        vector, most = checked_vector(state_vector), _limit(limit)
        behind = None if after is None else checked_token(after)
        if rebuild is not None:
            function("rebuild is a function of a message's shards", rebuild, 1, InvalidMessage)
        found = self._known(checked_group(group))
        answer = Backfill([], [], None)
        while found is not None:
            wanted = _AT_ONCE if most is None else min(_AT_ONCE, most - len(answer.messages))
            read = found.read(vector, behind, wanted)
            answer.messages.extend(
                read.messages if rebuild is None else (_rebuilt(each, rebuild) for each in read.messages)
            )
            answer.incomplete.extend(read.incomplete)
            if read.last is None or len(read.messages) + len(read.incomplete) < wanted:
                break
            behind = read.last
            if most is not None and len(answer.messages) >= most:
                return answer._replace(next=token_of(behind) if found.is_more(vector, behind) else None)
        return answer

    def state_vector(self, group: bytes) -> StateVector:
        """The highest seq of each sender, of all that were here since it was opened, and were there then."""
        found = self._known(checked_group(group))
        return {} if found is None else found.state_vector()

    def subscribe(
        self,
        group: bytes,
        callback: Callable[[StateVector], object] | None = None,
        *,
        timeout: float | None = None,
    ) -> Subscription:
        """The group's state vectors as they advance from now on; whoever is slow gets the newest.

        callback: is called with each of them instead, by the thread that stores
        timeout:  a loop over it ends when none came in so many seconds

        With `read_only`, what the writer does is looked for several times a second. Raises NoSuchGroup.
        """
        if callback is not None:
            function("callback is a function of a state vector", callback, 1, InvalidMessage)
        return self.group(group).subscribe(callback, _seconds(timeout))

    def refresh(self) -> None:
        """Of a spool that was opened to be read: see what the writer did."""
        for group in self._groups():
            group.refresh()

    # --- ending ------------------------------------------------------------------------------------------------------

    def _groups(self) -> list[Group]:
        with self._lock:
            return list(self._open.values())

    def close(self) -> None:
        """Flush and close. Safe to call twice. Raises LogWriteFailed."""
        with self._lock:
            self._is_closed = True
        failures = []
        for group in self._groups():
            try:
                group.close()
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Spool {str(self.folder)!r}>"


def _limit(limit: int | None) -> int | None:
    return None if limit is None else whole_number("a limit is a number of messages", limit, 1, InvalidMessage)


def _seconds(timeout: float | None) -> float | None:
    if timeout is None or (isinstance(timeout, (int, float)) and timeout >= 0):
        return timeout
    raise InvalidMessage(f"a timeout is a number of seconds, not {timeout!r}")


def _rebuilt(message: Message, rebuild: Rebuild) -> Message:
    if message.message is not None:
        return message
    return message._replace(message=checked_value(rebuild(message.shards)), shards=())
