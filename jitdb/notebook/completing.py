"""How a line of `%jitdb`, or the expression of a cell, may go on: commands, databases, options, fields and values.

Fields and values are those of a sample of the log: nothing is scanned for a key that is pressed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.cli.commands import module_of
from jitdb.cli.opening import asked
from jitdb.cli.parser import Program
from jitdb.notebook.answers import ANSWERS
from jitdb.notebook.variables import Names, database_named, databases
from jitdb.notebook.words import NO_LOG, kept
from jitdb.operators.text.format import format_value

if TYPE_CHECKING:
    from argparse import Action

    from jitdb.notebook.magic import Magic
    from jitdb.operators.summaries.fields import FieldNames

_SAMPLE: Final = 200  # records looked at: a person waits
_MOST: Final = 500  # fields offered
_MAGIC: Final = re.compile(r"^(?:.*=)?\s*(%%?)jitdb\s")
_FIELDS: Final = frozenset({"PATH", "PATHS"})  # metavars of options that are fields
_FRAGMENT: Final = re.compile(r"""(?:[\w.@]|\[(?:\d+|"[^"]*"?)?\]?)*$""")  # a field that is begun
_VARIABLE: Final = re.compile(r"[{$](\w*)$")
_VALUE: Final = re.compile(  # a value that is begun, and the field that it is compared with
    r"""((?:[\w.@]|\[[^\]]*\])+)\s*(?:==|!=|in\s*\[(?:[^\]]*,)?)\s*("[^"]*|'[^']*|\w*)$"""
)


class Offer(NamedTuple):
    """What may stand in the place of the last `begun` characters; nothing else, if that is all."""

    begun: str
    texts: list[str]
    is_all: bool = True


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
        """What may follow on this text, which ends at the cursor; None where it is none of ours."""
        first, is_cell, cell = text.partition("\n")
        magic = _MAGIC.match(f"{first} " if first.startswith("%%") and is_cell else text.rpartition("\n")[2])
        if magic is None:
            return self._of_python(text)
        if magic[1] == "%":
            first, is_cell, cell = text.rpartition("\n")[2], "", ""
        _, line, body = kept(first[magic.end() :], cell if is_cell else None)
        names: Names = self._shell.user_ns
        words = line.split()
        typed = words[-1] if words and not line[-1:].isspace() and not is_cell else ""
        before = words[:-1] if typed else words
        command = before[0] if before and before[0] in ANSWERS else "query"
        operands = [word for word in before[before[:1] == [command] :] if not word.startswith("-")]
        if is_cell:
            return self._of_expression(body or "", operands)
        action = _action(command, before[-1]) if before else None
        if action is None and typed.startswith("-"):
            return _begun(typed, module_of(command).PARSER.long_options())
        if action is not None and action.choices is not None:
            return _begun(typed, map(str, action.choices))
        if action is not None and action.metavar in _FIELDS:
            start = typed.rpartition(",")[2].lstrip("-")
            known = self._known(operands)
            return _begun(start, known.names()[:_MOST] if known is not None else ())
        if action is not None and action.nargs != 0:
            return None
        here = self._of_expression(line, operands)
        if operands:
            return here
        others = [*([] if before else [*ANSWERS, "open", "close", "help"]), *databases(names)]
        offer = _begun(typed, others)  # or a file; or, of the current log, a field or an expression
        return Offer(typed, [*offer.texts, *(here.texts if before and here.begun == typed else ())], is_all=False)

    def _of_python(self, text: str) -> Offer | None:
        from jitdb.notebook.python_completing import python_offered

        found = python_offered(text, self._shell.user_ns)
        return None if found is None else Offer(*found)

    def _of_expression(self, text: str, operands: list[str]) -> Offer:
        if variable := _VARIABLE.search(text):
            return _begun(variable[1], (name for name in self._shell.user_ns if not name.startswith("_")))
        known = self._known(operands)
        if known is not None and (value := _VALUE.search(text)) and value[1] in known.names():
            return _begun(value[2], (_quoted(each, value[2][:1]) for each in known.values(value[1])))
        fragment = _FRAGMENT.search(text)
        assert fragment is not None  # it matches nothing, too
        return _begun(fragment[0], known.names()[:_MOST] if known is not None else ())

    def _known(self, operands: list[str]) -> FieldNames | None:
        """The fields of the log that the line names, or of the current one."""
        return next((found for place in (*operands[:1], self._magic.current) if (found := self._sampled(place))), None)

    def _sampled(self, place: str) -> FieldNames | None:
        """Of the log at a place, or in a variable; None where there is none that can be read."""
        from jitdb.operators.summaries.fields import FieldNames

        db = database_named(place, self._shell.user_ns)
        with suppress(Exception):  # who presses a key is told of no error: the line itself will tell it
            if db is not None:
                db.fields.names()
                return db.fields
            options = Program().parse_args(["fields", place or NO_LOG, "--indexes", "none"])
            with asked(options) as opened:
                records = opened.sample(_SAMPLE)
            return FieldNames(lambda _: records, lambda: place)
        return None


def _begun(begun: str, texts: Iterable[str]) -> Offer:
    return Offer(begun, [text for text in dict.fromkeys(texts) if text.startswith(begun)])


def _quoted(value: Any, begun: str) -> str:
    """As an expression writes it, text between the quotes that are begun, or double ones, where that can be."""
    quote = "'" if begun == "'" else '"'
    if isinstance(value, str) and value.isprintable() and quote not in value and "\\" not in value:
        return f"{quote}{value}{quote}"
    return format_value(value)


def _action(command: str, word: str) -> Action | None:
    """The option that takes the next word."""
    found: Action | None = module_of(command).PARSER._option_string_actions.get(word)
    return None if found is None or found.nargs == 0 else found
