"""The commands: a new one is a file in a room here, with a PARSER and `run(options) -> exit code`, and a line below."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Final

#: Name, module and one line. The order is that in which one meets them.
_TABLE: Final = (
    ("demo", "demo", "see it work on a log of 5,000 records that comes with jitdb"),
    ("import", "keeping.import_", "make a log from NDJSON, JSON, CSV or Parquet, or add to one"),
    ("info", "keeping.info", "what a log is, and which indexes it has"),
    ("count", "asking.count", "how many records match"),
    ("query", "asking.query", "show the records that match"),
    ("values", "counting.values", "how many records have which value of a field"),
    ("timeline", "counting.timeline", "how many records are of which time"),
    ("stats", "counting.stats", "what the numbers of a field are like"),
    ("histogram", "counting.histogram", "how many records have numbers of which size"),
    ("fields", "counting.fields", "which fields the records have, by a sample of them"),
    ("tail", "asking.tail", "the records that come"),
    ("prepare", "indexing.prepare", "build the indexes of several questions in one scan"),
    ("indexes", "indexing.indexes", "list the index files beside a log, or drop some"),
    ("explain", "indexing.explain", "which indexes a question is answered from, and what must be scanned"),
    ("prebuild", "indexing.prebuild", "let a Spark cluster build indexes"),
    ("export", "asking.export", "write records as NDJSON"),
    ("pack", "keeping.pack", "compress JSON Lines so that they can still be asked where they lie"),
    ("delete", "keeping.delete", "delete records, such as those older than 30 days"),
    ("compact", "keeping.compact", "remove deleted records for good"),
    ("verify", "keeping.verify", "whether a log and its indexes are what was written"),
    ("repair", "keeping.repair", "put right what is damaged"),
    ("completion", "completion", "let the Tab key complete commands, options, files and fields"),
    ("hyperdb", "hyperdb", "a key/value store of several writers: put, get, list, history"),
)
_MODULES: Final = {name: module for name, module, _ in _TABLE}

#: Name and one line.
COMMANDS: Final = {name: summary for name, _, summary in _TABLE}


def module_of(command: str) -> ModuleType:
    """The command's module, imported."""
    return import_module(f"jitdb.cli.commands.{_MODULES[command]}")
