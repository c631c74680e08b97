"""What a question asks for that no record has: a field, a value. With the one that would find something."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.paths import ANY, Path, format_path
from jitdb.engine.hinting.spelling import fields_in, is_known, nearest_field
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.text.format import format_expression

if TYPE_CHECKING:
    from jitdb.engine.hinting.evidence import Evidence, Lack

SAMPLE: Final = 200  # records that are looked at for the names of fields


def hints_of(evidence: Evidence, operation: Operation, paths: Iterable[Path] = ()) -> list[str]:
    """Of an answer that is nothing: a line for each field that nobody has, and for each value that its field has
    otherwise.

    paths: further fields that were asked about
    """
    leaves = [leaf for leaf in operation.leaves() if leaf.paths]
    lacks = _lacks(evidence, (*(path for leaf in leaves for path in leaf.paths), *paths))
    wrong = [leaf for leaf in leaves if leaf.names_value and not lacks.keys() & set(leaf.paths)]
    wrong = [leaf for leaf in wrong if not evidence.has(leaf)]
    if not lacks and not wrong:
        return []
    known = fields_in(evidence.sample(SAMPLE))
    if not known:
        return []
    found = list(_told(lacks, known).values())
    for leaf in wrong:
        other = next((other for other in leaf.others() if evidence.has(other)), None)
        if other is not None:
            found.append(f"no record has {typed(leaf)}; did you mean `{typed(other)}`?")
        elif (*leaf.paths[0], ANY) in known and (of_elements := leaf.of_elements()) is not None:
            found.append(f"`{format_path(leaf.paths[0])}` holds arrays; did you mean `{typed(of_elements)}`?")
    return found


def hints_about(evidence: Evidence, operation: Operation, is_empty: bool) -> list[str]:
    """Of any answer: a line for each thing that no record has."""
    return hints_of(evidence, operation) if is_empty else list(missing_fields(evidence, fields_of(operation)).values())


def missing_fields(evidence: Evidence, paths: Iterable[Path]) -> dict[Path, str]:
    """Those of these fields that no record has, with the line that tells of each.

    Whatever the answer is: `not`, `!=` and `is absent` are true of all records then, and `or` loses a part.
    """
    lacks = _lacks(evidence, paths)
    return _told(lacks, fields_in(evidence.sample(SAMPLE))) if lacks else {}


def fields_of(operation: Operation) -> list[Path]:
    """The fields that a person typed."""
    return [path for leaf in operation.leaves() for path in leaf.paths]


def _lacks(evidence: Evidence, paths: Iterable[Path]) -> dict[Path, Lack]:
    return {path: lack for path in dict.fromkeys(paths) if (lack := evidence.lack(path))}


def _told(lacks: Mapping[Path, Lack], known: dict[Path, Any]) -> dict[Path, str]:
    """Of records that have no fields at all, nothing is said."""
    missing = {path: lack for path, lack in lacks.items() if known and not is_known(path, known)}
    return {path: unknown_field(f"no record has {lack}", path, known) for path, lack in missing.items()}


def unknown_field(who: str, path: Path, known: Iterable[Path]) -> str:
    """The line that tells of it, with the one of the known fields that was probably meant."""
    meant = nearest_field(path, known)
    guess = f"; did you mean `{format_path(meant)}`?" if meant else ""
    if not meant and any("," in str(step) for step in path):
        guess = "; here stands one field"
    return f"{who} `{format_path(path)}`{guess}"


def typed(operation: Operation) -> str:
    """As it can stand between the single quotes of a shell, where that is possible."""
    text = format_expression(operation)
    return text if '"' in text else text.replace("'", '"')
