"""A cable store in an async program, and its page and example."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest
from doc_blocks import ROOT, Page

from jitdb.stores.cable import Cable
from jitdb.stores.cable.aio import AsyncCable
from jitdb.stores.cable.errors import CableError, InvalidPost
from jitdb.stores.cable.message import ChannelListRequest, ChannelListResponse, HashResponse, TimeRangeRequest
from jitdb.stores.cable.post import TEXT, hash_of, sign_post


def text(time: int) -> bytes:
    return sign_post(bytes(32), TEXT, time, channel="c", text="")


async def live(chat: AsyncCable, limit: int) -> list[list[bytes]]:
    request = TimeRangeRequest(bytes(8), "c", 0, 0, limit)
    return [list(each.hashes) async for each in chat.answers(request) if isinstance(each, HashResponse)]


def test_requests_stay_alive_while_others_write(tmp_path: Path) -> None:
    async def run() -> None:
        async with AsyncCable(tmp_path, create=True) as chat:
            await chat.do(Cable.ingest, text(1))
            waiting = asyncio.create_task(live(chat, 3))
            await asyncio.sleep(0.05)
            await asyncio.gather(*(chat.do(Cable.ingest, text(time)) for time in (2, 3, 4)))
            found = await asyncio.wait_for(waiting, 30)
            assert found[-1] == []
            assert {each for part in found for each in part} == {hash_of(text(time)) for time in (1, 2, 3)}
            assert await chat.do(Cable.messages, "c", limit=1) == [hash_of(text(4))]
            listed = [each async for each in chat.answers(ChannelListRequest(bytes(8), 0, 0))]
            assert listed == [ChannelListResponse(bytes(8), ("c",))]
            with pytest.raises(InvalidPost):
                await chat.do(Cable.ingest, b"")

    asyncio.run(run())


def test_who_goes_away_is_told_nothing_more(tmp_path: Path) -> None:
    async def run() -> None:
        async with AsyncCable(tmp_path, create=True) as chat:
            await chat.do(Cable.ingest, text(1))
            async with aclosing(chat.answers(TimeRangeRequest(bytes(8), "c", 0, 0, 0))) as answers:
                assert await anext(answers) == HashResponse(bytes(8), (hash_of(text(1)),))
            assert await chat.do(Cable.ingest, text(2)) == "stored"

    asyncio.run(run())


def test_a_store_must_be_open(tmp_path: Path) -> None:
    with pytest.raises(CableError, match="not open"):
        asyncio.run(AsyncCable(tmp_path).do(Cable.channels))


def test_a_store_that_was_closed_is_not_open(tmp_path: Path) -> None:
    async def run() -> None:
        async with AsyncCable(tmp_path, create=True) as chat:
            await chat.close()
        with pytest.raises(CableError, match="not open"):
            await chat.do(Cable.channels)

    asyncio.run(run())


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Page.read(ROOT / "docs" / "cable.md").run()
