"""What was probably meant by a word that a command line has and nobody knows. Imported when there is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jitdb.cli.commands import COMMANDS, module_of
from jitdb.common.spelling import nearest

_LIKE: Final = 0.7  # of 1: what two letters of difference leave of a word of seven

# What other tools call options of ours.
_SYNONYMS: Final = {
    "reverse": ("descending",), "newest": ("descending",), "desc": ("descending",),
    "head": ("limit",), "max": ("limit",), "count": ("limit",), "lines": ("limit",), "offset": ("skip",),
    "order": ("sort", "descending"), "order-by": ("sort",), "sort-by": ("sort",),
    "columns": ("fields",), "select": ("fields",), "keys": ("fields",), "field": ("fields",), "group-by": ("by",),
    "from": ("since",), "after": ("since",), "start": ("since",), "to": ("until",), "before": ("until",),
    "end": ("until",), "out": ("output",), "outfile": ("output",), "force": ("yes",), "check": ("dry-run",),
    "verbose": ("debug",), "jobs": ("threads",), "workers": ("threads",), "silent": ("quiet",), "follow": ("old",),
}  # fmt: skip

_EXPRESSION: Final = frozenset({"where", "filter", "expr", "expression", "query", "match", "grep"})


def is_expression_option(option: str) -> bool:
    """Whether other tools have one called so, to say which records."""
    return option.lstrip("-").lower() in _EXPRESSION


def nearest_option(option: str, known: Sequence[str]) -> str:
    """The option that other tools call so, or that is written most like this one; empty if none is.

    >>> [nearest_option(option, ["--codec", "--descending"]) for option in ("--codecs", "--reverse", "--order-of")]
    ['--codec', '--descending', '']
    """
    typed = option.lstrip("-").lower()  # the dashes would count as likeness
    names = [each.lstrip("-") for each in known]
    others = [other for other in _SYNONYMS.get(typed, ()) if other in names]
    near = others[0] if others else nearest(typed, names, _LIKE)
    return f"--{near}" if near else ""


def commands_with(option: str) -> list[str]:
    """The commands that have this option."""
    return [name for name in COMMANDS if option in module_of(name).PARSER._option_string_actions]
