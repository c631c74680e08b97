"""The tools over the Model Context Protocol, on standard input and output. Needs the package `mcp`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitdb.assistant.tools import INSTRUCTIONS, TOOLS, answer, told
from jitdb.errors import JitdbError, library

if TYPE_CHECKING:
    from jitdb.logset.logset import AnyDatabase


def serve(db: AnyDatabase, what: str, version: str) -> None:
    """Answer until standard input ends. what: the logs, in words; version: of jitdb. Raises MissingLibrary."""
    library("mcp")
    import asyncio

    asyncio.run(_serve(db, what, version))


async def _serve(db: AnyDatabase, what: str, version: str) -> None:
    from mcp.server.stdio import stdio_server

    server = server_of(db, what, version)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def server_of(db: AnyDatabase, what: str, version: str = "") -> Any:
    """The server of these logs, for any transport of the package."""
    import mcp_types as types
    from mcp.server.lowlevel import Server

    db.warns_of_questions = False  # answers have the notes

    async def list_tools(context: Any, params: Any) -> Any:
        only_reads = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
        return types.ListToolsResult(
            tools=[
                types.Tool(name=name, description=tool.about, input_schema=tool.schema, annotations=only_reads)
                for name, tool in TOOLS.items()
            ]
        )

    async def call_tool(context: Any, params: Any) -> Any:
        try:
            text, is_error = await answer(db, params.name, params.arguments or {}), False
        except JitdbError as error:
            text, is_error = told(error), True
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)

    return Server(
        "jitdb",
        version=version,
        instructions=INSTRUCTIONS.format(what=what),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
