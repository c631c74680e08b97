"""Syslog, and what devices write behind its head or alone: messages of Cisco, events in CEF and LEEF."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from jitdb.log.lines.formats.kernels.kinds import (
    ATTRIBUTES,
    BODY,
    BSD_TIME,
    ESCAPED,
    EXTENSION,
    LEVELED,
    NIL,
    NUMBER,
    PATTERN,
)
from jitdb.log.lines.formats.row import BSD, CLOCK, ISO, LEVELS, QUOTED, Format, begins

SYSLOG5424: Final = (
    r"<(?P<PRI>[0-9]{1,3})>(?P<VERSION>[0-9]{1,2}) (?:-|(?P<TIMESTAMP>[^ ]+)) (?P<HOSTNAME>[^ ]+) (?P<APP_NAME>[^ ]+) "
    r"(?P<PROCID>[^ ]+) (?P<MSGID>[^ ]+) (?P<STRUCTURED_DATA>-|"
    rf'(?:\[(?:[^\]"]|"{QUOTED}")*\])+)(?: (?:\xef\xbb\xbf)?(?P<MSG>.*)|$)'
)
# Behind the tag, macOS names the process that launchd speaks of. In a tag, which has no blank by the RFC, some stand.
TAGGED: Final = (
    r"(?:(?P<TAG>[^ :\[{]+)(?:\[(?P<PID>[^\]]*)\])?(?: \((?P<RefProc>[^)]*)\))?: ?|"
    r"(?P<TAG>[^ :\[{]+(?: [^ :\[{]+)+)\[(?P<PID>[0-9]+)\]: ?)(?P<CONTENT>.*)"
)
# journalctl writes `-o short-full` with the day of the week and the zone, and `-o short-unix` as seconds since 1970.
_JOURNALCTL: Final = (
    rf"(?:[A-Z][a-z]{{2}} (?P<TIMESTAMP>[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}} {CLOCK} (?:[A-Z]{{1,5}}|[+-][0-9]{{2,4}}))|"
    rf"(?P<TIMESTAMP>[12][0-9]{{9}}\.[0-9]{{6}})) (?P<HOSTNAME>[^ ]+) {TAGGED}"
)
_HEADED: Final = rf"(?:<(?P<PRI>[0-9]{{1,3}})>)?(?P<TIMESTAMP>{BSD}|{ISO}) (?P<HOSTNAME>[^ ]+) "
_TAG: Final = r"(?P<TAG>[^ :\[{]+)(?:\[(?P<PID>[^\]]*)\])?: "
SYSLOG_HEAD: Final = _HEADED + _TAG
_SYSLOG: Final = _HEADED + TAGGED
# What a program sends to the daemon of its own host has a priority, and names no host: pfSense keeps it so.
SYSLOG: Final = rf"<(?P<PRI>[0-9]{{1,3}})>(?P<TIMESTAMP>{BSD}) {_TAG}(?P<CONTENT>.*)|{_SYSLOG}"
SYSLOG_KINDS: Final = MappingProxyType({
    "PRI": NUMBER, "VERSION": NUMBER, "TIMESTAMP": BSD_TIME, "HOSTNAME": NIL, "APP_NAME": NIL, "PROCID": NIL,
    "MSGID": NIL, "STRUCTURED_DATA": NIL, "MSG": BODY, "PID": NUMBER, "CONTENT": LEVELED,
})  # fmt: skip
# What looks like a host may be a level: programs write `2026-11-25 01:00:00 INFO app.db: connected`.
_SYSLOG_LINE: Final = (
    rf"(?:<[0-9]{{1,3}}>)?(?:{BSD}|[0-9-]{{10}}[T ][0-9:.]+(?:Z|[+-][0-9:]+)) (?!(?i:{LEVELS}) )[^ \[]*[^ \[:] "
    rf"[^ :\[{{]+(?:\[[^\]]*\])?(?: \([^)]*\))?:|<[0-9]{{1,3}}>{BSD} [^ :\[{{]+(?:\[[^\]]*\])?: "
)

_MONTH_DAY: Final = "[A-Z][a-z]{2} [ 0-9][0-9]"
_STAMP: Final = rf"(?:(?:{_MONTH_DAY}|{_MONTH_DAY} [0-9]{{4}}|[0-9]{{4}} {_MONTH_DAY}) {CLOCK}(?:\.[0-9]+)?|{ISO})"
_PRI: Final = r"(?:<(?P<PRI>[0-9]{1,3})>)?"
_ZONE: Final = "UTC|[A-Z]{1,4}T"
_NODE: Final = "(?:(?P<node>[A-Z0-9]+(?:/[A-Z0-9]+)+):)?"  # of IOS XR
_UPTIME: Final = rf"(?P<uptime>{CLOCK}|(?:[0-9]+[ywdh])+)"
# A device says when, perhaps behind its number of the message and its name, and a collector may have said it before.
_OF_DEVICE: Final = (
    r"(?:: )?(?:(?P<seq_no>[0-9]+): )?(?:(?P<HOSTNAME>[A-Za-z0-9][^ :%/]*): )?"
    rf"{_NODE}(?:(?:[*.]?(?P<TIMESTAMP>{_STAMP})(?: (?P<timezone>{_ZONE}))?|{_UPTIME}): )?"
)
_COLLECTED: Final = (
    rf"(?P<TIMESTAMP>{_STAMP}) (?P<HOSTNAME>[^ %]+?)(?: ?:)? (?:(?P<seq_no>[0-9]+): )?"
    rf"{_NODE}(?:(?:[*.]?(?P<device_time>{_STAMP})(?: (?P<device_zone>{_ZONE}))?|{_UPTIME}): )?"
)
_CISCO: Final = (
    rf"(?:{_OF_DEVICE}|{_COLLECTED})(?:(?P<process>[^ \[%]+)\[(?P<PID>[0-9]+)\]: )?"
    r"%(?P<facility>[A-Z][A-Z0-9_]*(?:-[A-Z0-9_]+)*)-(?P<severity>[0-7])-(?P<mnemonic>[A-Za-z0-9_]+) ?: ?(?P<text>.*)"
)
_HEAD: Final = (
    rf"(?:(?:(?P<VERSION>[0-9]) )?(?P<TIMESTAMP>{_STAMP}) (?P<HOSTNAME>[^ ]+) (?:(?P<APP_NAME>[^ ]+) (?P<PROCID>[^ ]+) "
    rf'(?P<MSGID>[^ ]+) (?P<STRUCTURED_DATA>-|(?:\[(?:[^\]"]|"{QUOTED}")*\])+) (?:\xef\xbb\xbf)?|'
    r"(?P<TAG>[^ :\[]+)(?:\[(?P<PID>[^\]]*)\])?: ?)?)?"
)
_BETWEEN_BARS: Final = r"[^|\\]*(?:\\.[^|\\]*)*"


def _headed(form: str, names: str) -> str:
    """The pattern of names with bars between, behind the version of the form."""
    return rf"{form}: ?(?P<{form.lower()}Version>[0-9.]+)" + "".join(
        rf"\|(?P<{name}>{_BETWEEN_BARS})" for name in names.split()
    )


def _device(name: str, title: str, pattern: str, kinds: Mapping[str, int], mark: bytes, line: str) -> Format:
    """A format that stands behind the head of syslog, or alone; other lines of syslog are among its lines."""
    both = MappingProxyType({**SYSLOG_KINDS, **kinds})
    whole = f"{_PRI}{pattern}|{_SYSLOG}"
    return Format(name, title, PATTERN, whole, both, joins=True, mark=mark, is_line=begins(line))


_VENDOR: Final = "deviceVendor deviceProduct deviceVersion deviceEventClassId name deviceSeverity"
_CEF_KINDS: Final = {**dict.fromkeys(_VENDOR.split(), ESCAPED), "deviceSeverity": NUMBER, "extension": EXTENSION}

DEVICES: Final = (
    _device(
        "cisco", "Cisco (IOS, ASA, NX-OS)", _CISCO, {"severity": NUMBER, "device_time": BSD_TIME, "text": BODY}, b"%",
        r'[^%"{]*%[A-Z][A-Z0-9_]*(?:-[A-Z0-9_]+)*-[0-7]-[A-Za-z0-9_]+ ?:',
    ),
    _device(
        "cef", "Common Event Format", _HEAD + _headed("CEF", _VENDOR) + r"(?:\|(?P<extension>.*))?", _CEF_KINDS,
        b"CEF:", r'(?:[^"{|]*[ >])?CEF: ?[0-9.]+(?:\|' + _BETWEEN_BARS + "){6}",
    ),
    _device(
        "leef", "Log Event Extended Format",
        _HEAD + _headed("LEEF", "vendor product version eventID") + r"\|(?:[^|=\t ]{0,4}\|)?(?P<attributes>.*)",
        {"attributes": ATTRIBUTES}, b"LEEF:", r'(?:[^"{|]*[ >])?LEEF: ?[0-9.]+(?:\|' + _BETWEEN_BARS + r"){4}\|",
    ),
)  # fmt: skip
SYSLOGS: Final = (
    Format("syslog5424", "syslog, RFC 5424", PATTERN, SYSLOG5424, SYSLOG_KINDS, joins=True),
    Format(
        "syslog", "syslog, RFC 3164", PATTERN, SYSLOG, SYSLOG_KINDS, joins=True, is_line=begins(_SYSLOG_LINE),
    ),
    Format("journalctl", "journalctl, short-full and short-unix", PATTERN, _JOURNALCTL, SYSLOG_KINDS, joins=True),
)  # fmt: skip
