"""The operands of a question: the logs, a field, the expression; and what is wrong where they are not in order."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from jitdb.cli.failures import UsageError
from jitdb.common.paths import CASTS, format_path
from jitdb.log.io.filenames import without_sidecars
from jitdb.log.objects.door import names_file

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.operators import Operation

_EXPRESSION: Final = r"[<>=!]=|[<>()]|\s(in|is|and|or)\s"
_KEY: Final = r"""\["[^"]*"\]|\['[^']*'\]"""  # a key that may have any letters
_ODD_NAME: Final = r"[^\W\d][^<>=!\"',;]*"  # of a field with a blank, brackets and the like
_CAST: Final = rf"\b(?:{'|'.join(CASTS)})\(([^()]+)\)"
_BARE_WORD: Final = r"([=<>]|\bin\b|[(,\[])\s*(?!(?:True|False|None)\b)[A-Za-z_][\w ]*([]),]|$|\b(and|or)\b)"
_QUOTING: Final = "put all of one between single quotes and text in it between double quotes, or the shell takes a part"


def read_question(options: argparse.Namespace, has_field: bool = False) -> Operation | None:
    """Read the operands behind the log: `options.path`, if a field is one of them; `options.written`, the expression
    and --in; and `options.operation`, which is that within --since and --until, and is returned; None: all records.
    Raises UsageError, QueryError, Failure.
    """
    if "expressions" not in options:
        options.written = options.operation = None
        return None
    if has_field:
        options.path = _take_field(options)
    check_operands(options)
    texts = without_logs(options)
    if getattr(options, "share", None) and texts and not (len(texts) == 1 and is_expression(texts[0])):
        raise UsageError(
            f"{options.command}: --share is of records, and goes without a field",
            f"jitdb {options.command} {options.log} --share {shlex.quote(options.share)} [EXPR]",
        )
    if len(texts) > 1:
        raise UsageError(
            f"the expression came in {len(texts)} pieces: {' | '.join(texts)}",
            "put all of it between single quotes, and text in it between double quotes: 'type == \"post\"'",
        )
    if has_field and texts and re.fullmatch(r"[^\W\d][\w.]*", texts[0]):
        first = format_path(options.path)
        raise UsageError(
            f"{options.command}: one field is expected behind the log, not {first} and {texts[0]}",
            _each_of(options, first, texts[0]),
        )
    options.written = read_expression(texts[0]) if texts else None
    for path, file in getattr(options, "one_of", ()):
        from jitdb.operators import and_, isin

        options.written = and_(options.written, isin(path, values_in(file, options)))
    options.operation = within(options.written, options)
    found: Operation | None = options.operation
    return found


def _take_field(options: argparse.Namespace) -> Path:
    """The field that stands behind the logs."""
    texts: list[str] = options.expressions
    count = _behind_logs(texts)
    if count > 0 and is_expression(texts[count]) and os.path.isdir(texts[count - 1]):
        count -= 1  # a field, and a folder that is called so
    if not texts or (is_expression(texts[count]) and not _is_odd_name(texts[count])):
        raise UsageError(
            f"{options.command}: a field is missing behind the log",
            f"jitdb {options.command} {options.log} PATH [EXPR]",
        )
    options.expressions = texts[:count] + texts[count + 1 :]
    return _one_field(options, texts[count])


def _one_field(options: argparse.Namespace, text: str) -> Path:
    """The path. Raises UsageError where the text is an expression, or several paths."""
    from jitdb.operators.nodes.field_ref import as_path

    plain = re.sub(_KEY, "", text)
    if _is_odd_name(text):
        return (text,)
    if re.search(r"[\s,]", plain):
        behind = shlex.join(["jitdb", options.command, options.log, "FIELD", text])
        told = f"{options.command}: one field is expected here, not {text}"
        if _is_whole_expression(text):
            raise UsageError(told, f"an expression stands behind the field: {behind}")
        if "," in plain:
            first, _, others = text.partition(",")
            asked = _each_of(options, first, others.strip())
            raise UsageError(told, f'the field whose name has the comma is written ["{text}"]; {asked}')
    return as_path(options.command, text)


def _each_of(options: argparse.Namespace, first: str, other: str) -> str:
    """How two fields are asked for, in words."""
    if "by" not in options:
        return "ask for each alone"
    alone = shlex.join(["jitdb", options.command, options.log, first])
    return f"for each value of the other one: {alone} --by {shlex.quote(other)}"


def _is_odd_name(text: str) -> bool:
    """Whether it is the name of a field with brackets in it, as tables have them, and no expression.

    >>> _is_odd_name("Duration (ms)"), _is_odd_name("cs(User-Agent)"), _is_odd_name("Status [code]")
    (True, True, True)
    >>> _is_odd_name("number(status)"), _is_odd_name("items[0].sku"), _is_odd_name("present(level)")
    (False, False, False)
    """
    has_brackets = "(" in text or re.search(r"\s\[[^\]]*[^\W\d]", text) is not None
    if not has_brackets or not re.fullmatch(_ODD_NAME, text) or re.search(_CAST, text):
        return False
    return not _is_whole_expression(text)


def _is_whole_expression(text: str) -> bool:
    from jitdb.errors import QueryError
    from jitdb.operators import parse_expression

    try:
        parse_expression(text)
    except QueryError:
        return False
    return True


def take_text(options: argparse.Namespace) -> str:
    """The text that stands behind the logs, and is not one of the operands any more. Raises UsageError."""
    texts: list[str] = options.expressions
    if not texts:
        raise UsageError(
            f"{options.command}: a text is missing behind the log", f"jitdb {options.command} {options.log} TEXT [EXPR]"
        )
    return texts.pop(_behind_logs(texts))


