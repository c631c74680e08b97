"""Lines as the documentation of formats has them, each with its record: documented.txt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def _read() -> dict[str, list[tuple[bytes, dict[str, Any]]]]:
    found: dict[str, list[tuple[bytes, dict[str, Any]]]] = {}
    for section in Path(__file__).with_suffix(".txt").read_text().split("## ")[1:]:
        name, _, rest = section.partition("\n")
        parts = (part.strip("\n").rpartition("\n=> ") for part in rest.split("\n\n") if part.strip())
        found[name] = [(lines.encode(), json.loads(record)) for lines, _, record in parts]
    return found


DOCUMENTED = _read()
