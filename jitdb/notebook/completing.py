"""Completion: of `%jitdb` lines, of the expression in a cell, and of Python that asks a database.

Fields and values come from a sample of the log; the Tab key scans nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.commands import find_command
from jitdb.cli.opening import asked
from jitdb.notebook.magic import ASKING, NO_LOG, Magic, kept
from jitdb.notebook.variables import Names, database_named, databases
from jitdb.operators.completing import MOST_OFFERED, Offer, begun_by, offered
from jitdb.operators.nodes.table import OPERATORS

if TYPE_CHECKING:
    from argparse import Action

    from jitdb.operators.summaries.fields import FieldNames

_SAMPLE: Final = 200  # records looked at: a person waits
_MAGIC: Final = re.compile(r"^(?:.*=)?\s*(%%?)jitdb\s")
_FIELDS: Final = frozenset({"PATH", "PATHS"})  # metavars of options that are fields
_VARIABLE: Final = re.compile(r"[{$](\w*)$")
_OPERATORS: Final = "|".join(name for name, row in OPERATORS.items() if "path" in row.kind.arguments)
_TAKE_A_PATH: Final = (
    "field|predicate|dedup|value_counts|group_count|count_distinct|share|histogram|stats|stats_by|patterns|select|sort_by|values|distinct|"
    + _OPERATORS
)
_PATH: Final = re.compile(  # a path that is begun: the first argument, a later one, or an element of a list
    rf"""\b(?:{_TAKE_A_PATH})\(\s*\[?(?:"[^"]*",\s*|'[^']*',\s*)*(["'])(-?)([^"']*)$"""
    r"""|\b(?:by|same|select)=\[?(?:"[^"]*",\s*|'[^']*',\s*)*(["'])([^"']*)$"""
)
_KEY: Final = re.compile(r"\.fields\[([\"'])([^\"']*)$")
_COMPARED: Final = re.compile(  # a value that is begun, and the field that it is compared with
    r"""(?:\bfield\((["'])(?P<path>.+?)\1\)|\.fields(?P<keys>(?:\.\w+)+))\s*(?:[!=]=\s*|\.isin\(\s*\[(?:[^\]]*,)?\s*)"""
    r"""(?P<quote>["'])(?P<begun>[^"']*)$"""
)
_ATTRIBUTE: Final = re.compile(r"\b(\w+)\.fields((?:\.\w+)*)\.(\w*)$")


class Completing:
    """Completes the magics of one shell."""

    def __init__(self, shell: Any, magic: Magic) -> None:
        self._shell, self._magic = shell, magic

    def matcher(self) -> Callable[[Any], Any]:
        """For IPython's completer."""
        from IPython.core.completer import SimpleCompletion, context_matcher

        @context_matcher(identifier="jitdb", priority=100)  # type: ignore[untyped-decorator,unused-ignore]
        def jitdb(context: Any) -> dict[str, Any]:
            lines = context.full_text.split("\n")[: context.cursor_line + 1]
            offer = self.offered("\n".join([*lines[:-1], lines[-1][: context.cursor_position]]))
            if offer is None:
                return {"completions": []}
            texts = [SimpleCompletion(text, type="jitdb") for text in offer.texts]
            return {"completions": texts, "matched_fragment": offer.begun, "suppress": offer.is_all}

        found: Callable[[Any], Any] = jitdb
        return found

    def offered(self, text: str) -> Offer | None:
        """How this text, which ends at the cursor, may go on; None where nothing is ours."""
        first, is_cell, cell = text.partition("\n")
        magic = _MAGIC.match(f"{first} " if first.startswith("%%") and is_cell else text.rpartition("\n")[2])
        if magic is None:
            return python_offered(text, self._shell.user_ns)
        if magic[1] == "%":
            first, is_cell, cell = text.rpartition("\n")[2], "", ""
        _, line, body = kept(first[magic.end() :], cell if is_cell else None)
        names: Names = self._shell.user_ns
        words = line.split()
        typed = words[-1] if words and not line[-1:].isspace() and not is_cell else ""
        before = words[:-1] if typed else words
        command = before[0] if before and before[0] in ASKING else "query"
        operands = [word for word in before[before[:1] == [command] :] if not word.startswith("-")]
        if is_cell:
            return self._of_expression(body or "", operands)
        action = _action(command, before[-1]) if before else None
        if action is None and typed.startswith("-"):
            return begun_by(typed, find_command(command).parser.long_options())
        if action is not None and action.choices is not None:
            return begun_by(typed, map(str, action.choices))
        if action is not None and action.metavar in _FIELDS:
            start = typed.rpartition(",")[2].lstrip("-")
            known = self._known(operands)
            return begun_by(start, known.names()[:MOST_OFFERED] if known is not None else ())
        if action is not None and action.nargs != 0:
            return None
        here = self._of_expression(line, operands)
        if operands:
            return here
        others = [*([] if before else [*ASKING, "open", "close", "help"]), *databases(names)]
        offer = begun_by(typed, others)  # or a file; or, of the current log, a field or an expression
        return Offer(typed, [*offer.texts, *(here.texts if before and here.begun == typed else ())], is_all=False)

    def _of_expression(self, text: str, operands: list[str]) -> Offer:
        if variable := _VARIABLE.search(text):
            return begun_by(variable[1], (name for name in self._shell.user_ns if not name.startswith("_")))
        return offered(text, self._known(operands))

    def _known(self, operands: list[str]) -> FieldNames | None:
        """The fields of the log that the line names, or else of the current one."""
        return next((found for place in (*operands[:1], self._magic.current) if (found := self._sampled(place))), None)

    def _sampled(self, place: str) -> FieldNames | None:
        """The fields of the log at a path, or in a variable; None if it cannot be read."""
        from jitdb.operators.summaries.fields import FieldNames

        db = database_named(place, self._shell.user_ns)
        with suppress(Exception):  # completion never raises: running the line will
            if db is not None:
                db.fields.names()
                return db.fields
            options = find_command("fields").parser.read([place or NO_LOG, "--indexes", "none"])
            with asked(options) as opened:
                records = opened.sample(_SAMPLE)
            return FieldNames(lambda _: records, lambda: place)
        return None


def _action(command: str, word: str) -> Action | None:
    """The option that takes the next word."""
    found = find_command(command).parser.option(word)
    return None if found is None or found.nargs == 0 else found


# --- Python ----------------------------------------------------------------------------------------------------------


def python_offered(text: str, names: Names) -> Offer | None:
    """How a line of Python may go on where it asks a database: `field("`, `field("level") == "`, `db.fields.`; None
    where nothing is ours. Fields and values come from samples of the databases that the line names, or else of all.
    """
    line = text.rpartition("\n")[2]
    attribute = _ATTRIBUTE.search(line)
    if attribute is not None:
        return _attributes(attribute, names)
    value = _COMPARED.search(line)
    if value is not None:
        path = value["path"] or value["keys"][1:]
        found = [
            each for known in _asked(line, names) for each in _quietly(known.values, path) if isinstance(each, str)
        ]
        return begun_by(value["begun"], [each for each in found if value["quote"] not in each and each.isprintable()])
    key = _KEY.search(line)
    path_begun = _PATH.search(line)
    if key is None and path_begun is None:
        return None
    begun = key[2] if key is not None else (path_begun[3] or path_begun[5] or "") if path_begun is not None else ""
    return begun_by(begun, [name for known in _asked(line, names) for name in _quietly(known.names) if '"' not in name])


def _attributes(found: re.Match[str], names: Names) -> Offer | None:
    db = database_named(found[1], names)
    if db is None:
        return None
    path = tuple(found[2].split(".")[1:])
    keys = [key for key in _quietly(db.fields.keys_in, path) if key.isidentifier()]
    return begun_by(found[3], keys)


def _asked(line: str, names: Names) -> Iterator[FieldNames]:
    """The known fields of the databases that the line names, or of all."""
    known = databases(names)
    named = [name for name in known if re.search(rf"\b{re.escape(name)}\b", line)]
    for name in named or known:
        db = database_named(name, names)
        if db is not None:
            yield db.fields


def _quietly(look: Any, *arguments: Any) -> list[Any]:
    """Completion never raises: running the line will."""
    with suppress(Exception):
        return list(look(*arguments))
    return []
