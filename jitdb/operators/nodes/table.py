"""The operators that can be written, a row each: expressions and JSON go by it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Literal, NamedTuple, get_args

from jitdb.operators.nodes import text_match
from jitdb.operators.nodes.anywhere import Anywhere, anywhere
from jitdb.operators.nodes.compare import Between, Compare, between, gt, gte, isin, lt, lte
from jitdb.operators.nodes.equal import Absent, Equal, Includes, IsIn, absent, equal, includes
from jitdb.operators.nodes.fits import Fits, fits
from jitdb.operators.nodes.operation import And, Everything, Not, Operation, Or, and_, everything, not_, or_
from jitdb.operators.nodes.positions import Offsets, Seqs, offsets, seqs


class Row(NamedTuple):
    """How an operator is written.

    make:  the function that users call
    kind:  what it makes, which says its `arguments`
    usage: as a function of expressions; "" where they have only signs for it
    takes: what else, by keywords: `options` of its index; or `ignore_case`: it is a word, or one with an `i` in front
    """

    make: Callable[..., Operation]
    kind: type[Operation]
    usage: str = ""
    takes: Literal["", "options", "ignore_case"] = ""


OPERATORS: Final[dict[str, Row]] = {
    "equal": Row(equal, Equal, "equal(field, value)", "options"),
    "includes": Row(includes, Includes, 'includes(field, value) or includes(field, value, pluck="key")', "options"),
    "absent": Row(absent, Absent, "absent(field)", "options"),
    "isin": Row(isin, IsIn, 'isin(field, ["a", "b"])'),
    **{
        name: Row(getattr(text_match, name), text_match.TextMatch, f'{name}(field, "text")', "ignore_case")
        for name in get_args(text_match.TextOperator)
    },
    "fits": Row(fits, Fits, 'fits(field, "text")'),
    "anywhere": Row(anywhere, Anywhere, "", "ignore_case"),
    "gt": Row(gt, Compare),
    "gte": Row(gte, Compare),
    "lt": Row(lt, Compare),
    "lte": Row(lte, Compare),
    "between": Row(between, Between, "between(field, 1, 5)"),
    "seqs": Row(seqs, Seqs, "seqs(1, 2, 3)"),
    "offsets": Row(offsets, Offsets, "offsets(1, 2, 3)"),
    "everything": Row(everything, Everything, "everything()"),
    "and": Row(and_, And),
    "or": Row(or_, Or),
    "not": Row(not_, Not),
}

#: Operators that are words in expressions: an `i` in front is without regard to case, `startswith` what Python has.
TEXT_OPERATORS: Final[dict[str, Callable[..., Operation]]] = {
    spelling: partial(row.make, ignore_case=True) if spelling[0] == "i" else row.make
    for name, row in OPERATORS.items()
    if row.kind is text_match.TextMatch
    for spelling in sorted({case + word for word in (name, name.replace("s_with", "swith")) for case in ("", "i")})
} | {"fits": fits}
