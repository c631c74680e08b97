"""bipf against the npm module of that name: the same bytes, the same values, the same positions."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jitdb.common.values import UNDEFINED
from jitdb.log.codecs.bipf import codec as bipf

DATA = Path(__file__).parents[1] / "data"

# Values travel as JSON; what JSON lacks is an array with its name first, so arrays get a name too.
JS = """
const bipf = require('bipf')
function build(x) {
  if (!Array.isArray(x)) return x
  const [name, part] = x
  if (name === 'undefined') return undefined
  if (name === '-0') return -0
  if (name === 'buffer') return Buffer.from(part, 'hex')
  if (name === 'array') return part.map(build)
  return Object.fromEntries(part.map(([key, item]) => [key, build(item)]))
}
function show(x) {
  if (x === undefined) return ['undefined']
  if (Buffer.isBuffer(x)) return ['buffer', x.toString('hex')]
  if (Array.isArray(x)) return ['array', x.map(show)]
  if (x && typeof x === 'object') return ['object', Object.entries(x).map(([key, item]) => [key, show(item)])]
  return x
}
const hex = (x) => Buffer.from(x, 'hex')
const input = JSON.parse(require('fs').readFileSync(0))
const output = (x) => process.stdout.write(JSON.stringify(x))
"""


def show(value: Any) -> Any:
    """A value as the JSON that `build` above understands."""
    if value is UNDEFINED:
        return ["undefined"]
    if isinstance(value, float) and value == 0 and str(value) == "-0.0":
        return ["-0"]
    if isinstance(value, bytes):
        return ["buffer", value.hex()]
    if isinstance(value, (list, tuple)):
        return ["array", [show(item) for item in value]]
    if isinstance(value, dict):
        return ["object", [[key, show(item)] for key, item in value.items()]]
    return value


def random_value(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.randrange(8 if depth > 3 else 13)
    if kind == 0:
        return chance.choice([None, True, False, UNDEFINED, "", b"", [], {}, 0, -0.0, 1.0])
    if kind <= 2:
        return random_text(chance)
    if kind == 3:
        return chance.randbytes(chance.choice([0, 1, 5, 15, 16, 40]))
    if kind == 4:
        return chance.choice([1, -1]) * chance.choice([0, 1, 255, 2**31 - 1, 2**31, 2**31 + 1, 2**53, 10**15])
    if kind == 5:
        return chance.randint(-(2**31), 2**31)
    if kind == 6:
        return chance.choice([0.5, -1.5e-7, 1e300, 5e-324, 1.7976931348623157e308, 4.0, 1e21, 123456.789])
    if kind == 7:
        return chance.uniform(-1e6, 1e6)
    if kind <= 9:
        return [random_value(chance, depth + 1) for _ in range(chance.randrange(6))]
    # JavaScript moves keys that look like integers to the front, and treats __proto__ apart: none of those.
    return {"k" + random_text(chance): random_value(chance, depth + 1) for _ in range(chance.randrange(7))} | (
        {"": random_value(chance, depth + 1)} if chance.random() < 0.3 else {}
    )


def random_text(chance: random.Random) -> str:
    letters = chance.choice(["ab", "aé", "λ漢🙂", 'a"\\\n\0'])
    return "".join(chance.choices(letters, k=chance.choice([0, 1, 2, 3, 7, 15, 16, 130, 300])))


@pytest.fixture(scope="module")
def values() -> list[Any]:
    chance = random.Random(20)
    return [random_value(chance) for _ in range(800)]


@pytest.fixture(scope="module")
def containers(values: list[Any]) -> list[bytes]:
    chosen = [value for value in values if isinstance(value, (list, dict)) and value]
    # The last value of each of these begins behind the first `length` bytes, where the npm module stops looking.
    chosen += [["a", None], ["x" * 200, None], {"x": "y" * 200, "": None}, {"x": {"y": "z" * 3000}, "": ""}]
    return [bipf.encode(value) for value in chosen]


def entries(record: bytes) -> list[list[int]]:
    """[key or index, position] of every value of a container, as our iterate visits them."""
    found: list[list[int]] = []
    bipf.iterate(record, 0, lambda _, position, key: found.append([key, position]))
    return found


def test_encode_gives_the_same_bytes(values: list[Any], run_node: Any) -> None:
    script = JS + "output(input.map(build).map((x) => bipf.allocAndEncode(x).toString('hex')))"
    theirs = json.loads(run_node(script, json.dumps([show(value) for value in values])))
    assert len(theirs) == len(values)
    for value, encoded in zip(values, theirs, strict=True):
        assert bipf.encode(value).hex() == encoded


def test_decode_gives_the_same_values(values: list[Any], run_node: Any) -> None:
    records = [bipf.encode(value) for value in values]
    script = JS + "output(input.map((x) => show(bipf.decode(hex(x), 0))))"
    theirs = json.loads(run_node(script, json.dumps([record.hex() for record in records])))
    for record, value in zip(records, theirs, strict=True):
        assert show(bipf.decode(record)) == value


def test_lengths_and_types(values: list[Any], run_node: Any) -> None:
    script = JS + "output(input.map(build).map((x) => [bipf.encodingLength(x), bipf.getValueType(x)]))"
    theirs = json.loads(run_node(script, json.dumps([show(value) for value in values])))
    assert [[bipf.encoding_length(value), bipf.get_value_type(value)] for value in values] == theirs


def test_real_records(run_node: Any) -> None:
    records = list(records_of(DATA / "ssb-5k.bipf"))[::5]
    script = JS + "output(input.map((x) => bipf.decode(hex(x), 0)))"
    theirs = json.loads(run_node(script, json.dumps([record.hex() for record in records])))
    for record, value in zip(records, theirs, strict=True):
        assert bipf.decode(record) == value
        assert json.dumps(bipf.decode(record)) == json.dumps(value)  # integers are integers, keys in the same order


def test_numbers_that_only_a_foreign_writer_makes(run_node: Any) -> None:
    records = ["43" + "0000000000000080", "43" + "000000000000f03f", "888000" + "61", "a28000" + "01000000"]
    script = JS + "output(input.map((x) => show(bipf.decode(hex(x), 0))))"
    theirs = json.loads(run_node(script, json.dumps(records)))
    assert [bipf.decode(bytes.fromhex(record)) for record in records] == theirs == [0, 1, "a", 1]


def test_iterate_visits_what_theirs_visits(containers: list[bytes], run_node: Any) -> None:
    script = (
        JS
        + """
    output(input.map((x) => {
      const found = []
      bipf.iterate(hex(x), 0, (_, position, key) => { found.push([key, position]) })
      return found
    }))"""
    )
    theirs = json.loads(run_node(script, json.dumps([record.hex() for record in containers])))
    missed = 0
    for record, found in zip(containers, theirs, strict=True):
        is_object = bipf.get_encoded_type(record, 0) == bipf.OBJECT
        length = bipf.get_encoded_length(record, 0)
        ours = entries(record)
        # Theirs stops at the first entry that begins `length` bytes or more behind the container's tag.
        assert found == [entry for entry in ours if entry[0 if is_object else 1] < length]
        missed += len(ours) - len(found)
    assert missed > 0


def test_seek_key_finds_what_theirs_finds(containers: list[bytes], run_node: Any) -> None:
    questions = []
    for record in containers:
        if bipf.get_encoded_type(record, 0) == bipf.OBJECT:
            keys = list(bipf.decode(record))
            questions += [[record.hex(), key] for key in [*keys, "nowhere"]]
    script = JS + "output(input.map(([x, key]) => bipf.seekKey(hex(x), 0, key)))"
    theirs = json.loads(run_node(script, json.dumps(questions)))
    missed = 0
    for (encoded, key), position in zip(questions, theirs, strict=True):
        record = bytes.fromhex(encoded)
        ours = bipf.seek_key(record, 0, key)
        key_position = ours - bipf.encoding_length(key)
        if ours != -1 and key_position >= bipf.get_encoded_length(record, 0):
            assert position == -1
            missed += 1
        else:
            assert ours == position
    assert missed > 0


def test_paths_slices_and_plucks(run_node: Any) -> None:
    records = list(records_of(DATA / "ssb-5k.bipf"))[::50]
    path = ["value", "content", "type"]
    script = (
        JS
        + """
    const seek = bipf.createSeekPath(input.path)
    const path = bipf.allocAndEncode(input.path)
    output(input.records.map(hex).map((x) => {
      const at = seek(x, 0)
      if (bipf.seekPath(x, 0, path) !== at) throw new Error('their two ways differ')
      if (at === -1) return [-1]
      const [type, length] = [bipf.getEncodedType(x, at), bipf.getEncodedLength(x, at)]
      return [at, bipf.slice(x, at).toString('hex'), bipf.pluck(x, at).toString('hex'), type, length]
    }))"""
    )
    question = {"path": path, "records": [record.hex() for record in records]}
    theirs = json.loads(run_node(script, json.dumps(question)))
    seek = bipf.create_seek_path(path)
    for record, answer in zip(records, theirs, strict=True):
        at = seek(record, 0)
        assert bipf.seek_path(record, 0, path) == at
        ours: list[Any] = [at]
        if at != -1:
            ours += [bipf.slice(record, at).hex(), bipf.pluck(record, at).hex()]
            ours += [bipf.get_encoded_type(record, at), bipf.get_encoded_length(record, at)]
        assert ours == answer


def test_compare_has_their_sign(values: list[Any], run_node: Any) -> None:
    chance = random.Random(21)
    records = [bipf.encode(value) for value in values]
    pairs = [(chance.choice(records), chance.choice(records)) for _ in range(4000)]
    script = JS + "output(input.map(([x, y]) => Math.sign(bipf.compare(hex(x), 0, hex(y), 0))))"
    theirs = json.loads(run_node(script, json.dumps([[x.hex(), y.hex()] for x, y in pairs])))
    assert [bipf.compare(x, 0, y, 0) for x, y in pairs] == theirs


def test_create_compare_at_has_their_sign(run_node: Any) -> None:
    chance = random.Random(22)
    records = list(records_of(DATA / "ssb-5k.bipf"))
    pairs = [(chance.choice(records), chance.choice(records)) for _ in range(300)]
    paths = [["value", "content", "type"], ["value", "content", "channel"], ["value", "sequence"]]
    script = (
        JS
        + """
    const compare = bipf.createCompareAt(input.paths)
    output(input.pairs.map(([x, y]) => Math.sign(compare(hex(x), hex(y)))))"""
    )
    question = {"paths": paths, "pairs": [[x.hex(), y.hex()] for x, y in pairs]}
    compare = bipf.create_compare_at(paths)
    assert [compare(x, y) for x, y in pairs] == json.loads(run_node(script, json.dumps(question)))


def test_compare_string_has_their_sign_unless_one_extends_the_other(run_node: Any) -> None:
    chance = random.Random(23)
    pairs = [(random_text(chance), random_text(chance)) for _ in range(500)] + [("a", "ab"), ("ab", "a"), ("a", "a")]
    script = JS + "output(input.map(([x, y]) => Math.sign(bipf.compareString(bipf.allocAndEncode(x), 0, y))))"
    theirs = json.loads(run_node(script, json.dumps(pairs)))
    for (first, second), order in zip(pairs, theirs, strict=True):
        one_extends = first != second and (first.startswith(second) or second.startswith(first))
        assert bipf.compare_string(bipf.encode(first), 0, second) == (-order if one_extends else order)


def test_encoded_values_are_copied_in_as_theirs_are(run_node: Any) -> None:
    script = (
        JS
        + """
    const inner = bipf.allocAndEncodeIdempotent({street: 'x'})
    output(bipf.allocAndEncode({address: inner, plain: bipf.allocAndEncode(1)}).toString('hex'))"""
    )
    inner = bipf.encode_idempotent({"street": "x"})
    ours = bipf.encode({"address": inner, "plain": bipf.encode(1)})
    assert ours.hex() == json.loads(run_node(script, "null"))


def records_of(path: Path) -> Iterator[bytes]:
    data = path.read_bytes()
    for block in range(0, len(data), 65536):
        offset = block
        while offset + 2 <= block + 65536 and (length := int.from_bytes(data[offset : offset + 2], "little")):
            yield data[offset + 2 : offset + 2 + length]
            offset += 2 + length
