"""The views of a store after each step: the vectors' scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cable_posts import cases, raw, vectors

from jitdb.stores.cable import Cable


class Labels:
    """The names that a scenario gives to posts and authors."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.bytes = {post["label"]: raw(post["binary"]) for post in case["posts"]}
        self.labels = {raw(post["hash"]): post["label"] for post in case["posts"]}
        self.keys = {f"u{number}": raw(key["public_key"]) for number, key in enumerate(vectors("posts", "keys"))}
        self.users = {key: user for user, key in self.keys.items()}

    def of(self, hashes: Any) -> list[str]:
        return [self.labels[each] for each in hashes]

    def views(self, cable: Cable, expected: dict[str, Any]) -> dict[str, Any]:
        """All that is expected, as the store says it."""
        channels = expected["chat"]
        users = expected["joined"]
        authors = {user: {str(kind): self.of(cable.by(self.keys[user], kind)) for kind in range(6)} for user in users}
        infos = {user: cable.info_post(self.keys[user]) for user in users}
        return {
            "stored": sorted(self.of(cable.hashes())),
            "chat": {channel: self.of(cable.messages(channel)) for channel in channels},
            "state": {channel: sorted(self.of(cable.state(channel))) for channel in channels},
            "historic_state": {channel: sorted(self.of(cable.history(channel))) for channel in channels},
            "topic": {channel: cable.topic(channel) for channel in channels},
            "members": {channel: sorted(self.users[key] for key in cable.members(channel)) for channel in channels},
            "historic_users": {
                channel: sorted(self.users[key] for key in cable.authors(channel)) for channel in channels
            },
            "channels": cable.channels(),
            "joined": {user: cable.joined(self.keys[user]) for user in users},
            "info": {user: None if post is None else self.labels[post] for user, post in infos.items()},
            "author": {user: {kind: found for kind, found in by.items() if found} for user, by in authors.items()},
            "deleted": sorted(self.of(cable.deleted())),
        }


def step(cable: Cable, labels: Labels, each: dict[str, Any]) -> None:
    if each["op"] == "range":
        found = cable.messages(each["channel"], each["time_start"], each["time_end"], each["limit"])
        assert labels.of(found) == each["expected"]
    elif each["op"] == "channel_list":
        found = cable.channels()[each["offset"] :]
        assert (found[: each["limit"]] if each["limit"] else found) == each["expected"]
    else:
        for label in each["posts"]:
            cable.ingest(labels.bytes[label])
        assert labels.views(cable, each["expected"]) == each["expected"], each["posts"]


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("case", cases("scenarios", "scenarios"))
def test_vectors_of_scenarios(case: dict[str, Any], reopened: bool, tmp_path: Path) -> None:
    labels = Labels(case)
    cable = Cable(tmp_path, create=True)
    for each in case["steps"]:
        if reopened:
            cable.close()
            cable = Cable(tmp_path)
        step(cable, labels, each)
    cable.close()
