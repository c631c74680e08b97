"""How a line of Python may go on where it asks a database: `field("`, `field("level") == "`, `db.fields.`.

Fields and values are those of a sample of the databases that the line names, or else of all that there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from jitdb.notebook.variables import Names, database_named, databases

if TYPE_CHECKING:
    from jitdb.operators.summaries.fields import FieldNames

_TAKE_A_PATH: Final = (
    "field|equal|includes|absent|predicate|contains|starts_with|ends_with|like|matches|value_counts|group_count|"
    "histogram|stats|stats_by|select|sort_by|values|distinct"
)
_PATH: Final = re.compile(  # a path that is begun: the first argument, a later one, or an element of a list
    rf"""\b(?:{_TAKE_A_PATH})\(\s*\[?(?:"[^"]*",\s*|'[^']*',\s*)*(["'])(-?)([^"']*)$|\b(?:by|same|select)=(["'])([^"']*)$"""
)
_KEY: Final = re.compile(r"\.fields\[([\"'])([^\"']*)$")
_VALUE: Final = re.compile(  # a value that is begun, and the field that it is compared with
    r"""(?:\bfield\((["'])(?P<path>.+?)\1\)|\.fields(?P<keys>(?:\.\w+)+))\s*(?:[!=]=\s*|\.isin\(\s*\[(?:[^\]]*,)?\s*)"""
    r"""(?P<quote>["'])(?P<begun>[^"']*)$"""
)
_ATTRIBUTE: Final = re.compile(r"\b(\w+)\.fields((?:\.\w+)*)\.(\w*)$")


def python_offered(text: str, names: Names) -> tuple[str, list[str]] | None:
    """What may stand in the place of the end of this text: that end, and the texts. None where nothing is ours."""
    line = text.rpartition("\n")[2]
    attribute = _ATTRIBUTE.search(line)
    if attribute is not None:
        return _attributes(attribute, names)
    value = _VALUE.search(line)
    if value is not None:
        path = value["path"] or value["keys"][1:]
        found = [
            each for known in _asked(line, names) for each in _quietly(known.values, path) if isinstance(each, str)
        ]
        return _begun(value["begun"], [each for each in found if value["quote"] not in each and each.isprintable()])
    key = _KEY.search(line)
    path_begun = _PATH.search(line)
    if key is None and path_begun is None:
        return None
    begun = key[2] if key is not None else (path_begun[3] or path_begun[5] or "") if path_begun is not None else ""
    return _begun(begun, [name for known in _asked(line, names) for name in _quietly(known.names) if '"' not in name])


def _attributes(found: re.Match[str], names: Names) -> tuple[str, list[str]] | None:
    db = database_named(found[1], names)
    if db is None:
        return None
    path = tuple(found[2].split(".")[1:])
    keys = [key for key in _quietly(db.fields.keys_in, path) if key.isidentifier()]
    return _begun(found[3], keys)


def _asked(line: str, names: Names) -> Iterator[FieldNames]:
    """What is known of the fields of the databases that the line names, or of all."""
    known = databases(names)
    named = [name for name in known if re.search(rf"\b{re.escape(name)}\b", line)]
    for name in named or known:
        db = database_named(name, names)
        if db is not None:
            yield db.fields


def _quietly(look: Any, *arguments: Any) -> list[Any]:
    """Who presses a key is told of no error: the line itself will tell it."""
    with suppress(Exception):
        return list(look(*arguments))
    return []


def _begun(begun: str, texts: list[str]) -> tuple[str, list[str]]:
    return begun, [text for text in dict.fromkeys(texts) if text.startswith(begun)]
