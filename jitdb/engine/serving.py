"""Which index serves where several can: for the values of a field, and for what is asked of its text.

Bitmaps that questions for a value left behind have all values of their field, and so has a dictionary. Where one of
them is there, nothing else is built for counting or for text. The one that knows most of the log serves, so one that is
up to date is enough. What is there may change while an index is built: bitmaps become hashes; so plans are looked at
again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from jitdb.engine.plan import CoreFields, Requirement, first_bytes_spec, requirement, values_spec
from jitdb.indexes.segment import BITMAPS
from jitdb.indexes.spec import IndexSpec
from jitdb.operators.nodes.operations import Operation, StartsWith, TextMatch

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.engine.catalog.catalog import Catalog

TextLeaf: TypeAlias = StartsWith | TextMatch


def serving_spec(catalog: Catalog, path: Path) -> IndexSpec:
    """The index that has the values: bitmaps that know no less of the log than the one that is built, or that one."""
    bitmaps, counted = IndexSpec("auto", (path,)), values_spec(path)
    known = catalog.get(bitmaps)
    return bitmaps if known.kind == BITMAPS and known.reached >= catalog.get(counted).reached else counted


def text_spec(catalog: Catalog, leaf: TextLeaf) -> IndexSpec:
    """The index that text is looked for in: the values, or of `starts_with` an index of the first bytes of each, which
    is built where there are no values yet.
    """
    values = serving_spec(catalog, leaf.path)
    if isinstance(leaf, TextMatch):
        return values
    first_bytes = first_bytes_spec(leaf.path)
    return values if catalog.get(values).reached > catalog.get(first_bytes).reached else first_bytes


def needed(leaf: Operation, core: CoreFields, catalog: Catalog) -> Requirement | None:
    """The index that a leaf is answered from, as things are now; None when it needs none."""
    return Requirement(text_spec(catalog, leaf)) if isinstance(leaf, TextLeaf) else requirement(leaf, core)
