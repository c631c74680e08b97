"""A cable store as a loop over all posts: what its views must say, whatever order the posts came in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from jitdb.stores.cable.codec import info_of
from jitdb.stores.cable.post import DELETE, INFO, JOIN, LEAVE, TEXT, TOPIC, Post, decode_post, hash_of


class Model:
    """All that was ever taken of these posts; `here` is what is left of it."""

    def __init__(self, posts: Iterable[bytes], moderators: Iterable[bytes] = ()) -> None:
        self.all = {hash_of(post): decode_post(post) for post in posts}
        self.here = {name: post for name, post in self.all.items() if not self._deletes(name, set(moderators))}
        self.gone = {name: self._deletes(name, set(moderators)) for name in self.all if name not in self.here}

    def _deletes(self, name: bytes, moderators: set[bytes]) -> list[bytes]:
        post = self.all[name]
        allowed = {post.public_key, *moderators} if post.post_type != DELETE else set()
        deletes = [(other, by) for other, by in self.all.items() if by.post_type == DELETE and name in by.hashes]
        return [other for other, by in deletes if by.public_key in allowed]

    def moment(self, name: bytes) -> tuple[int, bytes]:
        return self.here[name].timestamp, name

    def after(self, name: bytes) -> set[bytes]:
        """All that a chain of links leads to."""
        found: set[bytes] = set()
        waiting = list(self.here[name].links)
        while waiting:
            link = waiting.pop()
            if link in self.here and link not in found:
                found.add(link)
                waiting += self.here[link].links
        return found

    def latest(self, of: Callable[[Post], bool]) -> bytes | None:
        names = [name for name, post in self.here.items() if of(post)]
        led_to = set[bytes]().union(*(self.after(name) for name in names))
        return max((name for name in names if name not in led_to), key=self.moment, default=None)

    # --- views -------------------------------------------------------------------------------------------------------

    def channels_of(self, author: bytes) -> set[str]:
        """Those in which somebody has posts now."""
        return {post.channel for post in self.here.values() if post.public_key == author and post.channel}

    def channels(self) -> list[str]:
        return sorted({post.channel for post in self.all.values() if post.channel})

    def concerned(self, delete: bytes) -> set[str]:
        found = set()
        for name in (name for name, by in self.gone.items() if delete in by):
            post = self.all[name]
            found |= {post.channel} if post.channel else self.channels_of(post.public_key)
        return found

    def messages(self, channel: str, start: int, end: int, limit: int) -> list[bytes]:
        texts = [name for name, post in self.here.items() if post.post_type == TEXT and post.channel == channel]
        deletes = [name for name, post in self.here.items() if post.post_type == DELETE]
        found = [*texts, *(name for name in deletes if channel in self.concerned(name))]
        times = [name for name in found if start <= self.here[name].timestamp < (end or 2**64)]
        return sorted(times, key=self.moment, reverse=True)[: limit or None]

    def authors(self, channel: str) -> list[bytes]:
        return sorted({post.public_key for post in self.here.values() if post.channel == channel})

    def decides(self, author: bytes, channel: str) -> int | None:
        """The type of the latest post of somebody in a channel."""
        name = self.latest(lambda post: (post.public_key, post.channel) == (author, channel))
        return None if name is None else self.here[name].post_type

    def is_member(self, author: bytes, channel: str) -> bool:
        return self.decides(author, channel) not in (None, LEAVE)

    def topic(self, channel: str) -> bytes | None:
        return self.latest(lambda post: (post.post_type, post.channel) == (TOPIC, channel))

    def move(self, author: bytes, channel: str) -> bytes | None:
        return self.latest(
            lambda post: (post.public_key, post.channel) == (author, channel) and post.post_type in (JOIN, LEAVE)
        )

    def info(self, author: bytes) -> bytes | None:
        return self.latest(lambda post: (post.public_key, post.post_type) == (author, INFO))

    def state(self, channel: str) -> list[bytes]:
        authors = self.authors(channel)
        infos = [self.info(author) for author in authors if self.is_member(author, channel)]
        found = [self.topic(channel), *(self.move(author, channel) for author in authors), *infos]
        return sorted(name for name in found if name is not None)

    def history(self, channel: str) -> list[bytes]:
        authors = self.authors(channel)
        return sorted(
            name
            for name, post in self.here.items()
            if (post.channel == channel and post.post_type in (TOPIC, JOIN, LEAVE))
            or (post.post_type == INFO and post.public_key in authors)
        )

    def everything(self, keys: Iterable[bytes]) -> dict[str, Any]:
        """As `everything` of a store."""
        return {
            "hashes": sorted(self.here),
            "channels": self.channels(),
            "deleted": sorted(self.gone),
            **{f"in {channel}": self._in_channel(channel) for channel in self.channels()},
            **{f"of {key.hex()}": self._of(key) for key in keys},
        }

    def _in_channel(self, channel: str) -> list[Any]:
        topic, authors = self.topic(channel), self.authors(channel)
        return [
            self.messages(channel, 0, 0, 0), self.messages(channel, 2, 5, 2),
            "" if topic is None else self.here[topic].topic,
            [author for author in authors if self.is_member(author, channel)], authors, self.state(channel),
            self.history(channel),
        ]  # fmt: skip

    def _of(self, key: bytes) -> tuple[Any, ...]:
        info = self.info(key)
        joined = [channel for channel in self.channels() if self.is_member(key, channel)]
        by = sorted((name for name, post in self.here.items() if post.public_key == key), key=self.moment, reverse=True)
        return joined, {} if info is None else info_of(self.here[info]), by
