"""The names of jitdb and async-append-only-log in JavaScript, and ours for them.

An error about one of them suggests ours; docs/from-javascript.md has them all, and says what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

#: Of `jitdb/operators`, but for those that are written in the same way.
OPERATORS: Final[Mapping[str, str]] = {
    "and": "and_", "asOffsets": "as_offsets", "fromDB": "from_db", "liveSeqs": "live_seqs", "not": "not_", "or": "or_",
    "slowAbsent": "slow_absent", "slowEqual": "slow_equal", "slowIncludes": "slow_includes",
    "slowPredicate": "slow_predicate", "sortByArrival": "sort_by_arrival", "startFrom": "start_from",
    "toAsyncIter": "to_async_iter", "toCallback": "to_callback", "toPromise": "to_awaitable", "toPullStream": "to_iter",
}  # fmt: skip

#: Of a log.
LOG: Final[Mapping[str, str]] = {
    "appendTransaction": "append_transaction", "blockSize": "block_size", "compactionProgress": "compact(progress=…)",
    "del": "delete", "filename": "path", "onDeletesFlushed": "flush", "onDrain": "flush",
    "onOverwritesFlushed": "flush",
}  # fmt: skip

#: Of a database.
DATABASE: Final[Mapping[str, str]] = {
    "indexes": "status.indexes", "indexingActive": "status", "onReady": "nothing: a JITDB is ready when it is there",
    "queriesActive": "status",
}  # fmt: skip

#: Of a page.
PAGE: Final[Mapping[str, str]] = {"nextSeq": "next_seq", "results": "data"}


def keywords(owner: str, theirs: Mapping[str, str]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Suggest our name for an unknown keyword."""

    def told(function: Callable[P, T]) -> Callable[P, T]:
        code: Any = getattr(function, "__code__", None)
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

        @wraps(function)
        def call(*arguments: P.args, **named: P.kwargs) -> T:
            for name in named:
                if name not in names:
                    raise TypeError(no_such_name(owner, name, theirs, names))
            return function(*arguments, **named)

        return call

    return told


def no_such_name(owner: str, name: str, theirs: Mapping[str, str], ours: Iterable[str]) -> str:
    """The message for a name that `owner` lacks.

    >>> no_such_name("jitdb.operators", "startFrom", OPERATORS, ["start_from"])
    "jitdb.operators has no 'startFrom'; here it is start_from (docs/from-javascript.md)"
    >>> no_such_name("a Log", "appendmany", LOG, ["append_many"]), no_such_name("a Log", "x", LOG, ["append_many"])
    ("a Log has no 'appendmany'; did you mean append_many?", "a Log has no 'x'")
    """
    if name in theirs:
        return f"{owner} has no {name!r}; here it is {theirs[name]} (docs/from-javascript.md)"
    from jitdb.common.spelling import did_you_mean

    meant = "" if name.startswith("_") else did_you_mean(name, ours)
    return f"{owner} has no {name!r}" + (f"; {meant}" if meant else "")
