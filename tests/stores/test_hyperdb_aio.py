"""The calls that are awaited: the same answers, loops, cancellation."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from jitdb.stores.hyperdb import AsyncHyperDB
from jitdb.stores.hyperdb.errors import HyperdbError


def test_calls_are_those_of_the_database(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncHyperDB(tmp_path / "a", create=True) as db:
            node = await db.put("life/cat", b"meow")
            assert await db.get("life/cat") == [node]
            assert await db.put("life/cat", b"other", if_not_exists=True) == node
            version = await db.version()
            await db.batch([("life/dog", b"woof"), ("x", b"y")])
            await db.delete("life/cat")
            assert [nodes[0].key for nodes in await db.list("life")] == ["life/dog"]
            assert [nodes async for nodes in db.iterator("life")] == await db.list("life")
            assert [node async for node in db.history()] == db.db.history()
            assert await db.heads() == db.db.heads()
            assert [len(nodes) for nodes in await db.key_history("life/cat")] == [1, 1]
            past = await db.checkout(version)
            assert await past.get("life/cat") == [node]
            assert {change.key for change in await db.diff(past)} == {"life/cat", "life/dog", "x"}
            assert await db.diff(db) == []
            await db.flush()
            async with AsyncHyperDB(tmp_path / "b", db.db.key) as copy:
                await db.authorize(copy.db.local.key)
                await db.replicate(copy)
                async with await db.serve() as server:
                    await copy.put("z", b"1")
                    await copy.connect("127.0.0.1", server.sockets[0].getsockname()[1])
                assert await copy.list() == await db.list()
                assert len(await db.get("z")) == 1
        await db.close()

    asyncio.run(main())


def test_watch_gives_what_is_written_until_it_is_closed(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncHyperDB(tmp_path, create=True) as db:
            found: list[str] = []
            async with db.watch("a") as nodes:
                await db.put("a/1")
                await db.put("b/1")
                await db.batch([("a/2", b""), ("a/3", b"")])
                async for node in nodes:
                    found.append(node.key)
                    if len(found) == 3:
                        break
            await db.put("a/4")
            assert [node.key async for node in nodes] == []
            waiting = db.watch()

            async def loop() -> list[str]:
                return [node.key async for node in waiting]

            task = asyncio.create_task(loop())
            await db.put("last")
        assert await asyncio.wait_for(task, 5) == ["last"]
        assert found == ["a/1", "a/2", "a/3"]

    asyncio.run(main())


def test_cancelled_calls_leave_a_database_that_works(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncHyperDB(tmp_path, create=True) as db:
            for number in range(20):
                task = asyncio.create_task(db.batch((f"k{number}/{each}", b"") for each in range(20)))
                await asyncio.sleep(number / 2000)
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            await db.put("end", b"1")
        async with AsyncHyperDB(tmp_path) as db:
            for number in range(20):
                assert len(await db.list(f"k{number}")) in (0, 20)
            assert await db.get("end")

    asyncio.run(main())


def test_errors_are_those_of_the_database(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(HyperdbError):
            await AsyncHyperDB(tmp_path).open()

    asyncio.run(main())


def test_what_is_not_opened_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        db = AsyncHyperDB(tmp_path / "db", create=True)
        for call in (db.get("a"), db.put("a", b"1"), db.flush()):
            with pytest.raises(HyperdbError, match="was not opened") as caught:
                await call
            assert "await open()" in str(caught.value.remedy)
        with pytest.raises(HyperdbError, match="was not opened"):
            db.watch("a")
        await db.close()
        assert not (tmp_path / "db").exists()
        await (await db.open()).put("a", b"1")
        await db.close()
        with pytest.raises(HyperdbError, match="closed"):
            db.watch("a")

    asyncio.run(main())
