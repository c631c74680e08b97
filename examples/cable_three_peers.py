"""Three peers of a cable chat: a channel, a change of its topic, deletions that come in the wrong order, and what each
peer answers.

    python examples/cable_three_peers.py [FOLDER]

Needs `pip install 'jitdb[stores]'`.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from jitdb.stores.cable import Cable, Peer, Post
from jitdb.stores.cable.message import HashResponse, Message, PostRequest, PostResponse, StateRequest, TimeRangeRequest
from jitdb.stores.cable.post import DELETE, INFO, JOIN, TEXT, TOPIC, TYPES, hash_of, sign_post

SECRETS = {name: name.encode().ljust(32, b".") for name in ("ada", "bob", "cleo")}
START = 1700000000000


def ask(cable: Cable, request: Message) -> list[Message]:
    """What a peer answers."""
    answers: list[Message] = []
    peer = Peer(cable, answers.append)
    peer.receive(request)
    peer.close()
    return answers


def fetch(cable: Cable, other: Cable) -> list[bytes]:
    """Ask another peer for what the channel is and what was said in it, then for the posts that are not here."""
    requests = [StateRequest(b"state...", "cats", 0), TimeRangeRequest(b"messages", "cats", 0, START + 1000, 0)]
    answers = [answer for request in requests for answer in ask(other, request) if isinstance(answer, HashResponse)]
    lacking = [each for answer in answers for each in answer.hashes if cable.get(each) is None]
    found = ask(other, PostRequest(b"posts...", tuple(dict.fromkeys(lacking))))
    return [post for answer in found if isinstance(answer, PostResponse) for post in answer.posts]


def said(post: Post | None) -> str:
    if post is None:
        return "gone"
    return post.text or post.topic or f"a {TYPES[post.post_type]}"


def show(title: str, peers: dict[str, Cable]) -> None:
    """What each peer sees."""
    print(f"\n{title}")
    for name, cable in peers.items():
        names = sorted(str(cable.info(key).get("name", "somebody")) for key in cable.members("cats"))
        messages = [said(cable.find(each)) for each in reversed(cable.messages("cats"))]
        print(f"  {name:4} topic {cable.topic('cats')!r}, members {', '.join(names)}: {'; '.join(messages)}")


def main(folder: Path) -> None:
    with ExitStack() as stack:
        peers = {name: stack.enter_context(Cable(folder / name, create=True)) for name in SECRETS}
        ada, bob, cleo = peers.values()
        for number, name in enumerate(("ada", "bob")):
            peers[name].ingest(sign_post(SECRETS[name], JOIN, START + number, channel="cats"))
            peers[name].ingest(sign_post(SECRETS[name], INFO, START + number, info=[("name", name)]))
        topic = sign_post(SECRETS["ada"], TOPIC, START + 10, channel="cats", topic="dogs")
        hello = sign_post(SECRETS["bob"], TEXT, START + 11, channel="cats", text="meow")
        slip = sign_post(SECRETS["bob"], TEXT, START + 12, channel="cats", text="woof")
        ada.ingest(topic)
        bob.ingest_many([hello, slip])
        ada.ingest_many(fetch(ada, bob))
        show("Ada has asked Bob", peers)

        links = (hash_of(topic),)
        ada.ingest(
            sign_post(SECRETS["ada"], TOPIC, START + 5, links, channel="cats", topic="cats!")
        )  # her clock is slow
        sorry = sign_post(SECRETS["bob"], DELETE, START + 20, hashes=(hash_of(slip),))
        bob.ingest(sorry)
        print("\nCleo hears of Bob's deletion before she has what it deletes:", cleo.ingest(sorry))
        cleo.ingest_many(fetch(cleo, ada))
        print("and Ada, who does not know of it, has offered her that:", cleo.ingest(slip))
        for cable, other in ((ada, cleo), (bob, ada), (cleo, bob)):
            cable.ingest_many(fetch(cable, other))
        show("All have asked each other", peers)
        answers = {
            name: ask(cable, TimeRangeRequest(b"messages", "cats", 0, START + 1000, 0)) for name, cable in peers.items()
        }
        print("\nAll answer the same:", answers["ada"] == answers["bob"] == answers["cleo"])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
