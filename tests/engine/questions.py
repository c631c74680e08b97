"""The fixture's questions (tests/data/cases.json) as operations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jitdb import operators
from jitdb.operators import absent, and_, equal, includes, not_, offsets, or_, predicate, seqs
from jitdb.operators.nodes.operation import Operation

DATA = Path(__file__).parent.parent / "data"

_OPTIONS = {"prefix": "prefix", "useMap": "use_map", "prefixOffset": "prefix_offset", "indexAll": "index_all"}


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def even(value: Any) -> bool:
    return is_number(value) and value % 2 == 0


def long_text(value: Any) -> bool:
    return isinstance(value, str) and len(value.encode("utf-16-le")) // 2 > 500


PREDICATES = {"is_number": is_number, "even": even, "long_text": long_text}


def load_cases() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each case with its answer."""
    cases = json.loads((DATA / "cases.json").read_text())
    answers = json.loads((DATA / "answers.json").read_text())
    return list(zip(cases, answers, strict=True))


def operation(where: dict[str, Any] | None) -> Operation | None:
    """The operation that a case's `where` says."""
    if where is None:
        return None
    name = where["op"]
    if name in ("and", "or"):
        combine = and_ if name == "and" else or_
        return combine(*(operation(arg) for arg in where["args"]))
    if name == "not":
        inner = operation(where["arg"])
        assert inner is not None
        return not_(inner)
    if name in ("gt", "gte", "lt", "lte"):
        compare: Callable[[Any, str], Operation] = getattr(operators, name)
        return compare(where["value"], where["index"])
    if name in ("seqs", "offsets"):
        return (seqs if name == "seqs" else offsets)(where["values"])
    if name == "absent":
        return absent(where["path"])
    if name == "predicate":
        return predicate(where["path"], PREDICATES[where["name"]], name=where["name"])
    given = where.get("opts", {})
    options = {_OPTIONS[key]: value for key, value in given.items() if key in _OPTIONS}
    if name == "equal":
        return equal(where["path"], where["value"], **options)
    return includes(where["path"], where["value"], pluck=given.get("pluck"), **options)


def digest(numbers: list[int]) -> str:
    """The SHA-256 of all offsets joined by one space."""
    return hashlib.sha256(" ".join(map(str, numbers)).encode()).hexdigest()
