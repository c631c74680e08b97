"""Times as numbers: nanoseconds since 1970 in UTC, however they are written.

Whole numbers from 1677 to 2262, where they fit 64 bits; before and after a float, whose steps are some microseconds.

- **Text** as in RFC 3339 and ISO 8601: `2015-12-01T10:30:00.123456789Z`, or less of it: a space for the T, a comma for
  the point, no fraction, no seconds, no time of day, slashes in the date, or dots before a time of day, `_` for the T;
  `+01:00`, `+0100`, `+01`, `UTC`, `GMT`, `GMT+0100` for the Z, behind a space or not; or the name of a zone in ZONES
  behind a space (`CET`). Without a zone it is UTC; with another name (`IST`), which means other things in other places,
  too. Digits beyond the ninth of a fraction are cut off; a second 60 is the first of the next minute.
  `20151201T103000`, with seconds, needs no marks; nor do `20151201 103000`, `20151201 10:30:00` and
  `20151201-10:30:00.123` (FIX).
- **Text with the name of a month**: `01/Dec/2015:10:30:00 +0100` (nginx, Apache), `Tue, 01 Dec 2015 10:30:00 GMT` (RFC
  2822, HTTP; the day of the week may be missing), `01-Dec-2015 10:30:00`, or `::` for the space (Erlang), `Dec  1
  2015 10:30:00` (Cisco, CEF), `Dec 1, 2015 2:30:00 PM` (Java), `Dec 1, 2015 @ 10:30:00.000` (Kibana), `Tue Dec  1
  10:30:00 2015` (C; `date` writes the name of a zone before the year, osquery UTC behind it, git `+0100`), `Tue Dec 01
  2015 10:30:00 GMT+0100 (Central European Standard Time)` (JavaScript; the words in brackets may be missing). The zone
  and the fraction are as above; which day of the week is said does not matter. A blank may stand before the time of day
  in each.
- **Text with AM or PM**: `12/1/2015 2:30:00 PM`, the month first, also with a comma behind the date.
- **Text with dots**: `01.12.2015 10:30:00`, the day first, also with a comma behind the date; `01.12.2015` alone. And
  `2015-12-01-10.30.00.123456` (DB2), also with how many minutes that is ahead of UTC, of three digits, `+060`, or with
  a space for the third hyphen.
- **A time of day and its date in brackets**: each of these, as in `[2015-12-01 10:30:00]`.
- **Maps with a key `$date`** (MongoDB): the text, the milliseconds, or `{"$numberLong": milliseconds}` under it.
- **Maps with a key `epochSecond`** (Log4j 2): that many seconds, and `nanoOfSecond`; or with `seconds` and `nanos`
  (Protocol Buffers), `_seconds` and `_nanoseconds` (Firestore).
- **Text such as `/Date(1448965800000)/`** (.NET, PowerShell 5): the milliseconds; the zone that may follow them says
  where they were written, not when.
- **Text that spells a number** is that number.
- **Numbers** in a unit, or (AUTO) in that which their size tells: seconds below 1e11 (up to the year 5138), else
  milliseconds below 1e14, else microseconds below 1e17, else nanoseconds. Fractions are rounded to nanoseconds.
- **Numbers whose digits are a date** (AUTO): `20151201103000`, and `20151201103000123` with milliseconds, of the years
  1970 to 2199. They say no zone. (As milliseconds and microseconds they would be of the years 2594 to 2667.)

How values are read is said by one word or two, the *unit*: that of numbers, and perhaps the zone that times have which
say none, or one that is not known (`with_zone`): `auto`, `ms`, `auto Europe/Berlin`.

`indexes/kinds/kernels/numbers.py` does the same of whole columns.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final, Literal, TypeAlias

from jitdb.common.values import number_of_text

Unit: TypeAlias = Literal["auto", "s", "ms", "us", "ns", "number"]
Nanoseconds: TypeAlias = int | float

AUTO: Final = "auto"
NUMBER: Final = "number"  # no unit: the numbers are no times
UNITS: Final = (AUTO, "s", "ms", "us", "ns", NUMBER)
NANOSECONDS_IN: Final[dict[str, int]] = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
SMALLER: Final[dict[str, float]] = {"s": 1e11, "ms": 1e14, "us": 1e17, "ns": math.inf}  # bounds of each unit in AUTO
_DATED: Final = 19700101 * 10**6, 22000101 * 10**6  # bounds of numbers that may be dates
_MOST: Final = (1 << 63) - 1  # nanoseconds
FARTHEST: Final = 9_223_372_036  # seconds of an instant, which fit 64 bits as nanoseconds

DATE: Final = "$date"  # keys of MongoDB's JSON
LONG: Final = "$numberLong"
#: Keys of the seconds and nanoseconds of an instant: of Java, Protocol Buffers, Firestore.
INSTANTS: Final = (("epochSecond", "nanoOfSecond"), ("seconds", "nanos"), ("_seconds", "_nanoseconds"))

_CLOCK: Final = r"(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?"
_NAME_OF_ZONE: Final = "(?P<zone>(?-i:[A-Z]{3,5}))"
_ZONE: Final = (
    r"(?P<offset> ?(?:Z|UTC|GMT|(?:UTC|GMT)?(?P<sign>[+-])(?P<ahead>\d\d)(?::?(?P<minutes_ahead>\d\d))?|"
    rf"(?<= ){_NAME_OF_ZONE}))?"
)
_TEXT: Final = (  # with dots, a date alone may be a version
    r"(?P<year>\d{4})(?P<mark>[-/]|\.(?=.{6}))(?P<month>\d\d)(?P=mark)(?P<day>\d\d)"
    rf"(?:[T _]{_CLOCK}{_ZONE})?"
)
_BRACKETED: Final = 12  # characters of a date alone in brackets
_MONTHS: Final = "janfebmaraprmayjunjulaugsepoctnovdec"
_NAME: Final = "|".join(_MONTHS[at : at + 3] for at in range(0, 36, 3))
_WEEKDAY: Final = "mon|tue|wed|thu|fri|sat|sun"
_NAMED: Final = (
    rf"(?:(?:{_WEEKDAY}), )?(?P<day>\d\d?)(?:(?P<mark>/)|(?P<other>[- ]))(?P<month>{_NAME})(?(mark)/|(?P=other))"
    rf"(?P<year>\d{{4}})(?:(?(mark)[: ]| )|(?<=-\d{{4}})::){_CLOCK}{_ZONE}"
)
_TWELVE: Final = (  # AM or PM may stand behind it
    r"(?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?"
    "(?:[ \u202f](?P<half>[AP])M(?![A-Z]))?"
)
_MONTH_FIRST: Final = rf"(?P<month>{_NAME})  ?(?P<day>\d\d?),? (?P<year>\d{{4}})(?:,?| @) {_TWELVE}{_ZONE}"
_OF_AMERICA: Final = rf"(?P<month>\d\d?)/(?P<day>\d\d?)/(?P<year>\d{{4}}),? {_TWELVE}{_ZONE}"
_DOTTED: Final = rf"(?P<day>\d\d?)\.(?P<month>\d\d?)\.(?P<year>\d{{4}})(?:,? {_TWELVE}{_ZONE}|(?<=\d\d\.\d\d\.\d{{4}}))"
_OF_DB2: Final = (
    r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)[- ](?P<hour>\d\d)\.(?P<minute>\d\d)\.(?P<second>\d\d)"
    r"(?:\.(?P<fraction>\d+))?(?P<offset>(?P<sign>[+-])(?P<minutes_ahead>\d{3}))?"
)
_BASIC: Final = (
    r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)[T -](?P<hour>\d\d)(?P<colon>:?)(?P<minute>\d\d)(?P=colon)"
    rf"(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?{_ZONE}"
)
_LENGTHS: Final = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "min": 60 * 10**9,
    "h": 3600 * 10**9, "d": 86_400 * 10**9, "w": 7 * 86_400 * 10**9,
}  # fmt: skip
_BY_CLOCK: Final = (  # .NET writes days before a dot
    r"-?(?:(?P<d>\d{1,9})\.)?(?P<h>\d{1,9}):(?P<m>[0-5]\d):(?P<s>[0-5]\d)(?:[.,](?P<fraction>\d+))?"
)
_OF_ISO: Final = (
    r"-?P(?=[\dT])(?:(?P<w>\d{1,9})W)?(?:(?P<d>\d{1,9})D)?"
    r"(?:T(?=\d)(?:(?P<h>\d{1,9})H)?(?:(?P<m>\d{1,9})M)?(?:(?P<s>\d{1,9})(?:[.,](?P<fraction>\d+))?S)?)?"
)
UNITS_OF_LENGTH: Final = "ns|us|µs|μs|ms|s|min|m|h|d|w"
_PART: Final = rf"(\d+(?:\.\d+)?) ?({UNITS_OF_LENGTH})(?![a-z]) ?"
_AS_TEXT: Final = re.ASCII | re.IGNORECASE
_OF_C: Final = (
    rf"(?:{_WEEKDAY}) (?P<month>{_NAME})  ?(?P<day>\d\d?) {_CLOCK}(?P<offset> UTC| GMT| {_NAME_OF_ZONE})? "
    r"(?P<year>\d{4})(?P<after> UTC| GMT|"
    r"(?(offset)(?!)| ?(?P<sign>[+-])(?P<ahead>\d\d)(?::?(?P<minutes_ahead>\d\d))?))?"
)
_OF_JAVASCRIPT: Final = (
    rf"(?:{_WEEKDAY}) (?P<month>{_NAME})  ?(?P<day>\d\d?) (?P<year>\d{{4}}) {_CLOCK}{_ZONE}(?: \([^()]*\))?"
)
_OTHERS: Final = (_NAMED, _OF_C, _OF_JAVASCRIPT, _MONTH_FIRST, _OF_AMERICA, _DOTTED, _OF_DB2, _BASIC)

#: Seconds by which a zone is ahead of UTC, by its name: those which mean one thing today in the tables of tzdata and of
#: PostgreSQL, and those which RFC 5322 says. What means several things is none of them (IST, SAST, ACST).
ZONES: Final[dict[str, int]] = {
    name: round(3600 * hours)
    for hours, names in (
        (-10, "HST"), (-9, "AKST HDT"), (-8, "AKDT PST"), (-7, "MST PDT"), (-6, "CST MDT"), (-5, "EST CDT"),
        (-4, "EDT AST"), (-3.5, "NST"), (-3, "ADT ART BRT"), (-2.5, "NDT"), (0, "UTC GMT UCT WET"),
        (1, "BST CET MET WAT WEST"), (2, "CAT CEST EET MEST"), (3, "EAT EEST IDT MSK"), (4, "MSD"), (5, "PKT"),
        (7, "ICT WIB"), (8, "AWST HKT SGT"), (9, "JST KST"), (10, "AEST"), (11, "AEDT"), (12, "NZST"), (13, "NZDT"),
    )
    for name in names.split()
}  # fmt: skip
#: Of these, those which another large place uses otherwise.
ZONES_ELSEWHERE: Final = {"CST": "China (+08:00)", "PST": "the Philippines (+08:00)"}


def with_zone(unit: str, zone: str | None) -> str:
    """The unit of numbers, and the zone of times that say none; None, or empty: UTC.

    >>> with_zone("auto", "Europe/Berlin"), with_zone("ms", "")
    ('auto Europe/Berlin', 'ms')
    """
    return f"{unit} {zone}" if zone else unit


def unit_and_zone(unit: str) -> tuple[str, str]:
    """The two parts of with_zone()."""
    number, _, zone = unit.partition(" ")
    return number, zone


def time_of_text(text: str, zone: str = "") -> Nanoseconds | None:
    """The time in a text, that is of the zone if it says none, and is no date alone; None if it is none.

    >>> time_of_text("1970-01-01T00:00:01.5Z"), time_of_text("1970-01-02"), time_of_text("1970-01-01 01:00+01:00")
    (1500000000, 86400000000000, 0)
    >>> time_of_text("02/Jan/1970:00:00:00 +0000") == time_of_text("Fri, 2 Jan 1970 01:00 +0100") == 86400 * 10**9
    True
    >>> time_of_text("2015-02-29"), time_of_text("tomorrow"), time_of_text("/Date(86400000+0100)/")
    (None, None, 86400000000000)
    """
    if text.startswith("/"):
        of_net = re.fullmatch(r"/Date\((-?\d{1,15})(?:[+-]\d{4})?\)/", text, re.ASCII)
        return None if of_net is None else time_of_number(int(of_net[1]), "ms")
    found = _match(text)
    if found is None:
        return None
    part = found.groupdict()
    name = part["month"].lower()
    month = int(name) if name.isdecimal() else _MONTHS.index(name) // 3 + 1
    year, day = int(part["year"]), int(part["day"])
    hour, minute, second = (int(part[unit] or 0) for unit in ("hour", "minute", "second"))
    if half := part.get("half"):
        hour = hour % 12 + (12 if half in "Pp" else 0) if 1 <= hour <= 12 else 24
    ahead, minutes_ahead = int(part.get("ahead") or 0), int(part.get("minutes_ahead") or 0)
    if not (1 <= month <= 12 and 1 <= day <= _days_in(year, month) and hour < 24 and minute < 60 and second <= 60):
        return None
    if ahead >= 24 or (minutes_ahead >= 60 and part.get("ahead")):  # minutes alone are of DB2
        return None
    offset = (60 * ahead + minutes_ahead) * (-60 if part.get("sign") == "-" else 60)
    offset += ZONES.get(part.get("zone") or "", 0)
    seconds = ((days_before(year, month, day) * 24 + hour) * 60 + minute) * 60 + second
    if zone and part["hour"] and not _says_zone(part):
        from jitdb.common.zones import changes_of

        offset = changes_of(zone).ahead(seconds)
    seconds -= offset
    return _scaled(seconds, int((part["fraction"] or "")[:9].ljust(9, "0")), 10**9)


def _match(text: str) -> re.Match[str] | None:
    """The parts of a time in text, by their names."""
    if text.startswith("[") and text.endswith("]") and len(text) > _BRACKETED:
        text = text[1:-1]
    found = re.fullmatch(_TEXT, text, _AS_TEXT)
    if found is None and not text.isdecimal():
        found = next((match for form in _OTHERS if (match := re.fullmatch(form, text, _AS_TEXT))), None)
    if found is not None and found.re.pattern == _OF_AMERICA and not found["half"]:
        return None  # the month is first where AM or PM is said
    return found


def is_zoneless(text: str) -> bool:
    """Whether it is a time that says no zone, or one that is not known.

    >>> is_zoneless("2015-12-01 10:30:00"), is_zoneless("2015-12-01 10:30:00 CET"), is_zoneless("tomorrow")
    (True, False, False)
    """
    found = None if text.startswith("/") else _match(text)
    return found is not None and not _says_zone(found.groupdict())


def _says_zone(part: dict[str, Any]) -> bool:
    """Whether a zone that is known is among the parts of a time."""
    zone = part.get("zone")
    return bool(part.get("after")) or (zone in ZONES if zone else bool(part.get("offset")))


def zone_behind(text: str) -> str:
    """The name of the zone of a time, as letters; empty where none is.

    >>> zone_behind("2015-12-01 10:30:00 CET"), zone_behind("Tue Dec  1 10:30:00 IST 2015"), zone_behind("a CET")
    ('CET', 'IST', '')
    """
    found = re.search(r" ([A-Z]{3,5})(?: \d{4})?$", text)
    return found[1] if found and time_of_text(text) is not None else ""


def time_of_number(number: int | float, unit: str = AUTO) -> Nanoseconds | None:
    """The time of a number in this unit; None for NaN.

    >>> time_of_number(1.5), time_of_number(1_700_000_000_123), time_of_number(7, "us"), time_of_number(19700101000001)
    (1500000000, 1700000000123000000, 7000, 1000000000)
    """
    if number != number:
        return None
    if abs(number) == math.inf:
        return float(number)
    unit, zone = unit_and_zone(unit)
    if unit == AUTO and (dated := _time_of_digits(number, zone)) is not None:
        return dated
    unit = unit_of(number) if unit == AUTO else unit
    whole = math.floor(number)
    factor = NANOSECONDS_IN[unit]
    return _scaled(whole, round((number - whole) * factor) if isinstance(number, float) else 0, factor)


def has_date(number: int | float) -> bool:
    """Whether the digits of a number are a date and a time of day, as which AUTO reads it.

    >>> has_date(20151201103000), has_date(20151201103000123), has_date(20151301103000), has_date(1_700_000_000_123)
    (True, True, False, False)
    """
    return _time_of_digits(number, "") is not None


def _time_of_digits(number: int | float, zone: str) -> int | None:
    """The time that `20151201103000` or, with milliseconds, `20151201103000123` spells; None where it spells none."""
    if not (_DATED[0] <= number < _DATED[1] or 1000 * _DATED[0] <= number < 1000 * _DATED[1]):
        return None
    whole = math.floor(number)
    digits, millis = (whole, 0) if number < _DATED[1] else divmod(whole, 1000)
    beyond = round((number - whole) * 10**9) if isinstance(number, float) else 0
    found = time_of_text(f"{digits // 10**6}T{digits % 10**6:06}", zone)
    return found + millis * 10**6 + beyond if isinstance(found, int) else None


def unit_of(number: int | float) -> str:
    """The unit of a finite number since 1970, by its size.

    >>> unit_of(1_700_000_000), unit_of(1_700_000_000_123)
    ('s', 'ms')
    """
    return next(name for name, bound in SMALLER.items() if abs(number) < bound)


def time_of(value: Any, unit: str = AUTO) -> Nanoseconds | None:
    """The time in a value of a record: text, a number, a map with $date or keys of INSTANTS, a timestamp of msgpack;
    None if it is none.
    """
    if isinstance(value, str):
        number = number_of_text(value)
        return time_of_text(value, unit_and_zone(unit)[1]) if number is None else time_of_number(number, unit)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return time_of_number(value, unit)
    if isinstance(value, dict) and DATE in value:
        inside = value[DATE]
        held = inside[LONG] if isinstance(inside, dict) and LONG in inside else inside
        return None if isinstance(held, dict) else time_of(held, with_zone("ms", unit_and_zone(unit)[1]))
    if isinstance(value, dict):
        found = (_of_instant(value.get(second), value.get(nano, 0)) for second, nano in INSTANTS)
        return next((time for time in found if time is not None), None)
    if hasattr(value, "to_bytes") and hasattr(value, "nanoseconds"):
        return _scaled(value.seconds, value.nanoseconds, 10**9)
    return None


def _of_instant(second: Any, nano: Any) -> int | None:
    """The time of these seconds, as a number or text that spells one, and nanoseconds beyond them."""
    second, nano = (number_of_text(part) if isinstance(part, str) else part for part in (second, nano))
    is_one = all(isinstance(part, (int, float)) and part % 1 == 0 for part in (second, nano))
    is_one = is_one and not {type(second), type(nano)} & {bool}
    return int(second) * 10**9 + int(nano) if is_one and abs(second) < FARTHEST and 0 <= nano < 10**9 else None


def length_of_text(text: str) -> int | None:
    """How many nanoseconds a length of time has, with units, by a clock, or as ISO 8601 has it; None for what is none.

    `indexes/kinds/kernels/lengths.py` does the same of whole columns.

    >>> length_of_text("1h30m"), length_of_text("00:00:01.5"), length_of_text("1.00:00:00"), length_of_text("PT1.5S")
    (5400000000000, 1500000000, 86400000000000, 1500000000)
    """
    found = re.fullmatch(_BY_CLOCK, text, re.ASCII) or re.fullmatch(_OF_ISO, text, re.ASCII)
    if found is None:
        return length_of_units(text)
    part = found.groupdict()
    seconds = sum(int(part.get(unit) or 0) * _LENGTHS[unit] for unit in "wdhms")
    length = seconds + int((part["fraction"] or "")[:9].ljust(9, "0"))
    return None if length > _MOST else -length if text.startswith("-") else length


def length_of_units(text: str) -> int | None:
    """The same of one with units alone, as people type them: `10:30:00` is a time of day there.

    >>> length_of_units("1h30m"), length_of_units("-1.5s"), length_of_units("12 ms"), length_of_units("12")
    (5400000000000, -1500000000, 12000000, None)
    """
    if re.fullmatch(f"-?(?:{_PART})+", text, re.ASCII) is None:
        return None
    parts = re.findall(_PART, text, re.ASCII)
    lengths = [
        round(float(number) * _LENGTHS[unit]) if "." in number else int(number) * _LENGTHS[unit]
        for number, unit in parts
    ]
    length = sum(lengths)
    return None if length > _MOST else -length if text.startswith("-") else length


def as_text(time: Nanoseconds) -> str:
    """The time as RFC 3339 has it, with as many digits of the second as it takes.

    >>> as_text(1_500_000_000), as_text(-1), as_text(0)
    ('1970-01-01T00:00:01.5Z', '1969-12-31T23:59:59.999999999Z', '1970-01-01T00:00:00Z')
    """
    if isinstance(time, float) and math.isinf(time):
        return "the end of time" if time > 0 else "the beginning of time"
    whole = round(time / 10**9) * 10**9 if isinstance(time, float) else time  # a float has no fractions of a second
    seconds, rest = divmod(whole, 10**9)
    days, second = divmod(seconds, 86_400)
    year, month, day = _date_of(days)
    fraction = f".{rest:09}".rstrip("0") if rest else ""
    clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    return f"{year:04}-{month:02}-{day:02}T{clock}{fraction}Z"


def days_before(year: int, month: int, day: int) -> int:
    """Days from 1970 to this date of the Gregorian calendar.

    >>> days_before(1970, 1, 2), days_before(2000, 3, 1)
    (1, 11017)
    """
    year -= month < 3  # years that begin in March have their leap day last
    months = (month + 9) % 12
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * months + 2) // 5 + day - 1 - 719_468


def _date_of(days: int) -> tuple[int, int, int]:
    """The date so many days after 1970."""
    year = (days + 719_468) * 400 // 146_097 + 1
    while days_before(year, 1, 1) > days:
        year -= 1
    month = next(month for month in range(12, 0, -1) if days_before(year, month, 1) <= days)
    return year, month, days - days_before(year, month, 1) + 1


def _days_in(year: int, month: int) -> int:
    return days_before(year + month // 12, month % 12 + 1, 1) - days_before(year, month, 1)


def _scaled(whole: int, nanoseconds: int, factor: int) -> Nanoseconds:
    """So many of a unit, and nanoseconds: an integer where it fits 64 bits, else the float of the unit's alone."""
    most = _MOST // factor
    if -most <= whole < most:
        return whole * factor + nanoseconds
    try:
        return float(whole) * factor
    except OverflowError:
        return math.inf if whole > 0 else -math.inf
