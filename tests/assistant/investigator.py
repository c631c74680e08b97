"""A client that looks for what is wrong in a log that it does not know, by the tools of `jitdb mcp` alone.

It reads the text of answers, as an assistant does, and decides by simple rules what to ask next. It knows no field
but those that answers name.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any, NamedTuple

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


def tokens_in(text: str) -> int:
    """No fewer than a tokenizer counts: five letters or three digits at most are one, and so is each other mark."""
    return len(re.findall(r"[^\W\d_]{1,5}|\d{1,3}|[^\w\s]|_|\n|\t", text))


class Found(NamedTuple):
    """What was found, and what it cost.

    begin, end: of the time that stands out
    shared:     what the failing records of it have in common: a field, and the value or interval
    """

    begin: str
    end: str
    shared: list[str]
    pattern: str
    traces: list[str]
    calls: list[str]
    tokens: int


class Investigator:
    """A conversation with the tools."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.calls: list[str] = []
        self.tokens = 0

    async def ask(self, tool: str, **arguments: Any) -> str:
        result = await self._client.call_tool(tool, arguments)
        text: str = result.content[0].text  # type: ignore[union-attr]
        assert not result.is_error, text
        self.calls.append(f"{tool} {arguments}")
        self.tokens += tokens_in(text)
        return text

    async def look(self) -> Found:
        fields = table(await self.ask("fields"))
        names = {row[0] for row in fields}
        assert {"level", "message"} <= names, names
        bad = 'level >= "error"'
        hours = rated(await self.ask("timeline", share=bad, every="1h"))
        worst = max(hours, key=lambda row: row[1])[0]
        near = {"since": moved(worst, -1), "until": moved(worst, 2)}
        steps = rated(await self.ask("timeline", share=bad, every="10m", **near))
        usual = sorted(share for _, share in hours)[len(hours) // 2]
        least = usual + (max(share for _, share in steps) - usual) / 3
        high = [time for time, share in steps if share > least]
        window = {"since": high[0], "until": moved(high[-1], 0, 10)}
        difference = await self.ask("difference", where=bad, **window)
        shared = [f"{field} {value}" for field, value, *_ in table(difference)]
        named = [condition(each) for each in shared if " = " in each]
        where = " and ".join([bad, *[each for each in named if "version" in each or "region" in each]])
        patterns = table(await self.ask("patterns", where=where, limit=3, **window))
        identity = next(name for name in names if name.startswith("trace") and name.endswith("id"))
        records = await self.ask("records", where=where, fields=["message", identity], sort="-time", limit=2, **window)
        traces = [row[1] for row in table(records)]
        await self.ask("records", where=f'{identity} == "{traces[0]}"', whole=True)
        return Found(window["since"], window["until"], shared, patterns[0][-1], traces, self.calls, self.tokens)


def table(text: str) -> list[list[str]]:
    """The rows of the table in an answer, without its head."""
    lines = [line.split("\t") for line in text.splitlines() if "\t" in line]
    return lines[1:]


def rated(text: str) -> list[tuple[str, float]]:
    """The times of a timeline, each with its day, and the shares."""
    found, day = [], ""
    for time, *_, share in table(text):
        day = time[:10] if len(time) > 8 else day
        clock = time[11:] if len(time) > 8 else time
        found.append((f"{day}T{clock or '00:00'}", float(share.rstrip("%"))))
    return found


def moved(time: str, hours: int, minutes: int = 0) -> str:
    """So much later, on the same day.

    >>> moved("2026-11-20T14:50", 0, 10), moved("2026-11-20T00:30", -1)
    ('2026-11-20T15:00', '2026-11-20T00:00')
    """
    hour, minute = map(int, time[11:16].split(":"))
    at = max(0, min((hour + hours) * 60 + minute + minutes, 24 * 60 - 1))
    return f"{time[:10]}T{at // 60:02}:{at % 60:02}"


def condition(finding: str) -> str:
    """A finding as an expression: `version = 2.14.3`."""
    field, _, value = finding.partition(" = ")
    return f"{field} == {value}" if re.fullmatch(r"-?\d+(\.\d+)?", value) else f'{field} == "{value}"'


async def investigate(*places: str, arguments: tuple[str, ...] = ()) -> Found:
    """Start `jitdb mcp` with these logs, and look."""
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "jitdb", "mcp", *places, *arguments], env=dict(os.environ)
    )
    async with Client(stdio_client(server)) as client:
        return await Investigator(client).look()


if __name__ == "__main__":
    import asyncio
    import time

    begin = time.perf_counter()
    found = asyncio.run(investigate(*sys.argv[1:]))
    print(*found.calls, *found._replace(calls=[]), sep="\n")
    print(f"{len(found.calls)} calls, {found.tokens} tokens, {time.perf_counter() - begin:.1f} s")
