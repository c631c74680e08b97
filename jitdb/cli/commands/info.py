"""`jitdb info`: describe a log and its indexes."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.opening import each_log, index_place, is_many, log_only
from jitdb.cli.options import FORMAT, LINES, changed
from jitdb.cli.output.output import flush, show, show_json
from jitdb.cli.parser import command
from jitdb.common.memory import bound, limit
from jitdb.common.words import counted, size_in_words
from jitdb.log.objects.door import size_at

if TYPE_CHECKING:
    from jitdb.log.any_log import AnyLog
    from jitdb.log.lines.line_log import LineLog

_NAMED: Final = 1000  # malformed lines in JSON
_SHOWN: Final = 10  # and in text


@command(
    "LOG [options]",
    "Describe a log: size, records, codec and block size, and the indexes beside it. A fresh index knows every "
    "record; the next question brings a stale one up to date.",
    [
        ("info events.log", "as a table"),
        ("info 'logs/*.log'", "many logs, a line each"),
        ("info events.log --json | python -m json.tool", "for programs"),
    ],
    *("log", "more_logs", "json", "memory", *FORMAT, *LINES),
    changed("indexes", "folder of the index files (default: .jitdb beside the log)"),
)
def info(options: Namespace) -> int:
    """Print it; of many logs a line each, and their sums."""
    limit(options.memory)
    if not is_many(options):
        found = _told(options)
        show_json(found) if options.json else _show(found)
        return 0
    from jitdb.logset.member import Member
    from jitdb.logset.passing import UNREADABLE, PassedOver

    logs: list[dict[str, Any]] | None = [] if options.json else None
    count, sums = 0, Counter[str]()
    passed, members = PassedOver([options.log, *options.more_logs]), []
    for each in each_log(options):
        members.append(Member(each.log))
        try:
            found = _told(each)
        except UNREADABLE as error:
            if not passed.take(members[-1], error):
                raise
            continue
        count += 1
        sums.update({name: value for name, value in found.items() if name in ("bytes", "records")})
        sums["index_bytes"] += sum(index["bytes"] for index in found["indexes"])
        if logs is None:
            show(_line(found))
            flush()
        else:
            logs.append({**found, "path": each.log})
    passed.tell(members)
    if logs is None:
        show(
            f"{counted(count, 'log', 'logs')}: {counted(sums['records'], 'record', 'records')} in "
            f"{size_in_words(sums['bytes'])}, and {size_in_words(sums['index_bytes'])} of indexes"
        )
    else:
        show_json({"logs": logs, **sums})
    return 0


def _told(options: Namespace) -> dict[str, Any]:
    from jitdb.engine.showing.overview import describe_indexes

    with log_only(options) as log:
        found = _describe(log)
        found["memory_bytes"] = bound()
        found["indexes"] = [index.as_dict() for index in describe_indexes(index_place(options, log), log)]
    return found


def _line(found: dict[str, Any]) -> str:
    states = Counter(index["state"] for index in found["indexes"])
    told = [counted(found["records"], "record", "records"), size_in_words(found["bytes"])]
    if found.get("malformed_lines"):
        told.append(f"{counted(found['malformed_lines'], 'line', 'lines')} left out that cannot be read")
    if found.get("unfinished_bytes"):
        told.append("its last line is not whole yet")
    if found.get("damaged_records"):
        told.append(f"{counted(found['damaged_records'], 'record', 'records')} damaged")
    told.append(f"indexes: {', '.join(f'{number} {state}' for state, number in sorted(states.items())) or 'none'}")
    return f"{found['path']}: {'; '.join(told)}"


def _describe_lines(log: LineLog) -> dict[str, Any]:
    from jitdb.common.paths import format_path
    from jitdb.engine.roles import found_roles
    from jitdb.log.lines.detection import first_lines

    lines = log.counted()
    first = first_lines(log.path, log.framing.form)
    stats = lines.stats
    wrong = lines.malformed
    return {
        "path": str(log.path),
        "bytes": size_at(log.path),
        "compression": log.compression or None,
        "lines_bytes": log.durable_end,
        "records": stats.records,
        "format": "JSON Lines" if log.framing.row is None else log.framing.row.title,
        "each": format_path(log.framing.form.path.first),
        "roles": {name: format_path(path) for name, path in found_roles(log)._asdict().items() if path is not None},
        "first_lines": None if first is None else first._asdict(),
        "blank_lines": stats.deleted_records - len(wrong) - lines.text,
        "text_lines": lines.text,
        "partial_lines": lines.parts,
        "malformed_lines": len(wrong),
        "malformed": wrong[:_NAMED],
        "malformed_reason": lines.reason,
        "is_prefixed": lines.is_prefixed,
        "codec": log.codec.name,
        "newest_offset": log.since,
        "unfinished_bytes": 0 if log.compression else max(0, size_at(log.path) - log.durable_end),
    }


def _describe(log: AnyLog) -> dict[str, Any]:
    from jitdb.log.columnar.table_log import TableLog
    from jitdb.log.io.filenames import META
    from jitdb.log.lines.line_log import LineLog

    if isinstance(log, LineLog):
        return _describe_lines(log)
    stats = log.stats()
    if isinstance(log, TableLog):
        return {
            "path": str(log.path),
            "bytes": size_at(log.path),
            "records": stats.records,
            "format": log.kind.name,
            "codec": log.codec.name,
            "kept_in": str(log.sidecar) if log.is_kept else None,
            "kept_bytes": log.kept.bytes,
            "newest_offset": log.since,
        }
    return {
        "path": str(log.path),
        "bytes": size_at(log.path),
        "records": stats.records,
        "deleted_records": stats.deleted_records,
        "deleted_bytes": stats.deleted_bytes,
        "codec": log.codec.name if log.durable_end or (log.sidecar / META).exists() else None,
        "block_size": log.block_size,
        "newest_offset": log.since,
        "sealed_blocks": max(0, log.durable_end - 1) // log.block_size,
        "proven_blocks": stats.proven_blocks,
        "damaged_records": stats.damaged_records,
    }


def _show(found: dict[str, Any]) -> None:
    from jitdb.cli.output.tables import show_indexes
    from jitdb.engine.showing.overview import IndexInfo

    rows = _rows_of_lines if "malformed" in found else _rows_of_table if "kept_bytes" in found else _rows
    for name, text in rows(found).items():
        show(f"{name:8} {text}")
    show(f"memory   up to {found['memory_bytes'] >> 20:,} MiB are kept and worked with (--memory)")
    show("")
    show_indexes([IndexInfo(*index.values()) for index in found["indexes"]], with_files=False)


def _what_is_one(found: dict[str, Any]) -> str:
    blank = found["blank_lines"]
    if found["each"]:
        return f"{found['each']} of its lines" + (f", and {counted(blank, 'line', 'lines')} without one" * bool(blank))
    from jitdb.log.lines.formats.table import TABLES

    if any(row.title == found["format"] for row in TABLES):
        return "a line each" + f", and {counted(blank, 'line', 'lines')} of names, or blank" * bool(blank)
    if found["format"] != "JSON Lines":
        return "of one line or more" + f", and {counted(blank, 'line', 'lines')} of headers, or blank" * bool(blank)
    return "a line each" + f", and {blank:,} blank lines" * bool(blank)


def _rows_of_lines(found: dict[str, Any]) -> dict[str, str]:
    from jitdb.log.lines.detection import converted

    packed = f", compressed ({found['compression']}), {found['lines_bytes']:,} of lines" if found["compression"] else ""
    rows = {
        "file": found["path"],
        "size": f"{found['bytes']:,} bytes" + packed,
        "records": f"{found['records']:,}, {_what_is_one(found)}",
        "format": f"{found['format']}; somebody else writes it, and here it is only read",
    }
    if first := found["first_lines"]:
        all_of = "all" if first["fitting"] == first["lines"] else f"{first['fitting']:,}"
        lines = counted(first["lines"], "line", "lines")
        rows["fits"] = f"{all_of} of the first {lines} (those of 64 KiB at most) are of this format"
        if first["odd"]:
            which = "line of them has bytes that are" if first["odd"] == 1 else "lines of them have bytes that are"
            told = f"{first['odd']:,} {which} no UTF-8, which are U+FFFD in records"
            rows["bytes"] = f"{told}; if it is Latin-1: {converted(found['path'])}"
    if found["roles"]:
        rows["fields"] = ", ".join(f"the {name} is `{field}`" for name, field in found["roles"].items())
    if found["text_lines"]:
        rows["text"] = f"{counted(found['text_lines'], 'line', 'lines')} without JSON, which `jitdb query --text` shows"
    if found["partial_lines"]:
        parts = counted(found["partial_lines"], "line says that it is a part", "lines say that they are parts")
        rows["parts"] = f"{parts} of a longer one (stdout P), whose record is in none of them and is left out"
    if found["malformed"]:
        numbers = ", ".join(f"{number:,}" for number in found["malformed"][:_SHOWN])
        more = ", …" if found["malformed_lines"] > _SHOWN else ""
        rows["left out"] = f"{counted(found['malformed_lines'], 'line', 'lines')} that cannot be read: {numbers}{more}"
        rows["left out"] += f" (the first: {found['malformed_reason']})" if found["malformed_reason"] else ""
        if found["is_prefixed"]:
            rows["left out"] += "; some have JSON behind other text, which --allow-prefix reads"
    if found["unfinished_bytes"]:
        rows["at end"] = f"{found['unfinished_bytes']:,} bytes that are no whole record"
    return rows


def _rows_of_table(found: dict[str, Any]) -> dict[str, str]:
    where = f"kept in {found['kept_in']}" if found["kept_in"] else "read for this command alone"
    return {
        "file": found["path"],
        "size": f"{found['bytes']:,} bytes",
        "records": f"{found['records']:,}, a row each",
        "format": f"{found['format'].title()}; somebody else writes it, and here it is only read",
        "rows": f"{found['kept_bytes']:,} bytes as records of {found['codec']}, {where}",
    }


def _rows(found: dict[str, Any]) -> dict[str, str]:
    deleted = f", and {found['deleted_records']:,} deleted ({found['deleted_bytes']:,} bytes)"
    rows = {
        "log": found["path"],
        "size": f"{found['bytes']:,} bytes",
        "records": f"{found['records']:,}{deleted if found['deleted_records'] else ''}",
        "codec": found["codec"] or "none yet: the first import chooses it",
        "blocks": f"{found['block_size']:,} bytes each",
        "newest": f"at offset {found['newest_offset']:,}" if found["newest_offset"] >= 0 else "none",
    }
    if found["sealed_blocks"]:
        rows["proven"] = f"{found['proven_blocks']:,} of {found['sealed_blocks']:,} full blocks, by their checksums"
    return rows
