"""Small logs of messages, questions about them, and the oracle's answers read from the file itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from oracle import Oracle

from jitdb import JITDB, Log
from jitdb.engine.manager import IndexManager
from jitdb.indexes.files import folder as folder_module
from jitdb.indexes.files.index import Index
from jitdb.log.blocks.block_format import header_size, walk_block
from jitdb.log.io import osfile
from jitdb.operators import absent, and_, equal, everything, gt, gte, includes, lt, not_, or_, predicate, starts_with
from jitdb.operators.nodes.operation import Operation

DATA = Path(__file__).parent / "data"
FIXTURE = DATA / "ssb-5k.bipf"

TYPES = ("post", "vote", "contact", "about", "post")


def message(number: int) -> dict[str, Any]:
    """A record whose declared order differs from its arrival, with fields of few, many and no values."""
    content: dict[str, Any] = {"type": TYPES[number % len(TYPES)], "text": f"text {number}"}
    if number % 3 == 0:
        content["root"] = f"%{number % 50:04d}root"
    if number % 4 == 0:
        content["tags"] = [f"tag{number % 7}", "all"]
    value = {
        "author": f"@{number % 11}",
        "sequence": number // 11,
        "timestamp": 1000 + (number * 7919) % 1009,
        "content": content,
    }
    return {"key": f"%{number:06d}", "value": value, "timestamp": 1500 + number / 4}


def messages(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [message(number) for number in range(first, first + count)]


def make_log(path: Path, count: int, *, codec: str = "bipf", block_size: int = 4096) -> list[int]:
    """A closed log of `count` messages; their offsets."""
    with Log(path, codec=codec, block_size=block_size) as log:
        return list(map(int, log.append_many(messages(count))))


def is_even(value: Any) -> bool:
    return isinstance(value, int) and value % 2 == 0


TYPE = "value.content.type"
POSTS = equal(TYPE, "post")
VOTES = equal(TYPE, "vote")

#: One of each kind of leaf, and all combinators.
QUESTIONS: tuple[Operation, ...] = (
    everything(),
    POSTS,
    not_(POSTS),
    equal("value.author", "@3"),
    equal("key", "%000007"),
    equal("key", "%000007", prefix=32, prefix_offset=3),
    not_(equal("value.content.text", "text 5", prefix=32)),
    equal("value.content.root", "%0003root", use_map=True),
    absent("value.content.root"),
    includes("value.content.tags", "tag4"),
    predicate("value.sequence", is_even),
    starts_with("value.content.text", "text 1"),
    gt(30, "sequence"),
    lt(1400, "timestamp"),
    gte(1400, "value.timestamp"),
    and_(POSTS, or_(equal("value.author", "@1"), gt(20, "sequence")), not_(includes("value.content.tags", "all"))),
)


def oracle_of(log: Log, deleted_besides: Iterable[int] = ()) -> Oracle:
    """All durable records, by walking the file. `deleted_besides`: offsets deleted whose bytes may still be there."""
    data = log.path.read_bytes()[: log.durable_end]
    header = header_size(log.block_size)
    records: list[Any] = []
    offsets: list[int] = []
    deleted: set[int] = set()
    besides = set(deleted_besides)
    for begin in range(0, len(data), log.block_size):
        block = data[begin : begin + log.block_size]
        walk = walk_block(block, len(block), log.block_size)
        for position, length in zip(walk.positions, walk.lengths, strict=True):
            raw = block[position + header : position + header + length]
            if not any(raw) or begin + position in besides:
                deleted.add(len(records))
                records.append(None)
            else:
                records.append(log.codec.decode(raw))
            offsets.append(begin + position)
    return Oracle(records, offsets, deleted)


def expected(oracle: Oracle, operation: Operation, *, descending: bool = False, arrival: bool = False) -> list[int]:
    """The offsets of the answers, in order."""
    return [oracle.offsets[seq] for seq in oracle.ordered(operation, descending=descending, arrival=arrival)]


def check(db: JITDB, oracle: Oracle, questions: Sequence[Operation] = QUESTIONS) -> None:
    """Count, total, offsets and records, both ways round, are the oracle's."""
    for operation in questions:
        offsets = expected(oracle, operation)
        assert db.count(operation) == len(offsets), operation
        assert db.all(operation, as_offsets=True) == offsets, operation
        backwards = expected(oracle, operation, descending=True)
        page = db.paginate(operation, limit=10, descending=True)
        assert page.total == len(offsets), operation
        wanted = {offset: oracle.records[seq] for seq, offset in enumerate(oracle.offsets)}
        assert page.data == [wanted[offset] for offset in backwards[:10]], operation
        arrived = expected(oracle, operation, arrival=True)
        assert db.all(operation, as_offsets=True, sort_by="arrival") == arrived, operation


def index_files(log: Log) -> list[Path]:
    return sorted((log.sidecar / "indexes").glob("*.index"))


def stored_indexes(folder: Path | str) -> list[Index]:
    """The indexes in this folder, as a process finds their files that has just come."""
    found = []
    for path, head in folder_module.index_files(osfile.fs, Path(folder)):
        if head is not None:
            found.append(Index(head.spec, head.log, path))
            found[-1].load()
    return found


def calls_of(log: Log, method: str) -> list[tuple[Any, ...]]:
    """From now on, the arguments of each call of a method of this log."""
    calls: list[tuple[Any, ...]] = []
    original = getattr(log, method)

    def watched(*args: Any) -> Any:
        calls.append(args)
        return original(*args)

    setattr(log, method, watched)
    return calls


def manager_of(db: JITDB) -> IndexManager:
    """What keeps the indexes of a database: for tests of what it remembers and holds, which no answer tells."""
    return db._manager
