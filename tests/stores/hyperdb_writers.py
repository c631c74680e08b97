"""Databases of several writers, in one process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from jitdb.stores.hyperdb import Checkout, HyperDB
from jitdb.stores.hyperdb.tries.node import Node


@contextmanager
def writers(folder: Path, count: int) -> Iterator[list[HyperDB]]:
    """The first one's database and copies of it, all authorized by the first, and all up to date."""
    with ExitStack() as stack:
        source = stack.enter_context(HyperDB(folder / "0", create=True))
        dbs = [source]
        for number in range(1, count):
            dbs.append(stack.enter_context(HyperDB(folder / str(number), source.key)))
            source.authorize(dbs[-1].local.key)
        meet(dbs)
        yield dbs


def meet(dbs: list[HyperDB]) -> None:
    """All have all, afterwards."""
    for _ in range(2):
        for db in dbs[1:]:
            dbs[0].replicate(db)


def put(db: HyperDB, keys: Iterable[str], value: bytes | None = None) -> None:
    """Each under itself, if no value is given."""
    for key in keys:
        db.put(key, key.encode() if value is None else value)


def values(nodes: Iterable[Node]) -> list[bytes | None]:
    """In the order of their bytes."""
    return sorted((node.value for node in nodes), key=lambda value: (value is None, value))


def as_dict(db: HyperDB | Checkout, prefix: str = "", **options: bool) -> dict[str, list[bytes | None]]:
    """The keys that are listed, none of them twice."""
    groups = db.list(prefix, **options)
    found = {nodes[0].key: values(nodes) for nodes in groups}
    assert len(found) == len(groups)
    return found
