"""The commands by name. A new one is a function under `@command` (cli/parser.py) in a file here, and a line below."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from jitdb.cli.parser import Command

# Name, module and one line, in the order in which one meets them.
_TABLE: Final = (
    ("demo", "demo", "see it work on a log of 5,000 records that comes with jitdb"),
    ("import", "importing", "make a log from NDJSON, JSON, CSV or Parquet, or add to one"),
    ("info", "info", "describe a log and its indexes"),
    ("count", "count", "count the records that match"),
    ("query", "query", "show the records that match"),
    ("find", "find", "find a text in any field"),
    ("values", "summaries", "count records by the value of a field"),
    ("timeline", "summaries", "count records over time"),
    ("stats", "summaries", "summarize the numbers of a field"),
    ("histogram", "summaries", "count records by the size of a number"),
    ("fields", "summaries", "list the fields of a sample of records"),
    ("tail", "tail", "follow new records"),
    ("save", "saving", "keep a question under a name, for @NAME in others"),
    ("prepare", "indexing", "build the indexes of several questions in one scan"),
    ("indexes", "indexing", "list the index files beside a log, or drop some"),
    ("explain", "indexing", "show which indexes a question uses and what must be scanned"),
    ("prebuild", "prebuild", "let a Spark cluster build indexes"),
    ("export", "export", "write records as NDJSON"),
    ("pack", "upkeep", "compress JSON Lines so that they can still be queried"),
    ("delete", "upkeep", "delete records, such as those older than 30 days"),
    ("compact", "upkeep", "remove deleted records for good"),
    ("verify", "upkeep", "check that a log and its indexes are what was written"),
    ("repair", "upkeep", "repair what is damaged"),
    ("completion", "completion", "let the Tab key complete commands, options, files and fields"),
    ("hyperdb", "hyperdb", "a key/value store of several writers: put, get, list, history"),
)
_MODULES: Final = {name: module for name, module, _ in _TABLE}

#: Name and one line.
COMMANDS: Final = {name: summary for name, _, summary in _TABLE}


def find_command(name: str) -> Command:
    """The command with this name; its module is imported."""
    module = import_module(f"jitdb.cli.commands.{_MODULES[name]}")
    found: Command = getattr(module, name if name != "import" else "import_")
    return found
