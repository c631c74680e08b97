"""Why an answer is nothing, where that is because of how it was asked, with the question that would find something."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from jitdb.common.paths import ANY, Path, format_path
from jitdb.engine.hinting.spelling import fields_in, is_known, nearest_field, other_values
from jitdb.operators.nodes.operations import (
    Compare,
    Equal,
    FieldOperation,
    Includes,
    Operation,
    StartsWith,
    TextMatch,
)
from jitdb.operators.text.format import format_expression

if TYPE_CHECKING:
    from jitdb.engine.hinting.evidence import Evidence

SAMPLE: Final = 200  # records that are looked at for the names of fields


def hints_of(evidence: Evidence, operation: Operation, paths: Iterable[Path] = ()) -> list[str]:
    """A line for each field that nobody has, and for each value that its field has otherwise.

    paths: further fields that were asked about
    """
    leaves = [leaf for leaf in operation.leaves() if leaf.paths and not _is_sought(leaf)]
    asked = dict.fromkeys([*(path for leaf in leaves for path in leaf.paths), *paths])
    if not asked:
        return []
    lacks = {path: lack for path in asked if (lack := evidence.lack(path))}
    wrong = [leaf for leaf in leaves if not lacks.keys() & set(leaf.paths) and _has_values(leaf)]
    wrong = [leaf for leaf in wrong if not evidence.has(leaf)]
    if not lacks and not wrong:
        return []
    known = fields_in(evidence.sample(SAMPLE))
    if not known:
        return []
    missing = [(path, lack) for path, lack in lacks.items() if not is_known(path, known)]
    found = [unknown_field(f"no record has {lack}", path, known) for path, lack in missing]
    for leaf in wrong:
        other = next((other for other in _others(leaf) if evidence.has(other)), None)
        if other is not None:
            found.append(f"no record has {typed(leaf)}; did you mean `{typed(other)}`?")
        elif (*leaf.paths[0], ANY) in known:
            found.append(f"`{format_path(leaf.paths[0])}` holds arrays; did you mean `{typed(_of_elements(leaf))}`?")
    return found


def unknown_field(who: str, path: Path, known: Iterable[Path]) -> str:
    """The line that tells of it, with the one of the known fields that was probably meant."""
    meant = nearest_field(path, known)
    guess = f"; did you mean `{format_path(meant)}`?" if meant else ""
    return f"{who} `{format_path(path)}`{guess}"


def typed(operation: Operation) -> str:
    """As it can stand between the single quotes of a shell, where that is possible."""
    text = format_expression(operation)
    return text if '"' in text else text.replace("'", '"')


def _is_sought(leaf: Operation) -> bool:
    """Whether a function of the user finds the field: nobody can type that wrong, and it is not called in vain."""
    return isinstance(leaf, FieldOperation) and leaf.field.seek is not None


def _has_values(leaf: Operation) -> bool:
    return isinstance(leaf, (Equal, StartsWith, TextMatch, Compare))


def _others(leaf: Operation) -> Iterator[Operation]:
    """The same for other values, which the index of the question knows, too."""
    if isinstance(leaf, Equal):
        yield from (leaf.changed(value=value) for value in other_values(leaf.value))
    elif isinstance(leaf, TextMatch) and not leaf.ignore_case and isinstance(leaf.value, str):
        yield leaf.changed(ignore_case=True)


def _of_elements(leaf: Operation) -> Operation:
    """The same, asked of the elements of arrays."""
    if isinstance(leaf, Equal):
        return Includes(leaf.field, leaf.value, None)
    (path,) = leaf.paths
    changed: Operation = leaf.changed(**{"index" if isinstance(leaf, Compare) else "path": (*path, ANY)})
    return changed
