"""A cable store in an async program, and its page and example."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from doc_blocks import ROOT, Page

from jitdb.errors import JitdbError
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


@pytest.mark.parametrize("how", [AsyncCable.close, lambda chat: chat.do(Cable.close)])
def test_loops_over_answers_end_when_the_store_is_closed(how: Any, tmp_path: Path) -> None:
    async def run() -> None:
        async with AsyncCable(tmp_path, create=True) as chat:
            await chat.do(Cable.ingest, text(1))
            answers = [chat.answers(TimeRangeRequest(bytes(8), "c", 0, 0, 0)) for _ in range(3)]
            assert [await anext(each) for each in answers] == [HashResponse(bytes(8), (hash_of(text(1)),))] * 3
            waiting = [asyncio.create_task(anext(each, "ended")) for each in answers]
            await asyncio.sleep(0.05)
            await how(chat)
            assert await asyncio.wait_for(asyncio.gather(*waiting), 30) == ["ended"] * 3

    asyncio.run(run())


def test_a_request_to_a_store_that_closes_meanwhile_ends(tmp_path: Path) -> None:
    """Whichever of the two comes first, and wherever the other one is by then."""

    async def run() -> None:
        for pauses in range(12):
            chat = await AsyncCable(tmp_path, create=True).__aenter__()
            asking = asyncio.create_task(live(chat, 0))
            for _ in range(pauses):
                await asyncio.sleep(0)
            await chat.close()
            [found] = await asyncio.wait_for(asyncio.gather(asking, return_exceptions=True), 30)
            assert found == [] or isinstance(found, JitdbError)

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
