"""A log of your own events: write, ask, delete, ask again, and follow the answer with `async for`."""

import asyncio
import tempfile
from pathlib import Path

from jitdb import JITDB, Log
from jitdb.operators import count, field, from_db, gte, paginate, query, to_async_iter, to_result, where

EVENTS = [
    {"type": "login", "user": {"name": "ada", "age": 36}, "timestamp": 1_700_000_000_000},
    {"type": "login", "user": {"name": "grace", "age": 85}, "timestamp": 1_700_000_060_000},
    {"type": "order", "user": {"name": "ada", "age": 36}, "total": 99.5, "timestamp": 1_700_000_120_000},
    {"type": "logout", "user": {"name": "ada", "age": 36}, "timestamp": 1_700_000_180_000},
]


async def follow(db: JITDB) -> None:
    async for page in query(from_db(db), where(gte(1_700_000_060_000, "timestamp")), paginate(2), to_async_iter()):
        print("  a page:", [event["type"] for event in page])


def main(folder: Path) -> None:
    with Log(folder / "events.log") as log:
        offsets = log.append_many(EVENTS)
        log.flush()

        db = JITDB(log)
        logins = query(from_db(db), where(field("type") == "login"), count())
        print(query(logins, to_result()), "logins")

        adults = (field("user.age") >= 18) & (field("type") != "logout")
        print(query(from_db(db), where(adults), count(), to_result()), "events of adults that are no logout")

        log.delete(offsets[0])
        log.flush()
        print(query(logins, to_result()), "login after one was deleted")
        asyncio.run(follow(db))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
