"""What verifying and repairing a log find out: values, with a text for people and plain values for programs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.display.shown import Shown
from jitdb.display.terminal import as_lines

if TYPE_CHECKING:
    from jitdb.display.parts import Display

_SHOWN: Final = 20  # findings of one report that its text shows; all are in `findings`


class Compaction(NamedTuple):
    """What a compaction did. Bytes are those of the log, up to the end of its last record."""

    removed: int  # deleted records that are gone
    records: int  # live ones, which stay
    bytes_before: int
    bytes_after: int
    seconds: float

    def __str__(self) -> str:
        if not self.removed:
            return f"nothing to remove: none of {self.records:,} records is deleted"
        speed = f", {self.bytes_before / self.seconds / 1e6:,.0f} MB/s" if self.seconds > 0 else ""
        removed = f"{self.removed:,} deleted {'record' if self.removed == 1 else 'records'}"
        return (
            f"removed {removed}, {self.records:,} stay: "
            f"{self.bytes_before:,} bytes are {self.bytes_after:,} now ({self.seconds:.2f} s{speed})"
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it was written.

    what:    "block", "tail", "record", "deleted", or the file of the sidecar that it is about ("meta", "commit",
             "checksums", "deletions", "moved", "set"); "index" for an index file
    file:    its name; that of a sidecar's file with the folder
    offset:  the byte in that file where it is, or begins
    block:   of the log, None for other files
    records: how many cannot be read, or only with doubt, as far as they can be counted
    bytes:   how many are in doubt
    remedy:  what repair does about it
    """

    what: str
    file: str
    offset: int
    message: str
    remedy: str
    block: int | None = None
    records: int = 0
    bytes: int = 0

    def __str__(self) -> str:
        cost = f" [{self.records:,} records, {self.bytes:,} bytes in doubt]" if self.records or self.bytes else ""
        return f"{self.file}, byte {self.offset:,}: {self.message}{cost}; repair {self.remedy}"


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file that nobody reads any more, kept for people."""

    file: str
    bytes: int


@dataclass(frozen=True, slots=True)
class LogReport(Shown):
    """What Log.verify() found.

    findings:   what is damaged; none: the log is sound (`ok`)
    notes:      what is worth knowing and no damage
    leftovers:  bytes that were set aside, half-written files
    blocks, records, deleted: of the log; `records` are the live ones that can be found
    unverified: sealed blocks that nothing proves to be what was written: without a checksum, as other programs leave
                them, or with one that they got when they were repaired or compacted
    bytes:      that were read
    """

    path: str
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    blocks: int = 0
    records: int = 0
    deleted: int = 0
    unverified: int = 0
    bytes: int = 0
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged."""
        return not self.findings

    @property
    def proven(self) -> int:
        """How many blocks their checksums prove to be what was written; the last one has none."""
        return max(0, self.blocks - 1 - self.unverified - len(self.damaged_blocks))

    @property
    def damaged_blocks(self) -> list[int]:
        """Numbers of the log's damaged blocks."""
        return sorted({finding.block for finding in self.findings if finding.block is not None})

    def __str__(self) -> str:
        lines = [
            f"{self.path}: {'sound' if self.ok else 'damaged'}; {self.records:,} records"
            f"{f' and {self.deleted:,} deleted ones' if self.deleted else ''} in {counted(self.blocks, 'block')}, "
            f"{self.bytes:,} bytes read in {self.seconds:.2f} s"
        ]
        if self.unverified:
            lines.append(f"  proven by checksums: {self.proven:,} of {counted(self.blocks, 'block')}")
        return as_lines(lines + listed(self.findings) + leftover_lines(self.notes, self.leftovers))

    def _display(self) -> Display:
        from jitdb.display.parts import Display, Facts, Note
        from jitdb.display.sheet import Sheet, State

        mood = State("sound", "good") if self.ok else State("damaged", "bad")
        facts: list[tuple[str, Any]] = [("state", mood), ("records", f"{self.records:,}")]
        if self.deleted:
            facts.append(("deleted", f"{self.deleted:,}"))
        facts.append(("read", f"{self.bytes:,} bytes in {self.seconds:.2f} s"))
        if self.unverified:
            facts.append(("proven", f"{self.proven:,} of {counted(self.blocks, 'block')}, by their checksums"))
        rows = [[each.file, each.offset, each.message, each.remedy] for each in self.findings[:_SHOWN]]
        left = len(self.findings) - len(rows)
        footer = f"and {left:,} findings more" if left > 0 else ""
        sheet = Sheet(["file", "byte", "what is wrong", "what repair does"], rows, None, {}, footer)
        notes = [Note(line.strip()) for line in leftover_lines(self.notes, self.leftovers)]
        return Display(self.path, "what was found", [Facts(facts), sheet, *notes])

    def to_json(self) -> dict[str, Any]:
        """Plain values, for json.dumps."""
        return {**asdict(self), "ok": self.ok, "proven": self.proven}


