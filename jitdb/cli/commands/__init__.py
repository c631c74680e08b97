"""The commands: a new one is a file here, with a PARSER and `run(options) -> exit code`, and a line in this table."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Final

#: Name and one line. The order is that in which one meets them.
COMMANDS: Final = {
    "demo": "see it work on a log of 5,000 records that comes with jitdb",
    "import": "make a log from NDJSON, or add to one",
    "info": "what a log is, and which indexes it has",
    "count": "how many records match",
    "query": "show the records that match",
    "tail": "the records that come",
    "prepare": "build the indexes of several questions in one scan",
    "indexes": "list the index files beside a log, or drop some",
    "prebuild": "let a Spark cluster build indexes",
    "export": "write records as NDJSON",
    "pack": "compress JSON Lines so that they can still be asked where they lie",
    "compact": "remove deleted records for good",
    "verify": "whether a log and its indexes are what was written",
    "repair": "put right what is damaged",
    "hyperdb": "a key/value store of several writers: put, get, list, history",
}


def module_of(command: str) -> ModuleType:
    """The command's module, imported."""
    return import_module(f"jitdb.cli.commands.{'import_' if command == 'import' else command}")