def _behind_logs(texts: Sequence[str]) -> int:
    """The number of the first operand that is no log; of the last one where all are."""
    return next((number for number, text in enumerate(texts) if not names_file(text)), len(texts) - 1)


def within(found: Operation | None, options: argparse.Namespace) -> Operation | None:
    """The operation within --since, --until and --older-than."""
    if zone := getattr(options, "log_tz", None) or getattr(options, "tz", None):
        from jitdb.operators.nodes.instants import instant_at

        for name, text in getattr(options, "typed_times", {}).items():
            setattr(options, name, instant_at(text, zone=zone))
    since, *ends = (getattr(options, name, None) for name in ("since", "until", "older_than"))
    if since is None and not any(ends):
        return found
    from jitdb.common.times import as_text
    from jitdb.operators import and_, declared_time

    for name, end in zip(("until", "older-than"), ends, strict=True):
        if since is not None and end is not None and since.time >= end.time:
            first, last = (as_text(bound.time // 10**9 * 10**9) for bound in (since, end))
            raise UsageError(
                f"nothing is from --since {first} to --{name} {last}",
                f"--since is the earlier time, as in --since 13:00 --until 14:00, or --since 2h --{name} 1h",
            )
    return and_(
        found,
        None if since is None else declared_time >= since,
        *(declared_time < end for end in ends if end is not None),
    )


def values_in(file: str, options: argparse.Namespace) -> list[str | int | float]:
    """The lines of a file; beside one that spells a number, that number. Raises UsageError, Failure."""
    from jitdb.cli.failures import Failure

    if file == options.log == "-":
        raise UsageError(f"{options.command}: standard input is the log, and cannot be the values of --in, too")
    try:
        with open(sys.stdin.fileno() if file == "-" else file, encoding="utf-8-sig", closefd=file != "-") as lines:
            texts = [line.rstrip("\n") for line in lines]
    except (OSError, UnicodeDecodeError) as error:
        told = f"{error.strerror or error}" if isinstance(error, OSError) else "it is no text of UTF-8"
        raise Failure(f"--in: the values of {file} cannot be read: {told}", "a file has a value a line") from None
    texts = list(filter(None, texts))
    if not texts:
        raise UsageError(f"{options.command}: --in {file} has no line with a value")
    numbers = filter(re.compile(r"-?(0|[1-9][0-9]{0,18})(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII).fullmatch, texts)
    return [*texts, *(int(text) if text.lstrip("-").isdigit() else float(text) for text in numbers)]


def expressions_of(options: argparse.Namespace) -> list[Operation]:
    """All expressions of the command, at least one. Raises UsageError, QueryError."""
    check_operands(options)
    texts = without_logs(options)
    if not texts:
        raise UsageError(f"{options.command}: an expression is missing behind the logs")
    return [read_expression(text) for text in texts]


def without_logs(options: argparse.Namespace) -> list[str]:
    """The operands after the logs. Files that a shell made of a pattern become `options.more_logs`."""
    texts: list[str] = options.expressions
    count = next((number for number, text in enumerate(texts) if not names_file(text)), len(texts))
    options.more_logs = texts[:count]
    pass_over_sidecars(options)
    return texts[count:]


def pass_over_sidecars(options: argparse.Namespace) -> None:
    """Leave out folders of indexes, which a shell adds for `app.log*`, if there are logs beside them."""
    options.log, *options.more_logs = without_sidecars([options.log, *options.more_logs])


def check_operands(options: argparse.Namespace) -> None:
    """Raises UsageError if the expression stands before the log."""
    log, texts = options.log, options.expressions
    if names_file(log) or not is_expression(log):
        return
    import shlex

    command = f"jitdb {options.command}"
    files = [text for text in texts if names_file(text)]
    if files:
        others = [log, *(text for text in texts if text != files[0])]
        raise UsageError(
            f"{options.command}: the log comes first, the expression behind it",
            f"{command} {shlex.join([files[0], *others])}",
        )
    if not texts:
        raise UsageError(
            f"{options.command}: LOG is missing before the expression", f"{command} LOG {shlex.quote(log)}"
        )


def is_expression(text: str) -> bool:
    """Whether it can only be an expression.

    >>> is_expression('level == "error"'), is_expression("user.name"), is_expression("number(json(log).took)")
    (True, False, False)
    >>> is_expression('["Duration (ms)"]'), is_expression('["a"] > 5')
    (False, True)
    """
    text = re.sub(_KEY, "[]", text)
    while (without := re.sub(_CAST, r"\1", text)) != text:
        text = without
    return re.search(_EXPRESSION, text) is not None


def read_expression(text: str) -> Operation:
    """The operation. Raises QueryError with a caret under the place."""
    from jitdb.errors import QueryError
    from jitdb.operators import parse_expression

    try:
        return parse_expression(text)
    except QueryError as error:
        hint = "`jitdb help expressions` shows how they are written"
        error.add_note(hint + (f"; {_QUOTING}" if _was_eaten(text) else ""))
        raise


def _was_eaten(text: str) -> bool:
    """Whether the shell may have taken part of the expression: a redirection, or quotes around text.

    >>> _was_eaten("status"), _was_eaten("level == error"), _was_eaten("level = 5")
    (True, True, False)
    """
    if '"' in text or "'" in text:
        return False
    return re.fullmatch(r"[\w.]+", text) is not None or re.search(_BARE_WORD, text) is not None
