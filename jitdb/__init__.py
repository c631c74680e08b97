"""jitdb: a just-in-time bitvector query engine for append-only logs.

    import jitdb
    from jitdb.operators import field

    db = jitdb.open("ssb.log")
    page = db.query(field("value.content.type") == "post").descending().page(10)

`open` gives a JITDB, the engine over a Log; `errors` holds all that can go wrong. Importing this package imports
nothing: each name when it is first used, numpy with the first log, numba with the first scan. So the program `jitdb`,
of which this is the beginning, is soon where it can answer Ctrl-C (__main__.py).
"""

TYPE_CHECKING = False  # as in typing, which is large
if TYPE_CHECKING:
    from typing import Any

    from jitdb import errors as errors
    from jitdb.engine.checking.report import Report
    from jitdb.engine.database import JITDB, open
    from jitdb.engine.progress import Status
    from jitdb.engine.reading.feed import Feed
    from jitdb.engine.reading.paging import Page
    from jitdb.errors import JitdbError, JitdbWarning
    from jitdb.log import Log
    from jitdb.log.codecs import Codec, register_codec
    from jitdb.log.lines.kept import forget, kept
    from jitdb.logset import LogSet
    from jitdb.logset.opening import open_many
    from jitdb.operators.queries import Query

__all__ = [
    "JITDB", "Codec", "Feed", "JitdbError", "JitdbWarning", "Log", "LogSet", "Page", "Query", "Report", "Status",
    "__version__", "forget", "kept", "open", "open_many", "register_codec",
]  # fmt: skip

__version__ = "0.3.0"

_LAZY = {
    "JITDB": "jitdb.engine.database", "Codec": "jitdb.log.codecs", "Feed": "jitdb.engine.reading.feed",
    "JitdbError": "jitdb.errors", "JitdbWarning": "jitdb.errors", "Log": "jitdb.log", "LogSet": "jitdb.logset",
    "Page": "jitdb.engine.reading.paging", "Query": "jitdb.operators.queries",
    "Report": "jitdb.engine.checking.report", "Status": "jitdb.engine.progress", "open": "jitdb.engine.database",
    "open_many": "jitdb.logset.opening", "forget": "jitdb.log.lines.kept", "kept": "jitdb.log.lines.kept",
    "register_codec": "jitdb.log.codecs",
}  # fmt: skip


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name == "errors":
        return import_module("jitdb.errors")
    if name in _LAZY:
        found = globals()[name] = getattr(import_module(_LAZY[name]), name)
        return found
    raise AttributeError(f"module 'jitdb' has no attribute {name!r}")


def load_ipython_extension(shell: "Any") -> None:
    """What `%load_ext jitdb` calls: the magics %jitdb and %%jitdb (docs/notebook.md)."""
    from jitdb.notebook import load

    load(shell)


def unload_ipython_extension(shell: "Any") -> None:
    from jitdb.notebook import unload

    unload(shell)


def __dir__() -> list[str]:
    return [*__all__, "errors"]
