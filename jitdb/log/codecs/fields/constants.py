"""The numbers that codecs, their kernels and those who read what they find agree on. They are in memory only."""

from __future__ import annotations

from typing import Final

# The state of one record, as a walk over a block finds it.
LIVE: Final = 0
DELETED: Final = 1

# How the arrays and maps among located values are written: as the parts of a canonical key (jitdb.common.values), each
# behind its length, or as in bipf or msgpack, without the head that says type and size.
KEYS: Final = 0
BIPF: Final = 1
MSGPACK: Final = 2
# Of each, the module in log/codecs whose decode_parts decodes one; container_kernels.py has their readers.
ENCODINGS: Final = {KEYS: "", BIPF: "bipf.decode", MSGPACK: "msgpack.codec"}
MANY: Final = 1 << 62  # values of a container whose end is known by its bytes

MALFORMED: Final = 255  # no kind: the bytes break a rule of the format
BROKEN: Final = -1  # in place of where something ends: the bytes break a rule
UNSURE: Final = -2  # the same: a kernel is not certain, and the record must be decoded

# Containers in containers, the outermost included. Real records stay below 20; the limit keeps a hostile record
# from exhausting the stack of whatever walks the decoded value afterwards (a comparison, a JSON writer).
MAX_NESTING: Final = 256

SLACK: Final = 64  # bytes that must lie behind lines of JSON and records, where a kernel goes over them by words
