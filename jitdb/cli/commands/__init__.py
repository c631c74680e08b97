"""The commands by name. A new one is a function under `@command` (cli/parser.py) in a file here, and a line below."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from jitdb.cli.parser import Command

# What one wants, name, module and one line; in the order in which `jitdb` and docs/command-line.md list them. The first
# ones matter most; of those behind them, `jitdb` gives the names alone.
_TABLE: Final = (
    ("ask", "query", "query", "show the records that match"),
    ("ask", "find", "find", "find a text in any field"),
    ("count", "count", "count", "count the records that match"),
    ("count", "values", "summaries", "count records by the value of a field"),
    ("count", "timeline", "summaries", "count records over time"),
    ("count", "stats", "summaries", "summarize the numbers of a field"),
    ("follow", "tail", "tail", "follow new records"),
    ("explore", "explore", "explore", "look at a log in a browser"),
    ("explore", "facets", "exploring", "show the most frequent values of every field"),
    ("explore", "diff", "exploring", "show what is different about the records that match"),
    ("explore", "patterns", "summaries", "count what messages look like"),
    ("keep", "export", "export", "write records as NDJSON"),
    ("keep", "import", "importing", "make a log from NDJSON, JSON, CSV or Parquet, or add to one"),
    ("", "prepare", "indexing", "build the indexes of several questions in one scan"),
    ("", "demo", "demo", "see it work on the log of a web service in which something became slow"),
    ("", "mcp", "mcp", "let an assistant ask, over the Model Context Protocol"),
    ("", "histogram", "summaries", "count records by the size of a number"),
    ("", "fields", "summaries", "list the fields of a sample of records"),
    ("", "save", "saving", "keep a question under a name, for @NAME in others"),
    ("", "info", "info", "describe a log and its indexes"),
    ("", "indexes", "indexing", "list the index files beside a log, or drop some"),
    ("", "explain", "indexing", "show which indexes a question uses and what must be scanned"),
    ("", "prebuild", "prebuild", "let a Spark cluster build indexes"),
    ("", "pack", "upkeep", "compress JSON Lines so that they can still be queried"),
    ("", "delete", "upkeep", "delete records, such as those older than 30 days"),
    ("", "compact", "upkeep", "remove deleted records for good"),
    ("", "verify", "upkeep", "check that a log and its indexes are what was written"),
    ("", "repair", "upkeep", "repair what is damaged"),
    ("", "completion", "completion", "let the Tab key complete commands, options, files and fields"),
    ("", "hyperdb", "hyperdb", "a key/value store of several writers: put, get, list, history"),
)
_MODULES: Final = {name: module for _, name, module, _ in _TABLE}

#: Name and one line.
COMMANDS: Final = {name: summary for _, name, _, summary in _TABLE}
#: Name and what one wants; "" of those that are wanted less often.
WANTED: Final = {name: wanted for wanted, name, _, _ in _TABLE}


def find_command(name: str) -> Command:
    """The command with this name; its module is imported."""
    module = import_module(f"jitdb.cli.commands.{_MODULES[name]}")
    found: Command = getattr(module, name if name != "import" else "import_")
    return found