@dataclass(frozen=True, slots=True)
class RepairAction:
    """One thing that repair did.

    restored: the bytes are those that were written, as far as their CRC can tell
    kept:     offsets of records that can be read, but are not certain to be what was written
    lost:     offsets where bytes were that cannot be read: a deleted record stands there now
    copy:     the file that keeps the bytes as they were found
    unproven: blocks that look as they should, and of which nothing tells any more whether they are what was written
    """

    message: str
    block: int | None = None
    restored: bool = False
    kept: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    copy: str = ""
    unproven: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class RepairReport(Shown):
    """What Log.repair() did.

    before:       what verify() found before
    actions:       what was done, in order
    new_identity: whether the log counts as another one since: records that were indexed may not be there any more
    """

    path: str
    before: LogReport
    actions: tuple[RepairAction, ...] = ()
    new_identity: bool = False
    seconds: float = 0.0
    notes: tuple[str, ...] = field(default=())

    @property
    def kept(self) -> tuple[int, ...]:
        """Offsets of records that were kept and are not certain."""
        return tuple(offset for each in self.actions for offset in each.kept)

    @property
    def lost(self) -> tuple[int, ...]:
        """Offsets of what could not be read."""
        return tuple(offset for each in self.actions for offset in each.lost)

    @property
    def unproven(self) -> tuple[int, ...]:
        """Numbers of blocks that look as they should, and that nothing but their look speaks for."""
        return tuple(block for each in self.actions for block in each.unproven)

    def __str__(self) -> str:
        if not self.actions:
            return as_lines([f"{self.path}: nothing to repair", *leftover_lines(self.notes, ())])
        lines = [f"{self.path}: {len(self.actions)} repaired in {self.seconds:.2f} s"]
        lines += [f"  {each}" for each in self.actions]
        if self.new_identity:
            lines.append("  the log counts as a new one: its indexes are built anew")
        return as_lines(lines + leftover_lines(self.notes, ()))

    def _display(self) -> Display:
        from jitdb.display.parts import Display, Note
        from jitdb.display.sheet import Sheet

        rows = [[each.message, each.block, len(each.kept) or None, len(each.lost) or None] for each in self.actions]
        sheet = Sheet(["what was done", "block", "kept", "lost"], rows, None, {}, "")
        said = ["the log counts as a new one: its indexes are built anew"] if self.new_identity else []
        notes = [Note(line) for line in (*said, *self.notes)]
        about = f"{len(self.actions)} repaired in {self.seconds:.2f} s" if self.actions else "nothing to repair"
        return Display(self.path, about, [sheet, *notes])

    def to_json(self) -> dict[str, Any]:
        """Plain values, for json.dumps."""
        return {**asdict(self), "before": self.before.to_json()}


def listed(findings: tuple[Finding, ...]) -> list[str]:
    """The findings as lines of text, not too many of them."""
    lines = [f"  {finding}" for finding in findings[:_SHOWN]]
    if len(findings) > _SHOWN:
        lines.append(f"  … and {len(findings) - _SHOWN:,} more")
    return lines


def leftover_lines(notes: tuple[str, ...], leftovers: tuple[Leftover, ...]) -> list[str]:
    """Notes and leftovers as lines of text."""
    lines = [f"  note: {note}" for note in notes]
    return lines + [f"  left over: {each.file}, {each.bytes:,} bytes" for each in leftovers]


def counted(number: int, one: str) -> str:
    """A number and what it counts.

    >>> counted(1, "block"), counted(2000, "block")
    ('1 block', '2,000 blocks')
    """
    return f"{number:,} {one}{'' if number == 1 else 's'}"
