"""Ask a log that JavaScript wrote: python examples/ask_an_ssb_log.py [LOG]

Without a LOG it asks a copy of the one in tests/data.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import jitdb
from jitdb.operators import (
    and_,
    count,
    descending,
    equal,
    field,
    from_db,
    includes,
    not_,
    paginate,
    query,
    to_iter,
    to_result,
    where,
)  # fmt: skip

FIXTURE = Path(__file__).parent.parent / "tests" / "data" / "ssb-5k.bipf"


def main(path: Path) -> None:
    with jitdb.open(path, read_only=True) as db:
        posts = query(from_db(db), where(equal("value.content.type", "post")))
        print(f"{query(posts, count(), to_result()):,} posts")

        page = query(posts, descending(), paginate(3), to_result())
        for message in page:
            print("  newest:", message["value"]["content"]["text"][:60].replace("\n", " "))

        # A query is a value: it can be piped further.
        author = page.data[0]["value"]["author"]
        others = query(posts, where(not_(equal("value.author", author))), count(), to_result())
        print(f"{others:,} of them by others than {author[:10]}…")

        newest = page.data[0]  # a message without a root begins a thread
        thread = and_(field("value.content.root") == newest["value"]["content"].get("root", newest["key"]))
        print(f"{query(from_db(db), where(thread), count(), to_result())} in the thread of the newest")

        mentions = query(from_db(db), where(includes("value.content.mentions", author, pluck="link")), to_iter())
        print(f"{sum(1 for _ in mentions)} messages mention them")

        print("answered from:", *(row["index"] for row in posts.explain()["indexes"]), sep="\n  ")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(shutil.copy(FIXTURE, folder)))
