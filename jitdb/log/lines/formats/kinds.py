"""Numbers that the table of formats and kernels agree on."""

from __future__ import annotations

from typing import Final

# How lines become records. JSON: they are records as they stand.
# BATCH: an element with what is around it; OTLP: the same, of OpenTelemetry.
JSON, PATTERN, LOGFMT, CRI, DOCKER, JOURNAL, BATCH, OTLP = range(8)

# What lines of JSON hold that may be records of another format: only then is the table of formats imported.
MARKS: Final = (b'"log"', b'"__REALTIME_TIMESTAMP"')

# What a group of a pattern is.
TEXT, NUMBER, BODY, BSD_TIME, KLOG_TIME, NIL, WORD, LEVELED = range(8)
FIELD: Final = 4  # numbers that say of a field: its group, where its key stands, the size of that, what it is

# Instructions of a pattern's program (pattern.py).
CHAR, CLASS, SPAN, SPLIT, SAVE, JUMP, END, MATCH = range(8)
