"""`jitdb save`: questions under names, for `@NAME` in any expression."""

from __future__ import annotations

import re
from argparse import Namespace

from jitdb.cli.expressions import read_expression
from jitdb.cli.failures import Failure, UsageError, note
from jitdb.cli.options import option
from jitdb.cli.output.output import show, show_lines
from jitdb.cli.parser import command
from jitdb.operators.text.expression_parser import Parser
from jitdb.operators.text.saved import NAME, Book, writing


@command(
    "[NAME 'EXPR']",
    "Save a question under a name: @NAME stands for it in any expression, here and in Python. Without operands list "
    "those that are saved. They lie in a file of plain text, jitdb/questions in the folder for settings.",
    [
        ("save slow 'ms > 1000'", "then: jitdb count events.log '@slow and level == \"error\"'"),
        ("save", "list all"),
        ("save --remove slow", "forget one"),
    ],
    option("name NAME", "letters, digits and _; one that is there gets the new question", nargs="?"),
    option("expression EXPR", "the question", nargs="?"),
    option("--remove", "forget the question of this name"),
)
def save(options: Namespace) -> int:
    """Save, show or remove."""
    name = (options.name or "").removeprefix("@")
    if options.remove and (not name or options.expression is not None):
        raise UsageError("save: --remove takes a name, and nothing else", "jitdb save --remove NAME")
    if name and not re.fullmatch(NAME, name):
        raise UsageError(
            f"save: a name has letters, digits and _, and begins with a letter, not {options.name!r}",
            "the expression stands behind it: jitdb save NAME 'EXPR'",
        )
    if options.expression is None and not options.remove:
        _show(name)
        return 0
    with writing() as book:
        if options.remove:
            _check(book, name)
            book.take(name)
            if users := book.users_of(name):
                note(options, f"{', '.join(f'@{each}' for each in users)} asked for it, and cannot be asked any more")
            done = f"@{name} is removed from"
        else:
            _put(book, name, options.expression.strip())
            done = f"@{name} is saved in"
        book.write()
    if not options.quiet:
        show(f"{done} {book.path}")
    return 0


def _put(book: Book, name: str, text: str) -> None:
    asked = read_expression(text)
    book.put(name, text)
    if Parser(f"@{name}", book=book).whole() != asked:
        raise Failure("save: text in quotes has a newline in it, and questions are lines", r"write it as \n")


def _check(book: Book, name: str) -> None:
    if name not in book.texts:
        raise Failure(book.lack_of(name))


def _show(name: str) -> None:
    """The question of this name, or all."""
    book = Book()
    if name:
        _check(book, name)
        show_lines(book.texts[name])
        return
    width = max(map(len, book.texts), default=0) + 1
    for each, text in book.texts.items():
        show(f"{f'@{each}':{width}}  {' '.join(text.split(chr(10)))}")
    if not book.texts:
        show("no question is saved: jitdb save NAME 'EXPR'")
