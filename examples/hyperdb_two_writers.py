"""Two writers of one HyperDB: what each writes alone, a conflict when they meet, and how a later put settles it.

    python examples/hyperdb_two_writers.py [FOLDER]

Needs `pip install 'jitdb[stores]'`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from jitdb.operators import field
from jitdb.stores.hyperdb import HyperDB


def show(title: str, *databases: HyperDB) -> None:
    """What each writer sees."""
    print(f"\n{title}")
    for name, db in zip(("ada", "bob"), databases, strict=False):
        rows = [
            f"{nodes[0].key} = {' or '.join((node.value or b'').decode() for node in nodes)}" for nodes in db.list()
        ]
        print(f"  {name} sees  {';  '.join(sorted(rows))}")


def main(folder: Path) -> None:
    with HyperDB(folder / "ada", create=True) as ada, HyperDB(folder / "bob", ada.key) as bob:
        ada.put("recipe/bread", b"flour, water")
        print(f"ada began the database {ada.key.hex()[:16]}…, bob has a copy and a feed of his own")
        ada.authorize(bob.local.key)
        ada.replicate(bob)
        show("ada authorized bob, and they met once:", ada, bob)

        # Each writes alone, on a train without a network.
        ada.put("recipe/bread", b"flour, water, salt")
        bob.put("recipe/bread", b"rye, water, yeast")
        bob.put("recipe/soup", b"leek, potato")
        show("each wrote alone:", ada, bob)

        version = ada.version
        ada.replicate(bob)
        show("they met again, and neither of the two breads knew of the other:", ada, bob)
        for node in ada.get("recipe/bread"):
            who = "ada" if ada.feeds[node.feed] is ada.local else "bob"
            print(f"  {who} wrote {node.value!r}, knowing {node.clock} records of each feed")

        # Whoever writes next knows both, so it comes after both.
        bob.put("recipe/bread", b"flour, rye, water, salt, yeast")
        ada.replicate(bob)
        show("bob merged them:", ada, bob)

        before = [node.value for node in ada.checkout(version).get("recipe/bread")]
        print(f"\nbefore they met again, ada's bread was {before}")
        changed = [change.key for change in ada.diff(ada.checkout(version))]
        print(f"what changed since: {', '.join(sorted(changed))}")
        print("all of it, in an order that each writer would agree to:")
        for node in ada.history():
            print(f"  feed {node.feed} seq {node.seq}  {node.key or '(bob is authorized)'}")

        # Each feed is a log: any question of jitdb can be asked of it.
        bob.flush()
        breads = bob.local.index.count(field("path")["1"] == "bread")
        print(f"\nbob wrote {breads} breads, says the index of his log")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
