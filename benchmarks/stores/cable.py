"""Cable: posts taken, beside their signatures alone, and each request answered, at several sizes.

python -m benchmarks cable; JITDB_BENCH_POSTS=10000,1000000 says how many posts there are; they are signed
once, and kept.
"""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Final

from nacl.signing import SigningKey

from jitdb import Log
from jitdb.stores.cable import Cable, Peer, Post
from jitdb.stores.cable.message import ChannelListRequest, Message, PostRequest, StateRequest, TimeRangeRequest
from jitdb.stores.cable.post import DELETE, JOIN, TEXT, TOPIC, encode_post, encode_signed, hash_of, verify_post
from jitdb.stores.cable.verifying import THREADS, verdicts

from ..data import FOLDER
from ..measure import Figure, median_ms, seconds

SIZES: Final = tuple(int(size) for size in os.environ.get("JITDB_BENCH_POSTS", "10000").split(","))
START: Final = 1700000000000
USERS, CHANNELS = 20, 5
_AT_ONCE: Final = 1000  # posts that a thread signs together
SAMPLE: Final = 5000  # posts whose signatures are verified alone


@cache
def key_of(user: int) -> SigningKey:
    return SigningKey(bytes([user]) * 32)


def signed(user: int, post: Post) -> bytes:
    key = key_of(user)
    return encode_post(
        post._replace(public_key=bytes(key.verify_key), signature=key.sign(encode_signed(post)).signature)
    )


def post(number: int) -> bytes:
    """A user joins each channel first; then all write to all."""
    user, channel = number % USERS, f"channel{number // USERS % CHANNELS}"
    made = Post(b"", b"", (), TEXT, START + number, channel=channel, text=f"message {number}")
    if number < USERS * CHANNELS:
        made = made._replace(post_type=JOIN)
    elif number % 1000 == 0:
        made = made._replace(post_type=TOPIC, topic=f"topic {number}")
    return signed(user, made)


def posts(begin: int, size: int) -> list[bytes]:
    return [post(number) for number in range(begin, min(begin + _AT_ONCE, size))]


def delete(number: int, target: bytes, size: int) -> bytes:
    return signed(number % USERS, Post(b"", b"", (), DELETE, START + size + number, hashes=(hash_of(target),)))


def posts_of(size: int) -> Log:
    """So many signed posts."""
    folder = FOLDER / f"cable-posts-{size}"
    if not folder.exists():
        unfinished = folder.with_suffix(".part")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        with Log(unfinished / "posts.log", codec="raw", block_size=1 << 20) as log, ThreadPoolExecutor() as threads:
            for part in threads.map(lambda begin: posts(begin, size), range(0, size, _AT_ONCE)):
                log.append_many(part)
        unfinished.rename(folder)
    return Log(folder / "posts.log", read_only=True)


def run() -> Iterator[Figure]:
    for size in SIZES:
        with posts_of(size) as log:
            yield from figures(log, size)


def figures(log: Log, size: int) -> Iterator[Figure]:
    folder, where = FOLDER / f"cable-{size}", f"{size:,} posts"
    shutil.rmtree(folder, ignore_errors=True)
    sample = [found.value for found in islice(log.stream(), min(SAMPLE, size))]
    with ThreadPoolExecutor(THREADS) as threads:
        alone = 1e6 * seconds(verdicts, sample, threads) / len(sample)
    one = 1e6 * seconds(lambda: [verify_post(each) for each in sample]) / len(sample)
    yield Figure("cable signatures alone, a post, on all processors", alone, "µs", "on one", one)
    with Cable(folder, create=True) as cable:
        taken = 1e6 * seconds(cable.ingest_many, (found.value for found in log.stream())) / size
        yield Figure(f"cable ingest, a post, {where}", taken, "µs", "signatures alone", alone)
        yield from answered(cable, log, size, where)
    shutil.rmtree(folder / "posts.log.jitdb" / "indexes")
    yield opened(folder, f"cable open, to the first state, indexes built, {where}")
    yield opened(folder, f"cable open, to the first state, {where}")
    yield Figure(f"cable memory at most, {where}", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MiB")


def opened(folder: Path, name: str) -> Figure:
    stores: list[Cable] = []

    def work() -> None:
        stores.append(Cable(folder))
        stores[0].state("channel1")

    taken = 1e3 * seconds(work)
    stores[0].close()
    return Figure(name, taken, "ms")


def answered(cable: Cable, log: Log, size: int, where: str) -> Iterator[Figure]:
    answers: list[Message] = []
    peer = Peer(cable, answers.append)
    early = [found.value for found in islice(log.stream(), 500, 507)]
    newest = cable.messages("channel1", limit=100)
    for name, request in requests(newest, START + size):
        first = 1e3 * seconds(peer.receive, request)
        again = median_ms(lambda asked=request: peer.receive(asked))  # type: ignore[misc]
        yield Figure(f"cable {name}, {where}", again, "ms", "the first time", first)
    gone = iter([delete(500 + number, post, size) for number, post in enumerate(early)])
    yield Figure(f"cable delete, {where}", median_ms(lambda: cable.ingest(next(gone))), "ms")


def requests(newest: list[bytes], end: int) -> list[tuple[str, Message]]:
    return [
        ("100 posts by hash", PostRequest(b"request1", tuple(newest))),
        ("time range, the newest 100", TimeRangeRequest(b"request2", "channel1", 0, end, 100)),
        ("time range, a channel's part of 1,000", TimeRangeRequest(b"request3", "channel1", end - 1000, end, 0)),
        ("state of a channel", StateRequest(b"request4", "channel1", 0)),
        ("list of channels", ChannelListRequest(b"request5", 0, 0)),
    ]
