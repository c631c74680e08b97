"""What to say of a question for a text: that it stands between colours of a terminal, in arrays, in the lines below the
first one of a record, or where bytes are no UTF-8.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jitdb.common.paths import format_path
from jitdb.common.values import value_at
from jitdb.common.words import counted, shown
from jitdb.engine.hinting.fields import TEXTS
from jitdb.engine.hinting.knowledge import SAMPLE, Evidence
from jitdb.operators.nodes.anywhere import Anywhere
from jitdb.operators.nodes.equal import Includes
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.nodes.text_match import TextMatch
from jitdb.operators.summaries.fields import fields_in
from jitdb.operators.text.expression import typed


def on_texts(evidence: Evidence, operation: Operation, is_empty: bool) -> Iterator[str]:
    """The lines on the texts that are asked for, for any answer."""
    cased = (leaf for leaf in operation.leaves() if isinstance(leaf, Anywhere) and not leaf.ignore_case)
    for leaf in cased if is_empty else ():
        if leaf.value.lower() != leaf.value.upper() and not evidence.has(leaf):
            yield f"`{typed(leaf.changed(ignore_case=True))}` looks for it in any case"
    yield from on_encoding(evidence, operation)
    yield from _on_colours(evidence, operation)
    yield from _on_arrays(evidence, operation)


def in_trace(evidence: Evidence, leaf: Operation) -> tuple[str, str] | None:
    """Why no text of a record holds what its stack trace does, and what was meant; None where that is not so."""
    if not isinstance(leaf, TextMatch) or leaf.path not in TEXTS:
        return None
    below = leaf.of_field(("trace",))
    if not any(below.of_value(value_at(record, ("trace",))) for record in evidence.sample(SAMPLE)):
        return None
    told = f"lines below the first one of a record are in its `trace`, not in `{format_path(leaf.path)}`"
    return told, f"did you mean `{typed(below)}`?"


def _on_colours(evidence: Evidence, operation: Operation) -> Iterator[str]:
    """A line where the texts of records have colours of a terminal, and a text without them is looked for."""
    asked = [leaf for leaf in operation.leaves() if isinstance(leaf, TextMatch | Anywhere)]
    if not asked or any(map(_is_coloured, (text for leaf in asked for text in texts_of(leaf)))):
        return
    records = evidence.asked(operation, SAMPLE)
    if coloured := sum(any(map(_is_coloured, fields_in([record]).values())) for record in records):
        yield (
            f"colours of a terminal stand between the letters of {coloured:,} of {len(records):,} records looked at: "
            r"sed 's/\x1b\[[0-9;]*m//g' FILE > NEW takes them away"
        )


def _on_arrays(evidence: Evidence, operation: Operation) -> Iterator[str]:
    """A line where a text is looked for in a field that holds arrays in some records."""
    of_elements = {path for leaf in operation.leaves() if isinstance(leaf, Includes) for path in leaf.paths}
    asked = dict.fromkeys(leaf for leaf in operation.leaves() if isinstance(leaf, TextMatch))
    for leaf in (leaf for leaf in asked if leaf.path not in of_elements):
        values = [value_at(record, leaf.path) for record in evidence.asked(operation, SAMPLE)]
        meant = leaf.of_elements() if any(isinstance(value, list) for value in values) else None
        if meant is not None and any(isinstance(value, str) for value in values):
            yield f"`{format_path(leaf.path)}` holds arrays in some records: `{typed(meant)}` asks their elements"


def _is_coloured(value: Any) -> bool:
    return isinstance(value, str) and "\x1b[" in value


def replaced_in(record: Any) -> bool:
    """Whether a text of a record has a byte that is no UTF-8."""
    return any(isinstance(value, str) and "\ufffd" in value for value in fields_in([record]).values())


def texts_of(leaf: Operation) -> Iterator[str]:
    """The texts that a leaf compares."""
    for name in leaf.arguments if leaf.function is None else ():
        value = getattr(leaf, name, None)
        yield from (each for each in (value if isinstance(value, list | tuple) else (value,)) if isinstance(each, str))


def on_encoding(evidence: Evidence, operation: Operation) -> Iterator[str]:
    """A line where a text that is no ASCII is asked for, and some records have bytes that are no UTF-8."""
    texts = [text for leaf in operation.leaves() for text in texts_of(leaf) if not text.isascii()]
    records = evidence.sample(SAMPLE) if texts else []
    if odd := sum(map(replaced_in, records)):
        which = f"{odd:,} of {counted(len(records), 'record', 'records')} looked at"
        yield (
            f"bytes that are no UTF-8 are read as U+FFFD, in {which}, so {shown(texts[0])} is not found where they "
            f"stand: make UTF-8 of the file first, say from Latin-1: {evidence.convert}"
        )
