"""The stop button in cells that await a store, in a real kernel that has awaited nothing of jitdb before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from notebook_kernel import Kernel, Shown

BEGIN = """
import asyncio, signal, threading
from jitdb.stores.cable.aio import AsyncCable
from jitdb.stores.cable.message import StateRequest
from jitdb.stores.hyperdb import AsyncHyperDB, HyperDB, connect, serve
from jitdb.stores.spool import AsyncSpool
hold = threading.Event()
source = HyperDB("source", create=True)
copy = HyperDB("copy", source.key)
"""
#: The loop is as it is before anything of jitdb is awaited in it.
DEAF = "found = asyncio.get_running_loop().remove_signal_handler(signal.SIGURG)"

FOLLOWING = {
    "hyperdb": """
async with AsyncHyperDB("{0}", create=True) as db:
    print("begun")
    async for node in db.watch():
        pass
""",
    "hyperdb, a plain loop": """
with HyperDB("{0}", create=True) as db:
    print("begun")
    for node in db.watch():
        pass
""",
    "cable": """
async with AsyncCable("{0}", create=True) as chat:
    print("begun")
    async for response in chat.answers(StateRequest(bytes(8), "c", 1)):
        pass
""",
    "spool": """
async with AsyncSpool("{0}", create=True) as spool:
    print("begun")
    async for vector in spool.spool.subscribe(b"group"):
        pass
""",
}
CALLING = {
    "hyperdb": """
db = await AsyncHyperDB("{0}", create=True).open()
def slow(node):
    print("begun")
    hold.wait()
db.db.watch(callback=slow)
await db.put("a")
""",
    "cable": """
chat = await AsyncCable("{0}", create=True).__aenter__()
def slow(cable):
    print("begun")
    hold.wait()
await chat.do(slow)
""",
    "spool": """
spool = AsyncSpool("{0}", create=True)
def slow(vector):
    print("begun")
    hold.wait()
spool.spool.subscribe(b"group", slow)
await spool.store(b"group", b"ada-----", 1, 0, b"x")
""",
    "who serves": """
async with await serve(source) as server:
    print("begun")
    await server.serve_forever()
""",
    "who replicates": """
async with await serve(source) as server:
    print("begun")
    await connect(copy, "127.0.0.1", server.sockets[0].getsockname()[1], live=True)
""",
}


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    made = Kernel(tmp_path_factory.mktemp("stores"))
    assert not made.run(BEGIN)
    yield made
    made.close()


@pytest.mark.parametrize("store", FOLLOWING)
def test_a_wait_is_stopped_in_a_word(kernel: Kernel, store: str) -> None:
    assert not kernel.run(DEAF)
    shown = kernel.run(FOLLOWING[store].format(f"{store} that waits"), kernel.stop_waiting)
    assert shown[-1] == Shown("error", "stopped")


@pytest.mark.parametrize("store", CALLING)
def test_a_call_is_stopped(kernel: Kernel, store: str) -> None:
    assert not kernel.run(DEAF)
    shown = kernel.run(CALLING[store].format(f"{store} that works"), kernel.stop_waiting)
    assert shown[-1].kind == "error"
    assert "CancelledError" in shown[-1].text
    assert not kernel.run("hold.set()\nawait asyncio.sleep(0)\nhold.clear()")
