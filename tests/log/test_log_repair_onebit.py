"""Single flipped bits are found by their CRC alone, wherever they are."""

from __future__ import annotations

import random
import zlib
from pathlib import Path

import pytest

from jitdb.log import Log
from jitdb.log.io import osfile
from jitdb.log.sidecar import checksums, deletions, journal, meta
from jitdb.log.sidecar.deletions import Deletion
from jitdb.log.sidecar.onebit import Flip, differs_by_one_bit, flip_back, restored, restored_with_crc


@pytest.mark.parametrize("size", [1, 2, 7, 64, 1000])
def test_every_bit_is_found(size: int) -> None:
    data = random.Random(size).randbytes(size)
    for bit in range(0, 8 * size, 1 if size <= 64 else 37):
        assert restored(flip_back(data, Flip(bit // 8, bit % 8)), zlib.crc32(data)) == data


def test_two_bits_are_not_taken_for_one() -> None:
    draw = random.Random(5)
    data = draw.randbytes(300)
    for _ in range(300):
        first, second = draw.sample(range(8 * len(data)), 2)
        wrong = flip_back(flip_back(data, Flip(first // 8, first % 8)), Flip(second // 8, second % 8))
        assert restored(wrong, zlib.crc32(data)) is None


def test_a_bit_of_the_crc_itself() -> None:
    whole = b"abc" + zlib.crc32(b"abc").to_bytes(4, "little")
    for bit in range(8 * len(whole)):
        assert restored_with_crc(flip_back(whole, Flip(bit // 8, bit % 8))) == whole
    assert restored_with_crc(b"axx" + whole[3:]) is None
    assert differs_by_one_bit(b"abc", b"abb")
    assert not differs_by_one_bit(b"abc", b"abc")
    assert not differs_by_one_bit(b"abc", b"ab")


ENTRY = journal.Entry(10, 522, 99, b"\1\2\3\4\5\6\7\x08", 0xAABBCCDD, 8, 0x11223344, 1, 2, 3, journal.SYNCED)


def test_every_bit_of_a_journal_entry() -> None:
    data = journal.encode(ENTRY)
    following = journal.encode(ENTRY._replace(end=600))
    for bit in range(8 * len(data)):
        wrong = flip_back(data, Flip(bit // 8, bit % 8))
        assert journal.decode(wrong) is None
        assert journal.decode_all(wrong + following) == [ENTRY, ENTRY._replace(end=600)]


def test_a_journal_entry_that_is_gone_hides_no_later_one() -> None:
    data = journal.encode(ENTRY)
    for lost in (bytes(64), b"\xff" * 64, random.Random(1).randbytes(64)):
        assert journal.decode_all(data + lost + data) == [ENTRY, None, ENTRY]
        assert journal.decode_all(data + lost) == [ENTRY]
        assert journal.decode_all(data + lost + lost[:20]) == [ENTRY]


def test_every_bit_of_a_checksum() -> None:
    data = checksums.encode_entry(5, 0xDEADBEEF, 2)
    for bit in range(64):
        wrong = flip_back(data, Flip(bit // 8, bit % 8))
        assert checksums.decode_entry(wrong, 5, 2) is None
        assert checksums.restore_entry(wrong, 5, 2) == checksums.Entry(0xDEADBEEF)
    for of_another in (checksums.encode_entry(4, 0xDEADBEEF, 2), checksums.encode_entry(5, 0xDEADBEEF, 3)):
        assert checksums.restore_entry(of_another, 5, 2) is None
    assert checksums.decode_entry(bytes(8), 5, 2) is None


def test_every_bit_of_a_deletion() -> None:
    data = deletions.encode_entry(Deletion(1 << 40, 77))
    for bit in range(8 * len(data)):
        wrong = flip_back(data, Flip(bit // 8, bit % 8))
        assert deletions.decode_all(data + wrong + deletions.MARK)[1] == Deletion(1 << 40, 77)
    assert deletions.decode_all(data + bytes(16) + data) == [Deletion(1 << 40, 77), None, Deletion(1 << 40, 77)]
    assert deletions.decode_all(data + bytes(16)) == [Deletion(1 << 40, 77)]


def test_heads_of_other_generations_differ_by_more_than_a_bit() -> None:
    """Else one of them would be taken for a damaged one."""
    heads = [checksums.encode_head(generation, bytes(8)) for generation in range(1, 300)]
    assert not any(differs_by_one_bit(one, other) for one in heads for other in heads)
    assert len(meta.encode(meta.Meta(65536, "bipf", bytes(16), 1))) == meta.SIZE


def test_two_bits_that_look_like_one_are_not_called_one(tmp_path: Path) -> None:
    """Raw records, of which nothing but the CRC tells: it is said how likely that is, and the block is kept."""
    path, size = tmp_path / "a.log", 1 << 16
    with Log(path, codec="raw", block_size=size) as log:
        log.append_many([b"x" * 998] * 70)
    data = path.read_bytes()
    of_bit: dict[int, int] = {}  # the change that a bit makes to the CRC -> the bit
    byte = [zlib.crc32(bytes(1)) ^ zlib.crc32(bytes([1 << bit])) for bit in range(8)]
    for place in range(size - 1, -1, -1):
        of_bit |= {change: 8 * place + bit for bit, change in enumerate(byte)}
        byte = [change >> 8 ^ zlib.crc32(bytes([change & 255])) ^ zlib.crc32(bytes(1)) for change in byte]
    changes = [change for change, bit in of_bit.items() if bit // 8 % 1000 >= 2 and bit // 8 < 65_000]
    draw = random.Random(3)
    while True:
        first, second = draw.sample(changes, 2)
        third = of_bit.get(first ^ second)
        if third is not None and third // 8 % 1000 >= 2 and third // 8 < 65_000:
            break
    wrong = data
    for change in (first, second):
        wrong = flip_back(wrong, Flip(of_bit[change] // 8, of_bit[change] % 8))
    path.write_bytes(wrong)
    with Log(path) as log:
        (finding,) = log.verify().findings
        (action,) = log.repair().actions
    for said in (finding.remedy, action.message):
        assert "it fits its CRC then, which other damage does by chance in 1 of 8,192" in said
        assert "the one flipped bit" not in said
        assert "what was written" not in said
    assert (tmp_path / action.copy).read_bytes() == wrong[:size]
    assert path.read_bytes()[:size] != data[:size]


def test_entries_are_read_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deletions"
    entries = [deletions.encode_entry(Deletion(number, 7)) for number in range(7)]
    damaged, zeros = b"\xff" * 16, bytes(16)
    for found in (
        entries,
        [*entries[:3], zeros, zeros, damaged, entries[3], zeros],
        [damaged] * 5,
        [entries[0], b"abc"],
    ):
        path.write_bytes(deletions.encode_head(1) + b"".join(found))
        seen = []
        for together in (1, 2, 3, 100):
            monkeypatch.setattr(deletions, "_ZEROS", bytes(16 * together))
            reader = deletions.DeletionReader(osfile.fs, path, 1)
            reader.poll()
            offsets = reader.between(0, reader.position).tolist()
            seen.append(
                (reader.position, reader.known.crc, offsets, list(reader.unapplied), reader.extends(reader.known))
            )
            reader.close()
        assert seen == [seen[-1]] * 4
        whole = deletions.decode_all(b"".join(found))
        assert (seen[0][0], seen[0][3]) == (len(whole), [entry for entry in whole if entry is not None])
