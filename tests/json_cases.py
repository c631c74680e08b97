"""Lines of JSON to try a reader with: random values written in all ways that JSON has, and what is nearly JSON."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from random import Random
from typing import Any

from jitdb.cli.input.input_batches import RowOptions
from jitdb.cli.input.json_input import LineReader
from jitdb.errors import EncodeError
from jitdb.log.codecs import get_codec
from jitdb.log.codecs.fields.constants import SLACK
from jitdb.log.codecs.json.row_kernels import LineFramer

KEYS = ["a", "b", "type", "é", "", "a" * 31, "key " * 9, "x" * 60, 'quote"', "back\\slash", "\U0001f600", "$bytes"]
TEXTS = ["", "x", "post", "é", "日本語のテキスト", "\U0001f600", "\x7f", "a\nb", 'say "x"', "\\", "\u2028", "\x00", "/"]
NUMBERS = [
    "0", "-0", "-0.0", "0.0", "0e0", "0E+5", "-0e-999", "1", "-1", "127", "128", "-32", "-33", "255", "256", "65535",
    "65536", "4294967295", "4294967296", "9223372036854775807", "9223372036854775808", "18446744073709551615",
    "18446744073709551616", "-9223372036854775808", "-9223372036854775809", "2147483647", "2147483648", "-2147483648",
    "-2147483647", "9007199254740992", "9007199254740993", "-9007199254740993", "9007199254740993.0", "1e22", "1e23",
    "1.7976931348623157e308", "1.7976931348623159e308", "1e400", "-1e400", "5e-324", "2.2250738585072014e-308",
    "2.225073858507201e-308", "0." + "0" * 40 + "123", "0.1", "1.0", "-1.5", "2147483647.0", "2147483648.0",
    "1" * 19, "1" * 20, "1" * 19 + ".5", "1." + "1" * 18, "1." + "1" * 19, "123456789012345678e-5", "1e0001", "1e00001",
    "NaN", "Infinity", "-Infinity", "1E5", "1e+5", "1e-5", "100000000", "12345678", "123456789", "1234567.12345678",
    "5629499534213120625e-4", "5629499534213123125e-4", "45035996273704975e-1", "7186405409172268087e19",
    "-2147483648.0", "1e-343", "1e-400", "9." + "9" * 19,
]  # fmt: skip
NO_NUMBERS = [
    "01", "-", "-01", "1.", ".5", "+1", "1e", "1e+", "1.e5", "0x1", "-NaN", "NaNa", "nan", "Infinit", "1_0", "--1",
    "1..2", "1e5.5", "00", "-a", "1a", "\u0661",
]  # fmt: skip
NOT_JSON = [
    b"", b"{", b"}", b"[", b"]", b"[1,]", b'{"a":1,}', b'{"a"}', b"{,}", b"[,]", b"{1:2}", b"{'a':1}",
    b'{"a":1 "b":2}', b"[1 2]", b'"a', b'"\\x"', b'"\\u12"', b'"\\u12G4"', b"nul", b"nulll", b"true1", b"tru",
    b"falsee", b"null null", b'{"a":1}}', b"[1]]", b'{"a":}', b'{"a"::1}', b"{]", b"[}", b'"\x01"', b'"\t"',
    b'"\xff"', b'"\xc0\xaf"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xe2\x82"', b'"\xf0\x9f\x98"',
    b'\xef\xbb\xbf{"a":1}', b"\x0b1", b"\x00", b"[1]\x00", b" ", b"\t\r", b'{"a":1}\x0c', b"//", b'{"a":1/**/}',
    b'"\\ud83d"', b'"\\ud83d\\u0041"', b'"\\ude00"', b'"\\udc80"', b'"\\ud83dx"', b'"a\\', b'"\\', b'{"a\\u0022":1}',
    b'{"$bytes":"eHk="}', b'{"$bytes":5}', b'{"$number":"NaN"}', b'{"\\u0024bytes":"eHk="}', b'{"a":1,"a":2}',
    b'{"a":{"b":1},"b":2,"a":3}', b'{"a":1,"\\u0061":2}', b'[{"a":1},{"a":2}]', b"0", b'""', b"[]", b"{}",
    b'"\xe0\x80\x80"', b'"\xf0\x80\x80\x80"', b'"\xf0\x9f\x98a"', b'"\\udc00\\udc00"', b'"\\ud83d\\ue000"',
    b'{"a":{"a":1},"a":2}',
]  # fmt: skip


def number(random: Random) -> str:
    """A number as JSON writes it."""
    kind = random.randrange(8)
    if kind == 0:
        return random.choice(NUMBERS)
    if kind == 1:
        return str(random.randrange(-(2 ** random.randrange(1, 70)), 2 ** random.randrange(1, 70)))
    if kind == 2:
        value = struct.unpack("<d", random.randbytes(8))[0]
        return repr(value) if math.isfinite(value) else "0.5"
    if kind == 3:
        return repr(random.uniform(-1000, 1000))
    if kind == 4:
        return str(round(random.uniform(-1000, 1000), random.randrange(0, 8)))
    if kind == 5:  # any digits
        whole, fraction = ("".join(random.choices("0123456789", k=random.randrange(1, 11))) for _ in range(2))
        small = random.randrange(40)
        exponent = random.choice(["", f"e{random.randrange(-345, 312)}", f"E+{small}", f"e-{small}"])
        return random.choice(["", "-"]) + str(int(whole)) + random.choice(["", f".{fraction}"]) + exponent
    if kind == 6:  # halfway between two doubles, or next to it
        whole = (random.getrandbits(53) | 1 << 53) * 2 + 1 + random.choice([0, 0, 0, -1, 1])
        return random.choice(["", "-"]) + str(whole << random.randrange(0, 5)) + random.choice([".0", "e0", "0e-1"])
    return str(random.randrange(-40, 300))


def text(random: Random) -> str:
    """A string as JSON writes it."""
    value = random.choice([
        random.choice(TEXTS),
        "".join(random.choices("abc 0123456789-_:/", k=random.choice([3, 7, 8, 15, 16, 31, 32, 33, 255, 256, 300]))),
        "".join(random.choices("aé日\U0001f600\\\"\n\x1f", k=random.randrange(1, 50))),
    ])  # fmt: skip
    return json.dumps(value, ensure_ascii=random.random() < 0.5).replace("/", random.choice(["/", "\\/"]))


def value(random: Random, depth: int = 0) -> str:
    """Any value, with blanks anywhere."""
    blank = random.choice(["", "", "", " ", "  ", "\t", "\r"])
    kind = random.randrange(10 if depth < 5 else 7)
    if kind < 3:
        return number(random)
    if kind < 6:
        return text(random)
    if kind == 6:
        return random.choice(["null", "true", "false"])
    size = random.choice([0, 1, 2, 3, 5, 15, 16, 17]) if depth < 2 else random.randrange(4)
    items = [blank + value(random, depth + 1) + random.choice(["", blank]) for _ in range(size)]
    if kind == 7:
        return "[" + ",".join(items or [blank]) + "]"
    names = random.sample(KEYS, min(len(KEYS), size)) + [f"k{number}" for number in range(size - len(KEYS))]
    if random.random() < 0.03 and names:
        names[-1] = names[0]
    pairs = [f"{blank}{json.dumps(name)}{blank}:{item}" for name, item in zip(names, items, strict=True)]
    return "{" + ",".join(pairs or [blank]) + "}"


def mutated(random: Random, line: bytes) -> bytes:
    """The line with something done to it."""
    data = bytearray(line)
    for _ in range(random.randrange(1, 3)):
        at = random.randrange(len(data) + 1)
        match random.randrange(5):
            case 0:
                del data[at:]
            case 1:
                data[at:at] = bytes([random.choice(b'"\\{}[],: 0123456789eE.-+tfnu\x00\x1f\x7f\x80\xc2\xe2\xf0\xff')])
            case 2:
                del data[at : at + random.randrange(1, 4)]
            case 3:
                data[at : at + 1] = bytes([random.randrange(256)])
            case 4:
                data[at:at] = data[at : at + random.randrange(1, 20)]
    return bytes(data).replace(b"\n", b" ")


def lines(random: Random, count: int) -> list[bytes]:
    """Lines of all sorts: of one program, of many, and such as are broken."""
    shape = [random.choice(KEYS[:8]) + str(number) for number in range(random.randrange(1, 25))]
    found = []
    while len(found) < count:
        kind = random.randrange(10)
        if kind < 4:  # as one program writes them, now and then without a key
            names = [name for name in shape if random.random() < 0.9]
            found.append("{" + ", ".join(f"{json.dumps(name)}: {value(random, 4)}" for name in names) + "}")
        elif kind < 8:
            found.append(random.choice(["", " ", "\t"]) + value(random) + random.choice(["", " ", "\r"]))
        else:
            found.append("[" + random.choice(NO_NUMBERS) + "]")
    encoded = [line.encode("utf-8", "surrogatepass") for line in found]
    for at in range(count):
        if random.random() < 0.2:
            encoded[at] = mutated(random, encoded[at])
        elif random.random() < 0.05:
            encoded[at] = random.choice(NOT_JSON)
    return encoded


LONG = ["departure", "k" * 11, "k" * 12, "k" * 13, "a key of forty bytes, which are three words", "x" * 250, "x" * 300]


def of_programs(random: Random, count: int) -> list[bytes]:
    """Lines of some programs, each with its own keys, which it leaves out, repeats and moves more or less often."""
    programs = [_program(random) for _ in range(random.choice([1, 1, 2, 12, 30]))]
    away, again, broken = (random.choice([0.0, 0.0, 0.02, often]) for often in (0.5, 0.2, 0.2))
    found = []
    for number in range(count):
        program = programs[random.choice([number, random.randrange(99)]) % len(programs)]
        line = program(random, away, again).encode()
        found.append(mutated(random, line) if random.random() < broken else line)
    return found


def _program(random: Random) -> Callable[[Random, float, float], str]:
    """Writes a line, given how often a key is left out, and how often it is there again."""
    comma, colon = random.choice([(", ", ": "), (",", ":"), (" ,", "  :"), (",\t", ": ")])
    names = random.sample(KEYS + LONG, random.randrange(0, 8))
    inner = {name: _program(random) for name in names if random.random() < 0.3 and len(names) < 7}
    plain = [
        lambda random: str(random.randrange(10 ** random.randrange(1, 18))),
        lambda random: f'"{"x" * random.randrange(40)}"',
        lambda random: random.choice(["null", "true", "[]", "{}"]),
        lambda random: value(random, 4),
    ]
    usual = {name: random.choice(plain) for name in names}

    def write(random: Random, away: float, again: float) -> str:
        keys = [name for name in names if random.random() >= away]
        keys += [name for name in names if random.random() < again]
        if random.random() < away / 4:
            random.shuffle(keys)
        pairs = []
        for name in keys:
            is_inner = name in inner and random.random() < 0.95
            held = inner[name](random, away, again) if is_inner else usual[name](random)
            pairs.append(json.dumps(name) + colon + held)
        return "{" + comma.join(pairs) + "}"

    return write


class Into:
    """What an import goes to, as far as the readers of its sources ask."""

    undisturbed = nullcontext

    def __init__(self, codec: str, *, by_kernel: bool = False) -> None:
        self.codec = get_codec(codec)
        self._by_kernel = by_kernel

    def is_framed(self, size: int) -> bool:
        return self._by_kernel and self.codec.is_json

    def holds_bytes(self) -> None:
        self.codec = get_codec("msgpack")


def record_of(line: bytes, codec: str, *, tagged: bool = False) -> bytes | None:
    """The record that import makes of a line; None where it makes none."""
    into: Any = Into(codec)
    found = LineReader(RowOptions(tagged=tagged), into).read([line], 1)
    if not found.values:
        return None
    try:
        return into.codec.encode(found.values[0])
    except EncodeError:
        return None


def framed(some: Sequence[bytes], *, fill: int = 0xA5) -> list[tuple[int, bytes]]:
    """The records that the kernel makes of lines, by their numbers. Behind the lines lie bytes of `fill`."""
    whole = b"".join(line + b"\n" for line in some)
    buffer = bytearray(whole + bytes([fill]) * SLACK)
    framer = LineFramer()
    found: list[tuple[int, bytes]] = []
    position = first = 0
    while position < len(whole):
        done = framer.frame(buffer, position, len(whole))
        at = 0
        for line, length in zip(done.lines.tolist(), done.lengths.tolist(), strict=True):
            found.append((first + line, done.data[at : at + length].tobytes()))
            at += length
        first += done.done
        position = done.position
    assert first == len(some)
    return found
