"""What was probably meant by a value that a field never has: the number for its text, or the text in another case.

Only what the index of the question finds is said, so no record is read for it, and nothing is scanned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB
    from jitdb.logset import LogSet
    from jitdb.operators.nodes.operations import Equal, Operation

_WORDS = {"true": True, "false": False, "null": None, "none": None}


def other_spelling(db: JITDB | LogSet, asked: Equal) -> Operation | None:
    """The same question for the value as the log has it; None where it is there, or nothing like it is."""
    from jitdb.operators.nodes.operations import Equal

    if db.count(asked):
        return None
    others = (Equal(asked.field, value) for value in other_values(asked.value))
    return next((other for other in others if db.count(other)), None)


def other_values(value: Any) -> Iterator[Any]:
    """What else a person may have meant, the likeliest first.

    >>> list(other_values("180")), list(other_values(180)), list(other_values("True"))
    ([180], ['180'], [True, 'true', 'TRUE'])
    >>> list(other_values("eu west"))
    ['EU WEST', 'Eu west', 'Eu West']
    """
    if value is None or isinstance(value, bool):
        yield from (str(value).lower(), str(value), *(["null", ""] if value is None else []))
    elif isinstance(value, (int, float)):
        yield str(value)
    elif isinstance(value, str):
        if value.lower() in _WORDS:
            yield _WORDS[value.lower()]
        number = _number(value)
        if number is not None:
            yield number
        spellings = (value.lower(), value.upper(), value.capitalize(), value.title(), value.strip())
        yield from (other for other in dict.fromkeys(spellings) if other != value)


def _number(text: str) -> int | float | None:
    for read in (int, float):
        try:
            number = read(text)
        except ValueError:
            continue
        return number if math.isfinite(number) else None
    return None
