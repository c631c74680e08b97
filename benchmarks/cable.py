"""Cable: posts taken, and each request answered, at several sizes.

python -m benchmarks cable; JITDB_BENCH_POSTS=10000,1000000 says how many posts there are.
"""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Iterator
from typing import Final

from jitdb.stores.cable import Cable, Peer
from jitdb.stores.cable.message import ChannelListRequest, Message, PostRequest, StateRequest, TimeRangeRequest
from jitdb.stores.cable.post import DELETE, JOIN, TEXT, TOPIC, hash_of, sign_post, verify_post

from .data import FOLDER
from .measure import Figure, median_ms, seconds

SIZES: Final = tuple(int(size) for size in os.environ.get("JITDB_BENCH_POSTS", "10000").split(","))
START: Final = 1700000000000
USERS, CHANNELS = 20, 5


def post(number: int) -> bytes:
    """A user joins each channel first; then all write to all."""
    secret, channel = bytes([number % USERS]) * 32, f"channel{number // USERS % CHANNELS}"
    if number < USERS * CHANNELS:
        return sign_post(secret, JOIN, START + number, channel=channel)
    if number % 1000 == 0:
        return sign_post(secret, TOPIC, START + number, channel=channel, topic=f"topic {number}")
    return sign_post(secret, TEXT, START + number, channel=channel, text=f"message {number}")


def run() -> Iterator[Figure]:
    for size in SIZES:
        yield from figures(size)


def figures(size: int) -> Iterator[Figure]:
    folder = FOLDER / f"cable-{size}"
    shutil.rmtree(folder, ignore_errors=True)
    posts = [post(number) for number in range(size)]
    where = f"{size:,} posts"
    signed = 1e6 * seconds(lambda: [verify_post(each) for each in posts[:5000]]) / min(5000, size)
    with Cable(folder, create=True) as cable:
        taken = 1e6 * seconds(cable.ingest_many, posts) / size
        yield Figure(f"cable ingest, {where}", taken, "µs", "decoding and the signature alone", signed)
        answers: list[Message] = []
        peer = Peer(cable, answers.append)
        for name, request in requests(posts):
            first = 1e3 * seconds(peer.receive, request)
            again = median_ms(lambda asked=request: peer.receive(asked))  # type: ignore[misc]
            yield Figure(f"cable {name}, {where}", again, "ms", "the first time", first)
        gone = iter([sign_post(bytes([number % USERS]) * 32, DELETE, START + size + number,
                               hashes=(hash_of(posts[number]),)) for number in range(500, 507)])  # fmt: skip
        yield Figure(f"cable delete, {where}", median_ms(lambda: cable.ingest(next(gone))), "ms")
    yield Figure(f"cable memory at most, {where}", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MiB")


def requests(posts: list[bytes]) -> list[tuple[str, Message]]:
    end = START + len(posts)
    return [
        ("100 posts by hash", PostRequest(b"request1", tuple(map(hash_of, posts[-100:])))),
        ("time range, the newest 100", TimeRangeRequest(b"request2", "channel1", 0, end, 100)),
        (
            "time range of 1,000 posts, all channels' part",
            TimeRangeRequest(b"request3", "channel1", end - 1000, end, 0),
        ),
        ("state of a channel", StateRequest(b"request4", "channel1", 0)),
        ("list of channels", ChannelListRequest(b"request5", 0, 0)),
    ]
