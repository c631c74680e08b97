"""What a checkpoint holds of a stream over many files: how far each was read, and what its text is known by.

    {"files": HOW MANY, "first": true | false, "state": STATE}

STATE is base64 of zlib of JSON, `{"next": N, "texts": [[…], …], "logs": [[…], …]}`:

    [ID, BEGIN, BEGIN_SEQ, SEQ, DONE, PATH, DEVICE, INODE, STOP, AT, HEAD, TAIL]
                       a file of lines, read from the byte BEGIN up to STOP. Before BEGIN there are BEGIN_SEQ records,
                       before STOP there are SEQ (-1: not counted yet). DONE is 1 where the file had no name any more,
                       and nothing behind STOP; 2 where it had. From PATH on it is an entry of a cursor of files
                       (engine/cursor.py), which tells the text by two digests. ID is never given to another text
    [PATH, BEGIN, CURSOR]
                       a log of jitdb's, read from one cursor up to the other

"first" is true of where a stream without a checkpoint begins: this is found anew when that stream starts again, so the
IDs of such a place mean nothing to others. "next" is the next ID.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from jitdb.engine.cursor import MANY, Cursor, TextPlace, cursor_of, parse_cursor, parse_files_cursor
from jitdb.errors import QueryError

READ: Final = 1  # of DONE
UNREAD: Final = 2
_MARKS: Final = 5  # numbers in front of an entry of a cursor
_STOP: Final = 3  # of an entry's words


class Mark(NamedTuple):
    """What a stream knows of a text beside its place: see above."""

    id: int
    begin: int
    begin_seq: int = -1
    seq: int = -1
    done: int = 0


class TextPart(NamedTuple):
    """A text, and how far it was read: the words of an entry of a cursor."""

    mark: Mark
    words: tuple[Any, ...]

    @property
    def stop(self) -> int:
        """The byte up to which it was read."""
        return int(self.words[_STOP])

    @property
    def entry(self) -> str:
        """Of a cursor of files."""
        return json.dumps(self.words, separators=(",", ":"))

    @property
    def place(self) -> TextPlace:
        """Raises QueryError."""
        (found,) = parse_files_cursor(cursor_of(MANY, [self.entry]), MANY)
        assert isinstance(found, TextPlace)
        return found


class LogPart(NamedTuple):
    """A log of jitdb's, and how far it was read."""

    path: str
    begin: Cursor
    cursor: Cursor


@dataclass(frozen=True)
class FilesPlace:
    """A place in many files."""

    texts: tuple[TextPart, ...] = ()
    logs: Mapping[bytes, LogPart] = field(default_factory=dict)  # by their identities
    next_id: int = 0
    is_first: bool = False

    def as_offset(self) -> dict[str, Any]:
        """What Spark keeps."""
        texts = [[*each.mark, *each.words] for each in self.texts]
        logs = [[each.path, str(each.begin), str(each.cursor)] for each in self.logs.values()]
        state = json.dumps({"next": self.next_id, "texts": texts, "logs": logs}, separators=(",", ":"))
        packed = b64encode(zlib.compress(state.encode("utf-8", "surrogatepass"))).decode()
        return {"files": len(self.texts) + len(self.logs), "first": self.is_first, "state": packed}

    @staticmethod
    def of_offset(form: Mapping[str, Any]) -> FilesPlace:
        """Raises QueryError for what no stream over files has kept."""
        try:
            state = json.loads(
                zlib.decompress(b64decode(form["state"], validate=True)).decode("utf-8", "surrogatepass")
            )
            texts = tuple(_text_part(*each) for each in state["texts"])
            logs = [LogPart(path, parse_cursor(begin), parse_cursor(end)) for path, begin, end in state["logs"]]
            by_identity = {each.cursor.identity: each for each in logs}
            return FilesPlace(texts, by_identity, int(state["next"]), bool(form["first"]))
        except (KeyError, ValueError, TypeError, Base64Error, zlib.error, RecursionError) as error:
            raise QueryError(
                f"the checkpoint is of another kind of stream: {str(form)[:200]} is no place in many files",
                remedy="a stream of one log of jitdb's and one of files keep different places: give each a checkpoint "
                "of its own",
            ) from error


def _text_part(*words: Any) -> TextPart:
    return TextPart(Mark(*map(int, words[:_MARKS])), words[_MARKS:])
