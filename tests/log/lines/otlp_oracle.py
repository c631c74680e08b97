"""Batches with what is around their elements: a plain reader, and texts to read."""

from __future__ import annotations

import json
import random
import re
from typing import Any

PATHS = {
    "otlp": (
        [("resourceLogs", "resourceSpans", "resourceMetrics"), ("scopeLogs", "scopeSpans", "scopeMetrics"),
         ("logRecords", "spans", "metrics")],
        [(), ("resource",), ("scope",)],
    ),
    "cloudwatch": ([("logEvents",)], [("owner", "logGroup", "logStream")]),
}  # fmt: skip
HOLDERS = ("attributes", "filteredAttributes", "metadata")


def parsed(text: bytes) -> Any:
    """JSON, whose maps have their keys in the order of their last places. Raises ValueError for what no log holds."""

    def last(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            found.pop(key, None)
            found[key] = value
        return found

    value = json.loads(text, object_pairs_hook=last, parse_int=_integer)
    json.dumps(value, ensure_ascii=False).encode()
    return value


def _integer(text: str) -> int:
    if not -(2**63) <= int(text) < 2**64:
        raise ValueError(text)
    return int(text)


def records_in(line: bytes, name: str) -> list[dict[str, Any]] | None:
    """None: it is no JSON."""
    try:
        value = parsed(line)
    except ValueError:
        return None
    steps, around = PATHS[name]
    found: list[tuple[dict[str, Any], Any]] = [({}, value)]
    for keys, beside in zip(steps, around, strict=True):
        inner = []
        for context, each in found:
            there = [key for key in each if key in keys] if isinstance(each, dict) else []
            if there and isinstance(each[there[-1]], list):
                context = {**context, **{key: each[key] for key in beside if key in each}}
                inner += [(context, element) for element in each[there[-1]]]
        found = inner
    records = [(context, element) for context, element in found if isinstance(element, dict)]
    if name != "otlp":
        return [{**context, **element} for context, element in records]
    return [
        {**{key: plain(value) for key, value in context.items()}, **plain(element, is_record=True)}
        for context, element in records
    ]


def plain(value: Any, *, is_record: bool = False) -> Any:
    """With its attributes as maps, and the body of a record as a plain value."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for key, each in value.items():
        if key in HOLDERS and isinstance(each, list):
            found[key] = attributes(each, each)
        elif key == "body" and is_record:
            found[key] = unwrapped(each) if isinstance(each, dict) else plain(each)
        else:
            found[key] = plain(each)
    return found


def attributes(entries: list[Any], otherwise: Any) -> Any:
    """Pairs of key and value as a map."""
    found = {}
    for entry in entries:
        if not isinstance(entry, dict) or not {"key"} <= entry.keys() <= {"key", "value"}:
            return otherwise
        if not isinstance(entry["key"], str):
            return otherwise
        found[entry["key"]] = unwrapped(entry.get("value", {}))
    return found


def unwrapped(value: Any) -> Any:
    """An AnyValue as what it stands for; what is none, as it is."""
    if not isinstance(value, dict):
        return value
    if not value:
        return None
    if len(value) > 1:
        return value
    ((kind, inner),) = value.items()
    is_number = isinstance(inner, int | float) and not isinstance(inner, bool)
    if kind in ("stringValue", "bytesValue") and isinstance(inner, str):
        return inner
    if kind == "boolValue" and isinstance(inner, bool):
        return inner
    if kind == "doubleValue" and (is_number or isinstance(inner, str)):
        return inner
    if kind == "intValue" and is_number:
        return inner
    if kind == "intValue" and isinstance(inner, str) and re.fullmatch(r"-?(0|[1-9][0-9]{0,19})", inner, re.ASCII):
        return int(inner) if -(2**63) <= int(inner) < 2**64 else value
    if kind in ("arrayValue", "kvlistValue") and isinstance(inner, dict) and inner.keys() <= {"values"}:
        values = inner.get("values", [])
        if isinstance(values, list):
            return [unwrapped(each) for each in values] if kind == "arrayValue" else attributes(values, value)
    return value


# Texts


class Pairs(list[tuple[str, Any]]):
    """A map as it is written: keys in any order, some twice."""


class Raw(str):
    """JSON as it stands."""


SCALARS = ['"x"', '"200"', "200", "-1", "0", "1.5", "1e3", "true", "false", "null", '"NaN"', "-Infinity", '"-0"',
           "-0.0", '"9223372036854775807"', '"-9223372036854775808"', '"-9223372036854775809"',
           '"18446744073709551616"', '"007"', '"+1"', '"1.0"', '""',
           '"\\u0031\\u0032"', '"é€\\ud83d\\ude00 \\"]}"', "[1, {}]", "{}",
           "[]", '"12345678901234567890123"', '"1 "']  # fmt: skip
KINDS = ["stringValue", "boolValue", "intValue", "doubleValue", "bytesValue", "arrayValue", "kvlistValue", "fooValue",
         "string_value"]  # fmt: skip
GOOD = {"stringValue": '"x y"', "boolValue": "true", "intValue": '"42"', "doubleValue": "2.5", "bytesValue": '"aGk="'}


class Writer:
    """Random lines of a format."""

    def __init__(self, rng: random.Random, odd: float) -> None:
        self.rng, self.odd = rng, odd

    def is_odd(self) -> bool:
        return self.rng.random() < self.odd

    def text(self, value: Any) -> str:
        """The value as JSON, with blanks and escapes."""
        if isinstance(value, Raw):
            return value
        gap = self.rng.choice(["", " ", "\t "]) if self.is_odd() else ""
        if isinstance(value, Pairs):
            members = [f"{self.key(key)}{gap}:{gap}{self.text(each)}" for key, each in value]
            return "{" + gap + f"{gap},".join(members) + gap + "}"
        if isinstance(value, list):
            return "[" + gap + f",{gap}".join(map(self.text, value)) + gap + "]"
        return json.dumps(value)

    def key(self, key: str) -> str:
        if self.is_odd():
            at = self.rng.randrange(len(key))
            return f'"{key[:at]}\\u{ord(key[at]):04x}{key[at + 1 :]}"'
        return f'"{key}"'

    def pairs(self, members: list[tuple[str, Any]]) -> Pairs:
        """A map, mostly as it should be."""
        if self.is_odd():
            self.rng.shuffle(members)
        if members and self.is_odd():
            members.insert(self.rng.randrange(len(members)), self.rng.choice(members))
        if members and self.is_odd():
            del members[self.rng.randrange(len(members))]
        if self.is_odd():
            members.append(self.rng.choice([("x", Raw("[{}, []]")), ("resource", Raw("1")), ("scope", Raw("{}"))]))
        return Pairs(members)

    def value(self, depth: int = 0) -> Any:
        if self.is_odd():
            return Raw(self.rng.choice(SCALARS))
        kind = self.rng.choice(KINDS[: 7 if depth < 4 else 5])
        inner: Any = Raw(GOOD.get(kind, "{}"))
        if kind == "arrayValue":
            inner = self.pairs([("values", [self.value(depth + 1) for _ in range(self.rng.randrange(4))])])
        elif kind == "kvlistValue":
            inner = self.pairs([("values", self.attributes(depth + 1))])
        if self.is_odd():
            kind, inner = self.rng.choice(KINDS), Raw(self.rng.choice(SCALARS))
        members = [(kind, inner)]
        if self.is_odd():
            members.append((self.rng.choice([kind, *KINDS]), Raw(self.rng.choice(SCALARS))))
        return self.pairs(members)

    def attributes(self, depth: int = 0) -> Any:
        if self.is_odd():
            return Raw(self.rng.choice(SCALARS))
        names = ["http.status_code", "a", "b", "é", 'q\\"'[:1]]
        return [
            Raw("7") if self.odd and self.rng.random() < self.odd / 8 else
            self.pairs([("key", self.rng.choice(names)), ("value", self.value(depth))])
            for _ in range(self.rng.randrange(4))
        ]  # fmt: skip

    def record(self) -> Any:
        if self.is_odd() and self.is_odd():
            return Raw(self.rng.choice(SCALARS))
        n = self.rng.randrange(1000)
        members = [("timeUnixNano", str(1_795_000_000_000_000_000 + n)), ("n", n), ("severityText", "INFO"),
                   ("body", self.value()), ("attributes", self.attributes())]  # fmt: skip
        if self.rng.random() < 0.3:
            event = self.pairs([("name", "e"), ("attributes", self.attributes()), ("body", self.value())])
            members.append(("events", [event] * self.rng.randrange(3)))
        if self.rng.random() < 0.2:
            point = self.pairs([("attributes", self.attributes()), ("asInt", "1"),
                                ("exemplars", [self.pairs([("filteredAttributes", self.attributes())])])])  # fmt: skip
            members.append(("sum", self.pairs([("dataPoints", [point])])))
        return self.pairs(members)

    def otlp(self) -> str:
        what = self.rng.choice([("resourceLogs", "scopeLogs", "logRecords")] * 3 + [
            ("resourceSpans", "scopeSpans", "spans"), ("resourceMetrics", "scopeMetrics", "metrics")])  # fmt: skip

        def scope() -> Any:
            records = [self.record() for _ in range(self.rng.choice([0, 1, 2, 5]))]
            about = self.pairs([("name", "s"), ("version", "1"), ("attributes", self.attributes())])
            members: list[tuple[str, Any]] = [("scope", about), (what[2], records), ("schemaUrl", "u")]
            return self.pairs(members if self.rng.random() < 0.8 else members[::-1])

        def resource() -> Any:
            about = self.pairs([("attributes", self.attributes()), ("droppedAttributesCount", 0)])
            members: list[tuple[str, Any]] = [
                ("resource", about), (what[1], [scope() for _ in range(self.rng.choice([0, 1, 1, 2]))])]  # fmt: skip
            return self.pairs(members if self.rng.random() < 0.8 else members[::-1])

        return self.text(self.pairs([(what[0], [resource() for _ in range(self.rng.choice([0, 1, 1, 3]))])]))

    def cloudwatch(self) -> str:
        events = [
            self.pairs([("id", str(n)), ("timestamp", 1_795_000_000_000 + n), ("message", "m"), ("n", n)])
            for n in range(self.rng.choice([0, 1, 4]))
        ]
        members: list[tuple[str, Any]] = [
            ("messageType", "DATA_MESSAGE"), ("owner", "123"), ("logGroup", "g"), ("logStream", Raw(
                self.rng.choice(['"s"', "[1]", "7", "null"]))), ("subscriptionFilters", ["f"]), ("logEvents", events),
        ]  # fmt: skip
        if self.rng.random() < 0.5:
            self.rng.shuffle(members)
        return self.text(self.pairs(members))

    def line(self, name: str) -> bytes:
        """A line, some of which are no JSON."""
        line = self.otlp() if name == "otlp" else self.cloudwatch()
        data = line.encode()
        if self.is_odd():
            data = self.rng.choice([b"", b" ", b"7", b'"x"', b"[]", b"{}", b" " + data + b" \r", b"{" + data, b"text",
                                    data + b"{}", data + b"\x1e{}", b'{"a": 1}\x1e\x1e{"a": 2}', b"null"])  # fmt: skip
        if data and self.is_odd():
            at = self.rng.randrange(len(data))
            data = self.rng.choice([data[:at], data[:at] + data[at + 1 :], data[:at] + b"\x1e" + data[at:],
                                    data[:at] + b"\xff" + data[at:]])  # fmt: skip
        return data
