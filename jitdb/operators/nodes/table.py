"""The operators that can be written, a row each: expressions and JSON go by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, NamedTuple, get_args

from jitdb.operators.nodes import text_match
from jitdb.operators.nodes.absent import absent
from jitdb.operators.nodes.between import between
from jitdb.operators.nodes.compare import gt, gte, lt, lte
from jitdb.operators.nodes.equal import equal
from jitdb.operators.nodes.includes import includes
from jitdb.operators.nodes.operation import Operation, and_, everything, not_, or_
from jitdb.operators.nodes.positions import offsets, seqs


class Row(NamedTuple):
    """How an operator is written.

    make:  the function that users call
    keys:  in JSON, its arguments in their order; the same attributes the operation has
    usage: as a function of expressions; "" where they have only signs for it
    takes: what else, by keywords: `options` of its index; or `ignore_case`: it is a word, or one with an `i` in front
    """

    make: Callable[..., Operation]
    keys: tuple[str, ...]
    usage: str = ""
    takes: Literal["", "options", "ignore_case"] = ""


OPTIONAL: Final = "pluck"  # the one argument that may be left out

OPERATORS: Final[dict[str, Row]] = {
    "equal": Row(equal, ("path", "value"), "equal(field, value)", "options"),
    "includes": Row(
        includes, ("path", "value", "pluck"), 'includes(field, value) or includes(field, value, pluck="key")', "options"
    ),
    "absent": Row(absent, ("path",), "absent(field)", "options"),
    **{
        name: Row(getattr(text_match, name), ("path", "value"), f'{name}(field, "text")', "ignore_case")
        for name in get_args(text_match.TextOperator)
    },
    "gt": Row(gt, ("value", "index")),
    "gte": Row(gte, ("value", "index")),
    "lt": Row(lt, ("value", "index")),
    "lte": Row(lte, ("value", "index")),
    "between": Row(between, ("index", "low", "high"), "between(field, 1, 5)"),
    "seqs": Row(seqs, ("seqs",), "seqs(1, 2, 3)"),
    "offsets": Row(offsets, ("offsets",), "offsets(1, 2, 3)"),
    "everything": Row(everything, (), "everything()"),
    "and": Row(and_, ("args",)),
    "or": Row(or_, ("args",)),
    "not": Row(not_, ("arg",)),
}
