"""A group chat in a spool: who was away catches up, and a compaction lets go of what all have seen.

python examples/spool_watermark.py [FOLDER]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from jitdb.stores.spool import Spool

GROUP = b"hikers"
ADA, BOB, EVE = b"ada     ", b"bob     ", b"eve     "
SAID = [
    (ADA, "Saturday, the lake?"),
    (BOB, "I have a car, four seats"),
    (EVE, "rain until ten, they say"),
    (ADA, "then at eleven"),
    (BOB, "at the station"),
]


def show(title: str, spool: Spool, vector: dict[bytes, int]) -> None:
    """What somebody who has seen this much still lacks."""
    print(f"\n{title}")
    for each in spool.messages_after(GROUP, vector).messages:
        name, text = each.sender.decode().strip(), (each.message or b"").decode()
        print(f"  {name} {each.seq}  level {each.level}  {text}")


def main(folder: Path) -> None:
    with Spool(folder / "messages", create=True) as spool, spool.subscribe(GROUP) as news:
        seqs = dict.fromkeys((ADA, BOB, EVE), 0)
        for sender, text in SAID:  # a real one stores ciphertext, which looks like nothing
            seqs[sender] += 1
            spool.store(GROUP, sender, seqs[sender], 0, text.encode())
        seen = news.take() or {}
        print(f"five messages came, one word of it: {[(who.decode().strip(), seq) for who, seq in seen.items()]}")

        show("eve was away since ada's first; she gets:", spool, {ADA: 1, EVE: 1})

        # All have seen all of it. Ada's device sums it up, in a message of level 1, and sets the watermark.
        watermark = dict(seen)
        seqs[ADA] += 1
        spool.store(GROUP, ADA, seqs[ADA], 1, b"lake, Saturday at eleven from the station, Bob drives")
        spool.store(GROUP, EVE, 2, 0, b"I bring cake")  # while the compaction was on its way
        gone = spool.delete_before(GROUP, watermark, 1)
        print(f"\nthe compaction took the place of {gone} messages, and {spool.compact(GROUP)} bytes are free again")

        show("fay joins the group, has seen nothing, and needs no more than:", spool, {})


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
