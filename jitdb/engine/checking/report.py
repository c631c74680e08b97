"""What a check of a log and its indexes found, and what was asked of it."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from jitdb.common.words import shown
from jitdb.display.shown import Shown
from jitdb.errors import QueryError
from jitdb.log.maintenance.report import LogReport, counted

if TYPE_CHECKING:
    from jitdb.display.parts import Display

Sample: TypeAlias = float | int | None

SOUND, DAMAGED, WRONG, VOID = "sound", "damaged", "wrong", "void"


@dataclass(frozen=True, slots=True)
class IndexCheck:
    """One index file.

    state:   "sound"; "damaged": bytes are not what was written; "wrong": it says something else than the records do;
             "void": it belongs to another log or another generation of this one, and is not used as it is
    checked: "content", against the records; "sample", against some of them; "bytes", where its content cannot be
             checked without the functions it was built with; "" where nothing could be
    records: that it covers
    wrong:   of how many of the compared records it says something else than they do
    """

    file: str
    form: str
    state: str
    checked: str = ""
    records: int = 0
    wrong: int = 0
    message: str = ""

    @property
    def ok(self) -> bool:
        """Whether it is no damage."""
        return self.state in (SOUND, VOID)

    def __str__(self) -> str:
        said = f": {self.message}" if self.message else ""
        return f"{self.file}: {self.state}{f' ({self.checked} checked)' if self.checked else ''}{said}"


@dataclass(frozen=True, slots=True)
class Report(Shown):
    """What JITDB.verify() found: of the log, and of each index file.

    compared: records that were held against the indexes; in a `sample`, with the stated confidence
    """

    log: LogReport
    indexes: tuple[IndexCheck, ...] = ()
    compared: int = 0
    sample: bool = False
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged and nothing wrong."""
        return self.log.ok and all(index.ok for index in self.indexes)

    @property
    def confidence(self) -> str:
        """What a sample says of all records; nothing where all were compared."""
        if not self.sample or not self.compared:
            return ""
        wrong = max((index.wrong for index in self.indexes), default=0)
        if wrong:
            return f"{wrong:,} of {self.compared:,} records that were chosen by chance are wrong in an index"
        bound = min(1.0, 3 / self.compared)
        return f"0 of {self.compared:,} records wrong: with 95 % confidence fewer than {bound:.2%} of all are"

    def __str__(self) -> str:
        lines = [str(self.log)]
        if self.indexes:
            lines.append(f"{counted(len(self.indexes), 'index file')}, {self.compared:,} records compared:")
            lines += [f"  {index}" for index in self.indexes]
        return "\n".join([*lines, *([self.confidence] if self.confidence else [])])

    def _display(self) -> Display:
        from jitdb.display.parts import Display, Note
        from jitdb.display.sheet import Sheet, State

        moods = {SOUND: "good", VOID: ""}
        rows = [
            [index.file, State(index.state, moods.get(index.state, "bad")), index.checked, index.records or None,
             index.message] for index in self.indexes
        ]  # fmt: skip
        sheet = Sheet(["index", "state", "checked", "records", ""], rows, None, {}, "")
        shown = self.log._display()
        compared = [Note(f"{self.compared:,} records compared")] if rows else []
        said = [Note(self.confidence)] if self.confidence else []
        return Display(shown.title, shown.about, [*shown.parts, sheet, *compared, *said])

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "log": self.log.to_json(), "ok": self.ok, "confidence": self.confidence}


def check_sample(sample: Any) -> Sample:
    """`sample` itself. Raises QueryError unless it is None, a part (a float up to 1) or a number of records."""
    good = isinstance(sample, (int, float)) and not isinstance(sample, bool) and sample > 0
    if sample is None or (good and (isinstance(sample, int) or sample <= 1)):
        return cast(Sample, sample if sample is None else min(sample, sys.maxsize))
    raise QueryError(f"sample is a part of all records (as 0.01), or a number of them (as 10_000), not {shown(sample)}")
