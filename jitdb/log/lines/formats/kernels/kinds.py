"""Numbers that the table of formats and kernels agree on."""

from __future__ import annotations

from typing import Final

# How lines become records. JSON: they are records as they stand.
# BATCH: an element with what is around it; OTLP: the same, of OpenTelemetry.
# TABLE: a row under a header.
# LTSV: labels and values with colons between, divided by tabs.
# STAMPED: the time of a container's runtime, and what a program wrote.
JSON, PATTERN, LOGFMT, CRI, DOCKER, JOURNAL, BATCH, OTLP, TABLE, LTSV, STAMPED = range(11)

# What lines of JSON hold that may be records of another format: only then is the table of formats imported.
MARKS: Final = (b'"log"', b'"__REALTIME_TIMESTAMP"')

# What a group of a pattern is.
TEXT, NUMBER, BODY, BSD_TIME, KLOG_TIME, NIL, WORD, LEVELED, PAIRS, DOUBLED = range(10)
ESCAPED, EXTENSION, ATTRIBUTES, DAY_MONTH, MONTH_DAY, ZONED_TIME, GRADED, SHOWN = range(10, 18)
FIELD: Final = 4  # numbers that say of a field: its group, where its key stands, the size of that, what it is

# Instructions of a pattern's program (pattern.py).
# The first four numbers of it: SPLITs, groups; the group (and 1) of a line behind which the next line is never a
# record's first; and what holds for lines (bits): it describes all of a record's; the text of a line, its last group,
# says whether it goes on with that of the line before; a record of which no group takes part is a header, and none.
LEADS, LINES = 2, 3
SPANS, FOLDS, SKIPS = 1, 2, 4
CHAR, CLASS, SPAN, SPLIT, SAVE, JUMP, END, MATCH, PEEK = range(9)

# What may be in a table (headers.py): quotes around values, newlines between these, blanks behind delimiters that are
# of no value, lines of comments; or whether each row has as many fields as are named.
QUOTED, LINED, SKIPS, COMMENTS, STRICT = 1, 2, 4, 8, 16

# What a value without quotes is: what it spells, or what the header says; an array of such values.
IS_ANY, IS_TEXT, IS_NUMBER, IS_BOOL = range(4)
ARRAY: Final = 4

# What the program of a table has: two delimiters, what may be in rows, how many fields they have; which are the date
# and the time; the sizes of the header, of what is unset, and of what is empty; the delimiter of elements.
FIRST, SECOND, FLAGS, COLUMNS, DATE, TIME, HEADER_SIZE, UNSET_SIZE, EMPTY_SIZE, BETWEEN = range(10)

# In place of where a row ends: it is none; it is the header again, or a comment; a value goes on in the next line; it
# names other fields than the header.
BAD, HEADER, GOES_ON, RENAMES = -1, -2, -3, -4
