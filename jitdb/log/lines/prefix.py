"""Lines with text before their JSON, as container runtimes, kubectl logs --prefix, docker compose and syslog have them.

The record of such a line goes from its first brace that may begin an object which ends with the line, to the end of the
line: one with a quotation mark behind it, or with a closing brace and the line's end; blanks may stand between. So
text may hold other braces (`{main}`, `${HOME}`, `ctx={}`), and no line is looked at more than twice. What is before is
the line's prefix. A line without such a brace is text: no record, and nothing that is wrong.
"""

from __future__ import annotations

import re
from typing import Final

_OBJECT: Final = re.compile(rb'\{[ \t\r]*(?:"|\}[ \t\r]*\Z)')
_PART: Final = re.compile(rb"^[0-9][0-9T:.Z+-]{18,40} std(?:out|err) P[ :]", re.MULTILINE)


def object_in(line: bytes) -> int:
    """Where the record of a line begins; -1 where it has none.

    >>> [object_in(line) for line in (b'{"a": 1}', b'ctx={} stdout F {"a": 1}', b"x {}", b"at {main}", b"[1]")]
    [0, 16, 2, -1, -1]
    """
    found = _OBJECT.search(line)
    return found.start() if found else -1


def parts_in(data: bytes) -> int:
    """How many of these lines say that they are the first or a middle part of a longer one.

    Container runtimes cut what is longer than 16 KiB: `TIME stdout P …`, and `TIME stdout F …` the last part.

    >>> parts_in(b'2026-11-21T10:00:00.123456789Z stdout P {"a"\\n2026-11-21T10:00:00.123456790Z stdout F : 1}\\n')
    1
    """
    return len(_PART.findall(data))
