"""The library of kernels that a build made (build_kernels.py): found, and checked against its sources.

A kernel's symbol is its full name with underscores, and takes what numba passes: a place for a result that there is
not, one for an exception that there is not, an address and a length a dimension of each array, numbers as 8 bytes;
last the address of what it gives, 8 bytes each.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from jitdb.common.zlib import crc32
from jitdb.errors import JitdbWarning

PATH: Final = Path(__file__).parent.parent / "kernels.so"

# The modules that have kernels; also all that the library is made of.
MODULES: Final = (
    "jitdb.log.blocks.walk_kernels",
    "jitdb.log.lines.line_kernels",
    "jitdb.log.lines.formats.kernels.rendering",
    "jitdb.log.codecs.container_kernels",
    "jitdb.log.codecs.bipf.bipf_kernels",
    "jitdb.log.codecs.msgpack.msgpack_kernels",
    "jitdb.log.codecs.msgpack.row_kernels",
    "jitdb.log.codecs.json.row_kernels",
    "jitdb.log.codecs.json.locate_kernels",
    "jitdb.log.codecs.json.payload_kernels",
    "jitdb.log.codecs.json.search_kernels",
    "jitdb.log.codecs.fields.search_kernels",
    "jitdb.log.codecs.mask_kernels",
    "jitdb.indexes.numbering_kernels",
    "jitdb.indexes.vocabulary_kernels",
    "jitdb.indexes.kinds.kernels.numbers",
    "jitdb.indexes.hash_kernels",
    "jitdb.indexes.kinds.kernels.lengths",
    "jitdb.indexes.kinds.kernels.roaring",
    "jitdb.indexes.kinds.kernels.dictionary",
    "jitdb.indexes.kinds.kernels.grams",
    "jitdb.engine.text_kernels",
    "jitdb.operators.summaries.arithmetic.summary_kernels",
    "jitdb.cli.output.cell_kernels",
    "jitdb.stores.hyperdb.format.entry_kernels",
    "jitdb.stores.hyperdb.tries.growing_kernels",
    "jitdb.stores.cable.post_kernels",
)

# What these are made of beside them.
PARTS: Final = (
    "jitdb.common.placeholders",
    "jitdb.common.times",
    "jitdb.common.zone_kernels",
    "jitdb.indexes.kinds.kernels.places",
    "jitdb.indexes.kinds.kernels.seen",
    "jitdb.indexes.kinds.kernels.time_text",
    "jitdb.log.codecs.fields.automaton_kernels",
    "jitdb.log.codecs.fields.part_kernels",
    "jitdb.log.codecs.fields.constants",
    "jitdb.log.codecs.fields.sixteen",
    "jitdb.log.codecs.fields.vectors",
    "jitdb.log.codecs.bipf.format",
    "jitdb.log.codecs.locate_kernels",
    "jitdb.log.codecs.json.numbers",
    "jitdb.log.codecs.json.read",
    "jitdb.log.codecs.json.text",
    "jitdb.log.lines.formats.kernels.kinds",
    "jitdb.log.lines.formats.kernels.batches",
    "jitdb.log.lines.formats.kernels.bodies",
    "jitdb.log.lines.formats.kernels.console",
    "jitdb.log.lines.formats.kernels.journald",
    "jitdb.log.lines.formats.kernels.levels",
    "jitdb.log.lines.formats.kernels.logfmt",
    "jitdb.log.lines.formats.kernels.otlp",
    "jitdb.log.lines.formats.kernels.patterns",
    "jitdb.log.lines.formats.kernels.runtimes",
    "jitdb.log.lines.formats.kernels.tables",
    "jitdb.log.lines.formats.kernels.traces",
    "jitdb.log.lines.formats.kernels.writing",
    "jitdb.stores.hyperdb.format.path",
)  # fmt: skip

ARRAYS: Final = {
    "U8": ("uint8", 1), "U32": ("uint32", 1), "U64": ("uint64", 1), "F64": ("float64", 1), "Bools": ("bool", 1),
    "I16": ("int16", 1), "I32": ("int32", 1), "I64": ("int64", 1),
    "U8Rows": ("uint8", 2), "I32Rows": ("int32", 2), "F64Rows": ("float64", 2),
    "I64Rows": ("int64", 2), "U64Rows": ("uint64", 2),
}  # fmt: skip


class Signature(NamedTuple):
    """What a kernel takes, names of ARRAYS or int or float, and gives: int, float, bool."""

    takes: tuple[str, ...]
    gives: tuple[str, ...]

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Signature:
        """As its annotations say, which are text."""
        annotations = dict(function.__annotations__)
        result = annotations.pop("return").removeprefix("tuple[").removesuffix("]")
        gives = tuple(name.strip() for name in result.split(",")) if result != "None" else ()
        return cls(tuple(annotations.values()), gives)


def symbol(function: Callable[..., Any]) -> str:
    """Its name in the library."""
    return f"{function.__module__}_{function.__name__}".replace(".", "_")


@cache
def library() -> ctypes.CDLL | None:
    """The library; None where there is none, or one of other sources."""
    if not PATH.exists():
        return None
    try:
        found = ctypes.CDLL(str(PATH))
        made_of = ctypes.c_uint32.in_dll(found, "jitdb_sources").value
    except (OSError, ValueError) as error:
        warnings.warn(f"{PATH} is no library of this machine ({error}): install jitdb anew", JitdbWarning, stacklevel=2)
        return None
    if made_of != sources():
        warnings.warn(f"{PATH} was made of other sources: python3 dev.py build", JitdbWarning, stacklevel=2)
        return None
    return found


def sources() -> int:
    """The CRC of all that the library is made of."""
    root, found = Path(__file__).parent.parent.parent, 0
    for module in (*MODULES, *PARTS, "jitdb.common.kernel_library"):
        found = crc32(root.joinpath(*module.split(".")).with_suffix(".py").read_bytes(), found)
    return found
