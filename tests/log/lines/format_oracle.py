"""What the lines of a format mean, as slow and plain as can be: the whole text at once, by Python's re and json."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

_TRACE = (
    "Traceback (most recent call last)",
    "Caused by:",
    "During handling of ",
    "The above exception ",
    "goroutine ",
)
_FRAME = re.compile(r"[A-Za-z_$][A-Za-z_$0-9./-]*(?::|\(|$)")
_THROWN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$.]*\.[A-Za-z0-9_$.]*(?::|$)")
_BLANKS = " \t\r\n"
_CRI = re.compile(rb"([0-9][^ ]{18,39}) (stdout|stderr) ([FP])([^ ]*)(?: (.*))?$", re.DOTALL)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"


def text_of(data: bytes) -> str:
    """UTF-8, with U+FFFD for each byte that is none."""
    out = ""
    while data:
        try:
            return out + data.decode()
        except UnicodeDecodeError as error:
            out += data[: error.start].decode() + "\ufffd"
            data = data[error.start + 1 :]
    return out


def goes_on(before: str, line: str) -> bool:
    """Whether a text belongs to the one before it."""
    if not line or line[0] in " \t" or line.startswith(_TRACE):
        return True
    thrown = _THROWN.match(line)
    if thrown and re.search(r".(?:Exception|Error|Throwable):?$", thrown[0]):
        return True
    if line in ("}", "]", ")"):
        return True
    within = (before and before[0] in " \t") or before.startswith("goroutine ")
    return bool(within and _FRAME.match(line))


def goes_on_in(before: str, line: str, is_same_stream: bool) -> bool:
    """The same in a container: what is indented goes on with a line of its own stream alone."""
    return goes_on(before, line) and (is_same_stream or line[:1] not in (" ", "\t"))


def scalar(text: str) -> Any:
    """A number where the text spells one of at most 15 digits."""
    if _NUMBER.fullmatch(text) and sum(map(str.isdigit, text)) <= 15:
        return json.loads(text)
    return text


def object_in(data: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(data)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def with_body(record: dict[str, Any], name: str, lines: list[bytes]) -> dict[str, Any]:
    """A record with what its lines say: JSON and then its trace, or text."""
    found = object_in(lines[0]) if lines[0].strip().startswith(b"{") else None
    if found is None:
        first = text_of(lines[0]).strip(" \t\r\n")
        quoted = re.match(r'"((?:[^"\\]|\\.)*)" ([!#-<>-~\x80-\U0010ffff]+=.*)$', first, re.DOTALL)
        if not quoted:
            record[name] = text_of(b"\n".join(lines)).rstrip(_BLANKS)
            tail = lines[0].strip(_BLANKS.encode())
            tail = tail[tail.find(b'{"') :] if b'{"' in tail else b""
            pairs = first if are_pairs(first) else leading_pairs(first)
            record.update(pairs_in(pairs) if pairs else object_in(tail) or {})
            return record
        found = {name: unescaped(quoted[1]), **pairs_in(quoted[2])}
    record.update(found)
    trace = b"\n".join(lines[1:]).rstrip(_BLANKS.encode())
    stripped = trace.lstrip(_BLANKS.encode())
    if stripped:
        begin = trace.rfind(b"\n", 0, len(trace) - len(stripped)) + 1
        record["trace"] = text_of(trace[begin:])
    return record


def cri(data: bytes) -> list[dict[str, Any] | None]:
    """The records of a file; None for what is none."""
    records: list[list[tuple[bytes, bytes, bool, bytes]]] = []
    before: tuple[bytes, bytes, bool, bytes] | None = None
    for line in data.split(b"\n")[:-1]:
        found = _CRI.match(line)
        if not found:
            assert not line.strip()
            if records:
                records[-1].append((b"", b"", False, line))
            before = None
            continue
        part = (found[1], found[2], found[3] == b"P", found[5] or b"")
        text = text_of(part[3])
        is_new = before is None or not (
            (before[2] and before[1] == part[1])
            or (not text.startswith("{") and goes_on_in(text_of(before[3]), text, before[1] == part[1]))
        )
        if is_new:
            records.append([])
        records[-1].append(part)
        before = part
    return [_cri_record(parts) for parts in records]


def stamped(data: bytes) -> list[dict[str, Any] | None]:
    """The same of lines without a stream."""
    records = cri(re.sub(rb"(?m)^([0-9]{4}-[^ \n]+Z)(?: |$)", rb"\1 stdout F ", data))
    return [record and {key: value for key, value in record.items() if key != "stream"} for record in records]


def _cri_record(parts: list[tuple[bytes, bytes, bool, bytes]]) -> dict[str, Any]:
    lines, is_cut = [b""], True
    for _, _, cut, text in parts:
        if is_cut:
            lines[-1] += text
        else:
            lines.append(text)
        is_cut = cut
    record = {"time": parts[0][0].decode(), "stream": parts[0][1].decode()}
    return _said(record, "message", lines)


def _said(record: dict[str, Any], name: str, lines: list[bytes]) -> dict[str, Any]:
    """With what a container wrote: a line of klog, an access, JSON, or text that may have a level."""
    first = lines[0].strip(b" \t")
    whole = {name: text_of(b"\n".join(lines)).rstrip(_BLANKS)}
    if klog := _KLOG.match(first):
        head = {"level": klog[1].decode(), "threadid": scalar(klog[5].decode()), "file": klog[6].decode()}
        head["line"] = scalar(klog[7].decode())
        return with_body({**record, **whole, **head}, "msg", [first[klog.end() :], *lines[1:]])
    if syslog := _syslog_inside(first, lines):
        return {**record, **whole, **syslog}
    if access := _ACCESS.match(first):
        found = {key: value.decode() for key, value in access.groupdict().items() if value is not None}
        for key in ("status", "body_bytes_sent"):
            found[key] = scalar(found[key])
        return {**record, **whole, **{key: value for key, value in found.items() if value != "-" or key not in _NIL}}
    level = {} if first.startswith(b"{") else level_in(lines[0].rstrip())
    return with_body({**record, **level}, name, lines)


_TAGGED = rb"([^ :\[{]+)(?:\[([^\]]*)\])?(?: \(([^)]*)\))?: ?"
_SYSLOG = re.compile(
    rb"(?:<([0-9]{1,3})>)?([A-Z][a-z]{2}) ([ 0-9][0-9]) ([0-9]{2}:[0-9]{2}:[0-9]{2}) ([^ ]+) " + _TAGGED
)
_SYSLOG_5424 = re.compile(
    rb"<([0-9]{1,3})>([0-9]{1,2}) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) (-|(?:\[[^\]]*\])+)(?: (.*))?$", re.DOTALL
)


def _syslog_inside(first: bytes, lines: list[bytes]) -> dict[str, Any] | None:
    """The fields of syslog in a line of a container."""
    head = _SYSLOG_5424.match(first)
    if head:
        names = ["PRI", "VERSION", "TIMESTAMP", "HOSTNAME", "APP_NAME", "PROCID", "MSGID", "STRUCTURED_DATA"]
        found = {name: text_of(value) for name, value in zip(names, head.groups()[:8], strict=True)}
        record = {name: scalar(value) if name in names[:2] else value for name, value in found.items() if value != "-"}
        if head[9] is None:
            return record
        return with_body({**record, **level_in(head[9])}, "MSG", [head[9], *lines[1:]])
    head = _SYSLOG.match(first)
    if not head or not (head[1] or re.search(rb"[a-z0-9]", head[5])):
        return None
    month = _MONTHS.index(head[2].decode()) // 3 + 1
    record = {} if head[1] is None else {"PRI": scalar(head[1].decode())}
    record["TIMESTAMP"] = f"2026-{month:02}-{int(head[3]):02}T{head[4].decode()}"
    record |= {"HOSTNAME": text_of(head[5]), "TAG": text_of(head[6])}
    record |= {"PID": scalar(text_of(head[7]))} if head[7] and head[7] != b"-" else {}
    record |= {"RefProc": text_of(head[8])} if head[8] is not None else {}
    content = first[head.end() :]
    return with_body({**record, **level_in(content)}, "CONTENT", [content, *lines[1:]])


def docker(data: bytes) -> list[dict[str, Any] | None]:
    records: list[list[dict[str, Any]]] = []
    before: dict[str, Any] | None = None
    for line in data.split(b"\n")[:-1]:
        if not line.strip():
            before = None
            continue
        part = json.loads(line)
        text = part["log"].removesuffix("\n")
        is_new = True
        if before is not None:
            is_cut = not before["log"].endswith("\n")
            earlier = before["log"].removesuffix("\n")
            is_new = not (
                (is_cut and before["stream"] == part["stream"])
                or (not text.startswith("{") and goes_on_in(earlier, text, before["stream"] == part["stream"]))
            )
        if is_new:
            records.append([])
        records[-1].append(part)
        before = part
    return [_docker_record(parts) for parts in records]


def _docker_record(parts: list[dict[str, Any]]) -> dict[str, Any]:
    lines, is_cut = [""], True
    for part in parts:
        if is_cut:
            lines[-1] += part["log"].removesuffix("\n")
        else:
            lines.append(part["log"].removesuffix("\n"))
        is_cut = not part["log"].endswith("\n")
    beside = {name: value for name, value in parts[0].items() if name != "log"}
    return _said(beside, "log", [line.encode() for line in lines])


def journald(data: bytes) -> list[dict[str, Any] | None]:
    return [_journald_record(line) for line in data.split(b"\n")[:-1]]


def _journald_record(line: bytes) -> dict[str, Any] | None:
    record = object_in(line)
    for name, value in (record or {}).items():
        if isinstance(value, list) and value and all(type(byte) is int and 0 <= byte < 256 for byte in value):
            assert record is not None
            record[name] = text_of(bytes(value))
    return record


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_LOGFMT_KEY = re.compile(r'[^\s="\x00-\x20\x7f]+')


def unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda sign: _ESCAPES.get(sign[1], sign[0]), text, flags=re.DOTALL)


_OWN_LOGFMT = re.compile(rb'[^\x00-\x20\x7f="]+=')


def logfmt(data: bytes) -> list[dict[str, Any] | None]:
    return _of_text(data, lambda line: bool(_OWN_LOGFMT.match(line)), _pairs_record)


def text(data: bytes) -> list[dict[str, Any] | None]:
    """Text behind times of ISO 8601, with other lines between."""
    return _of_text(data, lambda line: bool(_TIMED.match(line) or _INDENTED.match(line)), _timed_record)


def klog(data: bytes) -> list[dict[str, Any] | None]:
    return _of_text(data, lambda line: bool(_KLOG.match(line)), _klog_record)


_NAMES = (
    rb"TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|CRITICAL|CRIT|FATAL|PANIC|ALERT|EMERG|EMERGENCY|SEVERE"
    rb"|TRC|TRAC|VRB|DBG|DEBU|INF|WRN|ERRO|FTL|FATA|PANI"
)
_LEVEL = re.compile(
    rb"(?:(?<![0-9A-Za-z_\x80-\xff])|\x1b\[[0-9;]*m)((?:%s)(?![0-9A-Za-z_\x80-\xff])|LOG(?=:))"
    rb"|\[ {0,8}(?:\x1b\[[0-9;]*m)*((?i:%s))(?= {0,8}(?:\x1b\[[0-9;]*m)*\])|:((?i:%s))(?= {0,8}\])"
    rb"|(?<=\| )(SUCCESS)(?= *\|)|(?<=\[)(CRT)(?=\])" % (_NAMES, _NAMES, _NAMES)
)
_TIMED = re.compile(
    rb"\[?([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:]{8}(?:[.,][0-9]+)?(?:Z|\+[0-9]{4})?"
    rb"|[0-9]{2}-[A-Z][a-z]{2}-[0-9]{4} [0-9:]{8}(?:\.[0-9]+)?"
    rb"|[0-9]{4}\.[0-9]{2}\.[0-9]{2} [0-9:]{8}(?:[.,][0-9]+)?)\]?:? ?"
)
_HEAD_LEVELS = rb"(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|CRITICAL|FATAL|PANIC|SEVERE)"
_BY_LEVEL = re.compile(
    rb"(?:\x1b\[[0-9;]*m)?(?:%s(?:\x1b\[[0-9;]*m)?[\[: |\t]|\[(?:\x1b\[[0-9;]*m)? *%s *(?:\x1b\[[0-9;]*m)?\]"
    rb"|(?:TRAC|DEBU|ERRO|FATA|PANI)(?:\x1b\[[0-9;]*m)?\[[0-9]"
    rb"|(?:trce|dbug|debug|info|notice|warn|warning|fail|error|crit|critical|fatal|panic|alert|emerg|emergency"
    rb"|CRIT|ALERT|EMERG|EMERGENCY): )|[a-z][a-z0-9_-]*: %s:? [^ ]" % (_HEAD_LEVELS, _HEAD_LEVELS, _HEAD_LEVELS)
)
_INDENTED = re.compile(
    rb" +([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:]{8}(?:[.,][0-9]+)?(?:Z|\+[0-9]{4})?) (?=\[%s\] )" % _HEAD_LEVELS
)
_CLOCKED = re.compile(rb"(?:\x1b\[[0-9;]*m)?\[?(\d\d:\d\d:\d\d(?:[.,]\d+)?)\]?(?:\x1b\[[0-9;]*m)? ")
_FIRST_LEVELS = [
    re.compile(rb"([A-Za-z]{3,9})(?:(?<=[Dd][Ee][Bb][Uu][Gg]) [0-9]+)?:(?: |$)"),
    re.compile(
        rb"[0-9A-Za-z_\x80-\xff/][^ ]{0,76}: ([A-Za-z]{3,9})(?:(?<=[Dd][Ee][Bb][Uu][Gg]) [0-9]+)?:(?: |$)", re.DOTALL
    ),
    re.compile(rb"\t([A-Za-z]{3,9})\t"),
    re.compile(rb"\| *([A-Za-z]{3,9}) *\|"),
    re.compile(rb"<([A-Za-z]{3,9})> "),
]
_BEHIND_NAME = re.compile(rb"\[[^\]]*\] ([A-Za-z]{3,9}):(?: |$)", re.DOTALL)
_BARS = re.compile(rb"(?<=\| )[A-Za-z]{3,9} *\| +(%s)(?= *\|)" % _NAMES)
_KLOG_BESIDE = re.compile(rb"([IWEF])(\d\d)(\d\d) (\d\d:\d\d:\d\d\.\d+) +(\d+) ([^ :\]]+):(\d+)\] ")
_OTHERS = (_TIMED, _KLOG_BESIDE, _CLOCKED, _BY_LEVEL)
_KLOG = re.compile(rb"([IWEF])(\d\d)(\d\d) ([0-9:]{8}\.\d{6}) +(\d+) ([^ :\]]+):(\d+)\] ")


_ACCESS = re.compile(
    rb"(?P<remote_addr>[0-9A-Fa-f.:]+) (?P<remote_logname>[^ ]+) (?P<remote_user>[^\[]*) "
    rb"\[(?P<time_local>[^\]]{26})\] "
    rb'"(?P<request>(?P<request_method>[A-Z]+) (?P<request_uri>[^ "]+)(?: (?P<server_protocol>HTTP/[0-9.]+))?'
    rb'|[^"\\]*)" '
    rb"(?P<status>[0-9]{3}|-) (?P<body_bytes_sent>[0-9]+|-)"
    rb'(?: "(?P<http_referer>[^"\\]*)" "(?P<http_user_agent>[^"\\]*)"(?: (?P<more>.*))?)?$'
)
_NIL = ("status", "body_bytes_sent", "remote_logname")


def _of_text(
    data: bytes, is_own: Callable[[bytes], bool], record_of: Callable[[list[bytes]], dict[str, Any]], time: str = "time"
) -> list[dict[str, Any] | None]:
    """The records of lines of text. One that begins as those of another format do is a record, too; others go on.

    time: the field in which the format has it
    """
    records: list[list[bytes]] = []
    for line in data.split(b"\n")[:-1]:
        is_whole = line.startswith(b'{"') and object_in(line) is not None
        is_other = is_whole or any(other.match(line) for other in _OTHERS) or are_pairs(text_of(line).rstrip(_BLANKS))
        if not records or (line.strip() and (is_own(line) or is_other)):
            records.append([])
        records[-1].append(line)
    return [_record_of_text(lines, is_own, record_of, time) for lines in records]


def _record_of_text(
    lines: list[bytes], is_own: Callable[[bytes], bool], record_of: Callable[[list[bytes]], dict[str, Any]], time: str
) -> dict[str, Any] | None:
    if is_own(lines[0]):
        return record_of(lines)
    if object_in(lines[0]) is not None:
        return with_body({}, "", lines)
    if _TIMED.match(lines[0]):
        return _timed_record(lines, time)
    if klog := _KLOG_BESIDE.match(lines[0]):
        level, month, day, clock, thread, file, number = (group.decode() for group in klog.groups())
        is_day = 1 <= int(month) <= 12 and 1 <= int(day) <= 31
        when = f"2026-{month}-{day}T{clock}" if is_day else f"{month}{day} {clock}"
        head = {"level": level, time: when, "threadid": scalar(thread), "file": file}
        return with_body({**head, "line": scalar(number)}, "msg", [lines[0][klog.end() :], *lines[1:]])
    if clocked := _CLOCKED.match(lines[0]):
        text = lines[0][clocked.end() :]
        record = {"clock": clocked[1].decode(), **level_in(text.removesuffix(b"\r"))}
        return with_body(record, "text", [text, *lines[1:]])
    if _BY_LEVEL.match(lines[0]):
        return with_body(level_in(lines[0].removesuffix(b"\r")), "text", lines)
    if are_pairs(text_of(lines[0]).rstrip(_BLANKS)):
        return _pairs_record(lines)
    return object_in(b"\n".join(lines))


def _timed_record(lines: list[bytes], time: str = "time") -> dict[str, Any]:
    head = _TIMED.match(lines[0]) or _INDENTED.match(lines[0])
    assert head
    text = lines[0][head.end() :]
    when = re.sub(r"^(\d{4})\.(\d\d)\.(\d\d) ", r"\1-\2-\3T", head[1].decode())
    record = {time: when, **level_in(text.removesuffix(b"\r"))}
    return with_body(record, "text", [text, *lines[1:]])


def level_in(text: bytes) -> dict[str, Any]:
    """The level near the beginning of a text."""
    if klog := re.match(rb"([EFIW])[0-9]{4} ..:.", text, re.DOTALL):
        return {"level": klog[1].decode()}
    found = _level_in(text)
    if found is None:
        return {}
    bars = _BARS.match(text, found[0]) if text[: found[0]].endswith(b"| ") else None
    begin, end = bars.span(1) if bars else found
    return {"level": text[begin:end].decode()}


def _is_any_level(word: bytes) -> bool:
    return bool(re.fullmatch(rb"(?i:%s|TRCE|DBUG|FAIL|VERBOSE)" % _NAMES, word))


def _level_in(text: bytes) -> tuple[int, int] | None:
    for first in _FIRST_LEVELS:
        found = first.match(text)
        if found and _is_any_level(found[1]):
            return found.span(1)
    if text.startswith(b'{"'):
        return None
    places = [
        each.span(each.lastindex or 0)
        for each in _LEVEL.finditer(text)
        if each.lastindex != 1 or not _is_in_words(text, *each.span(1))
    ]
    behind = _BEHIND_NAME.match(text)
    if behind and _is_any_level(behind[1]):
        places.append(behind.span(1))
    begin, end = min(places, default=(80, 80))
    return (begin, end) if begin < 80 else None


def _is_in_words(text: bytes, begin: int, end: int) -> bool:
    """Whether a level in capital letters is a word of the text, by what stands before and behind it."""
    before, word, behind = text[:begin], text[begin:end], text[end:]
    if re.match(rb"(?:(?i:%s)|(?i:TRCE|DBUG|FAIL|VERBOSE))(?<=[a-z]) " % _NAMES, text) and not re.match(
        rb":(?: |$)", behind
    ):
        return True
    if re.match(rb"-[0-9A-Za-z_\x80-\xff]", behind) or re.search(rb"[0-9A-Za-z_\x80-\xff]-$", before):
        return True
    if before.endswith((b"/", b"\\")):
        return not behind.startswith(b"]")
    if before.endswith(b", "):
        return not behind.startswith((b",", b":"))
    is_told = behind.startswith(b":")
    if word == b"ALERT" and re.search(rb"(?:^| )(?:[A-Z]+ |[a-z]+ )$", before):
        return not is_told or before[-2:-1].isupper()
    return not is_told and re.search(rb"(?:^| )[a-z]+ [a-z]+ [a-z]+ $", before) is not None


def _klog_record(lines: list[bytes]) -> dict[str, Any]:
    head = _KLOG.match(lines[0])
    assert head
    level, month, day, clock, thread, file, line = (group.decode() for group in head.groups())
    time = f"2026-{month}-{day}T{clock}"
    record = {"severity": level, "time": time, "threadid": scalar(thread), "file": file, "line": scalar(line)}
    return with_body(record, "msg", [lines[0][head.end() :], *lines[1:]])


def ltsv(data: bytes) -> list[dict[str, Any] | None]:
    own = re.compile(rb"[0-9A-Za-z_.-]+:[^\t]*\t[0-9A-Za-z_.-]+:")
    return _of_text(data, lambda line: bool(own.match(line)), _labels_record)


def _labels_record(lines: list[bytes]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for part in lines[0].removesuffix(b"\r").split(b"\t"):
        label, colon, said = part.partition(b":")
        value = text_of(said)
        if colon and re.fullmatch(rb"[0-9A-Za-z_.-]+", label):
            if label == b"time" and re.fullmatch(r"\[.+\]", value, re.DOTALL):
                record["time"] = value[1:-1]
            else:
                record[label.decode()] = {"true": True, "false": False}.get(value, scalar(value))
    trace = text_of(b"\n".join(lines[1:])).rstrip(_BLANKS)
    return record | ({"trace": trace} if trace else {})


def pairs_in(text: str, is_within: bool = False) -> dict[str, Any]:
    """The keys and values in a line; is_within: between single quotes."""
    record: dict[str, Any] = {}
    at = 0
    while at < len(text):
        found = _LOGFMT_KEY.match(text, at)
        if not found:
            at += 1
            continue
        at, value = found.end(), True
        if text[at : at + 1] == "=":
            at += 1
            single = re.compile(r"'(.*?)'(?=[\x00-\x20]|$)", re.DOTALL).match(text, at)
            if single and not is_within:
                at, value = single.end(), single[1]
                if re.match(r'[^\x00-\x20\x7f="]+=', single[1]):
                    record.update(pairs_in(single[1], True))
                    continue
            elif text[at : at + 1] == '"':
                quoted = re.compile(r'"((?:[^"\\]|\\.|\\$)*)"?', re.DOTALL).match(text, at)
                assert quoted
                at = quoted.end()
                value = unescaped(quoted[1])
            else:
                word = re.compile(r"[^\x00-\x20]*").match(text, at)
                assert word
                at, value = word.end(), {"true": True, "false": False}.get(word[0], scalar(word[0]))
        record[found[0]] = value
    return record


def are_pairs(text: str) -> bool:
    """Whether a text is two pairs or more, with as many keys alone among them at most."""
    if not re.match(r"[A-Za-z_@][!#-<>-{}~]*=", text) or re.search(r"[\x00-\x1f]", text):
        return False
    tokens = list[str]()
    at = 0
    while at < len(text):
        found = re.compile(r'([!#-<>-~]+)(?:=("(?:[^"\\]|\\.?)*"?|)([^ ]*)| +|$)').match(text, at)
        if not found:
            return False
        tokens.append(found[0])
        at = re.compile(" *").match(text, found.end()).end()  # type: ignore[union-attr]
    pairs = sum("=" in token for token in tokens)
    return pairs >= 2 and len(tokens) - pairs <= pairs


def leading_pairs(text: str) -> str:
    """The two pairs or more with which a text begins; empty where there are none."""
    pair = r'[!#-<>-~]+=(?:"(?:[^"\\]|\\.)*(?:"|\\?$)|(?!"))[^\x00-\x20]*'
    found = re.match(rf"{pair}(?: +{pair})+", text) if re.match(r"[A-Za-z_@][!#-<>-{}~]*=", text) else None
    return found[0] if found and not re.search(r"[\x00-\x1f]", found[0]) else ""


def _pairs_record(lines: list[bytes]) -> dict[str, Any]:
    record = pairs_in(text_of(lines[0]).rstrip("\r"))
    trace = text_of(b"\n".join(lines[1:])).rstrip(_BLANKS)
    if trace:
        record["trace"] = trace
    return record
